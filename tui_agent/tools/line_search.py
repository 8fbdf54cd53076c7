"""Searches files for a regular expression of Python's, in a process of its own: one expression can take for ever.

The query is the only argument, as JSON; names of files come on standard input, each followed by a NUL. What is found
is printed as ripgrep does with ``--null --line-number``. Run as a file: it needs nothing but the standard library.
"""

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

_MAX_FILE_BYTES = 20_000_000
_MAX_LINE_CHARS = 2_400
_CHUNK = 64 * 1024
_BOUNDS = re.compile(r"\\[AZz]")
"""Mean the ends of a line: files are searched by the line."""


def main() -> None:
    query = json.loads(sys.argv[1])
    pattern = re.compile(query["pattern"], re.MULTILINE | (re.IGNORECASE if query["ignoring_case"] else 0))
    out = sys.stdout.buffer
    for name in _names():
        text = _text(name)
        if not text or not (pattern.search(text) or _BOUNDS.search(query["pattern"])):
            continue
        lines = text.removesuffix("\n").split("\n")
        hits = set(_spanned(pattern, text) if query["multiline"] else _matching(pattern, lines))
        around = {hit + step for hit in hits for step in range(-query["context"], query["context"] + 1)}
        for at in sorted(place for place in around if 0 <= place < len(lines)):
            line = lines[at][:_MAX_LINE_CHARS].encode("utf-8", "replace")
            out.write(b"%b\0%d%b%b\n" % (name, at + 1, b":" if at in hits else b"-", line))
        out.flush()


def _names() -> Iterator[bytes]:
    rest = b""
    while chunk := os.read(sys.stdin.fileno(), _CHUNK):
        *names, rest = (rest + chunk).split(b"\0")
        yield from names


def _text(name: bytes) -> str | None:
    try:
        file = Path(name.decode("utf-8", "surrogateescape"))
        data = b"" if file.stat().st_size > _MAX_FILE_BYTES else file.read_bytes()
    except OSError:
        return None
    return None if b"\0" in data[:8_192] else data.decode("utf-8", "replace").replace("\r\n", "\n")


def _matching(pattern: re.Pattern[str], lines: list[str]) -> Iterator[int]:
    return (at for at, line in enumerate(lines) if pattern.search(line))


def _spanned(pattern: re.Pattern[str], text: str) -> Iterator[int]:
    """Return the places of the lines that matches go over, from 0."""
    for match in pattern.finditer(text):
        first = text.count("\n", 0, match.start())
        yield from range(first, first + match[0].removesuffix("\n").count("\n") + 1)


if __name__ == "__main__":
    main()
