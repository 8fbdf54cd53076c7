"""With a real llama.cpp server and real weights: what does not depend on what the model says."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.neighbours.llama_server import KEY, LlamaServer, gateway, record
from tests.support.place import Place

pytestmark = [pytest.mark.neighbours, pytest.mark.xdist_group("llama")]

MODEL = "openai/smol"
PATIENCE = 400
"""Seconds a message may take: a machine without a graphics card reads a hundred tokens a second."""
SLACK = 2
"""Tokens that a template may write differently when an answer is sent back."""
LONG = "Write a long story about a cat."
WIRES = {"chat": "/v1", "responses": "/v1", "messages": ""}


@pytest.fixture(scope="module")
def server() -> Iterator[LlamaServer]:
    server = LlamaServer()
    server.start(4096)
    yield server
    server.kill()


@pytest.fixture
def own_server() -> Iterator[LlamaServer]:
    """A server that a test may kill."""
    server = LlamaServer()
    yield server
    server.kill()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    place.variables["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    yield place
    place.close()


def configure(place: Place, url: str, **fields: Any) -> None:
    """Set the model up at an address."""
    given = {
        "base_url": url,
        "api_key": KEY,
        "max_output": 24,
        "options": {"temperature": 0},
        "tiny": False,
        **fields,
    }
    lines = [f'model = "{MODEL}"', f'[models."{MODEL}"]']
    lines += [f"{name} = {toml(value)}" for name, value in given.items() if value is not None]
    (place.root / "config/config.toml").write_text(
        "\n".join(lines) + "\n[retry]\nattempts = 2\nfirst_delay = 0.1\n"
    )


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{name} = {toml(inner)}' for name, inner in value.items())} }}"
    return json.dumps(value)


def say(place: Place, *arguments: str) -> list[dict[str, Any]]:
    """Send a message and return what was reported."""
    with place.report(*arguments) as program:
        assert program.stdout is not None
        events = [json.loads(line) for line in program.stdout]
        program.wait(PATIENCE)
    return events


def entries(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [
        event["entry"]
        for event in events
        if event["type"] == "entry_appended" and event["entry"]["kind"] == kind
    ]


def ended(events: list[dict[str, Any]]) -> dict[str, Any]:
    return next(event for event in reversed(events) if event["type"] == "run_ended")


def usage(events: list[dict[str, Any]]) -> tuple[int, int, int]:
    """Return the tokens of the last answer: cached, read anew, written."""
    used = entries(events, "assistant")[-1]["usage"]
    return used["cache_read"], used["input"], used["output"]


def listed(place: Place) -> tuple[int, str]:
    """Return the window that the program knows, and where from."""
    (line,) = place.run("models", "smol", "--json").stdout.splitlines()
    row = json.loads(line)
    return row["context_window"], row["window_origin"]


def test_the_window_is_found_per_slot_and_after_a_restart_with_another_size(
    own_server: LlamaServer, place: Place
) -> None:
    configure(place, f"{own_server.url}/v1")
    for size, slots in ((4096, 1), (4096, 2), (8192, 1)):
        own_server.start(size, slots)
        assert listed(place) == (size // slots, "server")
        own_server.kill()
    assert "8,192 tokens (from its server)" in place.run("doctor").stdout


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("behind", ["server", "gateway"])
def test_each_turn_finds_the_one_before_in_the_cache(
    server: LlamaServer, place: Place, wire: str, behind: str, proxy: str
) -> None:
    configure(place, (server.url if behind == "server" else proxy) + WIRES[wire], wire=wire)
    turns = [
        usage(say(place, *(["-c"] if number else []), "-p", f"Count to {number}."))
        for number in range(4)
    ]
    record(f"{wire}, {behind}", *turns)
    for (cached, new, written), (found, _new, _written) in pairwise(turns):
        assert found >= cached + new + written - SLACK


@pytest.fixture(scope="module")
def proxy(server: LlamaServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with gateway(server, tmp_path_factory.mktemp("proxy")) as url:
        yield url


def test_a_new_project_finds_the_system_text_in_the_cache(
    server: LlamaServer, place: Place
) -> None:
    configure(place, f"{server.url}/v1")
    say(place, "-p", "Say hello.")
    place.move_to_new_project()
    cached, new, written = usage(say(place, "-p", "Say hello."))
    record("first message in a new project", (cached, new, written))
    assert cached > 250
    assert new <= 400


def test_the_slot_is_free_soon_after_an_interrupt(server: LlamaServer, place: Place) -> None:
    configure(place, f"{server.url}/v1", max_output=2_000)
    with place.report("-p", LONG) as program:
        assert program.stdout is not None
        for line in program.stdout:
            if json.loads(line)["type"] == "answer_delta":
                break
        program.send_signal(signal.SIGINT)
        assert server.is_free_within(5)
        program.stdout.read()


def test_a_window_learnt_from_an_overflow_is_shown(own_server: LlamaServer, place: Place) -> None:
    own_server.start(2048)
    configure(place, f"{own_server.url}/v1", context_window=8_192)
    events = say(place, "-p", "word " * 2_500)
    assert "2048" in (ended(events)["error"] or "") or "2,048" in (ended(events)["error"] or "")
    assert listed(place) == (2_048, "learnt")
    assert "2,048 tokens (learnt from a refused request)" in place.run("doctor").stdout


def test_what_was_written_is_kept_when_the_server_is_killed(
    own_server: LlamaServer, place: Place
) -> None:
    own_server.start(4096)
    configure(place, f"{own_server.url}/v1", max_output=2_000)
    with place.report("-p", LONG) as program:
        assert program.stdout is not None
        events: list[dict[str, Any]] = []
        for line in program.stdout:
            events.append(json.loads(line))
            if sum(event["type"] == "answer_delta" for event in events) == 12:
                own_server.kill()
        assert program.wait(PATIENCE) != 0
    exported = place.run("sessions", "export", events[0]["id"], "--format", "json").stdout
    rows = [row.get("entry", row) for row in map(json.loads, exported.splitlines())]
    answers = [row for row in rows if row.get("kind") == "assistant"]
    kept = ["".join(part.get("text", "") for part in answer["parts"]) for answer in answers]
    assert any(len(text) > 20 for text in kept), exported[-2_000:]


def test_an_answer_ends_at_the_end_of_the_window(own_server: LlamaServer, place: Place) -> None:
    own_server.start(640)
    configure(
        place,
        f"{own_server.url}/v1",
        context_window=8_192,
        max_output=None,
        options={"ignore_eos": True, "temperature": 1.5},
    )
    events = say(place, "-p", LONG)
    assert ended(events)["reason"] == "length"
    cached, new, written = usage(events)
    assert 760 <= cached + new + written <= 768  # llama.cpp rounds sizes up to a multiple of 256


def test_an_answer_that_repeats_itself_is_cut(server: LlamaServer, place: Place) -> None:
    configure(place, f"{server.url}/v1", max_output=3_000)
    events = say(place, "-p", LONG)
    text = "".join(event["text"] for event in events if event["type"] == "answer_delta")
    assert len(text) < 6_000


def test_three_runners_take_turns_on_one_slot(server: LlamaServer, place: Place) -> None:
    configure(place, f"{server.url}/v1")
    (place.project / "a.txt").write_text("a")
    events = say(
        place, "--race", "3", "--check", "true", "--pick", "first-green", "-p", "Say hello."
    )
    assert [event["type"] for event in events if event["type"] in {"race_ended", "run_ended"}]
    assert not server.busy


MISTAKES = {
    "calc.py": (
        "def add(a, b):\n    return a - b\n",
        "from calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n",
        "The test in test_calc.py fails. Read calc.py and mend the function add.",
    ),
    "sums.py": (
        "def sum_to(n):\n    total = 0\n    for i in range(1, n):\n        total += i\n    return total\n",
        "from sums import sum_to\n\n\ndef test_sum_to():\n    assert sum_to(3) == 6\n",
        "The test in test_sums.py fails: sum_to(3) should be 6. Read sums.py and mend it.",
    ),
    "geometry.py": (
        "from maths import sqrt\n\n\ndef length(x, y):\n    return sqrt(x * x + y * y)\n",
        "from geometry import length\n\n\ndef test_length():\n    assert length(3, 4) == 5\n",
        "test_geometry.py fails: No module named 'maths'. Read geometry.py and mend the import.",
    ),
}
"""Files with a mistake, their tests and the task."""
RUNS = 5
GOOD_RUNS = 3


@pytest.mark.skipif(
    "TUI_AGENT_WEIGHTS" not in os.environ,
    reason="TUI_AGENT_WEIGHTS names no weights: a Qwen2.5-Coder-0.5B, as GGUF",
)
@pytest.mark.parametrize("name", MISTAKES)
def test_a_tiny_model_reads_a_file_and_mends_a_failing_test(
    server: LlamaServer, place: Place, name: str
) -> None:
    wrong, test, task = MISTAKES[name]
    configure(place, f"{server.url}/v1", max_output=1_024, options=None, tiny=True)
    good = 0
    for _ in range(RUNS):
        place.move_to_new_project()
        (place.project / name).write_text(wrong)
        (place.project / f"test_{name}").write_text(test)
        events = say(place, "-p", task, "--mode", "auto-edit", "--trust")
        results = entries(events, "tool_result")
        has_read = any(result["title"] == name for result in results)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"test_{name}"]
        green = subprocess.run(command, cwd=place.project, check=False, capture_output=True)
        good += has_read and green.returncode == 0
    record(f"mends {name}", f"{good} of {RUNS}")
    assert good >= GOOD_RUNS
