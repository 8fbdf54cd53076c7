"""The gauge: one line that shows how full the context window is, as a bar and in numbers.

The line also shows the state of the provider's prompt cache, and a Compact button. The screen
measures the context and passes a `GaugeReading`; this module only decides how to show it.
"""

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
"""Percentage of the context window in use at which the gauge takes on the color of a warning."""
ERROR = 90
"""Percentage of the context window in use at which the gauge takes on the color of an error."""

GLYPHS = {
    "fixed": "▓",
    **{style_of(standing): glyph for standing, glyph in STANDING_GLYPHS.items()},
    style_of(Standing.SENT): "█",
    "free": "─",
    "reserve": "╱",
    "tick": "│",
}
"""The characters with which the parts of the gauge's bar are drawn.

They let the user tell the parts apart without color. A context status (such as pinned or cleared)
has the same character as in the margin of the conversation.
"""

FREED_SECONDS = 5.0
"""Seconds for which the gauge shows how many tokens were freed."""
MIN_FREED = 200
"""Minimum number of tokens freed by a change for which the gauge shows the number."""

WARM_SECONDS = 60.0
"""Remaining lifetime of the prompt cache, in seconds, below which the gauge shows that time."""
LOW_CACHE_SHARE = 0.5
"""Share of the last request that came from the prompt cache (0 to 1), below which the gauge shows
that share."""

MIN_WIDTH_FOR_LABEL = 140
"""Minimum width of the gauge, in cells, at which “of the context” is added to the numbers."""
NUMBERS_WIDTH = 24
"""Number of cells reserved for the numbers, so that the bar's length doesn't depend on them."""
EXTRAS_WIDTH = 28
"""Number of cells reserved for further texts after the numbers, such as the cost, so that the bar's
length doesn't depend on them."""

_SENT = style_of(Standing.SENT)

_WINDOW_NOTES = {
    "assumed": "window assumed",
    "learnt": "window learnt",
    "config": "window from the settings",
}
"""Short notes that tell the user where the size of the context window comes from, by
``ContextSize.window_origin``."""
_UNSURE = frozenset({"assumed", "learnt"})
"""Origins of a window that the gauge always shows, because the size may be wrong."""


@frozen
class GaugeReading:
    """The values that the gauge shows.

    ``cache_share`` is the share of the last request that was read from the prompt cache, 0 to 1.
    ``cost`` is the cost of the session in US dollars. ``warm_until`` is when the prompt cache
    expires, in seconds since the epoch. Each of them is None if unknown.
    """

    size: ContextSize
    cache_share: float | None = None
    cost: float | None = None
    warm_until: float | None = None
    shares: Mapping[Standing, int] = field(default_factory=dict)
    """Tokens of the history by context status (such as pinned or cleared). The rest of the history
    is in context (``SENT``)."""
    pinged: float | None = None
    """US dollars spent, since the last answer, on requests that only keep the prompt cache warm.
    None if there were none."""
    has_summary: bool = False
    """Whether a prepared summary is ready for the next compaction."""
    can_compact: bool = False
    """Whether to show the Compact button if there is room for it."""


def parts_of(size: ContextSize, shares: Mapping[Standing, int]) -> dict[Standing, int]:
    """Return the tokens of the history by context status, in the order in which the bar shows them.

    ``shares`` are reduced so that they don't exceed the size of the history. The rest of the
    history is in context (``SENT``).
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
    """Return the parts of the gauge's bar from left to right, each with its width in cells.

    A part that contains tokens has at least one cell, as long as the used part of the bar has room;
    ``SENT`` receives the cells that the others leave. The tick of the threshold replaces the cell
    at its position. ``width`` is the width of the bar in cells. Returns an empty list if the size
    of the context window is unknown or ``width`` is less than 4.
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
    """Return the level for showing how full the context window is: “ok”, “warning” or “error”."""
    if size.percent >= ERROR:
        return "error"
    if size.percent >= WARNING:
        return "warning"
    return "ok"


def numbers(size: ContextSize) -> str:
    """Return the size of the context as text, such as ``~84.2k / 200k 42%``.

    If the size is unknown, the text is like ``… / 200k``. A mark precedes a percentage of at least
    `WARNING` or `ERROR`.
    """
    if not size.is_known:
        return f"… / {tokens(size.window)}"
    about = "~" if size.estimated else ""
    mark = {"ok": "", "warning": "▲ ", "error": "‼ "}[level(size)]
    return f"{about}{tokens(size.total)} / {tokens(size.window)} {mark}{size.percent:.0f}%"


def extras(reading: GaugeReading, now: float) -> list[str]:
    """Return the texts that the gauge shows after the numbers, most important first.

    The prompt cache is mentioned only if it is about to expire, has expired, is kept warm by pings,
    or was hardly used by the last request. ``now`` is in seconds since the epoch.
    """
    found = []
    note = _WINDOW_NOTES.get(reading.size.window_origin, "")
    is_over = reading.size.total > reading.size.window
    if is_over:
        found.append(note or ("estimated" if reading.size.estimated else "full"))
    if reading.has_summary:
        found.append("summary ready")
    if reading.warm_until is not None and (left := reading.warm_until - now) <= WARM_SECONDS:
        found.append(f"cache warm {ceil(left / 60)}m" if left > 0 else "cache cold")
    elif reading.pinged is not None:
        found.append(f"cache kept warm {money(reading.pinged)}")
    if reading.cache_share is not None and reading.cache_share < LOW_CACHE_SHARE:
        found.append(f"cache {reading.cache_share:.0%}")
    if reading.size.window_origin in _UNSURE and not is_over:
        found.append(note)
    return found


class Gauge(Widget):
    """The line below the prompt that shows how full the context window is (see `GaugeReading`).

    A click on the line posts `Pressed`. A click on its button runs the command ``compact``.
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
    """The reading that the gauge shows; None before a session is open."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self._clock = clock
        self._cooling = Later(self, self._cooled)
        self._freed = 0, 0.0
        """The number of tokens that were freed, and the time until which the gauge shows that
        number."""
        self.measured: GaugeReading | None = None
        """The last reading passed to `measure`. It doesn't count an answer that is still being
        streamed."""

    def update_cache_time(self) -> None:
        """Redraw the remaining time of the prompt cache, and start the timer for the next minute.

        Timers don't run while the machine sleeps, so the time left is computed again each time.
        """
        if self.reading is not None and self.reading.warm_until is not None:
            self.refresh()
            self.watch_reading()

    def measure(self, reading: GaugeReading | None) -> None:
        """Show a reading that doesn't include an answer being streamed.

        If the next request has become smaller by at least `MIN_FREED` tokens, the difference is
        shown for `FREED_SECONDS`. It isn't shown if the context window has another size now, or if
        the provider's count has only replaced an estimate.
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
        # If the provider's count has only corrected an estimate, no tokens were freed.
        corrected = before.size.estimated and not reading.size.estimated
        if freed >= MIN_FREED and not corrected:
            self._freed = freed, self._clock() + FREED_SECONDS
            self.set_timer(FREED_SECONDS + 0.01, self.refresh)

    def watch_reading(self) -> None:
        """Start the timer that redraws the gauge at each full minute while the cache is warm."""
        self._cooling.stop()
        if self.reading is not None and self.reading.warm_until is not None and self.is_attached:
            left = self.reading.warm_until - self._clock()
            if left > 0:
                self._cooling.after(left - 60 * (ceil(left / 60) - 1) + 0.01)

    def _cooled(self) -> None:
        self.update_cache_time()
        self.post_message(self.Cooled())

    class Cooled(Message):
        """Posted when the prompt cache is a minute closer to its expiry, or has expired."""

    @dataclass
    class Pressed(Message):
        """Posted when the user clicks the gauge, to see what fills the context window."""

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
        # The bar's length must depend only on the width, so that the user can compare bars over
        # time.
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
            # Put the button at the right edge, where the line below has its keys, too.
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
