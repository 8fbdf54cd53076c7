"""Finds the words of a shell command that may be names of files.

Each word is found as it is written, and as a shell reads it: without quotes and backslashes, with
variables, braces and ``~`` replaced. Parts of a word count as words, too, such as the path in
``--file=PATH`` or ``HOST:PATH``. A name that a command puts together in another way is not found.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import islice

from tui_agent.lazy import LazyPattern
from tui_agent.path_checks import with_home

_MAX_EXPANDED = 64
"""Maximum number of words that the braces in one word expand to. Further words are ignored."""
_MAX_LENGTH = 4096
"""Maximum length, in characters, of a word whose braces are expanded. No path is longer."""

_WORD = LazyPattern(r"[^\s'\"=;|&<>()$`]+")
_VARIABLE = LazyPattern(
    r"\$(?:(?P<plain>[A-Za-z_]\w*+)"
    r"|\{(?P<braced>[A-Za-z_]\w*+)(?::?-(?P<default>[^}]{0,400}+)|[^}]{0,400}+)\})"
)
_BRACES = LazyPattern(r"\{([^{}]*,[^{}]*)\}")
_SEPARATORS = LazyPattern(r"[=@:,]")
_JOINED_OPTION = LazyPattern(r"-[A-Za-z](?=[^-=])")
_MOVES = LazyPattern(r"cd|pushd|-[A-Za-z]*C|--directory|--chdir")
"""Matches a word, such as ``cd``, after which a directory is named. The command, or the rest of the
line, runs in this directory."""


def words_of(command: str, variables: Mapping[str, str]) -> dict[str, None]:
    """Return all words of a command line that could be names of files, in no particular order.

    ``variables`` are those of the command's environment. A variable that is not among them has its
    default (``${NAME:-default}``), or is empty.
    """
    expanded = _expanded(command, variables)
    found = [*_WORD.findall(command), *_WORD.findall(expanded), *_as_a_shell(expanded)]
    words: dict[str, None] = {}
    for word in found:
        # Also keep the word with its braces: in quotes, they belong to the file's name.
        for text in (word, *islice(_without_braces(word), _MAX_EXPANDED)):
            words |= dict.fromkeys(parts_of(text))
    return words


def directories_moved_to(command: str, variables: Mapping[str, str]) -> Iterator[str]:
    """Yield the directories that a command line changes to, as written, but with ``~`` replaced.

    These are the words after ``cd``, ``pushd``, or an option such as ``-C``.
    """
    before = ""
    for word in _as_a_shell(_expanded(command, variables)):
        name, equals, value = word.partition("=")
        is_moved = _MOVES.fullmatch(before) is not None
        if is_moved and word.startswith("-"):
            continue  # a switch, such as cd -P or cd --
        if is_moved:
            yield with_home(word)
        elif equals and _MOVES.fullmatch(name):
            yield with_home(value)
        before = word


def parts_of(word: str) -> list[str]:
    """Return the word and the parts of it that may be paths.

    The parts are those between ``=``, ``@``, ``:`` and ``,``, and the value joined to a one-letter
    option. A ``~`` at the start of each is replaced.
    """
    found = [word, *_SEPARATORS.split(word)]
    if option := _JOINED_OPTION.match(word):
        found.append(word[option.end() :])
    return [with_home(part) for part in dict.fromkeys(found) if part]


def _expanded(command: str, variables: Mapping[str, str]) -> str:
    """Return a command line in which each variable is replaced by its value or default."""

    def value_of(match: re.Match[str]) -> str:
        return variables.get(match["braced"] or match["plain"]) or match["default"] or ""

    return _VARIABLE.sub(value_of, command)


@lru_cache(maxsize=1)
def _as_a_shell(command: str) -> tuple[str, ...]:
    """Return the words that a shell would find in a command line, without quotes and backslashes.

    If a quote is not closed, as an apostrophe in a comment, each line is read on its own. Of a line
    with such a quote, returns only the words before it.
    """
    try:
        return tuple(_lexer(command))
    except ValueError:
        words: list[str] = []
        for line in command.splitlines():
            with suppress(ValueError):
                words += _lexer(line)
        return tuple(words)


def _lexer(command: str) -> shlex.shlex:
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    return lexer


def _without_braces(word: str) -> Iterator[str]:
    """Yield the words to which a shell expands the braces in a word, such as ``a{b,c}``.

    If the word has no braces, yields the word itself.
    """
    waiting = [word]
    while waiting:
        text = waiting.pop()
        braces = _BRACES.search(text)
        if braces is None or len(text) > _MAX_LENGTH:
            yield text
            continue
        for choice in reversed(braces[1].split(",")):
            waiting.append(f"{text[: braces.start()]}{choice}{text[braces.end() :]}")
