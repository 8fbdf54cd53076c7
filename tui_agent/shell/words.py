"""What a command line is made of, as far as its text tells: words, simple commands, redirections."""

import re
import shlex
from dataclasses import field

from tui_agent.lazy import dataclass

_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Word:
    """One word.

    ``value`` is what the program is given, a pattern for file names as it stands; None when only running the command
    would tell. ``start`` is what it begins with for certain.
    """

    source: str
    value: str | None
    start: str = ""
    glob: bool = False
    tilde: bool = False
    """Begins with an unquoted ``~``."""

    @property
    def shown(self) -> str:
        """The word as rules are matched against: quoted only where that makes a difference."""
        if self.value is None:
            return self.source
        if self.glob or self.tilde or re.fullmatch(r"[\w@%+=:,./~^-]+", self.value, re.ASCII):
            return self.value
        return shlex.quote(self.value)


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirection to or from a file."""

    operator: str
    target: Word

    @property
    def writes(self) -> bool:
        """Whether it may change the file."""
        return ">" in self.operator


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One simple command. ``fed`` is the text it reads from a here-document, "" for none."""

    words: tuple[Word, ...]
    source: str
    assignments: tuple[tuple[str, Word], ...] = ()
    fed: str = ""


@dataclass(slots=True)
class ParsedLine:
    """Everything in a command line that runs or touches a file, in the order written.

    Nesting is not kept: whoever judges takes each command as if it ran. What is not looked into is a problem, and a
    command line with problems is asked about.
    """

    commands: list[SimpleCommand] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    assignments: list[tuple[str, Word]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def listed(text: str) -> frozenset[str]:
    return frozenset(text.split())


def literal(text: str) -> Word:
    return Word(text, text, text)


def unquoted(text: str) -> str:
    """Return what unquoted characters stand for: a backslash takes the meaning of what follows."""
    return _ESCAPED.sub(lambda match: "" if match[1] == "\n" else match[1], text)


def has_glob(text: str) -> bool:
    """Return whether unquoted characters hold a pattern for file names."""
    return re.search(r"[*?\[]", _ESCAPED.sub("", text)) is not None
