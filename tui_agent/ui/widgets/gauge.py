"""The gauge: how full the context window is, as a bar and in numbers, on one line."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import field
from itertools import groupby
from math import ceil
from types import MappingProxyType
from typing import TYPE_CHECKING

from textual import events
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from tui_agent.app.format import money, tokens
from tui_agent.app.status_marks import GLYPHS as STANDING_GLYPHS
from tui_agent.app.status_marks import STYLES as STANDING_STYLES
from tui_agent.app.status_marks import style_of
from tui_agent.context.context_status import Standing
from tui_agent.lazy import dataclass, frozen
from tui_agent.ui.later import Later
from tui_agent.ui.widgets.clickable import clickable

if TYPE_CHECKING:
    from tui_agent.context.budget import ContextSize

WARNING = 70
"""Percentage of the window in use from which the gauge warns."""
ERROR = 90
"""Percentage of the window in use from which the gauge shows an error."""

GLYPHS = {
    "fixed": "▓",
    **{style_of(standing): glyph for standing, glyph in STANDING_GLYPHS.items()},
    style_of(Standing.SENT): "█",
    "free": "─",
    "reserve": "╱",
    "tick": "│",
}
"""Character for each part of the bar.

Parts differ without color too. Each context status has the same character as in the margin of the
conversation.
"""

FREED_SECONDS = 5.0
"""Seconds for which the gauge shows by how much the next request became smaller."""
MIN_FREED = 200
"""Least tokens by which the next request has to become smaller for the gauge to show it."""

WARM_SECONDS = 60.0
"""The gauge warns that the provider's cache expires when at most this many seconds are left."""
LOW_CACHE_SHARE = 0.5
"""Share of the last request read from the provider's cache below which the gauge shows it."""

MIN_WIDTH_FOR_LABEL = 140
"""Least width, in cells, at which the numbers say what they count."""
NUMBERS_WIDTH = 24
"""Cells reserved for the numbers beside the bar, so that its length does not change."""
EXTRAS_WIDTH = 28
"""Cells reserved for the texts after the numbers."""

_SENT = style_of(Standing.SENT)

_WINDOW_NOTES = {
    "assumed": "window guessed",
    "learnt": "window from the server",
    "config": "window from config",
}
"""Texts on how the size of the window is known, by ``ContextSize.window_origin``."""


@frozen
class GaugeReading:
    """The gauge's numbers.

    ``cache_share`` is the share of the last request that was read from the cache, 0 to 1; ``cost``
    is that of the session in US dollars; ``warm_until`` is when the provider's cache expires, in
    seconds since the epoch. Each is None if unknown.
    """

    size: ContextSize
    cache_share: float | None = None
    cost: float | None = None
    warm_until: float | None = None
    shares: Mapping[Standing, int] = field(default_factory=dict)
    """Tokens of the history by context status; the rest of the history is in context."""
    pinged: float | None = None
    """US dollars spent to keep the provider's cache warm since the last answer; None for none."""
    has_summary: bool = False
    can_compact: bool = False


def parts_of(size: ContextSize, shares: Mapping[Standing, int]) -> dict[Standing, int]:
    """Return the tokens of the history by context status, in the order of the bar.

    ``shares`` are limited to the size of the history; the rest of it is in context (``SENT``).
    """
    order = (Standing.SUMMARISED, Standing.CLEARED, Standing.PINNED)
    left = size.history
    found = dict[Standing, int]()
    for standing in order:
        found[standing] = min(left, shares.get(standing, 0))
        left -= found[standing]
    return {**found, Standing.SENT: left}


def bar(
    size: ContextSize, width: int, shares: Mapping[Standing, int] = MappingProxyType({})
) -> list[tuple[str, int]]:
    """Return the parts of a bar of ``width`` cells, left to right, as (part, cells).

    Used parts other than ``SENT`` get at least one cell if there is room; the threshold's tick
    replaces the cell it is on.
    Returns an empty list if the window is unknown or the bar would be shorter than 4 cells.
    """
    if not size.window or width < 4:
        return []
    scale = width / size.window
    used = 0
    if size.total:
        used = min(width, max(1, round(size.total * scale)))
    if size.fixed and used:
        fixed = min(used, max(1, round(size.fixed * scale)))
    else:
        fixed = 0
    reserve = min(width - used, round(size.reserve * scale))
    cells = ["fixed"] * fixed
    for standing, taken in parts_of(size, shares).items():
        if standing is Standing.SENT:
            wanted = used
        elif taken:
            wanted = max(1, round(taken * scale))
        else:
            wanted = 0
        cells += [style_of(standing)] * min(wanted, used - len(cells))
    cells += ["free"] * (width - used - reserve) + ["reserve"] * reserve
    if size.threshold is not None and 0 < size.threshold < size.window:
        cells[min(width - 1, round(size.threshold * scale))] = "tick"
    return [(part, len(list(same))) for part, same in groupby(cells)]


def level(size: ContextSize) -> str:
    if size.percent >= ERROR:
        return "error"
    if size.percent >= WARNING:
        return "warning"
    return "ok"


def numbers(size: ContextSize) -> str:
    """Return the size as text, ``~84.2k / 200k 42%``; ``… / 200k`` if it is unknown.

    A high percentage has a mark before it.
    """
    if not size.is_known:
        return f"… / {tokens(size.window)}"
    about = "~" if size.estimated else ""
    mark = {"ok": "", "warning": "▲ ", "error": "‼ "}[level(size)]
    return f"{about}{tokens(size.total)} / {tokens(size.window)} {mark}{size.percent:.0f}%"


def extras(reading: GaugeReading, now: float) -> list[str]:
    """Return the texts after the numbers, most important first.

    The provider's cache is mentioned only if it is about to expire, has expired, is kept warm by
    pings, or was hardly used. ``now`` is in seconds since the epoch.
    """
    found = []
    if reading.size.total > reading.size.window:
        found.append(
            _WINDOW_NOTES.get(
                reading.size.window_origin, "estimated" if reading.size.estimated else "full"
            )
        )
    if reading.has_summary:
        found.append("summary ready")
    if reading.warm_until is not None and (left := reading.warm_until - now) <= WARM_SECONDS:
        found.append(f"warm {ceil(left / 60)}m" if left > 0 else "cold")
    elif reading.pinged is not None:
        found.append(f"kept warm {money(reading.pinged)}")
    if reading.cache_share is not None and reading.cache_share < LOW_CACHE_SHARE:
        found.append(f"cache {reading.cache_share:.0%}")
    if (
        reading.size.window_origin in {"assumed", "learnt"}
        and reading.size.total <= reading.size.window
    ):
        found.append(_WINDOW_NOTES[reading.size.window_origin])
    return found


class Gauge(Widget):
    """The line under the prompt that shows a `GaugeReading`.

    A click on the line posts `Pressed`; a click on its button compacts.
    """

    ALLOW_SELECT = False
    COMPONENT_CLASSES = {
        "gauge--fixed",
        *(f"gauge--{name}" for name in STANDING_STYLES),
        "gauge--free",
        "gauge--reserve",
        "gauge--tick",
        "gauge--numbers",
        "gauge--extras",
        "gauge--button",
        "gauge--warning",
        "gauge--error",
    }

    reading: reactive[GaugeReading | None] = reactive(None)
    """The numbers shown; None before a session is open."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self._clock = clock
        self._cooling = Later(self, self._cooled)
        self._freed = 0, 0.0
        """Tokens by which the request became smaller, and until when the gauge shows them."""
        self.measured: GaugeReading | None = None
        """The newest reading passed to `measure`, which does not include a streaming answer."""

    def update_cache_time(self) -> None:
        """Update the cache's remaining time now: timers don't run while the machine sleeps."""
        if self.reading is not None and self.reading.warm_until is not None:
            self.refresh()
            self.watch_reading()

    def measure(self, reading: GaugeReading | None) -> None:
        """Show a reading taken between answers.

        If the next request became smaller by at least `MIN_FREED` tokens, the difference is shown
        for `FREED_SECONDS`; not if the window changed too, or a count only replaced an estimate.
        """
        before = self.measured
        self.measured = reading
        self.reading = reading
        if (
            before is None
            or reading is None
            or not before.size.is_known
            or before.size.window != reading.size.window
        ):
            return
        freed = before.size.total - reading.size.total
        if freed < 0:
            self._freed = 0, 0.0
        # A provider's report that corrects an estimate frees no tokens.
        corrected = before.size.estimated and not reading.size.estimated
        if freed >= MIN_FREED and not corrected:
            self._freed = freed, self._clock() + FREED_SECONDS
            self.set_timer(FREED_SECONDS + 0.01, self.refresh)

    def watch_reading(self) -> None:
        """Start the timer for the next redraw: each minute while the cache is warm, else never."""
        self._cooling.stop()
        if self.reading is not None and self.reading.warm_until is not None and self.is_attached:
            left = self.reading.warm_until - self._clock()
            if left > 0:
                self._cooling.after(left - 60 * (ceil(left / 60) - 1) + 0.01)

    def _cooled(self) -> None:
        self.update_cache_time()
        self.post_message(self.Cooled())

    class Cooled(Message):
        """A minute of the provider's cache has passed, or the cache has expired."""

    @dataclass
    class Pressed(Message):
        """The gauge was clicked; the receiver shows what fills the context window."""

    def render(self) -> Content:
        reading = self.reading
        if reading is None:
            return Content("")
        width = self.size.width
        text = numbers(reading.size)
        if width >= MIN_WIDTH_FOR_LABEL:
            text += " of the context"
        freed, until = self._freed
        if self._clock() < until:
            text += f"  −{tokens(freed)}"
        button = "[ Compact ]" if reading.can_compact and width >= 76 else ""
        room = width - (len(button) + 2 if button else 0)
        # The bar's length depends on the width alone: equal lengths mean equal sizes.
        cells = min(72, max(room - NUMBERS_WIDTH - EXTRAS_WIDTH, min(12, room - NUMBERS_WIDTH)))
        room -= max(cells, 0) + 1 + len(text)
        shown: list[str] = []
        for extra in extras(reading, self._clock()):
            if room - len(extra) - 2 < 0:
                break
            shown.append(extra)
            room -= len(extra) + 2
        grade = level(reading.size)
        name = "numbers" if grade == "ok" else grade
        line = Content("")
        if cells >= 6:
            line = self._bar(reading, cells, grade) + Content(" ")
        line += Content.styled(text, f".gauge--{name}")
        for extra in reversed(shown):
            line += Content.styled(f"  {extra}", ".gauge--extras")
        if button:
            # At the right edge, like the keys in the line below, even if the bar could be longer.
            line = line.pad_right(width - line.cell_length - len(button))
            line += clickable(button, ".gauge--button", "screen.command('compact')")
        return line

    def _bar(self, reading: GaugeReading, cells: int, grade: str) -> Content:
        pieces = []
        for part, count in bar(reading.size, cells, reading.shares):
            name = part
            if part == _SENT and grade != "ok":
                name = grade
            pieces.append((GLYPHS[part] * count, f".gauge--{name}"))
        return Content.assemble(*pieces)

    def on_click(self, event: events.Click) -> None:
        if "@click" not in event.style.meta:
            self.post_message(self.Pressed())
