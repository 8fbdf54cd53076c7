"""Defines how much a model is asked to think (the effort), and chooses a supported level."""

from collections.abc import Sequence
from enum import StrEnum

from tui_agent.lazy import frozen

DEFAULT_EFFORT = "default"
"""Name that is shown if no level is chosen, so that the level in the settings or the provider's
default applies."""


class Effort(StrEnum):
    """How much a model is asked to think before it answers, in ascending order.

    "none" is accepted as another name of ``OFF``. Many models support only one of ``XHIGH`` and
    ``MAX``. ``MAX`` always means the highest level that the model supports.
    """

    OFF = "off"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"
    MAX = "max"

    @classmethod
    def _missing_(cls, value: object) -> "Effort | None":
        if value == "none":
            return cls.OFF
        return None

    def nearest(self, levels: Sequence["Effort"]) -> "Effort | None":
        """Return the level in ``levels`` to use instead of this level; None if none is suitable.

        If this level isn't in ``levels``, the next lower one is returned, because thinking costs
        money. If all are higher, the lowest is returned. OFF is returned only for OFF.
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
    """How much the model is asked to think (the effort) in the next request.

    ``chosen`` is the level set by an entry on the session path, or None. ``preset`` is the level
    that the settings give for the model, or None. ``levels`` are the levels that the model
    supports, empty if its effort can't be set.
    """

    model: str
    levels: tuple[Effort, ...] = tuple(Effort)
    chosen: Effort | None = None
    preset: Effort | None = None

    @property
    def asked(self) -> Effort | None:
        """The chosen level, or else the level in the settings; None for the model's default."""
        return self.chosen or self.preset

    @property
    def level(self) -> Effort | None:
        """The level that is sent to the model; None for the model's default."""
        if self.asked is not None:
            return self.asked.nearest(self.levels)
        return None

    @property
    def shortfall(self) -> str | None:
        """A message for the user if the model doesn't support the level ``asked``; otherwise None.

        For a level from the settings, there is no message if the model has no levels at all, or if
        the level is ``MAX``, which stands for the model's highest level.
        """
        if self.asked is None or self.asked in self.levels:
            return None
        if self.chosen is None and self.asked is Effort.MAX:
            return None
        if not self.levels:
            # A level in the settings may be meant for all models. So a message is needed only for a
            # level that the user chose.
            if self.chosen:
                return f"{self.model} can't be told how much to think: {self.asked} has no effect."
            return None
        has = ", ".join(level for level in Effort if level in self.levels)
        used = self.level or f"its {DEFAULT_EFFORT}"
        return f"{self.model} has no effort level {self.asked}, so {used} is used. It has {has}."
