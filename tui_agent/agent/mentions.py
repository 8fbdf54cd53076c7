"""Finds the names of files and directories (``@``) and of entries (``#``) in a message. Pure.

``attachments`` finds out whether such a file or entry exists. This module is quick to import.
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
"""Suffixes of files that are attached as pictures. The picture's type is read from the bytes."""

# The patterns begin with a literal character, so that searching megabytes of pasted text is fast.
_FILE = LazyPattern(r'@(?:"((?:[^"\n]|"")+)"|([^\s"]+))')
_ENTRY = LazyPattern(r"#(\d{1,9})(?![\w-])")
_RANGE = LazyPattern(r"(.+?):(\d{1,9})(?:-(\d{1,9}))?")
_END = ".,;:!?)"
_CONTROL = LazyPattern(r"[\x00-\x08\x0a-\x1f\x7f]")
_ESCAPED = LazyPattern(r"\\x([0-7][0-9a-f])|\\n")
_PATH = LazyPattern(r"[~/]|\.\w+\Z")
_DECLARATION = LazyPattern(
    r"(?:[ \t]*+\n[ \t]*+@[^\n]*+){0,5}[ \t]*+\n[ \t]*+"
    r"(?:async |export |public |private |protected |static )*(?:def|class|interface|enum|func?|function|void) "
)
"""Matches what follows a decorator: further decorators, then the declaration of a function or
class."""


@frozen
class FileMention:
    """A mention of a file in a message, such as ``@path`` or ``@path:10-40``.

    ``written`` is the whole name after the ``@``; ``first`` and ``last`` are line numbers from 1,
    both included, None without a range.
    """

    written: str
    path: str
    first: int | None = None
    last: int | None = None
    in_code: bool = False
    """Whether the text may be code, because it is in backticks or looks like a decorator or
    call."""


def has_mention(text: str) -> bool:
    """Return True if a message may name a file or an entry. This check is quick."""
    return any(_words(_FILE, text)) or any(_words(_ENTRY, text))


def file_mentions(text: str) -> list[FileMention]:
    """Return the files that a message names, without duplicates, in order of first mention.

    Punctuation at the end of a name is left out, except in quoted names. In a quoted name, ``""``
    stands for a quote.
    """
    found: dict[str, FileMention] = {}
    ticks = 0
    seen = 0
    for match in _words(_FILE, text):
        ticks += text.count("`", seen, match.start())
        seen = match.start()
        if match[1]:
            written = match[1].replace('""', '"')
        else:
            written = match[2].rstrip(_END)
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


def mention_of(name: str) -> str:
    """Return the mention of a file, agent or resource, quoted if needed.

    Control characters, such as line breaks, are written as in `escaped`.
    """
    name = escaped(name)
    if name.endswith(tuple(_END)) or re.search(r'[\s"]', name):
        doubled = name.replace('"', '""')
        return f'@"{doubled}"'
    return f"@{name}"


def escaped(name: str) -> str:
    """Return a file's name with each control character, except tabs, replaced by an escape.

    The escapes are those of Python, such as a backslash and ``n`` for a line break.
    """
    return _CONTROL.sub(_escape, name)


def unescaped(name: str) -> str:
    """Return the name that `escaped` has written as ``name``."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else "\n", name)


def _escape(found: re.Match[str]) -> str:
    return "\\n" if found[0] == "\n" else f"\\x{ord(found[0]):02x}"


def is_pathlike(mention: FileMention) -> bool:
    """Return True if a mention looks like a path, because it has a slash or a file extension.

    Other words after ``@``, such as people's names, may just be text.
    """
    return _PATH.search(mention.path) is not None


def entry_mentions(text: str) -> list[int]:
    """Return the numbers of the entries that a message names (``#412``), without duplicates."""
    return list(dict.fromkeys(int(match[1]) for match in _words(_ENTRY, text)))


def _words(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    for match in pattern.finditer(text):
        before = " "
        if match.start():
            before = text[match.start() - 1]
        if before.isspace() or before in "([":
            yield match
