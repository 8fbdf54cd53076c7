"""Pictures of every screen, so that a change of looks is seen and meant."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.style import Style
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

from tests.support.thoroughness import NIGHTLY, pictures
from tests.support.ui_app import Stage, strips
from tests.support.ui_scenes import SCENES, play, scene_stage
from tui_agent.ui.contrast import (
    COLOURED_ROLES,
    GROUNDS,
    HIGH_CONTRAST,
    HIGH_CONTRAST_LIGHT,
    SIGNS,
    TEXT_ROLES,
    TINTS,
    WHITE_LIGHT,
    contrast,
    readable_variables,
)
from tui_agent.ui.widgets.transcript.paint import Palette

SMALL, NARROW, LARGE = (80, 24), (60, 20), (120, 40)
DARK, LIGHT, ANSI = "textual-dark", "textual-light", "ansi-dark"

PICTURES = pictures(
    *((name, SMALL, DARK) for name in SCENES if name not in {"themes", "elsewhere"}),
    ("welcome", NARROW, DARK),
    ("conversation", LARGE, DARK),
    ("sessions", SMALL, LIGHT),
    ("models", SMALL, ANSI),
    ("elsewhere", SMALL, "high-contrast-light"),
    nightly=(
        *((name, NARROW, DARK) for name in ("ask_edit", "conversation", "models")),
        *((name, LARGE, DARK) for name in ("ask_edit", "found")),
        *(("ask_edit", SMALL, theme) for theme in (ANSI, "high-contrast")),
    ),
)


@pytest.fixture
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Times of day in a picture are the same on every machine."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize(("name", "size", "theme"), PICTURES)
@pytest.mark.usefixtures("in_utc")
def test_picture(
    snap_compare: Any, tmp_path: Path, name: str, size: tuple[int, int], theme: str
) -> None:
    stage = scene_stage(tmp_path, name, theme=theme)
    assert snap_compare(
        stage.app, terminal_size=size, run_before=lambda pilot: play(stage, pilot, name)
    )


def test_a_picture_without_colour_still_tells_everything_apart(
    snap_compare: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    stage = scene_stage(tmp_path, "ask_edit")
    assert snap_compare(stage.app, run_before=lambda pilot: play(stage, pilot, "ask_edit"))


DECORATION = {"rule", "quote-bar", "focus", "standing-sent", "match", "match-current"}
ROWS = ("added", "removed", "added added-part", "removed removed-part")
SYNTAX = ("comment", "keyword", "string", "constant", "definition", "name")


def ratio(style: Style) -> float:
    return contrast(Color.from_rich_color(style.color), Color.from_rich_color(style.bgcolor))


THEMES = {
    theme.name: theme
    for theme in (*BUILTIN_THEMES.values(), WHITE_LIGHT, HIGH_CONTRAST, HIGH_CONTRAST_LIGHT)
}


def variables_of(theme: Theme) -> dict[str, str]:
    return readable_variables({**theme.to_color_system().generate(), **theme.variables})


@pytest.mark.parametrize("name", [name for name, theme in THEMES.items() if not theme.ansi])
def test_every_role_can_be_read_on_every_ground_in_every_theme(name: str) -> None:
    variables = variables_of(THEMES[name])
    known = ("foreground", "background", *TEXT_ROLES, *GROUNDS, *TINTS, *SIGNS)
    colours = {role: Color.parse(variables[role]) for role in known}
    texts = {
        (role, ground): contrast(colours[role], colours[ground])
        for role in TEXT_ROLES
        for ground in GROUNDS
    }
    plain = {
        ("foreground", ground): contrast(colours["foreground"], colours[ground]) for ground in TINTS
    }
    assert {place: found for place, found in {**texts, **plain}.items() if found < 4.5} == {}
    assert {sign for sign in SIGNS if contrast(colours[sign], colours["background"]) < 3} == set()
    assert len({colours[role].hex for role in COLOURED_ROLES}) == len(COLOURED_ROLES)


@pytest.mark.parametrize("name", [name for name, theme in THEMES.items() if theme.ansi])
def test_a_terminal_that_keeps_its_own_colours_has_every_role(name: str) -> None:
    variables = variables_of(THEMES[name])
    assert set(variables) >= {*TEXT_ROLES, *TINTS, *SIGNS}


READ = ("conversation", "ask_edit", "failed", "sessions", "found", "models", "palette")
"""Scenes that are read in every theme; by day each theme in one of them."""


@pytest.mark.parametrize("scene", READ)
async def test_all_text_on_screen_can_be_read_in_every_theme(tmp_path: Path, scene: str) -> None:
    stage = scene_stage(tmp_path, scene)
    themes = [name for name, theme in THEMES.items() if not theme.ansi]
    async with stage.run() as pilot:
        await play(stage, pilot, scene)
        found = {}
        for name in themes if NIGHTLY else themes[READ.index(scene) :: len(READ)]:
            stage.app.theme = name
            await pilot.pause()
            # One letter alone is the placeholder's under the cursor.
            drawn = [
                part
                for strip in strips(stage.app.screen)
                for part in strip
                if re.search(r"\w.", part.text)
            ]
            coloured = [
                part for part in drawn if part.style and part.style.color and part.style.bgcolor
            ]
            found |= {
                (name, part.text): ratio(part.style) for part in coloured if ratio(part.style) < 4.5
            }
        assert found == {}


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light"])
async def test_all_text_of_the_conversation_can_be_read(stage: Stage, theme: str) -> None:
    async with stage.run() as pilot:
        stage.app.theme = theme
        await pilot.pause()
        palette = Palette(stage.view.transcript)
        keys = {
            name.removeprefix("transcript--") for name in stage.view.transcript.COMPONENT_CLASSES
        } - DECORATION
        keys |= {f"{base} syntax-{name}" for base in ("output", "code") for name in SYNTAX}
        keys |= {f"output syntax-{name} {row}" for name in SYNTAX for row in ROWS} | {
            f"output {row}" for row in ROWS
        }
        keys |= {
            "line-number added",
            "line-number removed",
            "added added-sign",
            "removed removed-sign",
        }
        keys.discard("focused")  # a tint: no text is written in it
        ratios = {key: ratio(palette[key]) for key in sorted(keys)}
        assert {key: found for key, found in ratios.items() if found < 4.5} == {}


@pytest.mark.daily(1)
@pytest.mark.parametrize("theme", ["high-contrast", "high-contrast-light"])
@pytest.mark.parametrize(
    "scene", ["conversation", "ask_edit", "streaming", "failed", "sessions", "found", "models"]
)
async def test_all_text_on_screen_has_the_most_contrast_when_a_theme_made_for_it_is_chosen(
    tmp_path: Path, theme: str, scene: str
) -> None:
    stage = scene_stage(tmp_path, scene)
    async with stage.run() as pilot:
        await play(stage, pilot, scene)
        stage.app.theme = theme
        await pilot.pause()
        # One letter alone is the placeholder's under the cursor.
        drawn = [
            part
            for strip in strips(stage.app.screen)
            for part in strip
            if re.search(r"\w.", part.text)
        ]
        coloured = [
            part for part in drawn if part.style and part.style.color and part.style.bgcolor
        ]
        assert {part.text: ratio(part.style) for part in coloured if ratio(part.style) < 7} == {}
