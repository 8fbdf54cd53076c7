"""Finds the places in files where a symbol's name occurs, for questions to a language server."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tui_agent.errors import ToolError
from tui_agent.files.inside import read_regular
from tui_agent.files.ripgrep import NoRipgrepError, run_ripgrep
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.text_files.encodings import user_text
from tui_agent.tools.language_servers.answers import Position
from tui_agent.tools.language_servers.documents import MAX_FILE_BYTES

MAX_MENTIONS = 5_000
"""Approximate maximum number of lines with a symbol's name that a search returns."""
MAX_ABOVE = 10
"""Number of lines, from the beginning of a declaration, that are searched for its name."""
MAX_NAMED = 12
"""Maximum number of names in a line that an error message lists."""
_BETWEEN_NAMES = LazyPattern(r"::|->|[.:#/]")
_WORD = LazyPattern(r"[^\W\d][\w$]*")
_MENTION = LazyPattern(rb"(\d+):(.*)", re.DOTALL)
_DECLARED = r"""
    ^\s*(?:[\w@\#*&<>,()]+\s+){0,5}?
    (?: (?:def|class|func|fn|function|struct|enum|union|trait|interface|type|const|let|var|static|mod
          |namespace|define|macro_rules!|typedef)\s+ (?:\([^)]*\)\s*)? NAME(?![\w$])
      | NAME\s*\(.*\{\s*$
      | NAME\s*(?::[^=]{0,80})?=(?!=)
    )"""
"""Verbose regular expression for a line that seems to declare ``NAME``, because the name follows a
keyword such as ``def``, or is the name of a method with a body or of a variable."""


@frozen
class Spot:
    """A place in a file, with the file's absolute path and a position in the file."""

    path: Path
    at: Position


@frozen
class Mention:
    """A line that contains a symbol's name. ``line`` counts from 0."""

    path: Path
    line: int
    is_declared: bool
    """Whether the line looks like the declaration of the symbol."""


def names_of(symbol: str) -> tuple[str, ...]:
    """Return the names in ``Class.method`` or ``crate::function``, the outermost first.

    Raises ToolError if the text doesn't consist of such names.
    """
    names = tuple(part for part in _BETWEEN_NAMES.split(symbol.strip().removesuffix("()")) if part)
    if not names or any(not _WORD.fullmatch(name.lstrip("$~@")) for name in names):
        raise ToolError(f"symbol {symbol!r} is not a name. Search for text with grep.")
    return names


def lines_in(path: Path) -> list[str]:
    """Return the lines of a file, split in the same way as language servers count lines.

    Raises ToolError for a file that can't be read or is larger than ``MAX_FILE_BYTES``.
    """
    data = read_regular(path, MAX_FILE_BYTES + 1)
    if data is None:
        raise ToolError(f"{path.name} can't be read.")
    if len(data) > MAX_FILE_BYTES:
        raise ToolError(
            f"{path.name} is larger than {MAX_FILE_BYTES // 1_000_000} MB. Search it with grep."
        )
    return user_text(data).split("\n")


def character_at(line: str, index: int) -> int:
    """Convert a character's index in a line to UTF-16 units, which the server protocol uses."""
    return len(line[:index].encode("utf-16-le", "surrogatepass")) // 2


def spots_in_line(path: Path, number: int, line: str, name: str) -> list[Spot]:
    """Return the places where a name is a whole word in the line ``number``, counted from 0."""
    return [
        Spot(path, Position(line=number, character=character_at(line, found.start())))
        for found in re.finditer(rf"(?<![\w$]){re.escape(name)}(?![\w$])", line)
    ]


def at_name(spot: Spot, name: str) -> Spot:
    """Return the place of the name in a declaration that begins at ``spot``.

    Some servers report where a declaration with its decorators begins, and not where the name is.
    Returns ``spot`` itself if the name isn't in the first ``MAX_ABOVE`` lines from there. The
    function reads the file, so call it in a thread.
    """
    try:
        lines = lines_in(spot.path)
    except ToolError:
        return spot
    first = spot.at.line
    for number, line in enumerate(lines[first : first + MAX_ABOVE], first):
        for found in spots_in_line(spot.path, number, line, name):
            if number > first or found.at.character >= spot.at.character:
                return found
    return spot


def words_in(line: str) -> list[str]:
    """Return the words of a line that may be names, each once, in order."""
    return list(dict.fromkeys(_WORD.findall(line)))


async def mentions(name: str, root: Path, globs: Sequence[str], *options: str) -> list[Mention]:
    """Return the lines below ``root`` that contain a symbol's name.

    Lines that look like the symbol's declaration come first, then lines in files nearer to
    ``root``. ``globs`` select the files to search, ``options`` are further options for ripgrep.

    Raises:
        ToolError: ripgrep is missing.
    """
    found: list[Mention] = []
    declared = re.compile(_DECLARED.replace("NAME", re.escape(name)), re.VERBOSE)

    def sink(lines: list[bytes]) -> None:
        if len(found) < MAX_MENTIONS:
            found.extend(_mentions_in(lines, root, declared))

    types = [f"--type-add=code:{glob}" for glob in globs]
    showing = ("--line-number", "--with-filename", "--no-heading", "--null", "--max-columns=400")
    arguments = [*showing, "--max-columns-preview", "--fixed-strings", *options, *types]
    try:
        await run_ripgrep([*arguments, "--type=code", "-e", name, "--", "./"], root, sink)
    except NoRipgrepError:
        raise ToolError(
            "ripgrep can't be used in this directory. Name the symbol's file as path."
        ) from None
    return sorted(found, key=_order)


def _mentions_in(lines: list[bytes], root: Path, declared: re.Pattern[str]) -> Iterator[Mention]:
    for line in lines:
        raw_path, _end, rest = line.partition(b"\0")
        parts = _MENTION.match(rest)
        if parts is not None:
            path = root / raw_path.decode("utf-8", "surrogateescape").removeprefix("./")
            text = parts[2].decode("utf-8", "replace")
            yield Mention(path, int(parts[1]) - 1, declared.match(text) is not None)


def _order(mention: Mention) -> tuple[bool, int, Path, int]:
    return not mention.is_declared, len(mention.path.parts), mention.path, mention.line
