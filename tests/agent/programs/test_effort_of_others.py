"""The level of effort in other programs' settings is listed with the command that sets it here."""

import json
import shlex
from pathlib import Path

import pytest

from tests.support.knowledge import write
from tui_agent.agent.programs.settings import read_programs
from tui_agent.cli.extensions import folders_of
from tui_agent.cli.main import run
from tui_agent.config import load_config
from tui_agent.session.effort import Effort

FILES = {
    "model_reasoning_effort": (".codex/config.toml", 'model_reasoning_effort = "{level}"'),
    "effortLevel": (".claude/settings.json", json.dumps({"effortLevel": "LEVEL"})),
    "defaultThinkingLevel": (
        ".pi/agent/settings.json",
        json.dumps({"defaultThinkingLevel": "LEVEL"}),
    ),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("level", [*Effort, "none", "ultra"])
def test_the_command_sets_the_level_if_there_is_one_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, level: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    file, text = FILES[name]
    write(tmp_path / "home" / file, text.replace("{level}", level).replace("LEVEL", level))
    write(tmp_path / "project/.git/HEAD", "ref: refs/heads/main\n")
    folders = folders_of(tmp_path / "project", load_config().config)
    items = {item.name: item.why for item in read_programs(folders, trusted=False).items}
    if level == "ultra":
        assert items[name] == "set effort in config.toml, or use /effort"
        return
    assert run(shlex.split(items[name])[1:]) == 0
    assert load_config().config.effort is Effort(level)
