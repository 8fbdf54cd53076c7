"""Only lines that changed are drawn, and the terminal then shows what drawing everything would show."""

import asyncio
from collections.abc import Callable

import pyte
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from textual._compositor import CompositorUpdate
from textual.app import App, ComposeResult
from textual.widget import Widget

from tests.support.thoroughness import examples
from tests.support.transcript import Shown, answer, shown, user
from tui_agent.agent.events import AnswerDelta, EntryAppended
from tui_agent.processes.terminal_screen import TerminalScreen
from tui_agent.ui.widgets.fast_paint import paint_now
from tui_agent.ui.widgets.plain_text import PlainText

SIZES = ((60, 12), (60, 20), (140, 12))
TEXTS = (
    "a word ",
    "a paragraph that is so long that it has to be broken into several lines of the screen ",
    "\n\n",
    "```python\nprint('hello')\n```\n",
    "- an item\n- another item\n",
    "# A heading\n",
)

Action = tuple[str, int]
actions = st.lists(
    st.tuples(
        st.sampled_from(
            ["ask", "write", "write", "finish", "working", "idle", "key", "find", "resize", "style"]
        ),
        st.integers(min_value=0, max_value=11),
    ),
    min_size=1,
    max_size=25,
)
KEYS = (
    "up",
    "down",
    "pageup",
    "pagedown",
    "home",
    "end",
    "tab",
    "shift+tab",
    "enter",
    "o",
    "ctrl+end",
    "escape",
)


class Drawn:
    """The terminal of an app: everything that the app draws is written to it."""

    def __init__(self, app: App[None]) -> None:
        self.app = app
        self.chars = 0
        """Characters written so far."""
        self._screen = TerminalScreen(*app.size)
        app._display = self._display  # type: ignore[method-assign]
        self._display(None, app.screen._compositor.render_update(full=True))

    def _display(self, _screen: object, update: object) -> None:
        if not isinstance(update, CompositorUpdate):
            return
        if (self._screen.columns, self._screen.lines) != tuple(self.app.size):
            self._screen = TerminalScreen(*self.app.size)
        text = update.render_segments(self.app.console)
        self.chars += len(text)
        pyte.Stream(self._screen).feed(text)

    def is_as_drawn_whole(self) -> bool:
        for widget in self.app.screen.walk_children(Widget, with_self=True):
            widget._styles_cache.clear()
        whole = TerminalScreen(*self.app.size)
        update = self.app.screen._compositor.render_update(full=True)
        assert update is not None
        pyte.Stream(whole).feed(update.render_segments(self.app.console))
        return cells(whole) == cells(self._screen)


def cells(screen: pyte.Screen) -> list[list[pyte.screens.Char]]:
    return [
        [screen.buffer[row][column] for column in range(screen.columns)]
        for row in range(screen.lines)
    ]


class Actor:
    """Does to a conversation what a user and an agent do."""

    def __init__(self, view: Shown) -> None:
        self._view = view
        self._number = 0
        self._written = ""

    async def act(self, action: str, number: int) -> None:
        pane = self._view.pane
        match action:
            case "ask":
                self._number += 1
                pane.apply(EntryAppended(user(self._number, f"question {number}")))
            case "write":
                text = TEXTS[number % len(TEXTS)]
                self._written += text
                pane.apply(AnswerDelta(text))
            case "finish" if self._written.strip():
                self._number += 1
                pane.apply(EntryAppended(answer(self._number, self._written)))
                self._written = ""
            case "working":
                pane.show_activity(lambda written: f"working · {written} · {number}")
            case "idle":
                pane.show_activity(None)
            case "key":
                await self._view.press(KEYS[number % len(KEYS)])
            case "find":
                pane.query_text = ("", "word", "item")[number % 3]
            case "resize":
                await self._view.pilot.resize_terminal(*SIZES[number % len(SIZES)])
            case "style":
                pane.app.theme = ("textual-dark", "textual-light")[number % 2]
            case _:
                pass
        if number == 1:
            paint_now(pane)
        await self._view.settled()


async def play(steps: list[Action]) -> None:
    async with shown(None, SIZES[0]) as view:
        drawn = Drawn(view.app)
        actor = Actor(view)
        for action, number in steps:
            await actor.act(action, number)
            assert drawn.is_as_drawn_whole(), (action, number)


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=actions)
def test_the_terminal_shows_what_drawing_everything_would_show(steps: list[Action]) -> None:
    asyncio.run(play(steps))


async def _chars_of(view: Shown, drawn: Drawn, act: Callable[[], None]) -> int:
    before = drawn.chars
    act()
    await view.settled()
    return drawn.chars - before


async def test_a_word_more_draws_one_line() -> None:
    now = 1_000.0
    async with shown(None, (80, 24), clock=lambda: now) as view:
        drawn = Drawn(view.app)
        pane = view.pane
        for number in range(1, 20, 2):
            pane.apply(EntryAppended(user(number, "question")))
            pane.apply(EntryAppended(answer(number + 1, "answer")))
        pane.apply(AnswerDelta("first words"))
        await view.settled()
        now += 1
        one = await _chars_of(view, drawn, lambda: pane.apply(AnswerDelta(" and more")))
        whole = await _chars_of(view, drawn, lambda: pane.refresh() and None)
        assert 0 < one < whole / 8


async def test_what_is_painted_now_is_not_painted_again() -> None:
    async with shown(None, (80, 24)) as view:
        drawn = Drawn(view.app)
        view.pane.apply(AnswerDelta("first words"))
        before = drawn.chars
        paint_now(view.pane)
        painted = drawn.chars - before
        assert painted
        await view.settled()
        assert drawn.chars - before < 2 * painted
        assert drawn.is_as_drawn_whole()


class Notes(App[None]):
    """A text that is shown and one that is hidden."""

    def compose(self) -> ComposeResult:
        yield PlainText("seen", id="seen")
        yield PlainText("hidden", id="hidden")

    def on_mount(self) -> None:
        self.query_one("#hidden").display = False


async def test_a_text_that_is_the_same_or_hidden_causes_no_layout() -> None:
    async with Notes().run_test() as pilot:
        await pilot.pause()
        laid_out: list[object] = []
        pilot.app.screen.screen_layout_refresh_signal.subscribe(pilot.app, laid_out.append)
        seen = pilot.app.query_one("#seen", PlainText)
        hidden = pilot.app.query_one("#hidden", PlainText)
        seen.update("seen")
        hidden.update("another text, over\ntwo lines")
        await pilot.pause()
        assert laid_out == []
        hidden.display = True
        await pilot.pause()
        assert laid_out
        assert hidden.size.height == 2
        seen.update("another")
        await pilot.pause()
        assert seen.content == "another"
