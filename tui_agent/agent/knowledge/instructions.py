"""Finds and reads instruction files (AGENTS.md, CLAUDE.md, …); returns the text for the model.

Other programs' files are read as those programs do: one main file per directory and a local file
beside it, rules that apply to certain paths, and files imported with ``@path``.
"""

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import filterfalse
from pathlib import Path

from tui_agent.agent.knowledge.documents import (
    FRONT,
    Document,
    DocumentError,
    FileCache,
    LeftOutError,
    parse_document,
)
from tui_agent.agent.knowledge.folders import Folders
from tui_agent.files.globs import compile_glob, is_costly, split_glob
from tui_agent.files.ignore import IgnoreRules
from tui_agent.files.sensitive import is_sensitive
from tui_agent.lazy import frozen
from tui_agent.markdown_imports import Import, imports_of, without_comments
from tui_agent.path_checks import at_home, is_inside, is_link, is_there
from tui_agent.places import Place, in_home, places_of
from tui_agent.safe_text import one_line
from tui_agent.trust import importing_files

FILE_BYTES = 32 * 1024
"""Maximum number of bytes of one instruction file that are sent to the model."""
MAX_FILES = 50
"""Maximum number of files for one pattern in the ``instructions`` setting.

Also the maximum number of imports in one file, and of rules in one folder.
"""
MAX_HOPS = 4
"""Maximum depth of nested imports, as in Claude Code."""
_RULES = {".mdc": "globs", ".md": "paths"}
"""Suffixes of rule files, each with the front matter field for the paths that a rule applies to.

The first is Cursor's, the second Claude Code's.
"""
_FOREIGN = frozenset({"node_modules", "site-packages", ".venv", "venv", "vendor"})
"""Names of directories with third-party code, in which instruction files are ignored."""


@frozen
class Instruction:
    """One instruction file; ``name`` is its path for screens, ``text`` the text sent to the model.

    ``imported`` is the file and line that imports it ("AGENTS.md:3"), "" if it is not imported.
    """

    name: str
    text: str
    imported: str = ""

    @property
    def section(self) -> str:
        """The file's text and path in an ``<instructions>`` element, for the system prompt."""
        # Escape a closing tag in the text, because it would end the element early.
        body = self.text.replace("</instructions>", "<\\/instructions>")
        source = ""
        if self.imported:
            source = f' imported="{_quoted(self.imported)}"'
        return f'<instructions path="{_quoted(self.name)}"{source}>\n{body}\n</instructions>'


@frozen
class _Rule:
    """An instruction file from a folder of rules.

    ``holds_for`` are patterns for the paths that the rule applies to; None for all paths.
    """

    path: Path
    holds_for: tuple[re.Pattern[str], ...] | None

    def is_for(self, names: Iterable[str]) -> bool:
        """Return True if the rule is for certain paths and applies to one of ``names``."""
        return any(pattern.fullmatch(name) for name in names for pattern in self.holds_for or ())


class InstructionFiles:
    """Finds and reads the instructions of one session.

    ``wanted`` is the ``instructions`` setting. ``order`` are the names of main files, preferred
    first. ``trusted`` returns whether the project's files may import files outside the project.
    """

    def __init__(
        self,
        folders: Folders,
        files: FileCache,
        wanted: Sequence[str],
        *,
        order: Sequence[str] = (),
        trusted: Callable[[], bool] = lambda: False,
    ) -> None:
        self._folders = folders
        self._files = files
        self._wanted = tuple(wanted)
        places = folders.places("instructions")
        self._further = [place for place in places if place.is_further]
        names = [place.project for place in places if place.project and not place.is_further]
        self._order = (*order, *(name for name in names if name not in order))
        self._trusted = trusted
        self.passed_over: dict[str, str] = {}
        """The names of main files that were skipped, each with the file that was read instead."""
        self.for_paths: tuple[str, ...] = ()
        """Names of rule files that are only read together with a file to which they apply."""

    def load(self, problems: list[str]) -> tuple[Instruction, ...]:
        """Return the instructions for the system prompt, and report unusable files in ``problems``.

        The order is: the user's own files and rules, the files of directories (outermost first),
        the project's rules for all paths, and the files in the ``instructions`` setting.
        """
        self.passed_over = {}
        reading = _Reading(self, problems)
        for path in self._paths(problems):
            reading.add(path)
        problems += self._not_files()
        return tuple(reading.found.values())

    def _not_files(self) -> Iterator[str]:
        """Yield a sentence for each path that is named like a main file but isn't a file."""
        folders = self._folders
        for folder in (folders.config, *folders.above(), *reversed(folders.upward())):
            for name in self._order:
                for path in (folder / spelling for spelling in _spellings(name)):
                    if path.suffix == ".md" and os.path.lexists(path) and not _is_there(path):
                        yield f"{self.name(path)} is left out: {_what_it_is(path)}."

    def nearby(
        self, paths: Iterable[str], shown: Collection[str], problems: list[str]
    ) -> tuple[Instruction, ...]:
        """Return the instructions for some of the project's files that the model doesn't have yet.

        These are the instruction files in the files' directories, outermost first, then rules for
        these files. ``paths`` are relative to the project. Instructions in the system prompt, and
        those with names in ``shown``, are left out; ignored directories and those with third-party
        code are skipped. Files that can't be read are reported in ``problems``.
        """
        reading = _Reading(self, problems, shown)
        root = Path(os.path.realpath(self._folders.project))
        names = tuple(paths)
        for directory in dict.fromkeys(self._between(root, names)):
            for path in self._of_directory(self._folders.project / directory.relative_to(root)):
                reading.add(path)
        for rule in self._rules(problems):
            if rule.is_for(names):
                reading.add(rule.path)
        return tuple(reading.found.values())

    def name(self, path: Path) -> str:
        return self._folders.name(path)

    def read(self, path: Path) -> str:
        """Return the text of a file as sent to the model; "" if it is missing or empty.

        Front matter of rules and HTML comments are removed; a text over `FILE_BYTES` is cut, with a
        note. Raises DocumentError.
        """
        file = self._files.read(path, FILE_BYTES)
        if file is None:
            return ""
        text = file.text.strip()
        if path.suffix in _RULES:
            text = _body(text)
        text = without_comments(text)
        if file.cut:
            text += f"\n[The first {FILE_BYTES // 1024} KiB of {file.size:,} bytes; read the file for the rest.]"
        return text

    def imported(self, path: Path, named: Import) -> Path | None:
        """Return the file named by an import in the file ``path``; None if it is not an import.

        Raises DocumentError if the file is missing, may hold secrets, or is outside the project
        without permission.
        """
        target = Path(os.path.normpath(path.parent / at_home(named.path)))
        if not _is_there(target):
            if named.looks_like_a_file:
                raise DocumentError("there is no such file")
            return None
        if is_sensitive(os.path.realpath(target)):
            raise DocumentError("it usually holds secrets")
        if self._is_users(path) or is_inside(self._folders.project, target):
            return target
        if path not in importing_files(self._folders.project, self._folders.cwd):
            raise DocumentError(
                "it is outside the project; only the project's main files may import such files"
            )
        if not self._trusted():
            raise DocumentError("it is outside the project, and you do not trust the project")
        return target

    def _between(self, root: Path, paths: Iterable[str]) -> Iterator[Path]:
        """Yield the directories between ``root`` and each of the given files, outermost first.

        Directories from the working directory upward are left out, because their files are in the
        system prompt.
        """
        above = {Path(os.path.realpath(folder)) for folder in self._folders.upward()}
        for name in paths:
            real = Path(os.path.realpath(root / name))
            if not real.is_relative_to(root):
                continue
            rules = IgnoreRules().entering(root)
            directory = root
            for part in real.relative_to(root).parts[:-1]:
                directory = directory / part
                if part in _FOREIGN or rules.ignored(str(directory), directory=True):
                    break
                rules = rules.entering(directory)
                if directory not in above:
                    yield directory

    def _paths(self, problems: list[str]) -> Iterator[Path]:
        folders = self._folders
        rules = list(self._rules(problems))
        self.for_paths = tuple(self.name(rule.path) for rule in rules if rule.holds_for is not None)
        yield from self._of_user()
        always = [rule.path for rule in rules if rule.holds_for is None]
        yield from filter(self._is_users, always)
        for folder in (*folders.above(), *reversed(folders.upward())):
            yield from self._of_directory(folder)
        yield from filterfalse(self._is_users, always)
        for pattern in self._wanted:
            if "://" in pattern:
                problems.append(
                    f"instructions: web addresses are not read; save {pattern} as a file."
                )
                continue
            matches = sorted(_matching(folders.project, pattern))
            if not matches:
                problems.append(f"instructions: nothing matches {pattern}.")
            yield from matches[:MAX_FILES]

    def _is_users(self, path: Path) -> bool:
        return not path.is_relative_to(self._folders.project)

    def _of_user(self) -> Iterator[Path]:
        """Yield the user's own files that exist.

        First this program's main file, then one main file of each other program, then local files.
        """
        yield from _first([self._folders.config / name for name in self._order])
        programs: dict[str, list[Path]] = {}
        further: list[list[Path]] = []
        for place in self._folders.places("instructions"):
            if not place.home:
                continue
            path = in_home(self._folders.home, place.home)
            if place.is_further:
                further.append([path])
            else:
                programs.setdefault(place.whose, []).append(path)
        for paths in (*programs.values(), *further):
            yield from _first(paths)

    def _of_directory(self, folder: Path) -> Iterator[Path]:
        """Yield the main files to read in a directory, then the local files beside them.

        The first is the directory's main file; others follow if they belong to the same program.
        """
        mains: list[Path] = []
        for name in self._order:
            for path in _first([folder / spelling for spelling in _spellings(name)]):
                if not self._is_empty(path):
                    mains.append(path)
        if mains:
            chosen = self._most_complete(mains)
            program = _program_of(chosen, folder)
            for path in dict.fromkeys((chosen, *mains)):
                if path == chosen or (program and _program_of(path, folder) == program):
                    yield path
                else:
                    self.passed_over[self.name(path)] = self.name(chosen)
        for place in self._further:
            if place.project:
                yield from _first([folder / place.project])

    def _is_empty(self, path: Path) -> bool:
        """Return True if a file contains no text; False if it can't be read."""
        try:
            return not self.read(path)
        except DocumentError:
            return False

    def _most_complete(self, mains: Sequence[Path]) -> Path:
        """Return the main file to read: the first of ``mains``, or one that imports the first."""
        first = mains[0]
        for other in mains[1:]:
            try:
                text = self.read(other)
            except DocumentError:
                continue
            for item in imports_of(text):
                if Path(os.path.normpath(other.parent / item.path)) == first:
                    return other
        return first

    def _rules(self, problems: list[str]) -> Iterator[_Rule]:
        """Yield the rules of Claude Code and Cursor, the user's first.

        Unusable rules are reported in ``problems``. Cursor's rules without paths, which a model
        chooses by description, are left out. Source: https://docs.cursor.com/context/rules.
        """
        of_project = self._folders.project_folders("rules", problems)
        for folder in (*self._folders.user_folders("rules"), *of_project):
            suffix = ".mdc" if folder.whose == "Cursor" else ".md"
            for path in folder.files(f"*{suffix}")[:MAX_FILES]:
                try:
                    rule = self._rule(path)
                except (DocumentError, ValueError) as error:
                    problems.append(f"{self.name(path)}: {error}.")
                else:
                    if rule is not None:
                        yield rule

    def _rule(self, path: Path) -> _Rule | None:
        file = self._files.read(path, FILE_BYTES)
        if file is None:
            return None
        if not FRONT.match(file.text):
            return _Rule(path, None)
        found = self._files.document(path, FILE_BYTES)
        if found is None:
            return None
        return _rule(path, found[0])


class _Reading:
    """Collects instruction files and the files that they import; each text is collected once.

    Files whose names are in ``shown`` are skipped.
    """

    def __init__(
        self, files: InstructionFiles, problems: list[str], shown: Collection[str] = ()
    ) -> None:
        self._files = files
        self._problems = problems
        self._shown = shown
        self._seen: set[Path] = set()
        self.found: dict[str, Instruction] = {}
        """Maps each text of instructions to its file, so that a link or a copy counts only once."""

    def add(self, path: Path, *, imported: str = "", hops: int = 0) -> None:
        """Add an instruction file and the files that it imports, and report problems.

        ``imported`` is the ``FILE:LINE`` that imports the file, and ``hops`` the number of imports
        that led to it.
        """
        name = self._files.name(path)
        if path in self._seen or name in self._shown:
            return
        self._seen.add(path)
        try:
            text = self._files.read(path)
        except LeftOutError as error:
            self._problems.append(f"{name}: {error}.")
            return
        except DocumentError as error:
            self._problems.append(str(error))
            return
        if not text:
            return
        named = list(imports_of(text))[:MAX_FILES]
        # A file that consists of one import is left out; the imported file takes its place.
        if not (len(named) == 1 and text == f"@{named[0].path}"):
            self.found.setdefault(text, Instruction(name, text, imported))
        if hops < MAX_HOPS:
            for item in named:
                self._follow(path, item, f"{name}:{item.line}", hops + 1)

    def _follow(self, path: Path, named: Import, source: str, hops: int) -> None:
        try:
            target = self._files.imported(path, named)
        except DocumentError as error:
            self._problems.append(f"{source}: @{one_line(named.path, 100)} is left out: {error}.")
            return
        if target is not None:
            self.add(target, imported=source, hops=hops)


def _rule(path: Path, document: Document) -> _Rule | None:
    """Return a document's rule; None for one of Cursor's rules that a model chooses by description.

    Raises DocumentError for a pattern that is too slow to match.
    """
    value = document.fields.get(_RULES[path.suffix])
    if path.suffix == ".mdc":
        if document.is_true("alwaysApply"):
            return _Rule(path, None)
        if not value:
            return None
    elif not value:
        return _Rule(path, None)
    # Split at commas between globs, but not at commas within braces.
    globs = value if isinstance(value, list) else re.split(r",(?![^{}]*\})", str(value))
    patterns = [str(glob).strip() for glob in globs]
    if set(patterns) <= {"**"}:
        return _Rule(path, None)
    for pattern in patterns:
        if is_costly(pattern):
            raise DocumentError(f"its pattern {pattern[:60]} has too many asterisks")
    return _Rule(path, tuple(compile_glob(pattern) for pattern in patterns))


def _body(text: str) -> str:
    """Return a text without its front matter, or unchanged if the front matter is unreadable."""
    try:
        return parse_document(text).body
    except DocumentError:
        return text


def _spellings(name: str) -> tuple[str, ...]:
    """Return the names that a main instruction file may have in a directory, best names first."""
    place = _place_named(name)
    return (*place.instead, name) if place is not None else (name,)


def _program_of(path: Path, folder: Path) -> str:
    """Return the other program that a main file belongs to; "" for none or several."""
    place = _place_named(path.relative_to(folder).as_posix())
    return place.whose if place is not None else ""


def _place_named(name: str) -> Place | None:
    for place in places_of("instructions"):
        if place.project == name:
            return place
    return None


def _quoted(text: str) -> str:
    return text.replace('"', "'")


def _first(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the first of ``paths`` that is a file. Yields nothing if none of them is."""
    for path in paths:
        if _is_there(path):
            yield path
            return


def _is_there(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 - Path.is_file raises below a directory without permission


def _what_it_is(path: Path) -> str:
    if is_link(path) and not is_there(path):
        return "it is a broken link"
    return "it is not a file"


def _matching(project: Path, pattern: str) -> Iterator[Path]:
    """Yield the files that match a glob that is relative to the project, absolute, or has ``~``."""
    import glob

    base, rest = split_glob(str(at_home(pattern)))
    if "**" in rest:
        yield from _below(project / base, rest)
        return
    found = glob.iglob(str(at_home(pattern)), root_dir=project, recursive=True)  # noqa: PTH207 - takes absolute patterns, too
    for count, name in enumerate(found):
        if count > MAX_FILES * 20:
            return
        path = Path(os.path.normpath(project / name))
        if _is_there(path):
            yield path


def _below(base: Path, pattern: str) -> Iterator[Path]:
    """Yield the files below ``base`` that match a glob with ``**``.

    Hidden files and directories are left out unless a part of the pattern begins with a dot. Links
    to directories are not followed, because they could form a loop.
    """
    expression = compile_glob(f"/{pattern}")
    takes_hidden = pattern.startswith(".") or "/." in pattern
    for directory, folders, names in os.walk(base):
        if not takes_hidden:
            folders[:] = [name for name in folders if not name.startswith(".")]
            names = [name for name in names if not name.startswith(".")]  # noqa: PLW2901 - filtered like the folders
        for name in names:
            path = Path(directory) / name
            if expression.fullmatch(path.relative_to(base).as_posix()) and _is_there(path):
                yield path
