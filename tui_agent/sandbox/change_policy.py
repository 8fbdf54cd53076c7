"""The one judge of a command's changes: which are kept in the project, and which grants the rest needs.

Changes on a layer are judged before they are kept, those of places that a command works on itself after it has ended.
The refusals a failed command met are read from its output. Looks at files.
"""

import contextlib
import errno
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Literal

from tui_agent.files.descriptors import PERMISSIONS, set_mode, state_at
from tui_agent.files.ignore import IgnoreRules
from tui_agent.files.inside import directory
from tui_agent.files.own_git import tracked_files
from tui_agent.files.sensitive import is_bare_repository, is_repository, is_sensitive, steers_programs
from tui_agent.lazy import LazyPattern, dataclass
from tui_agent.path_checks import at_home, is_file, is_there
from tui_agent.safe_text import one_line
from tui_agent.sandbox.layer import ChangeKind, LayerChange
from tui_agent.sandbox.layout import Layout, MountKind
from tui_agent.sandbox.plan import OWN_PLACES, unrestorable
from tui_agent.sandbox.project_scan import (
    MAX_FILE_BYTES,
    NEVER_KEPT,
    PRODUCT_MAGIC,
    STEERING,
    OutputState,
    ProjectScan,
    is_output_name,
    look_into,
    steering_in,
)
from tui_agent.sandbox.view import Grants, View, Writes


class ProjectFacts:
    """Facts about a project for judging its changes. ``shared`` are the files that a checkpoint looks at."""

    def __init__(self, root: Path, shared: frozenset[str], layout: Layout) -> None:
        self.root = root
        self.shared = shared
        self.layout = layout
        self._rules: dict[str, IgnoreRules] = {"": IgnoreRules.above(root).entering(root)}

    @cached_property
    def tracked(self) -> frozenset[str]:
        return tracked_files(self.root)

    def ignored(self, path: str, *, directory: bool = False) -> bool:
        rules, prefix = self._rules[""], ""
        *parents, name = path.split("/")
        for part in parents:
            below = f"{prefix}{part}"
            if rules.ignored(str(self.root / below), directory=True):
                return True
            if below not in self._rules:
                self._rules[below] = rules.entering(self.root / below)
            rules, prefix = self._rules[below], f"{below}/"
        return rules.ignored(str(self.root / f"{prefix}{name}"), directory=directory)


@dataclass(slots=True)
class JudgedChanges:
    """Changes by verdict. ``lost`` are intended ones that the view does not allow."""

    outputs: list[LayerChange] = field(default_factory=list)
    sources: list[LayerChange] = field(default_factory=list)
    lost: list[LayerChange] = field(default_factory=list)
    wanted: Grants = Grants()

    def notes(self, view: View) -> list[str]:
        """Return the notes for the model on lost changes."""
        names = [change.path for change in self.lost if not change.directory] or [change.path for change in self.lost]
        done = "Thrown away" if view.writes is Writes.NOTHING else "Not kept"
        return [f"[{done}, the files are as they were: {_listed(names)}.]"] if names else []


def judge(changes: Sequence[LayerChange], view: View, known: ProjectFacts) -> JudgedChanges:
    """Decide about every change in a layer; ``view`` is the command's."""
    judged, stays = JudgedChanges(), set[str]()
    for change in changes:
        path = PurePosixPath(change.path)
        if change.kind is not ChangeKind.DELETED and not stays.isdisjoint(map(str, (path, *path.parents))):
            continue  # what it would replace stays, and is named
        if change.output or (NEVER_KEPT.isdisjoint(path.parts) and path.suffix != ".pyc"):
            into, wanted = _judge(change, path, view, known)
            if into in {"outputs", "sources"} and (change.special or not _stays_inside(change, path, known)):
                into = "lost"
            judged.wanted |= wanted
            if change.kind is ChangeKind.DELETED and into not in {"outputs", "sources"}:
                stays.add(change.path)
            if into is not None and (into == "lost" or not change.inside):
                {"outputs": judged.outputs, "sources": judged.sources, "lost": judged.lost}[into].append(change)
    return judged


ChangeVerdict = tuple[Literal["outputs", "sources", "lost"] | None, Grants]
_DROPPED: ChangeVerdict = (None, Grants())
_OUTPUT: ChangeVerdict = ("outputs", Grants())
_SOURCE: ChangeVerdict = ("sources", Grants())


def _judge(change: LayerChange, path: PurePosixPath, view: View, known: ProjectFacts) -> ChangeVerdict:
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
    restorable = change.regular and change.size <= MAX_FILE_BYTES and change.path in known.shared
    if view.changes_sources and (change.directory or change.kind is ChangeKind.NEW or restorable):
        return _SOURCE
    if change.directory or (change.kind is ChangeKind.NEW and known.ignored(change.path)):
        return _DROPPED if change.directory else made_again
    if change.kind is ChangeKind.NEW or (change.path in known.shared and not view.changes_sources):
        asked = Grants(sources=True)
    else:
        # The outermost directory around it in which nothing is shared is opened as one.
        around = (f"{parent.as_posix()}/" for parent in reversed(path.parents[:-1]))
        alone = (place for place in around if not any(name.startswith(place) for name in known.shared))
        asked = Grants(write=frozenset({root / next(alone, path)}))
    return "lost", asked


def _steering(path: PurePosixPath, change: LayerChange, root: Path) -> Grants:
    """Return the grants needed for a path that steers programs or holds secrets; none for any other."""
    if change.repository or any(map(is_repository, path.parts)):
        return Grants(repository=True)
    for depth, part in enumerate(path.parts):
        if steers_programs(part):
            first = path.parts[: depth + 1] if change.directory or depth + 1 == len(path.parts) else path.parts
            return Grants(protected=frozenset({root.joinpath(*first)}))
    if not change.directory and not change.output and is_sensitive(path.name):
        return Grants(secrets=frozenset({root / path}))
    return Grants()


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
        # Environments lead to Python: a program that commands see and can't change.
        real = Path(os.path.realpath(target))
        return known.layout.put_at(real) is MountKind.READ and is_file(real) and os.access(real, os.X_OK)
    up = next((at for at, part in enumerate(parts) if part != ".."), len(parts))
    return ".." not in parts[up:] and up <= len(path.parts) - 1


def _is_output(change: LayerChange, path: PurePosixPath, known: ProjectFacts) -> bool:
    """Whether something is different that is made again by doing the same again; a script is not."""
    if change.head.startswith(b"#!"):
        return False
    named = is_output_name(path.name, directory=change.directory)
    if change.kind is ChangeKind.NEW:
        return named or (change.regular and change.head.startswith(PRODUCT_MAGIC))
    replaced = change.kind is ChangeKind.CHANGED and change.head.startswith(PRODUCT_MAGIC)
    if change.directory or not change.regular or not (replaced or (named and change.path not in known.shared)):
        return False
    return f"{known.root}/{change.path}" not in known.tracked


@dataclass(slots=True)
class WorkedOnItself:
    """The places a command changes without a layer. ``before``: paths there that programs obeyed or that led outside.

    ``project`` is None where none of its files change where they are, but for those in ``outputs``.
    """

    seen: ProjectScan
    grants: Grants
    project: Path | None
    outputs: tuple[Path, ...]
    before: set[Path] = field(default_factory=set)

    def look(self) -> OutputState:
        root = self.seen.root
        found = look_into(root, self.outputs)
        if self.project is not None:
            whole = look_into(root, [root], self.seen.outputs)
            found.planted |= whole.planted
            found.parts |= whole.parts
        if self.grants.repository:
            repositories = (*self.seen.repositories, *self.seen.elsewhere)
            found.planted |= {path for repository in repositories for path in steering_in(repository)}
        return found

    def tidied(self) -> list[str]:
        """Set aside what the command left for other programs to obey, and name new files of the kind that stay.

        Where it may write to repositories, files that git checked out stay, and so do repositories that it made.
        """
        root, opened = self.seen.root, self.grants.protected | self.grants.write
        new = {path for path in self.look().planted - self.before if not any(map(path.is_relative_to, opened))}
        new = {path for path in new if not _is_its_owners_no_more(path) or steers_programs(path.name)}
        kept = set[Path]()
        if new and self.grants.repository:
            known = {path.parent for path in self.before} | {*self.seen.repositories, *self.seen.elsewhere}
            known |= {place / inner for place in known for inner in ("info", "objects/info")}
            new -= {path for path in new if path.name in STEERING and path.parent not in known}
            tracked = [Path(name) for name in tracked_files(root)]
            kept = {path for path in new if any(name.is_relative_to(path) for name in tracked)}
            bare = {path for path in new if is_bare_repository(row.name for row in path.parent.iterdir())}
            kept |= {path for path in new if path.name not in STEERING and (path in bare or is_repository(path.name))}
        aside = {path for path in new - kept if _set_aside(path)}
        rows = (
            (aside, "Not kept as it is, as other programs obey it or it leads outside: {}."),
            (kept, "New, and other programs obey it: {}. Tell the user to look at it."),
        )
        return [
            f"[{text.format(_listed([os.path.relpath(path, root) for path in sorted(paths)]))}]"
            for paths, text in rows
            if paths
        ]


def _is_its_owners_no_more(path: Path) -> bool:
    """Take from a file that it runs as its owner or group; returns whether it did."""
    with contextlib.suppress(OSError), directory(path.parent) as parent:
        state = state_at(parent, path.name)
        if state is not None and stat.S_ISREG(state.st_mode) and state.st_mode & (stat.S_ISUID | stat.S_ISGID):
            set_mode(parent, path.name, state.st_mode & PERMISSIONS)
            return True
    return False


def _set_aside(path: Path) -> bool:
    """Give a file or directory a name that no program obeys; links and pipes go. Returns whether there was one.

    It may be the user's by now, who works in the same directories: nothing with content is ever removed.
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


def _listed(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    # A name is whatever a command called it: it may not go on as a line of ours.
    return ", ".join(map(one_line, names[:most])) + more


# Missing grants: the output of a command names paths beside the system's refusal.

_LINES = 200
"""Lines at the end of an output that are looked at."""

_WORDS = {
    **{os.strerror(number): number for number in (errno.EROFS, errno.EACCES, errno.EBUSY, errno.ENOENT, errno.EPERM)},
    **{errno.errorcode[number]: number for number in (errno.EROFS, errno.EACCES, errno.EBUSY, errno.ENOENT)},
}
"""How the system says no, in its words and by name."""
_REFUSAL = LazyPattern("|".join(map(re.escape, sorted(_WORDS, key=len, reverse=True))))
_WHO = LazyPattern(r"^\S+: line \d+:")
"""How a shell's messages begin."""
_QUOTED = LazyPattern(r"""['"‘“`]([^'"’”`\n]{1,400})['"’”`]""")
_PATH = LazyPattern(r"(?:~|\.{0,2})/[^\s:'\"’”`,;()\[\]<>|]+|[\w.@+-]+(?:/[\w.@+-]+)*")


def lacking(output: str, cwd: Path, view: View, seen: ProjectScan, shows: Callable[[Path], bool]) -> Grants:
    """Return the grants a command lacked, from paths in its output beside the system's refusal.

    ``shows`` tells whether commands see a path outside of the project.
    """
    wanted = Grants()
    for path, refusal in refused_paths(output, cwd):
        if path.is_relative_to(seen.root) or any(path.is_relative_to(place) for place in seen.elsewhere):
            wanted |= _inside(path, refusal, view, seen)
        elif any(path.is_relative_to(place) for place in OWN_PLACES):
            continue
        elif refusal == errno.ENOENT and os.path.lexists(path) and not shows(path):
            wanted |= Grants(read=frozenset({path}))
        elif refusal != errno.ENOENT and _could_write(path):
            wanted |= Grants(write=frozenset({path}))
    return wanted


def refused_paths(output: str, cwd: Path) -> Iterator[tuple[Path, int]]:
    """Yield the paths that lines of an output name beside a refusal of the system, and its number."""
    for line in output.splitlines()[-_LINES:]:
        refusal = _REFUSAL.search(line)
        if refusal is None:
            continue
        rest = _WHO.sub("", f"{line[: refusal.start()]} {line[refusal.end() :]}")
        for text in dict.fromkeys([*_QUOTED.findall(rest), *_PATH.findall(rest)]):
            try:
                path = Path(os.path.normpath(cwd / at_home(text.rstrip("."))))
                known = "/" in text or os.path.lexists(path)
            except ValueError:
                continue
            if known:
                yield path, _WORDS[refusal[0]]


def _inside(path: Path, refusal: int, view: View, seen: ProjectScan) -> Grants:
    if refusal == errno.ENOENT:
        return Grants()
    if any(map(is_repository, path.parts)) or not path.is_relative_to(seen.root):
        return Grants(repository=True)
    if any(path.is_relative_to(kept) for kept in seen.protected):
        return Grants(protected=frozenset({path}))
    held = refusal in {errno.EROFS, errno.EBUSY} or (refusal == errno.EACCES and _could_write(path))
    if not held:
        return Grants()
    if not view.changes_sources:
        return Grants(sources=True)
    kept = next((place for place in unrestorable(seen) if path.is_relative_to(place)), None)
    return Grants() if kept is None else Grants(write=frozenset({kept}))


def _could_write(path: Path) -> bool:
    return os.access(path if is_there(path) else path.parent, os.W_OK)


def named(files: tuple[Path, ...], root: Path, output: str) -> frozenset[Path]:
    names = {path: re.escape(path.relative_to(root).as_posix()) for path in files}
    return frozenset(path for path, name in names.items() if re.search(rf"(?<![\w.-]){name}(?![\w-])", output))
