"""The formats that are spoken without a library: a request as bytes going out, an answer's events coming in."""
