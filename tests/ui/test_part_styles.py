"""Parts of widgets are styled when they are drawn, just as Textual would have styled them before."""

from pathlib import Path

import pytest
from textual.widget import Widget

from tests.support.eager_styles import eager_styles
from tests.support.every_view import VIEWS
from tests.support.ui_app import Stage, make_stage
from tui_agent.ui.part_styles import PartStyles

ALWAYS = ("worked", "context", "settings", "tree")
"""Views that stand for all of them."""


def check_parts(stage: Stage) -> int:
    """Check the parts that were drawn on the current screen; return how many there are."""
    count = 0
    for widget in stage.app.screen.walk_children(Widget, with_self=True):
        if not isinstance(widget._component_styles, PartStyles):
            continue
        expected = eager_styles(widget)
        for name, styles in widget._component_styles.items():
            count += 1
            assert styles.base.get_rules() == expected[name], (widget, name)
    return count


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in ALWAYS else pytest.mark.nightly) for name in VIEWS],
)
async def test_drawn_parts_have_the_styles_that_textual_finds(tmp_path: Path, name: str) -> None:
    view = VIEWS[name]
    stage = view.make(tmp_path)
    async with stage.run((100, 30)) as pilot:
        await view.act(stage, pilot)
        await pilot.pause()
        assert check_parts(stage)
        for theme in ("textual-light", "textual-dark"):
            stage.app.theme = theme
            await pilot.pause()
            await pilot.press("tab", "down")
            await pilot.pause()
            check_parts(stage)


async def test_a_part_that_was_not_drawn_costs_nothing_and_one_that_is_unknown_is_named(
    tmp_path: Path,
) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        await pilot.pause()
        parts = stage.main.prompt._component_styles
        possible = stage.main.prompt._get_component_classes()
        assert len(parts) < len(possible)
        assert all(name in parts for name in possible)
        with pytest.raises(KeyError, match="no-part"):
            stage.main.prompt.get_component_styles("no-part")
