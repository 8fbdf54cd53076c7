"""A search finds what is there, or says what it did not look at."""

import asyncio
import os
import tempfile
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.thoroughness import examples
from tests.support.tooling import Workspace
from tui_agent.agent.attachments import load_message
from tui_agent.errors import ToolError
from tui_agent.permission import Permission
from tui_agent.safe_text import listed_name
from tui_agent.session.entries import FilePart
from tui_agent.text_files.encodings import odd_bytes_shown
from tui_agent.tools.edit import EditTool
from tui_agent.tools.glob import GlobTool
from tui_agent.tools.grep import GrepTool
from tui_agent.tools.ls import LsTool
from tui_agent.tools.read import ReadInput, ReadTool
from tui_agent.tools.write import WriteTool

READ, EDIT, GLOB, GREP, LS = ReadTool(), EditTool(), GlobTool(), GrepTool(), LsTool()
WRITE = WriteTool()
NAMES = st.one_of(
    st.text("ab.[]{}()!*?+,@~# \\-'\"\u202f\u00e9e\u0301日", min_size=1, max_size=10),
    st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1, max_size=10
    ),
    st.binary(min_size=1, max_size=8).map(
        lambda data: os.fsdecode(data.replace(b"/", b"").replace(b"\0", b"") or b"x")
    ),
)
LINES = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\0"), max_size=20
).map("needle {}".format)

BEFORE = (b"", b"a\n", b"\xff\n", b"\0\n")


def usable(name: str) -> bool:
    return bool(name.strip()) and name.strip(". ") != "" and len(os.fsencode(name)) < 200


async def looked_for(name: str, folder: str) -> tuple[str, str, str]:
    """Return what read and glob answer for a file of this name, at the top and in a directory."""
    with tempfile.TemporaryDirectory() as place:
        space = Workspace(Path(place).resolve())
        path = space.root / folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("what is in it\n")
        (space.root / "other.txt").write_text("other\n")
        # A model is shown bytes that are no text as U+FFFD.
        name = odd_bytes_shown(name)
        asked = f"{folder}/{name}" if folder else name
        read = await space.call(READ, path=asked)
        by_path = await space.call(GLOB, pattern=asked)
        by_name = await space.call(GLOB, pattern=name)
        return read.output, by_path.output, by_name.output


@settings(max_examples=examples(150), deadline=None)
@example(name="[id].tsx", folder="app")
@example(name="a,b.txt", folder="[...slug]")
@example(name=" leading", folder="")
@example(name="~root", folder="")
@example(name="!not", folder="src")
@example(name="!*", folder="[id]")
@given(name=NAMES.filter(usable), folder=st.sampled_from(["", "[id]", "(group)", "{x}", "a b"]))
def test_a_name_on_disk_is_found_by_that_name(name: str, folder: str) -> None:
    read, by_path, by_name = asyncio.run(looked_for(name, folder))
    assert "what is in it" in read
    for answer in (by_path, by_name):
        assert not answer.startswith("No files")


@settings(max_examples=examples(100), deadline=None)
@example(line="Größe “x”", name="cp1252", before=b"", ignored=False)
@example(line="ERROR disk", name="utf-8", before=b"\0\0\0", ignored=False)
@example(line="日本語の文章です", name="cp932", before=b"", ignored=False)
@example(line="f(x) = a[0] * $5", name="utf-8", before=b"", ignored=True)
@given(
    line=LINES,
    name=st.just("utf-8"),
    before=st.sampled_from([b"", b"a\n", b"\xff\n", b"\0\n"]),
    ignored=st.booleans(),
)
def test_a_line_in_a_file_is_found_or_it_is_said_what_was_not_searched(
    line: str, name: str, before: bytes, ignored: bool
) -> None:
    async def searched() -> list[str]:
        with tempfile.TemporaryDirectory() as place:
            space = Workspace(Path(place).resolve())
            (space.root / ".git").mkdir()
            space.file(".gitignore", "out/\n")
            space.file("out/f.txt" if ignored else "src/f.txt", before + line.encode(name) + b"\n")
            path = "out/f.txt" if ignored else "src/f.txt"
            return [
                (await space.call(GREP, pattern=line, literal=True)).output,
                (await space.call(GREP, pattern=line, literal=True, path=path)).output,
            ]

    anywhere, named = asyncio.run(searched())
    assert "f.txt" in anywhere
    assert named.startswith(("out/f.txt:", "src/f.txt:"))


@given(
    name=st.text("ab\n\t\r\x1b\x07\u2028\u202e\u240a.", min_size=1, max_size=8).filter(usable),
    folder=st.sampled_from(["", "folder", "fol\nder"]),
)
@example(name="a\nb.txt: binary file matches", folder="")
@example(name="--\nb", folder="")
@example(name="b\n--", folder="fol\nder")
@settings(max_examples=examples(60), deadline=None)
def test_a_name_is_one_line_of_every_list_and_read_by_what_the_list_says(
    name: str, folder: str
) -> None:
    async def look() -> None:
        with tempfile.TemporaryDirectory() as place:
            space = Workspace(Path(place).resolve())
            path = space.root / folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("what is in it\n")
            found = (await space.call(GLOB, pattern="**")).output
            assert len(found.splitlines()) == 1
            hits = (await space.call(GREP, pattern="what")).output
            assert hits == f"{found}:1: what is in it"
            listed = (await space.call(LS, path=".")).output
            assert len(listed.splitlines()) == 1 + bool(folder)
            for shown in (found, os.fspath(path.relative_to(space.root))):
                read = await space.call(READ, path=shown)
                assert "what is in it" in read.output

    asyncio.run(look())


@pytest.mark.parametrize(
    "pattern",
    ["app/[id]/page.tsx", "app/[id]/*.tsx", "page.tsx", "**/[id]/page.tsx", "app/**/page.*"],
)
async def test_brackets_are_what_they_say(space: Workspace, pattern: str) -> None:
    space.file("app/[id]/page.tsx", "export\n")
    assert (await space.call(GLOB, pattern=pattern)).output == "app/[id]/page.tsx"
    assert (
        await space.call(GREP, pattern="export", glob=pattern)
    ).output == "app/[id]/page.tsx:1: export"


async def test_a_directory_named_as_a_wildcard_hides_no_other(space: Workspace) -> None:
    space.file("**/in.txt", "what is in it\n")
    space.file("src/a.py", "export\n")
    assert (await space.call(GLOB, pattern="**/*.py")).output == "src/a.py"
    assert (await space.call(GLOB, pattern="**/in.txt")).output == "**/in.txt"


@pytest.mark.parametrize(
    "name", ["Bild 10\u202fPM.txt", unicodedata.normalize("NFD", "Übung é.txt"), "ﬁle\u00a0１.txt"]
)
async def test_the_only_name_that_looks_alike_is_taken(space: Workspace, name: str) -> None:
    path = space.file(name, "hello\n")
    asked = unicodedata.normalize("NFKC", name)
    assert asked != name
    assert "hello" in (await space.call(READ, path=asked)).output
    assert (await space.call(GLOB, pattern=asked)).output == name
    assert (await space.call(GREP, pattern="hello", glob=asked)).output == f"{name}:1: hello"
    await space.call(EDIT, path=asked, edits=[{"old": "hello", "new": "bye"}])
    assert path.read_text() == "bye\n"
    prepared = await load_message(f'see @"{asked}"', space.root, None, lambda _data: "")  # type: ignore[arg-type]  # it names no entry
    assert isinstance(prepared.parts[1], FilePart)
    assert prepared.parts[1].text == "bye\n"


@pytest.mark.parametrize(
    ("there", "asked"),
    [("x².txt", "x2.txt"), ("①.md", "1.md"), ("report™.txt", "reportTM.txt"), ("½.md", "1⁄2.md")],
)
async def test_a_name_that_reads_otherwise_is_another_file(
    space: Workspace, there: str, asked: str
) -> None:
    path = space.file(there, "mine\n")
    with pytest.raises(ToolError, match="does not exist"):
        await space.call(READ, path=asked)
    await space.call(WRITE, path=asked, content="new\n")
    assert path.read_text() == "mine\n"
    assert (space.root / asked).read_text() == "new\n"


@pytest.mark.parametrize("invisible", ["\u200e", "\u200b", "\u2066", "\u034f", "\u00ad"])
async def test_a_name_is_found_without_its_invisible_characters(
    space: Workspace, invisible: str
) -> None:
    name = f"a{invisible}b.txt"
    space.file(name, "hello\n")
    for asked in ("ab.txt", listed_name(name)):
        assert "hello" in (await space.call(READ, path=asked)).output


async def test_several_names_that_look_alike_are_named(space: Workspace) -> None:
    space.file("a\u202fb.txt", "1\n")
    space.file("a\u00a0b.txt", "2\n")
    with pytest.raises(ToolError, match=r"a\\xa0b.txt and a\\u202fb.txt look the same"):
        await space.call(READ, path="a b.txt")
    assert "2" in (await space.call(READ, path=r"a\xa0b.txt")).output
    assert len((await space.call(GLOB, pattern="a b.txt")).output.split("\n")) == 2
    prepared = await load_message('see @"a b.txt"', space.root, None, lambda _data: "")  # type: ignore[arg-type]  # as above
    assert "look the same" in (prepared.problem or "")


async def test_names_outside_of_the_project_are_not_told_before_that_is_allowed(
    space: Workspace,
) -> None:
    outside = space.root.parent / "outside"
    outside.mkdir()
    for name in ("a\u202fb.txt", "a\u00a0b.txt"):
        (outside / name).write_text("x\n")
    needs = READ.needs(ReadInput(path=f"{outside}/a b.txt"), space.context())
    assert needs[-1].permission is Permission.EXTERNAL_DIRECTORY


async def test_none_names_what_git_ignores_links_and_repositories(space: Workspace) -> None:
    space.file(".gitignore", "build/\n")
    space.file("build/out.js", "needle\n")
    space.file("data.bin", b"\0\0needle\n")
    (space.root / "link.js").symlink_to("build/out.js")
    said = (await space.call(GLOB, pattern="out.js")).output
    assert said == "The only matches are files that searches skip (ignored by git: build/out.js)."
    assert (await space.call(GLOB, pattern="build/*.js")).output == "build/out.js"
    assert "links: link.js" in (await space.call(GLOB, pattern="link.js")).output
    space.file(".git/HEAD", "ref: x\n")
    assert "repository's own data: .git/HEAD" in (await space.call(GLOB, pattern="HEAD")).output
    assert (await space.call(GREP, pattern="needle")).output == (
        "No matches.\n[Binary, so not searched to the end: data.bin. To search a file, name it as path.]\n"
        "[Ignored by git, so not searched: build/out.js. To search a file, name it as path.]"
    )
    assert (await space.call(GREP, pattern="needle", path="data.bin")).metadata.count == 1
    assert (
        await space.call(GREP, pattern="needle", path="build")
    ).output == "build/out.js:1: needle"


async def test_a_regular_expression_without_a_match_is_looked_for_as_it_is_written(
    space: Workspace,
) -> None:
    space.file("a.py", "total = price[0] * (1 + rate)\n")
    answer = (await space.call(GREP, pattern="price[0] * (1 + rate)")).output
    assert answer.startswith("a.py:1: total")
    assert "as plain text" in answer


async def test_a_secret_is_not_found_by_what_it_is_not_shown_by(space: Workspace) -> None:
    space.file(".gitignore", ".env\n")
    space.file(".env", "TOKEN=needle\n")
    assert (await space.call(GREP, pattern="needle")).output == "No matches."


async def test_a_pattern_with_a_nul_is_searched(space: Workspace) -> None:
    space.file("a.bin", b"x\0y\n")
    assert (await space.call(GREP, pattern="x\0y", path="a.bin")).metadata.count == 1
    assert (await space.call(GREP, pattern="x\0y", path="a.bin", literal=True)).metadata.count == 1
