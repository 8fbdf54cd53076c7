"""Decides which changes of a command are kept in the project, and which grants the others need. Looks at files."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Literal

from tui_agent.files.ignore import IgnoreRules
from tui_agent.files.own_git import tracked_files
from tui_agent.files.sensitive import is_repository, is_sensitive, steers_programs
from tui_agent.lazy import dataclass
from tui_agent.path_checks import is_file
from tui_agent.safe_text import one_line
from tui_agent.sandbox.layer import ChangeKind, LayerChange
from tui_agent.sandbox.layout import Layout, MountKind
from tui_agent.sandbox.project_scan import (
    CACHE_TAG,
    NEVER_KEPT,
    is_output_name,
    is_product,
)
from tui_agent.sandbox.view import Grants, View

MAX_FILE_BYTES = 5_000_000
"""A larger file has no image in a checkpoint: what becomes of it can't be taken back."""


class ProjectFacts:
    """What is known of a project when its changes are judged, looked up when asked.

    ``shared`` are the files that a checkpoint looks at, by path.
    """

    def __init__(self, root: Path, shared: frozenset[str], layout: Layout) -> None:
        self.root = root
        self.shared = shared
        self._layout = layout
        self._rules: dict[str, IgnoreRules] = {"": IgnoreRules.above(root).entering(root)}

    @cached_property
    def _tracked(self) -> frozenset[str]:
        return tracked_files(self.root)

    def is_tracked(self, path: str) -> bool:
        return f"{self.root}/{path}" in self._tracked

    def runs(self, path: Path) -> bool:
        """Whether commands see a program at a path outside, which they can't change: environments lead to Python."""
        real = Path(os.path.realpath(path))
        return self._layout.put_at(real) is MountKind.READ and is_file(real) and os.access(real, os.X_OK)

    def ignored(self, path: str) -> bool:
        """Whether a new file would be ignored."""
        rules, prefix = self._rules[""], ""
        *parents, name = path.split("/")
        for part in parents:
            below = f"{prefix}{part}"
            if rules.ignored(str(self.root / below), directory=True):
                return True
            if below not in self._rules:
                self._rules[below] = rules.entering(self.root / below)
            rules, prefix = self._rules[below], f"{below}/"
        return rules.ignored(str(self.root / f"{prefix}{name}"), directory=False)


@dataclass(slots=True)
class JudgedChanges:
    """Changes by what becomes of them. ``lost`` are those that were meant, and that the view had no room for."""

    outputs: list[LayerChange] = field(default_factory=list)
    sources: list[LayerChange] = field(default_factory=list)
    lost: list[LayerChange] = field(default_factory=list)
    wanted: Grants = Grants()


def needs_knowledge(changes: Iterable[LayerChange]) -> bool:
    """Whether it matters what else is in the project: something that was there before is different."""
    return any(change.kind is not ChangeKind.NEW and not change.output for change in changes)


def judge(changes: Sequence[LayerChange], view: View, known: ProjectFacts) -> JudgedChanges:
    """Decide about every change in a layer; ``view`` is what the command was given."""
    root = known.root
    judged = JudgedChanges()
    made = {change.path for change in changes if change.directory and change.kind is ChangeKind.NEW}
    for change in changes:
        path = PurePosixPath(change.path)
        if path.name == CACHE_TAG and not change.output and path.parent.as_posix() not in made:
            # It would open what is in the directory already to be thrown away.
            judged.lost.append(change)
            judged.wanted |= Grants(write=frozenset({root / path}))
            continue
        if change.output or (NEVER_KEPT.isdisjoint(path.parts) and path.suffix != ".pyc"):
            into, wanted = _judge(change, path, view, known)
            if into in {"outputs", "sources"} and (change.special or not _stays_inside(change, path, known)):
                into = "lost"
            judged.wanted |= wanted
            if into is not None and (into == "lost" or not change.inside):
                {"outputs": judged.outputs, "sources": judged.sources, "lost": judged.lost}[into].append(change)
    return judged


ChangeVerdict = tuple[Literal["outputs", "sources", "lost"] | None, Grants]
_DROPPED: ChangeVerdict = (None, Grants())
_OUTPUT: ChangeVerdict = ("outputs", Grants())
_SOURCE: ChangeVerdict = ("sources", Grants())


def _judge(change: LayerChange, path: PurePosixPath, view: View, known: ProjectFacts) -> ChangeVerdict:
    """Return what becomes of a change, and what would have to be open for it."""
    root, made_again = known.root, _OUTPUT if view.writes_outputs else _DROPPED
    if steering := _steering(path, change, root):
        if _is_open(steering, view.grants, root / path):
            return _SOURCE
        # Packages come with such directories: they are not needed, and nobody is asked about each.
        asked = Grants(repository=steering.repository) if change.output else steering
        return _DROPPED if change.output and made_again is _DROPPED else ("lost", asked)
    if change.output or _is_output(change, path, known):
        return made_again
    if view.changes_sources and (change.directory or _can_be_taken_back(change, known)):
        return _SOURCE
    if change.directory or (change.kind is ChangeKind.NEW and known.ignored(change.path)):
        return _DROPPED if change.directory else made_again
    if change.kind is ChangeKind.NEW or (change.path in known.shared and not view.changes_sources):
        asked = Grants(sources=True)
    else:
        asked = Grants(write=frozenset({root / _outermost(path, known)}))
    return "lost", asked


def _steering(path: PurePosixPath, change: LayerChange, root: Path) -> Grants:
    """Return what has to be open for a path that steers programs or holds secrets; nothing for any other."""
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

    Of ``..`` only those at the beginning are followed: what lies before another one may be a link itself.
    """
    if change.link is None:
        return True
    target = PurePosixPath(change.link)
    parts = list(target.parts)
    if target.is_absolute():
        if ".." in parts:
            return False
        return Path(target).is_relative_to(known.root) or known.runs(Path(target))
    up = next((at for at, part in enumerate(parts) if part != ".."), len(parts))
    return ".." not in parts[up:] and up <= len(path.parts) - 1


def _is_open(steering: Grants, grants: Grants, path: Path) -> bool:
    opened = grants.protected | grants.secrets | grants.write
    return not steering.repository and any(path.is_relative_to(place) for place in opened)


def _is_output(change: LayerChange, path: PurePosixPath, known: ProjectFacts) -> bool:
    """Whether something is different that is made again by doing the same again; a script is not."""
    if change.head.startswith(b"#!"):
        return False
    named = is_output_name(path.name, directory=change.directory)
    if change.kind is ChangeKind.NEW:
        return named or (change.regular and is_product(change.head))
    if change.directory or not change.regular:
        return False
    if named and change.path not in known.shared:
        return not known.is_tracked(change.path)
    return change.kind is ChangeKind.CHANGED and is_product(change.head) and not known.is_tracked(change.path)


def _can_be_taken_back(change: LayerChange, known: ProjectFacts) -> bool:
    if change.kind is ChangeKind.NEW:
        return True
    return change.regular and change.size <= MAX_FILE_BYTES and change.path in known.shared


def _outermost(path: PurePosixPath, known: ProjectFacts) -> PurePosixPath:
    """Return the outermost directory around a path in which nothing is shared: what has to be opened as one."""
    for parent in reversed(path.parents[:-1]):
        inside = f"{parent.as_posix()}/"
        if not any(name.startswith(inside) for name in known.shared):
            return parent
    return path


def listed(names: Sequence[str], most: int = 5) -> str:
    """Return some of the paths that changed, for a sentence."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    # A name is whatever a command called it: it may not go on as a line of ours.
    return ", ".join(map(one_line, names[:most])) + more
