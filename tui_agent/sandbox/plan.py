"""Decides which paths a command sees and which of them it can change, as the mounts of its layout.

Looks at files. `ViewPlan.layout` also writes copies of git's settings without passwords, and makes
the directories that mounts of caches and layers need, all in the program's own directories.
"""

import asyncio
import fnmatch
import os
from collections.abc import Container, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import field
from pathlib import Path

from tui_agent.files.ignore import walk_links
from tui_agent.files.inside import read_regular
from tui_agent.files.own_git import unchanged_since_staged
from tui_agent.files.ripgrep import shared_files
from tui_agent.files.secret_files import MAX_BYTES, file_holds_secret
from tui_agent.files.sensitive import instructs_agents, is_repository_name
from tui_agent.lazy import frozen
from tui_agent.path_checks import (
    at_home,
    folders_around,
    is_among,
    is_file,
    is_link,
    is_there,
    real_path,
)
from tui_agent.sandbox.detection import SandboxKind, system_mounts
from tui_agent.sandbox.layer import Layer, name_for
from tui_agent.sandbox.layout import (
    Layout,
    Mount,
    MountKind,
    at_real_places,
    mounted,
    places_of_kind,
)
from tui_agent.sandbox.machine import MACOS_SYSTEM, Machine, base_of_environment
from tui_agent.sandbox.project_scan import (
    MAX_FILE_BYTES,
    ProjectScan,
    is_output_name,
    steering_in,
)
from tui_agent.sandbox.settings import SandboxSettings
from tui_agent.sandbox.view import View

TEMPORARY = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 - the sandbox's own
OWN_PLACES = (Path("/run"), Path("/dev"), Path("/proc"))
"""Directories that are new for each command, so a grant for a path in them is useless."""

EMPTY = "empty"
"""Name of an empty file in ``SandboxFolders.place`` that is shown instead of hidden files."""
CLOSED = "closed"
"""Name of a socket in ``SandboxFolders.place`` that may be shown instead of hidden files.

The socket is shown if the command may change the repository, because git would commit an empty
file.
"""
MAX_HIDDEN_FILES = 150
"""Maximum number of files that are hidden one by one. If there are more, directories are hidden."""
MAX_HIDDEN_DIRECTORIES = 100
"""Maximum number of directories that are hidden because of files in them.

If there are more, directories around them are hidden instead, if possible.
"""

HOME = "home"
"""Name of the directory in ``SandboxFolders.place`` that is the home directory of commands.

It is used if the sandbox isn't bubblewrap.
"""


@frozen
class SandboxFolders:
    """This program's directories that commands see in the place of existing paths.

    ``place`` is the session's directory. ``cache`` contains the caches of commands in the project;
    None if they have none. ``caches`` contains the layers over the user's caches; None if these are
    read-only.
    """

    place: Path
    cache: Path | None = None
    caches: Path | None = None

    def temporary(self, place: Path) -> Path:
        return self.place / place.as_posix().strip("/").replace("/", "-")


@frozen
class ViewPlan:
    """Everything that determines which paths a command sees. `layout` returns them as mounts.

    With a ``layer``, the command works on a copy-on-write layer over the project, otherwise on the
    project ``root`` itself. ``linked`` are output directories that are read-only without a layer,
    because files in them have hard links outside.
    """

    root: Path
    cwd: Path
    seen: ProjectScan
    machine: Machine
    settings: SandboxSettings
    folders: SandboxFolders
    kind: SandboxKind
    environment: Mapping[str, str]
    view: View = View()
    layer: Layer | None = None
    linked: frozenset[Path] = frozenset()
    private: tuple[Path, ...] = ()
    """Directories of this program that commands must not see."""
    stand_ins: Mapping[Path, Path] = field(default_factory=dict)
    """Maps each path at which commands see a replacement file to the path of the replacement.

    These are the replacements of masked files, and the file of trusted certificates.
    """
    unreadable: Mapping[Path, str] = field(default_factory=dict)
    """Project files that the user's rules keep commands from reading, each with "ask" or "deny".

    See `unreadable_files`.
    """
    shared: tuple[Path, ...] = ()
    """If ``root`` is a copy of the project, the real paths in the original that the copy reads."""

    @property
    def whole(self) -> bool:
        """Whether the whole project, not only its output directories, is on the layer."""
        return self.layer is not None and not self.layer.live

    @property
    def changes_project_itself(self) -> bool:
        """Whether the command changes the project's files directly, without a layer over them.

        That is so if it may change the repository, or if it may change sources and has no layer.
        """
        return not self.whole and (
            self.view.grants.repository or (self.layer is None and self.view.changes_sources)
        )

    def layout(self) -> Layout:
        mounts = list(self._machine_mounts())
        for texts, kind in (
            (self.settings.read, MountKind.READ),
            (self.settings.write, MountKind.WRITE),
        ):
            mounts += (
                Mount(path, kind, path.resolve()) for path in expanded(texts, self.machine.home)
            )
        mounts = self._without_links(mounts)
        mounts += (*self._project_mounts(), *self.secret_mounts())
        mounts += self._without_links(self._grant_mounts())
        mounts += self._without_links(self._written(mounts))
        mounts += self._stand_in_mounts()
        # Of several mounts at one path, the last one counts.
        mounts = at_real_places({mount.place: mount for mount in mounts}.values(), self.root)
        shown = places_of_kind(mounts, MountKind.READ, MountKind.WRITE, MountKind.LAYER) | {
            self.root
        }
        for private in self.private:
            if is_among(private, shown) and private.is_dir():
                mounts.append(Mount(private, MountKind.EMPTY))
        closed = places_of_kind(mounts, MountKind.HIDDEN_DIRECTORY)
        found = {mount.place: mount for mount in mounts if closed.isdisjoint(mount.place.parents)}
        mounts_of = tuple(found.values())
        return Layout(self.cwd, self.folders.place / EMPTY, mounts_of, project=self.root)

    def hidden(self) -> tuple[Path, ...]:
        """Return the project's files that the command sees as empty.

        These are files with secrets, masked files that the command can't see with placeholders, and
        files that rules don't let commands read, except those that the view or the settings open. A
        file of the first two kinds stays readable if its content is in git's index, because it can
        be read from git anyway, and git would commit the empty one.
        """
        root = self.root
        opened = self.view.grants.secrets | self.view.grants.write
        patterns = [text for text in self.settings.read if not text.startswith(("/", "~", "$"))]
        found: dict[Path, None] = {}
        for path in self.seen.secrets:
            name = path.relative_to(root).as_posix()
            if path in opened or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
                continue
            real = path
            if path.is_symlink():
                real = real_path(path)
            is_hidden = is_file(real) and real.is_relative_to(root) and real not in opened
            if is_hidden and not self._is_masked(real):
                found[real] = None
        for path in self.stand_ins:
            if path.is_relative_to(root) and path not in opened and not self._is_masked(path):
                found[path] = None
        for path in unchanged_since_staged(root, found):
            found.pop(path, None)
        for path, said in self.unreadable.items():
            if said == "deny" or path not in opened:
                found[path] = None
        return tuple(found)

    def secret_mounts(self) -> Iterator[Mount]:
        """Yield the mounts that hide the project's secrets and files not yet searched for secrets.

        If many files have to be hidden, whole directories are hidden.
        """
        stand_in = None
        if self.view.grants.repository:
            stand_in = self.folders.place / CLOSED
        closed = set(map(Path, self.seen.left_out))
        # Read ``unseen`` first, because a running search adds a file to the secrets before it
        # removes the file from ``unseen``.
        unseen = self.seen.unseen
        files = {*map(Path, unseen), *self.hidden()} - closed
        if len(files) > MAX_HIDDEN_FILES:
            closed |= self._directories_of(files)
        yield from mounted(closed, MountKind.HIDDEN_DIRECTORY)
        for path in files:
            if closed.isdisjoint(path.parents):
                yield Mount(path, MountKind.HIDDEN_FILE, stand_in)

    def _directories_of(self, files: set[Path]) -> set[Path]:
        """Return the directories to hide as a whole, which contain most of the files to hide.

        If possible, these are at most `MAX_HIDDEN_DIRECTORIES`. The project itself, the working
        directory and the directories above opened files are never among them.
        """
        opened = self.view.grants.secrets | self.view.grants.write
        open_ones = {self.cwd, *self.cwd.parents, *self.root.parents, self.root}
        for path in opened:
            open_ones.update(path.parents)
        found = {path.parent for path in files} - open_ones
        while len(found) > MAX_HIDDEN_DIRECTORIES:
            deepest = max(len(path.parts) for path in found)
            above = set()
            for path in found:
                is_deepest = len(path.parts) == deepest
                above.add(path.parent if is_deepest else path)
            above -= open_ones
            if above == found or deepest <= len(self.root.parts) + 1:
                break
            found = above
        return {path for path in found if found.isdisjoint(path.parents)}

    def _is_masked(self, path: Path) -> bool:
        """Return True if the command sees placeholders for the secrets in this file.

        Only bubblewrap can show another file in a file's place. That isn't done with the project's
        files if the command may change the repository, because git would commit the other file.
        """
        grants = self.view.grants
        if path not in self.stand_ins or path in grants.secrets | grants.write:
            return False
        in_project = path.is_relative_to(self.root)
        return self.kind == "bubblewrap" and not (in_project and grants.repository)

    def _stand_in_mounts(self) -> Iterator[Mount]:
        for place, source in self.stand_ins.items():
            if place == source or self._is_masked(place):
                yield Mount(place, MountKind.READ, source)
            elif self.kind != "bubblewrap":
                yield Mount(place, MountKind.HIDDEN_FILE)

    # -- the machine ---------------------------------------------------------------------------

    def _machine_mounts(self) -> Iterator[Mount]:
        machine = self.machine
        root = self.root
        mac = self.kind == "sandbox-exec"
        yield from (
            system_mounts(MACOS_SYSTEM) if mac else system_mounts(tuple(map(str, machine.system)))
        )
        for path in machine.hidden:
            yield Mount(
                path, MountKind.HIDDEN_DIRECTORY if path.is_dir() else MountKind.HIDDEN_FILE
            )
        for place in TEMPORARY:
            yield Mount(place, MountKind.PRIVATE, self.folders.temporary(place))
        if not mac:
            yield Mount(Path("/run"), MountKind.EMPTY)
        if self.kind != "bubblewrap":
            yield Mount(machine.home, MountKind.PRIVATE, self.folders.place / HOME)
        elif machine.home != Path("/") and not machine.home.is_relative_to(root):
            yield Mount(machine.home, MountKind.EMPTY)
        if self.folders.cache is not None and not machine.cache.is_relative_to(root):
            # A command that isn't allowed to change anything gets a separate directory, so that it
            # can't leave code that a later command with more rights would run.
            own = self.folders.cache / ("cache" if self.view.writes_outputs else "plan")
            yield Mount(machine.cache, MountKind.PRIVATE, own)
        for path in machine.shown:
            yield Mount(path, MountKind.READ, path.resolve())
        for path in machine.written:
            if self.layer is None or self.folders.caches is None:
                yield Mount(path, MountKind.READ, path.resolve())
                continue
            place = self.folders.caches / name_for(path)[:12]
            upper = place / "upper"
            work = place / "work"
            for directory in (upper, work):
                directory.mkdir(parents=True, exist_ok=True)
            yield Mount(path, MountKind.LAYER, upper, work)

    # -- the project ---------------------------------------------------------------------------

    def _project_mounts(self) -> Iterator[Mount]:
        root = self.root
        layer = self.layer
        changed_itself = self.changes_project_itself
        if layer is not None and self.whole:
            yield _layer_mount(layer, root)
            yield from mounted(_mounted_below(root), MountKind.READ)
        else:
            yield Mount(root, MountKind.WRITE if changed_itself else MountKind.READ)
        kept = self._kept()
        if changed_itself:
            # Mount the directories around protected paths, too. Otherwise a command could rename
            # such a directory and put another one in its place; a mount point can't be renamed.
            yield from mounted(_between(root, kept), MountKind.WRITE)
        if not self.whole and self.view.writes_outputs:
            for path in self.seen.kept_outputs:
                if layer is None:
                    yield Mount(path, MountKind.READ if path in self.linked else MountKind.WRITE)
                else:
                    yield _layer_mount(layer, path)
        yield from mounted(kept, MountKind.READ)
        yield from self._repository_mounts()
        if self.machine.home.is_relative_to(root):
            yield from self._home_dot_mounts()
        chosen = self.environment.get("VIRTUAL_ENV")
        for folder in (*self.seen.environments, *self.shared, *([Path(chosen)] if chosen else [])):
            for part in base_of_environment(folder):
                if not part.is_relative_to(root) and not part.is_relative_to("/usr"):
                    yield Mount(part, MountKind.READ)

    def _grant_mounts(self) -> Iterator[Mount]:
        grants = self.view.grants
        if not self.whole:
            yield from mounted(filter(is_there, grants.protected), MountKind.WRITE)
        yield from mounted(filter(is_there, grants.read), MountKind.READ)

    def _without_links(self, mounts: Iterable[Mount]) -> list[Mount]:
        return [mount for mount in mounts if not _is_behind_link(mount.place, self.root)]

    def _written(self, mounts: Iterable[Mount]) -> Iterator[Mount]:
        """Yield mounts for the paths that the user let the command change, where it needs them.

        A path gets no mount if the command can change it without: a mount point can't be removed or
        renamed, nor can a directory around it. With a layer, the judge allows the change.
        """
        layout = Layout(self.cwd, self.root, tuple(mounts))
        for path in filter(is_there, self.view.grants.write):
            kind = layout.kind_at(path)
            is_writable = kind is not None and kind.is_writable
            if not path.is_relative_to(self.root) or not is_writable:
                yield Mount(path, MountKind.WRITE)

    def _kept(self) -> list[Path]:
        """Return the paths that stay read-only while a command changes the project directly.

        These are files that other programs run or read as settings, files that no checkpoint can
        restore, and repositories, except those that the command's view opens. The result is empty
        if the whole project is on a layer.
        """
        if self.whole:
            return []
        grants = self.view.grants
        opened = grants.protected | grants.write
        kept = [path for path in self.seen.protected if not instructs_agents(path.name)]
        if self.changes_project_itself:
            kept += unrestorable(self.seen)
        if self.changes_project_itself and not grants.repository:
            kept += self.seen.repositories
        # Git checks out instructions for agents with the project's other files.
        if not grants.repository:
            kept += self._kept_instructions({path.parent for path in kept})
        return [path for path in kept if not path.is_symlink() and not is_among(path, opened)]

    def _kept_instructions(self, directories: AbstractSet[Path]) -> Iterator[Path]:
        """Yield the files with instructions for agents that stay read-only.

        Under Landlock, a command can create nothing beside a file that stays read-only. So there
        the files stay read-only only in ``directories``, which contain other such paths.
        """
        for path in self.seen.protected:
            is_free = self.kind != "landlock" or path.parent in directories
            if instructs_agents(path.name) and is_free:
                yield path

    def _repository_mounts(self) -> Iterator[Mount]:
        """Yield the mounts of the project's repositories, which are read-only unless granted.

        Files that tell git what to run and where to look stay read-only. Settings that contain
        passwords are replaced by copies without the passwords.
        """
        for repository in (*self.seen.repositories, *self.seen.elsewhere):
            if repository.is_symlink():
                continue
            if not self.view.grants.repository or not repository.is_dir():
                yield Mount(repository, MountKind.READ)
                continue
            steering = list(steering_in(repository))
            around = {repository, *_between(repository, steering)}
            yield from mounted(around, MountKind.WRITE)
            yield from mounted(steering, MountKind.READ)
        yield from self._password_free_settings()

    def _password_free_settings(self) -> Iterator[Mount]:
        """Yield mounts that show repositories' settings without the passwords in them.

        git needs the other settings, so the files aren't just hidden.
        """
        from tui_agent.secret_detector import remove_secrets

        for repository in (*self.seen.repositories, *self.seen.elsewhere):
            settings = {*repository.glob("config*"), repository / "credentials"}
            settings.discard(repository / "config.lock")
            for name in ("modules", "worktrees"):
                settings.update(steering_in(repository / name))
            for path in settings - self.view.grants.secrets:
                if path.is_file() and not path.is_symlink() and file_holds_secret(path):
                    text = (read_regular(path, MAX_BYTES) or b"").decode("utf-8", "replace")
                    copy = self.folders.place / f"settings-{name_for(path)}"
                    copy.write_text(remove_secrets(text))
                    # Only bubblewrap can show the copy; other sandboxes hide the settings.
                    put = MountKind.HIDDEN_FILE
                    if self.kind == "bubblewrap":
                        put = MountKind.READ
                    yield Mount(path, put, copy)

    def _home_dot_mounts(self) -> Iterator[Mount]:
        """Yield mounts that hide the dotfiles of a home directory in the project.

        Directories appear empty, files are hidden; toolchains and repositories stay as they are.
        """
        shown = {*self.machine.shown, *self.machine.written}
        with os.scandir(self.machine.home) as rows:
            for row in rows:
                path = Path(row.path)
                if not row.name.startswith(".") or path in shown or is_repository_name(row.name):
                    continue
                if row.is_dir(follow_symlinks=False):
                    yield Mount(path, MountKind.EMPTY)
                else:
                    yield Mount(path, MountKind.HIDDEN_FILE)


def _between(top: Path, paths: Iterable[Path]) -> set[Path]:
    """Return the directories that contain one of the paths, up to and including ``top``."""
    found = set[Path]()
    for path in paths:
        found.update(path.parents)
    return {place for place in found if place.is_relative_to(top)}


def _is_behind_link(place: Path, root: Path) -> bool:
    """Return True if a path in the project ``root`` leads through a link, or is a link.

    A command may have made that link, so such a path gives no access outside the project.
    """
    return place.is_relative_to(root) and os.path.realpath(place) != str(place)


def _layer_mount(layer: Layer, path: Path) -> Mount:
    """Return the mount that shows the project's directory ``path`` with a command's changes.

    If only parts of the project are on overlays, makes the directories that the kernel needs.
    """
    name = path.relative_to(layer.project)
    if layer.is_copy:
        return Mount(path, MountKind.PRIVATE, layer.upper / name)
    if path == layer.project:
        return Mount(path, MountKind.LAYER, layer.upper, layer.work)
    return Mount(path, MountKind.LAYER, *layer.make_directories(name))


def expanded(texts: Iterable[str], home: Path) -> Iterator[Path]:
    """Yield the absolute paths that the entries ``texts`` of the settings name, if they exist.

    ``~`` and variables are expanded. Entries that begin with neither ``/``, ``~`` nor ``$`` name
    project files, and are skipped.
    """
    for text in texts:
        if text.startswith(("/", "~", "$")):
            if text.startswith("~/"):
                path = home / text[2:]
            else:
                path = at_home(os.path.expandvars(text))
            if path.is_absolute() and is_there(path):
                yield path


def unrestorable(seen: ProjectScan) -> list[Path]:
    """Return the absolute paths of the project's files that no checkpoint can restore.

    These are files that git ignores (unless they are build output), directories with ignored files
    and no others except links, and files larger than `MAX_FILE_BYTES`. Blocks; don't call it on an
    event loop's thread.
    """
    shared = frozenset(asyncio.run(shared_files(seen.root)))
    links = frozenset(walk_links(seen.root))
    directories = folders_around(shared)
    found: list[Path] = []
    pending = [str(seen.root)]
    while pending:
        with os.scandir(pending.pop()) as rows:
            for row in rows:
                path = Path(row.path)
                if is_repository_name(row.name) or path in seen.outputs or row.is_symlink():
                    continue
                name = path.relative_to(seen.root).as_posix()
                is_directory = row.is_dir(follow_symlinks=False)
                if is_directory and name in directories:
                    pending.append(row.path)
                    continue
                if is_directory:
                    is_lost = _holds_unrestorable(path, seen.root, links)
                elif name in shared:
                    is_lost = row.stat(follow_symlinks=False).st_size > MAX_FILE_BYTES
                else:
                    is_lost = not is_output_name(row.name, directory=False)
                if is_lost:
                    found.append(path)
    return found


def _holds_unrestorable(directory: Path, root: Path, links: Container[str]) -> bool:
    """Return True if a directory contains a file other than ``links``, paths relative to ``root``."""
    for place, folders, files in os.walk(directory):
        prefix = Path(place).relative_to(root)
        names = [name for name in folders if is_link(f"{place}/{name}")]
        if any((prefix / name).as_posix() not in links for name in (*files, *names)):
            return True
    return False


def _mounted_below(root: Path) -> Iterator[Path]:
    """Yield the mount points of other file systems in a project, which a layer shows as empty."""
    try:
        rows = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return
    below = f"{root}/"
    for row in rows:
        name = row.split(" ")[4]
        if "\\" not in name and not name.startswith(below):
            continue
        place = Path(name.encode().decode("unicode_escape"))
        if place != root and place.is_relative_to(root):
            yield place
