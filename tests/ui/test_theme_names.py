"""The names of themes that are known without the screen."""

from pathlib import Path

from tests.support.ui_app import make_stage
from tui_agent.config import THEMES, load_config


def test_they_are_those_of_the_screen(tmp_path: Path) -> None:
    assert set(make_stage(tmp_path).app.available_themes) == set(THEMES)


def test_a_theme_there_is_not_is_told_once_and_harms_nothing(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    (warning,) = load_config(path, {"TUI_AGENT_UI__THEME": "foo"}).warnings
    assert "no theme “foo” (ui.theme, set in the environment)" in warning
    assert load_config(path, {"TUI_AGENT_UI__THEME": "nord"}).warnings == ()
