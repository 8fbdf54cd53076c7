"""How the transcript looks: every kind of block, wide and narrow, dark, light and in the terminal's own colours."""

from collections.abc import Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.support.transcript import TranscriptHost
from tests.ui.transcript.samples import ANSWER, every_kind, list_source
from tui_agent.agent.events import (
    AnswerDelta,
    ReasoningProgress,
    RunEnded,
    ToolFinished,
    ToolOutput,
    ToolStarted,
)
from tui_agent.context.context_status import Standing
from tui_agent.context.context_status_cache import Standings
from tui_agent.session.entries import ToolMetadata

Compare = Callable[..., bool]


async def at_top(pilot: Pilot[Any]) -> None:
    await pilot.press("home")
    await pilot.pause()


@pytest.mark.parametrize(
    ("size", "theme"),
    [
        ((80, 130), "textual-dark"),
        ((120, 120), "textual-light"),
        ((80, 130), "ansi-dark"),
        ((40, 60), "textual-dark"),
    ],
    ids=["80-dark", "120-light", "80-ansi", "40-dark"],
)
def test_every_kind_of_block(snap_compare: Compare, size: tuple[int, int], theme: str) -> None:
    app = TranscriptHost(list_source(every_kind()), theme)
    assert snap_compare(app, terminal_size=size, run_before=at_top)


def test_all_is_open(snap_compare: Compare) -> None:
    shown = [
        entry
        for entry in every_kind()
        if entry.kind in {"user", "assistant", "tool_result", "compaction"}
    ]
    app = TranscriptHost(list_source(shown[:11]))

    async def open_all(pilot: Pilot[Any]) -> None:
        await pilot.pause()
        app.pane.set_standings(
            Standings(known={3: Standing.CLEARED, 5: Standing.PINNED}, edited=frozenset({3, 5}))
        )
        for index, item in sorted(app.pane.model.loaded()):
            for block in item.blocks:
                if block.fold == 0:
                    app.pane.fold_or_unfold(index, block)
        await at_top(pilot)

    assert snap_compare(app, terminal_size=(80, 100), run_before=open_all)


def test_an_answer_and_a_call_in_the_middle(snap_compare: Compare) -> None:
    app = TranscriptHost(list_source(every_kind()[:3]), clock=lambda: 0.0)

    async def stream(pilot: Pilot[Any]) -> None:
        app.pane.apply(ReasoningProgress("Let me see."))
        app.pane.apply(AnswerDelta(ANSWER[:700]))
        app.pane.apply(RunEnded("done"))
        app.pane.apply(ToolStarted("x", "bash", "make test", "{}"))
        app.pane.apply(ToolOutput("x", "building\n10%\r60%"))
        app.pane.apply(ToolStarted("y", "webfetch", "https://example.com", "{}"))
        app.pane.apply(ToolFinished("y", "bash", "error", ToolMetadata(), 2.5))
        await pilot.pause()

    assert snap_compare(app, terminal_size=(80, 40), run_before=stream)


def test_the_focused_block_and_a_selection(snap_compare: Compare) -> None:
    app = TranscriptHost(list_source(every_kind()[:9]))

    async def select(pilot: Pilot[Any]) -> None:
        await pilot.press("home", *"jjj")
        await pilot.mouse_down(offset=(3, 1))
        await pilot.hover(offset=(20, 3))
        await pilot.mouse_up(offset=(20, 3))
        app.pane.query_text = "views"
        await pilot.pause()

    assert snap_compare(app, terminal_size=(80, 24), run_before=select)
