"""A run of one message loads what it uses and nothing else: that is most of what it costs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.model_server import ModelServer

ROOT = Path(__file__).parent.parent.parent
PROGRAM = """
import json, sys
from tui_agent.cli.main import run
code = run(sys.argv[1:])
sys.stderr.write(json.dumps(sorted(name for name, module in sys.modules.items() if module is not None)))
sys.exit(code)
"""
QUIET = "import sys; from tui_agent.cli.main import run; sys.exit(run(sys.argv[1:]))"
UNUSED = {
    "a screen": ("textual", "rich", "pygments", "tree_sitter"),
    "other ways to speak to models": ("litellm", "openai", "aiohttp", "mcp", "h2"),
    "httpx's command line": ("click",),
    "exact counts of tokens": ("tiktoken",),
    "making room": (
        "tui_agent.agent.compaction_drafts",
        "tui_agent.agent.compactor",
        "tui_agent.context.compaction",
        "tui_agent.context.summariser",
    ),
    "moving about": ("tui_agent.agent.navigator", "tui_agent.context.branch_summary"),
    "looking at the context": ("tui_agent.agent.context_inspector", "tui_agent.agent.context_map"),
    "the demo": ("tui_agent.model.demo_script",),
    "edits and commands": ("tui_agent.editing.matching", "tree_sitter_bash"),
}


def one_shot(
    home: Path, *arguments: str, program: str = PROGRAM
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, "-p", "cinnamon", *arguments],
        cwd=home,
        env={
            "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(home),
            "TUI_AGENT_CONFIG_DIR": str(home), "TUI_AGENT_DATA_DIR": str(home / "data"),
        },
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip


def configured(home: Path, server: ModelServer, model: str) -> None:
    table = f'[models."{model}"]\nbase_url = "{server.openai_url}"\napi_key_env = "KEY"\n'
    (home / "config.toml").write_text(f'model = "{model}"\n{table}', encoding="utf-8")


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Return the modules a fresh process has after it had one short message answered."""
    home = tmp_path_factory.mktemp("home")
    with ModelServer() as server:
        configured(home, server, "deepseek/deepseek-chat")
        done = one_shot(home)
    assert done.returncode == 0, done.stderr
    assert "cinnamon" in done.stdout
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("names", UNUSED.values(), ids=UNUSED)
def test_nothing_is_loaded_for_what_does_not_happen(
    loaded: set[str], names: tuple[str, ...]
) -> None:
    assert loaded & set(names) == set()


def test_what_happens_was_loaded(loaded: set[str]) -> None:
    assert {"httpx", "pydantic", "tui_agent.agent.loop", "tui_agent.model.wires.chat"} <= loaded


def test_one_object_at_the_end_has_the_answer_and_what_it_took(tmp_path: Path) -> None:
    with ModelServer() as server:
        configured(tmp_path, server, "openai/gpt-5-mini")
        plain, first, again = (
            one_shot(tmp_path, *more, program=QUIET)
            for more in ((), ("--output-format", "json"), ("--output-format", "json", "-c"))
        )
        rows = [json.loads(run.stdout) for run in (first, again)]
        report = one_shot(tmp_path, "-c", "-p", "/cost", "--output-format", "json", program=QUIET)
        events = one_shot(tmp_path, "--output-format", "stream-json", program=QUIET)
    for row in rows:
        assert row["type"] == "result"
        assert row["result"] == plain.stdout.rstrip("\n")
        assert (row["is_error"], row["exit_code"], row["error"]) == (False, 0, "")
        assert row["num_turns"] == 1
        assert row["usage"]["output_tokens"] > 0
        assert row["total_cost_usd"] > 0
    assert rows[0]["session_id"] == rows[1]["session_id"]
    assert json.loads(report.stdout)["num_turns"] == 0
    assert "$" in json.loads(report.stdout)["result"]
    assert json.loads(events.stdout.partition("\n")[0])["type"] == "session"


def test_one_object_says_why_a_run_failed(tmp_path: Path) -> None:
    with ModelServer() as server:
        configured(tmp_path, server, "openai/gpt-5-mini")
    failed = one_shot(tmp_path, "--output-format", "json", "--timeout", "1", program=QUIET)
    row = json.loads(failed.stdout)
    assert row["is_error"]
    assert row["exit_code"] == failed.returncode != 0
    assert row["error"] in failed.stderr


def test_a_finished_run_with_a_key_is_told_as_one_object(tmp_path: Path) -> None:
    with ModelServer() as server:
        configured(tmp_path, server, "openai/gpt-5-mini")
        keyed = ("--key", "k", "--output-format", "json")
        first, again = (json.loads(one_shot(tmp_path, *keyed, program=QUIET).stdout) for _ in "12")
    assert again["result"] == first["result"]
    assert again["session_id"] == first["session_id"]
    assert (first["num_turns"], again["num_turns"]) == (1, 0)


def test_a_session_goes_on_with_its_effort_until_another_is_asked_for(tmp_path: Path) -> None:
    with ModelServer() as server:
        configured(tmp_path, server, "openai/gpt-5-mini")
        first = one_shot(tmp_path, "--effort", "low")
        again = one_shot(tmp_path, "-c")
        more = one_shot(tmp_path, "-c", "--effort", "max")
        asked = [call.json["reasoning"]["effort"] for call in server.calls]
    assert [run.returncode for run in (first, again, more)] == [0, 0, 0]
    assert asked == ["low", "low", "high"]
    said = "openai/gpt-5-mini has no effort level max, so high is used. It has"
    assert [said in run.stderr for run in (first, again, more)] == [False, False, True]
