"""What the prompt does with text, without drawing: vi keys, pastes, dropped files, history, completion."""
