"""What is said when the next request does not fit and nothing more may be done unasked."""

from tui_agent.context.budget import ContextSize
from tui_agent.context.compaction_policy import CHOICES
from tui_agent.errors import UserFacingError


class ContextFullError(UserFacingError):
    """The next request does not fit and nothing more may be done unasked; the message offers choices.

    ``compacted``: that was tried just now, and is no choice.
    """

    def __init__(self, why: str, *, compacted: bool = False) -> None:
        offered = [choice for choice in CHOICES if not (compacted and choice.command == "/compact")]
        choices = "; ".join(f"{choice.command}: {choice.label[:1].lower()}{choice.label[1:]}" for choice in offered)
        super().__init__(f"{why} What you can do: {choices}.")


class CompactedError(UserFacingError):
    """The history was compacted in the middle of the work, and the settings say that the run ends there."""

    def __init__(self) -> None:
        super().__init__("Compacted, and compaction.resume is off: send a message to go on.")


def describe_full(size: ContextSize) -> str:
    return f"The context is full: {size.total:,} of {size.window:,} tokens."
