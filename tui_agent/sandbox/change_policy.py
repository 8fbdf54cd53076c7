"""Decides which of a command's changes to keep, and which grants the others would need.

Changes on a layer, that is, a directory that receives a command's changes, are judged before they
reach the project (`judge`); the judge process then applies the decision with ``layer``. Changes
made in the project itself are judged afterwards: this module renames or removes dangerous files
(`DirectChanges.set_aside_dangerous`).
"""

import contextlib
import os
import stat
from collections.abc import Collection, Sequence
from dataclasses import field, replace
from enum import Enum
from pathlib import Path, PurePosixPath
from secrets import token_hex
from typing import Literal

from tui_agent.files.descriptors import PERMISSIONS, set_mode, state_at
from tui_agent.files.ignore import IgnoreRules
from tui_agent.files.inside import directory
from tui_agent.files.sensitive import (
    INERT_NAMES,
    instructs_agents,
    is_bare_repository,
    is_repository_name,
    is_sensitive,
    may_be_settings,
    steers_programs,
)
from tui_agent.lazy import dataclass, frozen
from tui_agent.path_checks import is_among, is_file
from tui_agent.sandbox.layer import ChangeKind, LayerChange
from tui_agent.sandbox.layout import Layout, MountKind
from tui_agent.sandbox.project_scan import (
    MAX_DEPTH,
    MAX_FILE_BYTES,
    NEVER_KEPT,
    PRODUCT_MAGIC,
    STEERING,
    DangerousEntries,
    find_dangerous_entries,
    is_output_name,
    steering_in,
)
from tui_agent.sandbox.view import Grants, View

MAX_NAME_BYTES = 230
"""Maximum bytes of a name before ``.not-kept`` is added, because file systems allow 255 bytes."""

PROGRAM_HEADS = (b"#!", b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
"""First bytes of scripts and of compiled programs."""


class LossReason(Enum):
    """Why a change is discarded with a note. The order is that of the notes."""

    SOURCES = "sources"
    """The command may not change source files."""
    UNRESTORABLE = "unrestorable"
    """No checkpoint can restore the file, and the user hasn't allowed the change."""
    STEERING = "steering"
    """Other programs run the file or read it as settings."""
    SECRETS = "secrets"
    """The file's name says that it holds secrets."""
    REPOSITORY = "repository"
    """The file is one of git's own."""
    OUTSIDE = "outside"
    """A new link leads out of the project. Such links are never kept."""
    SPECIAL = "special"
    """The file is of a kind that is never kept, see ``LayerChange.special``."""
    OVERTAKEN = "overtaken"
    """Somebody else changed the file after the command did."""
    TOGETHER = "together"
    """The file is in a deleted directory that stays because another file in it has to stay.

    Or it is in a new directory to which a part of such a directory was moved.
    """
    FAILED = "failed"
    """The change could not be made in the project."""
    LIMIT = "limit"
    """The command made too many changes, or nested directories too deeply."""


ChangeVerdict = tuple[Literal["outputs", "sources"] | LossReason | None, Grants]
"""What happens to a change, and the sandbox grants that the change needs.

The first item names the list in `JudgedChanges` to which the change is added, or is the reason why
the change is discarded; it is None if the change is discarded without a note.
"""
_DROPPED: ChangeVerdict = (None, Grants())
_OUTPUT: ChangeVerdict = ("outputs", Grants())
_SOURCE: ChangeVerdict = ("sources", Grants())


@frozen
class KnownPaths:
    """What git and the checkpoints know about some paths, relative to the project.

    ``shared`` are files and links that git doesn't ignore, so that checkpoints can restore them,
    ``directories`` the directories around such files, and ``tracked`` the files that git tracks.
    """

    shared: frozenset[str] = frozenset()
    directories: frozenset[str] = frozenset()
    tracked: frozenset[str] = frozenset()


class ProjectFacts:
    """What is known about a project, to judge a command's changes in it.

    ``root`` is the project, ``rules`` are the ignore rules that it inherits from directories above,
    ``layout`` is what the command saw, and ``known`` is what git and the checkpoints know.
    """

    def __init__(self, root: Path, rules: IgnoreRules, layout: Layout, known: KnownPaths) -> None:
        self.root = root
        self.paths = known
        self.layout = layout
        self._rules: dict[str, IgnoreRules] = {"": rules.entering(root)}
        self._programs: dict[str, bool] = {}

    def is_program(self, target: str) -> bool:
        """Return True if the absolute target of a link is a program that commands can't change.

        Commands see such a program. Virtual environments contain such links to Python.
        """
        if target not in self._programs:
            real = Path(os.path.realpath(target))
            is_seen = self.layout.kind_at(real) is MountKind.READ
            self._programs[target] = is_seen and _is_program(real)
        return self._programs[target]

    def ignored(self, path: str, *, directory: bool = False) -> bool:
        """Return True if git ignores a path, which is relative to the project."""
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


@dataclass
class JudgedChanges:
    """The changes that a command made, grouped by what happens to them.

    ``outputs`` and ``sources`` are kept, as build output and as source files. ``lost`` are
    discarded, and a note says so and why, because the command probably meant to keep them.
    ``wanted`` are the grants with which they would have been kept.
    """

    outputs: list[LayerChange] = field(default_factory=list)
    sources: list[LayerChange] = field(default_factory=list)
    lost: dict[LossReason, list[LayerChange]] = field(default_factory=dict)
    wanted: Grants = Grants()

    def add(
        self, change: LayerChange, into: Literal["outputs", "sources"] | LossReason | None
    ) -> None:
        """Add a change to the list that ``into`` names; None drops the change.

        A kept change inside a ``whole`` directory isn't added, because it is kept with the
        directory.
        """
        match into:
            case LossReason():
                self.lost.setdefault(into, []).append(change)
            case "outputs" if not change.inside:
                self.outputs.append(change)
            case "sources" if not change.inside:
                self.sources.append(change)


def judge(
    changes: Sequence[LayerChange],
    view: View,
    known: ProjectFacts,
    overtaken: Collection[str] = frozenset(),
) -> JudgedChanges:
    """Return what happens to each of the changes in a layer.

    ``changes`` must be in the order of `changes_in`; ``view`` says what the command may do.
    ``overtaken`` are the paths of files that somebody else has changed since. A directory is
    deleted with everything in it or not at all.
    """
    judged = JudgedChanges()
    stays = set[str]()
    deleted = {
        change.path for change in changes if change.directory and change.kind is ChangeKind.DELETED
    }
    verdicts: list[ChangeVerdict] = []
    for change in changes:
        if change.path in overtaken:
            verdicts.append((LossReason.OVERTAKEN, Grants()))
        else:
            verdicts.append(_verdict(change, view, known, deleted))
    for change, (into, wanted) in zip(
        changes, _together(changes, verdicts, deleted, known.root), strict=True
    ):
        path = PurePosixPath(change.path)
        is_deleted = change.kind is ChangeKind.DELETED
        if not is_deleted and not stays.isdisjoint(map(str, (path, *path.parents))):
            # The old entry stays at this path, because its deletion is in ``lost``.
            continue
        judged.wanted |= wanted
        if is_deleted and into not in {"outputs", "sources"}:
            stays.add(change.path)
        judged.add(change, into)
    return judged


def _verdict(
    change: LayerChange, view: View, known: ProjectFacts, deleted: Collection[str]
) -> ChangeVerdict:
    """Return what happens to one change if it doesn't depend on other verdicts.

    ``deleted`` are the deleted directories. No grants are needed for a change that is never kept,
    so that the user isn't asked for them.
    """
    path = PurePosixPath(change.path)
    is_deleted = change.kind is ChangeKind.DELETED
    if not is_deleted and not change.output and _is_never_kept(path):
        return _DROPPED
    into, wanted = _judge(change, path, view, known, deleted)
    if into is None:
        return _DROPPED
    if change.special:
        return LossReason.SPECIAL, Grants()
    if not _stays_inside(change, path, known):
        return LossReason.OUTSIDE, Grants()
    return into, wanted


def _together(
    changes: Sequence[LayerChange],
    verdicts: Sequence[ChangeVerdict],
    deleted: Collection[str],
    root: Path,
) -> list[ChangeVerdict]:
    """Return the verdicts, with no deletion kept in a deleted directory of which a part stays.

    Then no new directory is kept either: the deleted directory was probably moved there, and it
    couldn't be moved again if the user then allows the change.

    If several parts of a deleted directory need the grant ``write``, it is wanted for the directory
    instead, so that the user is asked about one path. ``deleted`` are the deleted directories,
    ``root`` is the project.
    """
    tops = [_outermost(change, deleted) for change in changes]
    staying = set[str]()
    written: dict[str, frozenset[Path]] = {}
    for top, (into, wanted) in zip(tops, verdicts, strict=True):
        if top and isinstance(into, LossReason):
            staying.add(top)
            written[top] = written.get(top, frozenset()) | wanted.write
    if staying:
        verdicts = _without_new_directories(changes, verdicts)
    found: list[ChangeVerdict] = []
    for top, (into, wanted) in zip(tops, verdicts, strict=True):
        if top not in staying:
            found.append((into, wanted))
            continue
        reason = into
        needed = wanted
        if into in {"outputs", "sources"}:
            reason = LossReason.TOGETHER
        if len(written[top]) > 1:
            # This grant includes the grant ``sources`` for everything in the directory.
            needed = replace(wanted, sources=False, write=frozenset({root / top}))
        found.append((reason, needed))
    return found


def _without_new_directories(
    changes: Sequence[LayerChange], verdicts: Sequence[ChangeVerdict]
) -> list[ChangeVerdict]:
    """Return the verdicts, with nothing kept in new directories, except for build output."""
    made = {change.path for change in changes if _is_new_directory(change)}
    found: list[ChangeVerdict] = []
    for change, (into, wanted) in zip(changes, verdicts, strict=True):
        is_kept = into in {"outputs", "sources"} and not change.output
        if is_kept and _outermost_in(change, made):
            found.append((LossReason.TOGETHER, wanted))
        else:
            found.append((into, wanted))
    return found


def _is_new_directory(change: LayerChange) -> bool:
    return change.directory and change.kind is ChangeKind.NEW and not change.output


def _outermost(change: LayerChange, deleted: Collection[str]) -> str:
    """Return the outermost of the ``deleted`` directories with which a path was deleted.

    "" if the change isn't a deletion, or if no directory around the path was deleted.
    """
    if change.kind is not ChangeKind.DELETED:
        return ""
    return _outermost_in(change, deleted)


def _outermost_in(change: LayerChange, directories: Collection[str]) -> str:
    """Return the outermost of the ``directories`` that is or contains a path; "" if none does."""
    if not directories:
        return ""
    end = change.path.find("/")
    while end >= 0:
        if change.path[:end] in directories:
            return change.path[:end]
        end = change.path.find("/", end + 1)
    return change.path if change.path in directories else ""


def _is_program(path: Path) -> bool:
    if not is_file(path) or not os.access(path, os.X_OK):
        return False
    try:
        with path.open("rb") as file:
            return file.read(4).startswith(PROGRAM_HEADS)
    except OSError:
        return False


def _is_never_kept(path: PurePosixPath) -> bool:
    return path.suffix == ".pyc" or not NEVER_KEPT.isdisjoint(path.parts)


def _judge(
    change: LayerChange,
    path: PurePosixPath,
    view: View,
    known: ProjectFacts,
    deleted: Collection[str],
) -> ChangeVerdict:
    """Return what happens to one change. Links and special files are judged by the caller."""
    made_again = _DROPPED
    if view.writes_outputs:
        made_again = _OUTPUT
    is_new = change.kind is ChangeKind.NEW
    is_shared = change.path in known.paths.shared
    steering = _steering(path, change, known.root)
    if not steering and _is_instruction(path, change, view, known.root, deleted):
        steering = Grants(protected=frozenset({known.root / path}))
    if steering:
        return _judge_steering(change, known.root / path, view, steering)
    if change.output or _is_output(change, path, known):
        return made_again
    is_granted = is_among(known.root / path, view.grants.write)
    is_restorable = is_shared and change.size <= MAX_FILE_BYTES
    may_change = view.changes_sources and (change.directory or is_new or is_restorable)
    if is_granted or may_change:
        return _SOURCE
    if change.directory:
        return _DROPPED
    if is_new and known.ignored(change.path):
        return made_again
    reason = LossReason.UNRESTORABLE
    wanted = Grants(write=frozenset({_unshared_around(path, known)}))
    if is_new or is_restorable:
        reason = LossReason.SOURCES
        wanted = Grants(sources=True)
    return reason, wanted


def _judge_steering(change: LayerChange, path: Path, view: View, steering: Grants) -> ChangeVerdict:
    """Return what happens to a change that needs sandbox grants because of its path.

    ``steering`` are these grants, the result of `_steering`.
    """
    opened = view.grants.protected | view.grants.secrets | view.grants.write
    if not steering.repository and is_among(path, opened):
        return _SOURCE
    reason = LossReason.STEERING
    if steering.repository:
        reason = LossReason.REPOSITORY
    elif steering.secrets:
        reason = LossReason.SECRETS
    if not change.output:
        return reason, steering
    if not view.writes_outputs:
        return _DROPPED
    # Installed packages contain such entries but don't need them, so the user isn't asked.
    return reason, Grants(repository=steering.repository)


def _unshared_around(path: PurePosixPath, known: ProjectFacts) -> Path:
    """Return the outermost directory that contains a path but no shared files.

    The result is absolute. If every directory around the path contains shared files, the path
    itself is returned.
    """
    for parent in reversed(path.parents[:-1]):
        if parent.as_posix() not in known.paths.directories:
            return known.root / parent
    return known.root / path


def _steering(path: PurePosixPath, change: LayerChange, root: Path) -> Grants:
    """Return the sandbox grants that a change needs because of its path; empty if it needs none.

    Grants are needed for git's own files, files with secrets, files that other programs run or read
    as settings, and new files that some program may read as settings.
    """
    if change.repository or any(map(is_repository_name, path.parts)):
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


def _is_instruction(
    path: PurePosixPath,
    change: LayerChange,
    view: View,
    root: Path,
    deleted: Collection[str],
) -> bool:
    """Return True for a file with instructions for agents, which only an own grant lets change.

    Installed packages contain such files, but no agent reads them there. Git checks them out with
    the project's other files, if it may change the repository. A copied, moved or removed directory
    takes its instructions along; ``deleted`` are the deleted directories.
    """
    if change.directory or change.output or view.grants.repository:
        return False
    if not instructs_agents(path.name):
        return False
    if change.kind is ChangeKind.NEW:
        return os.path.lexists(root / path.parent)
    return path.parent.as_posix() not in deleted


def _acting(path: PurePosixPath, root: Path) -> Path | None:
    """Return the new part of a path that some program may read as settings; None if there is none.

    The new part is the outermost part of the path that doesn't exist yet and whose name begins with
    a dot, or else a file in the project's root whose name is usual for settings.
    """
    for depth, part in enumerate(path.parts, 1):
        place = root.joinpath(*path.parts[:depth])
        if part.startswith(".") and part not in INERT_NAMES and not os.path.lexists(place):
            return place
    if len(path.parts) == 1 and may_be_settings(path.name):
        return root / path
    return None


def _stays_inside(change: LayerChange, path: PurePosixPath, known: ProjectFacts) -> bool:
    """Return True if a new link is safe, or if the new file isn't a link.

    A link is safe if it leads into the project, or by an absolute path to a program outside it that
    commands see. A target with ``..`` after another name isn't safe, because that name may be a
    link.
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
    """Return True if a file outside output directories is build output, by its name or first bytes.

    A script never counts as output. A file that existed before is output only if git doesn't track
    it, and it either was a compiled file, or is ignored by git and has a name that is usual for
    output.
    """
    if change.directory or change.head.startswith(b"#!"):
        return False
    named = is_output_name(path.name, directory=False)
    if change.kind is ChangeKind.NEW:
        return named or (change.regular and change.head.startswith(PRODUCT_MAGIC))
    replaced = change.kind is ChangeKind.CHANGED and change.head.startswith(PRODUCT_MAGIC)
    if not change.regular or not (replaced or (named and change.path not in known.paths.shared)):
        return False
    return change.path not in known.paths.tracked


@dataclass
class DirectChanges:
    """Searches the directories that a command changes directly for dangerous files.

    The directories are ``outputs`` and, if ``in_place``, the whole project except the directories
    ``besides``. ``repositories`` are the project's git directories, checked if the command may
    change them. ``before`` are the dangerous entries that existed when the command began.
    """

    root: Path
    grants: Grants
    repositories: tuple[Path, ...] = ()
    outputs: tuple[Path, ...] = ()
    in_place: bool = False
    besides: tuple[Path, ...] = ()
    before: set[Path] = field(default_factory=set)

    def dangerous_entries(self) -> DangerousEntries:
        root = self.root
        found = find_dangerous_entries(root, self.outputs)
        if self.in_place:
            whole = find_dangerous_entries(root, [root], self.besides)
            found.planted |= whole.planted
            if not self.grants.repository:
                found.planted |= whole.instructions
            found.parts |= whole.parts
        if self.grants.repository:
            found.planted |= {
                path for repository in self.repositories for path in steering_in(repository)
            }
        return found

    def set_aside_dangerous(self, tracked: Sequence[str]) -> tuple[list[str], list[str]]:
        """Rename or remove dangerous files and directories that a command made against its grants.

        Returns two sorted lists of paths relative to the project: those that were renamed or
        removed, and dangerous new ones that stay. Entries stay only if the command may change
        repositories: files that git checked out (``tracked``, absolute paths), and new
        repositories.
        """
        aside = set[Path]()
        kept = set[Path]()
        # A renamed directory is checked again under its new name, to find dangerous files in it.
        renamed = set[Path]()
        for _ in range(MAX_DEPTH):
            new = self._planted() - renamed
            if new and self.grants.repository:
                new -= self._of_unknown_repositories(new)
                kept |= _made_by_git(new, tracked)
            moved = False
            for path in new - kept:
                name = _set_aside(path)
                if name is not None:
                    moved = True
                    renamed.add(name)
                    aside.add(path)
            if not moved:
                break
        return _names(aside, self.root), _names(kept, self.root)

    def _planted(self) -> set[Path]:
        """Return the new dangerous directory entries that the command's grants don't allow.

        Removes the setuid and setgid bits of dangerous new files. A file that nothing else makes
        dangerous is not returned.
        """
        opened = self.grants.protected | self.grants.write
        found = set[Path]()
        for path in self.dangerous_entries().planted - self.before:
            if not is_among(path, opened) and not _drop_setuid(path):
                found.add(path)
        return found

    def _of_unknown_repositories(self, paths: set[Path]) -> set[Path]:
        """Return the paths that control a git repository which the command itself has created.

        No program uses such a repository yet.
        """
        known = {path.parent for path in self.before} | {*self.repositories}
        known |= {place / inner for place in known for inner in ("info", "objects/info")}
        return {path for path in paths if path.name in STEERING and path.parent not in known}


def _made_by_git(paths: set[Path], tracked: Sequence[str]) -> set[Path]:
    """Return the paths that git tracks, contain tracked files, or belong to new repositories."""
    kept: set[Path] = set()
    for path in paths:
        if any(Path(name).is_relative_to(path) for name in tracked):
            kept.add(path)
        if path.name not in STEERING and (is_repository_name(path.name) or _is_in_bare(path)):
            kept.add(path)
    return kept


def _is_in_bare(path: Path) -> bool:
    """Return True if a path is in a bare git repository; False if its directory is gone."""
    try:
        return is_bare_repository(row.name for row in path.parent.iterdir())
    except OSError:
        return False


def _names(paths: set[Path], root: Path) -> list[str]:
    return [os.path.relpath(path, root) for path in sorted(paths)]


def _drop_setuid(path: Path) -> bool:
    """Remove a file's setuid and setgid bits; return True if nothing else made it dangerous.

    Returns False if the file isn't a regular file with such bits, or can't be changed.
    """
    runs_as_owner = stat.S_ISUID | stat.S_ISGID
    with contextlib.suppress(OSError), directory(path.parent) as parent:
        state = state_at(parent, path.name)
        if state is None or not stat.S_ISREG(state.st_mode) or not state.st_mode & runs_as_owner:
            return False
        set_mode(parent, path.name, state.st_mode & PERMISSIONS)
        return not steers_programs(path.name)
    return False


def _set_aside(path: Path) -> Path | None:
    """Rename a file or directory to ``NAME.not-kept``, so that no program runs or reads it.

    Returns the new path, or None if ``path`` doesn't exist or can't be renamed. A link, pipe,
    socket or device is removed instead, and ``path`` is returned. Files and directories are never
    removed, because the user may have made them meanwhile.
    """
    with contextlib.suppress(OSError), directory(path.parent) as parent:
        state = state_at(parent, path.name)
        if state is None:
            return None
        mode = os.fstat(parent).st_mode
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            # Restore the owner's access to the directory, which the command has removed.
            os.fchmod(parent, stat.S_IMODE(mode) | stat.S_IRWXU)
        if not (stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode)):
            os.unlink(path.name, dir_fd=parent)
            return path
        free = _named_aside(path.name)
        if state_at(parent, free) is not None:
            free = _named_aside(path.name, f"-{token_hex(4)}")
        os.rename(path.name, free, src_dir_fd=parent, dst_dir_fd=parent)
        return path.with_name(free)
    return None


def _named_aside(name: str, number: str = "") -> str:
    """Return the new name of a dangerous file, which is short enough for every file system."""
    beginning = os.fsdecode(os.fsencode(name)[:MAX_NAME_BYTES])
    aside = f"{beginning}.not-kept{number}"
    if steers_programs(aside):
        # Programs still recognise the file by the beginning of its name, so change the beginning.
        return f"not-kept{number}{beginning}"
    return aside
