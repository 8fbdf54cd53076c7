"""Finds the words of a shell command that may be names of files.

Each word is found as it is written, and as a shell reads it: without quotes and backslashes, with
variables, braces and ``~`` replaced. Variables have the values of the environment, and those that
the command sets. Parts of a word count as words, too, such as the path in ``--file=PATH`` or
``HOST:PATH``. A quoted text is also read as a command line, because it may be handed to a shell. A
name that a command puts together in another way is not found.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import islice, product

from tui_agent.lazy import LazyPattern, dataclass
from tui_agent.path_checks import with_home

_MAX_NESTING = 5
"""Maximum depth of texts in quotes or substitutions that are read as command lines."""
_MAX_READ = 600_000
"""Maximum number of characters that are read: of a command line, the texts in it, and the words to
which its variables expand."""
_MAX_EXPANDED = 512
"""Maximum number of words that the braces in one word expand to."""
_MAX_MESSAGES = 16
"""Maximum number of messages that are recognised in a command line."""
_MAX_LENGTH = 4096
"""Maximum length, in characters, of a word whose braces or variables are expanded. No path is
longer."""

_LEXED = LazyPattern(
    r"""(?:[^\s'"\\;|&<>()`$]|\$\{[^{}]{0,400}+\}|\$|\\.|'[^']*'|"(?:[^"\\]|\\.)*+")++"""
    r"""|[;|&<>()`\n]""",
    re.DOTALL,
)
"""Matches a word as a shell reads it, or an operator. Skips a quote that is not closed."""
_QUOTED = LazyPattern(
    r"""\\(?P<escaped>.)|\$?'(?P<single>[^']*)'|\$?"(?P<double>(?:[^"\\]|\\.)*+)["]""", re.DOTALL
)
_ESCAPED_BY_BACKQUOTES = LazyPattern(r"\\([$`\\])")
_ESCAPED = LazyPattern(r'\\([$`"\\])')
_OPERATORS = frozenset(";|&<>()`\n")
_AROUND_SUBSTITUTIONS = LazyPattern(r"[()`]")
_CONTINUED = "\\\n"
"""A line feed that a shell removes."""
_PWD = LazyPattern(r"\$\(\s*pwd(?:\s+-[LP])?\s*\)|`\s*pwd(?:\s+-[LP])?\s*`|(?<!\S)~\+(?=/)")
"""Matches what a shell replaces by the current directory, apart from ``$PWD``."""
_RAW_WORD = LazyPattern(r"[^\s'\"=;|&<>()`]+")
"""Matches a word that may be a name in any text, such as a program in another language."""
_VARIABLE = LazyPattern(
    r"\$(?:(?P<plain>[A-Za-z_]\w*+)"
    r"|\{(?P<braced>[A-Za-z_]\w*+)(?::?[-=+](?P<default>[^}]{0,400}+)|[^}]{0,400}+)\})"
)
_ASSIGNMENT = LazyPattern(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_BRACES = LazyPattern(r"(?<!\$)\{([^{}]*,[^{}]*)\}")
_ADDRESS = LazyPattern(r"\b(?:https?|ftp|wss?|ssh|git)://[^\s=@,]*")
"""Matches an address, except for what follows a character that may begin the name of a file."""
_MESSAGE = LazyPattern(
    r"""(?P<before>\A(?:(?:[^'"\\$`#<]|'[^']*+'|"[^"\\$`]*+")*?[;&|\n])?[ ]*"""
    r"""git[ ]+(?:commit|tag|notes[ ]+add)(?:[^'"\\$`#<;|&()\n]|'[^']*+'|"[^"\\$`]*+")*?"""
    r"""[ ](?:-[a-z]*m|--message)[ =]?)(?:'[^']*+'|"[^"\\$`]*+")"""
)
"""Matches a line up to the message of a commit, tag or note, if it is certain where it begins."""
_SEPARATORS = LazyPattern(r"[=@:,]")
_JOINED_OPTION = LazyPattern(r"-[A-Za-z](?=[^-=])")
_MOVES = LazyPattern(r"cd|pushd|-[A-Za-z]*C|--directory|--chdir")
"""Matches a word, such as ``cd``, after which a directory is named. The command, or the rest of the
line, runs in this directory."""
_JOINED_MOVE = LazyPattern(r"(?:--directory=|--chdir=|-[a-z]*C=?)(.+)", re.DOTALL)
"""Matches such an option and the directory in the same word. ``-DCMAKE_…`` is none."""


@dataclass
class CommandNames:
    """The words of a command line that could be names of files, and the directories it changes to.

    ``moves`` are the words after ``cd``, ``pushd``, or an option such as ``-C``, in the order in
    which they are written, with ``~`` replaced. ``words`` are in no particular order.
    """

    words: dict[str, None] = field(default_factory=dict)
    moves: list[str] = field(default_factory=list)
    is_complete: bool = True
    """Whether the whole command was read. If it is too long or nested too deeply, words may be
    missing."""


def names_in(command: str, variables: Mapping[str, str]) -> CommandNames:
    """Return the names in a command line.

    ``variables`` are those of the command's environment. A variable that is not among them, and not
    set by the command, is empty. A default (``${NAME:-default}``) counts as a further value.
    """
    reader = _CommandReader(variables)
    reader.read(_without_messages(command))
    return reader.names()


def parts_of(word: str) -> list[str]:
    """Return the word and the parts of it that may be paths.

    The parts are those between ``=``, ``@``, ``:`` and ``,``, and the value joined to a one-letter
    option. A ``~`` at the start of each is replaced. Addresses (``https://HOST/PATH``) are left
    out.
    """
    if "://" in word:
        word = _ADDRESS.sub("", word)
    found = [word, *_SEPARATORS.split(word)]
    if option := _JOINED_OPTION.match(word):
        value = word[option.end() :]
        found += [value, *_SEPARATORS.split(value)]
    return [with_home(part) for part in dict.fromkeys(found) if part]


class _CommandReader:
    """Reads a command line, and the texts in it that may be command lines themselves.

    ``variables`` are those of the environment. The values that the command sets are known only
    after the whole command has been read.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._environment = variables
        self._set: dict[str, dict[str, None]] = {}
        self._texts: dict[str, Sequence[str]] = {}
        self._unread = _MAX_READ
        self._is_complete = True

    def read(self, text: str, nesting: int = 0) -> None:
        """Read a text, and after it the texts in it. ``nesting`` is the number of texts around it."""
        text = _PWD.sub("$PWD", text.replace(_CONTINUED, ""))
        if text in self._texts:
            return
        self._unread -= len(text)
        if nesting > _MAX_NESTING or self._unread < 0:
            self._is_complete = False
            return
        words = tuple(self._lexed(text))
        self._texts[text] = words
        for name, value in _assignments(words):
            values = self._set.setdefault(name, {})
            for expanded in tuple(self._with_values(value)):
                # A loop over the value takes its words one by one.
                values |= dict.fromkeys([expanded, *expanded.split()])
        for inner in _texts_in(text, words):
            self.read(inner, nesting + 1)

    def names(self) -> CommandNames:
        """Return the names in all texts that were read."""
        names = CommandNames()
        written: dict[str, None] = {}
        for text, words in self._texts.items():
            written |= dict.fromkeys(words)
            written |= dict.fromkeys(_RAW_WORD.findall(text))
            for moved in _moves(words):
                for directory in self._with_values(moved):
                    names.moves += map(with_home, self._without_braces(directory))
        for word in written:
            for expanded in self._expanded(word):
                names.words |= dict.fromkeys(parts_of(expanded))
        names.is_complete = self._is_complete
        return names

    def _lexed(self, text: str) -> Iterator[str]:
        """Yield the words and operators of a text, without quotes, and with braces expanded."""
        for token in _LEXED.findall(text):
            yield _QUOTED.sub(_unquoted, token)
            if "{" in token and _BRACES.search(_QUOTED.sub("", token)):
                for word in self._without_braces(token):
                    yield _QUOTED.sub(_unquoted, word)

    def _without_braces(self, word: str) -> Iterator[str]:
        """Yield the words to which the braces in a word expand, as many as are allowed."""
        found = _without_braces(word)
        yield from islice(found, _MAX_EXPANDED)
        if len(word) > _MAX_LENGTH or next(found, None) is not None:
            self._is_complete = False

    def _expanded(self, word: str) -> Iterator[str]:
        """Yield a word as written, and the words to which a shell expands its variables."""
        yield word
        if "$" not in word:
            return
        for text in self._with_values(word):
            yield text
            yield from _RAW_WORD.findall(text)  # a value may consist of several words

    def _with_values(self, word: str) -> Iterator[str]:
        """Yield a word with each combination of the values of its variables.

        A word that is too long for a path, such as a script, is yielded as it is.
        """
        if len(word) > _MAX_LENGTH:
            yield word
            return
        pieces: list[Iterable[str]] = []
        at = 0
        for variable in _VARIABLE.finditer(word):
            pieces += [(word[at : variable.start()],), self._values(variable)]
            at = variable.end()
        for combined in product(*pieces, (word[at:],)):
            text = "".join(combined)
            self._unread -= len(text)
            if self._unread < 0:
                self._is_complete = False
                return
            yield text

    def _values(self, variable: re.Match[str]) -> list[str]:
        """Return all values that a variable may have where it is used."""
        name = variable["braced"] or variable["plain"]
        values = list(self._set.get(name, ()))
        if self._environment.get(name):
            values.append(self._environment[name])
        if variable["default"] or not values:
            values += self._with_values(variable["default"] or "")
        return values


def _without_messages(command: str) -> str:
    """Return a command line without the messages of ``git commit -m "…"``: they name no file."""
    for _ in range(_MAX_MESSAGES):
        message = _MESSAGE.match(command)
        if message is None:
            break
        command = f"{message['before']}_{command[message.end() :]}"
    return command


def _unquoted(quoted: re.Match[str]) -> str:
    if quoted["double"] is not None:
        return _ESCAPED.sub(r"\1", quoted["double"])
    return quoted["escaped"] or quoted["single"] or ""


def _texts_in(text: str, words: Iterable[str]) -> Iterator[str]:
    """Yield the texts in a text that a shell may read as command lines.

    These are its words that contain spaces, and the values that it assigns. If it contains quotes,
    its substitutions also count, because their quotes are independent of those around them, and its
    lines, because an apostrophe in a comment or here-document is no quote. In backquotes, a shell
    removes backslashes twice.
    """
    for word in words:
        if len(word.split(maxsplit=1)) < 2:
            continue
        yield word
        if assigned := _ASSIGNMENT.fullmatch(word):
            yield assigned[2]
    if '"' in text or "'" in text:
        yield from _AROUND_SUBSTITUTIONS.split(text)
        yield from text.splitlines()
    if "`" in text and "\\" in text:
        yield _ESCAPED_BY_BACKQUOTES.sub(r"\1", text)


def _assignments(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the variables that a command line sets, with a value: ``NAME=VALUE`` and ``for``."""
    loop = ""
    before = ""
    for word in words:
        if assigned := _ASSIGNMENT.fullmatch(word):
            yield assigned[1], assigned[2]
        if before in {"for", "select"}:
            loop = word
        elif word in _OPERATORS or word == "do":
            loop = ""
        elif loop and word != "in":
            yield loop, word
        before = word


def _moves(words: Iterable[str]) -> Iterator[str]:
    """Yield the directories that a command line changes to, as written."""
    before = ""
    for word in (*words, "\n"):
        is_moved = _MOVES.fullmatch(before) is not None
        if is_moved and word in _OPERATORS:
            yield "~"
        elif is_moved and word.startswith("-"):
            continue  # a switch, such as cd -P or cd --
        elif is_moved:
            yield word
        elif joined := _JOINED_MOVE.fullmatch(word):
            yield joined[1]
        before = word


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
