"""How long a provider asks to wait: headers and texts in the forms providers use."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from tui_agent.lazy import LazyPattern

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PIECE = LazyPattern(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_DURATION = LazyPattern(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+")
_IN_TEXT = LazyPattern(
    r"(?:try again|retry|retrydelay|resets?)\W{0,5}(?:after|in|at)?\W{0,5}"
    r"((?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+\b|\d+(?:\.\d+)? ?(?:s|sec|seconds?|min|minutes?)\b)",
    re.IGNORECASE,
)
_WORDS = LazyPattern(r" ?(s|m)(?:ec|econds?|in|inutes?)?$")

_RESETS = (
    ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
    ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
    ("anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"),
    ("anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"),
    ("x-ratelimit-remaining", "x-ratelimit-reset"),
    ("ratelimit-remaining", "ratelimit-reset"),
)

_EPOCH = 1_000_000_000.0
"""Plain numbers over it are moments, in seconds or milliseconds since the epoch, not spans."""


def retry_after(headers: Mapping[str, str], text: str, *, now: float) -> float | None:
    """Return the seconds to wait, None when nothing says so. ``now`` is seconds since the epoch."""
    known = {name.lower(): value.strip() for name, value in headers.items()}
    if (milliseconds := _number(known.get("retry-after-ms"))) is not None:
        return max(0.0, milliseconds / 1000)
    if (seconds := span(known.get("retry-after"), now=now)) is not None:
        return seconds
    if (seconds := _from_resets(known, now)) is not None:
        return seconds
    match = _IN_TEXT.search(text)
    return span(_WORDS.sub(r"\1", match[1].lower()), now=now) if match else None


def span(value: str | None, *, now: float) -> float | None:
    """Return the seconds a header's value means: a number, a moment, a date, or a duration like ``6m0s``."""
    if not value:
        return None
    number = _number(value)
    if number is not None:
        if number > _EPOCH:
            moment = number / 1000 if number > _EPOCH * 100 else number
            return max(0.0, moment - now)
        return max(0.0, number)
    if _DURATION.fullmatch(value):
        return sum(
            float(amount) * _UNITS[unit] for amount, unit in (piece.groups() for piece in _PIECE.finditer(value))
        )
    moment_of_date = _date(value)
    return None if moment_of_date is None else max(0.0, moment_of_date - now)


def spoken(seconds: float) -> str:
    """Return a wait as people say it."""
    whole = max(1, round(seconds))
    if whole < 100:
        return f"{whole} s"
    minutes = round(whole / 60)
    if minutes < 100:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if hours < 48 else f"{round(hours / 24)} days"


def _from_resets(headers: Mapping[str, str], now: float) -> float | None:
    """Return when the last of the used-up limits is filled again."""
    waits = [
        wait
        for remaining, reset in _RESETS
        if _number(headers.get(remaining)) == 0 and (wait := span(headers.get(reset), now=now)) is not None
    ]
    return max(waits, default=None)


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value else None
    except ValueError:
        return None
    return number if number is not None and abs(number) < 1e15 else None


def _date(value: str) -> float | None:
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = parse(value)
        except ValueError:
            continue
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return None
