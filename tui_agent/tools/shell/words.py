"""Words of a shell command: what they stand for after quotes are removed, as far as that can be told."""

import re
import shlex
from dataclasses import dataclass
from itertools import product
from typing import Literal

Unknown = Literal["variable", "substitution", "arithmetic", "quoting"]

_GLOB = re.compile(r"[*?\[]")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED_IN_QUOTES = re.compile(r'\\([$`"\\])')
_ANSI_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", "'": "'", '"': '"'}
_ANSI = re.compile(r"\\(.)", re.DOTALL)
_MOST_BRACES = 32


@dataclass(frozen=True, slots=True)
class Hole:
    """A part of a word that only running the command would tell. ``name`` is the variable's."""

    kind: Unknown
    name: str = ""


@dataclass(frozen=True, slots=True)
class Word:
    """One word. ``parts`` are texts and holes; ``glob`` tells that the shell looks for files that match."""

    source: str
    parts: tuple[str | Hole, ...]
    glob: bool = False
    tilde: bool = False
    """Begins with an unquoted ``~``."""

    @property
    def value(self) -> str | None:
        """What the program is given, or the pattern; None when only running the command would tell."""
        if all(isinstance(part, str) for part in self.parts):
            return "".join(part for part in self.parts if isinstance(part, str))
        return None

    @property
    def start(self) -> str:
        """What the word begins with for certain."""
        return self.parts[0] if self.parts and isinstance(self.parts[0], str) else ""

    @property
    def holes(self) -> tuple[Hole, ...]:
        """The unknown parts."""
        return tuple(part for part in self.parts if isinstance(part, Hole))

    @property
    def shown(self) -> str:
        """The word as rules are matched against: quoted only where that makes a difference."""
        value = self.value
        if value is None:
            return self.source
        if self.glob or self.tilde or re.fullmatch(r"[\w@%+=:,./~^-]+", value, re.ASCII):
            return value
        return shlex.quote(value)


def listed(text: str) -> frozenset[str]:
    """Return the words of a text, for tables of names."""
    return frozenset(text.split())


def literal(text: str) -> Word:
    """Return a word that stands for itself."""
    return Word(text, (text,))


def unquoted(text: str) -> str:
    """Return what unquoted characters stand for: a backslash takes the meaning of what follows."""
    return _ESCAPED.sub(lambda match: "" if match[1] == "\n" else match[1], text)


def double_quoted(text: str) -> str:
    """Return what characters between double quotes stand for."""
    return _ESCAPED_IN_QUOTES.sub(r"\1", text.replace("\\\n", ""))


def ansi_quoted(text: str) -> str | None:
    """Return what ``$'...'`` stands for; None when it holds more than the plainest escapes."""
    inner = text[2:-1]
    if any(escape not in _ANSI_ESCAPES for escape in _ANSI.findall(inner)):
        return None
    return _ANSI.sub(lambda match: _ANSI_ESCAPES[match[1]], inner)


def has_glob(text: str) -> bool:
    """Return whether unquoted characters hold a pattern for file names."""
    return _GLOB.search(_ESCAPED.sub("", text)) is not None


def braces(text: str) -> list[str] | None:
    """Expand ``{a,b}`` in an unquoted text; None when that is more than one level deep or too much."""
    pieces = re.split(r"\{([^{}]*)\}", text)
    if any("{" in piece or "}" in piece for piece in pieces):
        return None
    choices = [
        [piece] if place % 2 == 0 else (piece.split(",") if "," in piece else [f"{{{piece}}}"])
        for place, piece in enumerate(pieces)
    ]
    if any(".." in piece for place, piece in enumerate(pieces) if place % 2):
        return None
    expanded = ["".join(chosen) for _, chosen in zip(range(_MOST_BRACES + 1), product(*choices), strict=False)]
    return expanded if len(expanded) <= _MOST_BRACES else None


def filled(word: Word, values: dict[str, tuple[str, ...]]) -> list[Word]:
    """Return the words that a word becomes when variables have one of the values given."""
    names = {hole.name for hole in word.holes if hole.kind == "variable"}
    if not names or len(names) > 1 or names - values.keys() or any(hole.kind != "variable" for hole in word.holes):
        return [word]
    (name,) = names
    found = []
    for value in values[name]:
        parts = tuple(value if isinstance(part, Hole) else part for part in word.parts)
        found.append(Word(word.source, parts, word.glob or has_glob(value), word.tilde))
    return found
