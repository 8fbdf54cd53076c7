"""The levels of effort a model can be asked for, and the level used in place of one it lacks."""

from collections.abc import Sequence
from enum import StrEnum

from tui_agent.lazy import frozen

DEFAULT_EFFORT = "default"
"""The value for "no level chosen": the settings, or else the provider's default, decide."""


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
        if isinstance(value, str):
            return {"none": cls.OFF, "xhigh": cls.MAX}.get(value)
        return None

    def nearest(self, levels: Sequence["Effort"]) -> "Effort | None":
        """Return the level of a model that is nearest to this one, None if the model has no levels.

        This is the next lower level, because thinking costs money, or the lowest if this is below
        all. Thinking is switched off only if that was asked for.
        """
        if self in levels:
            return self
        nearest: Effort | None = None
        order = list(Effort).index
        for level in Effort:
            if level not in levels or level is Effort.OFF:
                continue
            if nearest is None or order(level) < order(self):
                nearest = level
        return nearest


@frozen
class EffortInForce:
    """The effort of the next request.

    ``chosen`` is the level set on the path, ``preset`` the settings' level for the model, and
    ``levels`` are those that the model has, none if it can't be asked to think more or less.
    """

    model: str
    levels: tuple[Effort, ...] = tuple(Effort)
    chosen: Effort | None = None
    preset: Effort | None = None

    @property
    def asked(self) -> Effort | None:
        """The level that the user wants, None to leave it to the model."""
        return self.chosen or self.preset

    @property
    def level(self) -> Effort | None:
        """The level that the model is asked for, None for its own default."""
        if self.asked is not None:
            return self.asked.nearest(self.levels)
        return None

    @property
    def shortfall(self) -> str | None:
        """A message about the level the model lacks, None if it has what the user wants."""
        if self.asked is None or self.asked in self.levels:
            return None
        if not self.levels:
            # A preset is for whatever models there are; only who asked for this one has to know.
            if self.chosen:
                return f"{self.model} can't be told how much to think: {self.asked} has no effect."
            return None
        has = ", ".join(level for level in Effort if level in self.levels)
        used = self.level or f"its {DEFAULT_EFFORT}"
        return f"{self.model} has no effort {self.asked}: it is asked for {used}. It has {has}."
