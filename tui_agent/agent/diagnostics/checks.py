"""Finds the checkers for a file, reads problems from their output, and decides which are new.

Reads the project but runs nothing; `Diagnostics` runs the checks.
"""

import fnmatch
import os
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tui_agent.agent.diagnostics.settings import DiagnosticSettings
from tui_agent.files.inside import read_file
from tui_agent.files.secret_files import shown_quote
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.path_checks import is_file
from tui_agent.processes.own_programs import find_project_program
from tui_agent.text_files.encodings import user_text

FILES = "{files}"
"""Placeholder in a checker's command that stands for the edited files."""
_MAX_MARKER_BYTES = 1_000_000
"""Number of bytes at the start of a marker file that are searched for the marker's text."""

_PYTHON = ("*.py", "*.pyi")

_PLACED = LazyPattern(
    r"""
    ^[ \t]*(?:[a-z]+:\s)?                                      # go vet begins with its name
    (?P<path>[^\s:][^:\n]*?)
    (?: :(?P<line>\d+)(?::\d+)*(?:-\d+(?::\d+)?)?:?             # path:line:column:
      | \((?P<line_in_brackets>\d+)(?:,\d+)?\):                 # path(line,column):
    )
    \s+(?:-\s+)?(?P<message>\S.*)$
    """,
    re.VERBOSE | re.MULTILINE,
)

_ASIDE = LazyPattern(r"(?:note|help|info|hint)\b", re.IGNORECASE)
"""Matches the beginning of a message that only adds to the previous one, such as "note"."""

_NUMBERED = LazyPattern(r"\b(lines?|column|col) \d+|:\d+(?::\d+)?\b")
"""Matches line and column numbers in messages, which change when lines move."""

MAX_MESSAGE = 240
"""Maximum number of characters of a problem's message."""

Origins = Mapping[str, Sequence[int | None]]
"""Maps the path of each edited file to a list with one item for each of its lines.

Paths are relative to the project. The item is the line's index before the edit, counted from 0;
None for a new or changed line.
"""


@frozen
class KnownChecker:
    """A program that checks files matching ``patterns`` if it is installed.

    It runs in the nearest directory above the file that has one of the ``markers``. A marker is a
    file's name, and a text that the file must contain ("" for none). Without such a directory the
    program isn't used. If ``markers`` is empty, it runs in the project's root.
    """

    name: str
    patterns: tuple[str, ...]
    arguments: tuple[str, ...]
    markers: tuple[tuple[str, str], ...] = ()


KNOWN_CHECKERS = (
    KnownChecker(
        "ruff",
        _PYTHON,
        ("check", "--quiet", "--output-format", "concise", "--force-exclude", "--", FILES),
    ),
    KnownChecker(
        "mypy",
        _PYTHON,
        (
            "--no-pretty",
            "--no-color-output",
            "--no-error-summary",
            "--hide-error-context",
            "--",
            FILES,
        ),
        (
            ("mypy.ini", ""),
            (".mypy.ini", ""),
            ("pyproject.toml", "[tool.mypy"),
            ("setup.cfg", "[mypy"),
        ),
    ),
    KnownChecker(
        "tsc",
        ("*.ts", "*.tsx", "*.mts", "*.cts"),
        ("--noEmit", "--pretty", "false"),
        (("tsconfig.json", ""),),
    ),
    KnownChecker(
        "cargo", ("*.rs",), ("check", "--quiet", "--message-format", "short"), (("Cargo.toml", ""),)
    ),
    KnownChecker("go", ("*.go",), ("vet", "./..."), (("go.mod", ""),)),
)
"""The known checkers. Each prints ``path:line: message`` or ``path(line,column): message``."""


@frozen
class Check:
    """A way to check files, by a command that runs in ``where`` or by a running language server."""

    name: str
    words: tuple[str, ...]
    """The argument list of the command, with `FILES` in place of the files.

    A command from the settings is a single text for the shell. For a language server, it is ().
    """
    where: Path
    is_users: bool = False
    """Whether the check's command comes from the user's settings.

    Any other command may belong to the project, so it needs a sandbox.
    """
    is_server: bool = False
    """Whether a language server does the check instead of a command."""

    def command(self, files: Sequence[Path]) -> tuple[str, ...]:
        """Return the argument list that checks these files.

        A command from the settings is run by the shell. Paths are relative to ``where``, because a
        sandbox may show that directory elsewhere.
        """
        names = [os.path.join(".", path.relative_to(self.where)) for path in files]  # noqa: PTH118 - keeps the dot
        if self.is_users:
            return ("/bin/sh", "-c", self.words[0].replace(FILES, shlex.join(names)))
        words: list[str] = []
        for word in self.words:
            words += names if word == FILES else [word]
        return tuple(words)


def checks_for(
    path: Path, root: Path, settings: DiagnosticSettings, server: str = ""
) -> list[Check]:
    """Return a file's checks: commands from the settings, or else known checkers if installed.

    If the settings have a pattern for the file, only their commands are returned. Otherwise
    ``server``, the name of the language server that runs for the file ("" for none), is added
    unless a known checker with markers is found, because such checkers also check types. [] for a
    file outside the project ``root``.
    """
    if not path.is_relative_to(root):
        return []
    of_users = _checks_of_users(path.relative_to(root), root, settings)
    if of_users is not None:
        return of_users
    found: list[Check] = []
    knows_types = False
    for checker in KNOWN_CHECKERS:
        where = _place_of(checker, path, root)
        if where is None:
            continue
        program = find_project_program(checker.name, where, root)
        if program is not None:
            found.append(Check(checker.name, (program, *checker.arguments), where))
            knows_types = knows_types or bool(checker.markers)
    if server and not knows_types:
        found.append(Check(server, (), root, is_server=True))
    return found


def _checks_of_users(path: Path, root: Path, settings: DiagnosticSettings) -> list[Check] | None:
    """Return the checks that the settings name for a file; None if no pattern matches the file.

    [] if a pattern matches but has no command.
    """
    found: dict[str, Check] = {}
    is_named = False
    for pattern, commands in settings.commands.items():
        if not (
            fnmatch.fnmatchcase(path.as_posix(), pattern) or fnmatch.fnmatchcase(path.name, pattern)
        ):
            continue
        is_named = True
        for line in [commands] if isinstance(commands, str) else commands:
            if line.strip():
                program = Path(line.split(maxsplit=1)[0]).name
                found[line] = Check(program, (line,), root, is_users=True)
    return list(found.values()) if is_named else None


def _place_of(checker: KnownChecker, path: Path, root: Path) -> Path | None:
    """Return the directory where a checker runs for a file; None if it doesn't check this file."""
    if not any(path.match(pattern) for pattern in checker.patterns):
        return None
    if not checker.markers:
        return root
    for directory in path.parents:
        if not directory.is_relative_to(root):
            break
        if any(_holds(directory / name, text) for name, text in checker.markers):
            return directory
    return None


def _holds(path: Path, text: str) -> bool:
    if not is_file(path):
        return False
    try:
        # Limit what is read, because a link may lead to an endless file such as /proc/kmsg.
        return not text or text in user_text(read_file(path, _MAX_MARKER_BYTES)[0])
    except OSError:
        return False


@frozen
class Problem:
    """A problem that a checker found.

    ``path`` is relative to the project, ``line`` counts from 1.
    """

    path: str
    line: int
    message: str

    @property
    def key(self) -> tuple[str, str]:
        """The path, and the message without line numbers, which change when lines move."""
        return self.path, _NUMBERED.sub("", self.message)

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def parse_problems(output: str, where: Path, root: Path) -> list[Problem]:
    """Return the problems in a checker's output that are in files of the project ``root``.

    ``where`` is the directory in which the checker ran.
    """
    names: dict[str, str] = {}
    found: list[Problem] = []
    for match in _PLACED.finditer(output):
        message = " ".join(match["message"].split())
        if _ASIDE.match(message):
            continue
        written = match["path"]
        if written not in names:
            path = os.path.normpath(where / written)
            inside = path.startswith(f"{root}{os.sep}") and os.path.isfile(path)  # noqa: PTH113 - a str, not a Path
            names[written] = Path(path).relative_to(root).as_posix() if inside else ""
        if names[written]:
            line = int((match["line"] or match["line_in_brackets"])[:9])
            found.append(problem_in(root, names[written], line, message))
    return found


def problem_in(root: Path, name: str, line: int, message: str) -> Problem:
    """Return a problem in the file ``name``, a path relative to the project ``root``.

    Secrets in the message are redacted, and it is cut to `MAX_MESSAGE` characters.
    """
    from tui_agent.secret_detector import remove_secrets

    quoted = shown_quote(root / name, " ".join(message.split())[: 4 * MAX_MESSAGE])
    return Problem(name, line, remove_secrets(quoted)[:MAX_MESSAGE])


def new_problems(
    before: Iterable[Problem] | None, after: Iterable[Problem], origins: Origins
) -> list[Problem]:
    """Return the problems in ``after`` that an edit caused.

    A problem is old if ``before`` has the same message (apart from line numbers) for the same line,
    or else for any line of the file; each problem in ``before`` counts once. If ``before`` is None
    (unknown), the problems on new lines of edited files are returned.
    """
    if before is None:
        return [problem for problem in after if _is_on_new_line(problem, origins)]
    known: dict[tuple[str, str], Counter[int | None]] = defaultdict(Counter)
    for problem in before:
        known[problem.key][problem.line] += 1
    unplaced = []
    for problem in after:
        lines = known[problem.key]
        was = _line_before(problem, origins)
        if lines[was]:
            lines[was] -= 1
        else:
            unplaced.append(problem)
    left = Counter({key: lines.total() for key, lines in known.items()})
    new = []
    for problem in unplaced:
        if left[problem.key]:
            left[problem.key] -= 1
        else:
            new.append(problem)
    return new


def _is_on_new_line(problem: Problem, origins: Origins) -> bool:
    return problem.path in origins and _line_before(problem, origins) is None


def _line_before(problem: Problem, origins: Origins) -> int | None:
    lines = origins.get(problem.path)
    if lines is None:
        return problem.line
    # Use the last line if the checker reports a line beyond the end of the file.
    at = min(problem.line, len(lines)) - 1
    was = lines[at] if at >= 0 else 0
    return None if was is None else was + 1
