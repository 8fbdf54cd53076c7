"""The pages over the main screen, the main screen itself, and dialogs."""
