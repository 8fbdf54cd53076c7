"""Finds the folders to search for rules, skills, commands, agents, tools and output styles.

`TrustGate` decides which of the files in them may be used, depending on whether the user trusts the
project.
"""

import fnmatch
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from pathlib import Path

from tui_agent.lazy import frozen
from tui_agent.path_checks import is_directory, is_file, is_inside
from tui_agent.places import (
    MAX_DEPTH,
    Kind,
    LeftOut,
    Place,
    in_home,
    places_of,
    shown_in_home,
)
from tui_agent.plugins import KINDS, Plugin

MAX_FOLDERS = 2_000
"""Maximum number of directories searched below a folder. Links may lead to huge trees."""
_NEVER = {"node_modules", ".git"}
"""Names of directories that are never searched for skills, commands and similar files."""


@frozen
class Folder:
    """A folder in which files such as skills and commands are searched for.

    ``shown`` is the folder's name on screens. ``whose`` is the other program that the folder
    belongs to; "" if it belongs to this program.
    """

    path: Path
    shown: str
    whose: str = ""
    of_project: bool = False
    prefix: str = ""
    """Prefix of the names of the folder's skills and commands: ``PLUGIN:`` in a plugin, else ""."""
    project: Path | None = None
    """The project in which the folder's links have to stay; None if they may lead anywhere."""

    @property
    def origin(self) -> str:
        """The folder's name for screens, with the other program it belongs to, if any."""
        if self.whose:
            return f"{self.shown}, of {self.whose}"
        return self.shown

    def shown_file(self, path: Path) -> str:
        """Return a file's name for screens: the folder's name and the path below it.

        If the "folder" is a JSON settings file, the file's own name is returned.
        """
        if self.path.suffix in {".json", ".jsonc"}:
            return self.shown
        return self.shown + path.as_posix().removeprefix(self.path.as_posix())

    def files(self, pattern: str) -> list[Path]:
        """Return the files below the folder whose names match a glob, sorted.

        Searches up to ``MAX_DEPTH`` levels. Links to directories are followed, each directory once.
        If a link leads out of the project, only the files directly in its target are returned, so
        that reading them reports the problem.
        """
        found: list[Path] = []
        seen: set[str] = set()
        for directory, folders, names in os.walk(self.path, followlinks=True):
            real = os.path.realpath(directory)
            here = Path(directory)
            is_deep = len(here.parts) - len(self.path.parts) >= MAX_DEPTH - 1
            leads_out = self.project is not None and not is_inside(self.project, here)
            if real in seen or len(seen) > MAX_FOLDERS:
                folders.clear()
                continue
            seen.add(real)
            if is_deep or leads_out:
                folders.clear()
            folders[:] = sorted(name for name in folders if name not in _NEVER)
            matching = [here / name for name in fnmatch.filter(names, pattern)]
            found += [path for path in matching if is_file(path)]
        return sorted(found)


@frozen
class Folders:
    """The directories of one session, and the folders in them that are searched.

    ``config`` is the user's config directory, ``home`` their home directory. ``left_out`` are the
    other programs, or kinds of their files, that the user's settings exclude.
    """

    cwd: Path
    project: Path
    config: Path
    home: Path
    left_out: LeftOut = LeftOut()
    plugins: tuple[Plugin, ...] = ()

    def places(self, kind: Kind) -> tuple[Place, ...]:
        """Return the places in which to look for the given kind of files.

        Places that the user's settings exclude are left out.
        """
        return tuple(
            place for place in places_of(kind) if not self.left_out.covers(place.whose, kind)
        )

    def upward(self) -> tuple[Path, ...]:
        """Return the directories from the working directory up to the project, nearest first."""
        return upward(self.cwd, self.project)

    def above(self) -> tuple[Path, ...]:
        """Return the directories above the project, outermost first.

        Leaves out directories that everyone can write to, and directories of other users except
        root.
        """
        return tuple(folder for folder in reversed(self.project.parents) if _is_guarded(folder))

    def project_folders(self, kind: Kind, problems: list[str]) -> tuple[Folder, ...]:
        """Return the project's folders for the given kind of files.

        The folder nearest to the working directory comes first. Folders that are also the user's
        own (if the project is the home directory) are left out. A folder whose path leads out of
        the project through a link is left out and reported in ``problems``.
        """
        own = {folder.path for folder in self.user_folders(kind)}
        found: list[Folder] = []
        for folder in self.upward():
            for place in self.places(kind):
                path = folder / place.project
                if not place.project or path in own or not os.path.lexists(path):
                    continue
                name = self.name(path)
                if is_inside(self.project, path):
                    found.append(
                        Folder(path, name, place.whose, of_project=True, project=self.project)
                    )
                else:
                    real = os.path.realpath(path)
                    problems.append(f"{name}: left out, as it leads out of the project, to {real}.")
        return tuple(found)

    def user_folders(self, kind: Kind) -> tuple[Folder, ...]:
        """Return the user's existing folders for the given kind of files.

        They are in the config directory, in the home directory, above the project (rules and
        skills) and in plugins.
        """
        own = {self.config / kind: ""}
        for place in self.places(kind):
            if place.home:
                own.setdefault(in_home(self.home, place.home), place.whose)
        found: list[Folder] = []
        for path, whose in own.items():
            if is_directory(path):
                found.append(Folder(path, self.name(path), whose))
        return (*found, *self._above(kind, own), *self._of_plugins(kind))

    def _above(self, kind: Kind, own: Collection[Path]) -> Iterator[Folder]:
        """Yield folders of rules and skills above the project, nearest first.

        Yields none if the project is a Git repository: the programs that use these folders stop at
        its root, too.
        """
        if kind not in {"rules", "skills"} or os.path.lexists(self.project / ".git"):
            return
        for folder in reversed(self.above()):
            for place in self.places(kind):
                path = folder / place.project
                if place.project and path not in own and is_directory(path):
                    yield Folder(path, self.name(path), place.whose)

    def _of_plugins(self, kind: Kind) -> Iterator[Folder]:
        if kind in KINDS:
            for plugin in self.plugins:
                for path in plugin.folders(kind):
                    yield Folder(
                        path, f"the plugin {plugin.name}", "Claude Code", prefix=f"{plugin.name}:"
                    )

    def name(self, path: Path) -> str:
        """Return a path as it is shown: relative to the project, else ``~/…``, else absolute."""
        if path.is_relative_to(self.project):
            return path.relative_to(self.project).as_posix()
        return shown_in_home(self.home, path)


class TrustGate:
    """Lets the user's own files through, and a project's files only if the user trusts the project.

    Files of skills, commands, agents, output styles and tools are checked here; hooks are gated by
    `programs.hooks`. ``trusted`` is called at most once, and only if the project has such a file.
    """

    def __init__(self, trusted: Callable[[], bool]) -> None:
        self.is_open = cache(trusted)
        self.held_back = 0
        """Number of files left out so far because the user doesn't trust the project."""

    def admitted(self, rows: Iterable[tuple[Path, Folder]]) -> list[tuple[Path, Folder]]:
        """Return those pairs (file, folder) whose file may be used, in the given order."""
        found = list(rows)
        own = [(path, folder) for path, folder in found if not folder.of_project]
        if len(own) == len(found) or self.is_open():
            return found
        self.held_back += len(found) - len(own)
        return own


def upward(cwd: Path, project: Path) -> tuple[Path, ...]:
    """Return the directories from ``cwd`` up to ``project``, nearest first.

    If ``cwd`` is outside the project, only ``cwd`` is returned.
    """
    found: list[Path] = []
    for folder in (cwd, *cwd.parents):
        found.append(folder)
        if folder == project:
            return tuple(found)
    return (cwd,)


def _is_guarded(folder: Path) -> bool:
    try:
        status = folder.stat()
    except OSError:
        return False
    return status.st_uid in {0, os.getuid()} and not status.st_mode & stat.S_IWOTH
