"""Parses a command line with tree-sitter and lists everything in it that runs or touches a file.

The order and nesting of commands are not kept: whoever judges them takes each as if it ran. What is no part of the
language as understood here, or could mean something else to the shell than to the parser, is a problem, and a
command with problems is asked about.
"""

import unicodedata
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from tui_agent.tools.shell.words import Word

if TYPE_CHECKING:
    from tree_sitter import Parser

MAX_CHARS = 20_000
"""Longer commands are not looked into."""


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
class Simple:
    """One simple command. ``fed`` is the text it reads from a here-document, "" for none; ``piped``: from a pipe."""

    words: tuple[Word, ...]
    source: str
    assignments: tuple[tuple[str, Word], ...] = ()
    fed: str = ""
    piped: bool = False
    repeated: bool = False
    """Inside a loop or function: may run more than once."""
    sure: bool = False
    """Everything after it on the command line runs only if it worked: ``cd a && …``."""


@dataclass(slots=True)
class Script:
    """Everything in a command line, in the order written."""

    commands: list[Simple] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    assignments: list[tuple[str, Word]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    values: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """What the variables of loops over literal words can be."""


def read_script(text: str) -> Script:
    """Take a command line apart. Never raises; what it can't read is in ``problems``."""
    from tui_agent.tools.shell.reader import read_tree

    script = Script()
    if problem := _unreadable(text):
        script.problems.append(problem)
        return script
    data = text.encode()
    root = _parser().parse(data).root_node
    if root.has_error:
        script.problems.append("its syntax can't be read")
        return script
    try:
        read_tree(root, data, script)
    except RecursionError:
        script.problems.append("it is nested too deeply")
    return script


def _unreadable(text: str) -> str | None:
    """Return why a text is not even parsed."""
    if len(text) > MAX_CHARS:
        return "it is too long to look into"
    for character in text:
        if " " <= character <= "~" or character in "\n\t":
            continue
        category = unicodedata.category(character)
        if category in {"Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"}:
            return f"it holds the hidden character U+{ord(character):04X}"
        if unicodedata.normalize("NFKC", character).isascii():
            return f"it holds {character} (U+{ord(character):04X}), which only looks like another character"
    return None


@lru_cache(maxsize=1)
def _parser() -> "Parser":
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
