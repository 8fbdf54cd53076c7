"""Turns what providers report of tokens into numbers that can be relied on, or into none."""

import math
from collections.abc import Mapping
from typing import Any, TypeGuard

from tui_agent.session.entries import Usage

TICKS_PER_DOLLAR = 10_000_000_000
"""xAI's ticks in a dollar."""

MAX_TOKENS = 100_000_000
"""Tokens beyond which a report is nonsense."""


def usage_of(reported: Mapping[str, Any] | None) -> Usage | None:
    """Return the usage a provider reported, None when it reported none or nonsense.

    ``reported`` has prompt, completion, cache_read, cache_write and reasoning. ``prompt`` counts cached tokens too
    where a provider follows OpenAI, which litellm makes most of them do; one that is smaller than the cached ones
    cannot have, and counts the rest.
    """
    if not reported:
        return None
    prompt, completion = _count(reported.get("prompt")), _count(reported.get("completion"))
    if prompt is None or completion is None:
        return None
    cache_read = _count(reported.get("cache_read")) or 0
    cache_write = _count(reported.get("cache_write")) or 0
    cached = cache_read + cache_write
    usage = Usage(
        input=prompt - cached if prompt >= cached else prompt,
        output=completion,
        cache_read=cache_read,
        cache_write=cache_write,
        reasoning=min(_count(reported.get("reasoning")) or 0, completion),
    )
    # A request has at least one token: zero is what servers say that don't count.
    return usage if usage.prompt > 0 else None


def named_cost(reported: Mapping[str, Any]) -> float | None:
    """Return the price in US dollars a provider named with its usage, None when it named none.

    OpenRouter and others call it ``cost``; xAI counts ticks, ten thousand million a dollar.
    """
    ticks = reported.get("cost_in_usd_ticks")
    named = ticks / TICKS_PER_DOLLAR if _is_number(ticks) else reported.get("cost")
    return float(named) if _is_number(named) and named >= 0 else None


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _count(value: Any) -> int | None:
    """Return a number of tokens, 0 for a missing one, None for one that can't be."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # Not a number is not between anything.
    return int(value) if 0 <= value <= MAX_TOKENS else None
