"""Reading what checkers print, and telling what is new from what was there."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.agent.diagnostics.checks import Problem, new_problems, parse_problems
from tui_agent.editing.diffs import line_origins

PRINTED = {
    "ruff": (
        "app.py:3:5: F821 Undefined name `x`\nFound 1 error.\n",
        Problem("app.py", 3, "F821 Undefined name `x`"),
    ),
    "mypy": (
        'app.py:3: error: Name "x" is not defined  [name-defined]\napp.py:3: note: Did you forget to import it?\n',
        Problem("app.py", 3, 'error: Name "x" is not defined [name-defined]'),
    ),
    "mypy with columns and ends": (
        "app.py:3:5:3:9: error: Bad  [misc]",
        Problem("app.py", 3, "error: Bad [misc]"),
    ),
    "tsc": (
        "app.py(3,7): error TS2322: Type 'string' is not assignable to type 'number'.",
        Problem("app.py", 3, "error TS2322: Type 'string' is not assignable to type 'number'."),
    ),
    "go vet": (
        "# example.org/x\nvet: ./app.py:3:5: undefined: x\n",
        Problem("app.py", 3, "undefined: x"),
    ),
    "gopls": ("ROOT/app.py:3:5-9: undefined: x\n", Problem("app.py", 3, "undefined: x")),
    "brackets in a path": ("(a) b/c.ts:3:1: error: Bad", Problem("(a) b/c.ts", 3, "error: Bad")),
}


@pytest.mark.parametrize("checker", PRINTED)
def test_what_checkers_print(tmp_path: Path, checker: str) -> None:
    printed, problem = PRINTED[checker]
    for name in ("app.py", "(a) b/c.ts"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x\n")
    assert parse_problems(printed.replace("ROOT", str(tmp_path)), tmp_path, tmp_path) == [problem]


@pytest.mark.parametrize(
    "printed",
    [
        "12:30:45 INFO: all is well", "/etc/passwd:3:1: error: outside", "../x.py:1:1: error: outside",
        "gone.py:1: error: a", "app.py: error: no line", "app.py:x: error", "app.py:3:5:", ":3:5: error",
        "a" * 300_000, "a.py:" * 60_000,
    ],
)  # fmt: skip
def test_what_is_no_problem_of_the_project(tmp_path: Path, printed: str) -> None:
    (tmp_path / "app.py").write_text("x\n")
    (tmp_path.parent / "x.py").write_text("x\n")
    assert parse_problems(printed, tmp_path, tmp_path) == []


def test_a_checker_in_a_directory_below(tmp_path: Path) -> None:
    (tmp_path / "web/src").mkdir(parents=True)
    (tmp_path / "web/src/a.ts").write_text("x\n")
    found = parse_problems("src/a.ts(1,1): error TS1: Bad", tmp_path / "web", tmp_path)
    assert [problem.path for problem in found] == ["web/src/a.ts"]


def at(
    *lines: int, message: str = "F821 Undefined name `x`", path: str = "app.py"
) -> list[Problem]:
    return [Problem(path, line, message) for line in lines]


def origins(before: str, after: str) -> dict[str, list[int | None]]:
    return {"app.py": line_origins(before, after)}


BEFORE = "a\nx\nb\nx\nc\n"


def test_lines_named_in_messages_may_move_too() -> None:
    before = at(9, message='error: Name "f" already defined on line 3 [no-redef]')
    after = at(11, message='error: Name "f" already defined on line 5 [no-redef]')
    assert new_problems(before, after, origins(BEFORE * 2, "#\n#\n" + BEFORE * 2)) == []


def test_where_nothing_is_known_of_before_only_new_lines_count() -> None:
    edited = origins(BEFORE, "a\nx\nb\nnew\nx\nc\n")
    everything = [*at(2, 4, 5), *at(1, path="other.py")]
    assert new_problems(None, everything, edited) == at(4)


WORDS = st.sampled_from(["a", "b", "x", "", "}"])


@given(
    before=st.lists(WORDS, max_size=30), inserted=st.lists(WORDS, max_size=8), data=st.data(),
    messages=st.lists(st.sampled_from(["F821 x", "E501 long", "error: line 3"]), min_size=1, max_size=3),
)  # fmt: skip
def test_an_edit_that_adds_no_problem_makes_none_new_and_one_that_does_exactly_that(
    before: list[str], inserted: list[str], data: st.DataObject, messages: list[str]
) -> None:
    at_line = data.draw(st.integers(0, len(before)))
    after = [*before[:at_line], *inserted, *before[at_line:]]
    lines = data.draw(st.lists(st.integers(1, max(1, len(before))), max_size=12))
    old = [Problem("app.py", line, messages[line % len(messages)]) for line in lines if before]
    now = [Problem("app.py", p.line + len(inserted) * (p.line > at_line), p.message) for p in old]
    moved = origins("".join(f"{line}\n" for line in before), "".join(f"{line}\n" for line in after))
    assert new_problems(old, now, moved) == []
    added = Problem("app.py", at_line + 1, "F999 new")
    assert new_problems(old, [*now, added], moved) == [added]
