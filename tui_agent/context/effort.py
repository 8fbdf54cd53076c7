"""How much a request asks its model to think, and what becomes of a level the model lacks."""

from tui_agent.lazy import dataclass
from tui_agent.session.effort import DEFAULT_EFFORT, Effort


@dataclass(frozen=True, slots=True)
class EffortInForce:
    """The effort of the next request.

    ``chosen`` is what the path says, ``preset`` what the settings say for the model, ``levels`` those the model has;
    without any it can't be told how much to think.
    """

    model: str
    levels: tuple[Effort, ...] = tuple(Effort)
    chosen: Effort | None = None
    preset: Effort | None = None

    @property
    def asked(self) -> Effort | None:
        """What the user wants, None to leave it to the model."""
        return self.chosen or self.preset

    @property
    def level(self) -> Effort | None:
        """What the model is asked for, None for its own default."""
        return self.asked.nearest(self.levels) if self.asked is not None else None

    @property
    def shortfall(self) -> str | None:
        """One sentence or two on what the model lacks, None when it has what the user wants."""
        if self.asked is None or self.asked in self.levels:
            return None
        if not self.levels:
            # A preset is for whatever models there are; only who asked for this one has to know.
            return f"{self.model} can't be told how much to think: {self.asked} has no effect." if self.chosen else None
        has = ", ".join(level for level in Effort if level in self.levels)
        used = self.level or f"its {DEFAULT_EFFORT}"
        return f"{self.model} has no effort {self.asked}: it is asked for {used}. It has {has}."
