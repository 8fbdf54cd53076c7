"""The controller: all that a person can ask of the program, on a screen, in an editor, in a script.

No Textual.
"""
