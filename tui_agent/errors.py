"""Base classes of the errors that the program raises on purpose, and the message shown for any error.

Each layer derives its errors from `UserFacingError`; each has a one-sentence message for the user.
Any other error that reaches `report`, except an OSError, is a defect and is logged with its
traceback.
"""

import logging

from tui_agent.lazy import frozen

log = logging.getLogger(__name__)

_BY_ITSELF = "The log has the details; the session continues."


class UserFacingError(Exception):
    """An expected error. Its text is a sentence for the user that says what to do."""


class ToolError(Exception):
    """A tool call failed. The text is for the model and says what to do instead."""


class CommandError(UserFacingError):
    """A command can't be used now, or not with these arguments."""


@frozen
class Problem:
    """The message shown for an error. ``expected`` is False if the error is a defect of the program."""

    sentence: str
    expected: bool = True


def problem_of(error: BaseException) -> Problem:
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
                f"tui-agent hit an internal error ({type(error).__name__}). {_BY_ITSELF}",
                expected=False,
            )


def report(error: BaseException) -> Problem:
    """Log an error and return the message to show for it; a defect is logged with its traceback."""
    problem = problem_of(error)
    if problem.expected:
        log.warning("%s", problem.sentence)
    else:
        log.error("internal error", exc_info=error)
    return problem
