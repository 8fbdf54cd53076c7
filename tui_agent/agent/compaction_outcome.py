"""The ways a compaction ends."""

from tui_agent.lazy import frozen


@frozen
class _Done:
    """An outcome that leaves nothing to complain about. ``steps`` names what was done."""

    steps: tuple[str, ...] = ()

    @property
    def problem(self) -> None:
        """Why nothing was compacted: it was."""
        return None


class Compacted(_Done):
    """A summary stands for the history; ``steps`` names what was needed beside it."""


class Cleared(_Done):
    """Room was made without a summary: outputs were cleared or cut."""


class Postponed(_Done):
    """A run is under way; it is compacted before the next step."""


@frozen
class _Undone:
    """Nothing was changed; ``problem`` says why, in one sentence."""

    problem: str
    steps: tuple[str, ...] = ()


class NothingToDo(_Undone):
    """There is nothing to compact. No failure."""


class Cancelled(_Undone):
    """A hook of the user's did not want it."""


class Failed(_Undone):
    """It was tried and came to nothing."""


CompactionOutcome = Compacted | Cleared | Postponed | NothingToDo | Cancelled | Failed
