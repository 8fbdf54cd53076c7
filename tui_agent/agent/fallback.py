"""The models that stand in when the chosen one is overloaded, out of quota or gone, and the way back to it."""

import math
from collections.abc import Sequence

from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.session.entries import Entry, ModelChangeEntry
from tui_agent.session.path_queries import newest

_OVERLOADED_SECONDS = 300.0
_QUOTA_SECONDS = 3_600.0
"""Seconds after which a model is tried again where the provider named no time."""
_AWAY = {
    ErrorKind.OVERLOADED: ("is overloaded", _OVERLOADED_SECONDS),
    ErrorKind.RATE_LIMIT: ("limits the rate of requests", _OVERLOADED_SECONDS),
    ErrorKind.QUOTA: ("has no quota left", _QUOTA_SECONDS),
    ErrorKind.NOT_FOUND: ("is not there any more", math.inf),
    ErrorKind.AUTH: ("has no key that is taken", math.inf),
}
"""Failures after which another model is asked: what is said of the one that failed, and how long it
stays away."""


class Availability:
    """Which models failed, and until when, in milliseconds since the epoch.

    Kept until the program ends.
    """

    def __init__(self) -> None:
        self._away_until: dict[str, float] = {}

    def note(self, model: str, error: ModelError, now: int) -> str:
        """Note that a model can't be used for now.

        Returns why, "" for failures that another model doesn't help.
        """
        if error.kind not in _AWAY:
            return ""
        reason, seconds = _AWAY[error.kind]
        self._away_until[model] = now + 1_000 * max(seconds, error.retry_after or 0.0)
        return reason

    def is_back(self, model: str, now: int) -> bool:
        return now >= self._away_until.get(model, 0.0)

    def first_of(self, models: Sequence[str], now: int) -> str | None:
        """Return the first model that may be asked now."""
        return next((model for model in models if self.is_back(model, now)), None)


def stands_in_for(path: Sequence[Entry]) -> str | None:
    """Return the model that the user chose, where another one stands in for it at the end of a path."""
    change = newest(path, ModelChangeEntry)
    return change.stands_in_for if change is not None else None
