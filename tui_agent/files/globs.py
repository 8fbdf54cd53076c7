"""Glob patterns as the tools understand them, turned into regular expressions over ``/`` separated paths.

``*`` and ``?`` stay within one name, ``**`` crosses directories, ``{a,b}`` is either, ``[abc]`` and ``[!abc]`` are
classes. A pattern without a slash matches a file's name at any depth; one with a slash, be it only in front, matches
the whole path.
"""

import re
from functools import lru_cache
from pathlib import PurePosixPath

_MAGIC = frozenset("*?[{")
_WILD = (("**/", "(?:.*/)?"), ("**", ".*"), ("*", "[^/]*"), ("?", "[^/]"))


@lru_cache(maxsize=256)
def compile_glob(pattern: str) -> re.Pattern[str]:
    """Return a pattern to ``fullmatch`` relative paths with.

    Raises:
        ValueError: a class or a brace is never closed.
    """
    pattern = pattern.removeprefix("./").rstrip("/")
    anchored = "/" in pattern
    body = _translate(pattern.lstrip("/"))
    return re.compile(body if anchored else f"(?:.*/)?{body}", re.DOTALL)


def has_magic(pattern: str) -> bool:
    return not _MAGIC.isdisjoint(pattern)


def split_glob(pattern: str) -> tuple[str, str]:
    """Return the directories a pattern starts with, and the rest: ``src/a/**/*.py`` → ``src/a``, ``**/*.py``."""
    parts = PurePosixPath(pattern).parts
    literal = 0
    while literal < len(parts) - 1 and not has_magic(parts[literal]):
        literal += 1
    base = str(PurePosixPath(*parts[:literal])) if literal else ""
    return base, "/".join(parts[literal:])


def name_glob(pattern: str) -> str | None:
    """Return the glob on file names that the pattern amounts to, or None when directories matter too."""
    rest = pattern.removeprefix("./").removeprefix("**/")
    return rest if rest and "/" not in rest and "**" not in rest else None


def _translate(pattern: str) -> str:
    out: list[str] = []
    depth = position = 0
    while position < len(pattern):
        character = pattern[position]
        token, piece = next((row for row in _WILD if pattern.startswith(row[0], position)), (character, ""))
        position += len(token)
        if character == "[":
            piece, position = _character_class(pattern, position - 1)
        elif character == "{":
            piece, depth = "(?:", depth + 1
        elif depth and character == "}":
            piece, depth = ")", depth - 1
        elif not piece:
            piece = "|" if depth and character == "," else re.escape(character)
        out.append(piece)
    if depth:
        raise ValueError("a { is never closed")
    return "".join(out)


def _character_class(pattern: str, start: int) -> tuple[str, int]:
    first = start + 2 if pattern[start + 1 : start + 2] in {"!", "^"} else start + 1
    end = pattern.find("]", first + 1)
    if end < 0:
        raise ValueError("a [ is never closed")
    negated = "^" if first == start + 2 else ""
    members = pattern[first:end].replace("\\", "\\\\").replace("[", "\\[").replace("^", "\\^")
    return f"(?!/)[{negated}{members}]", end + 1
