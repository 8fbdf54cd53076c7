"""Converts documents to text, and lists archives: PDF, Office, OpenDocument, zip and tar.

Runs as a separate process with limited memory and time, which `tui_agent.processes.converters`
starts. It reads the document from standard input and writes the text to standard output. Links,
macros and addresses in the document are ignored.
"""

import io
import resource
import signal
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from tui_agent.text_files.document_kinds import TRUNCATED
from tui_agent.whole_numbers import whole_number

MAX_SECONDS = 30
"""Maximum processor time of a conversion, in seconds."""
MAX_MEMORY = 1 << 30
"""Maximum memory of the process, in bytes."""
MAX_TEXT_CHARS = 2_000_000
"""Maximum characters of the converted text."""
MAX_NAMES = 1_000
"""Maximum number of an archive's members that are listed."""
MAX_PART_BYTES = 64_000_000
"""Maximum size of an archive's member that is unpacked, in bytes."""

_SHEET_CELL = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def pages_of(data: bytes) -> Iterator[str]:
    """Yield, for each page of a PDF, a line with the page's number, followed by its text.

    For a page without text, or one that can't be read, the text is a note. For a PDF that needs a
    password, only a note is yielded.
    """
    from pypdf import PdfReader

    reader = PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        yield "[The PDF is encrypted and needs a password.]"
        return
    total = len(reader.pages)
    for number in range(1, total + 1):
        try:
            text = reader.pages[number - 1].extract_text().strip()
        except Exception as error:  # noqa: BLE001 - other pages may still be readable
            text = f"[This page can't be read: {type(error).__name__}.]"
        yield f"[Page {number} of {total}]\n{text or '[It has no text; it may be an image.]'}\n"


def _word(archive: zipfile.ZipFile) -> Iterator[str]:
    yield from _paragraphs(_part(archive, "word/document.xml"))


def _slides(archive: zipfile.ZipFile) -> Iterator[str]:
    names = [name for name in archive.namelist() if name.startswith("ppt/slides/slide")]
    for number, name in enumerate(sorted(names, key=lambda name: (len(name), name)), 1):
        yield f"[Slide {number} of {len(names)}]"
        yield from _paragraphs(_part(archive, name))


def _sheets(archive: zipfile.ZipFile) -> Iterator[str]:
    """Yield, for each sheet, a line with its number, followed by its rows.

    Cells are separated by tabs.
    """
    shared = []
    if "xl/sharedStrings.xml" in archive.namelist():
        rows = _part(archive, "xl/sharedStrings.xml").iter(f"{_SHEET_CELL}si")
        shared = [_shared_text(row) for row in rows]
    names = [name for name in archive.namelist() if name.startswith("xl/worksheets/sheet")]
    for number, name in enumerate(sorted(names, key=lambda name: (len(name), name)), 1):
        yield f"[Sheet {number} of {len(names)}]"
        for row in _part(archive, name).iter(f"{_SHEET_CELL}row"):
            yield "\t".join(_cell_text(cell, shared) for cell in row)


def _shared_text(string: ET.Element) -> str:
    return "".join(text.text or "" for text in string.iter(f"{_SHEET_CELL}t"))


def _cell_text(cell: ET.Element, shared: list[str]) -> str:
    if cell.get("t") == "inlineStr":
        return "".join(cell.itertext())
    value = cell.findtext(f"{_SHEET_CELL}v") or ""
    if cell.get("t") == "s":
        index = whole_number(value)
        if index is not None and index < len(shared):
            return shared[index]
    return value


def _open_document(archive: zipfile.ZipFile) -> Iterator[str]:
    for element in _part(archive, "content.xml").iter():
        if _name(element) in {"p", "h"}:
            yield "".join(element.itertext())


def _part(archive: zipfile.ZipFile, name: str) -> ET.Element:
    with archive.open(name) as part:
        data = part.read(MAX_PART_BYTES + 1)
    if len(data) > MAX_PART_BYTES:
        raise ValueError(f"{name} is too large")
    # The parser loads no external entities, and expat limits the expansion of internal ones.
    return ET.fromstring(data)  # noqa: S314


def _paragraphs(root: ET.Element) -> Iterator[str]:
    for element in root.iter():
        if _name(element) != "p":
            continue
        text = ""
        for part in element.iter():
            match _name(part):
                case "tab":
                    text += "\t"
                case "t":
                    text += part.text or ""
        yield text


def _name(element: ET.Element) -> str:
    """Return an XML element's name without its namespace."""
    return element.tag.rpartition("}")[2]


def _zip_names(archive: zipfile.ZipFile) -> Iterator[str]:
    for row in archive.infolist():
        yield f"{row.file_size:>12,}  {_plain(row.filename)}"


def _tar_names(data: bytes) -> Iterator[str]:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r|*") as archive:
        for row in archive:
            end = ""
            if row.isdir():
                end = "/"
            elif row.linkname:
                end = f" -> {_plain(row.linkname)}"
            yield f"{row.size:>12,}  {_plain(row.name)}{end}"


def lines_of(kind: str, data: bytes) -> Iterator[str]:
    """Yield the text of a document, or a line with size and name for each member of an archive.

    ``kind`` is a result of `document_kinds.kind_of`. A yielded text may have several lines. Raises
    various errors for invalid data.
    """
    if kind == "pdf":
        yield from pages_of(data)
        return
    if kind == "tar":
        yield from _tar_names(data)
        return
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        match kind:
            case "docx":
                yield from _word(archive)
            case "pptx":
                yield from _slides(archive)
            case "xlsx":
                yield from _sheets(archive)
            case "odt" | "ods" | "odp":
                yield from _open_document(archive)
            case _:
                yield from _zip_names(archive)


def _took_too_long(_number: int, _frame: object) -> None:
    raise TimeoutError(f"it takes more than {MAX_SECONDS} s")


def _plain(name: str) -> str:
    """Return the name of an archive's member with U+FFFD in place of unprintable characters."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in name)


def main() -> None:
    """Convert the document on standard input to text on standard output.

    The program's arguments are the document's kind and the maximum number of lines. A shortened text
    ends with `TRUNCATED`; after an error, the last line says what went wrong.
    """
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS + 2))
    signal.signal(signal.SIGXCPU, _took_too_long)
    kind = sys.argv[1]
    wanted = int(sys.argv[2])
    is_archive = kind in {"zip", "tar"}
    left = MAX_TEXT_CHARS
    lines = 0
    out = sys.stdout.buffer
    try:
        for number, line in enumerate(lines_of(kind, sys.stdin.buffer.read())):
            if left <= 0 or lines >= wanted or (is_archive and number >= MAX_NAMES):
                out.write(f"{TRUNCATED}\n".encode())
                break
            shown = line[:left]
            left -= len(shown)
            lines += shown.count("\n") + 1
            out.write(f"{shown}\n".encode("utf-8", "replace"))
            out.flush()
    except Exception as error:  # noqa: BLE001 - the document may be anything
        out.write(f"[The rest can't be read: {type(error).__name__}: {error}]\n".encode())


if __name__ == "__main__":
    main()
