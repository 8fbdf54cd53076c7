"""Translates the tools' glob patterns into regular expressions for paths separated by ``/``.

``*`` and ``?`` match within one name, and ``**`` matches across directories. ``{a,b}`` matches
either text, and ``[abc]`` and ``[!abc]`` match one character. A pattern without a slash matches a
file's name at any depth. A pattern with a slash, even if only at its start, matches the whole path.

Brackets and braces also match literally, because some frameworks use them in file names
(``app/[id]/page.tsx``).
"""

import re
from functools import lru_cache
from pathlib import PurePosixPath

from tui_agent.lazy import LazyPattern

_MAGIC = frozenset("*?[{")
_WILD = (("**/", "(?:.*/)?"), ("**", ".*"), ("*", "[^/]*"), ("?", "[^/]"))
_MAX_BRACES = 6
"""Maximum depth of nested braces that are expanded. Braces at a deeper level match literally.

Each level doubles the size of the regular expression.
"""


_STARS = LazyPattern(r"\*+")
_MAX_STARS = 4
"""Maximum number of series of stars in one name, and of ``**`` in one pattern.

The time of a failed match grows with a power of the path's length, and the exponent is the number
of series.
"""


@lru_cache(maxsize=256)
def compile_glob(pattern: str) -> re.Pattern[str]:
    """Return a regular expression for a glob. Use its ``fullmatch`` on relative paths."""
    pattern = pattern.rstrip("/")
    anchored = "/" in pattern
    body = _translate(pattern.removeprefix("./").lstrip("/"))
    return re.compile(body if anchored else f"(?:.*/)?{body}", re.DOTALL)


def has_magic(pattern: str) -> bool:
    return not _MAGIC.isdisjoint(pattern)


def is_costly(pattern: str) -> bool:
    """Return True if a pattern has so many stars that matching it could take too long."""
    names = [name for name in pattern.split("/") if set(name) != {"*"}]
    stars = max((len(_STARS.findall(name)) for name in names), default=0)
    return stars > _MAX_STARS or pattern.count("**") > _MAX_STARS


def has_unclosed_bracket(pattern: str) -> bool:
    """Return True if a pattern has an unclosed bracket or brace, which only matches literally."""
    return pattern.count("{") > pattern.count("}") or pattern.count("[") > pattern.count("]")


def split_glob(pattern: str) -> tuple[str, str]:
    """Split a pattern after its leading literal directories.

    ``src/a/**/*.py`` gives ``src/a`` and ``**/*.py``. The first part is "" if the pattern doesn't
    begin with a literal directory.
    """
    parts = PurePosixPath(pattern).parts
    literal = 0
    while literal < len(parts) - 1 and not has_magic(parts[literal]):
        literal += 1
    base = ""
    if literal:
        base = str(PurePosixPath(*parts[:literal]))
    return base, "/".join(parts[literal:])


def name_globs(pattern: str) -> tuple[str, ...]:
    """Return globs for ripgrep that match the names of all files that the pattern matches.

    The globs may also match other names, so apply the pattern to the results. Returns () if the
    pattern contains directories, or syntax that ripgrep treats differently.
    """
    rest = pattern.removeprefix("./").removeprefix("**/")
    if not rest or "/" in rest or "**" in rest or "[" in rest or "\\" in rest or not rest.isascii():
        return ()
    # The file name may contain a different space character there, one that is several bytes long.
    rest = re.sub(r"\s", "*", rest)
    if "{" not in rest and "}" not in rest:
        return (rest,)
    as_written = re.sub(r"[{}]", r"[\g<0>]", rest)
    is_closed = re.fullmatch(r"[^{}]*(?:\{[^{}]+\}[^{}]*)*", rest)
    if is_closed:
        return (rest, as_written)
    return ()


def _translate(pattern: str, depth: int = 0) -> str:
    out: list[str] = []
    position = 0
    while position < len(pattern):
        piece, position = _piece(pattern, position, depth)
        out.append(piece)
    return "".join(out)


def _piece(pattern: str, position: int, depth: int) -> tuple[str, int]:
    """Convert the part of a pattern at ``position`` to a regular expression.

    Return the expression, and the position after the part. ``depth`` is the number of pairs of
    braces around this part.
    """
    wild = next((row for row in _WILD if pattern.startswith(row[0], position)), None)
    if wild is not None:
        return wild[1], position + len(wild[0])
    character = pattern[position]
    if character == "[":
        return _character_class(pattern, position)
    if character == "{" and depth < _MAX_BRACES:
        return _braces(pattern, position, depth)
    following = pattern[position + 1 : position + 2]
    if character == "\\" and following and following in "*?[]{}()":
        return rf"(?:\\)?{re.escape(following)}", position + 2
    return re.escape(character), position + 1


def _character_class(pattern: str, start: int) -> tuple[str, int]:
    if pattern[start + 1 : start + 2] in {"!", "^"}:
        first = start + 2
    else:
        first = start + 1
    end = pattern.find("]", first + 1)
    if end < 0:
        return re.escape("["), start + 1
    negated = "^" if first == start + 2 else ""
    members = pattern[first:end].replace("\\", "\\\\").replace("[", "\\[").replace("^", "\\^")
    either = f"(?:{re.escape(pattern[start : end + 1])}|(?!/)[{negated}{members}])"
    try:
        re.compile(either)
    except re.error:  # The range is in reverse order.
        either = re.escape(pattern[start : end + 1])
    return either, end + 1


def _braces(pattern: str, start: int, depth: int) -> tuple[str, int]:
    choices: list[str] = []
    nested = 0
    begin = start + 1
    for position in range(start + 1, len(pattern)):
        character = pattern[position]
        if character == "{":
            nested += 1
        elif character == "}" and nested:
            nested -= 1
        elif not nested and character in ",}":
            choices.append(_translate(pattern[begin:position], depth + 1))
            begin = position + 1
        if begin == position + 1 and character == "}":
            as_written = _translate(pattern[start + 1 : position], depth + 1)
            return f"(?:{'|'.join(choices)}|\\{{{as_written}\\}})", position + 1
    return re.escape("{"), start + 1
