"""Loops as models fall into them, and honest work that looks like one."""

import json
from collections.abc import Callable, Iterable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.session_paths import PathBuilder
from tui_agent.agent.doom_loop import LoopRules, detect
from tui_agent.session.entries import ToolMetadata, ToolStatus

Step = tuple[str, dict[str, object], str, bool]
"""Tool, arguments, output, whether it failed."""
ROUNDS = 6
HONEST_ROUNDS = 30


def bash(command: str, output: str, *, failed: bool = False, **more: object) -> Step:
    return ("bash", {"command": command, **more}, output, failed)


def edit(old: str, new: str, *, failed: bool = False, path: str = "a.py") -> Step:
    output = f"Old text not found in {path}." if failed else f"Edited {path}\n-{old}\n+{new}"
    return ("edit", {"path": path, "old": old, "new": new}, output, failed)


def read(offset: int, output: str, *, failed: bool = False, path: str = "a.py") -> Step:
    return ("read", {"path": path, "offset": offset, "limit": 50}, output, failed)


def circle(calls: int) -> Callable[[int], list[Step]]:
    return lambda _round: [bash(f"make part{n}", f"part {n} is done") for n in range(calls)]


FAILING = "FAILED tests/test_a.py::test_sum - assert 3 == 4\n1 failed in {n}.{n}2s"
HITS = ["https://a.example/one Install the tool", "https://b.example/two Tool manual", "3 results"]
EDITS = [("x = 1", "x = 2"), ("x = 2", "x = 1")]
TODO = ("todo", {"todos": ""}, "", False)


def reworded(n: int) -> Step:
    output = "\n".join(HITS[n % 2 :] + HITS[: n % 2])
    return ("websearch", {"query": f"how to install {'the ' * n}tool"}, output, False)


def planned(n: int) -> Step:
    text = f"[>] {'Really ' * n}read the file\n[ ] Mend the function"
    return ("todo", {"todos": text}, text, False)


LOOPS: dict[str, Callable[[int], list[Step]]] = {
    "one call": circle(1),
    "circle of 3": circle(3),
    "circle of 4": circle(4),
    "circle of 5": circle(5),
    "circle of 7": circle(7),
    "circle of 12": circle(12),
    "retry with other flags": lambda n: [
        bash(f"npm install {'--force ' * n}-v{n}", f"npm error code E404 in {n}.1s", failed=True)
    ],
    "other spaces": lambda n: [bash(f"make{' ' * n}test", "ok")],
    "another timeout": lambda n: [bash("make test", "ok", timeout=60 + n)],
    "echo behind it": lambda n: [bash(f"make test; echo {n}", f"ok\n{n}")],
    "edit and undo": lambda _n: [edit(*pair) for pair in EDITS],
    "edit, look, undo, look": lambda _n: [
        step for old, new in EDITS for step in (edit(old, new), read(1, f"1\t{new}"))
    ],
    "failing test with cosmetic edits": lambda n: [
        edit(f"# note {n}", f"# note {n + 1}"),
        bash("pytest -q", FAILING.format(n=n), failed=True),
    ],
    "the same with a look at the file": lambda n: [
        edit(f"# note {n}", f"# note {n + 1}"),
        read(1, f"1\t# note {n + 1}\n2\tx = 1"),
        bash("pytest -q", FAILING.format(n=n), failed=True),
    ],
    "the same through a pipe": lambda n: [
        edit(f"# note {n}", f"# note {n + 1}"),
        bash("pytest -q | tail", FAILING.format(n=n)),
    ],
    "parts of one file again and again": lambda _n: [
        read(offset, f"{offset}\tsome line") for offset in (1, 40, 80)
    ],
    "reads past the end": lambda n: [
        read(
            500 + 37 * n, f"a.py has 120 lines; offset {500 + 37 * n} is past its end.", failed=True
        )
    ],
    "a new unknown tool each time": lambda n: [
        (f"open_{'x' * n}file", {"path": "a.py"}, f"There is no tool open_{'x' * n}file.", True)
    ],
    "a failing command in new forms": lambda n: [
        bash(
            f"{['py', 'python2', 'python', 'pypy', 'py3', 'pp', 'pq'][n]} a.py",
            f"sh: {n + 1}: {['py', 'python2', 'python', 'pypy', 'py3', 'pp', 'pq'][n]}: not found",
            failed=True,
        )
    ],
    "ls and cd": lambda n: [
        bash("cd src", "[No output.]"),
        bash("ls", "a.py\nb.py"),
        bash("cd ..", "[No output.]"),
        bash("ls", "README\nsrc"),
    ],
    "web searches reworded": lambda n: [reworded(n)],
    "to-do list reworded": lambda n: [planned(n)],
    "one failing edit in new forms": lambda n: [
        edit(f"text {n}", "y", failed=True),
        read(n, f"{n}\tline {n}"),
    ],
    "writes the same file": lambda _n: [
        ("write", {"path": "a.py", "content": "x = 1"}, "Wrote a.py", False)
    ],
    "an address in the error": lambda n: [
        bash(
            "./run",
            f"Segmentation fault at 0x7f{n:06x} pid {4000 + n}, 2026-01-02T03:04:{n:02}Z",
            failed=True,
        )
    ],
}


def steps_of(pattern: Callable[[int], list[Step]], rounds: int) -> Iterator[tuple[int, Step]]:
    for number in range(rounds):
        for step in pattern(number):
            yield number + 1, step


def first_asked(steps: Iterable[tuple[int, Step]]) -> int | None:
    """Return the round whose call is asked about, None for none."""
    rules = LoopRules(problem_of=lambda tool, _text: "no such tool" * tool.startswith("open_"))
    build = PathBuilder()
    build.user("mend it")
    for place, (tool, arguments, output, failed) in steps:
        call = build.call((tool, json.dumps(arguments))).tool_calls[0]
        if detect(build.path, call.call_id, rules):
            return place
        status = ToolStatus.ERROR if failed else ToolStatus.COMPLETED
        build.result(call.call_id, output, tool, status=status)
    return None


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_is_asked_about_within_six_rounds(name: str) -> None:
    assert first_asked(steps_of(LOOPS[name], ROUNDS)) is not None


@settings(max_examples=50, deadline=None)
@given(
    outputs=st.lists(st.text(max_size=60), min_size=1, max_size=24),
    failed=st.booleans(),
)
def test_a_circle_of_any_length_is_asked_about_in_its_third_round(
    outputs: list[str], failed: bool
) -> None:
    def one_round(_round: int) -> list[Step]:
        return [bash(f"make {n}", text, failed=failed) for n, text in enumerate(outputs)]

    asked = first_asked(steps_of(one_round, ROUNDS))
    assert asked is not None
    assert asked <= 3


NAMES = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
HONEST: dict[str, Callable[[int], list[Step]]] = {
    "a job that is waited for": lambda _n: [
        ("job", {"id": 1, "wait": 60}, "job 1 (make all) still runs", False)
    ],
    "a job that is looked at": lambda _n: [("job", {"id": 1}, "job 1 still runs", False)],
    "a pause before each look": lambda _n: [bash("sleep 30; tail -3 log", "still building")],
    "watching": lambda _n: [bash("gh run watch 17", "the run is queued")],
    "progress": lambda n: (
        [bash("kubectl get pods", f"{n} of 90 started")]
        if n % 15
        else [bash("kubectl get nodes", f"ready {n}")]
    ),
    "edits and passing tests": lambda n: [
        edit(f"v{n}", f"v{n + 1}"),
        bash("pytest -q", f"12 passed in 0.{n}s"),
    ],
    "edits and fewer failures": lambda n: [
        edit(f"v{n}", f"v{n + 1}"),
        bash("pytest -q", f"{99 - n} failed", failed=True),
    ],
    "reads on": lambda n: [read(n * 100, f"lines from {n * 100}")],
    "moves many files": lambda n: [bash(f"git mv a{n}.py b{n}.py", "[No output.]")],
    "writes many files": lambda n: [
        ("write", {"path": f"a{n}.py", "content": f"x = {n}"}, f"Wrote a{n}.py", False)
    ],
    "looks for names that are nowhere": lambda n: [
        ("grep", {"pattern": f"name_{n}"}, "No matches.", False)
    ],
    "the list after each file": lambda n: [
        ("write", {"path": f"a{n}.py", "content": f"x = {n}"}, f"Wrote a{n}.py", False),
        ("todo", {"todos": f"[x] {n} files"}, f"[x] {n} files", False),
    ],
    "edits by sed and looks": lambda n: [
        bash(f"sed -i s/{n}/{n + 1}/ a.py", "[No output.]"),
        bash("git status -s", " M a.py"),
    ],
    "errors that differ": lambda n: [
        bash("make", f"a.c:{n}:7: error: unknown name '{NAMES[n % 10]}{n}'", failed=True),
        edit(f"v{n}", f"v{n + 1}", path="a.c"),
    ],
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_work_is_not_asked_about(name: str) -> None:
    assert first_asked(steps_of(HONEST[name], HONEST_ROUNDS)) is None


def test_a_read_that_is_answered_with_known_lines_is_no_news_wherever_it_begins() -> None:
    build = PathBuilder()
    build.user("mend it")
    whole = build.run("read", {"path": "a.py"}, "1\ttext\n" * 100)
    known = ToolMetadata(path="a.py", known_from=whole.id, is_known=True)
    for offset in range(1, ROUNDS - 1):
        arguments = {"path": "a.py", "offset": offset}
        build.run("read", arguments, f"[Unchanged: as in #{whole.id}]", metadata=known)
    call = build.call(("read", {"path": "a.py", "offset": 90})).tool_calls[0]
    assert detect(build.path, call.call_id) is not None
