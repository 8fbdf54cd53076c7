"""The levels of effort, and the choice of one that a model supports."""

from collections.abc import Sequence
from enum import StrEnum

from tui_agent.lazy import frozen

DEFAULT_EFFORT = "default"
"""Name shown when no level is chosen; the settings or else the provider's default then apply."""


class Effort(StrEnum):
    """How much a model is asked to think before it answers; the members ascend.

    "none" is accepted as another name of ``OFF``. Many models have only one of ``XHIGH`` and ``MAX``;
    ``MAX`` always means the highest level that the model has.
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
        """Return which of ``levels`` to use for this level; None if there are none.

        If this level isn't among them, return the next lower one, because thinking costs money, or
        the lowest if all are higher. OFF is returned only for OFF.
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

    ``chosen`` is the level set by an entry on the path, ``preset`` the settings' level for the
    model, and ``levels`` the levels the model supports; empty if it has no setting for effort.
    """

    model: str
    levels: tuple[Effort, ...] = tuple(Effort)
    chosen: Effort | None = None
    preset: Effort | None = None

    @property
    def asked(self) -> Effort | None:
        """The level chosen on the path, or else the settings' level; None: the model's default."""
        return self.chosen or self.preset

    @property
    def level(self) -> Effort | None:
        """The level that is sent to the model, None for the model's default."""
        if self.asked is not None:
            return self.asked.nearest(self.levels)
        return None

    @property
    def shortfall(self) -> str | None:
        """A message that the model doesn't support the level in ``asked``, None if it does.

        Also None if the settings name a level and the model has no levels at all, or name ``MAX``:
        a model without a level of that name gets its highest.
        """
        if self.asked is None or self.asked in self.levels:
            return None
        if self.chosen is None and self.asked is Effort.MAX:
            return None
        if not self.levels:
            # The settings may name a level for all models, so only a choice deserves a message.
            if self.chosen:
                return f"{self.model} can't be told how much to think: {self.asked} has no effect."
            return None
        has = ", ".join(level for level in Effort if level in self.levels)
        used = self.level or f"its {DEFAULT_EFFORT}"
        return f"{self.model} has no effort {self.asked}, so {used} is used. It has {has}."
