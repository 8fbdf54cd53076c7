"""Checks after edits as a model and a user meet them: real commands in the sandbox of this machine."""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import Harness, make_agent
from tests.support.neighbours import program
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.agent.diagnostics.checks import checks_for
from tui_agent.agent.diagnostics.settings import DiagnosticSettings
from tui_agent.agent.events import ChecksAwaited
from tui_agent.agent.permissions import Action, Mode, Rule
from tui_agent.app.run_progress import next_state
from tui_agent.app.run_state import Phase, RunState, describe_run
from tui_agent.context.request import ModelRequest
from tui_agent.errors import ToolError
from tui_agent.model.protocol import Finished, ModelEvent
from tui_agent.processes.environment import SafeEnvironment
from tui_agent.sandbox import Sandbox, SandboxState, find_sandbox
from tui_agent.sandbox.settings import SandboxSettings
from tui_agent.session.entries import UserEntry

BUBBLEWRAP = find_sandbox().layered
needs_bubblewrap = pytest.mark.skipif(not BUBBLEWRAP, reason="needs bubblewrap")
GREP = """grep -n BAD {files} /dev/null | sed 's/:\\([^:]*\\)$/: error: \\1/'; true"""
"""A checker: each line with BAD in it is a problem."""
NO_SANDBOX = SandboxState(None)
"""What a test puts into the project later is not surely seen by a view that was made before."""
ALLOW = (Rule("edit", "*", Action.ALLOW, "flag"),)
PATIENT = 30.0
"""Seconds to wait for checkers on a machine that has other things to do; none takes a second."""


def write(path: str, content: str) -> Call:
    return Call("write", json.dumps({"path": path, "content": content}))


def edit(path: str, old: str, new: str) -> Call:
    return Call("edit", json.dumps({"path": path, "edits": [{"old": old, "new": new}]}))


def make_checked(
    tmp_path: Path,
    steps: Sequence[Sequence[Call]] | ScriptedClient,
    files: dict[str, str],
    *,
    state: SandboxState | None = None,
    home: Path | None = None,
    **settings: Any,
) -> Harness:
    """Return an agent whose model makes some calls in each step, in a project with some files."""
    project = tmp_path / "project"
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    (tmp_path / "home").mkdir()
    box = Sandbox(
        SandboxSettings(), cache=tmp_path / "cache", home=home or tmp_path / "home", project=project,
        find=None if state is None else lambda: state,
    )  # fmt: skip
    client = steps
    if not isinstance(client, ScriptedClient):
        client = ScriptedClient([*(Reply(calls=tuple(calls)) for calls in client), Reply("Done.")])
    settings = {"commands": {"*.txt": GREP}, "wait": PATIENT} | settings
    harness = make_agent(
        tmp_path, client, sandbox=box, rules=ALLOW, diagnostics=DiagnosticSettings.model_validate(settings),
    )  # fmt: skip
    harness.agent.change_mode(Mode.AUTO_EDIT)
    return harness


def told(harness: Harness) -> list[UserEntry]:
    return [
        entry
        for entry in harness.path()
        if isinstance(entry, UserEntry) and entry.synthetic == "diagnostics"
    ]


def texts(harness: Harness) -> str:
    return "\n".join(
        part.text for entry in told(harness) for part in entry.parts if part.type == "file"
    )


@needs_bubblewrap
async def test_what_an_edit_makes_is_told_with_the_next_request(tmp_path: Path) -> None:
    files = {"a.txt": "one\nBAD old\ntwo\n"}
    harness = make_checked(tmp_path, [[edit("a.txt", "one", "zero\none\nBAD new")]], files)
    assert (await harness.say("go")).reason == "done"
    (entry,) = told(harness)
    assert entry.diagnostics == {"a.txt": 1}
    assert texts(harness) == "1 new problem:\na.txt:3: error: BAD new (grep)"
    sent = json.dumps(
        [message.text for message in harness.agent.ports.client.requests[-1].messages]
    )  # type: ignore[attr-defined]
    assert "BAD new" in sent
    assert harness.kinds()[-3:] == ["tool_result", "user", "assistant"]
    (awaited,) = harness.of(ChecksAwaited)
    state = next_state(RunState(Phase.WAITING, 1.0), awaited, 2.0)
    assert describe_run(state, 4.0, 0) == "working 4 s · checking with grep 2 s · esc stops it"
    await harness.agent.aclose()


@pytest.mark.parametrize("error", [ToolError("half of it failed"), asyncio.CancelledError()])
async def test_what_a_call_wrote_before_it_failed_is_checked(
    tmp_path: Path, error: BaseException
) -> None:
    harness = make_checked(tmp_path, [], {"a.txt": "one\n"})
    diagnostics = harness.agent.tools.diagnostics
    path = harness.agent.ports.project / "a.txt"

    async def write_and_fail() -> None:
        async with diagnostics.watching([path]):
            path.write_text("BAD\n")
            raise error

    with pytest.raises(type(error)):
        await write_and_fail()
    (checker,) = diagnostics.checkers.values()
    assert checker.edited == {path: b"one\n"}


@needs_bubblewrap
async def test_what_was_there_is_not_told_however_lines_move(tmp_path: Path) -> None:
    old = "".join(f"BAD number {number}\n" for number in range(10_000))
    steps = [
        [edit("a.txt", "BAD number 77\n", "fine\nfine\nBAD number 77\n")],
        [edit("a.txt", "fine\nfine\n", "")],
    ]
    harness = make_checked(tmp_path, steps, {"a.txt": old})
    await harness.say("go")
    assert told(harness) == []
    (checker,) = harness.agent.tools.diagnostics.checkers.values()
    assert checker.found == 10_000
    await harness.agent.aclose()


@needs_bubblewrap
async def test_edits_of_one_answer_are_checked_together(tmp_path: Path) -> None:
    runs = "echo run >> target/runs; "
    many = "".join(f"BAD {n}\n" for n in range(500))
    calls = [write("a.txt", many), write("b.txt", "BAD b\n"), write("c.md", "BAD c\n")]
    files = {".gitignore": "target\n", "target/runs": ""}
    harness = make_checked(tmp_path, [calls], files, commands={"*.txt": runs + GREP})
    await harness.say("go")
    (entry,) = told(harness)
    assert entry.diagnostics == {"a.txt": 500, "b.txt": 1}
    lines = texts(harness).splitlines()
    assert (lines[0], lines[11]) == ("500 new problems, 10 of them shown:", "1 new problem:")
    # The look at how it was before keeps nothing.
    assert (tmp_path / "project/target/runs").read_text() == "run\n"
    await harness.agent.aclose()


@needs_bubblewrap
async def test_what_is_told_once_is_not_told_again(tmp_path: Path) -> None:
    steps = [
        [write("a.txt", "BAD a\n")],
        [edit("a.txt", "BAD a", "BAD a\nfine")],
        [edit("a.txt", "fine", "BAD b")],
    ]
    harness = make_checked(tmp_path, steps, {})
    await harness.say("go")
    assert [entry.diagnostics for entry in told(harness)] == [{"a.txt": 1}, {"a.txt": 1}]
    assert "a.txt:2: error: BAD b" in texts(harness)
    await harness.agent.aclose()


async def test_a_slow_checker_holds_nothing_up_and_is_told_later(tmp_path: Path) -> None:
    command = f"while [ ! -e target/go ]; do sleep 0.05; done; {GREP}"
    steps = [[write("a.txt", "BAD a\n")], [write("b.md", "x\n")]]
    harness = make_checked(
        tmp_path, steps, {".gitignore": "target\n", "target/x": ""}, commands={"*.txt": command}, wait=0.05,
        state=NO_SANDBOX,
    )  # fmt: skip
    await harness.say("go")
    assert told(harness) == []
    (checker,) = harness.agent.tools.diagnostics.checkers.values()
    assert checker.running
    (tmp_path / "project/target/go").write_text("")
    await harness.until(lambda: not checker.running)
    assert harness.notices() == [
        "while found 1 new problem in a.txt. The model receives this with your next message."
    ]
    await harness.say("and now?")
    assert [entry.diagnostics for entry in told(harness)] == [{"a.txt": 1}]
    assert harness.kinds()[-3:] == ["user", "user", "assistant"], "behind what the user said"
    await harness.agent.aclose()


async def test_what_is_found_during_the_last_answer_keeps_the_run_going(tmp_path: Path) -> None:
    project = tmp_path / "project"
    harness: Harness
    replies = iter([Reply(calls=(write("a.txt", "BAD a\n"),)), Reply("Done."), Reply("Not yet.")])

    def script(_request: ModelRequest) -> Reply:
        reply = next(replies)
        if reply.text == "Done.":
            (project / "target/go").write_text("")
        return reply

    class Slow(ScriptedClient):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
            async for event in super().stream(request):
                if isinstance(event, Finished) and len(self.requests) == 2:
                    [checker] = harness.agent.tools.diagnostics.checkers.values()
                    await checker.task
                yield event

    command = f"while [ ! -e target/go ]; do sleep 0.05; done; {GREP}"
    files = {".gitignore": "target\n", "target/x": ""}
    harness = make_checked(
        tmp_path, Slow(script), files, commands={"*.txt": command}, wait=0.05, state=NO_SANDBOX
    )
    assert (await harness.say("go")).reason == "done"
    assert [entry.diagnostics for entry in told(harness)] == [{"a.txt": 1}]
    assert harness.kinds()[-3:] == ["assistant", "user", "assistant"]
    await harness.agent.aclose()


@pytest.mark.parametrize(
    ("command", "settings", "why"),
    [
        ("sleep 1000", {"timeout": 0.5}, "took longer than 0.5 s"),
        (
            "echo 'cannot read settings' >&2; exit 2",
            {},
            "ended with exit code 2 and reported no problem (“cannot",
        ),
        ("head -c 100000000 /dev/zero | tr '\\0' 'x'", {}, "printed more than 8 MB"),
        ("kill -9 $$", {}, "ended with exit code"),
    ],
)
@needs_bubblewrap
async def test_a_checker_that_is_of_no_use_is_told_of_once_and_left_alone(
    tmp_path: Path, command: str, settings: dict[str, Any], why: str
) -> None:
    steps = [
        [write("a.txt", "BAD\n")],
        [edit("a.txt", "BAD", "BAD BAD")],
        [edit("a.txt", "BAD BAD", "BAD")],
    ]
    harness = make_checked(tmp_path, steps, {}, commands={"*.txt": command}, **settings)
    assert (await harness.say("go")).reason == "done"
    (said,) = harness.notices()
    assert why in said
    assert "/diagnostics on" in said
    assert told(harness) == []
    await harness.agent.aclose()


async def test_programs_of_a_project_run_in_a_sandbox_only(tmp_path: Path) -> None:
    program = tmp_path / "project/.venv/bin/ruff"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    program.chmod(0o755)
    none = SandboxState(None, reason="there is none")
    harness = make_checked(
        tmp_path, [[write("a.py", "x\n")], [write("b.py", "x\n")]], {}, state=none, commands={}
    )
    await harness.say("go")
    assert not (tmp_path / "ran").exists()
    assert any("needs a sandbox" in said for said in harness.notices())


async def test_a_command_of_the_users_runs_without_one_too(tmp_path: Path) -> None:
    none = SandboxState(None, reason="there is none")
    files = {"a.txt": "one\nBAD old\n"}
    harness = make_checked(tmp_path, [[edit("a.txt", "one", "BAD new\none")]], files, state=none)
    await harness.say("go")
    assert texts(harness) == "1 new problem:\na.txt:1: error: BAD new (grep)", (
        "only lines of the edit are sure to be new"
    )


def names(path: Path, root: Path, **settings: Any) -> list[str]:
    return [
        check.name for check in checks_for(path, root, DiagnosticSettings.model_validate(settings))
    ]


def test_the_projects_own_programs_come_first(tmp_path: Path) -> None:
    for place in ("node_modules/.bin/tsc", "web/node_modules/.bin/tsc"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text("")
        (tmp_path / place).chmod(0o755)
    assert names(tmp_path / "web/src/a.ts", tmp_path) == [], "nothing is set up for it"
    (tmp_path / "web/tsconfig.json").write_text("{}")
    (check,) = checks_for(tmp_path / "web/src/a.ts", tmp_path, DiagnosticSettings())
    assert (check.where, check.words[0]) == (
        tmp_path / "web",
        str(tmp_path / "web/node_modules/.bin/tsc"),
    )


def test_commands_of_the_settings_take_the_place_of_what_is_found(tmp_path: Path) -> None:
    path = tmp_path / "src/a.py"
    assert names(path, tmp_path, commands={"*.py": "flake8 {files}"}) == ["flake8"]
    assert names(path, tmp_path, commands={"src/*": ["pyright {files}", "flake8 {files}"]}) == [
        "pyright",
        "flake8",
    ]
    assert names(path, tmp_path, commands={"*.py": ""}) == []
    assert names(tmp_path.parent / "a.py", tmp_path, commands={"*.py": "flake8"}) == [], (
        "outside of the project"
    )


def test_names_of_files_are_quoted(tmp_path: Path) -> None:
    path = tmp_path / "a; rm -rf b'.txt"
    (check,) = checks_for(path, tmp_path, DiagnosticSettings(commands={"*.txt": "cat {files}"}))
    assert check.command([path])[2] == """cat './a; rm -rf b'"'"'.txt'"""


async def _real(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], call: Call
) -> Harness:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    monkeypatch.setenv("PATH", path)
    harness = make_checked(tmp_path, [[call]], files, home=Path.home(), commands={})
    harness.agent.ports.environment = SafeEnvironment(os.environ)
    await harness.say("go")
    await harness.agent.aclose()
    return harness


@needs_bubblewrap
async def test_ruff(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"a.py": "import os\n"}
    harness = await _real(
        tmp_path, monkeypatch, files, edit("a.py", "import os\n", "import os\n\nprint(x)\n")
    )
    assert texts(harness).splitlines() == [
        "1 new problem:",
        "a.py:3: F821 Undefined name `x` (ruff)",
    ], harness.notices()


@pytest.mark.neighbours
@needs_bubblewrap
async def test_tsc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tsc = Path(program("tsc"))
    files = {"tsconfig.json": '{"include": ["*.ts"]}', "a.ts": "export const a: number = 'old';\n"}
    modules = tmp_path / "project/node_modules"
    (modules / ".bin").mkdir(parents=True)
    shutil.copytree(tsc.resolve().parents[1], modules / "typescript")
    (modules / ".bin/tsc").symlink_to("../typescript/bin/tsc")
    call = edit("a.ts", "export", "export const b: string = 1;\nexport")
    harness = await _real(tmp_path, monkeypatch, files, call)
    assert "a.ts:1: error TS2322" in texts(harness), harness.notices()
    assert told(harness)[0].diagnostics == {"a.ts": 1}
