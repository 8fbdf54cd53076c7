"""The ways a compaction ends."""

from tui_agent.lazy import frozen


class _Done:
    """An outcome that leaves nothing to complain about."""

    @property
    def problem(self) -> None:
        """Why nothing was compacted: it was."""
        return None


@frozen
class Compacted(_Done):
    """A summary stands for the history. ``steps`` names what was needed beside it."""

    steps: tuple[str, ...] = ()


@frozen
class Cleared(_Done):
    """Room was made without a summary: outputs were cleared or cut, as ``steps`` says."""

    steps: tuple[str, ...] = ()


@frozen
class Postponed(_Done):
    """A run is under way; it is compacted before the next step."""

    steps: tuple[str, ...] = ()


@frozen
class NothingToDo:
    """There is nothing to compact; ``problem`` says why, in one sentence. No failure."""

    problem: str
    steps: tuple[str, ...] = ()


@frozen
class Cancelled:
    """A hook of the user's did not want it; ``problem`` is one sentence."""

    problem: str
    steps: tuple[str, ...] = ()


@frozen
class Failed:
    """It was tried and came to nothing; ``problem`` says why, in one sentence."""

    problem: str
    steps: tuple[str, ...] = ()


CompactionOutcome = Compacted | Cleared | Postponed | NothingToDo | Cancelled | Failed
