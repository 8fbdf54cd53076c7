"""Pictures of every screen, so that a change of looks is seen and meant."""

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.support.thoroughness import pictures
from tests.support.ui_scenes import SCENES, play, scene_stage

SMALL, NARROW, LARGE = (80, 24), (60, 20), (120, 40)
DARK, LIGHT, ANSI = "textual-dark", "textual-light", "ansi-dark"

PICTURES = pictures(
    *((name, SMALL, DARK) for name in SCENES if name not in {"themes", "elsewhere"}),
    *((name, NARROW, DARK) for name in ("ask_edit", "welcome")),
    ("conversation", LARGE, DARK),
    ("sessions", SMALL, LIGHT),
    ("models", SMALL, ANSI),
    ("ask_edit", SMALL, "high-contrast"),
    ("elsewhere", SMALL, "high-contrast-light"),
    nightly=(
        *((name, NARROW, DARK) for name in ("conversation", "models")),
        *((name, LARGE, DARK) for name in ("ask_edit", "found")),
        ("ask_edit", SMALL, ANSI),
    ),
)


@pytest.mark.parametrize(("name", "size", "theme"), PICTURES)
def test_picture(snap_compare: Any, tmp_path: Path, name: str, size: tuple[int, int], theme: str) -> None:
    stage = scene_stage(tmp_path, name, theme=theme)

    async def act(pilot: Pilot[Any]) -> None:
        await play(stage, pilot, name)

    assert snap_compare(stage.app, terminal_size=size, run_before=act)


def test_a_picture_without_colour_still_tells_everything_apart(
    snap_compare: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    stage = scene_stage(tmp_path, "ask_edit")

    async def act(pilot: Pilot[Any]) -> None:
        await play(stage, pilot, "ask_edit")

    assert snap_compare(stage.app, run_before=act)
