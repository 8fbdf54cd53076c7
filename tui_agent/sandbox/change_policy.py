"""The one judge of a command's changes: which are kept in the project, and which grants the rest needs.

Changes on a layer are judged before they are kept, those of places that a command works on itself
after it has ended.
"""

import contextlib
import os
import stat
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path, PurePosixPath
from typing import Literal

from tui_agent.files.descriptors import PERMISSIONS, set_mode, state_at
from tui_agent.files.ignore import IgnoreRules
from tui_agent.files.inside import directory
from tui_agent.files.sensitive import (
    INERT_NAMES,
    is_bare_repository,
    is_repository,
    is_sensitive,
    may_be_settings,
    steers_programs,
)
from tui_agent.lazy import dataclass
from tui_agent.path_checks import is_file
from tui_agent.sandbox.layer import ChangeKind, LayerChange
from tui_agent.sandbox.layout import Layout, MountKind
from tui_agent.sandbox.project_scan import (
    MAX_FILE_BYTES,
    NEVER_KEPT,
    PRODUCT_MAGIC,
    STEERING,
    OutputState,
    is_output_name,
    look_into,
    steering_in,
)
from tui_agent.sandbox.view import Grants, View

ChangeVerdict = tuple[Literal["outputs", "sources", "lost"] | None, Grants]
_DROPPED: ChangeVerdict = (None, Grants())
_OUTPUT: ChangeVerdict = ("outputs", Grants())
_SOURCE: ChangeVerdict = ("sources", Grants())


@dataclass(frozen=True, slots=True)
class KnownPaths:
    """What git and the checkpoints know of some paths of a project, relative to it.

    ``shared`` are files that a checkpoint looks at, ``directories`` those around any such file,
    ``tracked`` git's.
    """

    shared: frozenset[str] = frozenset()
    directories: frozenset[str] = frozenset()
    tracked: frozenset[str] = frozenset()


class ProjectFacts:
    """Facts about a project for judging its changes; ``rules`` are those of git that hold above it."""

    def __init__(self, root: Path, rules: IgnoreRules, layout: Layout, known: KnownPaths) -> None:
        self.root = root
        self.paths = known
        self.layout = layout
        self._rules: dict[str, IgnoreRules] = {"": rules.entering(root)}
        self._programs: dict[str, bool] = {}

    def is_program(self, target: str) -> bool:
        """Whether a link leads to a program outside that commands see and can't change, as environments' to Python."""
        if target not in self._programs:
            real = Path(os.path.realpath(target))
            is_seen = self.layout.put_at(real) is MountKind.READ
            self._programs[target] = is_seen and is_file(real) and os.access(real, os.X_OK)
        return self._programs[target]

    def ignored(self, path: str, *, directory: bool = False) -> bool:
        rules = self._rules[""]
        prefix = ""
        *parents, name = path.split("/")
        for part in parents:
            below = f"{prefix}{part}"
            if rules.ignored(str(self.root / below), directory=True):
                return True
            if below not in self._rules:
                self._rules[below] = rules.entering(self.root / below)
            rules = self._rules[below]
            prefix = f"{below}/"
        return rules.ignored(str(self.root / f"{prefix}{name}"), directory=directory)


@dataclass(slots=True)
class JudgedChanges:
    """Changes by verdict. ``lost`` are intended ones that the view does not allow."""

    outputs: list[LayerChange] = field(default_factory=list)
    sources: list[LayerChange] = field(default_factory=list)
    lost: list[LayerChange] = field(default_factory=list)
    wanted: Grants = Grants()


def judge(changes: Sequence[LayerChange], view: View, known: ProjectFacts) -> JudgedChanges:
    """Decide about every change in a layer; ``view`` is the command's."""
    judged = JudgedChanges()
    stays = set[str]()
    for change in changes:
        path = PurePosixPath(change.path)
        if change.kind is not ChangeKind.DELETED and not stays.isdisjoint(
            map(str, (path, *path.parents))
        ):
            continue  # what it would replace stays, and is named
        if change.output or (NEVER_KEPT.isdisjoint(path.parts) and path.suffix != ".pyc"):
            into, wanted = _judge(change, path, view, known)
            if into in {"outputs", "sources"} and (
                change.special or not _stays_inside(change, path, known)
            ):
                into = "lost"
            judged.wanted |= wanted
            if change.kind is ChangeKind.DELETED and into not in {"outputs", "sources"}:
                stays.add(change.path)
            if into is not None and (into == "lost" or not change.inside):
                {"outputs": judged.outputs, "sources": judged.sources, "lost": judged.lost}[
                    into
                ].append(change)
    return judged


def _judge(
    change: LayerChange, path: PurePosixPath, view: View, known: ProjectFacts
) -> ChangeVerdict:
    """Return the verdict on a change, with the grants it would need."""
    root, made_again = known.root, _OUTPUT if view.writes_outputs else _DROPPED
    if steering := _steering(path, change, root):
        opened = view.grants.protected | view.grants.secrets | view.grants.write
        if not steering.repository and any((root / path).is_relative_to(place) for place in opened):
            return _SOURCE
        # Packages come with such directories: they are not needed, and nobody is asked about each.
        asked = Grants(repository=steering.repository) if change.output else steering
        return _DROPPED if change.output and made_again is _DROPPED else ("lost", asked)
    if change.output or _is_output(change, path, known):
        return made_again
    restorable = (
        change.regular and change.size <= MAX_FILE_BYTES and change.path in known.paths.shared
    )
    if view.changes_sources and (change.directory or change.kind is ChangeKind.NEW or restorable):
        return _SOURCE
    if change.directory or (change.kind is ChangeKind.NEW and known.ignored(change.path)):
        return _DROPPED if change.directory else made_again
    if change.kind is ChangeKind.NEW or (
        change.path in known.paths.shared and not view.changes_sources
    ):
        asked = Grants(sources=True)
    else:
        # The outermost directory around it in which nothing is shared is opened as one.
        around = (f"{parent.as_posix()}/" for parent in reversed(path.parents[:-1]))
        alone = (place for place in around if place.rstrip("/") not in known.paths.directories)
        asked = Grants(write=frozenset({root / next(alone, path)}))
    return "lost", asked


def _steering(path: PurePosixPath, change: LayerChange, root: Path) -> Grants:
    """Return the grants needed for a path that steers programs or holds secrets; none for any other."""
    if change.repository or any(map(is_repository, path.parts)):
        return Grants(repository=True)
    for depth, part in enumerate(path.parts):
        if steers_programs(part):
            if change.directory or depth + 1 == len(path.parts):
                first = path.parts[: depth + 1]
            else:
                first = path.parts
            return Grants(protected=frozenset({root.joinpath(*first)}))
    if not change.directory and not change.output and is_sensitive(path.name):
        return Grants(secrets=frozenset({root / path}))
    made_again = change.output or is_output_name(path.name, directory=False)
    if made_again or change.kind is not ChangeKind.NEW:
        acting = None
    else:
        acting = _acting(path, root)
    if acting is None:
        return Grants()
    return Grants(protected=frozenset({acting}))


def _acting(path: PurePosixPath, root: Path) -> Path | None:
    """Return what is new around a path and may be a program's settings; None for what is known to do nothing.

    That is anything whose name begins with a dot, and settings in the root: nobody can list what
    reads such.
    """
    for depth, part in enumerate(path.parts, 1):
        place = root.joinpath(*path.parts[:depth])
        if part.startswith(".") and part not in INERT_NAMES and not os.path.lexists(place):
            return place
    if len(path.parts) == 1 and may_be_settings(path.name):
        return root / path
    return None


def _stays_inside(change: LayerChange, path: PurePosixPath, known: ProjectFacts) -> bool:
    """Whether a link leads to something in the project, or to a program outside that commands see.

    Only leading ``..`` are followed: the part before a later one may be a link itself.
    """
    if change.link is None:
        return True
    target = PurePosixPath(change.link)
    parts = list(target.parts)
    if target.is_absolute():
        if ".." in parts or Path(target).is_relative_to(known.root):
            return ".." not in parts
        return known.is_program(change.link)
    up = next((at for at, part in enumerate(parts) if part != ".."), len(parts))
    return ".." not in parts[up:] and up <= len(path.parts) - 1


def _is_output(change: LayerChange, path: PurePosixPath, known: ProjectFacts) -> bool:
    """Whether something is different that is made again by doing the same again; a script is not."""
    if change.directory or change.head.startswith(b"#!"):
        return False
    named = is_output_name(path.name, directory=False)
    if change.kind is ChangeKind.NEW:
        return named or (change.regular and change.head.startswith(PRODUCT_MAGIC))
    replaced = change.kind is ChangeKind.CHANGED and change.head.startswith(PRODUCT_MAGIC)
    if not change.regular or not (replaced or (named and change.path not in known.paths.shared)):
        return False
    return change.path not in known.paths.tracked


@dataclass(slots=True)
class WorkedOnItself:
    """The places a command changes without a layer: ``outputs``, and with ``in_place`` all of the project.

    ``repositories`` are the project's, ``besides`` directories of it that are output. ``before``:
    paths there that programs obeyed or that led outside.
    """

    root: Path
    grants: Grants
    repositories: tuple[Path, ...] = ()
    outputs: tuple[Path, ...] = ()
    in_place: bool = False
    besides: tuple[Path, ...] = ()
    before: set[Path] = field(default_factory=set)

    def look(self) -> OutputState:
        root = self.root
        found = look_into(root, self.outputs)
        if self.in_place:
            whole = look_into(root, [root], self.besides)
            found.planted |= whole.planted
            found.parts |= whole.parts
        if self.grants.repository:
            found.planted |= {
                path for repository in self.repositories for path in steering_in(repository)
            }
        return found

    def tidied(self, tracked: Sequence[str]) -> tuple[list[str], list[str]]:
        """Set aside what the command left for other programs to obey; returns that, and new files that stay.

        Where it may write to repositories, files that git checked out stay, and so do repositories
        that it made.
        """
        root = self.root
        opened = self.grants.protected | self.grants.write
        new = {
            path
            for path in self.look().planted - self.before
            if not any(map(path.is_relative_to, opened))
        }
        new = {
            path for path in new if not _is_its_owners_no_more(path) or steers_programs(path.name)
        }
        kept = set[Path]()
        if new and self.grants.repository:
            known = {path.parent for path in self.before} | {*self.repositories}
            known |= {place / inner for place in known for inner in ("info", "objects/info")}
            new -= {path for path in new if path.name in STEERING and path.parent not in known}
            kept = {
                path for path in new if any(Path(name).is_relative_to(path) for name in tracked)
            }
            bare = {
                path
                for path in new
                if is_bare_repository(row.name for row in path.parent.iterdir())
            }
            kept |= {
                path
                for path in new
                if path.name not in STEERING and (path in bare or is_repository(path.name))
            }
        aside = {path for path in new - kept if _set_aside(path)}
        return _names(aside, root), _names(kept, root)


def _names(paths: set[Path], root: Path) -> list[str]:
    return [os.path.relpath(path, root) for path in sorted(paths)]


def _is_its_owners_no_more(path: Path) -> bool:
    """Take from a file that it runs as its owner or group; returns whether it did."""
    with contextlib.suppress(OSError), directory(path.parent) as parent:
        state = state_at(parent, path.name)
        if (
            state is not None
            and stat.S_ISREG(state.st_mode)
            and state.st_mode & (stat.S_ISUID | stat.S_ISGID)
        ):
            set_mode(parent, path.name, state.st_mode & PERMISSIONS)
            return True
    return False


def _set_aside(path: Path) -> bool:
    """Give a file or directory a name that no program obeys; links and pipes go.

    Returns whether there was one.

    It may be the user's by now, who works in the same directories: nothing with content is ever
    removed.
    """
    with contextlib.suppress(OSError), directory(path.parent) as parent:
        state = state_at(parent, path.name)
        if state is None:
            return False
        if stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode):
            names = (f"{path.name}.not-kept{number or ''}" for number in range(1_000))
            free = next(name for name in names if state_at(parent, name) is None)
            os.rename(path.name, free, src_dir_fd=parent, dst_dir_fd=parent)
        else:
            os.unlink(path.name, dir_fd=parent)
        return True
    return False
