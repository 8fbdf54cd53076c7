"""The Textual application: renders events and entries, sends intents."""
