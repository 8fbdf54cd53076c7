"""What a message names, and what travels with it because of that."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.agents import Harness, make_agent
from tests.support.knowledge import write
from tests.support.pdfs import pdf
from tests.support.scripted_client import Reply
from tests.support.texts import answered
from tests.tools.test_read import png
from tui_agent.agent import attachments
from tui_agent.agent.attachments import FILE_BYTES, Naming, Prepared, load_message
from tui_agent.agent.mentions import entry_mentions, escaped, file_mentions, mention_of, unescaped
from tui_agent.pictures import MAX_SOURCE_BYTES
from tui_agent.session.entries import (
    FilePart,
    ImagePart,
    TextPart,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.session.ids import short_id
from tui_agent.session.session import Session


def test_names_end_before_punctuation_and_may_be_quoted() -> None:
    text = 'see @a.py:10-40, (@b/c.md:0-2) and @"my notes.txt"; @d:9-3 @a.py:10-40 again, @C:x, not me@there'
    found = [(mention.path, mention.first, mention.last) for mention in file_mentions(text)]
    assert found == [
        ("a.py", 10, 40),
        ("b/c.md", 1, 2),
        ("my notes.txt", None, None),
        ("d", 9, 9),
        ("C:x", None, None),
    ]
    assert entry_mentions("as in #412, (#7) and #7, not PR#12 #x # 4 #5th #6-7 a/#8") == [412, 7]


@given(st.text(min_size=1).filter(lambda name: unescaped(name) == name))
@example("new\nline")
@example('say "hi".txt')
@example('"')
@example("what?")
@example("a b:1-2")
def test_every_name_can_be_mentioned(name: str) -> None:
    text = f"see {mention_of(name)} and x"
    assert [unescaped(mention.written) for mention in file_mentions(text)] == [name]


@pytest.mark.parametrize(
    "text",
    [
        "why is this slow?\n@property\ndef total(self): ...",
        "fix this\n  @Override public String toString() {\n",
        "what does `@memoize` do?",
    ],
)
def test_code_has_words_like_mentions(text: str) -> None:
    assert [mention.written for mention in file_mentions(text) if not mention.in_code] == []


@pytest.mark.parametrize(
    "text",
    [
        "@nosuch",
        "@nosuch what is it?",
        "look at\n@no.such\nand fix it",
        "(@nosuch)",
        "`x`\n- @nosuch",
    ],
)
def test_a_sentence_means_what_it_names(text: str) -> None:
    assert [mention.in_code for mention in file_mentions(text)] == [False]


async def load(harness: Harness, text: str, **arguments: Any) -> Prepared:
    ports = harness.agent.ports
    return await load_message(text, ports.cwd, harness.session, ports.put_blob, **arguments)


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return make_agent(tmp_path, [Reply("It is in views.py.")])


async def test_a_file_and_lines_of_one(harness: Harness, tmp_path: Path) -> None:
    write(tmp_path / "project/src/a.py", "".join(f"line {number}\n" for number in range(1, 51)))
    loaded = await load(harness, "@src/a.py:10-12 and @src/a.py:99 and @src/a.py")
    assert loaded.problem is None
    assert loaded.parts[1:3] == (
        FilePart(path="src/a.py", text="10\tline 10\n11\tline 11\n12\tline 12"),
        FilePart(path="src/a.py", text="[the file has no line 99]"),
    )
    assert isinstance(loaded.parts[3], FilePart)
    assert loaded.parts[3].text.startswith("line 1\nline 2\n")


async def test_a_directory_is_listed_without_what_git_ignores(
    harness: Harness, tmp_path: Path
) -> None:
    for name in ("web/a.ts", "web/ui/b.ts", "web/dist/c.js", ".git/HEAD"):
        write(tmp_path / "project" / name, "x")
    write(tmp_path / "project/.gitignore", "dist/\n")
    assert (await load(harness, "look into @web/")).parts[1] == FilePart(
        path="web/", text="ui/\na.ts"
    )


async def test_a_long_file_is_cut_and_a_binary_one_described(
    harness: Harness, tmp_path: Path
) -> None:
    write(tmp_path / "project/long.txt", "x" * (FILE_BYTES + 10))
    (tmp_path / "project/data.bin").write_bytes(b"\0" * 20)
    _text, long, binary = (await load(harness, "@long.txt @data.bin")).parts
    assert isinstance(long, FilePart)
    assert long.text.endswith("[10 more bytes; use read for the rest]")
    assert isinstance(binary, FilePart)
    assert binary.text == "[binary file of 20 bytes]"


async def test_an_image_goes_as_one_unless_it_is_too_large(
    harness: Harness, tmp_path: Path
) -> None:
    (tmp_path / "project/shot.png").write_bytes(png(3, 2))
    with (tmp_path / "project/huge.png").open("wb") as file:
        file.truncate(MAX_SOURCE_BYTES + 1)
    _text, image, huge = (await load(harness, "@shot.png @huge.png")).parts
    assert isinstance(image, ImagePart)
    assert (image.mime, image.width, image.height, image.path) == ("image/png", 3, 2, "shot.png")
    assert harness.agent.ports.blob(image.blob) == png(3, 2)
    assert isinstance(huge, FilePart)
    assert huge.text == "[not shown: it is a file of more than 40 MB]"
    assert huge.problem == "a file of more than 40 MB"


async def test_a_picture_is_known_by_its_bytes_and_a_text_that_is_named_like_one_is_sent(
    harness: Harness, tmp_path: Path
) -> None:
    (tmp_path / "project/photo.txt").write_bytes(png(3, 2))
    (tmp_path / "project/page.png").write_bytes(b"<!DOCTYPE html><html>Not found</html>")
    (tmp_path / "project/fake.png").write_bytes(b"only words\n" * 300)
    loaded = await load(harness, "@photo.txt @page.png @fake.png")
    _text, image, page, fake = loaded.parts
    assert isinstance(image, ImagePart)
    assert image.mime == "image/png"
    assert page == FilePart(path="page.png", text="<!DOCTYPE html><html>Not found</html>")
    assert fake == FilePart(path="fake.png", text="only words\n" * 300)
    assert loaded.problem is None


@pytest.mark.parametrize(
    ("name", "data", "what"),
    [
        ("cut.png", png(300, 300)[:60], "a picture that is damaged or cut off"),
        ("empty.png", b"", "an empty file"),
        ("photo.heic", b"\0\0\0\x18ftypheic\0\0\0\0", "a HEIC photo: save it as JPEG"),
        ("data.bin", b"\0" * 20, "a binary file of 20 bytes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_the_user_is_told_what_can_not_be_sent(
    harness: Harness, tmp_path: Path, name: str, data: bytes, what: str
) -> None:
    (tmp_path / "project" / name).write_bytes(data)
    loaded = await load(harness, f"@{name}")
    part = loaded.parts[1]
    assert isinstance(part, FilePart)
    assert part.problem == what
    assert what.removeprefix("a ") in part.text
    assert loaded.problem == f"Not attached, it is {what}: {name}."


async def test_what_does_not_exist_stays_text_and_is_said(harness: Harness, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "project/feed")
    text = "@alice look at @feed, @~nobody/x and @gone.md:3, not `@cache`"
    loaded = await load(harness, text)
    assert loaded.parts == (
        TextPart(text=text),
        FilePart(path="feed", text="[not attached: it can't be read]", problem="it can't be read"),
        FilePart(
            path="~nobody/x",
            text="[not attached: there is no such file]",
            problem="there is no such file",
        ),
        FilePart(
            path="gone.md:3",
            text="[not attached: there is no such file]",
            problem="there is no such file",
        ),
    )
    pipe, missing = "it can't be read: feed.", "there is no such file: ~nobody/x, gone.md:3."
    assert loaded.problem == f"Not attached, {pipe} Not attached, {missing}"


@pytest.mark.parametrize("name", ["new\nline.txt", "a\x1b[31mb", "cr\rx", "back\\nslash.txt"])
async def test_a_file_with_an_odd_name_can_be_attached(
    harness: Harness, tmp_path: Path, name: str
) -> None:
    (tmp_path / "project" / name).write_text("inside")
    written = mention_of(name)
    assert written.isprintable()
    loaded = await load(harness, f"see {written} now")
    assert loaded.problem is None
    assert loaded.parts[1:] == (FilePart(path=escaped(name), text="inside"),)


async def test_an_entry_is_named_with_a_line_of_it_and_how_to_get_all(harness: Harness) -> None:
    await harness.say("where is the view?")
    name = f"#{harness.path()[-1].id}"
    text = f'entry {name}, assistant: It is in views.py. — recall("{name}") shows all'
    loaded = await load(harness, f"why {name}? not #999 and not #1")
    assert loaded.parts[1:] == (FilePart(path=name, text=text),)


async def test_names_are_only_looked_for_where_the_user_wrote(
    harness: Harness, tmp_path: Path
) -> None:
    write(tmp_path / "project/secret.txt", "x")
    loaded = await load(harness, "diff says @secret.txt", naming=Naming("diff says"))
    assert loaded == Prepared((TextPart(text="diff says @secret.txt"),))


async def test_documents_and_notebooks_that_are_mentioned(harness: Harness, tmp_path: Path) -> None:
    (tmp_path / "project/a.pdf").write_bytes(b"%PDF-1.4\n")
    cells = '{"cells": [{"cell_type": "raw", "source": "one", "metadata": {}}], "nbformat": 4}'
    write(tmp_path / "project/a.ipynb", cells)
    loaded = await load(harness, "@a.pdf @a.ipynb")
    _text, document, notebook = loaded.parts
    assert isinstance(document, FilePart)
    assert document.text == "[document of 9 bytes; use read for its text]"
    assert document.problem == "a document, which the model can read with a tool"
    assert loaded.problem is None
    assert notebook == FilePart(path="a.ipynb", text="# %% [1] raw\none\n")


async def test_a_pdf_goes_as_it_is_but_for_one_that_holds_a_secret_or_is_long(
    harness: Harness, tmp_path: Path
) -> None:
    held = {
        "a": pdf("One", "Two"),
        "key": pdf("token: ghp_Zk3mQ8vT1xR7bN5cL2pW9dF4hJ6sA0yUeG8i"),
        "long": pdf(*["One"] * 21),
        "no": b"%PDF-1.4",
    }
    for name, data in held.items():
        (tmp_path / f"project/{name}.pdf").write_bytes(data)
    _text, short, *others = (await load(harness, "@a.pdf @key.pdf @long.pdf @no.pdf")).parts
    assert isinstance(short, ImagePart)
    assert (short.path, short.pages, short.kind) == ("a.pdf", 2, "document")
    assert harness.store.blob(short.blob) == held["a"]
    assert all("use read for its text" in part.text for part in others)


async def test_a_pdf_that_takes_long_to_look_through_is_named(
    harness: Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slow(*_arguments: object) -> str:
        await asyncio.Event().wait()
        return ""

    (tmp_path / "project/a.pdf").write_bytes(pdf("One"))
    monkeypatch.setattr(attachments, "PDF_SECONDS", 0.01)
    monkeypatch.setattr(attachments, "document_text", slow)
    _text, named = (await load(harness, "@a.pdf")).parts
    assert isinstance(named, FilePart)
    assert "use read for its text" in named.text


def another_session(harness: Harness) -> Session:
    """Return a session of the same directory, in which a login was fixed."""
    store = harness.store
    made = store.create_session(harness.session.info.cwd, title="Fix the login")
    other = Session(store, made.id, estimate=lambda _entry: 1)
    other.append(UserEntry(parts=(TextPart(text="fix the login"),)))
    full = store.put_blob(b"all of the long output")
    other.append(answered("I look.", ("a", "bash", "{}")))
    result = ToolResultEntry(
        call_id="a", tool="bash", status=ToolStatus.COMPLETED, output="all of …", full_output=full
    )
    other.append(result)
    other.append(answered("It was the cookie."))
    return other


async def test_a_block_of_another_session_comes_with_its_source(harness: Harness) -> None:
    await harness.say("where is the view?")
    other = another_session(harness)
    name = short_id(other.id)
    loaded = await load(harness, f"see @session:{name}#3 and @session#4, please")
    assert loaded.problem is None
    block, latest = loaded.parts[1:]
    source = f"From session “Fix the login” ({name}), block"
    assert block == FilePart(path=f"session:{name}#3", text=f"{source} #3:\nall of the long output")
    assert latest == FilePart(path=f"session:{name}#4", text=f"{source} #4:\nIt was the cookie.")
    assert not any(part.is_file for part in (block, latest))
    loaded = await load(harness, "go on as in @session")
    (overview,) = loaded.parts[1:]
    assert isinstance(overview, FilePart)
    assert "[User #1]: fix the login\n[Last answer #4]: It was the cookie." in overview.text


async def test_what_no_session_has_is_said_and_a_file_of_that_name_goes_first(
    harness: Harness, tmp_path: Path
) -> None:
    loaded = await load(harness, "see @session")
    assert loaded.problem == "Not attached, there is no such session: session."
    other = another_session(harness)
    loaded = await load(harness, f"see @session:{short_id(other.id)}#77 @session:ffffffff")
    assert loaded.problem is not None
    assert "that session has no entry #77 with text" in loaded.problem
    assert "there is no such session: session:ffffffff" in loaded.problem
    text = f"read @session:{short_id(other.id)}#1"
    brought = Naming(text, project=tmp_path / "project")
    loaded = await load(harness, text, naming=brought)
    assert loaded.parts == (TextPart(text=text),), "a project's command brings nothing over"
    write(tmp_path / "project/session", "a file")
    loaded = await load(harness, "see @session")
    assert loaded.parts[1:] == (FilePart(path="session", text="a file"),)
