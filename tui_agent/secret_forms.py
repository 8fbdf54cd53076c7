"""Finds and replaces given secrets, whether they are written plainly, escaped or in base64.

`tui_agent.secret_detector` finds secrets that aren't known beforehand.
"""

import base64
import html
import json
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from tui_agent.secret_detector import REMOVED

MIN_CHARS = 6
"""Minimum length of a secret that callers may pass, in characters. Shorter texts may occur within
ordinary words."""

_FEWEST_IN_LINE = 16
"""Minimum length of a line of a private key for which a text is searched, in characters."""
_FEWEST_IN_BASE64 = 8
"""Minimum length of a piece of base64 for which a text is searched, in characters."""
_ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be", "cp1252")
_COVER = b"*"


class SecretForms:
    """Finds and replaces given secrets.

    Args:
        secrets: the secrets. If a secret has several lines, its long words are also searched for
            separately, because the line numbers in a listing would keep the whole secret from matching.
        blocks: secrets that are searched for only as a whole, even if they have several lines.
    """

    def __init__(self, secrets: Iterable[str], blocks: Iterable[str] = ()) -> None:
        wanted: set[str] = set()
        for secret in secrets:
            wanted.update((secret, *_key_lines(secret)))
        plain: set[str] = set()
        for text in (*wanted, *blocks):
            plain.update(_forms(text))
        self.texts = sorted(plain, key=len, reverse=True)
        """Every form in which a secret may be written as text, the longest form first."""
        encoded: set[bytes] = set()
        for form in self.texts:
            encoded.update(_encoded(form))
        self._bytes = sorted(encoded, key=len, reverse=True)

    @property
    def longest(self) -> int:
        """Length of the longest form in which a secret may be written, in bytes."""
        return len(self._bytes[0])

    def text(self, text: str) -> str:
        """Return the text with each secret replaced by ``[redacted]``. JSON text stays valid."""
        for form in self.texts:
            if form in text:
                text = text.replace(form, REMOVED)
        return text

    def is_in(self, data: bytes) -> bool:
        """Return True if the bytes contain a secret, in any of the supported encodings."""
        return any(form in data for form in self._bytes)

    def masked(self, data: bytes) -> bytes:
        """Return bytes of the same length in which each secret is overwritten by asterisks."""
        for form in self._bytes:
            if form in data:
                data = data.replace(form, _COVER * len(form))
        return data


def _key_lines(secret: str) -> Iterator[str]:
    """Yield the long words of a secret with several lines. For a single line, yields nothing."""
    lines = secret.split()
    if "\n" in secret.strip():
        yield from (line for line in lines if len(line) >= _FEWEST_IN_LINE)


def _forms(text: str) -> Iterator[str]:
    once = {text, *_in_json(text), html.escape(text), html.escape(text, quote=False), quote(text)}
    once.add(quote(text, safe=""))
    for form in once:
        yield form
        # In a session, JSON is nested: a tool call's arguments are JSON within an entry's JSON.
        # Exported pages also nest JSON.
        for twice in _in_json(form):
            yield twice
            yield from _in_json(twice)
    yield from _in_base64(text.encode("utf-8", "replace"))


def _in_json(text: str) -> set[str]:
    return {json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}


def _in_base64(data: bytes) -> Iterator[str]:
    """Yield the base64 of the bytes at each of the three alignments, in both alphabets.

    The base64 of a secret depends on its offset in the encoded data, which gives three alignments.
    The alphabets are the standard and the URL alphabet. Characters that also depend on the
    neighbouring bytes are left out.
    """
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + data).decode("ascii")
        start = -(-before * 8 // 6)
        core = whole[start : (before + len(data)) * 8 // 6]
        if len(core) >= _FEWEST_IN_BASE64:
            yield core
            yield core.replace("+", "-").replace("/", "_")


def _encoded(form: str) -> Iterator[bytes]:
    for encoding in _ENCODINGS:
        try:
            yield form.encode(encoding)
        except UnicodeEncodeError:
            continue  # a file in this encoding can't contain this secret
