"""Pictures of the tree in every state, so that a change of looks is seen and meant."""

import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.scripted_client import Reply
from tests.support.thoroughness import pictures
from tests.support.tree_stage import (
    TreeStage,
    answered,
    plant,
    plant_files,
    said,
    tree_stage,
    write_files,
)
from tests.support.ui_app import until, write
from tui_agent.session.session import Session
from tui_agent.ui.screens.diff import DiffScreen
from tui_agent.ui.screens.tree import SummarisingScreen

SMALL, NARROW, LARGE = (80, 24), (60, 20), (120, 40)
DARK, LIGHT, ANSI = "textual-dark", "textual-light", "ansi-dark"
HANGING = [Reply("## Goal\nTried middleware; its order was wrong, and the session one", hang=True)]


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def wide(session: Session) -> dict[str, int]:
    """Grow a tree of Chinese, Japanese and emoji, some of it on nested branches."""
    start = session.append_many(
        [
            said("登录后重定向丢失了查询字符串，请找出原因并修复它"),
            answered("リダイレクトが定数から作られていました。"),
        ]
    )
    first = session.append_many([said("写一个测试 🧪"), answered("好的，已经添加了测试。")])
    session.move(start[-1].id)
    session.append_many([said("试试中间件"), answered("哪一个？")])
    session.move(first[-1].id)
    session.append_many([said("再来一次"), answered("完成。")])
    session.move(first[-1].id)
    last = session.append_many([said("换一种方法"), answered("👩‍💻 完成了。")])
    session.label(first[0].id, "绿色标签")
    return {"leaf": last[-1].id}


async def _nothing(_stage: TreeStage, _pilot: Any) -> None:
    pass


async def _unfolded(stage: TreeStage, pilot: Any) -> None:
    await pilot.press("end", "right", "down", "down", "down")


async def _search(stage: TreeStage, pilot: Any) -> None:
    await pilot.press("slash")
    await write(pilot, "middleware")
    await until(lambda: stage.tree.hits is not None, pilot)


async def _label(stage: TreeStage, pilot: Any) -> None:
    await stage.highlight("test")
    await pilot.press("l")


async def _everything(_stage: TreeStage, pilot: Any) -> None:
    await pilot.press("ctrl+o", "ctrl+o", "ctrl+o", "ctrl+o", "end", "right")


async def _preview(stage: TreeStage, pilot: Any) -> None:
    await pilot.press("space")
    await stage.highlight("run")


async def _leaving(stage: TreeStage, pilot: Any) -> None:
    await stage.highlight("xylophone")
    await pilot.press("enter")
    await stage.asked()


async def _diff(stage: TreeStage, pilot: Any) -> None:
    write_files(stage)
    await stage.highlight("before")
    await pilot.press("d")
    await stage.asked(DiffScreen)


async def _summarising(stage: TreeStage, pilot: Any) -> None:
    await _leaving(stage, pilot)
    await pilot.press("2")
    await stage.client.hanging.wait()
    screen = await stage.asked(SummarisingScreen)
    await until(lambda: "session one" in str(screen.growing.content), pilot)


async def _working(stage: TreeStage, pilot: Any) -> None:
    stage.agent.submit("go on")
    await stage.client.hanging.wait()
    await stage.highlight("fork")
    await until(lambda: any("go on" in row for row in stage.rows()), pilot)
    await pilot.press("enter")


Act = Callable[[TreeStage, Any], Awaitable[None]]
STATES: dict[str, Act] = {
    "opened": _nothing,
    "unfolded": _unfolded,
    "search": _search,
    "label": _label,
    "everything": _everything,
    "preview": _preview,
    "leaving": _leaving,
    "summarising": _summarising,
    "working": _working,
    "wide": _nothing,
    "diff": _diff,
}
PICTURES = pictures(
    *((name, SMALL, DARK) for name in STATES),
    ("search", LARGE, LIGHT),
    ("wide", NARROW, DARK),
    ("unfolded", SMALL, ANSI),
    nightly=(
        *((name, LARGE, DARK) for name in ("opened", "unfolded", "wide", "diff")),
        ("opened", LARGE, LIGHT),
        ("unfolded", SMALL, LIGHT),
        ("opened", NARROW, DARK),
        ("search", SMALL, ANSI),
    ),
)


@pytest.mark.parametrize(("name", "size", "theme"), PICTURES)
def test_picture(
    snap_compare: Any, tmp_path: Path, name: str, size: tuple[int, int], theme: str
) -> None:
    hangs = name in {"summarising", "working"}
    planting = wide if name == "wide" else plant_files if name == "diff" else plant
    stage = tree_stage(tmp_path, HANGING if hangs else (), theme=theme, planting=planting)

    async def act(pilot: Any) -> None:
        stage.pilot = pilot
        await until(lambda: stage.stage.main.agent is not None, pilot)
        await pilot.pause()
        await stage.open()
        await STATES[name](stage, pilot)
        await pilot.pause()

    assert snap_compare(stage.stage.app, terminal_size=size, run_before=act)
