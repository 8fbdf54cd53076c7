"""A strict grammar of read-only commands, which run without a question even without a sandbox.

A command line that runs without a question is called free. Every character of a free line belongs
to a token defined here, every program is in `TABLE`, every switch is named in the program's row,
and every operand has the form that the row requires. Lines with expansions, globs, redirections to
files, here-documents, assignments or groups are never free. Every path must be in the project and
must not contain a link. A file whose content is read must not contain a secret. No setting can
extend the table.
"""

import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from tui_agent.files.ripgrep import IGNORE_FILES, ignore_files_are_plain
from tui_agent.files.secret_files import file_holds_secret, is_code_or_example
from tui_agent.files.sensitive import is_sensitive
from tui_agent.lazy import frozen
from tui_agent.path_checks import is_directory, is_file

MAX_FILES = 20_000
"""Maximum number of entries in a directory tree that may be searched without asking the user."""

MAX_SEARCHED_BYTES = 4_000_000
"""Maximum total size, in bytes, of the files that are checked for secrets before a search.

Source code, Markdown and files made to be shared don't count. If the other files below the
directory are larger in total, the user is asked before the search.
"""

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t]+)
    | (?P<quiet>(?:[12]?>[ ]?/dev/null|2>&1)(?=[ \t\n;|]|$))
    | (?P<end>\|\||&&|\||;|\n)
    | (?P<word>(?:[A-Za-z0-9_@%+=:,./^-]|(?<=[A-Za-z0-9])~|'[^'\n]*'|"(?:[^"$`\\\n]|\\[^"$`\\\n])*")+)
    """,
    re.VERBOSE | re.ASCII,
)
_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_BUILTINS = frozenset({"cd", "echo", "false", "pwd", "true"})

_READABLE = re.compile(r"[\t\n -~]*")

SimpleCommands = list[tuple[tuple[str, ...], str]]
"""The simple commands of a line, as pairs of words and the separator after them ("" at the end)."""

_SED = r"(?:(?:\d+|\$)(?:,(?:\d+|\$))?[pd](?:;|$))+"
_JQ = (
    r"(?:\s|[|,]|\.(?:[A-Za-z_]\w*)?|\[(?:\d+|\"\w+\")?\]|\b(?:keys|length|type|not|first|last)\b)+"
)


@frozen
class CommandPlace:
    """The project and the working directory of a command, both with all links resolved."""

    project: Path
    folder: Path

    def inside(self, text: str) -> Path | None:
        """Return the absolute path for ``text``, a path as written in the command.

        Returns None if the path is outside the project or contains a link.
        """
        written = os.path.join(self.folder, text)  # noqa: PTH118 - a path as a shell takes it
        path = Path(os.path.normpath(written))
        if os.path.realpath(written) == str(path) and path.is_relative_to(self.project):
            return path
        return None


def is_listable(text: str, place: CommandPlace) -> bool:
    """Return True if ``text`` is a path in the project that contains no link and no ``.git``."""
    if text.startswith("-") or not text:
        return False
    path = place.inside(text)
    return path is not None and ".git" not in below(path, place)


def below(path: Path, place: CommandPlace) -> list[str]:
    """Return the parts of the path from the project to a path inside it, in lower case."""
    return [part.lower() for part in path.relative_to(place.project).parts]


OperandForm = Callable[[str, CommandPlace], bool]
"""A function that takes an operand and a `CommandPlace`, and returns True if it is allowed."""


def _pattern(pattern: str) -> OperandForm:
    return lambda text, _place: re.fullmatch(pattern, text, re.ASCII | re.DOTALL) is not None


def _file(text: str, place: CommandPlace) -> bool:
    """Return True for a regular file that contains no secret, and for a path that doesn't exist.

    The path must be in the project. Returns False if any name on the path suggests secrets.
    """
    path = None
    if is_listable(text, place):
        path = place.inside(text)
    if path is None or any(map(is_sensitive, below(path, place))) or file_holds_secret(path):
        return False
    return is_file(path) or not os.path.lexists(path)


def _tree(text: str, place: CommandPlace) -> bool:
    """Return True if a file or directory may be searched.

    For a file, `_file` decides. A directory may be searched if it contains no secrets and no
    repository, and isn't too large to be checked. All its ignore files must be regular files.
    """
    path = None
    if is_listable(text, place):
        path = place.inside(text)
    if path is None or not is_directory(path):
        return _file(text, place)
    plain = ignore_files_are_plain(path) and not any(map(is_sensitive, below(path, place)))
    return plain and _holds_no_secrets(path)


def _holds_no_secrets(directory: Path) -> bool:
    pending = [str(directory)]
    count = 0
    unread = MAX_SEARCHED_BYTES
    while pending:
        try:
            with os.scandir(pending.pop()) as rows:
                for row in rows:
                    count += 1
                    if count > MAX_FILES or row.name.lower() == ".git" or is_sensitive(row.name):
                        return False
                    if row.is_dir(follow_symlinks=False):
                        pending.append(row.path)
                    elif row.is_file(follow_symlinks=False):
                        if not is_code_or_example(Path(row.name)):
                            unread -= row.stat(follow_symlinks=False).st_size
                        if unread < 0 or file_holds_secret(Path(row.path)):
                            return False
                    elif row.name in IGNORE_FILES:
                        return False
        except OSError:
            return False
    return True


_text = _pattern(r"[^-].*|")
_anything = _pattern(r".*")


@frozen
class ProgramUsage:
    """The switches and operands that a program may have in a line that runs without a question.

    ``flags`` are the letters of switches without a value, which may be combined (``-la``).
    ``valued`` are the letters of switches with a value. ``long`` is a regular expression for other
    switches. A value in the same word as its switch may only be a number or a punctuation mark. A
    value in the next word counts as an operand. ``form`` is the allowed form of operands, or None
    if operands are not allowed. ``first`` is the form of the first operand, if it differs.
    """

    flags: str = ""
    form: OperandForm | None = None
    valued: str = ""
    long: str = r"(?!)"
    first: OperandForm | None = None
    recursive: str = ""
    """Letter of the switch for a recursive search; "-" if the program always searches recursively,
    "" if it never does."""

    def admits(self, words: Sequence[str], place: CommandPlace) -> bool:
        """Return True if all ``words`` after the program's name are allowed.

        Looks up paths on disk.
        """
        if self.form is _anything:
            return True
        switches, operands = _apart(words)
        # A value must not contain letters, because some programs read letters after a value as
        # switches. NUL, which never occurs in a line, keeps the pattern valid if there are no
        # letters.
        letters = rf"-[{self.flags}\0]*(?:[{self.valued}\0](?:[\d.,+-]*|[^\w-]))?"
        known = re.compile(f"{letters}|{self.long}", re.ASCII)
        if "-" in switches or not all(map(known.fullmatch, switches)):
            return False
        # The pattern to search for may be given with a switch, before or after the files.
        is_given = "e" in self.valued and any(
            "e" in switch and re.fullmatch(letters, switch) for switch in switches
        )
        form = self.form
        if self.recursive and self.recursive in "".join(["-", *switches]):
            form = _tree
            values = sum(switch[-1] in self.valued for switch in switches)
            if len(operands) - values < 2 - is_given:
                operands.append(".")
        if form is None:
            return not operands
        forms = [form] * len(operands)
        if forms and self.first is not None and not is_given:
            forms[0] = self.first
        return all(fits(operand, place) for fits, operand in zip(forms, operands, strict=True))


def _apart(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split a command's words into switches and operands. All words after ``--`` are operands."""
    switches: list[str] = []
    operands: list[str] = []
    for at, word in enumerate(words, 1):
        if word == "--":
            operands += words[at:]
            break
        if word.startswith("-"):
            switches.append(word)
        else:
            operands.append(word)
    return switches, operands


TABLE: dict[str, ProgramUsage] = {
    "basename": ProgramUsage("", _text),
    "cat": ProgramUsage("nbsAETv", _file),
    "cmp": ProgramUsage("s", _file),
    "cut": ProgramUsage("s", _file, "dfcb", r"-d."),
    "date": ProgramUsage("u", _pattern(r"\+[\w%:/ .,-]+")),
    "df": ProgramUsage("hTi", is_listable),
    "diff": ProgramUsage("uqsbwBi", _file, "U"),
    "dirname": ProgramUsage("", _text),
    "du": ProgramUsage("shackm", is_listable, "d", r"--max-depth=\d{1,2}"),
    "echo": ProgramUsage("", _anything),
    "false": ProgramUsage(),
    "file": ProgramUsage("bi", _file),
    "grep": ProgramUsage(
        "nivclLwxohHEFPIqsr",
        _file,
        "ABCme",
        r"--color=never|--(?:in|ex)clude(?:-dir)?=[\w*.-]+",
        first=_text,
        recursive="r",
    ),
    "head": ProgramUsage("qv", _file, "nc", r"-\d{1,6}"),
    "jq": ProgramUsage("rcSe", _file, first=_pattern(_JQ)),
    "ls": ProgramUsage("laAhtrSR1dFipsgnG", is_listable, long=r"--color=never"),
    "nl": ProgramUsage("", _file, "b", r"-b[atn]"),
    "nproc": ProgramUsage(),
    "pwd": ProgramUsage("LP"),
    "rg": ProgramUsage(
        "nilcwFSsovxNIHU",
        _file,
        "ABCmet",
        r"--color=never|--no-heading|-t[a-z]+|--type=[a-z]+",
        first=_text,
        recursive="-",
    ),
    "sed": ProgramUsage("nE", _file, first=_pattern(_SED)),
    "sha256sum": ProgramUsage("", _file),
    "sleep": ProgramUsage("", _pattern(r"\d{1,6}")),
    "sort": ProgramUsage("nrufhVbg", _file, "kt", r"-k[\d.,nrfhVbg]+|-t."),
    "stat": ProgramUsage("", is_listable, "c", r"-c.+"),
    "tail": ProgramUsage("qv", _file, "nc", r"-\d{1,6}"),
    "tr": ProgramUsage("dsc", _text),
    "tree": ProgramUsage("adf", is_listable, "L"),
    "true": ProgramUsage(),
    "uname": ProgramUsage("asnrmpio"),
    "uniq": ProgramUsage("cdui"),
    "wc": ProgramUsage("lwcmL", _file),
    "which": ProgramUsage("a", _pattern(r"[A-Za-z0-9][\w.+-]*")),
    "whoami": ProgramUsage(),
}
"""The programs, besides ``cd``, that a line may run without a question."""


def is_free(command: str, folder: Path, project: Path) -> bool:
    """Return True if a command line is free, that is, if it runs without asking the user.

    A free command line only reads the project, and its output shows no secrets. Returns False if
    its working directory ``folder`` isn't in the project. Looks up paths on disk.
    """
    line = read_line(command)
    if not line:
        return False
    place = CommandPlace(Path(os.path.realpath(project)), Path(os.path.realpath(folder)))
    if not place.folder.is_relative_to(place.project):
        return False
    stops_on_failure = {end for _words, end in line} <= {"&&", "|", ""}
    before = ""
    for words, end in line:
        if words[0] != "cd":
            if not _is_admitted(words, place):
                return False
        else:
            # If a ``cd`` fails, later commands would run in the old directory, so they must not
            # run. A ``cd`` in a pipe doesn't change the directory of later commands.
            moved = _moved(words, place)
            if moved is None or not stops_on_failure or "|" in {before, end}:
                return False
            place = moved
        before = end
    return True


def _moved(words: Sequence[str], place: CommandPlace) -> CommandPlace | None:
    """Return the project and the new working directory after a ``cd``.

    Returns None unless the ``cd`` has exactly one argument, which must be a directory that may be
    listed.
    """
    if len(words) != 2 or not is_listable(words[1], place):
        return None
    path = place.inside(words[1])
    if path is None or not is_directory(path):
        return None
    return CommandPlace(place.project, path)


def _is_admitted(words: Sequence[str], place: CommandPlace) -> bool:
    """Return True if `TABLE` allows a command and the program isn't part of the project.

    The program is looked up on ``PATH``. If it isn't found, nothing runs, so the command is
    allowed. Shell builtins are not looked up.
    """
    program, *rest = words
    if program not in TABLE or not TABLE[program].admits(rest, place):
        return False
    if program in _BUILTINS:
        return True
    found = shutil.which(program)
    if not found:
        return True  # The program isn't installed, so nothing runs.
    is_of_project = Path(os.path.realpath(found)).is_relative_to(place.project)
    return found.startswith("/") and not is_of_project


def _unquoted(quoted: "re.Match[str]") -> str:
    if quoted[1] is None:
        return quoted[2]
    return quoted[1]


def read_line(command: str) -> SimpleCommands | None:
    """Return the simple commands of a line that consists of plain words. Quotes are removed.

    Besides words, only separators (``|``, ``&&``, ``||``, ``;``, line feed), redirections to
    ``/dev/null``, and ``2>&1`` are allowed. Returns None for any other line, and [] for an empty
    line.
    """
    line: SimpleCommands = []
    words: list[str] = []
    at = 0
    if not _READABLE.fullmatch(command):
        return None
    while at < len(command):
        token = _TOKEN.match(command, at)
        if token is None:
            return None
        at = token.end()
        if token.lastgroup == "word":
            words.append(_QUOTED.sub(_unquoted, token[0]))
        elif token.lastgroup == "end" and words:
            line.append((tuple(words), token[0]))
            words = []
    if words:
        line.append((tuple(words), ""))
    return line
