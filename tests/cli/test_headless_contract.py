"""What scripts around a run without a screen rely on: events, arguments, exit codes."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.agents import make_agent
from tests.support.headless import run_headless
from tests.support.hooks import from_settings
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.agent.hooks.hooks import Hooks
from tui_agent.agent.hooks.settings import HookSettings
from tui_agent.agent.permissions import Action, Rule
from tui_agent.cli import main
from tui_agent.cli.output import ExitCode
from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.sandbox import Sandbox, find_sandbox
from tui_agent.sandbox.settings import SandboxSettings

ROOT = Path(__file__).parents[2]


async def test_running_out_of_steps_is_no_success(tmp_path: Path) -> None:
    client = ScriptedClient([Reply(calls=(Call("ls", "{}"),)), Reply("I have to stop.")])
    harness = make_agent(tmp_path, client, answer=None, max_steps=1)
    out, err = io.StringIO(), io.StringIO()
    assert await run_headless(harness, "go", out=out, err=err) == ExitCode.STOPPED
    assert "To continue: tui-agent -c" in err.getvalue()


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (
            Reply("Half of it", finish="length"),
            "The answer was cut off at the model's output limit",
        ),
        (
            Reply("Half of it", finish="unmarked"),
            "The server ended the answer without marking it as complete",
        ),
        (Reply("Half of it", finish="content_filter"), "content filter"),
        (Reply("", reasoning="I think."), "only thought and gave no answer"),
    ],
)
async def test_an_answer_that_is_not_whole_is_no_success(
    tmp_path: Path, reply: Reply, why: str
) -> None:
    harness = make_agent(tmp_path, ScriptedClient([reply]), answer=None)
    out, err = io.StringIO(), io.StringIO()
    assert await run_headless(harness, "go", out=out, err=err) == ExitCode.STOPPED
    assert why in err.getvalue()
    assert out.getvalue().strip() == reply.text


@pytest.mark.parametrize("text", ["\n\n \n", " "])
async def test_an_answer_of_white_space_is_not_printed(tmp_path: Path, text: str) -> None:
    harness = make_agent(tmp_path, ScriptedClient([Reply(text)]), answer=None)
    out, err = io.StringIO(), io.StringIO()
    assert await run_headless(harness, "go", out=out, err=err) == ExitCode.STOPPED
    assert not out.getvalue()


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("No model is chosen yet: pick one with /model or --model.", "pick one with --model."),
        ("Choose another with /model, or check base_url.", "another with --model, or check"),
        ("use /login (or tui-agent login openai), or set X", "use tui-agent login openai, or set"),
        ("set it in /settings.", "set it in config.toml."),
        ("What you can do: /compact: x; /model: y.", "/compact: x; --model: y."),
        ("POST /v1/model/login failed: /home/model", "POST /v1/model/login failed: /home/model"),
    ],
)
async def test_an_error_names_what_works_in_a_shell(
    tmp_path: Path, message: str, told: str
) -> None:
    reply = Reply(error=ModelError(ErrorKind.NOT_FOUND, message))
    for as_json in (False, True):
        place = tmp_path / str(as_json)
        place.mkdir()
        harness = make_agent(place, ScriptedClient([reply]), answer=None)
        out, err = io.StringIO(), io.StringIO()
        await run_headless(harness, "go", out=out, err=err, as_json=as_json)
        if as_json:
            (ended,) = [
                row
                for row in map(json.loads, out.getvalue().splitlines())
                if row["type"] == "run_ended"
            ]
            assert told in ended["error"]
        else:
            assert told in err.getvalue()


def test_what_an_untrusted_project_can_t_use_is_told_of_every_kind(tmp_path: Path) -> None:
    files = {
        ".tui-agent/commands/good.md": "x",
        ".tui-agent/agents/rev.md": "x",
        ".tui-agent/skills/s1/SKILL.md": "---\nname: s1\ndescription: a\n---\nx",
        ".tui-agent/config.toml": '[[hooks]]\nevent="run_end"\ncommand="make"\n[permissions]\nbash="allow"\n',
        "AGENTS.md": "@~/x.md",
        ".mcp.json": '{"mcpServers": {"db": {"command": "x"}}}',
        **{f".claude/commands/{name}.md": "x" for name in "abcde"},
    }
    for name, text in files.items():
        (tmp_path / "project" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "project" / name).write_text(text)
    (tmp_path / "project/.git").mkdir()
    own = {
        name: str(tmp_path / name)
        for name in ("TUI_AGENT_DATA_DIR", "TUI_AGENT_CONFIG_DIR", "HOME")
    }
    done = subprocess.run(
        [sys.executable, "-m", "tui_agent", "-p", "hello"],
        check=False, cwd=tmp_path / "project", env={**os.environ, **own, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    (note,) = [line for line in done.stderr.splitlines() if "have not trusted" in line]
    for words in (
        "1 MCP server (db)", '1 hook (event = "run_end", command = "make")', "1 permission rule (bash)",
        "1 agent (rev)", "6 commands (", ", …)", "1 skill (s1)", "1 import from outside (@~/x.md)",
    ):  # fmt: skip
        assert words in note


def test_an_open_standard_input_is_told_of(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    script = "import sys; from tui_agent.cli import main; main.STDIN_PATIENCE = 0.05; sys.exit(main.run(sys.argv[1:]))"
    own = {
        "TUI_AGENT_DATA_DIR": str(tmp_path / "data"),
        "TUI_AGENT_CONFIG_DIR": str(tmp_path / "config"),
    }
    with subprocess.Popen(
        [sys.executable, "-c", script, "--demo", "-p", "hello"],
        cwd=tmp_path, env={**os.environ, **own, "PYTHONPATH": str(ROOT)},
        stdin=reader, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        os.close(reader)
        assert process.stderr is not None
        assert process.stderr.readline() == f"{main.STILL_OPEN}\n"
        os.close(writer)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "I am a script" in out


@pytest.mark.parametrize("character", ["a", "ж", "中"])
def test_too_much_standard_input_is_refused_and_not_cut(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], character: str
) -> None:
    monkeypatch.setattr(main, "MAX_STDIN_BYTES", 300)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(character.encode() * 301)))
    assert main.run(["--demo", "-p", "count"]) == ExitCode.USAGE
    assert "Standard input has more than 300 bytes" in capsys.readouterr().err


async def test_a_call_that_a_hook_refused_is_not_said_to_need_an_option(tmp_path: Path) -> None:
    guard = HookSettings(event="before_tool", command="echo not on Fridays >&2; exit 2")
    client = ScriptedClient([Reply(calls=(Call("bash", '{"command": "git push"}'),)), Reply("No.")])
    hooks = Hooks(lambda: from_settings([guard], tmp_path, os.environ))
    harness = make_agent(tmp_path, client, answer=None, hooks=hooks)
    errors = io.StringIO()
    assert await run_headless(harness, "go", err=errors) == ExitCode.STOPPED
    told = f"not on Fridays – hook “{guard.command}”"
    assert errors.getvalue() == f"Not allowed: bash git push. A hook refused: {told}\n"


async def test_a_hook_that_the_run_waits_for_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_agent.agent.hooks.hooks.AWAITED_SECONDS", 0.01)
    slow = HookSettings(event="user_prompt", command="sleep 0.2")
    hooks = Hooks(lambda: from_settings([slow], tmp_path, os.environ))
    harness = make_agent(tmp_path, ScriptedClient([Reply("Hello.")]), answer=None, hooks=hooks)
    errors = io.StringIO()
    assert await run_headless(harness, "go", err=errors) == ExitCode.DONE
    assert errors.getvalue() == "Waiting for the user_prompt hook “sleep 0.2”.\n"


PADDING = "x" * 300
"""Longer than a call's title."""


@pytest.mark.parametrize(
    ("command", "code"),
    [(f"echo {PADDING} && touch made", ExitCode.DONE), (f"echo {PADDING}", ExitCode.STOPPED)],
)
async def test_the_whole_command_counts(tmp_path: Path, command: str, code: int) -> None:
    calls = (
        Call("bash", json.dumps({"command": command})),
        Call("bash", '{"command": "rm -rf ."}'),
    )
    allowed = (Rule(kind, "*", Action.ALLOW, "user") for kind in ("bash", "edit"))
    rules = (*allowed, Rule("bash", "rm *", Action.DENY, "user"))
    client = ScriptedClient([Reply(calls=calls), Reply("Done.")])
    harness = make_agent(tmp_path, client, answer=None, rules=rules)
    assert await run_headless(harness, "go") == code


@pytest.mark.skipif(not find_sandbox().layered, reason="needs bubblewrap 0.11 or newer")
@pytest.mark.parametrize(
    ("command", "rules", "code"),
    [
        ("echo more >> README.md", (), ExitCode.STOPPED),
        ("echo more >> README.md", (Rule("edit", "*", Action.ALLOW, "flag"),), ExitCode.DONE),
        ("git commit --allow-empty -m x", (), ExitCode.STOPPED),
        ("mkdir -p build && echo o > build/o", (), ExitCode.DONE),
    ],
)
async def test_what_the_sandbox_keeps_from_being_changed_was_not_done(
    tmp_path: Path, command: str, rules: tuple[Rule, ...], code: int
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "README.md").write_text("Read.\n")
    (project / ".gitignore").write_text("build\n")
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    box = Sandbox(SandboxSettings(), cache=tmp_path / "cache", home=tmp_path)
    client = ScriptedClient(
        [Reply(calls=(Call("bash", json.dumps({"command": command})),)), Reply("Done.")]
    )
    harness = make_agent(tmp_path, client, answer=None, rules=rules, sandbox=box)
    errors = io.StringIO()
    assert await run_headless(harness, "go", err=errors) == code
    await (
        box.aclose()
    )  # what it gets ready starts a program: a loop that cancels all its tasks then waits for ever
    assert ("Not allowed: bash" in errors.getvalue()) is (code == ExitCode.STOPPED)
    assert ((project / "README.md").read_text() == "Read.\n") is not bool(rules)


@pytest.mark.parametrize(
    ("tool", "arguments", "option"),
    [
        ("write", {"path": "a.txt", "content": "a"}, "--allow edit."),
        ("bash", {"command": "make all"}, "--allow 'bash:make all'."),
    ],
)
async def test_a_refused_call_names_the_option_that_allows_it(
    tmp_path: Path, tool: str, arguments: dict[str, str], option: str
) -> None:
    client = ScriptedClient([Reply(calls=(Call(tool, json.dumps(arguments)),)), Reply("No.")])
    harness = make_agent(tmp_path, client, answer=None)
    errors = io.StringIO()
    assert await run_headless(harness, "go", err=errors) == ExitCode.STOPPED
    assert f"To allow this, add {option}" in errors.getvalue()


async def test_calls_of_one_id_end_no_run(tmp_path: Path) -> None:
    calls = tuple(
        Call("bash", json.dumps({"command": command}), "same")
        for command in ("echo x", "touch made")
    )
    client = ScriptedClient([Reply(calls=calls), Reply("Done.")])
    harness = make_agent(
        tmp_path, client, answer=None, rules=(Rule("bash", "*", Action.ALLOW, "user"),)
    )
    assert await run_headless(harness, "go") == ExitCode.DONE
