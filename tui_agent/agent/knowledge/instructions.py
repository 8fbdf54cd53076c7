"""Instruction files (AGENTS.md and its relatives): which there are, and the text the model is shown."""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from tui_agent.agent.knowledge.documents import DocumentError, FileCache, LeftOutError, parse_document
from tui_agent.agent.knowledge.folders import Folders
from tui_agent.files.globs import compile_glob
from tui_agent.files.ignore import IgnoreRules
from tui_agent.lazy import dataclass
from tui_agent.path_checks import at_home
from tui_agent.places import places_of

NAMES = tuple(place.project for place in places_of("instructions"))
"""One file per directory is taken, the first of these."""
FILE_BYTES = 32 * 1024
"""Bytes of one file the model is shown."""
MAX_FILES = 50
"""Files that one pattern of the ``instructions`` setting may name."""
_RULE = ".mdc"
"""Suffix of Cursor's rules, which have front matter."""
_FOREIGN = frozenset({"node_modules", "site-packages", ".venv", "venv", "vendor"})
"""Directories of other people's code: instructions there are not meant for this project."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One file of instructions. ``name`` is how it is shown, ``text`` the part the model gets."""

    name: str
    text: str

    @property
    def section(self) -> str:
        # A closing tag inside would end the section early, for the model and for whoever counts its tokens.
        body = self.text.replace("</instructions>", "<\\/instructions>")
        return f'<instructions path="{self.name.replace(chr(34), chr(39))}">\n{body}\n</instructions>'


class InstructionFiles:
    """Finds and reads the instructions of one session. ``wanted`` is the ``instructions`` setting."""

    def __init__(self, folders: Folders, files: FileCache, wanted: Sequence[str]) -> None:
        self._folders = folders
        self._files = files
        self._wanted = tuple(wanted)

    def load(self, problems: list[str]) -> tuple[Instruction, ...]:
        """Return the whole session's instructions: the user's own, the project's from its root down, the wanted."""
        found: dict[str, Instruction] = {}
        for path in self._paths(problems):
            self._add(found, path, problems)
        return tuple(found.values())

    def nearby(self, paths: Iterable[str], shown: Collection[str], problems: list[str]) -> tuple[Instruction, ...]:
        """Return the instructions that hold for files of the project and are not ``shown`` yet, outermost first.

        ``paths`` are relative to the project. Ignored directories and other people's code are passed over. Files
        that cannot be read are reported in ``problems``.
        """
        found: dict[str, Instruction] = {}
        root = Path(os.path.realpath(self._folders.project))
        paths = tuple(paths)
        for directory in dict.fromkeys(self._between(root, paths)):
            path = self._first(directory)
            if path is None or self._folders.name(self._folders.project / path.relative_to(root)) in shown:
                continue
            self._add(found, self._folders.project / path.relative_to(root), problems)
        for path, globs in self._rules(problems):
            if self._folders.name(path) not in shown and any(
                glob.fullmatch(name) for name in paths for glob in globs or ()
            ):
                self._add(found, path, problems)
        return tuple(found.values())

    def _between(self, root: Path, paths: Iterable[str]) -> Iterator[Path]:
        """Yield the directories below the root that files are in, outermost first, without those above the session."""
        above = {Path(os.path.realpath(folder)) for folder in self._folders.upward()}
        for name in paths:
            real = Path(os.path.realpath(root / name))
            if not real.is_relative_to(root):
                continue
            rules, directory = IgnoreRules().entering(root), root
            for part in real.relative_to(root).parts[:-1]:
                directory = directory / part
                if part in _FOREIGN or rules.ignored(str(directory), directory=True):
                    break
                rules = rules.entering(directory)
                if directory not in above:
                    yield directory

    def _paths(self, problems: list[str]) -> Iterator[Path]:
        folders = self._folders
        homes = [folders.home / place.home for place in places_of("instructions") if place.home]
        yield from filter(None, [self._first(folders.config), *map(_existing, homes)])
        yield from filter(None, (self._first(folder) for folder in reversed(folders.upward())))
        yield from (path for path, globs in self._rules(problems) if globs is None)
        for pattern in self._wanted:
            matches = sorted(_matching(folders.project, pattern))
            if not matches:
                problems.append(f"instructions: nothing matches {pattern}.")
            yield from matches[:MAX_FILES]

    def _rules(self, problems: list[str]) -> Iterator[tuple[Path, list[re.Pattern[str]] | None]]:
        """Yield the rules of Cursor and the files that each holds for; None: it always holds.

        https://docs.cursor.com/context/rules. Rules that its model chooses by their description are not read.
        """
        for folder in self._folders.of_project("rules", problems):
            for path in sorted(folder.path.rglob(f"*{_RULE}"))[:MAX_FILES]:
                try:
                    found = self._files.document(path, FILE_BYTES)
                    if found is not None and found[0].text("alwaysApply").lower() == "true":
                        yield path, None
                    elif found is not None and (globs := found[0].fields.get("globs")):
                        # Commas separate globs, but not within braces.
                        wanted = globs if isinstance(globs, list) else re.split(r",(?![^{}]*\})", str(globs))
                        yield path, [compile_glob(str(glob).strip()) for glob in wanted]
                except (DocumentError, ValueError) as error:
                    problems.append(f"{self._folders.name(path)}: {error}.")

    @staticmethod
    def _first(folder: Path) -> Path | None:
        return next(filter(None, (_existing(folder / name) for name in NAMES)), None)

    def _add(self, found: dict[str, Instruction], path: Path, problems: list[str]) -> None:
        """Add a file unless the same text is there already: a link, or a copy for another program."""
        try:
            file = self._files.read(path, FILE_BYTES)
        except LeftOutError as error:
            problems.append(f"{self._folders.name(path)}: {error}.")
            return
        except DocumentError as error:
            problems.append(str(error))
            return
        if file is None or not file.text.strip():
            return
        text = file.text.strip()
        if path.suffix == _RULE:
            text = parse_document(text).body
        if file.cut:
            text += f"\n[The first {FILE_BYTES // 1024} KiB of {file.size:,} bytes; read the file for the rest.]"
        found.setdefault(text, Instruction(self._folders.name(path), text))


def _existing(path: Path) -> Path | None:
    return path if os.path.isfile(path) else None  # noqa: PTH113 - Path.is_file raises where the way is closed


def _matching(project: Path, pattern: str) -> Iterator[Path]:
    """Yield the files a pattern names, relative to the project; ``~`` and absolute ones as they are."""
    import glob

    found = glob.iglob(str(at_home(pattern)), root_dir=project, recursive=True)  # noqa: PTH207 - any root
    for count, name in enumerate(found):
        if count > MAX_FILES * 20:
            return
        if path := _existing(Path(os.path.normpath(project / name))):
            yield path
