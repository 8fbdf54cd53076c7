"""What the prompt does with text, apart from drawing it: pastes, history, completion, attachments, intents."""
