"""Names in a message after ``@`` and ``#``: files, parts of files, directories, entries.

Pure, and quick to import.
"""

import re
from collections.abc import Iterator

from tui_agent.lazy import LazyPattern, frozen

IMAGE_SUFFIXES = frozenset(
    {
        ".png",
        ".jpg",
        ".jpeg",
        ".gif",
        ".webp",
        ".bmp",
        ".tif",
        ".tiff",
        ".ico",
        ".avif",
        ".heic",
        ".heif",
    }
)
"""Suffixes of files that are attached as pictures; the type is told by the bytes."""

# Each begins with a plain character, which is found in a paste of megabytes in no time; see
# ``_words``.
_FILE = LazyPattern(r'@(?:"([^"\n]+)"|([^\s"]+))')
_ENTRY = LazyPattern(r"#(\d{1,9})(?![\w-])")
_RANGE = LazyPattern(r"(.+?):(\d{1,9})(?:-(\d{1,9}))?")
_END = ".,;:!?)"
_DECLARATION = LazyPattern(
    r"(?:[ \t]*+\n[ \t]*+@[^\n]*+){0,5}[ \t]*+\n[ \t]*+"
    r"(?:async |export |public |private |protected |static )*(?:def|class|interface|enum|func?|function|void) "
)
"""A declaration after a decorator."""


@frozen
class FileMention:
    """``@path``; with ``@path:10-40`` the lines, counted from 1 and both included.

    ``written`` is all of it.
    """

    written: str
    path: str
    first: int | None = None
    last: int | None = None
    in_code: bool = False
    """Whether it may be a word of code: within backticks, or like a decorator in a text of several
    lines."""


def has_mention(text: str) -> bool:
    """Return whether a message may name something, so that looking for it is worth a thread."""
    return any(_words(_FILE, text)) or any(_words(_ENTRY, text))


def file_mentions(text: str) -> list[FileMention]:
    """Return the files a message names, each once, without punctuation that ends a sentence."""
    found: dict[str, FileMention] = {}
    ticks = 0
    seen = 0
    for match in _words(_FILE, text):
        ticks += text.count("`", seen, match.start())
        seen = match.start()
        written = match[1] or match[2].rstrip(_END)
        begins_line = not text[max(0, seen - 40) : seen].rpartition("\n")[2].strip(" \t/*#")
        is_decorator = not {".", "/"} & set(written) or _DECLARATION.match(text, match.end())
        is_word = "\n" in text and begins_line and bool(is_decorator)
        if written and (written not in found or found[written].in_code):
            is_code = ticks % 2 == 1 or is_word or "(" in written
            found[written] = FileMention(written, written, in_code=is_code)
            if lines := _RANGE.fullmatch(written):
                first = max(1, int(lines[2]))
                last = first
                if lines[3]:
                    last = max(first, int(lines[3]))
                found[written] = FileMention(written, lines[1], first, last, is_code)
    return list(found.values())


def entry_mentions(text: str) -> list[int]:
    """Return the numbers of the entries a message names with ``#412``, each once."""
    return list(dict.fromkeys(int(match[1]) for match in _words(_ENTRY, text)))


def _words(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    for match in pattern.finditer(text):
        before = " "
        if match.start():
            before = text[match.start() - 1]
        if before.isspace() or before in "([":
            yield match
