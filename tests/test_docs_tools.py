"""docs/tools.md: every file in it is one, and does what the page says."""

import json
import os
import re
import tomllib
from pathlib import Path

import pytest

from tui_agent.agent.permissions import rules_from_table
from tui_agent.config import load_config
from tui_agent.sandbox import Sandbox
from tui_agent.sandbox.settings import SandboxSettings
from tui_agent.tools.functions import tool_files
from tui_agent.tools.functions.file_tool import FileTool
from tui_agent.tools.functions.tool_files import FoundFile, ToolFiles, ToolPlace

TEXT = (Path(__file__).parent.parent / "docs" / "tools.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
FILES = {text.split()[1]: text for language, text in BLOCKS if language == "python"}


@pytest.fixture
def place(tmp_path: Path) -> ToolPlace:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "a.txt").write_text("to be or not to be")
    return ToolPlace(tmp_path, tmp_path, {"PATH": os.environ["PATH"]}, Sandbox(SandboxSettings(), project=tmp_path))


async def loaded(place: ToolPlace) -> dict[str, FileTool]:
    found = [FoundFile(place.project / name, name, place.project) for name in FILES]
    files = ToolFiles(lambda: (found, []))
    await files.load(place)
    assert files.problems == ()
    return {tool.name: tool for tool in files.tools}


async def test_the_files_of_the_page_are_tools_that_work(place: ToolPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_files, "DESCRIBE_SECONDS", 100.0)
    monkeypatch.setenv("TRACKER_TOKEN", "t")
    tools = await loaded(place)
    live: list[str] = []

    async def call(name: str, **arguments: object) -> str:
        context = place.context()
        context.report = live.append
        return (await tools[name].run(tools[name].Input(values=arguments), context)).output

    assert json.loads(await call("count_words", path="a.txt", shortest=3)) == {"words": 1, "different": 1}
    assert "reading a.txt" in "".join(live)
    about = tools["count_words"].schema().parameters["properties"]
    assert about["shortest"]["description"] == "letters that a word has at least"

    planned = json.loads(await call("plan_week", start="2026-03-02", topics=["tests", "docs"], tone="merry"))
    assert planned[1] == {"day": "2026-03-03", "text": "docs!"}
    assert tools["plan_week"].read_only
    assert tools["plan_week"].schema().parameters["properties"]["topics"]["description"] == "most urgent first"

    needs = {(need.permission.value, need.pattern) for need in tools["fetch_issue"].needs(
        tools["fetch_issue"].Input(values={"number": 1}), place.context()
    )}  # fmt: skip
    assert {("tool", "fetch_issue"), ("read", "$TRACKER_TOKEN")} <= needs
    assert tools["fetch_issue"].declared.words() == (
        "reaches tracker.example.com; reads ~/.config/tracker; changes files of the project; gets TRACKER_TOKEN"
    )
    assert tools["fetch_issue"].declared.TIMEOUT == 30
    if place.sandbox is not None:
        await place.sandbox.aclose()


def test_the_settings_of_the_page_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUI_AGENT_CONFIG_DIR", str(tmp_path))
    (block,) = [text for language, text in BLOCKS if language == "toml"]
    (tmp_path / "config.toml").write_text(block)
    loaded = load_config()
    assert loaded.warnings == ()
    rules = rules_from_table(loaded.config.permissions, "user")
    assert {str(rule) for rule in rules} == {"allow tool: count_words", "ask tool: fetch_*"}
    assert tomllib.loads(block)


def test_numbers_of_the_page_are_the_programs() -> None:
    assert f"after {tool_files.DESCRIBE_SECONDS:g} s" in TEXT.replace("\n  ", " ")
    assert f"At most {tool_files.MAX_TOOLS} functions" in TEXT
    assert {language for language, _text in BLOCKS} == {"python", "toml"}
