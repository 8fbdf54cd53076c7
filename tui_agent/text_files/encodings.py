"""Detects the encoding of text files, and converts their bytes to text and back. Pure.

A file is UTF-8 unless one of these shows otherwise, in this order: a byte order mark; a declared
encoding (PEP 263, XML, HTML, CSS, ``.editorconfig``) in which the bytes are valid, unless the file
is valid UTF-8 with characters beyond ASCII; invalid UTF-8 that makes sense as windows-1252 or,
judged by charset-normalizer, in another encoding. Bytes that can't be decoded are kept as lone
surrogates (``surrogateescape``).
"""

import codecs
import re

from tui_agent.lazy import LazyPattern, frozen
from tui_agent.word_lists import in_order

SAMPLE_BYTES = 64 * 1024
"""Number of bytes at the start of a file that are searched for a declared encoding, and for a NUL,
which makes a file binary unless it is UTF-16 or UTF-32."""
DETECTED_BYTES = 10_000_000
"""Number of bytes at the start of a file from which the encoding is detected. Tools don't change
larger files."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_WIDE = frozenset({"utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"})
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b")) + b"\x7f"
_LATIN_SHARE = 0.5
_LEAST_ZEROS = 4
"""Minimum number of zero bytes, at every other position, that show UTF-16 without a byte order
mark."""
_CONTROL_SHARE = 0.02
_FEW_CONTROLS = 8
"""A file that isn't valid UTF-8 is binary if it contains more control characters than this number,
and than this share of its bytes."""

_COMMENT = LazyPattern(rb"(?:[ \t\f]*#|.{0,40}-\*-|.{0,20}vim?:).{0,200}?coding[:=][ \t]*([-\w.]+)")
_XML = LazyPattern(rb"\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([-\w.:]+)")
_CSS = LazyPattern(rb"@charset \"([-\w.:]+)\";")
_HTML = LazyPattern(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?([-\w.:]+)", re.IGNORECASE)
_HTML_BYTES = 1024
_HTML_START = LazyPattern(rb"\s*(?:<!|<html|<head|<meta)", re.IGNORECASE)

_CONTROL = LazyPattern("[\x00-\x07\x0b\x0e-\x1a\x1c-\x1f\x7f]")
_ODD = LazyPattern("[\udc80-\udcff]")
_SHOWN_AS_ODD = LazyPattern("[\udc80-\udcff\ufffd]")
_NOT_ASCII = LazyPattern("[^\x00-\x7f\udc80-\udcff]")
_HIGH_RUN = LazyPattern(rb"[\x80-\xff]+")
_HIGH_WORD = LazyPattern(r"[^\W\d_]*[^\x00-\x7f][^\W\d_]*")
_INSIDE_WORD = LazyPattern(r"(?<=[^\W\d_])[^\w\s\x00-\x7f’·–—­°][^\W\d_]")
_UMLAUTS = frozenset("äöüÄÖÜß")
"""Letters beyond ASCII that are common in German. If a text contains only these, its runs of bytes
over 127 may be longer than `_MIXED_RUN`."""
_WORDS = frozenset("àÀéÉèÈóÓòöÖåÅøØáÁíÍúÚôêëßæÆ")
"""Letters beyond ASCII that can be a word of their own in a western language."""
_MIXED_RUN = 2
"""If runs of bytes over 127 are shorter than this, on average, a text seems to be in a western
language."""
_GUESSED_BYTES = 6
"""Minimum number of bytes over 127 that is needed to guess an encoding other than windows-1252."""
_EVIDENCE_BYTES = 8_192
_SHORT_EVIDENCE = 512
_SUPERSETS = {"shift_jis": "cp932", "gb2312": "gbk", "euc_kr": "cp949", "ks_c_5601-1987": "cp949"}
"""Declared encodings, each with the larger encoding that is used instead, as in browsers."""
_WEB_NAMES = {
    **{name: name for name in ("euc-jp", "gb18030", "gbk", "big5", "koi8-r", "koi8-u")},
    "cp932": "shift_jis",
    "cp949": "euc-kr",
    "cp866": "ibm866",
    "mac-roman": "macintosh",
    "utf-16-le": "utf-16le",
    "utf-16-be": "utf-16be",
    "iso2022-jp": "iso-2022-jp",
}
_ALWAYS_ASCII = "\t\n az09AZ{}"
_GUESSED = in_order(
    """
    cp932 euc_jp gb18030 big5 cp949 cp1251 koi8_r cp866 cp1250 iso8859_2 cp1253 cp1254 cp1255 cp1256
    """
)
"""Encodings that some editors and systems still write. charset-normalizer chooses one of them."""


@frozen
class Encoding:
    """The encoding of a text file: Python's name for it, and the byte order mark (b"" for none)."""

    name: str = "utf-8"
    bom: bytes = b""

    @property
    def is_wide(self) -> bool:
        """Whether a line feed takes more than one byte in this encoding."""
        return self.name in _WIDE

    def decode(self, data: bytes) -> str:
        """Return the text of a whole file's bytes, without the byte order mark.

        Undecodable bytes become lone surrogates or, in UTF-16 and UTF-32, U+FFFD.
        """
        body = data.removeprefix(self.bom)
        try:
            return body.decode(self.name, self._errors)
        except UnicodeDecodeError:
            return body.decode(self.name, "replace")

    def decode_start(self, data: bytes) -> str:
        """Return the text of a file's first bytes as `decode` does.

        An incomplete character at the end is omitted.
        """
        decoder = codecs.getincrementaldecoder(self.name)
        body = data.removeprefix(self.bom)
        try:
            return decoder(self._errors).decode(body)
        except UnicodeDecodeError:
            return decoder("replace").decode(body)

    def encode(self, text: str) -> bytes:
        """Return the bytes of a whole file with this text, including the byte order mark.

        Raises UnicodeEncodeError if the encoding lacks a character.
        """
        return self.bom + text.encode(self.name, self._errors)

    @property
    def web_name(self) -> str:
        """The encoding's name in ripgrep and browsers; "" for UTF-8, or if they don't know it."""
        name = self.name.replace("_", "-")
        if name.startswith("cp125"):
            return f"windows-{name.removeprefix('cp')}"
        return _WEB_NAMES.get(
            name, name.replace("iso8859", "iso-8859") if name.startswith("iso8859") else ""
        )

    @property
    def _errors(self) -> str:
        return "surrogatepass" if self.is_wide else "surrogateescape"


UTF_8 = Encoding()
_NEW_FILES = {
    "utf-8-bom": Encoding("utf-8", codecs.BOM_UTF8),
    "utf-16le": Encoding("utf-16-le", codecs.BOM_UTF16_LE),
    "utf-16be": Encoding("utf-16-be", codecs.BOM_UTF16_BE),
}
"""Values of ``charset`` in ``.editorconfig`` for which a new file begins with a byte order mark."""


def detect(data: bytes, *, whole: bool = True, declared: str = "") -> Encoding | None:
    """Return the encoding of a file, None if it is binary.

    Args:
        data: the file's bytes, or its first bytes.
        whole: whether ``data`` is the whole file. If not, its last character may be incomplete.
        declared: the encoding declared outside the file, as in ``.editorconfig``; "" for none. A
            declaration in the file takes precedence.
    """
    for bom, name in _BOMS:
        if data.startswith(bom):
            return Encoding(name, bom)
    named = _declared(data) or python_name(declared)
    if b"\0" in data[:SAMPLE_BYTES]:
        if named in _WIDE:
            return Encoding(named)
        return _wide_without_mark(data, whole=whole)
    if named in _WIDE or (named != "utf-8" and not _decodes(data, named or "utf-8", whole=whole)):
        named = ""
    if data.isascii():
        return Encoding(named or "utf-8")
    return _detect_beyond_ascii(data, named, whole=whole)


def _wide_without_mark(data: bytes, *, whole: bool) -> Encoding | None:
    """Return the encoding of bytes that are UTF-16 without a byte order mark, None if they aren't.

    Some Windows programs write such files. They are recognised by the zero bytes next to Latin
    letters.
    """
    sample = data[: SAMPLE_BYTES // 2 * 2]
    for name, high in (("utf-16-le", sample[1::2]), ("utf-16-be", sample[0::2])):
        is_mostly_latin = high.count(0) >= max(len(high) * _LATIN_SHARE, _LEAST_ZEROS)
        if not is_mostly_latin or _CONTROL.search(sample.decode(name, "ignore")):
            continue
        if _decodes(data, name, whole=whole):
            return Encoding(name)
    return None


def _detect_beyond_ascii(data: bytes, named: str, *, whole: bool) -> Encoding | None:
    if _decodes(data, "utf-8", whole=whole):
        return UTF_8
    controls = len(data) - len(data.translate(None, _CONTROLS))
    if controls > max(len(data) * _CONTROL_SHARE, _FEW_CONTROLS):
        return None
    text = data.decode("utf-8", "surrogateescape")
    is_mostly_utf_8 = len(_NOT_ASCII.findall(text)) >= len(_ODD.findall(text))
    if not named and is_mostly_utf_8:
        return UTF_8
    return Encoding(named or _guessed(data))


def decode_text(data: bytes) -> str | None:
    """Return the text of a whole file's bytes in the detected encoding, None if they are binary."""
    encoding = detect(data)
    if encoding is None:
        return None
    return encoding.decode(data)


def user_text(data: bytes, *, whole: bool = True) -> str:
    """Decode any bytes to text; each NUL and each undecodable byte becomes U+FFFD.

    The encoding is detected. Unless ``data`` is the ``whole`` file, an incomplete character at its
    end is omitted.
    """
    encoding = detect(data, whole=whole) or UTF_8
    if whole:
        text = encoding.decode(data)
    else:
        text = encoding.decode_start(data)
    return odd_bytes_shown(text.replace("\0", "\ufffd"))


def settings_text(data: bytes) -> str:
    """Return the text of a settings file's bytes.

    Raises:
        ValueError: the file is binary, or contains undecodable bytes; the message names the first
            such line.
    """
    if data.isascii() and b"\0" not in data:
        return data.decode("ascii")
    text = decode_text(data)
    if text is None:
        raise ValueError("it is not a text file")
    odd = _ODD.search(text)
    if odd is not None:
        raise ValueError(
            f"line {text.count(chr(10), 0, odd.start()) + 1} has bytes that are not text"
        )
    return text


def declared_encoding(text: str, charset: str = "") -> Encoding:
    """Return the encoding for a new file with this text.

    This is the encoding declared in the text (unless it is UTF-16 or UTF-32), or else the
    ``charset`` of ``.editorconfig``, or else UTF-8.
    """
    name = _declared(text.encode("utf-8", "replace"))
    if name and name not in _WIDE:
        return Encoding(name)
    return _NEW_FILES.get(charset) or Encoding(python_name(charset) or "utf-8")


def odd_bytes_shown(text: str) -> str:
    """Return a text in which U+FFFD replaces each lone surrogate (each undecodable byte)."""
    if text.isascii():
        return text
    return _ODD.sub("\ufffd", text)


def with_odd_bytes(text: str, shown_from: str) -> str | None:
    """Return ``text`` with each U+FFFD replaced with the undecodable byte that it stands for.

    A model sees the undecodable bytes of the original, ``shown_from``, as U+FFFD, and repeats these
    in the changed ``text``. A text without U+FFFD is returned unchanged. Returns None if ``text``
    contains more or fewer U+FFFD than the original.
    """
    if "\ufffd" not in text:
        return text
    odd = _SHOWN_AS_ODD.findall(shown_from)
    if len(odd) != text.count("\ufffd"):
        return None
    left = iter(odd)
    return re.sub("\ufffd", lambda _match: next(left), text)


def python_name(label: str) -> str:
    """Return Python's name for an encoding's label, "" if Python doesn't know it.

    Also returns "" for encodings that don't contain ASCII, except UTF-16 and UTF-32. For some old
    encodings the larger one in ``_SUPERSETS`` is returned.
    """
    try:
        found = codecs.lookup(label).name if label else ""
        plain = found in _WIDE or _ALWAYS_ASCII.encode(found or "utf-16") == _ALWAYS_ASCII.encode(
            "ascii"
        )
    except (LookupError, ValueError):
        return ""
    if plain and found not in {"utf-7", "idna", "punycode"}:
        return _SUPERSETS.get(found, found)
    return ""


def _declared(data: bytes) -> str:
    """Return Python's name of the encoding that a file declares in its text, "" if none."""
    lines = data[:SAMPLE_BYTES].split(b"\n", 2)[:2]
    found = (
        next(filter(None, map(_COMMENT.match, lines)), None) or _XML.match(data) or _CSS.match(data)
    )
    if found is not None:
        return python_name(
            found[1].decode("ascii", "replace").removesuffix("-unix").removesuffix("-dos")
        )
    if _HTML_START.match(data) is None:
        return ""
    found = _HTML.search(data, 0, _HTML_BYTES)
    if found is None:
        name = ""
    else:
        name = python_name(found[1].decode("ascii", "replace"))
    # As in browsers (https://encoding.spec.whatwg.org/#names-and-labels).
    return "cp1252" if name in {"iso8859-1", "ascii"} else name


def _decodes(data: bytes, name: str, *, whole: bool = True) -> bool:
    try:
        codecs.getincrementaldecoder(name)().decode(data, final=whole)
    except UnicodeDecodeError:
        return False
    return True


def _guessed(data: bytes) -> str:
    """Return the name of the likely encoding of bytes that aren't valid UTF-8.

    Returns "utf-8" if too few bytes are beyond ASCII, or if no encoding fits.
    """
    lines = data.split(b"\n")
    evidence = b"\n".join(line for line in lines if not line.isascii())[:_EVIDENCE_BYTES]
    if _is_western(evidence):
        return "cp1252"
    if sum(map(len, _HIGH_RUN.findall(evidence))) < _GUESSED_BYTES:
        return "utf-8"
    from charset_normalizer import from_bytes

    # The library's statistics need a longer text, so a short one is repeated.
    repeats = max(1, _SHORT_EVIDENCE // len(evidence))
    best = from_bytes((evidence + b"\n") * repeats, cp_isolation=list(_GUESSED)).best()
    return "utf-8" if best is None else best.encoding


def _is_western(data: bytes) -> bool:
    """Return True if bytes, read as windows-1252, look like text in a western language."""
    try:
        text = data.decode("cp1252")
    except UnicodeDecodeError:
        return False
    words = _HIGH_WORD.findall(text)
    letters = {character for character in "".join(words) if character > "\x7f"}
    runs = _HIGH_RUN.findall(data)
    is_mixed = sum(map(len, runs)) < _MIXED_RUN * len(runs)
    if not is_mixed and not letters <= _UMLAUTS:
        return False
    alone = {word for word in words if len(word) == 1 and word.isalpha()}
    return alone <= _WORDS and _INSIDE_WORD.search(text) is None
