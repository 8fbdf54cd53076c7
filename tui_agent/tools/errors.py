"""The one error of tools."""


class ToolError(Exception):
    """The call could not be done; the message is written for the model and says what to do instead."""
