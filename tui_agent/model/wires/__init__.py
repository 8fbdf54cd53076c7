"""The formats spoken without a library: requests as bytes, answers as events."""
