"""Decides whether a failed request is sent again, and how long to wait before that.

`retry_after` reads the wait that the provider asks for, and `retry_delay` decides. The agent waits.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from tui_agent.lazy import LazyPattern
from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.model.settings import RetrySettings

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PIECE = LazyPattern(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_DURATION = LazyPattern(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+")
_SPOKEN = r"(\d+(?:\.\d+)?) ?(ms|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)(?![a-z])"
_IN_TEXT = LazyPattern(
    r"(?:try again|retry|retrydelay|resets?)\W{0,5}(?:after|in|at)?\W{0,5}"
    rf"((?:{_SPOKEN}(?:,? and |,? ?))+)",
    re.IGNORECASE,
)
"""Matches the part of a message that asks for a wait: ``try again in 1 hour and 5 minutes``."""
_SPOKEN_PIECE = LazyPattern(_SPOKEN)

_LIMITS = (
    "x-ratelimit-{}-requests",
    "x-ratelimit-{}-tokens",
    "anthropic-ratelimit-requests-{}",
    "anthropic-ratelimit-tokens-{}",
    "anthropic-ratelimit-input-tokens-{}",
    "anthropic-ratelimit-output-tokens-{}",
    "x-ratelimit-{}",
    "ratelimit-{}",
)
"""Names of rate limit headers, in which ``{}`` is ``remaining`` (the requests or tokens left) or
``reset`` (when the limit ends)."""

_EPOCH = 1_000_000_000.0
"""Numbers above this are times since the epoch, in seconds or milliseconds. Smaller numbers are
durations in seconds."""

_LONGEST = 1e15
"""Numbers above this are ignored, because as a time they are implausible in seconds and in
milliseconds."""

RETRIED = frozenset({ErrorKind.NETWORK, ErrorKind.RATE_LIMIT, ErrorKind.OVERLOADED, ErrorKind.HOST})
"""Kinds of errors after which the same request may succeed. A server that is still loading a model
is waited for separately."""

BUSY_GROWTH = 4
"""How many times longer each wait is than the one before if the server is overloaded or limits
requests, but names no wait; after other errors, it is twice as long. The four waits of the default
settings then take 40 to 81 seconds together. Such a server often needs a minute; other errors
either pass in a few seconds or stay."""

LOADING_DELAY = 2.0
"""Seconds between two requests to a server that is loading a model."""

LOADING_PATIENCE = 900.0
"""Total seconds to wait for a server that is loading a model."""


def retry_after(headers: Mapping[str, str], text: str, *, now: float) -> float | None:
    """Return the wait, in seconds, that the provider asks for in the headers or the error ``text``.

    Returns None if neither names a wait. ``now`` is in seconds since the epoch.
    """
    known = {name.lower(): value.strip() for name, value in headers.items()}
    if (milliseconds := _number(known.get("retry-after-ms"))) is not None:
        return max(0.0, milliseconds / 1000)
    if (seconds := span(known.get("retry-after"), now=now)) is not None:
        return seconds
    reached = [limit for limit in _LIMITS if _number(known.get(limit.format("remaining"))) == 0]
    resets = [span(known.get(limit.format("reset")), now=now) for limit in reached]
    if waits := [wait for wait in resets if wait is not None]:
        return max(waits)
    match = _IN_TEXT.search(text)
    if match is None:
        return None
    pieces = _SPOKEN_PIECE.findall(match[1].lower())
    return span(
        "".join([f"{number}{unit if unit in _UNITS else unit[0]}" for number, unit in pieces]),
        now=now,
    )


def span(value: str | None, *, now: float) -> float | None:
    """Return the seconds from ``now`` that a header's value states; None if it can't be parsed.

    The value may be a number of seconds, a duration (``6m0s``), a date, or a time since the epoch.
    Returns 0 for a time in the past.
    """
    if not value:
        return None
    number = _number(value)
    if number is not None:
        if number > _EPOCH:
            moment = number
            if number > _EPOCH * 100:
                moment = number / 1000
            return max(0.0, moment - now)
        return max(0.0, number)
    if _DURATION.fullmatch(value):
        seconds = 0.0
        for piece in _PIECE.finditer(value):
            seconds += float(piece[1]) * _UNITS[piece[2]]
        return seconds if seconds < _LONGEST else None
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        with suppress(ValueError, OverflowError):
            moment_of_date = parse(value)
            if moment_of_date.tzinfo:
                zoned = moment_of_date
            else:
                zoned = moment_of_date.replace(tzinfo=UTC)
            return max(0.0, zoned.timestamp() - now)
    return None


def spoken(seconds: float) -> str:
    whole = max(1, round(seconds))
    if whole < 100:
        return f"{whole} s"
    minutes = round(whole / 60)
    if minutes < 100:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {rest} min"
    return f"{round(hours / 24)} days"


def _number(value: str | None) -> float | None:
    try:
        number = None
        if value:
            number = float(value)
    except ValueError:
        return None
    if number is not None and abs(number) < _LONGEST:
        return number
    return None


def _is_busy(error: ModelError) -> bool:
    """Return True if the server has too much to do, or fails in a way that may last a minute."""
    if error.kind is ErrorKind.RATE_LIMIT:
        return True
    return error.kind is ErrorKind.OVERLOADED and (error.status is None or error.status >= 500)


def retry_delay(
    settings: RetrySettings, attempt: int, error: ModelError, random: Callable[[], float]
) -> float | None:
    """Return how many seconds to wait after the failed attempt number ``attempt`` (1 is the first).

    The result is None if the request must not be repeated, because no attempts are left, the error
    isn't in ``RETRIED``, or the provider asks for more than ``max_retry_after`` seconds. A wait
    that the provider asks for is never shortened, but some jitter is added to it. Otherwise the
    wait is exponential backoff with full jitter, so that programs that failed together don't retry
    together. If the server is busy, the waits grow faster (`BUSY_GROWTH`), and only half of a wait is
    jitter. ``random`` returns numbers from 0 to 1.
    """
    if attempt >= settings.attempts or error.kind not in RETRIED:
        return None
    is_busy = _is_busy(error)
    growth = BUSY_GROWTH if is_busy else 2
    # The exponent is limited, because a float can't hold much larger powers.
    grown: float = settings.first_delay * growth ** min(attempt - 1, 30)
    backoff = min(settings.max_delay, grown)
    if error.retry_after is None and is_busy:
        return backoff * (1 + random()) / 2
    if error.retry_after is None:
        return random() * backoff
    if error.retry_after > settings.max_retry_after:
        return None
    return error.retry_after + random() * min(settings.first_delay, backoff)
