"""The mounts that make up what a command sees, translated for each kind of sandbox.

The mounts become options for bubblewrap, a profile for sandbox-exec, and grants for Landlock.
``plan`` decides which mounts a command has.
"""

import contextlib
import json
import os
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from functools import lru_cache
from pathlib import Path

from tui_agent.lazy import frozen
from tui_agent.sandbox.devices import DEVICES
from tui_agent.word_lists import in_order

KERNEL = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus")
"""Paths at which root can change settings of the kernel even without capabilities."""

# Landlock allows a process to use the named paths, with the contents of directories, but nothing
# else. It can't show a path elsewhere nor exclude one from an allowed directory. To exclude a path,
# its siblings are named one by one, and then nothing new can be created beside it. A filter of
# system calls blocks the whole network.
MIN_LANDLOCK = 3
"""Oldest usable version of Landlock. Earlier ones let a command truncate read-only files."""

_OF_KERNEL = in_order(
    """
    cpuinfo meminfo stat loadavg uptime version filesystems cmdline diskstats vmstat swaps devices
    partitions interrupts crypto sys self
    """
)
"""Names in ``/proc`` that commands see under Landlock.

These files describe the kernel and the command's first process. Those of other processes may show
passwords.
"""

_OWN_NAMESPACES = ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
"""Options of bubblewrap for the namespaces of each command.

The process namespace hides the environments of other processes, which may contain API keys.
"""

_MAX_STEPS = 400
"""Maximum number of names in a path, including those in its links. Links may lead in a circle."""

_STARTER = Path(__file__).with_name("landlock_start.py")


class MountKind(Enum):
    """How a path appears to a command in the sandbox."""

    READ = "read"
    """The existing file or directory, which the command can only read."""
    WRITE = "write"
    """The existing file or directory, which the command can change."""
    EMPTY = "empty"
    """A new, empty, writable directory, whose contents are lost when the command ends."""
    PRIVATE = "private"
    """A writable directory of this program, which is shown instead of the existing directory."""
    LAYER = "layer"
    """The existing directory, but what the command writes to it is stored elsewhere."""
    HIDDEN_FILE = "hidden file"
    HIDDEN_DIRECTORY = "hidden directory"
    LINK = "link"

    @property
    def is_writable(self) -> bool:
        return self in {MountKind.WRITE, MountKind.LAYER, MountKind.PRIVATE}


@frozen
class Mount:
    """How the path ``place`` appears to a command.

    ``source`` is the path that is shown there, None for ``place`` itself. For a layer, ``source``
    is the directory that receives the changes, ``work`` is a directory that the kernel needs beside
    it, and ``below`` is the directory under the layer if it isn't ``place``. Without ``source`` and
    ``work`` the changes are lost. For a link, ``source`` is its target. A hidden file without a
    ``source`` appears empty.
    """

    place: Path
    kind: MountKind
    source: Path | None = None
    work: Path | None = None
    below: Path | None = None

    @property
    def content(self) -> Path | None:
        """The existing path that a read, write or layer mount shows; None for other mounts."""
        match self.kind:
            case MountKind.READ | MountKind.WRITE:
                return self.source or self.place
            case MountKind.LAYER:
                return self.below or self.place
            case _:
                return None

    def shown_at(self, place: Path) -> "Mount":
        """Return a mount that shows the same content at another path."""
        if self.kind is MountKind.LAYER:
            return replace(self, place=place, below=self.content)
        return replace(self, place=place, source=self.source or self.content)

    def moved(self, root: Path, to: Path) -> "Mount":
        """Return the mount, with its path moved from the directory ``root`` to ``to``.

        A mount outside ``root`` is returned unchanged.
        """
        if not self.place.is_relative_to(root):
            return self
        return self.shown_at(to / self.place.relative_to(root))


def mounted(places: Iterable[Path], kind: MountKind) -> Iterator[Mount]:
    """Yield a mount of the kind ``kind``, without a source, for each of ``places``."""
    for place in places:
        yield Mount(place, kind)


def at_real_places(mounts: Iterable[Mount], root: Path) -> list[Mount]:
    """Return the mounts with the links in each mount's path resolved.

    Bubblewrap can't mount on a path with a link that the command sees, so such a mount is moved to
    where the link leads. It is left out if that place has a mount already or is in the project
    ``root``. Mounts in the project are returned unchanged. Looks at files.
    """
    made: dict[Path, Mount] = {}
    later: list[Mount] = []
    for mount in sorted(mounts, key=lambda mount: len(mount.place.parts)):
        place = mount.place
        if not place.is_relative_to(root):
            place = _without_links(place, made, root)
        if place == mount.place:
            made[place] = mount
        else:
            later.append(mount.shown_at(place))
    for mount in later:
        if not mount.place.is_relative_to(root):
            made.setdefault(mount.place, mount)
    return list(made.values())


def _without_links(place: Path, made: Mapping[Path, Mount], root: Path) -> Path:
    """Return a path with its links resolved as a command with the mounts ``made`` sees them.

    Links in the project ``root`` are not resolved, because a command may have made them. A path
    with too many links is returned unchanged.
    """
    found = Path("/")
    pending = list(reversed(place.parts[1:]))
    for _step in range(_MAX_STEPS):
        if not pending or found.is_relative_to(root):
            return found.joinpath(*reversed(pending))
        name = pending.pop()
        target = _link_at(found / name, made, is_last=not pending)
        if name == "..":
            found = found.parent
        elif target is None:
            found /= name
        else:
            if target.is_absolute():
                found = Path("/")
            pending += reversed([part for part in target.parts if part != "/"])
    return place


def _link_at(place: Path, made: Mapping[Path, Mount], *, is_last: bool) -> Path | None:
    """Return the target of the link that a command sees at a path; None if it sees no link."""
    around = next((made[above] for above in place.parents if above in made), None)
    outside = None
    if around is not None:
        outside = around.content
    with contextlib.suppress(OSError):
        if around is not None and outside is not None:
            return (outside / place.relative_to(around.place)).readlink()
    # A mount at the path's last name replaces what is there, so a link there isn't followed.
    link = made.get(place)
    if link is None or link.kind is not MountKind.LINK or is_last:
        return None
    return link.source


def places_of_kind(mounts: Iterable[Mount], *kinds: MountKind) -> set[Path]:
    """Return the path ``place`` of each mount that has one of the given kinds."""
    return {mount.place for mount in mounts if mount.kind in kinds}


@frozen
class Layout:
    """A command's working directory, and the mounts that make up what it sees.

    All paths are absolute. ``empty`` is an empty file that is shown instead of hidden files.
    ``project`` is the project's root. Other commands may be changing files in the project, so no
    path of a mount in it contains a link, and a path that has become a link is not followed.
    """

    cwd: Path
    empty: Path
    mounts: tuple[Mount, ...]
    project: Path | None = None

    def showing(
        self, copy: "CopyOrigin", root: Path, secrets: Iterable[Mount], *, at_its_place: bool
    ) -> "Layout":
        """Return the layout for a command that works in ``root``, a copy of the project.

        The command also sees, read-only, the paths of the project that the copy reads, except those
        that the mounts ``secrets`` hide. With ``at_its_place`` the copy appears at the project's
        path, so that paths mean the same in both, and mounts through which the command could change
        the project itself are left out.
        """
        shown = [(place if at_its_place else real, real) for place, real in copy.shared]
        secrets = tuple(secrets)
        closed = places_of_kind(secrets, MountKind.HIDDEN_DIRECTORY)
        shared: list[Mount] = []
        hidden: list[Mount] = []
        for place, real in shown:
            shared.append(Mount(place, MountKind.READ, real))
            if not closed.isdisjoint(real.parents):
                # The path is in a hidden directory of the project, so it is hidden here, too.
                hidden.append(Mount(place, MountKind.HIDDEN_DIRECTORY))
            for mount in secrets:
                if mount.place.is_relative_to(real):
                    inner = mount.place.relative_to(real)
                    hidden.append(replace(mount, place=place / inner))
        if not at_its_place:
            return replace(self, mounts=(*self.mounts, *shared, *hidden))
        moved: dict[Path, Mount] = {}
        for mount in self.mounts:
            if mount.kind.is_writable and mount.place.is_relative_to(copy.project):
                continue
            there = mount.moved(root, copy.project)
            moved[there.place] = there
        cwd = self.cwd
        if cwd.is_relative_to(root):
            cwd = copy.project / cwd.relative_to(root)
        return replace(self, cwd=cwd, mounts=(*moved.values(), *shared, *hidden))

    def ordered(self) -> list[Mount]:
        """Return the mounts in the order in which they have to be made, the outermost first.

        Of several mounts at the same path, only the last is returned.
        """
        last = {mount.place: mount for mount in self.mounts}
        return sorted(last.values(), key=lambda mount: len(mount.place.parts))

    def kind_at(self, path: Path) -> MountKind | None:
        """Return the kind of the innermost mount that contains a path; None if no mount does."""
        for mount in reversed(self.ordered()):
            if path.is_relative_to(mount.place):
                return mount.kind
        return None


@frozen
class CopyOrigin:
    """The ``project`` of which the directory of a sandbox is a copy.

    ``shared`` lists the paths outside the copy that the copy reads, each as a pair of the path that
    the copy uses and the real path.
    """

    project: Path
    shared: tuple[tuple[Path, Path], ...] = ()


class Proc(Enum):
    """What a command sees at ``/proc``. Each value consists of bubblewrap's options."""

    OWN = ("--proc", "/proc")
    """A new ``/proc`` file system with the command's own processes."""
    OUTER = ("--ro-bind", "/proc", "/proc")
    """The ``/proc`` of this program, for containers that forbid a new ``/proc``.

    Other processes are visible, but not readable.
    """
    NONE = ("--dir", "/proc")


@frozen
class BubblewrapForm:
    """The options with which bubblewrap works on this machine."""

    program: str
    users: bool = True
    """Whether to make a user namespace. False works only if this program is root and may mount."""
    proc: Proc = Proc.OWN
    root: bool = True
    """Whether this program is root, so that the settings in `KERNEL` must be read-only."""
    capabilities: tuple[str, ...] = ()
    """The capabilities of root that the command keeps."""


def keyring_filter() -> int:
    """Return the descriptor of a system call filter that blocks the kernel's keyrings.

    Namespaces don't hide the keyring of the user's login session, in which Kerberos and other
    programs keep secrets. On an unknown processor architecture the filter blocks nothing. The
    caller closes the descriptor.
    """
    from tui_agent.sandbox.landlock_start import keyring_filter_of

    return _in_memory(keyring_filter_of(platform.machine()))


def bubblewrap_command(
    form: BubblewrapForm,
    layout: Layout,
    command: Sequence[str],
    *,
    own_network: bool = True,
    info: int = -1,
    calls: int = -1,
) -> tuple[str, ...]:
    """Return the argument list that runs a command in bubblewrap.

    With ``own_network`` the command has an empty network, otherwise the network in which bubblewrap
    is started. ``info`` is the descriptor to which bubblewrap reports the first process inside, and
    ``calls`` is the descriptor of a system call filter; -1 for none.
    """
    words = [form.program, *_OWN_NAMESPACES]
    if form.users:
        words.append("--unshare-user")
    if own_network:
        words.append("--unshare-net")
    if info >= 0:
        words += ("--info-fd", str(info))
    if calls >= 0:
        words += ("--seccomp", str(calls))
    words += ("--die-with-parent", "--cap-drop", "ALL")
    for name in form.capabilities:
        words += ("--cap-add", name)
    words += ("--dev", "/dev", *form.proc.value)
    if form.proc is Proc.OWN and form.root:
        for path in KERNEL:
            words += ("--ro-bind-try", path, path)
    for mount in layout.ordered():
        words += _words(mount, layout.empty)
    return (*words, "--chdir", str(layout.cwd), "--", *command)


def _words(mount: Mount, empty: Path) -> tuple[str, ...]:
    place = str(mount.place)
    source = str(mount.source or mount.place)
    written: tuple[str, ...] = ("--tmp-overlay",)
    if mount.work is not None:
        written = ("--overlay", source, str(mount.work))
    words: dict[MountKind, tuple[str, ...]] = {
        MountKind.READ: ("--ro-bind-try", source, place),
        MountKind.WRITE: ("--bind-try", source, place),
        MountKind.EMPTY: ("--tmpfs", place),
        MountKind.PRIVATE: ("--bind", source, place),
        MountKind.LAYER: ("--overlay-src", str(mount.below or place), *written, place),
        MountKind.HIDDEN_FILE: ("--ro-bind", str(mount.source or empty), place),
        MountKind.HIDDEN_DIRECTORY: ("--tmpfs", place, "--remount-ro", place),
        MountKind.LINK: ("--symlink", source, place),
    }
    return words[mount.kind]


def seatbelt_profile(layout: Layout, port: int = 0) -> str:
    """Return a layout as a profile for sandbox-exec, the sandbox program of macOS.

    If several rules of the profile match, the last one applies. ``port`` is the proxy's port on
    this machine, 0 for no network.
    """
    lines = [
        "(version 1)",
        "(allow default)",
        "(deny file-read* file-write*)",
        "(allow file-read-metadata)",
        '(allow file-read* (literal "/"))',
        '(allow file-write* (subpath "/dev"))',
    ]
    for mount in layout.ordered():
        if mount.kind is MountKind.PRIVATE and mount.source is not None:
            place = mount.source
        else:
            place = mount.place
        quoted = str(place).replace("\\", "\\\\").replace('"', '\\"')
        match mount.kind:
            case MountKind.WRITE | MountKind.PRIVATE | MountKind.LAYER:
                lines.append(f'(allow file-read* file-write* (subpath "{quoted}"))')
            case MountKind.READ:
                lines += [
                    f'(allow file-read* (subpath "{quoted}"))',
                    f'(deny file-write* (subpath "{quoted}"))',
                ]
            case MountKind.HIDDEN_FILE | MountKind.HIDDEN_DIRECTORY | MountKind.EMPTY:
                lines.append(f'(deny file-read* file-write* (subpath "{quoted}"))')
            case MountKind.LINK:
                pass
    # Forbid connections and signals to other processes, because the command could use them to make
    # processes outside the sandbox act on its behalf.
    lines += ["(deny network*)", "(deny signal)", "(allow signal (target same-sandbox))"]
    if port:
        lines.append(f'(allow network-outbound (remote ip "localhost:{port}"))')
    return "\n".join(lines)


@lru_cache(maxsize=1)
def landlock_version() -> int:
    """Return the version of the kernel's Landlock interface; 0 if there is none."""
    try:
        import landlockpy

        return landlockpy.abi_version()
    except (ImportError, OSError):
        return 0


def landlock_grants(layout: Layout) -> list[tuple[str, str]]:
    """Return the Landlock grants that come closest to a layout, without duplicates.

    Each grant is a path and the right to it and to everything below it: ``list``, ``read`` or
    ``write`` (which includes reading). A path that contains a link when the command starts grants
    nothing, except in ``/proc``.
    """
    mounts = layout.ordered()
    found: list[tuple[str, str]] = [(name, "write") for name in DEVICES if Path(name).exists()]
    found += [(f"/proc/{name}", "read") for name in _OF_KERNEL if Path(f"/proc/{name}").exists()]
    for mount in mounts:
        if mount.kind is MountKind.PRIVATE:
            found.append((os.path.realpath(str(mount.source)), "write"))
        elif mount.kind in {MountKind.READ, MountKind.WRITE}:
            apart = _with_fewer_rights(mount, mounts)
            on_the_way = {str(parent) for place in apart for parent in Path(place).parents}
            place = str(mount.place)
            real = _real(mount.place, layout.project)
            parts = _beside(place, apart, on_the_way, mount.kind.value)
            found += ((real + path[len(place) :], right) for path, right in parts)
    return list(dict.fromkeys(found))


def _real(place: Path, project: Path | None) -> str:
    """Return a path with its links resolved, except for links in the project."""
    if project is not None and place.is_relative_to(project):
        return str(place)
    return os.path.realpath(place)


def _with_fewer_rights(mount: Mount, mounts: Iterable[Mount]) -> set[str]:
    """Return the paths below a mount where a command has fewer rights than elsewhere in it."""
    less = [MountKind.HIDDEN_FILE, MountKind.HIDDEN_DIRECTORY, MountKind.EMPTY]
    if mount.kind is MountKind.WRITE:
        less.append(MountKind.READ)
    others = places_of_kind(mounts, *less)
    return {str(place) for place in others if mount.place in place.parents}


def _beside(
    path: str, apart: set[str], on_the_way: set[str], right: str
) -> Iterator[tuple[str, str]]:
    """Yield grants for ``path`` except for the paths ``apart`` in it, which have fewer rights.

    ``on_the_way`` are the directories around these paths. They can only be listed; their other
    entries are granted one by one.
    """
    if path in apart:
        return
    if path not in on_the_way:
        yield path, right
        return
    yield path, "list"
    try:
        with os.scandir(path) as scanned:
            rows = list(scanned)
    except OSError:
        return
    for row in rows:
        # A link grants nothing, because the path that it leads to has its own grant, or none.
        if not row.is_symlink():
            yield from _beside(row.path, apart, on_the_way, right)


def landlock_command(specification: int, command: Sequence[str]) -> tuple[str, ...]:
    """Return the argument list that runs a command under Landlock.

    ``specification`` is the result of `landlock_specification`, which must stay open until the
    command has started.
    """
    import landlockpy

    packages = str(Path(landlockpy.__file__).parent.parent)
    return (
        sys.executable,
        "-I",
        "-S",
        str(_STARTER),
        packages,
        f"/proc/{os.getpid()}/fd/{specification}",
        *command,
    )


def landlock_specification(layout: Layout) -> int:
    """Return the descriptor of an in-memory JSON file with the result of `landlock_grants`."""
    return _in_memory(json.dumps(landlock_grants(layout)).encode("utf-8", "surrogateescape"))


def _in_memory(data: bytes) -> int:
    descriptor = os.memfd_create("data")
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
