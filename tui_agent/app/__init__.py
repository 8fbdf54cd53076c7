"""The application without its user interface: the controller, and the commands a user can give.

A frontend (the full screen, an editor, a run without a screen) shows it to the user. Nothing here
imports Textual.
"""
