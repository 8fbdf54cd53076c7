"""What must not be loaded before it is needed, and which layer may know which."""

import copy
import dataclasses
import json
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import pytest

from tests.support.model_server import ModelServer
from tests.support.terminal import Terminal
from tui_agent.lazy import UNCOMPILED_OBJECTS, LazyPattern, dataclass

ROOT = Path(__file__).parent.parent
HEAVY = frozenset(
    [
        "litellm",
        "openai",
        "yaml",
        "tiktoken",
        "httpx",
        "aiohttp",
        "tree_sitter_bash",
        "mcp",
        "requests",
        "tokenizers",
    ]
)
"""Packages that take long to import and that no first paint needs. Textual itself loads tree_sitter (0.7 ms)."""

MOST_OWN_MODULES = 113
"""Of the program's own, before the first paint: each takes a third of a millisecond of it."""
LOGGED_START = """
import sys
log = open(sys.argv[1], "a", buffering=1)
sys.addaudithook(lambda event, given: event == "import" and log.write(given[0] + "\\n"))
from tui_agent.cli.main import run
sys.exit(run(["-m", "openai/any"]))
"""


@cache
def loaded_modules(statement: str) -> set[str]:
    """Return the modules in a fresh process after a statement."""
    there = "sorted(name for name, module in sys.modules.items() if module)"
    program = f"{statement}\nimport json, sys; print(json.dumps({there}))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


FIRST_PAINT = (
    "import tui_agent.__main__, tui_agent.cli.main, tui_agent.cli.screen, tui_agent.ui.app"
)


BELOW = ("session.store", "context.projection", "agent.agent", "tools.registry", "model.client")
UNLOADED = {
    "the first paint": (FIRST_PAINT, HEAVY),
    "the command line": ("import tui_agent.__main__", {"textual"}),
    "what is below the interface": (
        f"import {', '.join(f'tui_agent.{part}' for part in BELOW)}",
        {"textual", "rich", "litellm", "openai"},
    ),
    "the first session": (
        "import tui_agent.cli.screen, tui_agent.cli.controller_wiring, tui_agent.ui.widgets.session_view",
        {"httpcore", "anyio", "markdown_it"},
    ),
    # Its patterns take as long to make as a third of the interface's modules to load.
    "what has not looked for secrets": (
        "import os, tui_agent.ui.app, tui_agent.cli.agent_making as made; made.SafeEnvironment(os.environ)",
        {"tui_agent.secret_detector"},
    ),
}


@pytest.mark.parametrize(("statement", "unloaded"), UNLOADED.values(), ids=UNLOADED)
def test_what_is_not_needed_is_not_loaded(statement: str, unloaded: set[str]) -> None:
    assert loaded_modules(statement) & unloaded == set()


def test_the_layers_hold() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [linter], cwd=ROOT, capture_output=True, text=True, check=False, timeout=500
    )
    assert done.returncode == 0, done.stdout


def test_the_first_paint_needs_nothing_of_the_agent() -> None:
    loaded = loaded_modules(FIRST_PAINT)
    late = (
        "tui_agent.agent.agent",
        "tui_agent.model.client",
        "tui_agent.config",
        "pydantic",
        "sqlite3",
    )
    assert [name for name in late if name in loaded] == []
    own = [name for name in loaded if name.startswith("tui_agent")]
    assert len(own) <= MOST_OWN_MODULES, own


def test_what_a_first_answer_needs_is_loaded_while_nobody_waits_for_one(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with ModelServer() as server:
        env = {
            "HOME": str(tmp_path),
            "TUI_AGENT_CONFIG_DIR": str(tmp_path / "config"),
            "TUI_AGENT_DATA_DIR": str(tmp_path / "data"),
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": server.openai_url,
            "PYTHONPATH": str(ROOT),
        }
        command = [sys.executable, "-c", LOGGED_START, str(log)]
        with Terminal(command, env=env, cwd=tmp_path) as terminal:
            needed = {"httpx", "httpcore", "anyio._backends._asyncio", "markdown_it"}
            terminal.wait_until(
                lambda: log.exists() and needed <= set(log.read_text().split()), str(needed)
            )
        assert not server.calls


T = TypeVar("T")


@dataclass(frozen=True)
class Point:
    x: int
    y: int = 2
    put: tuple[int, ...] = field(default=(), repr=False)
    marks: list[str] = field(default_factory=list, compare=False, hash=False)


@dataclass(frozen=True, kw_only=True)
class Named(Point):
    name: str
    made: int = field(default=7, init=False)


@dataclass(slots=True)
class Counter:
    count: int = 0
    doubled: int = field(init=False)

    def __post_init__(self) -> None:
        self.doubled = self.count * 2


@dataclass(frozen=True)
class Box(Generic[T]):
    content: T

    def __hash__(self) -> int:
        return 1


@pytest.mark.parametrize(
    ("given", "named"), [((), {}), ((1, 2, (), [], 5), {}), ((1,), {"z": 2}), ((1,), {"x": 2})]
)
def test_wrong_arguments_are_refused(given: tuple[Any, ...], named: dict[str, Any]) -> None:
    for _ in range(2):
        with pytest.raises(TypeError):
            Point(*given, **named)


@pytest.mark.parametrize("before", [0, UNCOMPILED_OBJECTS])
def test_a_frozen_one_stays_as_it_is_and_has_what_it_inherits(before: int) -> None:
    for _ in range(before):
        Point(1)
        Counter(4)
        Named(1, name="n")
    point = Point(1)
    for act in (lambda: setattr(point, "x", 2), lambda: delattr(point, "x")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            act()
    assert {point: "found"}[Point(1, 2, (), ["not compared"])] == "found"
    assert repr(point).endswith("Point(x=1, y=2, marks=[])")
    assert Point.__match_args__ == ("x", "y", "put", "marks")
    assert Point(1, 3) != point != (1, 2, (), [])
    assert (Counter(4).doubled, Counter.__hash__) == (8, None)
    assert hash(Box([])) == 1, "a method of its own stays"
    named = Named(1, name="n")
    assert (named.x, named.y, named.name, named.made) == (1, 2, "n", 7)
    assert dataclasses.replace(point, y=9) == Point(1, 9) != named


def test_fields_are_there_whoever_looks_first() -> None:
    kinds = []
    for _ in range(8):
        kinds.append(dataclass(type("Late", (Named,), {"__annotations__": {"late": int}})))
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(dataclasses.fields, kinds * 8))
    for fields in found:
        assert [field.name for field in fields] == [
            "x",
            "y",
            "put",
            "marks",
            "name",
            "made",
            "late",
        ]
    assert dataclasses.is_dataclass(kinds[0])
    match Point(1, 3):
        case Point(x, y):
            assert (x, y) == (1, 3)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda point: pickle.loads(pickle.dumps(point))]
)
def test_a_copy_is_the_same(copied: Any) -> None:
    assert copied(Point(1, 3)) == Point(1, 3)
    assert copied(Box("b")).content == "b"


def test_an_expression_is_compiled_once_and_late() -> None:
    wrong = LazyPattern("(")
    with pytest.raises(Exception, match="unterminated"):
        wrong.search("x")
    words = LazyPattern(r"\w+")
    assert words.findall("two words") == ["two", "words"]
    assert words.sub("x", "two words", 1) == "x words"
