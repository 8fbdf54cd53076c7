"""One tool call on its way: the stages it passes, and the one result it gets."""
