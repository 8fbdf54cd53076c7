"""The context engine: a pure function from the path of entries to what the model sees."""
