"""Logic of the prompt without widgets: vi keys, pastes, dropped files, history and completion."""
