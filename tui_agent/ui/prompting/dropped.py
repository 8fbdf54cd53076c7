"""Recognises files that the user drops on the terminal.

Terminals paste the paths of such files, quoted in various ways.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tui_agent.agent.mentions import IMAGE_SUFFIXES
from tui_agent.lazy import LazyPattern
from tui_agent.path_checks import at_home, is_file
from tui_agent.ui.prompting.completion import mention

MAX_CHARACTERS = 16_384
"""Maximum number of characters in a pasted text that is searched for paths."""
MAX_FILES = 50
"""Maximum number of files in a pasted or dropped text that are turned into mentions."""

_WINDOWS = LazyPattern(
    r"""(?P<quote>["']?)(?P<path>(?:[A-Za-z]:|\\\\wsl(?:\$|\.localhost))[\\/].*)(?P=quote)"""
)
_SEVERAL_WINDOWS = LazyPattern(r"""\s+(?=["']?(?:[A-Za-z]:|\\\\wsl)[\\/])""")
_ANSI_C = LazyPattern(r"\$'((?:[^'\\]|\\.)*)'")


def dropped_files(text: str) -> str | None:
    """Return ``@`` mentions of the files whose paths a pasted text contains.

    Each mention is followed by a space. Returns None if the text contains anything but paths of
    existing files, or more than `MAX_FILES` paths. Also returns None for a single unquoted path
    that is not an image, because it may be meant as text.
    """
    if len(text) > MAX_CHARACTERS or not text.strip():
        return None
    for words in _readings(text.strip()):
        names = [_local(word) for word in words]
        if 0 < len(names) <= MAX_FILES and all(name and is_file(at_home(name)) for name in names):
            is_image = any(Path(name).suffix.lower() in IMAGE_SUFFIXES for name in names)
            as_written = names == [text.strip()]
            if as_written and not is_image:
                return None
            return "".join(map(mention, names))
    return None


def _readings(text: str) -> Iterator[list[str]]:
    """Yield the possible ways to split a text into paths.

    The text is split into lines, then before each Windows path, then into words as by a shell.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    yield lines
    if any(_WINDOWS.fullmatch(line) for line in lines):
        yield [word for line in lines for word in _SEVERAL_WINDOWS.split(line)]
    # Within double quotes, shlex keeps the backslash before $ and `, but a shell removes it.
    plain = text.replace("\\$", "$").replace("\\`", "`")
    try:
        yield shlex.split(_ANSI_C.sub(lambda found: shlex.quote(_unescaped(found[1])), plain))
    except ValueError:
        return


def _local(word: str) -> str:
    """Return the local path that a pasted word names as a path, Windows path or ``file://`` URL.

    Returns "" if the URL is invalid, or if the path contains a double quote or a line feed, so that
    it can't be mentioned.
    """
    if windows := _WINDOWS.fullmatch(word):
        word = _from_windows(windows["path"])
    elif word.lower().startswith("file://"):
        word = _from_url(word)
    if '"' in word or "\n" in word:
        return ""
    return word


def _from_url(url: str) -> str:
    try:
        return unquote(urlsplit(url.replace("?", "%3F").replace("#", "%23")).path)
    except ValueError:
        return ""


def _from_windows(path: str) -> str:
    r"""Return the WSL path for a Windows path like ``C:\x`` or ``\\wsl$\Ubuntu\x``."""
    path = path.replace("\\", "/")
    if path.startswith("//"):
        return "/" + path.removeprefix("//").split("/", 2)[-1]
    return f"/mnt/{path[0].lower()}{path[2:]}"


def _unescaped(text: str) -> str:
    r"""Return the text inside ``$'…'`` of bash and zsh, with its escapes resolved."""
    escapes = {
        "n": b"\n",
        "t": b"\t",
        "r": b"\r",
        "e": b"\x1b",
        "a": b"\a",
        "b": b"\b",
        "f": b"\f",
        "v": b"\v",
    }
    found = bytearray()
    for octal, hexadecimal, letter, plain in re.findall(
        r"\\([0-7]{1,3})|\\x([0-9a-fA-F]{1,2})|\\(.)|([^\\]+)", text
    ):
        if octal or hexadecimal:
            found.append(int(octal or hexadecimal, 8 if octal else 16) & 0xFF)
        else:
            found += escapes.get(letter) or (letter or plain).encode("utf-8", "surrogateescape")
    return found.decode("utf-8", "surrogateescape")
