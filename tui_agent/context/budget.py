"""The one measure of how big the context is, and the thresholds derived from it."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """What is known of a model's sizes, in tokens. ``origin`` says where the window's number comes from."""

    model: str
    window: int
    max_output: int | None = None
    origin: Literal["catalog", "config", "learnt", "assumed"] = "catalog"
    vision: bool = True


@dataclass(frozen=True, slots=True)
class ContextSize:
    """How much of the window the next request takes, in tokens.

    ``exact_until`` is the entry whose reported usage the total builds on, None when all of it is estimated.
    ``threshold`` is where automatic compaction acts, None when it never does.
    """

    fixed: int
    history: int
    total: int
    window: int
    reserve: int
    threshold: int | None
    exact_until: int | None
    estimated: bool
    window_origin: str = "catalog"

    @property
    def percent(self) -> float:
        """Share of the window in use, 0 to 100 and more."""
        return 100 * self.total / self.window if self.window else 0.0

    @property
    def budget(self) -> int:
        """H: the tokens history may take before compaction."""
        return max(0, (self.threshold if self.threshold is not None else self.window - self.reserve) - self.fixed)
