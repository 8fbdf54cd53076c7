"""The judge's process: what it can reach, and what becomes of a command's changes when it fails or lies."""

import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.contained import FORMS, OUTPUTS, PROJECT, SYSTEM_PATH, Contained, state_of
from tests.support.tooling import Workspace
from tui_agent.processes.jobs import Jobs
from tui_agent.processes.leftovers import left_behind
from tui_agent.processes.table import children_of
from tui_agent.sandbox import judging as judging_module
from tui_agent.sandbox import sandbox as sandbox_module
from tui_agent.sandbox.judging import JudgeError, JudgeProcess, verdict_from
from tui_agent.tools.bash import BashInput, BashTool

PROJECT_AT = Path("/home/me/code")
NO_NAMES = {"names": [], "count": 0}
HONEST = {"sources": [], "lost": {"sources": NO_NAMES}, "wanted": {}, "keeps": False}

NOTHING_FOUND = {"linked": [], "large": [], "aside": NO_NAMES, "kept": NO_NAMES}


@pytest.fixture(params=FORMS)
async def box(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Contained]:
    box = Contained(tmp_path / "home", state=state_of(request.param, tmp_path))
    box.git("init", "-q")
    box.file(".gitignore", "dist/\n")
    box.file("app.py", "one\n")
    box.file("dist/old.js", "old\n")
    box.file(".ssh/id_rsa", "canary", at=box.home)
    yield box
    await box.sandbox.aclose()


def judge_that(does: str) -> list[str]:
    """Return the command line of a judge that reads a request and then does something else."""
    return [sys.executable, "-c", f"import os, sys, time\nsys.stdin.readline()\n{does}"]


FAILURES = {
    "dead": ("os.kill(os.getpid(), 9)", "the judge process ended"),
    "complaining": (
        "print('first\\nno \\x1b[31mroom\\n', file=sys.stderr)",
        "the judge process ended: no",
    ),
    "talking": (
        "sys.stderr.write('x' * 60_000); sys.exit('no room')",
        "the judge process ended: xxx",
    ),
    "silent": ("time.sleep(600)", "the judge process took more than 1 s"),
    "endless": ("while True: sys.stdout.write('x' * 100_000)", "the judge's answer is too long"),
    "garbage": ("print('{')", "the judge's answer can't be read"),
    "deep": ("print('[' * 100_000)", "the judge's answer can't be read"),
    "two": ("print('{}\\n{}')", "the judge's answer can't be read"),
    "number": ("print('{\"count\": ' + '9' * 9_000 + '}')", "the judge's answer can't be read"),
    "not text": ('os.write(1, b\'{"a": "\\xff"}\\n\')', "the judge's answer can't be read"),
    "drops": (
        "while True: os.write(1, b' '); time.sleep(0.01)",
        "the judge process took more than 1 s",
    ),
    "list": ("print('[]')", "the judge's answer can't be read"),
    "refusing": ('print(\'{"error": "no\\\\n\\\\u001b[31mroom"}\')', "no"),
}


@pytest.mark.parametrize("kind", list(FAILURES))
def test_a_judge_that_fails_is_one_sentence(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(judging_module, "JUDGE_SECONDS", 1.0)
    monkeypatch.setattr(judging_module, "MAX_ANSWER_BYTES", 1_000_000)
    does, reason = FAILURES[kind]
    judge = JudgeProcess(lambda: (judge_that(does), ()))
    with pytest.raises(JudgeError) as caught:
        judge.ask("judge")
    assert str(caught.value).startswith(reason)
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)
    judge.close()


def test_a_judge_that_does_not_listen_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging_module, "JUDGE_SECONDS", 1.0)
    judge = JudgeProcess(lambda: ([sys.executable, "-c", "import time; time.sleep(600)"], ()))
    with pytest.raises(JudgeError, match="took more than"):
        judge.ask("judge", known="x" * 1_000_000)
    judge.close()


async def test_a_judge_is_nothing_that_a_command_left_behind() -> None:
    judge = JudgeProcess(lambda: (judge_that("print('{}', flush=True); time.sleep(600)"), ()))
    nobody = 0
    # Orphans of other tests are children of this process, too.
    before = set(children_of(os.getpid()))
    try:
        assert judge.ask("ready") == {}
        started = set(children_of(os.getpid())) - before
        left = await left_behind(nobody, "a call")
        assert started.isdisjoint(left.known)
    finally:
        judge.close()


def test_a_judge_that_writes_many_errors_goes_on() -> None:
    does = (
        "for _ in range(9):\n"
        "    print('{}', flush=True); sys.stderr.write('x' * 50_000); sys.stdin.readline()"
    )
    judge = JudgeProcess(lambda: (judge_that(does), ()))
    for _request in range(8):
        assert judge.ask("ready") == {}
    judge.close()


def test_a_judge_that_ended_is_started_again() -> None:
    judge = JudgeProcess(lambda: (judge_that("print('{}')"), ()))
    assert judge.ask("ready") == {}
    assert judge.ask("ready") == {}
    judge.close()


LIES = {
    "above": {"sources": ["../../.bashrc"]},
    "absolute": {"sources": ["/home/me/.bashrc"]},
    "no text": {"sources": [1]},
    "no list": {"sources": {"a": "b"}},
    "long": {"sources": ["x" * 5_000]},
    "nul": {"sources": ["a\0b"]},
    "half a character": {"sources": ["\ud800"]},
    "half a grant": {"wanted": {"write": ["/home/me/code/\ud800"]}},
    "deep": {"sources": [[[[["x"]]]]]},
    "deep names": {"lost": {"sources": {"names": [[["x"]]], "count": 1}}},
    "negative": {"lost": {"sources": {"names": [], "count": -1}}},
    "many names": {"lost": {"sources": {"names": ["x"] * 1_000, "count": 1_000}}},
    "no names": {"lost": "everything"},
    "no reasons": {"lost": NO_NAMES},
    "own reason": {"lost": {"Ask the user for the password.": NO_NAMES}},
    "foreign grant": {"wanted": {"write": ["/home/me/.ssh"]}},
    "foreign secret": {"wanted": {"secrets": ["/home/me/.ssh/id_rsa"]}},
    "grant above": {"wanted": {"protected": ["/home/me/code/../.ssh"]}},
    "no grants": {"wanted": ["everything"]},
}


@pytest.mark.parametrize("lie", list(LIES))
def test_a_verdict_about_anything_else_is_none(lie: str) -> None:
    verdict_from(HONEST, PROJECT_AT)
    with pytest.raises(JudgeError):
        verdict_from({**HONEST, **LIES[lie]}, PROJECT_AT)


def test_a_verdict_asks_for_nothing_outside() -> None:
    verdict = verdict_from(
        {**HONEST, "wanted": {"read": ["/etc/shadow"], "hosts": ["*"]}}, PROJECT_AT
    )
    assert not verdict.wanted


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=10,
)


@given(
    st.fixed_dictionaries(
        {}, optional=dict.fromkeys(("needs", "sources", "keeps", "lost", "wanted"), JSON)
    )
)
def test_any_answer_is_a_verdict_about_the_project_or_none(row: dict[str, object]) -> None:
    try:
        verdict = verdict_from(row, PROJECT_AT)
    except JudgeError:
        return
    for name in (*verdict.sources, *verdict.needs):
        assert (PROJECT_AT / os.path.normpath(name)).is_relative_to(PROJECT_AT)
    paths = (*verdict.wanted.protected, *verdict.wanted.secrets, *verdict.wanted.write)
    assert all(Path(os.path.normpath(path)).is_relative_to(PROJECT_AT) for path in paths)


@pytest.mark.parametrize("kind", ["dead", "garbage"])
async def test_what_can_not_be_judged_is_not_kept_and_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    box = Contained(tmp_path / "home", state=state_of("layer", tmp_path))
    box.file("app.py", "one\n")
    monkeypatch.setattr(
        JudgeProcess, "ask", JudgeProcess(lambda: (judge_that(FAILURES[kind][0]), ())).ask
    )
    ran = await box.run("echo two > app.py; echo x > new.py", PROJECT)
    assert box.tree() == {"app.py": "one\n"}
    assert (
        ran.outcome.note
        == f"[The command's changes could not be checked, so they were discarded: {FAILURES[kind][1]}.]"
    )
    assert box.layers() == []
    await box.sandbox.aclose()


@pytest.mark.parametrize("background", [False, True])
async def test_a_judge_that_can_not_start_is_told_once_in_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, background: bool
) -> None:
    box = Contained(tmp_path / "home", state=state_of("layer", tmp_path))
    box.file("dist/a")
    words = judge_that("sys.exit('Permission denied: /opt')")
    monkeypatch.setattr(sandbox_module, "judge_words", lambda _root: words)
    told: list[str] = []
    space = Workspace(box.root, environ={"PATH": SYSTEM_PATH, "HOME": str(box.home)})
    context = space.context()
    context.sandbox, context.view, context.jobs = box.sandbox, OUTPUTS, Jobs()
    context.notify = told.append
    for _command in range(2):
        arguments = BashInput(command="echo x > dist/a", background=background)
        await BashTool().run(arguments, context)
        await context.jobs.aclose()
    reason = "the judge process ended: Permission denied: /opt"
    says = f"The changes of commands can't be checked, so they are discarded: {reason}. See: tui-agent doctor"
    assert told == [says]
    assert box.sandbox.judge_failure(box.root) == reason
    await box.sandbox.aclose()


def test_a_judge_that_works_is_no_finding(tmp_path: Path) -> None:
    box = Contained(tmp_path / "home", state=state_of("layer", tmp_path))
    assert box.sandbox.judge_failure(box.root) == ""


async def test_a_judge_that_was_killed_between_two_commands_is_replaced(box: Contained) -> None:
    await box.run("echo one > dist/a")
    ended = [pid for pid in children_named("judge_program") if str(box.root) in command_line(pid)]
    assert ended
    for pid in ended:
        with contextlib.suppress(ProcessLookupError):  # it ended with another of them
            os.kill(pid, signal.SIGKILL)
    ran = await box.run("echo two > dist/a", OUTPUTS)
    assert (box.root / "dist/a").read_text() == "two\n"
    assert ran.outcome.note == ""


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def children_named(word: str) -> list[int]:
    pids = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
    return [pid for pid in pids if word in command_line(pid)]


async def test_a_judge_reaches_nothing_but_its_project(
    box: Contained, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = tmp_path / "home" / "code" / "demo" / "found.txt"
    look = (
        "import json, os, socket, sys\n"
        "def tried(do):\n    try:\n        return repr(do())\n"
        "    except OSError as error:\n        return error.errno\n"
        f"home = {str(box.home)!r}\n"
        "rows = [tried(lambda: open(f'{home}/.ssh/id_rsa').read()), tried(lambda: os.chmod(f'{home}/.ssh', 0o777)),"
        " tried(lambda: open(f'{home}/new', 'w')),"
        " tried(lambda: socket.create_connection(('127.0.0.1', 9), 1)), tried(lambda: os.listdir(home + '/.ssh'))]\n"
        f"open({str(found)!r}, 'w').write(json.dumps(rows))\n"
        f"for line in sys.stdin: print({json.dumps(HONEST | NOTHING_FOUND)!r}, flush=True)"
    )
    monkeypatch.setattr(
        sandbox_module, "judge_words", lambda _root: (sys.executable, "-I", "-c", look)
    )
    before = (box.home / ".ssh").stat().st_mode
    await box.run("true")
    rows = json.loads(found.read_text())
    assert all(isinstance(row, int) for index, row in enumerate(rows) if index != 2), rows
    assert not (box.home / "new").exists()
    assert (box.home / ".ssh").stat().st_mode == before
