"""Every page, question and box of the program, and what must hold of each in any size and colours."""

import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input

from tests.support.races import ALLOW, RacingClient, make_project, writes
from tests.support.real_stage import (
    SUMMARY,
    RealStage,
    looks,
    real_stage,
    working_script,
    write_modules,
)
from tests.support.scripted_client import Reply, call
from tests.support.ui_app import Stage, strips, until, write
from tests.support.ui_scenes import SCENES, play, scene_stage
from tui_agent.config import load_config
from tui_agent.context.settings import CompactionSettings, ContextSettings, PruneSettings
from tui_agent.setting_rows import setting_rows
from tui_agent.ui.contrast import contrast
from tui_agent.ui.screens.compact import CompactPhase
from tui_agent.ui.widgets.key_line import KeyLine
from tui_agent.ui.widgets.status import StatusLine

TURNS = 4
"""Turns of a session that can be summarised."""
BY_HAND = ContextSettings(
    compaction=CompactionSettings(auto=False), prune=PruneSettings(when="off")
)
"""A summary that is prepared meanwhile would take replies of the script."""
SIZES = ((40, 12), (80, 24), (120, 35), (200, 50))
LEAST_CONTRAST = 4.5
KEY_NAMES = {"esc": "escape", "/": "slash", "?": "question_mark", "↑": "up", "↓": "down"}
SEVERAL = {
    "↑↓": ("down", "up"),
    "←→": ("left", "right"),
    "↑/↓": ("up", "down"),
    "pgup/pgdn": ("pagedown", "pageup"),
    "shift+←→": ("shift+left", "shift+right"),
    "type": ("a",),
}
NOTHING_TO_DO = {
    ("rewind", "↑↓"),
    ("history", "↑↓"),
    ("sessions search", "↑↓"),
    ("diff", "pgup/pgdn"),
}
"""Keys that move where there is just one row, or all of a text is shown."""
_CUT = re.compile(r"[^\W\d]\w+$")

Act = Callable[[Any, Any], Awaitable[None]]


@dataclass(frozen=True)
class View:
    """A state of the program: the application, and how to get there."""

    act: Act
    make: Callable[[Path], Stage]


# -- the views ------------------------------------------------------------------------------------

TODOS = [
    {"text": "find the place", "status": "done"},
    {"text": "add the test", "status": "in_progress"},
    {"text": "run everything", "status": "pending"},
]
EDIT = {"path": "module_0.py", "edits": [{"old": "return value + 7", "new": "return value + 8"}]}
ANSWER = "It was `step_7`:\n\n```python\nreturn value + 8\n```\n\nSee https://example.com/steps."


def worked(tmp_path: Path) -> RealStage:
    """Return a session with a plan, an edit and a long output."""
    (tmp_path / "stage").mkdir()
    write_modules(tmp_path)
    script = [
        Reply("", (call("todo", items=TODOS), call("read", path="module_0.py"))),
        Reply("I change it.", (call("edit", **EDIT), call("bash", command="seq 1 300"))),
        Reply(ANSWER, cost=0.02),
        Reply("", (call("write", path="new.py", content="count = 1\n" * 60),)),
        Reply("It is written.", cost=0.01),
    ]
    settings = setting_rows(load_config(tmp_path / "config.toml", environ={}))
    return real_stage(
        tmp_path,
        script,
        services={"settings_rows": lambda: settings},
        window=16_000,
        settings=BY_HAND,
        keeps_files=True,
        rules=ALLOW,
        answer=None,
    )


async def work(stage: RealStage, pilot: Any) -> None:
    await stage.say("Mend the steps of module 0, please: the seventh is wrong.", pilot)
    await stage.say("Now write a module that counts.", pilot)


async def _command(stage: RealStage, pilot: Any, name: str, argument: str = "") -> None:
    await work(stage, pilot)
    stage.main.controller.begin(name, argument)
    await until(
        lambda: (
            len(stage.app.screen_stack) > 1
            or stage.view.question.display
            or stage.view.find_bar.display
            or stage.main.notice.message
        ),
        pilot,
    )
    await pilot.pause()


def much_worked(tmp_path: Path) -> RealStage:
    """Return a session with enough turns to be summarised."""
    (tmp_path / "stage").mkdir()
    write_modules(tmp_path, TURNS)
    script = [*working_script(TURNS), Reply(SUMMARY, cost=0.02)]
    return real_stage(tmp_path, script, window=16_000, settings=BY_HAND)


async def _summary(stage: RealStage, pilot: Any, *keys: str) -> None:
    for text in looks(TURNS):
        await stage.say(text, pilot)
    await pilot.press("f4")
    await until(lambda: len(stage.app.screen_stack) > 1, pilot)
    await pilot.press(*keys)
    if keys:
        await until(lambda: stage.screen.phase is CompactPhase.EDIT, pilot)
    await pilot.pause()


async def _summarised(stage: RealStage, pilot: Any) -> None:
    await _summary(stage, pilot, "enter")
    await pilot.press("ctrl+s")
    await until(lambda: stage.screen is stage.main, pilot)
    await pilot.pause()


def _racer(number: int, step: int) -> Reply:
    if step:
        return Reply("It is done.", cost=0.01)
    name = "green.txt" if number == 2 else f"red{number}.txt"
    return Reply("I write it.", (writes(name, f"by {number}\n"),), cost=0.01 * number)


def racing(tmp_path: Path) -> RealStage:
    make_project(tmp_path / "project")
    return real_stage(
        tmp_path,
        RacingClient(_racer)._reply,
        services={"check_command": lambda _project: "test -f green.txt"},
        keeps_files=True,
        copies=tmp_path / "races",
        rules=ALLOW,
    )


async def _race(stage: RealStage, pilot: Any) -> None:
    await pilot.press("f7")
    await pilot.press(*"make it green", "ctrl+s")
    await stage.until_text("3 attempts", pilot)
    await pilot.press("home", "enter")
    await stage.until_text("t take", pilot)
    await pilot.pause()


async def _popup(stage: RealStage, pilot: Any, text: str) -> None:
    await work(stage, pilot)
    await write(pilot, text)
    await until(lambda: stage.main.popup.display, pilot)


async def _in_conversation(stage: RealStage, pilot: Any) -> None:
    await work(stage, pilot)
    await pilot.press("tab", "k", "k")
    await pilot.pause()


async def _keys(stage: RealStage, pilot: Any, command: str, keys: tuple[str, ...]) -> None:
    await _command(stage, pilot, command)
    await pilot.press(*keys)
    await pilot.pause()


COMMANDS = (
    *("help", "tree", "context", "compact", "model", "effort", "settings", "permissions", "mcp"),
    *("tools", "cost", "status", "diff", "export", "rename", "label", "theme", "history", "rewind"),
    *("todo", "sessions", "race", "agent", "style", "find", "undo", "import", "doctor", "goal"),
)
"""Commands that show something of a session with a turn of work."""

VIEWS: dict[str, View] = {
    "worked": View(work, worked),
    "conversation focus": View(_in_conversation, worked),
    **{name: View(partial(_command, name=name), worked) for name in COMMANDS},
    "popup /": View(partial(_popup, text="/"), worked),
    "popup #": View(partial(_popup, text="see #"), worked),
    "mcp add": View(partial(_keys, command="mcp", keys=("a",)), worked),
    "tree search": View(partial(_keys, command="tree", keys=("slash", *"step")), worked),
    "tree keys": View(partial(_keys, command="tree", keys=("question_mark",)), worked),
    "map keys": View(partial(_keys, command="context", keys=("question_mark",)), worked),
    "map timeline": View(partial(_keys, command="context", keys=("tab",)), worked),
    "setting": View(partial(_keys, command="settings", keys=("enter",)), worked),
    "sessions search": View(partial(_keys, command="sessions", keys=("slash", *"step")), worked),
    "race runners": View(partial(_keys, command="race", keys=(*"mend it", "ctrl+s")), worked),
    "before a summary": View(_summary, much_worked),
    "summary": View(lambda stage, pilot: _summary(stage, pilot, "enter"), much_worked),
    "summarised": View(_summarised, much_worked),
    "race over": View(_race, racing),
    **{
        f"scene {name}": View(partial(play, name=name), partial(scene_stage, name=name))
        for name in SCENES
    },
}
"""Each by a name; those of :mod:`tests.support.ui_scenes` too."""


# -- what must hold -------------------------------------------------------------------------------


def problems(screen: Screen[Any], whole: set[str], *, coloured: bool = True) -> Iterator[str]:
    """Yield what is wrong with a screen as it is drawn; ``whole`` are the words of its widest form."""
    yield from _overflow(screen)
    yield from _cut_words(screen, whole)
    if coloured:
        yield from _faint_text(screen)


def words_of(screen: Screen[Any]) -> set[str]:
    return {word for line in _lines(screen) for word in re.findall(r"\w+", line)}


def _drawn(screen: Screen[Any]) -> list[Strip]:
    """Return the lines of a screen; of a box only its own, not what it lies over."""
    found = strips(screen)
    boxes = [node.region for node in screen.query(".dialog")]
    if not boxes:
        return found
    return [strip.crop(boxes[0].x, boxes[0].right) for strip in found[boxes[0].y : boxes[0].bottom]]


def _lines(screen: Screen[Any]) -> list[str]:
    return ["".join(part.text for part in strip) for strip in _drawn(screen)]


def _displayed(screen: Screen[Any]) -> Iterator[Widget]:
    for node in screen.walk_children(Widget):
        if node.display and node.region.area and node.is_attached:
            yield node


def _overflow(screen: Screen[Any]) -> Iterator[str]:
    for node in _displayed(screen):
        name = f"{type(node).__name__}#{node.id or ''}"
        if node.show_horizontal_scrollbar and not isinstance(node, Input):
            yield f"{name} scrolls sideways"
        if node.region.right > screen.app.size.width or node.region.x < 0:
            yield f"{name} reaches over the edge: {node.region}"


def hints_shown(screen: Screen[Any]) -> list[tuple[str, str]]:
    """Return the keys that a screen names at its foot, each with its label."""
    found: list[tuple[str, str]] = []
    text = "\n".join(_lines(screen))
    for node in _displayed(screen):
        if isinstance(node, KeyLine | StatusLine):
            found += [
                (key, label) for key, label, _ in node.hints if f"{key} {label}".strip() in text
            ]
    return found


def names_of(shown: str) -> list[str]:
    """Return the keys that a hint like ``↑↓``, ``pgup/pgdn`` or ``xx`` names, as Textual calls them."""
    if shown in SEVERAL:
        return list(SEVERAL[shown])
    if len(shown) == 2 and shown[0] == shown[1]:
        shown = shown[0]
    return [KEY_NAMES.get(shown, shown)]


async def does_nothing(view: View, tmp_path: Path, size: tuple[int, int], keys: list[str]) -> bool:
    """Whether keys that a view names change nothing that is drawn."""
    stage = view.make(tmp_path)
    async with stage.run(size) as pilot:
        await view.act(stage, pilot)
        await pilot.pause()
        before = strips(stage.app.screen)
        for key in keys:
            await pilot.press(key)
            await pilot.pause()
            if strips(stage.app.screen) != before or stage.toasts:
                return False
        return True


def _cut_words(screen: Screen[Any], whole: set[str]) -> Iterator[str]:
    """Yield words at the right edge of a part that are only the beginning of a word."""
    lines = _lines(screen)
    width = screen.app.size.width
    for at, line in enumerate(lines):
        for end in {width, *(_edges(screen, at))}:
            text = _left_of(line, end)
            match = _CUT.search(text)
            if match is None or match[0] in whole or _goes_on(lines, at, match[0], whole):
                continue
            longer = [word for word in whole if word.startswith(match[0]) and word != match[0]]
            after = _right_of(line, end)
            if longer and not re.match(r"[\w…]", after):
                yield f"line {at + 1} is cut: {text.strip()[-30:]!r}, of {longer[0]!r}"


def _edges(screen: Screen[Any], row: int) -> set[int]:
    return {
        node.content_region.right
        for node in _displayed(screen)
        if node.content_region.y <= row < node.content_region.bottom
    }


def _left_of(line: str, cells: int) -> str:
    text = ""
    for character in line:
        if cell_len(text) >= cells:
            break
        text += character
    return text


def _right_of(line: str, cells: int) -> str:
    return line[len(_left_of(line, cells)) :]


def _goes_on(lines: list[str], at: int, word: str, whole: set[str]) -> bool:
    """Whether the next line begins with the rest of a word that is longer than a line."""
    if at + 1 >= len(lines):
        return False
    rest = re.search(r"\w+", lines[at + 1])
    return rest is not None and any(one.startswith(word + rest[0]) for one in whole)


def _faint_text(screen: Screen[Any]) -> Iterator[str]:
    for strip in _drawn(screen):
        for part in strip:
            if re.search(r"\w.", part.text) and (found := _ratio(part)) < LEAST_CONTRAST:
                yield f"{part.text.strip()[:30]!r} has a contrast of {found:.2f}"


def _ratio(part: Segment) -> float:
    style = part.style
    if style is None or style.color is None or style.bgcolor is None:
        return 21.0
    return contrast(Color.from_rich_color(style.color), Color.from_rich_color(style.bgcolor))
