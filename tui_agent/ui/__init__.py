"""The full-screen program, in Textual: renders events and entries, sends the user's intents."""
