"""The desk: everything a person can ask of the program, the same for a screen, an editor and a script. No Textual."""
