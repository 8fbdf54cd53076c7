"""The documents: links lead somewhere, what they name exists, and what the pages say is so."""

import json
import os
import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.thoroughness import NIGHTLY
from tests.support.tooling import Workspace
from tui_agent.cli.arguments import SUBCOMMANDS, parse
from tui_agent.cli.output import ExitCode
from tui_agent.config import load_config
from tui_agent.model.catalog import Catalog
from tui_agent.model.errors import Failure, Target, classify
from tui_agent.model.keys import Keys
from tui_agent.model.protocol import ModelError
from tui_agent.model.providers import provider_of
from tui_agent.model.route import Router
from tui_agent.sandbox import Sandbox
from tui_agent.sandbox.settings import SandboxSettings
from tui_agent.setting_rows import setting_rows
from tui_agent.tools.functions import tool_files
from tui_agent.tools.functions.file_tool import FileTool
from tui_agent.tools.functions.tool_files import FoundFile, ToolFiles, ToolPlace

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
AUTOMATION, MODELS, TOOLS = (
    (ROOT / f"docs/{name}.md").read_text(encoding="utf-8")
    for name in ("automation", "models", "tools")
)


def prose(path: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(
        r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )


def anchors(path: Path) -> set[str]:
    """What its headings are called in links."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in HEADING.findall(prose(path))
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(prose(page)):
        if "://" in link or link.startswith("mailto:"):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{link} is not there"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{link}: no such heading"


def test_every_page_is_in_the_reading_order() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {
        (index.parent / link.partition("#")[0]).resolve() for link in LINK.findall(prose(index))
    }
    pages = {
        path
        for path in (ROOT / "docs").rglob("*.md")
        if "examples" not in path.parts and path != index
    }
    assert not {str(path.relative_to(ROOT)) for path in pages - linked}


def test_each_page_ends_with_the_next_one_of_the_reading_order() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    order = re.findall(r"^\d+\. \[[^\]]*\]\(([a-z]+\.md)\)", index, re.MULTILINE)
    for name, following in pairwise(order):
        last = (ROOT / "docs" / name).read_text(encoding="utf-8").splitlines()[-1]
        assert re.fullmatch(rf"Next: \[.+\]\({following}\)", last), f"{name} ends with {last!r}"


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_the_code_that_pages_name_exists(page: str) -> None:
    named = re.findall(r"`((?:\w+/)*\w+\.py|(?:\w+/)+)(?: [\w.]+)?`", prose(ROOT / page))
    assert len(named) > 0
    code = {
        str(path.relative_to(ROOT))
        for path in (*ROOT.glob("t*/**/*.py"), *ROOT.glob("scripts/**/*.py"))
    }
    assert [
        name
        for name in named
        if "NAME" not in name and not any(f"/{name}" in f"/{path}" for path in code)
    ] == []


def test_the_settings_that_pages_name_exist(tmp_path: Path) -> None:
    keys = {row.key for row in setting_rows(load_config(tmp_path / "config.toml", environ={}))}
    tables = {key.partition(".")[0] for key in keys}
    named = {
        key
        for page in PAGES
        for key in re.findall(r"`([a-z_]+\.[a-z_.]+)(?: = [^`]*)?`", prose(page))
    }
    assert {key for key in named if key.partition(".")[0] in tables} <= keys


def test_the_reference_is_the_programs() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/reference.py", "--check"], cwd=ROOT, check=False, timeout=100
    )
    assert done.returncode == 0, "run: python scripts/reference.py"
    assert "| `--here` |" in (ROOT / "docs/reference/options.md").read_text(encoding="utf-8")


SETTINGS = [
    text for page in (MODELS, TOOLS) for language, text in BLOCK.findall(page) if language == "toml"
]
NAMED = (
    'effort = "high"',
    '[cache]\nttl = "1h"',
    '[models."anthropic/claude-opus-5"]\ncache_marks = false',
    '[models."openai/gpt-5.6"]\noptions = { reasoning = { summary = "detailed" } }',
    '[models."openai/mine"]\nreasoning_back = "reasoning_content"',
    '[models."openai/mine"]\nreasoning_back = "as_received"',
    "[retry]\nmax_retry_after = 600",
)
"""Settings that stand in the text of docs/models.md."""


@pytest.mark.parametrize("text", [*SETTINGS, *NAMED])
def test_settings_are_taken_without_a_warning(text: str, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    path.chmod(0o600)
    loaded = load_config(path, {})
    assert loaded.warnings == ()
    assert loaded.origins


FLEET = ROOT / "docs/examples/fleet"
EXAMPLES = [
    ("sh", path.read_text(encoding="utf-8").replace("\\\n", ""))
    for path in sorted(FLEET.glob("*.sh"))
]
BLOCKS = [*BLOCK.findall(AUTOMATION), *EXAMPLES]
YAML = [list(yaml.safe_load_all(text)) for kind, text in BLOCKS if kind == "yaml"]
JOB = list(yaml.safe_load_all((FLEET / "kubernetes.yaml").read_text(encoding="utf-8")))


def strings(value: Any) -> list[str]:
    """Return every text in a document."""
    if isinstance(value, dict):
        return [text for part in value.values() for text in strings(part)]
    if isinstance(value, list):
        return [text for part in value for text in strings(part)]
    return [value] if isinstance(value, str) else []


def commands(text: str) -> list[list[str]]:
    """Return the arguments of each call of the program in shell text."""
    found = []
    for match in re.finditer(r"(?:^|[;&\s`])tui-agent ((?:-|[a-z]+\s?)[^;`\n|>]*)", text):
        line = match[1].split(" #")[0].split(" <")[0].strip()
        if line.startswith("-") or line.split(" ")[0] in SUBCOMMANDS:
            found.append(shlex.split(line))
    return found


SHELL = [
    *(text for kind, text in BLOCKS if kind == "sh"),
    *(text.replace("\n", " ") for documents in [*YAML, JOB] for text in strings(documents)),
    *(f"{line}\n" for line in re.findall(r"`(tui-agent [^`]+)`", AUTOMATION.replace("\n", " "))),
]
CALLS = [words for text in SHELL for words in commands(text)]


@pytest.mark.parametrize("words", CALLS, ids=" ".join)
def test_every_call_is_one_that_the_program_takes(words: list[str], tmp_path: Path) -> None:
    here = [
        str(tmp_path) if word in {"/work/app", "/sessions", "session-…/", "$place/app"} else word
        for word in words
    ]
    assert parse(here).command in {"run", *SUBCOMMANDS}


def test_the_fleet_is_an_indexed_job() -> None:
    tasks, job = JOB
    spec = job["spec"]
    assert (job["kind"], spec["completionMode"]) == ("Job", "Indexed")
    assert spec["completions"] == len(tasks["data"]["tasks.txt"].strip().splitlines())
    (rule,) = spec["podFailurePolicy"]["rules"]
    own = {ExitCode.USAGE, ExitCode.STOPPED, ExitCode.BUDGET, ExitCode.TIMEOUT}
    assert set(rule["onExitCodes"]["values"]) == own
    pod = spec["template"]["spec"]
    volumes = {volume["name"] for volume in pod["volumes"]}
    for container in [*pod["initContainers"], *pod["containers"]]:
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes


TARGET = Target("openai/m", "OpenAI", "api.example", Keys({}).advice(provider_of("openai")))


FAILURES = (
    Failure(cause="refused"), Failure(cause="certificate"), Failure("no", 401), Failure("no", 404), Failure("no", 429),
    Failure("prompt is too long", 400), Failure('{"error": {"code": "tool_use_failed", "message": "no"}}', 400),
)  # fmt: skip


def test_every_complaint_that_is_explained_is_made_in_these_words() -> None:
    said = [classify(failure, TARGET, now=0.0).message for failure in FAILURES]
    with pytest.raises(ModelError) as unset:
        Router(Catalog(), {}).route("openai/gpt-4o")
    said += [
        unset.value.message,
        Catalog().judge("openai/nothing-like-it").sentence,
        "answers stop in the middle",
    ]
    rows = [
        row
        for row in MODELS.rpartition("| message | what to do |")[2].splitlines()[2:]
        if row.startswith("|")
    ]
    assert len(rows) > 5

    for row in rows:
        explained = row.split("|")[1].strip()
        pieces = [
            piece.strip() for piece in re.split(r"…|\bX\b|NAME|MODEL", explained) if piece.strip()
        ]
        assert any(all(piece in sentence for piece in pieces) for sentence in said), explained


FILES = {text.split()[1]: text for language, text in BLOCK.findall(TOOLS) if language == "python"}


@pytest.fixture
def place(tmp_path: Path) -> ToolPlace:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "a.txt").write_text("to be or not to be")
    return ToolPlace(
        tmp_path,
        tmp_path,
        {"PATH": os.environ["PATH"]},
        Sandbox(SandboxSettings(), project=tmp_path),
    )


async def loaded(place: ToolPlace) -> dict[str, FileTool]:
    found = [FoundFile(place.project / name, name, place.project) for name in FILES]
    files = ToolFiles(lambda: (found, []))
    await files.load(place)
    assert files.problems == ()
    return {tool.name: tool for tool in files.tools}


async def test_the_files_of_the_page_are_tools_that_work(
    place: ToolPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_files, "DESCRIBE_SECONDS", 100.0)
    monkeypatch.setenv("TRACKER_TOKEN", "t")
    tools = await loaded(place)
    space = Workspace(place.project, environ=dict(place.environment), sandbox=place.sandbox)

    async def call(name: str, **arguments: object) -> str:
        return (await space.call(tools[name], **arguments)).output

    assert json.loads(await call("count_words", path="a.txt", shortest=3)) == {
        "words": 1,
        "different": 1,
    }
    assert "reading a.txt" in "".join(space.live)
    about = tools["count_words"].schema().parameters["properties"]
    assert about["shortest"]["description"] == "minimum number of letters in a counted word"

    planned = json.loads(
        await call("plan_week", start="2026-03-02", topics=["tests", "docs"], tone="merry")
    )
    assert planned[1] == {"day": "2026-03-03", "text": "docs!"}
    assert tools["plan_week"].read_only
    assert (
        tools["plan_week"].schema().parameters["properties"]["topics"]["description"]
        == "most urgent first"
    )

    needs = {(need.permission.value, need.pattern) for need in tools["fetch_issue"].needs(
        tools["fetch_issue"].Input(values={"number": 1}), space.context()
    )}  # fmt: skip
    assert {("tool", "fetch_issue"), ("read", "$TRACKER_TOKEN")} <= needs
    assert tools["fetch_issue"].declared.words() == (
        "reaches tracker.example.com; reads ~/.config/tracker; changes files of the project; gets TRACKER_TOKEN"
    )
    assert tools["fetch_issue"].declared.TIMEOUT == 30
    if place.sandbox is not None:
        await place.sandbox.aclose()


def test_numbers_of_the_page_are_the_programs() -> None:
    assert f"after {tool_files.DESCRIBE_SECONDS:g} s" in TOOLS.replace("\n  ", " ")
    assert f"At most {tool_files.MAX_TOOLS} functions" in TOOLS
    assert {language for language, _text in BLOCK.findall(TOOLS)} == {"python", "toml"}


SOME = () if NIGHTLY else ("tree", "permission")
"""Pictures that are drawn, all if there are none."""


def draw(directory: Path, *names: str) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "screenshots.py", directory, *names],
        capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {path.name: path.read_text(encoding="utf-8") for path in directory.iterdir()}


def test_two_runs_draw_the_same_pictures(tmp_path: Path) -> None:
    first = draw(tmp_path / "first", *SOME)
    again = draw(tmp_path / "second", *SOME[1:])
    assert again == {name: first[name] for name in again}
    assert len(again) >= len(first) - 1
    assert "yes,&#160;once" in first["permission.svg"]
    assert not [name for name, svg in first.items() if str(tmp_path) in svg]


@pytest.mark.nightly
def test_the_recording_of_the_tour_can_be_made_again(tmp_path: Path) -> None:
    made = tmp_path / "tour.svg"
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "recording.py", made], check=False, timeout=110
    )
    assert done.returncode == 0
    svg = made.read_text(encoding="utf-8")
    assert svg.count('class="frame"') == 10
    assert "Session&#160;tree" in svg
    assert "Undone:&#160;compaction" in svg
    assert "@font-face" not in svg


def test_the_documents_show_every_picture_there_is() -> None:
    shown = {
        (document.parent / target).resolve()
        for document in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
        for target in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", document.read_text(encoding="utf-8"))
    }
    assert shown == set((ROOT / "docs" / "images").iterdir())
