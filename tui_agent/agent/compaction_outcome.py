"""Defines the outcomes of a compaction."""

from tui_agent.lazy import frozen


@frozen
class _Done:
    """A compaction without a problem; ``steps`` describes what was done, for the user."""

    steps: tuple[str, ...] = ()

    @property
    def problem(self) -> None:
        """Always None, because nothing went wrong."""
        return None


class Compacted(_Done):
    """A summary now replaces the history; ``steps`` describes further measures that made room."""


class Cleared(_Done):
    """Room was made without a summary: outputs were cleared or shortened."""


class Postponed(_Done):
    """Nothing was done yet: the run in progress compacts the history before its next step."""


@frozen
class _Undone:
    """A compaction that changed nothing; ``problem`` is a sentence that says why."""

    problem: str
    steps: tuple[str, ...] = ()


class NothingToDo(_Undone):
    """There was nothing to compact; not a failure."""


class Cancelled(_Undone):
    """A hook of the user cancelled the compaction."""


class Failed(_Undone):
    """The compaction failed, was interrupted, or was not tried because it is off or paused."""


CompactionOutcome = Compacted | Cleared | Postponed | NothingToDo | Cancelled | Failed
