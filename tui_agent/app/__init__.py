"""The controller and its commands: all that a user can do in any frontend.

Nothing here imports Textual.
"""
