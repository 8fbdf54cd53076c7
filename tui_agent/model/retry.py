"""Which failed requests are tried again, and when. Pure: the caller waits."""

from collections.abc import Callable
from typing import Self

from tui_agent.lazy import dataclass
from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.model.settings import RetrySettings

RETRIED = frozenset({ErrorKind.NETWORK, ErrorKind.RATE_LIMIT, ErrorKind.OVERLOADED, ErrorKind.HOST})
"""Failures that may pass by themselves. Everything else fails the same way again."""

LOADING_DELAY, LOADING_PATIENCE = 2.0, 900.0
"""Seconds between two looks at a server that loads a model, and how long it may take."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential backoff with full jitter, so that programs that failed together don't come back together.

    ``attempts`` counts the first one. Delays are seconds. A provider's own ``retry_after`` is kept to when it is at
    most ``max_retry_after``, and ends the retrying when it is longer: nobody waits an hour unasked.
    """

    attempts: int = 5
    first_delay: float = 1.0
    max_delay: float = 60.0
    max_retry_after: float = 600.0

    @classmethod
    def of(cls, settings: RetrySettings) -> Self:
        return cls(
            attempts=settings.attempts,
            first_delay=settings.first_delay,
            max_delay=settings.max_delay,
            max_retry_after=settings.max_retry_after,
        )

    def loading_delay(self, waited: float) -> float | None:
        """Return the seconds to wait for a server that loads the model, None after ``LOADING_PATIENCE`` of them."""
        return LOADING_DELAY if waited < LOADING_PATIENCE else None

    def delay(self, attempt: int, error: ModelError, random: Callable[[], float]) -> float | None:
        """Return the seconds to wait after failed attempt number ``attempt`` (1 is the first), None to give up.

        ``random`` gives numbers from 0 to 1. A wait the provider named is never shortened; jitter adds to it.
        """
        if attempt >= self.attempts or error.kind not in RETRIED:
            return None
        # Doubling further than this is over any cap and, far enough, over the range of a float.
        backoff: float = min(self.max_delay, self.first_delay * 2 ** min(attempt - 1, 30))
        if error.retry_after is None:
            return random() * backoff
        if error.retry_after > self.max_retry_after:
            return None
        return error.retry_after + random() * min(self.first_delay, backoff)
