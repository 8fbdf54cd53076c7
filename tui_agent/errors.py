"""Base classes of the errors that the program raises on purpose, and the message for any error.

Errors for the user derive from `UserFacingError`, and their text is the message to show. Errors for
the model are `ToolError`. Any other error that reaches `report`, except an OSError, is a defect of
the program and is logged with its traceback.
"""

import logging

from tui_agent.lazy import frozen

log = logging.getLogger(__name__)

_AFTER_DEFECT = "The log has the details; the session continues."


class UserFacingError(Exception):
    """Raised for an expected error. Its text is a message that tells the user what to do."""


class ToolError(Exception):
    """Raised when a tool call fails. The text tells the model what to do instead."""


class CommandError(UserFacingError):
    """Raised when a slash command can't be used now, or not with these arguments."""


@frozen
class Problem:
    """The message to show for an error.

    ``expected`` is False if the error is a defect of the program.
    """

    sentence: str
    expected: bool = True


def problem_of(error: BaseException) -> Problem:
    """Return the message to show for an error, without logging anything."""
    match error:
        case UserFacingError():
            return Problem(str(error))
        case OSError():
            where = ""
            if error.filename:
                where = f"{error.filename}: "
            return Problem(f"{where}{error.strerror or error}.")
        case _:
            return Problem(
                f"tui-agent hit an internal error ({type(error).__name__}). {_AFTER_DEFECT}",
                expected=False,
            )


def report(error: BaseException) -> Problem:
    """Log an error and return the message that should be shown for it.

    If the error is a defect of the program, the log includes its traceback.
    """
    problem = problem_of(error)
    if problem.expected:
        log.warning("%s", problem.sentence)
    else:
        log.error("internal error", exc_info=error)
    return problem
