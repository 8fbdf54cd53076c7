"""Reads a subscription's usage limits from the headers of an answer, and writes notices about them.

`PlanUse` keeps the latest limits in memory and decides when a notice is due; the agent shows it.

Anthropic sends such headers for subscriptions, OpenAI for ChatGPT plans. They state the used share
of each time window, such as five hours. Limits per minute are ignored because they reset too soon.
"""

import math
from collections.abc import Iterator, Mapping

from tui_agent.lazy import LazyPattern
from tui_agent.model.protocol import LimitWindow
from tui_agent.model.providers import provider_of
from tui_agent.model.waits import span, spoken

WARN_FROM = 0.8
"""The user is warned when this share of a usage limit, or more, is used. 1 is the whole limit."""

_STEPS = (1.0, 0.95, WARN_FROM)
"""Shares of a usage limit, highest first. When the used share reaches one of them, the user sees a
notice."""

_MOST = 10.0
"""Largest plausible value for the used share of a usage limit; larger values are ignored."""

_ANTHROPIC = LazyPattern(r"anthropic-ratelimit-unified-(\d+)([hd])(_[a-z0-9_]+)?-utilization")
_CODEX = LazyPattern(r"x-codex-(?:primary|secondary)-used-percent")
_ROUNDING = 1e-9
"""Tolerance for floating-point errors, so that a whole percent isn't rounded down to the one
below."""
_HOUR = 60
_DAY = 24 * _HOUR


def read_plan(headers: Mapping[str, str], *, now: float) -> tuple[LimitWindow, ...]:
    """Return the usage limits that the headers of an answer report. Invalid limits are left out.

    ``now`` is in seconds since the epoch.
    """
    known = {name.lower(): value.strip() for name, value in headers.items()}
    return (*_anthropic(known, now), *_codex(known, now))


def _anthropic(headers: Mapping[str, str], now: float) -> Iterator[LimitWindow]:
    for header, value in headers.items():
        found = _ANTHROPIC.fullmatch(header)
        if found is None:
            continue
        used = _share(value)
        if used is None:
            continue
        name = f"{found[1]} {found[2]}"
        if found[3]:
            name += f" {found[3].strip('_').replace('_', ' ')}"
        resets = headers.get(header.replace("-utilization", "-reset"))
        yield LimitWindow(name, used, _moment(resets, now))


def _codex(headers: Mapping[str, str], now: float) -> Iterator[LimitWindow]:
    for header, value in headers.items():
        if _CODEX.fullmatch(header) is None:
            continue
        used = _share(value, of=100)
        minutes = _share(headers.get(header.replace("used-percent", "window-minutes")), most=1e6)
        if used is None or minutes is None or minutes < 1:
            continue
        resets = headers.get(header.replace("used-percent", "reset-at")) or headers.get(
            header.replace("used-percent", "reset-after-seconds")
        )
        yield LimitWindow(_length(minutes), used, _moment(resets, now))


def _length(minutes: float) -> str:
    """Return the length of a usage period: in days or hours if it is whole (±1 %), else in minutes.

    Examples: ``7 d``, ``5 h``, ``90 min``.
    """
    for unit, name in ((_DAY, "d"), (_HOUR, "h")):
        number = round(minutes / unit)
        if number and abs(minutes - number * unit) <= 0.01 * minutes:
            return f"{number} {name}"
    return f"{round(minutes)} min"


def _share(value: str | None, *, of: float = 1.0, most: float = _MOST) -> float | None:
    try:
        share = float(value or "") / of
    except ValueError:
        return None
    if math.isfinite(share) and 0 <= share <= most:
        return share
    return None


def _moment(value: str | None, now: float) -> float | None:
    wait = span(value, now=now)
    if wait is None or not math.isfinite(wait):
        return None
    return now + wait


class PlanUse:
    """The latest usage limits of each provider's subscription, and the notices about them."""

    def __init__(self) -> None:
        self._windows: dict[str, tuple[LimitWindow, ...]] = {}
        self._told: dict[tuple[str, str], float] = {}

    def take(self, model: str, windows: tuple[LimitWindow, ...], *, now: float) -> list[str]:
        """Store the usage limits that an answer reports. They replace the provider's earlier ones.

        Return a notice for each usage limit that has passed a step of ``_STEPS`` since the last
        call.
        """
        provider = _provider(model)
        self._windows[provider] = windows
        sentences = []
        for window in _running(windows, now):
            step = next((share for share in _STEPS if window.used >= share), 0.0)
            if step > self._told.get((provider, window.name), 0.0):
                sentences.append(f"{_sentence(provider, window, now)}.")
            self._told[provider, window.name] = step
        return sentences

    def lines(self, *, now: float) -> list[str]:
        """Return a line for each known usage limit, of any provider, that hasn't been reset yet."""
        lines: list[str] = []
        for provider, windows in self._windows.items():
            for window in _running(windows, now):
                lines.append(_sentence(provider, window, now))
        return lines

    def words(self, model: str, *, now: float) -> str:
        """Return the fullest window of the model's plan as a short text (``5 h plan 86%``).

        Returns "" if none is known or all are below ``WARN_FROM``.
        """
        running = _running(self._windows.get(_provider(model), ()), now)
        fullest = max(running, key=lambda window: window.used, default=None)
        if fullest is None or fullest.used < WARN_FROM:
            return ""
        return f"{fullest.name} plan {_percent(fullest.used)}"


def _provider(model: str) -> str:
    return provider_of(model.partition("/")[0]).name


def _running(windows: tuple[LimitWindow, ...], now: float) -> list[LimitWindow]:
    return [window for window in windows if window.resets_at is None or window.resets_at > now]


def _sentence(provider: str, window: LimitWindow, now: float) -> str:
    back = ""
    if window.resets_at is not None:
        back = f"; it resets in {spoken(window.resets_at - now)}"
    used = _percent(window.used)
    return f"{used} of {provider}'s {window.name} limit is used{back}"


def _percent(share: float) -> str:
    """Return a share in whole percent, rounded down so that only a full share is 100%."""
    return f"{math.floor(100 * share + _ROUNDING):d}%"
