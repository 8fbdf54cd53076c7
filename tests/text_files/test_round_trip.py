"""Any bytes as a text file, through read, edit and read again."""

import asyncio
import codecs
import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.support.thoroughness import examples
from tests.support.tooling import Workspace
from tui_agent.errors import ToolError
from tui_agent.tools.edit import EditTool
from tui_agent.tools.read import ReadTool
from tui_agent.tools.write import WriteTool

READ, EDIT, WRITE = ReadTool(), EditTool(), WriteTool()
MARK = "the place to change"
PIECES = (
    *(
        text.encode(name)
        for name in ("utf-8", "cp1252")
        for text in ("é", "Größe\n", "“quoted” €\r\n", "it’s\n")
    ),
    *("日本語の文章\n".encode(name) for name in ("utf-8", "cp932", "euc_jp", "gb18030")),
    *("проверка текста\n".encode(name) for name in ("utf-8", "cp1251", "koi8_r")),
    *(
        b"\r",
        b"\n",
        b"\f",
        b"\x85",
        b"\xff",
        b"\xed\xa0\x80",
        b"# -*- coding: latin-1 -*-\n",
        b"\xe2\x80\xa8",
        b"a = 1\n",
    ),
)
BYTES = st.lists(st.one_of(st.sampled_from(PIECES), st.binary(max_size=12)), max_size=8).map(
    b"".join
)
NEW = st.text('ab ="é“€→日я\n', min_size=1, max_size=12)
WIDE = (
    ("utf-16-le", codecs.BOM_UTF16_LE),
    ("utf-16-be", codecs.BOM_UTF16_BE),
    ("utf-32-le", codecs.BOM_UTF32_LE),
)


async def changed(data: bytes, new: str) -> tuple[bytes, list[str], str]:
    """Return the file after an edit, the names of the encodings it may have, and what was answered; "" if refused."""
    with tempfile.TemporaryDirectory() as folder:
        space = Workspace(Path(folder).resolve())
        path = space.file("f.txt", data)
        await space.call(READ, path="f.txt")
        try:
            answer = await space.call(EDIT, path="f.txt", edits=[{"old": MARK, "new": new}])
        except ToolError:
            return path.read_bytes(), "", ""
        again = await space.call(READ, path="f.txt")
        return path.read_bytes(), answer.output, again.output


@settings(max_examples=examples(150), deadline=None)
@example(before=b'first = 1\nsecond = "Zo\xc3\xa9"\nraw \xff\n', after=b"\n", new="Zoé")
@example(before="price = “5 €”\n".encode("cp1252"), after=b"", new="“6 €”")
@example(before=b"", after=b"\x85\x85\x85\x85", new="é")
@given(before=BYTES, after=BYTES, new=NEW)
def test_bytes_outside_an_edit_are_as_they_were(before: bytes, after: bytes, new: str) -> None:
    data = before + MARK.encode() + after
    assume(not data.startswith((b"GIF8", b"%PDF-", b"\x89PNG", b"\xff\xd8\xff", b"RIFF")))
    now, answer, again = asyncio.run(changed(data, new))
    if not answer:
        assert now == data
        return
    assert now.startswith(before)
    assert now.endswith(after)
    for line in filter(None, new.split("\n")):
        assert line.rstrip() in answer
        assert line.rstrip() in again


@pytest.mark.parametrize(("name", "mark"), WIDE)
def test_wide_text_keeps_its_mark_and_its_encoding(name: str, mark: bytes) -> None:
    data = mark + f"wörld\r\n{MARK}\r\n日本\n".encode(name)
    now, answer, again = asyncio.run(changed(data, "→ here"))
    assert now == mark + "wörld\r\n→ here\r\n日本\n".encode(name)
    assert "2\t→ here" in answer
    assert "2\t→ here" in again


async def test_an_edit_takes_odd_bytes_as_they_were_shown(space: Workspace) -> None:
    path = space.file("s.txt", b"Zo\xc3\xa9\nraw \xff end\nlast\n")
    shown = await space.call(READ, path="s.txt")
    assert "2\traw \ufffd end" in shown.output
    await space.call(
        EDIT,
        path="s.txt",
        edits=[{"old": "raw \ufffd end\nlast", "new": "raw: \ufffd end\nlast é"}],
    )
    assert path.read_bytes() == b"Zo\xc3\xa9\nraw: \xff end\nlast \xc3\xa9\n"
    with pytest.raises(ToolError, match="keep all of them, or none"):
        await space.call(
            EDIT, path="s.txt", edits=[{"old": "raw: \ufffd end", "new": "\ufffd\ufffd"}]
        )
    await space.call(EDIT, path="s.txt", edits=[{"old": "raw: \ufffd end", "new": "gone"}])
    assert path.read_bytes() == b"Zo\xc3\xa9\ngone\nlast \xc3\xa9\n"


async def test_a_file_that_is_written_whole_keeps_its_odd_bytes_or_is_refused(
    space: Workspace,
) -> None:
    path = space.file("s.txt", b"Zo\xc3\xa9\nraw \xff\n")
    await space.call(READ, path="s.txt")
    await space.call(WRITE, path="s.txt", content="Zoé\nmore\nraw \ufffd\n")
    assert path.read_bytes() == b"Zo\xc3\xa9\nmore\nraw \xff\n"
    with pytest.raises(ToolError, match="bytes that are not text"):
        await space.call(WRITE, path="s.txt", content="\ufffd\ufffd\n")
    assert path.read_bytes() == b"Zo\xc3\xa9\nmore\nraw \xff\n"


async def test_new_files_are_written_as_editorconfig_says(space: Workspace) -> None:
    space.file(
        ".editorconfig",
        "root = true\n[*.{txt,csv}]\ncharset = latin1\n[special.txt]\ncharset = utf-8-bom\n",
    )
    await space.call(WRITE, path="deep/a.txt", content="é\n")
    await space.call(WRITE, path="special.txt", content="é\n")
    await space.call(WRITE, path="b.md", content="é\n")
    assert (space.root / "deep/a.txt").read_bytes() == b"\xe9\n"
    assert (space.root / "special.txt").read_bytes() == b"\xef\xbb\xbf\xc3\xa9\n"
    assert (space.root / "b.md").read_bytes() == b"\xc3\xa9\n"
    with pytest.raises(ToolError, match="has no '→'"):
        await space.call(WRITE, path="c.csv", content="→\n")


async def test_declared_encodings_are_written(space: Workspace) -> None:
    path = space.file("a.py", b"# -*- coding: latin-1 -*-\nx = 1\n")
    await space.call(EDIT, path="a.py", edits=[{"old": "x = 1", "new": "x = 'é'"}])
    assert path.read_bytes() == b"# -*- coding: latin-1 -*-\nx = '\xe9'\n"
    assert "x = 'é'" in (await space.call(READ, path="a.py")).output


async def test_a_file_of_ascii_takes_the_encoding_that_a_change_declares(space: Workspace) -> None:
    path = space.file("a.py", "x = 1\n")
    edits = [{"old": "x = 1", "new": "# coding: latin-1\nx = 'é'"}]
    await space.call(EDIT, path="a.py", edits=edits)
    assert path.read_bytes() == b"# coding: latin-1\nx = '\xe9'\n"
    space.file(".editorconfig", "[*]\ncharset = utf-8-bom\n")
    plain = space.file("b.txt", "x\n")
    await space.call(EDIT, path="b.txt", edits=[{"old": "x", "new": "é"}])
    assert plain.read_bytes() == "é\n".encode()
    marked = space.file("c.txt", b"\xef\xbb\xbf")
    await space.call(READ, path="c.txt")
    await space.call(WRITE, path="c.txt", content="é\n")
    assert marked.read_bytes() == b"\xef\xbb\xbf\xc3\xa9\n"
