"""The gauge: how full the context window is, as a bar and in numbers, on one line."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import field
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
ERROR = 90
"""Percent of the window from which the gauge warns, and from which it is urgent."""

GLYPHS = {
    "fixed": "▓",
    **{style_of(standing): glyph for standing, glyph in STANDING_GLYPHS.items()},
    style_of(Standing.SENT): "█",
    "free": "─",
    "reserve": "╱",
    "tick": "│",
}
"""One cell for each part of the bar: parts differ without colour too, and history looks as in the
margin."""

FALL_SECONDS = 5.0
"""How long the gauge says by how much the next request became smaller."""
LEAST_FALL = 200

WARM_SECONDS = 60.0
"""Seconds before the provider forgets the last request in which that is said."""
LOW_CACHE_SHARE = 0.5
"""Share of a request that came from the provider's cache, below which it is said."""

NUMBERS_WIDTH = 24
EXTRAS_WIDTH = 28
"""Cells kept for the words beside the bar, so that its length does not change with them."""

_SENT = style_of(Standing.SENT)

_WINDOW_NOTES = {
    "assumed": "window guessed",
    "learnt": "window from the server",
    "config": "window from config",
}
"""Why a size can be over its window, by where the window's number comes from."""


@frozen
class GaugeReading:
    """The gauge's numbers.

    ``cache_share`` is 0 to 1, of the last request; ``cost`` is US dollars of the session.

    ``warm_until`` is when the provider's cache expires, in seconds since the epoch; None where it
    never said.
    """

    size: ContextSize
    cache_share: float | None = None
    cost: float | None = None
    warm_until: float | None = None
    shares: Mapping[Standing, int] = field(default_factory=dict)
    """Tokens of the history by how the model has them; the rest of it is simply sent."""
    pinged: float | None = None
    """US dollars of the pings that kept the provider's cache warm since the last answer."""
    has_summary: bool = False
    can_compact: bool = False


def parts_of(size: ContextSize, shares: Mapping[Standing, int]) -> dict[Standing, int]:
    """Return the tokens of the history by how the model has them, in the order of the bar."""
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

    Parts in use get at least one cell, the threshold's tick takes the place of the cell it falls
    on.
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
    runs: list[tuple[str, int]] = []
    for part in cells:
        if runs and runs[-1][0] == part:
            runs[-1] = (part, runs[-1][1] + 1)
        else:
            runs.append((part, 1))
    return runs


def level(size: ContextSize) -> str:
    if size.percent >= ERROR:
        return "error"
    if size.percent >= WARNING:
        return "warning"
    return "ok"


def numbers(size: ContextSize) -> str:
    """Return the reading in words: ``~84.2k / 200k 42%``, with a mark before the percentage when it is high."""
    if not size.is_known:
        return f"… / {tokens(size.window)}"
    about = "~" if size.estimated else ""
    mark = {"ok": "", "warning": "▲ ", "error": "‼ "}[level(size)]
    return f"{about}{tokens(size.total)} / {tokens(size.window)} {mark}{size.percent:.0f}%"


def extras(reading: GaugeReading, now: float) -> list[str]:
    """Return the texts after the numbers, most important first; a narrow screen drops from the end.

    The provider's cache is told of where something can be done about it: it is about to be
    forgotten, or was not used.
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
    """One line under the prompt.

    A click on it asks what fills the window, one on the button compacts.
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
        self._fall = 0, 0.0
        """Tokens fewer than before, and until when that is said."""
        self.measured: GaugeReading | None = None
        """The newest reading that holds no estimate of an answer being streamed."""

    def look(self) -> None:
        """Show the time left now: a timer stands still while the machine sleeps."""
        if self.reading is not None and self.reading.warm_until is not None:
            self.refresh()
            self.watch_reading()

    def measure(self, reading: GaugeReading | None) -> None:
        """Show a reading from between two answers, and for a moment by how much it became smaller."""
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
        fallen = before.size.total - reading.size.total
        if fallen < 0:
            self._fall = 0, 0.0
        # Tokens that a report corrects have not left.
        corrected = before.size.estimated and not reading.size.estimated
        if fallen >= LEAST_FALL and not corrected:
            self._fall = fallen, self._clock() + FALL_SECONDS
            self.set_timer(FALL_SECONDS + 0.01, self.refresh)

    def watch_reading(self) -> None:
        """Wake up when the words change, which is once a minute while the cache is warm, and never otherwise."""
        self._cooling.stop()
        if self.reading is not None and self.reading.warm_until is not None and self.is_attached:
            left = self.reading.warm_until - self._clock()
            if left > 0:
                self._cooling.after(left - 60 * (ceil(left / 60) - 1) + 0.01)

    def _cooled(self) -> None:
        self.look()
        self.post_message(self.Cooled())

    class Cooled(Message):
        """Another minute has passed in which the provider remembers the last request, or it has forgotten it."""

    @dataclass
    class Pressed(Message):
        """The gauge was clicked: the user wants to know what fills the window."""

    def render(self) -> Content:
        reading = self.reading
        if reading is None:
            return Content("")
        width = self.size.width
        text = numbers(reading.size)
        fallen, until = self._fall
        if self._clock() < until:
            text += f"  −{tokens(fallen)}"
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
            # At the right edge like everything in the line below, also where the bar has its
            # greatest length.
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
