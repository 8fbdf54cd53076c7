"""A screen with nothing but a transcript, and ways to read it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import TypeVar

from textual.app import App, ComposeResult
from textual.message import Message
from textual.pilot import Pilot
from textual.widget import Widget

from tests.support import parsed_styles, settled  # noqa: F401 - pilots wait, and start sooner
from tui_agent.agent.events import AgentEvent
from tui_agent.resources import style_path
from tui_agent.session.entries import AssistantEntry, TextPart, ToolCallPart, UserEntry
from tui_agent.ui.contrast import readable_variables
from tui_agent.ui.widgets.transcript.source import EntrySource
from tui_agent.ui.widgets.transcript.transcript import Transcript

Clock = Callable[[], float]
MessageT = TypeVar("MessageT", bound=Message)


class TranscriptHost(App[None]):
    """Shows a source with the packaged style."""

    CSS_PATH = [style_path("standing.tcss"), style_path("transcript.tcss")]  # noqa: RUF012 - as inherited

    def get_css_variables(self) -> dict[str, str]:
        return readable_variables(super().get_css_variables())

    def __init__(
        self,
        source: EntrySource | None = None,
        theme: str = "textual-dark",
        clock: Clock = perf_counter,
    ) -> None:
        super().__init__()
        self._source_shown = source
        self._clock = clock
        self.animation_level = "none"
        self.theme = theme

    def compose(self) -> ComposeResult:
        yield Transcript(clock=self._clock)

    def on_mount(self) -> None:
        self.pane.set_entries(self._source_shown)
        self.pane.focus()

    @property
    def pane(self) -> Transcript:
        return self.query_one(Transcript)


class HeldTimers:
    """The timers that a widget sets from now on: they go off when the test says so."""

    def __init__(self, widget: Widget) -> None:
        self.waiting: list[HeldTimer] = []
        widget.set_timer = partial(self._set, once=True)  # type: ignore[method-assign,assignment]
        widget.set_interval = partial(self._set, once=False)  # type: ignore[method-assign,assignment]

    def go_off(self) -> None:
        for timer in tuple(self.waiting):
            if timer.once:
                timer.stop()
            timer.callback()

    def _set(self, seconds: float, callback: Callable[[], object], *, once: bool) -> "HeldTimer":
        timer = HeldTimer(seconds, callback, once, self.waiting)
        self.waiting.append(timer)
        return timer


@dataclass(eq=False)
class HeldTimer:
    """One of ``HeldTimers``."""

    seconds: float
    callback: Callable[[], object]
    once: bool
    among: list["HeldTimer"] = field(repr=False)

    def stop(self) -> None:
        """Never go off again; stopping twice does no harm."""
        if self in self.among:
            self.among.remove(self)


class Shown:
    """A transcript on screen, the messages it sent, and its pilot."""

    def __init__(self, app: TranscriptHost, pilot: Pilot[None], messages: list[Message]) -> None:
        self.app = app
        self.pane = app.pane
        self.pilot = pilot
        self._messages = messages

    async def settled(self) -> None:
        await self.pilot.pause()
        for _ in range(2):
            done = asyncio.Event()
            self.pane.call_after_refresh(done.set)
            await asyncio.wait_for(done.wait(), 60)

    async def play(self, *happened: AgentEvent) -> None:
        for event in happened:
            self.pane.apply(event)
        await self.settled()

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.settled()

    async def click(self, x: int, y: int, times: int = 1) -> None:
        await self.pilot.click(Transcript, offset=(x, y), times=times)
        await self.settled()

    def screen(self) -> list[str]:
        """Return the rows on screen without trailing spaces."""
        return [
            strip.text.rstrip() for strip in self.pane.render_lines(self.pane.outer_size.region)
        ]

    def text(self) -> str:
        return "\n".join(self.screen())

    def row_of(self, text: str) -> int:
        return next(number for number, row in enumerate(self.screen()) if text in row)

    def sent(self, kind: type[MessageT]) -> list[MessageT]:
        """Return the messages of a kind; each is seen by several widgets."""
        found = {id(message): message for message in self._messages if isinstance(message, kind)}
        return list(found.values())


@asynccontextmanager
async def shown(
    source: EntrySource | None = None,
    size: tuple[int, int] = (80, 24),
    theme: str = "textual-dark",
    clock: Clock = perf_counter,
) -> AsyncIterator[Shown]:
    messages: list[Message] = []
    app = TranscriptHost(source, theme, clock)
    async with app.run_test(size=size, message_hook=messages.append) as pilot:
        host = Shown(app, pilot, messages)
        await host.settled()
        yield host


def user(number: int, text: str = "question") -> UserEntry:
    return UserEntry(id=number, parts=(TextPart(text=text),))


def answer(number: int, text: str = "answer", *calls: ToolCallPart) -> AssistantEntry:
    parts = (TextPart(text=text), *calls) if text else calls
    return AssistantEntry(id=number, parts=parts, model="m")
