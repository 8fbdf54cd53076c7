"""Decides which errors a fallback model helps with, and which models may be used now.

Also returns the model that the user chose, while a fallback model answers (`stands_in_for`).
`ContextKeeper.fall_back` and ``return_to_chosen`` use these decisions, append the model change and
tell the user.
"""

import math
from collections.abc import Sequence

from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.session.entries import Entry, ModelChangeEntry
from tui_agent.session.path_queries import newest

_OVERLOADED_SECONDS = 300.0
_QUOTA_SECONDS = 3_600.0
"""Seconds until a failed model is tried again, unless the provider names a longer time."""
_AWAY = {
    ErrorKind.OVERLOADED: ("is overloaded", _OVERLOADED_SECONDS),
    ErrorKind.RATE_LIMIT: ("limits the rate of requests", _OVERLOADED_SECONDS),
    ErrorKind.QUOTA: ("has no quota left", _QUOTA_SECONDS),
    ErrorKind.NOT_FOUND: ("is no longer available", math.inf),
    ErrorKind.AUTH: ("has no valid API key", math.inf),
}
"""Errors after which a fallback model is used, each with a verb phrase for the user's notice.

The number says after how many seconds the failed model is tried again.
"""


class Availability:
    """Remembers, as long as the agent exists, which models failed and when to try them again."""

    def __init__(self) -> None:
        self._away_until: dict[str, float] = {}

    def note(self, model: str, error: ModelError, now: int) -> str:
        """Remember that a model failed at ``now`` (milliseconds since the epoch).

        Returns a verb phrase for a notice ("is overloaded"). If a fallback model doesn't help with
        the error, remembers nothing and returns "".
        """
        if error.kind not in _AWAY:
            return ""
        reason, seconds = _AWAY[error.kind]
        self._away_until[model] = now + 1_000 * max(seconds, error.retry_after or 0.0)
        return reason

    def is_back(self, model: str, now: int) -> bool:
        return now >= self._away_until.get(model, 0.0)

    def first_of(self, models: Sequence[str], now: int) -> str | None:
        """Return the first of ``models`` that may be used now; None if none of them may."""
        return next((model for model in models if self.is_back(model, now)), None)


def stands_in_for(path: Sequence[Entry]) -> str | None:
    """Return the model that the user chose, if a fallback model answers now.

    None if the chosen model answers.
    """
    change = newest(path, ModelChangeEntry)
    return change.stands_in_for if change is not None else None
