"""The main screen, the pages that open over it, and dialogs."""
