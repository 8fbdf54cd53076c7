"""Which failed requests are tried again, and when. Pure: the caller waits."""

from collections.abc import Callable

from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.model.settings import RetrySettings

RETRIED = frozenset({ErrorKind.NETWORK, ErrorKind.RATE_LIMIT, ErrorKind.OVERLOADED, ErrorKind.HOST})
"""Failures that may pass by themselves. Everything else fails the same way again."""

LOADING_DELAY, LOADING_PATIENCE = 2.0, 900.0
"""Seconds between two looks at a server that loads a model, and how long it may take."""


def loading_delay(waited: float) -> float | None:
    """Return the seconds to wait for a server that loads the model, None after ``LOADING_PATIENCE`` of them."""
    return LOADING_DELAY if waited < LOADING_PATIENCE else None


def retry_delay(settings: RetrySettings, attempt: int, error: ModelError, random: Callable[[], float]) -> float | None:
    """Return the seconds to wait after failed attempt number ``attempt`` (1 is the first), None to give up.

    Exponential backoff with full jitter, so that programs that failed together don't come back together. ``random``
    gives numbers from 0 to 1. A wait the provider named is never shortened, jitter adds to it; one longer than
    ``max_retry_after`` ends the retrying: nobody waits an hour unasked.
    """
    if attempt >= settings.attempts or error.kind not in RETRIED:
        return None
    # Doubling further than this is over any cap and, far enough, over the range of a float.
    backoff: float = min(settings.max_delay, settings.first_delay * 2 ** min(attempt - 1, 30))
    if error.retry_after is None:
        return random() * backoff
    if error.retry_after > settings.max_retry_after:
        return None
    return error.retry_after + random() * min(settings.first_delay, backoff)
