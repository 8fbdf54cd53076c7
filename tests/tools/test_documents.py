"""Reading PDF files, Office documents, archives and notebooks, and changing the cells of a notebook."""

import io
import json
import tarfile
import zipfile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.pdfs import locked, pdf
from tests.support.tooling import Workspace
from tui_agent.errors import ToolError
from tui_agent.text_files.document_kinds import kind_of
from tui_agent.text_files.notebook import opened
from tui_agent.tools.edit import EditTool
from tui_agent.tools.read import ReadTool

READ, EDIT = ReadTool(), EditTool()
WORDS = '<w:document xmlns:w="w"><w:p><w:t>Dear</w:t><w:tab/><w:t>Ada</w:t></w:p></w:document>'
SHEET = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'


def packed(**parts: str | bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name.replace("__", "/").replace("_xml", ".xml"), content)
    return out.getvalue()


async def read(space: Workspace, name: str, data: bytes, **arguments: Any) -> str:
    space.file(name, data)
    return (await space.call(READ, path=name, **arguments)).output


async def test_the_pages_of_a_pdf(space: Workspace) -> None:
    said = await read(space, "a.pdf", pdf("First words", "Second words"))
    assert said.splitlines()[:2] == ["1\t[Page 1 of 2]", "2\tFirst words"]
    assert "[Page 2 of 2]" in said
    assert (await read(space, "a.pdf", pdf("One", "Two"), offset=5)).splitlines()[0] == "5\tTwo"


async def test_a_pdf_without_text_or_with_a_password_says_so(space: Workspace) -> None:
    assert "[It has no text; it may be an image.]" in await read(space, "a.pdf", pdf(""))
    assert "needs a password" in await read(space, "b.pdf", locked(pdf("hidden")))


KEY = "token: ghp_Zk3mQ8vT1xR7bN5cL2pW9dF4hJ6sA0yUeG8i"


@pytest.mark.parametrize(
    ("data", "arguments", "pages"),
    [
        (pdf("One", "Two"), {}, 2),
        (pdf("One", "Two", "Three", "Four"), {}, 0),
        (pdf("One", "Two"), {"offset": 3}, 0),
        (pdf("One", "Two"), {"limit": 2}, 0),
        (pdf(KEY), {}, 0),
        (locked(pdf("hidden")), {}, 0),
        (b"%PDF-1.4\n", {}, 0),
        (b"%PDF-1.4\n[Page 1 of 2]\n", {}, 0),
        (pdf("One") + b"\0" * 5_000_000, {}, 0),
    ],
    ids=("whole", "long", "from", "some", "secret", "locked", "empty", "says pages", "large"),
)
async def test_a_pdf_goes_as_it_is_where_the_model_takes_all_of_it(
    space: Workspace, data: bytes, arguments: dict[str, Any], pages: int
) -> None:
    space.document_pages = 3
    space.file("a.pdf", data)
    given = await space.call(READ, path="a.pdf", **arguments)
    assert [part.pages for part in given.attachments] == [pages] * bool(pages)
    assert all(space.blobs[part.blob] == data for part in given.attachments)
    assert given.output, "its text stands for it where it can't be sent"
    space.document_pages = 0
    assert not (await space.call(READ, path="a.pdf", **arguments)).attachments


async def test_office_documents(space: Workspace) -> None:
    assert "1\tDear\tAda" in await read(space, "a.docx", packed(word__document_xml=WORDS))
    sheet = f'<w {SHEET}><row><c t="s"><v>0</v></c><c><v>7</v></c></row></w>'
    shared = f"<s {SHEET}><si><t>Total</t></si></s>"
    book = packed(xl__sharedStrings_xml=shared, xl__worksheets__sheet1_xml=sheet)
    assert "Total\t7" in await read(space, "a.xlsx", book)
    text = '<d xmlns:t="t"><t:h>Title</t:h><t:p>Words</t:p></d>'
    assert "1\tTitle\n2\tWords" in await read(space, "a.odt", packed(content_xml=text))


async def test_what_is_in_an_archive(space: Workspace) -> None:
    said = await read(space, "a.whl", packed(pkg__code="x" * 2_000, evil="y"))
    assert "2,000  pkg/code" in said
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        link = tarfile.TarInfo("out\nside")
        link.type = tarfile.SYMTYPE
        link.linkname = "/etc/passwd"
        archive.addfile(link)
    assert "out\ufffdside -> /etc/passwd" in await read(space, "a.tar.gz", out.getvalue())


async def test_hostile_documents_cost_little_and_say_why(space: Workspace) -> None:
    bomb = packed(word__document_xml=b"<a>" + b" " * 100_000_000 + b"</a>")
    assert "is too large" in await read(space, "bomb.docx", bomb)
    entities = "".join(
        f'<!ENTITY e{level} "{f"&e{level - 1};" * 20 if level else "ha" * 20}">'
        for level in range(9)
    )
    laughs = f"<!DOCTYPE a [{entities}]><a>&e8;</a>"
    assert "can't be read" in await read(space, "laughs.docx", packed(word__document_xml=laughs))
    outside = '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a><p><t>&x;</t></p></a>'
    assert "root:" not in await read(space, "x.docx", packed(word__document_xml=outside))
    names = packed(**{f"name{number}": "" for number in range(1_500)})
    assert "[The rest is omitted.]" in await read(space, "many.zip", names)


@given(st.text(max_size=20), st.binary(max_size=300))
def test_any_bytes_have_a_kind_or_none(name: str, data: bytes) -> None:
    assert kind_of(name, data) in {
        "",
        "pdf",
        "zip",
        "tar",
        "docx",
        "pptx",
        "xlsx",
        "odt",
        "ods",
        "odp",
    }


# -- notebooks ------------------------------------------------------------------------------------


def cell(kind: str, source: str, **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "cell_type": kind,
        "id": f"id{len(source)}",
        "metadata": {"tags": [kind]},
    }
    if kind == "code":
        made |= {"execution_count": 3, "outputs": []}
    return made | {"source": source.splitlines(keepends=True)} | more


def notebook(*cells: dict[str, Any]) -> str:
    values = {"cells": list(cells), "metadata": {"x": 1}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(values, indent=1, ensure_ascii=False) + "\n"


PRINTED = {"output_type": "stream", "name": "stdout", "text": ["42\n"]}
DRAWN = {
    "output_type": "display_data",
    "metadata": {},
    "data": {"image/png": "QUJD", "text/plain": ["<Figure>"]},
}
SAMPLE = notebook(
    cell("markdown", "# Title\n\nWords"),
    cell("code", "print(6 * 7)", outputs=[PRINTED, DRAWN]),
    cell("code", "x = 1\n"),
)


async def test_a_notebook_is_read_as_cells_with_outputs(space: Workspace) -> None:
    said = await read(space, "a.ipynb", SAMPLE.encode())
    lines = [line.partition("\t")[2] for line in said.splitlines()]
    assert lines == [
        "# %% [1] markdown", "# Title", "", "Words",
        "# %% [2] code", "print(6 * 7)", "#: 42", "#: <Figure>", "#: [image/png]",
        "# %% [3] code", "x = 1", "",
    ]  # fmt: skip


async def test_changing_a_cell_keeps_everything_else(space: Workspace) -> None:
    path = space.file("a.ipynb", SAMPLE)
    said = (await space.call(EDIT, path="a.ipynb", old="x = 1", new="x = 2\ny = 3")).output
    assert "+2 -1" in said
    now = json.loads(path.read_text())
    before = json.loads(SAMPLE)
    assert now["cells"][:2] == before["cells"][:2]
    assert now["cells"][2] == before["cells"][2] | {
        "source": ["x = 2\n", "y = 3\n"],
        "execution_count": None,
    }
    assert path.read_text().startswith('{\n "cells": [\n  {\n   "cell_type"')


async def test_cells_are_added_moved_and_removed(space: Workspace) -> None:
    path = space.file("a.ipynb", SAMPLE)
    new = "# %% code\nimport os\n# %% [3] code"
    await space.call(EDIT, path="a.ipynb", old="# %% [3] code", new=new)
    await space.call(EDIT, path="a.ipynb", old="# %% [1] markdown\n# Title\n\nWords\n", new="")
    cells = json.loads(path.read_text())["cells"]
    assert [row["source"] for row in cells] == [["print(6 * 7)"], ["import os"], ["x = 1\n"]]
    assert cells[0]["outputs"] == [PRINTED, DRAWN]
    assert len(cells[1]["id"]) == 8
    with pytest.raises(ToolError, match="must begin with a line like"):
        await space.call(EDIT, path="a.ipynb", old="# %% [1] code\n", new="")


async def test_an_edit_as_the_notebook_is_on_disk_still_works(space: Workspace) -> None:
    path = space.file("a.ipynb", SAMPLE)
    await space.call(EDIT, path="a.ipynb", old='"print(6 * 7)"', new='"print(7)"')
    assert json.loads(path.read_text())["cells"][1]["source"] == ["print(7)"]


async def test_a_notebook_with_lines_like_its_marks_is_shown_as_it_is(space: Workspace) -> None:
    marked = notebook(cell("code", "# %% code\nx"))
    assert '"cells"' in await read(space, "a.ipynb", marked.encode())


@given(
    st.lists(st.tuples(st.sampled_from(["code", "markdown", "raw"]), st.text(max_size=80))),
    st.data(),
)
def test_any_notebook_comes_back_as_it_was(
    rows: list[tuple[str, str]], data: st.DataObject
) -> None:
    raw = notebook(*(cell(kind, source) for kind, source in rows))
    found = opened("a.ipynb", raw)
    if found is None:
        return
    assert found.changed(found.text) == raw
    chosen = data.draw(st.integers(0, len(rows) - 1))
    head = f"# %% [{chosen + 1}] {rows[chosen][0]}\n"
    now = json.loads(found.changed(found.text.replace(head, f"{head}new line\n", 1)))["cells"]
    before = json.loads(raw)["cells"]
    assert "".join(now[chosen]["source"]).startswith("new line\n")
    assert [row for at, row in enumerate(now) if at != chosen] == [
        row for at, row in enumerate(before) if at != chosen
    ]
