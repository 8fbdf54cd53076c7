"""Every page, question and box in any size and colours: nothing is cut, faint or sideways, every key named works."""

from pathlib import Path

import pytest

from tests.support.every_view import (
    NOTHING_TO_DO,
    SIZES,
    VIEWS,
    does_nothing,
    hints_shown,
    names_of,
    problems,
    words_of,
)

WIDEST = (400, 80)
"""Where nothing is cut."""
ALWAYS = ("worked", "context", "settings", "scene welcome")
"""Views that stand for all of them."""

EACH = [
    pytest.param(name, colour, marks=() if colour and name in ALWAYS else pytest.mark.nightly)
    for name in VIEWS
    for colour in (True, False)
]


@pytest.mark.parametrize(("name", "colour"), EACH)
async def test_a_view_can_be_read_in_every_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, colour: bool
) -> None:
    if not colour:
        monkeypatch.setenv("NO_COLOR", "1")
    view = VIEWS[name]
    stage = view.make(tmp_path)
    found: list[str] = []
    async with stage.run(WIDEST) as pilot:
        await view.act(stage, pilot)
        await pilot.pause()
        whole = words_of(stage.app.screen)
        for theme in ("textual-dark", "textual-light") if colour else (stage.app.theme,):
            stage.app.theme = theme
            for width, height in SIZES:
                await pilot.resize_terminal(width, height)
                await pilot.pause()
                found += [
                    f"{width}x{height} {theme}: {problem}"
                    for problem in problems(stage.app.screen, whole, coloured=colour)
                ]
    assert found == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", VIEWS)
async def test_every_key_named_at_the_foot_does_something(tmp_path: Path, name: str) -> None:
    view = VIEWS[name]
    (tmp_path / "first").mkdir()
    stage = view.make(tmp_path / "first")
    async with stage.run((120, 35)) as pilot:
        await view.act(stage, pilot)
        await pilot.pause()
        hints = hints_shown(stage.app.screen)
    for place, (key, label) in enumerate(hints):
        folder = tmp_path / str(place)
        folder.mkdir()
        dead = await does_nothing(view, folder, (120, 35), names_of(key))
        assert not dead or (name, key) in NOTHING_TO_DO, f"{key} {label}"
