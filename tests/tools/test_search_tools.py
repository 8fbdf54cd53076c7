"""``grep``, ``glob`` and ``ls`` on real trees."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.tooling import Workspace
from tui_agent.agent.permissions import Action, Rule, rule_of_reading
from tui_agent.errors import ToolError
from tui_agent.files import ripgrep
from tui_agent.files.ignore import IgnoreRules
from tui_agent.permission import Permission
from tui_agent.sandbox.view import View
from tui_agent.tools import glob as glob_module
from tui_agent.tools import grep as grep_module
from tui_agent.tools.glob import GlobInput, GlobTool
from tui_agent.tools.grep import MAX_ROWS, GrepInput, GrepTool
from tui_agent.tools.ls import LsTool

GREP, GLOB, LS = GrepTool(), GlobTool(), LsTool()


def tree(space: Workspace) -> None:
    space.file(".gitignore", "build/\n*.log\n")
    space.file("src/b.py", "import os\nNAME = 'b'\n")
    space.file("src/a.py", "import sys\nimport os\n")
    space.file("src/deep/c.ts", "import x\n")
    space.file("build/out.py", "import os\n")
    space.file("debug.log", "import os\n")
    space.file(".github/ci.yml", "import: os\n")
    space.file("data.bin", b"import os\0\1\2")


async def test_grep_is_sorted_and_honours_ignore_files(space: Workspace) -> None:
    tree(space)
    result = await space.call(GREP, pattern=r"import\b")
    assert result.output.split("\n") == [
        ".github/ci.yml:1: import: os",
        "src/a.py:1: import sys",
        "src/a.py:2: import os",
        "src/b.py:1: import os",
        "src/deep/c.ts:1: import x",
    ]
    assert result.metadata.count == 5


@pytest.mark.parametrize(
    ("arguments", "files"),
    [
        ({"glob": "*.py"}, ["src/a.py", "src/b.py"]),
        ({"glob": "**/*.{ts,yml}"}, [".github/ci.yml", "src/deep/c.ts"]),
        ({"glob": "**/deep/*"}, ["src/deep/c.ts"]),
        ({"path": "src/b.py"}, ["src/b.py"]),
        ({"path": "debug.log"}, ["debug.log"]),
        ({"glob": "*.log"}, []),
        ({"glob": "!*.py"}, [".github/ci.yml", "src/deep/c.ts"]),
        ({"glob": "!src/**"}, [".github/ci.yml"]),
        ({"glob": "*.ts, *.yml"}, [".github/ci.yml", "src/deep/c.ts"]),
        ({"glob": "/src/*.py"}, ["src/a.py", "src/b.py"]),
        ({"glob": "deep/"}, ["src/deep/c.ts"]),
        ({"path": "src", "glob": "./*.ts"}, []),
        ({"path": "src", "glob": "./*.py"}, ["src/a.py", "src/b.py"]),
        ({"path": "src/**/*.ts"}, ["src/deep/c.ts"]),
        ({"path": "src/deep", "glob": "/"}, ["src/deep/c.ts"]),
        ({"path": "src/deep", "glob": "//"}, ["src/deep/c.ts"]),
        ({"path": "src/deep", "glob": "./"}, ["src/deep/c.ts"]),
        ({"path": "src/deep", "glob": "."}, ["src/deep/c.ts"]),
    ],
)
async def test_grep_where(space: Workspace, arguments: dict[str, str], files: list[str]) -> None:
    tree(space)
    result = await space.call(GREP, pattern="import", **arguments)
    found = (
        sorted({line.split(":")[0] for line in result.output.split("\n")})
        if result.metadata.count
        else []
    )
    assert found == files


@pytest.mark.parametrize("arguments", [{"glob": "a\0.py"}, {"path": "*\0"}, {"path": "a\0"}])
async def test_grep_refuses_a_nul(space: Workspace, arguments: dict[str, str]) -> None:
    with pytest.raises(ToolError, match="NUL"):
        await space.call(GREP, pattern="x", **arguments)


async def test_grep_shows_the_first_by_path_and_counts_all(space: Workspace) -> None:
    for number in range(60):
        space.file(f"f{number:02}.txt", "hit\n" * 50)
    result = await space.call(GREP, pattern="hit")
    *rows, note = result.output.split("\n")
    assert rows == [f"f{number:02}.txt:{line}: hit" for number in range(4) for line in range(1, 51)]
    assert len(rows) == MAX_ROWS
    assert (
        note
        == "[200 of 3,000 matches in 60 files. For the rest use a narrower pattern, path or glob.]"
    )


async def test_a_pattern_that_is_none_is_searched_as_text(space: Workspace) -> None:
    space.file("a:1: b.go", "func main() {\n\tx := interface{}\nfoobaz\nfoo(?=baz)\n")
    result = await space.call(GREP, pattern="func main(")
    assert result.output.startswith(
        "a:1: b.go:1: func main() {\n[pattern is not a valid regular expression ("
    )
    result = await space.call(GREP, pattern="foo(?=baz)")
    assert result.output.startswith(
        "a:1: b.go:4: foo(?=baz)\n[pattern is not a valid regular expression (look-around"
    )
    assert "PCRE2" not in result.output
    with pytest.raises(ToolError, match=r"not a valid regular expression: \w.*Escape \( .* with"):
        await space.call(GREP, pattern="bar(")


async def test_without_ripgrep_glob_still_finds(
    space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ripgrep, "find_program", lambda *_arguments, **_more: None)
    tree(space)
    with pytest.raises(ToolError, match="ripgrep can't be used in this directory"):
        await space.call(GREP, pattern="import")
    assert sorted((await space.call(GLOB, pattern="*.py")).output.split()) == [
        "src/a.py",
        "src/b.py",
    ]


@pytest.mark.parametrize(
    "pattern",
    [r"\Aone", r"two\Z", r"two\z", r"\<two\>", "[[:alpha:]]+ [[:digit:]]", r"tw.*?\s\d|two$"],
)
async def test_both_spellings_of_a_pattern_are_understood(space: Workspace, pattern: str) -> None:
    space.file("a.txt", "zero\none 1 two\n")
    space.file("empty.txt", "")
    assert (await space.call(GREP, pattern=pattern)).output == "a.txt:2: one 1 two"
    assert (await space.call(GREP, pattern="^$")).output == "No matches."


async def test_glob_matches_the_name_of_a_single_file(space: Workspace) -> None:
    space.file("src/a.py", "one\n")
    space.file("src/b.txt", "two\n")
    for pattern in ("*.py", "**/*.py", "a.*", "*"):
        assert (await space.call(GLOB, pattern=pattern, path="src/a.py")).output == "src/a.py"
    other = await space.call(GLOB, pattern="*.txt", path="src/a.py")
    assert other.output == "No files match: src/a.py is a file with another name."
    assert other.metadata.count == 0


async def test_lines_around_a_match(space: Workspace) -> None:
    space.file("a.txt", "1\n2\nhit\n4\n5\n6\n7\nhit\n9\n")
    space.file("b.txt", "hit\nhit\n3\n")
    result = await space.call(GREP, pattern="hit", context=1)
    assert result.output.split("\n") == [
        "a.txt:2- 2", "a.txt:3: hit", "a.txt:4- 4", "--", "a.txt:7- 7", "a.txt:8: hit", "a.txt:9- 9", "--",
        "b.txt:1: hit", "b.txt:2: hit", "b.txt:3- 3",
    ]  # fmt: skip
    assert result.metadata.count == 4
    near = await space.call(GREP, pattern="hit", context=3, path="a.txt")
    assert [line.split(" ")[0][-2:] for line in near.output.split("\n")] == [
        "1-", "2-", "3:", "4-", "5-", "6-", "7-", "8:", "9-",
    ]  # fmt: skip


async def test_matches_are_counted_without_the_lines_around_them(space: Workspace) -> None:
    space.file("a.txt", "x\nhit\ny\n" * 300)
    result = await space.call(GREP, pattern="hit", context=1)
    *rows, note = result.output.split("\n")
    assert len(rows) == MAX_ROWS
    assert note.startswith(f"[{sum(': hit' in row for row in rows)} of 300 matches in 1 file.")


@pytest.mark.parametrize(
    ("pattern", "lines"),
    [
        ("end$", ["1", "3"]),
        ("^$", ["2"]),
        (r"end\n\n", ["1", "2"]),
        ("end\n", ["1", "3"]),
        ("^", ["1", "2", "3"]),
    ],
)
async def test_the_ends_of_lines(space: Workspace, pattern: str, lines: list[str]) -> None:
    for name, text in (("a.txt", "the end\n\nthe end\n"), ("b.txt", "the end\r\n\r\nthe end\r\n")):
        space.file(name, text)
        if "\r" in text and ("\n" in pattern or "\\n" in pattern):
            continue
        result = await space.call(GREP, pattern=pattern, path=name)
        assert [line.split(":")[1] for line in result.output.split("\n")] == lines


async def test_nothing_says_what_is_there_in_another_case(space: Workspace) -> None:
    space.file("a.txt", "Hit\nHIT\n")
    found = "No matches.\n[2 matches in 1 file ignoring case.]"
    assert (await space.call(GREP, pattern="hit")).output == found
    assert (await space.call(GREP, pattern="hit", literal=True)).output == found


@pytest.mark.parametrize(
    "arguments",
    [
        {"pattern": "HIT", "-i": True, "-n": True, "output_mode": "content"},
        {"pattern": "HIT", "case_sensitive": False},
        {"query": "Hit", "ignore_case": "true", "head_limit": 5},
        {"pattern": "h.t", "literal": False, "-C": 0},
    ],
)
async def test_options_of_other_programs(space: Workspace, arguments: dict[str, object]) -> None:
    space.file("a.txt", "hit\n")
    assert (await space.call(GREP, **arguments)).output == "a.txt:1: hit"


async def test_a_file_that_can_not_be_read_is_no_failed_search(
    space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unreadable(*_: object) -> ripgrep.Search:
        return ripgrep.Search(2, "")

    monkeypatch.setattr(grep_module, "run_ripgrep", unreadable)
    assert (await space.call(GREP, pattern="hit")).output == "No matches."


async def test_grep_leaves_secrets_out_unless_they_are_named(space: Workspace) -> None:
    space.file(".env", "KEY=hit\n")
    space.file("a.txt", "hit\n")
    result = await space.call(GREP, pattern="hit")
    assert (
        result.output
        == "a.txt:1: hit\n[Not shown, because of possible secrets: .env. To search a file, name it as path.]"
    )
    assert (await space.call(GREP, pattern="hit", path=".env")).output == ".env:1: KEY=hit"
    needs = GREP.needs(GrepInput(pattern="hit", path=".env"), space.context())
    assert [(need.permission, need.pattern) for need in needs] == [(Permission.READ, ".env")]


async def test_grep_cuts_long_lines(space: Workspace) -> None:
    space.file("min.js", "hit" + "x" * 5_000_000 + "\n")
    result = await space.call(GREP, pattern="hit")
    assert len(result.output) < 400


async def test_file_names_that_are_not_text(space: Workspace) -> None:
    """Output has to fit into UTF-8 whatever a file is called."""
    (space.root / os.fsdecode(b"bad\xff.txt")).write_text("hit\n")
    for result in (
        await space.call(GREP, pattern="hit"),
        await space.call(GLOB, pattern="*.txt"),
        await space.call(LS),
    ):
        assert "bad\ufffd.txt" in result.output
    with pytest.raises(ToolError, match="Did you mean bad\ufffd"):
        await space.call(LS, path="bad.txt")


async def test_links_are_not_followed(space: Workspace) -> None:
    outside = space.root.parent / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("hit\n")
    (space.root / "link").symlink_to(outside)
    (space.root / "file").symlink_to(outside / "secret.txt")
    assert (await space.call(GREP, pattern="hit")).output == "No matches."
    assert (await space.call(GLOB, pattern="**/*")).metadata.count == 0


def test_a_glob_can_not_leave_the_project_unseen(space: Workspace) -> None:
    for needs in (
        GREP.needs(GrepInput(pattern="x", glob="../../etc/*"), space.context()),
        GLOB.needs(GlobInput(pattern="/etc/*.conf"), space.context()),
    ):
        assert needs[-1].permission is Permission.EXTERNAL_DIRECTORY
    with pytest.raises(ToolError, match=r"put it in path"):
        GLOB.needs(GlobInput(pattern="*/../../x"), space.context())


async def test_glob_is_newest_first(space: Workspace) -> None:
    tree(space)
    os.utime(space.root / "src/b.py", (2_000_000_000, 2_000_000_000))
    os.utime(space.root / "src/a.py", (1_000_000_000, 1_000_000_000))
    assert (await space.call(GLOB, pattern="**/*.py")).output == "src/b.py\nsrc/a.py"


@pytest.mark.parametrize(
    ("arguments", "files"),
    [
        ({"pattern": "*.ts"}, ["src/deep/c.ts"]),
        ({"pattern": "src/**"}, ["src/a.py", "src/b.py", "src/deep/c.ts"]),
        ({"pattern": "*.py", "path": "src"}, ["src/a.py", "src/b.py"]),
        ({"pattern": "ci.yml"}, [".github/ci.yml"]),
        ({"pattern": "[ab].py"}, ["src/a.py", "src/b.py"]),
        ({"pattern": "src/deep/"}, ["src/deep/c.ts"]),
        ({"pattern": "/src/*.py"}, ["src/a.py", "src/b.py"]),
        ({"pattern": "*.ts,*.bin"}, ["data.bin", "src/deep/c.ts"]),
        ({"pattern": " *.ts\n"}, ["src/deep/c.ts"]),
    ],
)
async def test_glob_patterns(space: Workspace, arguments: dict[str, str], files: list[str]) -> None:
    tree(space)
    result = await space.call(GLOB, **arguments)
    assert sorted(result.output.split("\n")) == files


async def test_glob_shows_a_hundred_and_counts_all(space: Workspace) -> None:
    for number in range(130):
        space.file(f"f{number}.txt")
    result = await space.call(GLOB, pattern="*.txt")
    assert len(result.output.split("\n")) == 101
    assert result.output.endswith(
        "[100 of 130 files. For the rest use a narrower pattern, path or glob.]"
    )


async def test_glob_nothing_and_nonsense(space: Workspace) -> None:
    tree(space)
    for name in ("src", "src/deep"):
        shown = (await space.call(GLOB, pattern=name)).output
        assert (
            shown
            == f"No files match: {name} is a directory. To find the files in it, use {name}/**."
        )
    assert (await space.call(GLOB, pattern="*.zig")).output.startswith("No files match")
    assert "matched literally" in (await space.call(GLOB, pattern="*.{py")).output
    with pytest.raises(ToolError, match="does not exist"):
        await space.call(GLOB, pattern="*", path="nowhere")


async def test_ls_shows_two_levels(space: Workspace) -> None:
    tree(space)
    (space.root / "link").symlink_to(space.root / "src")
    assert (await space.call(LS)).output == (
        ".github/\n  ci.yml\nsrc/\n  deep/\n  a.py\n  b.py\n.gitignore\ndata.bin\nlink@\n"
        "[Ignored by git: build/, debug.log]"
    )


async def test_ls_is_bounded(space: Workspace) -> None:
    for number in range(500):
        space.file(f"d/f{number:03}.txt")
    assert "  ... 440 more" in (await space.call(LS)).output
    inner = (await space.call(LS, path="d")).output.split("\n")
    assert inner[-1] == "[400 of 500 names. For others use glob with part of the name.]"
    assert len(inner) == 401


async def test_ls_of_something_else(space: Workspace) -> None:
    space.file("a.txt")
    with pytest.raises(ToolError, match="is a file; use read"):
        await space.call(LS, path="a.txt")
    with pytest.raises(ToolError, match="does not exist"):
        await space.call(LS, path="b")
    (space.root / "empty").mkdir()
    assert (await space.call(LS, path="empty")).output == "[The directory is empty.]"


async def test_a_search_that_takes_too_long_is_stopped(
    space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ripgrep, "TIMEOUT", 0.0)
    space.file("a.txt", "x\n")
    assert "Stopped after" in (await space.call(GREP, pattern="x")).output


async def test_names_behind_a_link_that_a_job_puts_in_the_way_are_not_listed(
    space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory is exchanged after it was allowed, and was a directory then."""
    tree(space)
    outside = space.root.parent / "outside"
    outside.mkdir()
    (outside / "canary").write_text("")

    def exchanged() -> None:
        (space.root / "src").rename(space.root / "moved")
        (space.root / "src").symlink_to(outside)

    listed = glob_module.shared_files

    async def late(directory: Path) -> list[str]:
        exchanged()
        return await listed(directory)

    monkeypatch.setattr(glob_module, "shared_files", late)
    assert "canary" not in (await space.call(GLOB, pattern="*", path="src")).output
    (space.root / "src").unlink()
    (space.root / "moved").rename(space.root / "src")
    ignoring = IgnoreRules.above

    def after(directory: Path) -> IgnoreRules:
        exchanged()
        return ignoring(directory)

    monkeypatch.setattr(IgnoreRules, "above", after)
    with pytest.raises(ToolError):
        await space.call(LS, path="src")


async def test_lines_behind_a_link_that_a_job_puts_in_the_way_are_not_shown(
    space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ripgrep looks names up anew: a directory is a link while it reads, and one again afterwards."""
    inside = {
        "a.txt": "mark\nown\n",
        "odd.txt": "mark \ufffd\n".encode("utf-16"),
        "same.txt": "mark both\n",
    }
    for name, content in inside.items():
        space.file(f"dist/a/{name}", content)
    outside = space.root.parent / "outside"
    outside.mkdir()
    for name in (*inside, ".env", "canary.txt", "key.pem"):
        (outside / name).write_text("first\nmark canary\n")
    (outside / "same.txt").write_text("mark both\nmark canary\n")
    place = space.root / "dist/a"
    searched = grep_module.run_ripgrep

    async def led_elsewhere(*given: Any, **named: Any) -> ripgrep.Search:
        place.rename(place.with_name("b"))
        place.symlink_to(outside)
        (space.root / "dist/b").rename(space.root / "dist/real")
        try:
            return await searched(*given, **named)
        finally:
            place.unlink()
            (space.root / "dist/real").rename(place)

    plain = (await space.call(GREP, pattern="mark", path="dist/a")).output
    assert plain.split("\n") == [
        "dist/a/a.txt:1: mark",
        "dist/a/odd.txt:1: mark \ufffd",
        "dist/a/same.txt:1: mark both",
    ]
    monkeypatch.setattr(grep_module, "run_ripgrep", led_elsewhere)
    said = (await space.call(GREP, pattern="mark", path="dist/a", context=1)).output
    assert "canary" not in said
    assert ".pem" not in said
    assert ".env" not in said
    assert said.split("\n")[0] == "dist/a/same.txt:1: mark both"


async def test_a_line_is_shown_whatever_its_file_is_encoded_in(space: Workspace) -> None:
    long = "mark " + "x" * 5_000
    encodings = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252")
    for name in encodings:
        space.file(f"{name}.txt", f"first é\r\n{long}\r\nmark é\r\n".encode(name))
        space.file(f"{name}.one", "mark é".encode(name))
    said = (await space.call(GREP, pattern="mark")).output.split("\n")
    for name in ("utf-8", "utf-8-sig", "utf-16", "cp1252"):
        assert f"{name}.txt:3: mark é" in said
        assert f"{name}.one:1: mark é" in said
        assert any(line.startswith(f"{name}.txt:2: mark xxx") for line in said)
    alone = (await space.call(GREP, pattern="mark", path="utf-16-le.txt")).output
    assert "mark é" in alone


@pytest.mark.parametrize("permission", ["read", "*"])
@pytest.mark.parametrize("action", [Action.DENY, Action.ASK])
async def test_what_a_rule_keeps_from_reading_is_not_found_in_it(
    space: Workspace, permission: str, action: Action
) -> None:
    space.file("a.txt", "hit\n")
    space.file("held/b.txt", "hit\n")
    rules = (Rule("read", "*", Action.ALLOW), Rule(permission, "held/*", action, "user"))
    space.view = View(reading=rule_of_reading(rules))
    for path in (".", "held"):
        found = (await space.call(GREP, pattern="hit", path=path)).output
        assert "b.txt:1" not in found
        assert "held/b.txt" in found, "the note names it"
        assert "rule denies or asks about" in found
    named = (await space.call(GREP, pattern="hit", path="held/b.txt")).output
    assert "b.txt:1" in named, "the gate asks about a file that the call names"
