"""Which documents and archives can be turned into text, by their first bytes and names. Pure."""

GOES_ON = "[It goes on.]"
"""The last line of a document's text that is not all of it."""

OFFICE = frozenset({"docx", "pptx", "xlsx", "odt", "ods", "odp"})
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
