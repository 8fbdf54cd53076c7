"""Which commands look over a file: the user's, or those that are found in the project and on ``PATH``."""

import fnmatch
import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from tui_agent.agent.diagnostics.settings import DiagnosticSettings
from tui_agent.lazy import dataclass
from tui_agent.path_checks import is_file
from tui_agent.processes.own_programs import find_program

FILES = "{files}"
"""Stands in a command for the edited files."""
_OWN_PLACES = (".venv/bin", "venv/bin", "node_modules/.bin")
"""Where a project keeps programs."""
_MAX_MARKER_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class KnownChecker:
    """A program that is used where it is found.

    ``markers`` are files that make a directory one that it works in, each with a text they have to hold; without any
    it works in the project's root.
    """

    name: str
    patterns: tuple[str, ...]
    arguments: tuple[str, ...]
    markers: tuple[tuple[str, str], ...] = ()


_PYTHON = ("*.py", "*.pyi")
KNOWN_CHECKERS = (
    KnownChecker("ruff", _PYTHON, ("check", "--quiet", "--output-format", "concise", "--force-exclude", "--", FILES)),
    KnownChecker(
        "mypy",
        _PYTHON,
        ("--no-pretty", "--no-color-output", "--no-error-summary", "--hide-error-context", "--", FILES),
        (("mypy.ini", ""), (".mypy.ini", ""), ("pyproject.toml", "[tool.mypy"), ("setup.cfg", "[mypy")),
    ),
    KnownChecker(
        "tsc", ("*.ts", "*.tsx", "*.mts", "*.cts"), ("--noEmit", "--pretty", "false"), (("tsconfig.json", ""),)
    ),
    KnownChecker("cargo", ("*.rs",), ("check", "--quiet", "--message-format", "short"), (("Cargo.toml", ""),)),
    KnownChecker("go", ("*.go",), ("vet", "./..."), (("go.mod", ""),)),
)
"""What is looked for. Each prints ``path:line: message`` or ``path(line,column): message``."""


@dataclass(frozen=True, slots=True)
class Check:
    """One command. ``is_users`` says that the settings name it; others may be a project's own and need a sandbox."""

    name: str
    words: tuple[str, ...]
    where: Path
    is_users: bool = False

    def command(self, files: Sequence[Path]) -> tuple[str, ...]:
        if self.is_users:
            quoted = " ".join(shlex.quote(str(path)) for path in files)
            return ("/bin/sh", "-c", self.words[0].replace(FILES, quoted))
        return tuple(part for word in self.words for part in (map(str, files) if word == FILES else (word,)))


def checks_for(path: Path, root: Path, settings: DiagnosticSettings) -> list[Check]:
    """Return what looks over a file of a project. Looks at files."""
    if not path.is_relative_to(root):
        return []
    name = path.relative_to(root).as_posix()
    chosen = [commands for pattern, commands in settings.commands.items() if _fits(name, pattern)]
    if chosen:
        lines = [line for commands in chosen for line in ((commands,) if isinstance(commands, str) else commands)]
        return [Check(_first_word(line), (line,), root, is_users=True) for line in dict.fromkeys(lines) if line.strip()]
    return list(_found(path, root))


def _found(path: Path, root: Path) -> Iterator[Check]:
    for checker in KNOWN_CHECKERS:
        if not any(map(path.match, checker.patterns)):
            continue
        where = _place_of(checker, path, root)
        program = find_checker(checker.name, where, root) if where is not None else None
        if where is not None and program is not None:
            yield Check(checker.name, (program, *checker.arguments), where)


def find_checker(name: str, where: Path, root: Path) -> str | None:
    """Return the program, the project's own first; None where there is none."""
    for directory in (where, *where.parents):
        if directory.is_relative_to(root):
            for place in _OWN_PLACES:
                program = directory / place / name
                if is_file(program) and os.access(program, os.X_OK):
                    return str(program)
    return find_program(name, root)


def _place_of(checker: KnownChecker, path: Path, root: Path) -> Path | None:
    """Return the directory to run in: the nearest one that is set up for it; None where none is."""
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
        return not text or (path.stat().st_size < _MAX_MARKER_BYTES and text in path.read_text("utf-8", "replace"))
    except OSError:
        return False


def _fits(name: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(name.rpartition("/")[2], pattern)


def _first_word(line: str) -> str:
    return Path(line.split(maxsplit=1)[0]).name if line.strip() else ""
