"""Turns what providers report of tokens into numbers that can be relied on, or into none."""

from collections.abc import Mapping
from typing import Any

from tui_agent.session.entries import Usage

LARGEST = 100_000_000
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


def _count(value: Any) -> int | None:
    """Return a number of tokens, 0 for a missing one, None for one that can't be."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # Not a number is not between anything.
    return int(value) if 0 <= value <= LARGEST else None
