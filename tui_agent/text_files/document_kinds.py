"""Recognises documents and archives that can be converted to text, by bytes and name. Pure."""

from tui_agent.lazy import LazyPattern
from tui_agent.pictures import MAX_PDF_BYTES, PDF, Picture

TRUNCATED = "[The rest is omitted.]"
"""Last line of the converted text if the text was cut."""

OFFICE = frozenset({"docx", "pptx", "xlsx", "odt", "ods", "odp"})
_FIRST_PAGE = LazyPattern(r"\[Page 1 of (\d{1,4})\]\n")
"""Matches the first line of a PDF's extracted text; group 1 is the page count."""
_PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ")


def kind_of(name: str, start: bytes) -> str:
    """Return the kind of a document or archive: ``pdf``, a kind in `OFFICE`, ``zip`` or ``tar``.

    Returns "" for other files. ``name`` is the file's name, ``start`` its first bytes, at least
    262.
    """
    plain = name.lower()
    suffix = plain.rpartition(".")[2]
    if start.startswith(b"%PDF-"):
        return "pdf"
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return suffix if suffix in OFFICE else "zip"
    is_named = ".tar." in plain or suffix in {"tgz", "tbz2", "txz"}
    if start[257:262] == b"ustar" or (is_named and start.startswith(_PACKED)):
        return "tar"
    return ""


def pdf_of(data: bytes, text: str, most: int) -> Picture | None:
    """Return a PDF as an attachment that is sent to a provider unchanged.

    Returns None if the PDF has no pages or more than ``most``, is larger than `MAX_PDF_BYTES`, or
    could not be read because it is damaged or encrypted. ``data`` is the whole file. ``text`` is
    the text converted from it, whose first line gives the number of pages.
    """
    first = _FIRST_PAGE.match(text)
    if first is None or not 0 < int(first[1]) <= most or len(data) > MAX_PDF_BYTES:
        return None
    return Picture(data, PDF, pages=int(first[1]))
