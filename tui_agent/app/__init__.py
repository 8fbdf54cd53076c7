"""The application without its user interface: the controller, and the commands a user can give.

A frontend (the full screen, an editor, or a run without a screen) connects it to the user. Nothing
here imports Textual.
"""
