"""What a message names with ``@`` and ``#``: files, parts of files, directories, entries. Pure, and quick to import."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

IMAGE_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
"""Image files by suffix, as providers take them."""

# Each begins with a plain character, which is found in a paste of megabytes in no time; see ``_words``.
_FILE = re.compile(r'@(?:"([^"\n]+)"|([^\s"]+))')
_ENTRY = re.compile(r"#(\d{1,9})(?![\w-])")
_RANGE = re.compile(r"(.+?):(\d{1,9})(?:-(\d{1,9}))?")
_END = ".,;:!?)"


@dataclass(frozen=True, slots=True)
class FileMention:
    """``@path``; with ``@path:10-40`` the lines, counted from 1 and both included. ``written`` is all of it."""

    written: str
    path: str
    first: int | None = None
    last: int | None = None

    @property
    def looks_like_path(self) -> bool:
        """Whether it can hardly be anything else: a name of a person or an agent has neither slash nor dot."""
        return "/" in self.path or "." in self.path.strip(".")


def has_mention(text: str) -> bool:
    """Return whether a message may name something, so that looking for it is worth a thread."""
    return next(_words(_FILE, text), None) is not None or next(_words(_ENTRY, text), None) is not None


def file_mentions(text: str) -> list[FileMention]:
    """Return the files a message names, each once, without punctuation that ends a sentence."""
    written = [match[1] or match[2].rstrip(_END) for match in _words(_FILE, text)]
    return [_file(name) for name in dict.fromkeys(written) if name]


def entry_mentions(text: str) -> list[int]:
    """Return the numbers of the entries a message names with ``#412``, each once."""
    return list(dict.fromkeys(int(match[1]) for match in _words(_ENTRY, text)))


def _file(written: str) -> FileMention:
    found = _RANGE.fullmatch(written)
    if found is None:
        return FileMention(written, written)
    first = max(1, int(found[2]))
    return FileMention(written, found[1], first, max(first, int(found[3])) if found[3] else first)


def _words(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield matches that begin a word."""
    for match in pattern.finditer(text):
        before = text[match.start() - 1] if match.start() else " "
        if before.isspace() or before in "([":
            yield match
