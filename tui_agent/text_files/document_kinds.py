"""Which documents and archives can be turned into text, by their first bytes and names. Pure."""

from tui_agent.lazy import LazyPattern
from tui_agent.pictures import MAX_PDF_BYTES, PDF, Picture

GOES_ON = "[It goes on.]"
"""The last line of a document's text that is not all of it."""

OFFICE = frozenset({"docx", "pptx", "xlsx", "odt", "ods", "odp"})
_FIRST_PAGE = LazyPattern(r"\[Page 1 of (\d{1,4})\]\n")
"""How the text of a PDF begins that can be read."""
_PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ")


def kind_of(name: str, start: bytes) -> str:
    """Return the kind of a document or archive (``pdf``, ``docx``, ``zip``, ``tar``), "" for none."""
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
    """Return a PDF to be sent as it is, None where it is too large or has more than ``most`` pages.

    ``text`` is what was made of it: one that can't be read here is none for a provider.
    """
    first = _FIRST_PAGE.match(text)
    if first is None or not 0 < int(first[1]) <= most or len(data) > MAX_PDF_BYTES:
        return None
    return Picture(data, PDF, pages=int(first[1]))
