"""The prompt's handling of text, apart from drawing it: pastes, history, completion, attachments, intents."""
