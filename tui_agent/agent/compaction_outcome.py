"""Defines the outcomes of a compaction."""

from tui_agent.lazy import frozen


@frozen
class _Done:
    """A compaction without a problem. ``steps`` tells the user what was done."""

    steps: tuple[str, ...] = ()

    @property
    def problem(self) -> None:
        """The problem, which is always None here because nothing went wrong."""
        return None


class Compacted(_Done):
    """A summary now replaces the history. ``steps`` describes what else made room."""


class Cleared(_Done):
    """Room was made without a summary: tool outputs were cleared, or long texts were cut."""


class Postponed(_Done):
    """The compaction is postponed, because the run compacts the history before its next step."""


@frozen
class _Undone:
    """A compaction that changed nothing; ``problem`` is a sentence that says why."""

    problem: str
    steps: tuple[str, ...] = ()


class NothingToDo(_Undone):
    """There was nothing to compact, which is not a failure."""


class Cancelled(_Undone):
    """A hook that the user set up cancelled the compaction."""


class Failed(_Undone):
    """The compaction failed, was interrupted, or wasn't tried because it is off or paused."""


CompactionOutcome = Compacted | Cleared | Postponed | NothingToDo | Cancelled | Failed
