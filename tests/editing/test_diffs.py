"""Diffs and globs: pure, so properties."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.editing import diffs as module
from tui_agent.editing.diffs import BoundedMatcher, diff_texts
from tui_agent.files.globs import compile_glob, name_globs, split_glob
from tui_agent.text_files.lines import lines_of

TEXTS = st.lists(st.sampled_from(["a", "b", "c", "d\r", "e"]), max_size=30).map("\n".join)


def patched(before: str, diff: str) -> str:
    """Apply a unified diff as ``patch`` does."""
    old, out, at = lines_of(before), [], 0
    rows = re.findall(r"[^\n]*\n", diff)[2:]
    for index, row in enumerate(rows):
        following = rows[index + 1] if index + 1 < len(rows) else ""
        body = row[1:-1] if following.startswith("\\") else row[1:]
        if row.startswith("@@"):
            start, length = re.match(r"@@ -(\d+)(?:,(\d+))?", row).groups()  # type: ignore[union-attr]
            begin = int(start) - (length != "0")
            out += old[at:begin]
            at = begin
        elif row.startswith(" "):
            assert old[at] == body
            out.append(body)
            at += 1
        elif row.startswith("-"):
            assert old[at] == body
            at += 1
        elif row.startswith("+"):
            out.append(body)
    return "".join(out + old[at:])


@given(before=TEXTS, after=TEXTS)
def test_a_diff_applied_gives_the_new_text(before: str, after: str) -> None:
    diff = diff_texts("f", before, after)
    assert patched(before, diff.text) == after
    assert len(lines_of(after)) - len(lines_of(before)) == diff.additions - diff.deletions
    assert (diff.text == "") == (before == after)


def test_a_huge_diff_is_cut_but_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_DIFF_CHARS", 1_000)
    diff = diff_texts("f", None, "line\n" * 10_000)
    assert len(diff.text) < 1_200
    assert diff.text.endswith("too long to be shown.\n")
    assert diff.additions == 10_000


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("*.py", "x/y/a.py", True),
        ("*.py", "a.pyc", False),
        ("x/*.py", "x/a.py", True),
        ("x/*.py", "x/y/a.py", False),
        ("**/*.py", "a.py", True),
        ("x/**/*.py", "x/a.py", True),
        ("x/**", "x/y/z", True),
        ("/a.py", "x/a.py", False),
        ("a.{py,ts}", "a.ts", True),
        ("{a,b/c}.py", "b/c.py", True),
        ("a?b", "a/b", False),
        ("[!a]*", "b", True),
        ("[a-c].py", "b.py", True),
        ("a+b(1).py", "a+b(1).py", True),
        ("src/", "src", True),
        ("app/[id]/page.tsx", "app/[id]/page.tsx", True),
        ("app/[id]/page.tsx", "app/i/page.tsx", True),
        ("app/[...slug]/*.tsx", "app/[...slug]/page.tsx", True),
        ("app/\\[id\\]/page.tsx", "app/[id]/page.tsx", True),
        ("(group)/+page.svelte", "(group)/+page.svelte", True),
        ("{id}.json", "{id}.json", True),
        ("{a,b}.json", "{a,b}.json", True),
        ("{a", "x/{a", True),
        ("[a", "[a", True),
        ("[z-a]", "[z-a]", True),
        ("[!x]/y", "[!x]/y", True),
    ],
)
def test_globs(pattern: str, path: str, *, matches: bool) -> None:
    assert (compile_glob(pattern).fullmatch(path) is not None) is matches


def test_parts_of_globs() -> None:
    assert split_glob("src/a/**/*.py") == ("src/a", "**/*.py")
    assert split_glob("/etc/*.conf") == ("/etc", "*.conf")
    assert split_glob("**/x") == ("", "**/x")
    assert name_globs("**/*.py") == ("*.py",)
    assert name_globs("*.{a,b}") == ("*.{a,b}", "*.[{]a,b[}]")
    assert name_globs("a b.py") == ("a*b.py",)
    assert [name_globs(other) for other in ("x/*.py", "**", "[a].py", "{a", "é")] == [()] * 5


@pytest.mark.timeout(60)
def test_lines_that_are_alike_again_and_again_are_compared_in_time() -> None:
    old = "".join(f"{number}\n" for number in range(80)) * 50
    new = "".join(f"{number}\nz\n" for number in range(80)) * 25
    diff = diff_texts("x", old, new)
    removed = [line[1:] for line in diff.text.splitlines() if line.startswith("-")][1:]
    added = [line[1:] for line in diff.text.splitlines() if line.startswith("+")][1:]
    assert len(removed) == diff.deletions
    assert len(added) == diff.additions
    assert diff.additions - diff.deletions == new.count("\n") - old.count("\n")


def test_a_comparison_that_is_given_up_keeps_what_it_found() -> None:
    old, new = ["a"] * 9, ["a"] * 9
    assert BoundedMatcher(old, new, autojunk=False).get_opcodes() == [("equal", 0, 9, 0, 9)]
    assert BoundedMatcher(old, new, autojunk=False, steps=5).get_opcodes() == [
        ("replace", 0, 9, 0, 9)
    ]
