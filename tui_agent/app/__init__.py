"""The application without its user interface: the controller, and the commands a user can give.

Frontends (the full screen, an editor, a run without a screen) connect it to the user. Nothing here
imports Textual.
"""
