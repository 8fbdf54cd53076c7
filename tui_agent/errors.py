"""The one base of every error the program raises on purpose.

Each layer has its own family below it. What is raised from it carries one sentence for a person; anything else that
reaches the edge of the program (`tui_agent.app.problems`) is a defect and is logged with its traceback.
"""


class UserFacingError(Exception):
    """Something can't be done. Its text is one sentence for a person, with what can be done about it."""


class ToolError(Exception):
    """A tool call could not be done. Its text is written for the model and says what to do instead."""


class CommandError(UserFacingError):
    """A command cannot be used now, or not like this."""
