"""The levels of thinking that a model can be asked for."""

from collections.abc import Sequence
from enum import StrEnum


class Effort(StrEnum):
    """How much a model thinks before it answers, from the least to the most."""

    OFF = "off"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    MAX = "max"

    @classmethod
    def _missing_(cls, value: object) -> "Effort | None":
        return {"none": cls.OFF, "xhigh": cls.MAX}.get(value) if isinstance(value, str) else None

    def nearest(self, levels: Sequence["Effort"]) -> "Effort | None":
        """Return the one of a model's levels that comes closest to this one, None when it has none.

        That is the next lower one, because thinking costs; below all of them, the lowest. Thinking is turned off only
        where that was asked for.
        """
        if self in levels:
            return self
        thinking = [level for level in Effort if level in levels and level is not Effort.OFF]
        order = list(Effort).index
        return next((level for level in reversed(thinking) if order(level) < order(self)), next(iter(thinking), None))


DEFAULT_EFFORT = "default"
"""Stands where no level is chosen: the settings say it, or else the model's maker."""
