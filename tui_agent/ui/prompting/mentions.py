"""The files a message mentions with ``@path``, found in its text."""

import re
from collections.abc import Iterator
from pathlib import Path

IMAGE_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
"""Image files by suffix, as providers take them."""

# Begins with a plain character, which is found in a paste of megabytes in no time; see ``_found``.
_MENTION = re.compile(r'@(?:"([^"\n]+)"|([^\s"]+))')


def has_mention(text: str) -> bool:
    """Return whether a message may name files, so that reading them is worth a thread."""
    return next(_found(text), None) is not None


def mentions(text: str) -> list[str]:
    """Return the paths a message mentions, each once, without punctuation that ends a sentence."""
    names = [match[1] or match[2].rstrip(".,;:!?)") for match in _found(text)]
    return list(dict.fromkeys(name for name in names if name))


def _found(text: str) -> Iterator[re.Match[str]]:
    """Yield mentions that begin a word."""
    for match in _MENTION.finditer(text):
        before = text[match.start() - 1] if match.start() else " "
        if before.isspace() or before == "(":
            yield match


def pasted_path(text: str) -> str | None:
    """Return the mention for a pasted or dropped path of an image that exists, None for any other text."""
    if len(text) > 4_096:
        return None
    name = text.strip().removeprefix("file://").strip("'\"").replace("\\ ", " ")
    if "\n" in name or Path(name).suffix.lower() not in IMAGE_TYPES:
        return None
    try:
        exists = Path(name).expanduser().is_file()
    except OSError:
        return None
    return (f'@"{name}" ' if " " in name else f"@{name} ") if exists else None
