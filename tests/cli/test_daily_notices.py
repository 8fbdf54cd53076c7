"""What is the matter with a server is told once a day."""

import sys
from pathlib import Path

import pytest

from tui_agent.cli.headless import DAY, DailyNotices
from tui_agent.cli.main import run


def test_a_text_is_news_once_a_day_for_the_same_settings(tmp_path: Path) -> None:
    now = 1_000.0
    path = tmp_path / "told.json"

    def is_news(text: str, about: str = "settings") -> bool:
        return DailyNotices(path, about, clock=lambda: now).is_news(text)

    assert [is_news("gone"), is_news("gone"), is_news("other"), is_news("gone", "changed")] == [True, False, True, True]
    now += DAY
    assert is_news("gone")
    path.write_text("[]")
    assert is_news("gone"), "what can't be read is forgotten"


def test_a_dead_server_is_told_by_the_first_of_many_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("DATA", "CONFIG"):
        monkeypatch.setenv(f"TUI_AGENT_{name}_DIR", str(tmp_path / name.lower()))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", None)
    settings = tmp_path / "config" / "config.toml"
    settings.parent.mkdir()
    settings.write_text('[mcp.tracker]\ncommand = "no-such-program-here"\n')
    told = []
    for _ in range(2):
        run(["-p", "hello"])
        told.append("MCP server tracker is not there" in capsys.readouterr().err)
    assert told == [True, False]
    run(["doctor"])
    assert "tracker" in capsys.readouterr().out
