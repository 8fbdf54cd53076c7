"""The sandbox of a session, which prepares what each command sees and keeps allowed changes.

It owns the session's network, the processes that judge changes, the copy-on-write layers, the
copies and scans of projects, and the directories for temporary files and caches. What a command
sees is decided in ``plan``, which of its changes are kept in ``change_policy``. The caller starts
the command between `Sandbox.launch` and `Sandbox.finish`, waits for its end, and asks the user for
grants.
"""

import asyncio
import contextlib
import fcntl
import fnmatch
import json
import logging
import os
import secrets
import signal
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tui_agent.files.descriptors import remove_tree
from tui_agent.files.ignore import IgnoreRules, lines_above, walk_links
from tui_agent.files.own_git import tracked_files
from tui_agent.files.ripgrep import shared_files
from tui_agent.files.secret_files import file_holds_secret
from tui_agent.files.secret_search import MayContinue, SecretSearch
from tui_agent.lazy import LazyPattern, cached_property, dataclass, frozen
from tui_agent.path_checks import (
    folders_around,
    is_among,
    is_directory,
    is_file,
    is_inside,
    is_link,
    is_there,
)
from tui_agent.processes.environment_table import without_left_out
from tui_agent.processes.freezing import held_still
from tui_agent.sandbox.authority import Authority, bundle, certificate_variables
from tui_agent.sandbox.change_policy import LossReason
from tui_agent.sandbox.copy_pool import CopyPool
from tui_agent.sandbox.detection import SandboxState, find_sandbox, system_mounts
from tui_agent.sandbox.devices import DevicePermissions
from tui_agent.sandbox.hosts import PrivateHosts
from tui_agent.sandbox.judge_program import MAX_NAMES, grants_row
from tui_agent.sandbox.judging import (
    JudgeError,
    JudgeProcess,
    Names,
    Started,
    Verdict,
    checking_answer,
    judge_places,
    judge_words,
    names_from,
    paths_from,
    verdict_from,
)
from tui_agent.sandbox.lacking import files_named_in, lacking
from tui_agent.sandbox.layer import Layer, make_layer, make_own_directory, name_for
from tui_agent.sandbox.layout import (
    CopyOrigin,
    Layout,
    Mount,
    MountKind,
    at_real_places,
    bubblewrap_command,
    keyring_filter,
    mounted,
    places_of_kind,
)
from tui_agent.sandbox.machine import TOOLCHAIN_VARIABLES, TOOLCHAINS, Machine, scan_machine
from tui_agent.sandbox.masks import Masks
from tui_agent.sandbox.network import (
    Gateway,
    Proxy,
    SessionNetwork,
    make_network,
    proxy_environment,
)
from tui_agent.sandbox.open_ports import OpenPorts, listening_ports
from tui_agent.sandbox.plan import (
    CLOSED,
    EMPTY,
    HOME,
    TEMPORARY,
    SandboxFolders,
    ViewPlan,
    unrestorable,
)
from tui_agent.sandbox.project_copy import MAX_BYTES
from tui_agent.sandbox.project_scan import (
    MAX_DEPTH,
    NEVER_KEPT,
    OUTPUT_DIRECTORIES,
    ProjectScan,
    walk_project,
)
from tui_agent.sandbox.settings import SandboxSettings
from tui_agent.sandbox.unreadable import unreadable_files
from tui_agent.sandbox.view import AllowHost, Grants, RuleOfReading, View, Writes

log = logging.getLogger(__name__)

_INFO_BYTES = 4_096
_PLACES_NAMED = 3
_INHERITED = 9  # the filter's descriptor in a command that inherits no descriptors

CERTIFICATES = Path("/run/tui-agent/certificates.pem")
"""Path at which commands in bubblewrap find the certificates that they trust.

The path is used if credentials are masked.
"""
_WITH_NETWORK = frozenset({"bubblewrap", "sandbox-exec"})

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - a directory of ours in it
MIN_MEMORY = 2 * 1024**3
"""Bytes that must be free in ``/dev/shm`` for layers to be kept there."""

SCAN_SECONDS = 3.0
"""Maximum number of seconds that a command waits for the search for secrets.

Files that have not been searched by then are hidden from the command.
"""

WHOLE_SCAN_SECONDS = 600.0
"""Maximum number of seconds for one search for secrets in the background."""

MAX_MOUNTS = 400
"""Maximum number of mounts of a command. `Sandbox.launch` refuses commands that need more."""

Recorded = Callable[[Sequence[Path]], AbstractAsyncContextManager[None]]
"""Takes absolute paths, and returns a context in which changes to these files are recorded."""


_HIDES_FAILURE = LazyPattern(r"[|;\n]")
"""Separators between the programs of a command line.

If a line contains one, exit code 0 doesn't mean that every program in the line succeeded.
"""
_OF_ROOT = ("CAP_DAC_OVERRIDE", "CAP_FOWNER")
_PLAIN_VIEW = View()
_UNJUDGED = "[The command's changes could not be checked, so they were discarded: {}.]"

_UNJUDGED_NOTICE = (
    "The changes of commands can't be checked, so they are discarded: {}. See: tui-agent doctor"
)


class SandboxError(Exception):
    """Raised if a command can't be started in the sandbox; the message says why."""


@dataclass
class Launch:
    """A command that `Sandbox.launch` has prepared, ready to run in the sandbox.

    Start ``arguments`` with ``environment``, and let the process inherit ``descriptors``.
    """

    environment: dict[str, str]
    view: View
    seen: ProjectScan
    layout: Layout
    watched: str = ""
    """Name of the judge's watch over the directories that the command changes directly.

    The name is "" if there are no such directories.
    """
    hidden: tuple[Path, ...] = ()
    """Files of the project that the command can't read, but that the user could let it read."""
    layer: Layer | None = None
    large: tuple[Path, ...] = ()
    """Paths in the project that are read-only because they were too large to copy."""
    command: tuple[str, ...] = ()
    """The argument list of the command itself, without the sandbox program."""
    arguments: tuple[str, ...] = ()
    """The argument list to start: the sandbox program with its options, then the command."""
    descriptors: tuple[int, ...] = ()
    gateway: Gateway = field(default_factory=Gateway)
    owned: tuple[int, ...] = ()
    """Descriptors of this program that are closed after the command has ended."""
    made: tuple[Path, ...] = ()
    """Files and directories created as mount points, which are removed later if still empty."""
    info: int = -1
    """Descriptor for bubblewrap's report on the first process in the sandbox; -1 for no report.

    Without it, `gone` can't wait for processes that the command left running.
    """
    done: bool = False
    """Whether the command has ended and its changes have been judged for the last time."""
    is_gone: bool = False
    """Whether `gone` has found that no process of the command is left."""
    notes: list[str] = field(default_factory=list)
    """Notes for the model about dangerous files that the command wrote without a layer."""

    async def gone(self) -> None:
        """Kill the processes that a command in bubblewrap left running, and wait until they end.

        Call it after the command's own process has ended. It kills the first process of the
        command's process namespace, and the kernel then ends all others in it. Sets ``is_gone``.
        Without a report from bubblewrap (``info``) it returns at once, and ``is_gone`` stays False.
        """
        with contextlib.suppress(OSError, ValueError, KeyError):
            told = json.loads(os.read(self.info, _INFO_BYTES))
            first = told["child-pid"]
            try:
                process = os.pidfd_open(first)
            except ProcessLookupError:
                self.is_gone = True
                return
            ended = asyncio.Event()
            loop = asyncio.get_running_loop()
            loop.add_reader(process, ended.set)
            try:
                _end_first(process, first, told.get("pid-namespace"))
                await ended.wait()
                self.is_gone = True
            finally:
                loop.remove_reader(process)
                os.close(process)


def _end_first(process: int, number: int, namespace: int | None) -> None:
    """Kill the first process of a process namespace.

    ``process`` is its pidfd, ``number`` its id, ``namespace`` the namespace's inode. Kills nothing
    if the process ``number`` is not in that namespace, because the id was then reused.
    """
    with contextlib.suppress(OSError):
        if os.stat(f"/proc/{number}/ns/pid").st_ino == namespace:  # noqa: PTH116 - a link of the kernel's
            signal.pidfd_send_signal(process, signal.SIGKILL)


@frozen
class CommandOutcome:
    """What `Sandbox.finish` returns about a command that has ended.

    ``wanted`` are the sandbox grants that the command lacked, None if it lacked none. ``note`` is a
    note for the model, "" for none. ``lost`` are the first of the files whose changes were not
    kept, as paths relative to the project.
    """

    wanted: Grants | None = None
    note: str = ""
    lost: tuple[str, ...] = ()


async def _known_paths(root: Path, paths: Sequence[str]) -> dict[str, list[str]]:
    """Return what the judge needs to know about some paths, as the fields of `KnownPaths`.

    All paths are relative to ``root``. ``shared`` are the files and links that git doesn't ignore, and
    ``tracked`` those that it tracks. ``directories`` are the directories around the paths, if they
    contain files that git doesn't ignore.
    """
    shared = frozenset(await shared_files(root))
    links = frozenset(name for name in paths if is_link(f"{root}/{name}"))
    if links:
        links &= frozenset(await asyncio.to_thread(lambda: list(walk_links(root))))
    tracked = await asyncio.to_thread(tracked_files, root)
    return {
        "shared": [name for name in paths if name in shared or name in links],
        "directories": sorted(folders_around(paths) & folders_around(shared)),
        "tracked": [name for name in paths if f"{root}/{name}" in tracked],
    }


def _recorded(
    root: Path, names: Iterable[str], grants: Grants, restorable: Collection[str]
) -> list[Path]:
    """Return the absolute paths of the source files that checkpoints record.

    Among the paths that the user let the command change, these are only the ``restorable`` files
    (relative paths). Of the others, there may be any number, of any size.
    """
    paths: list[Path] = []
    for name in names:
        path = root / name
        if name in restorable or not is_among(path, grants.write):
            paths.append(path)
    return paths


@frozen
class _UnreadableFiles:
    """A stored result of `unreadable_files`, with the scan and the rules from which it was made."""

    seen: ProjectScan
    reading: RuleOfReading
    files: Mapping[Path, str]


class Sandbox:
    """Prepares a session's commands to run in this machine's sandbox, and keeps their changes.

    ``private`` are directories of this program, which commands must not see. ``cache`` is the
    directory for the caches that sandboxed commands keep for each project; None if no caches are
    kept. Programs in ``project``, for example a bubblewrap, are not used. ``find`` replaces
    `find_sandbox`.
    """

    def __init__(
        self,
        settings: SandboxSettings,
        private: Iterable[Path] = (),
        cache: Path | None = None,
        *,
        home: Path | None = None,
        project: Path | None = None,
        find: Callable[[], SandboxState] | None = None,
    ) -> None:
        self.settings = settings
        self._home = home or Path.home()
        self._outside = project
        self.masks = Masks(settings.mask, os.environ, self._home)
        self._authority = Authority()
        self._copy: CopyOrigin | None = None
        self.proxy_reaches: Callable[[str], bool] = lambda _address: False
        self._private = tuple(path.resolve() for path in private)
        self._cache = cache
        self._find = find or partial(find_sandbox, project)
        self._told = False
        self._failures: dict[str, bool] = {}
        """The reasons why the judge failed, each with whether `failure_notice` has returned it."""
        self._scans: dict[Path, ProjectScan] = {}
        self._unreadable_by_root: dict[Path, _UnreadableFiles] = {}
        self._search = SecretSearch()
        self._walking = threading.Lock()
        self._ended = threading.Event()
        self._machine: tuple[Mapping[str, str], Machine] | None = None
        self._layer_parents: dict[Path, Path | None] = {}
        self._lock = threading.Lock()
        self._ready: dict[Path, asyncio.Task[None]] = {}
        self._unused: set[asyncio.Task[None]] = set()
        """Tasks that clean up prepared commands whose callers were cancelled."""
        self._network: SessionNetwork | None = None
        self._ports: OpenPorts | None = None
        self._network_lock = asyncio.Lock()
        self._judges: dict[tuple[Path, ...], JudgeProcess] = {}
        self._copies = CopyPool()
        self._bounded: tuple[ProjectScan, tuple[Path, ...]] | None = None
        self._devices = DevicePermissions()
        self._judging = asyncio.Lock()
        """Locked while changes are judged and kept.

        Otherwise two commands could each make a part of a repository at the same time, although
        neither is allowed to make one.
        """

    def for_copy(self, root: Path, project: Path, shared: Iterable[tuple[Path, Path]]) -> "Sandbox":
        """Return a sandbox with the same settings for ``root``, a copy of ``project``.

        Its caches are in the directory ``{root}.caches``. In bubblewrap, commands see the copy at
        the project's path. ``shared`` lists the paths outside the copy that the copy reads, each as
        a pair of the path that the copy uses and the real path.
        """
        if self._cache is None:
            cache = None
        else:
            cache = root.with_name(f"{root.name}.caches")
        other = Sandbox(
            self.settings, self._private, cache, home=self._home, project=root, find=self._find
        )
        other.__dict__["state"] = self.state
        other.proxy_reaches = self.proxy_reaches
        other.masks = self.masks
        other._told = self._told
        other._copy = CopyOrigin(project.resolve(), tuple(shared))
        return other

    # -- properties ----------------------------------------------------------------------------

    @cached_property
    def state(self) -> SandboxState:
        """The kind of sandbox that works on this machine, found on first use.

        The first access runs programs, which takes some milliseconds, so do it in a thread.
        """
        if self.settings.mode == "off":
            return SandboxState(None, reason="it is switched off (sandbox = off)")
        return self._find()

    @property
    def active(self) -> bool:
        """Whether there is a sandbox. Commands that the settings exclude still run outside it."""
        return self.state.kind is not None

    @property
    def searching(self) -> int:
        """Number of files that the running search for secrets hasn't read yet; 0 if none runs."""
        return self._search.waiting

    def is_used_for(self, command: str) -> bool:
        """Return True if there is a sandbox and the settings don't exclude this command line."""
        plain = " ".join(command.split())
        return self.active and not any(
            fnmatch.fnmatchcase(plain, pattern) for pattern in self.settings.exclude
        )

    def why_unsupported(self, view: View) -> str:
        """Return why Landlock can't enforce a view, as a clause; "" if it can, or isn't used."""
        if self.state.kind != "landlock":
            return ""
        if view.grants.repository:
            return "Landlock can't make a repository writable and keep its hooks read-only"
        if view.grants.hosts:
            return "Landlock can't limit the network to single hosts"
        return ""

    def refusal(self) -> str:
        """Return a refusal for the model if a sandbox is required but none works; otherwise ""."""
        if self.settings.mode != "required" or self.active:
            return ""
        return f"Commands may only run in a sandbox (sandbox = required), and {self.state.reason}. Tell the user."

    def shortcoming(self, project: Path) -> str:
        """Return a message for the user on what the sandbox can't do for a project, and why.

        The message is "" if there is no limitation, if the sandbox is off, or if commands are
        refused. Looks at files.
        """
        if self.settings.mode == "off" or self.refusal():
            return ""
        state = self.state
        if state.layered and self._layer_parent(project.resolve()) is None:
            state = replace(
                state, layered=False, reason=f"the file system of {project} supports no layers"
            )
        return state.shortcoming

    def notice(self, project: Path) -> str:
        """Return the message of `shortcoming` once, then "". Also "" if there is no shortcoming.

        Looks at files.
        """
        if self._told or not (text := self.shortcoming(project)):
            return ""
        self._told = True
        return f"{text} See: tui-agent doctor"

    def failure_notice(self) -> str:
        """Return a message for the user that says why changes of commands were discarded.

        Each reason is reported only once. Returns "" if the judge hasn't failed for a new reason.
        """
        reasons = [reason for reason, is_told in self._failures.items() if not is_told]
        self._failures |= dict.fromkeys(reasons, True)
        return "\n".join(_UNJUDGED_NOTICE.format(reason) for reason in reasons)

    def judge_failure(self, project: Path) -> str:
        """Start a project's judge process as a test, and return why that fails; "" if it works.

        Also "" without a sandbox. Blocks.
        """
        if not self.active:
            return ""
        root = project.resolve()
        self._scan(root, refresh=False)
        judge = JudgeProcess(partial(self._judge_command, root))
        try:
            judge.ask("ready")
        except JudgeError as error:
            return str(error)
        finally:
            judge.close()
        return ""

    def is_layered(self, view: View) -> bool:
        """Return True if a command with this view works on a copy-on-write layer or a project copy.

        The changes of such a command are judged before they reach the project.
        """
        return self.state.kind == "bubblewrap" and not view.grants.repository

    def shows(self, path: Path, project: Path) -> bool:
        """Return True if commands in ``project`` can see a path outside it. Looks at files."""
        kinds = {MountKind.READ, MountKind.WRITE, MountKind.LAYER, MountKind.LINK}
        return self._plan(project.resolve()).layout().kind_at(path) in kinds

    def hides(self, path: Path, project: Path) -> bool:
        """Return True if commands with the default view see this file of the project as empty.

        ``path`` is absolute. Scans the project for secrets, for at most `SCAN_SECONDS`.
        """
        self._scan(project)
        return path in self._plan(project.resolve()).hidden()

    def view_lines(self) -> list[str]:
        """Return lines for the user with the paths outside the project that commands can see."""
        machine = self._machine_of(os.environ)
        rows: dict[str, Sequence[Path | str]] = {
            "read-only": machine.system,
            "toolchains": machine.shown,
            "caches, changed on a layer": machine.written,
            "empty and private": (machine.home, *TEMPORARY, "/run"),
            "added by sandbox.read": self.settings.read,
            "added by sandbox.write": self.settings.write,
            "masked": self.masks.described(),
        }
        lines = []
        for name, paths in rows.items():
            if paths:
                line = f"{name}: {', '.join(map(str, paths))}"
                # Replace only a home directory's path that begins a path, not one in the middle of
                # a path.
                lines.append(line.replace(f" {self._home}/", " ~/"))
        return lines

    # -- running a command ---------------------------------------------------------------------

    def get_ready(self, project: Path, environment: Mapping[str, str]) -> None:
        """Start to prepare the sandbox in the background, before the first command.

        This finds the sandbox, creates the network, scans the machine and the project, and starts
        the judge process. Does nothing if called before for this project, or if the sandbox is off.
        Needs a running event loop.
        """
        if project not in self._ready and self.settings.mode != "off":
            self._ready[project] = asyncio.create_task(
                self._prepare(project.resolve(), dict(environment))
            )

    def _search_on(self, project: Path) -> None:
        """Continue the search for secrets in the background, unless a search is already running."""
        if (before := self._ready.get(project)) is None or before.done():
            searching = asyncio.to_thread(self._scan_to_the_end, project)
            self._ready[project] = asyncio.create_task(searching)

    async def _prepare(self, project: Path, environment: dict[str, str]) -> None:
        try:
            if await asyncio.to_thread(lambda: self.active):
                await self._own_network()
                await asyncio.to_thread(self._layer_parent, project)
                await asyncio.to_thread(self._scan_to_the_end, project)
                await asyncio.to_thread(self._plan, project, environment)
                await asyncio.to_thread(self._make_first_copy, project)
        except (OSError, SandboxError, JudgeError) as error:
            log.warning(
                "could not set up the sandbox: %s", error
            )  # the first command reports the error

    async def launch(  # noqa: PLR0913 - a command and its settings
        self,
        command: Sequence[str],
        cwd: Path,
        project: Path,
        view: View,
        environment: Mapping[str, str],
        *,
        live: bool = False,
        inherits: bool = True,
        allow_host: AllowHost | None = None,
        replaced: Mapping[Path, Path] = MappingProxyType({}),
        keeps_caches: bool = True,
    ) -> Launch:
        """Prepare a command to run in its view. Call `finish` after it has ended, however it ended.

        Args:
            command: the command's argument list.
            cwd: its working directory.
            project: the root of the project.
            view: what the command may read, change and reach.
            environment: the environment that it would have outside the sandbox; ``Launch`` has a
                changed one.
            live: the command sees later changes of the project's files, as a long-running one must;
                then only output directories are on a layer or copy, and source files are read-only.
                Ignored if the view may change nothing, or has the grant ``sources``. A command
                whose view may change the repository works on the project itself in any case.
            inherits: the caller passes ``Launch.descriptors`` on to the process. If not, processes
                that the command leaves running are not noticed.
            allow_host: asks the user about a host while the command runs. Without it, the command
                reaches only the hosts of the view.
            replaced: files of the project, each with the file that the command sees in its place,
                read-only; for bubblewrap only.
            keeps_caches: keep what the command adds to the user's caches, if its view may write
                outputs and no other command is using the caches.

        Raises:
            SandboxError: there is no sandbox, or it can't be set up for this view.
        """
        network = await self._own_network()
        preparing = asyncio.create_task(
            asyncio.to_thread(
                self._prepare_launch,
                cwd,
                project,
                view,
                dict(environment),
                live=live,
                keeps_caches=keeps_caches,
            )
        )
        try:
            launch = await asyncio.shield(preparing)
        except asyncio.CancelledError:
            # The thread continues in spite of the cancellation, so clean up its layer and its lock
            # on the caches when it ends.
            unused = asyncio.create_task(self._clear_up_unused(preparing))
            self._unused.add(unused)
            unused.add_done_callback(self._unused.discard)
            raise
        if len(launch.seen.unseen) > len(launch.seen.left_out) or not launch.seen.is_whole:
            self._search_on(project)
        mounts = list(launch.layout.mounts)
        for place in replaced.keys() - set(launch.hidden):
            seen_at = place
            if self._copy is not None:
                # Commands see the files of a copy at the paths of the project's files.
                seen_at = self._copy.project / place.relative_to(project)
            mounts.append(Mount(seen_at, MountKind.READ, replaced[place]))
        launch.layout = replace(launch.layout, mounts=tuple(mounts))
        launch.command = tuple(command)
        launch.gateway = Gateway(view.grants.hosts, allow_host)
        if network is not None:
            launch.environment |= proxy_environment(network.proxy.open(launch.gateway))
        try:
            self._assemble(launch, command, network, inherits=inherits)
        except BaseException:
            await asyncio.to_thread(self._clear_up, launch)
            raise
        return launch

    async def finish(
        self, launch: Launch, output: str, exit_code: int | None, recorded: Recorded | None = None
    ) -> CommandOutcome:
        """Keep the changes that an ended command was allowed to make, discard others, and clean up.

        ``output`` is what the command printed. ``exit_code`` is None if the command was stopped. If
        it is not 0, the output is searched for the grants that the command lacked. Source files are
        changed inside the context that ``recorded`` returns. If the judge fails, the changes that
        were not kept by then are discarded, and the note says so.
        """
        if self._network is not None:
            self._network.proxy.close(launch.gateway)
        try:
            await launch.gone()
            await launch.gateway.settled()
            async with self._judging:
                launch.done = True
                wanted, lost, notes = await self._apply_changes(launch, recorded)
        except JudgeError as error:
            wanted = Grants()
            lost = ()
            notes = [_UNJUDGED.format(error)]
            self._failures.setdefault(str(error), False)
        finally:
            self._devices.restore()
            await asyncio.to_thread(self._clear_up, launch)
        if unseen := _of_unseen(launch.seen):
            notes.append(unseen)
        refused = launch.gateway.refused
        notes += [f"[{reason}]" for reason in refused.values()]
        if masked := self.masks.note(" ".join(launch.command), output, failed=exit_code != 0):
            notes.append(masked)
        # If the command succeeded without a refused host, it doesn't have to run again with that
        # host.
        if exit_code != 0:
            wanted |= Grants(
                hosts=frozenset(refused) - launch.gateway.closed
            ) | await asyncio.to_thread(self._lacking, launch, output)
        elif _HIDES_FAILURE.search(launch.command[-1]):
            wanted |= Grants(hosts=launch.gateway.unanswered)
        return CommandOutcome(wanted.beyond(launch.view.grants) or None, "\n".join(notes), lost)

    async def publish_outputs(self, launch: Launch, leader: int) -> None:
        """Copy the build output of a running command to the project, so that other commands see it.

        ``leader`` is the id of the process that was started. All the command's processes are paused
        meanwhile; if they can't be paused, nothing is copied. Without a layer, dangerous files are
        renamed or removed instead. Errors of the judge are only logged.
        """
        async with self._judging:
            if launch.done:
                return
            with held_still(leader) as stands_still:
                try:
                    if await asyncio.to_thread(stands_still):
                        await self._tidy(launch, ended=False)
                        if launch.layer is not None and launch.view.writes_outputs:
                            await self._judge_changes(launch, launch.layer, ended=False)
                except JudgeError as error:
                    log.warning("a running job's changes could not be copied: %s", error)

    async def aclose(self) -> None:
        """Stop searches, end judge processes, remove project copies and close the network.

        After that, commands that still run can't reach the network.
        """
        self._ended.set()
        if waited := [*self._ready.values(), *self._unused]:
            await asyncio.wait(waited)
        for judge in self._judges.values():
            await asyncio.to_thread(judge.close)
        self._judges.clear()
        await asyncio.to_thread(self._copies.clear)
        if self._network is not None:
            network = self._network
            self._network = None
            if self._ports is not None:
                await self._ports.aclose()
                self._ports = None
            await network.proxy.aclose()
            network.close()

    # -- servers of commands -------------------------------------------------------------------

    @property
    def hides_ports(self) -> bool:
        """Whether commands have their own network. Its ports can't be reached from outside."""
        return self.state.kind == "bubblewrap"

    def listening(self, pid: int) -> frozenset[int]:
        """Return the ports on which programs listen in the network of a running command.

        ``pid`` is the id of a process of the command. Empty if commands have no network of their
        own.
        """
        network = self._network
        if network is None or network.listener is None:
            return frozenset()
        return listening_ports(pid) - {network.proxy.port}

    @property
    def opened_ports(self) -> Mapping[int, int]:
        """The ports that the user opened, each with the port on this machine that leads to it."""
        if self._ports is None:
            return {}
        return self._ports.opened

    async def open_port(self, port: int) -> int:
        """Make a port on which a command listens reachable, and return its port on this machine.

        Raises:
            SandboxError: commands have no network of their own.
            OSError: this machine has no free port.
        """
        network = await self._own_network()
        if network is None or network.listener is None:
            raise SandboxError("On this machine, commands have no network of their own.")
        if self._ports is None:
            self._ports = OpenPorts(network)
        return await self._ports.open(port)

    async def close_port(self, port: int) -> None:
        """Close a port that `open_port` has opened."""
        assert self._ports is not None  # noqa: S101 - as documented
        await self._ports.close(port)

    # -- the layout ----------------------------------------------------------------------------

    def _prepare_launch(
        self,
        cwd: Path,
        project: Path,
        view: View,
        environment: dict[str, str],
        *,
        live: bool,
        keeps_caches: bool,
    ) -> Launch:
        if self.state.kind is None:
            raise SandboxError(f"There is no sandbox: {self.state.reason}.")
        if lack := self.why_unsupported(view):
            raise SandboxError(f"{lack}.")
        root = project.resolve()
        has_layer = self.state.kind == "bubblewrap"
        stays_live = live and view.writes is not Writes.NOTHING and not view.grants.sources
        live = has_layer and (stays_live or view.grants.repository)
        in_place = live or not has_layer
        if view.writes is Writes.PROJECT and in_place and not view.grants.repository:
            # Changes in place can't be judged afterwards, so the user is asked before the command
            # runs.
            view = replace(view, writes=Writes.OUTPUTS)
        made = tuple(self._make_mount_points(root, view, needed=in_place))
        layer = None
        try:
            self._scan(root)
            plan = self._plan(root, environment, view)
            plan = replace(plan, cwd=cwd.resolve(), view=view)
            layer = self._layer(root, live=live)
            return self._launch_of(replace(plan, layer=layer), made, keeps_caches=keeps_caches)
        except BaseException:
            # Remove the unfinished copy, which may have taken up all the space that was left.
            if layer is not None:
                remove_tree(layer.place)
            _remove_empty(made)
            raise

    def _launch_of(self, plan: ViewPlan, made: tuple[Path, ...], *, keeps_caches: bool) -> Launch:
        """Return a `Launch` for a plan of mounts, still without the command.

        ``made`` are the paths that were created as mount points.
        """
        kept = keeps_caches and plan.view.writes_outputs
        owned, caches = self._caches(plan.root, plan.layer, kept=kept)
        plan = replace(plan, folders=replace(plan.folders, caches=caches))
        try:
            return self._watched_launch(plan, made, owned)
        except BaseException:
            _close(owned)
            raise

    def _watched_launch(
        self, plan: ViewPlan, made: tuple[Path, ...], owned: tuple[int, ...]
    ) -> Launch:
        """Return a `Launch` for a plan of mounts. ``owned`` contains the lock on the plan's caches.

        Starts the judge's watch of the directories that the command changes directly, and brings a
        copy of the project up to date.
        """
        root = plan.root
        view = plan.view
        layer = plan.layer
        watched, linked = self._watch(plan)
        plan = replace(plan, linked=linked)
        inside = self._environment(plan.environment, root)
        layout = plan.layout()
        large: tuple[Path, ...] = ()
        if layer is not None and layer.is_copy:
            large = self._refresh_copy(layer, plan, layout)
            shown = tuple(_large_mounts(large, view.grants))
            layout = replace(layout, mounts=(*layout.mounts, *shown))
        hidden = _hidden_in(layout, plan)
        if self._copy is not None:
            secrets = self._plan(self._copy.project, view=view).secret_mounts()
            layout = layout.showing(
                self._copy, root, secrets, at_its_place=self.state.kind == "bubblewrap"
            )
        return Launch(
            environment=inside,
            view=view,
            seen=plan.seen,
            layout=layout,
            watched=watched,
            hidden=hidden,
            layer=layer,
            large=large,
            owned=owned,
            made=made,
        )

    def _plan(
        self, root: Path, environ: Mapping[str, str] = os.environ, view: View = _PLAIN_VIEW
    ) -> ViewPlan:
        """Return the plan of mounts for a command in ``root``, with default view and no layer.

        Callers replace the fields that differ. Only the rules on reading are taken from ``view``.
        """
        seen = self._scan(root, refresh=False)
        shared: tuple[Path, ...] = ()
        if self._copy is not None:
            shared = tuple(real for _place, real in self._copy.shared)
        return ViewPlan(
            root=root,
            cwd=root,
            seen=seen,
            machine=self._machine_of(environ),
            settings=self.settings,
            folders=SandboxFolders(self._place, self._cache_of(root)),
            kind=self.state.kind or "bubblewrap",
            environment=environ,
            private=self._private,
            stand_ins=self._stand_ins(root),
            unreadable=self._unreadable(seen, view),
            shared=shared,
        )

    def _unreadable(self, seen: ProjectScan, view: View) -> Mapping[Path, str]:
        if view.reading is None:
            return {}
        known = self._unreadable_by_root.get(seen.root)
        if known is None or known.seen is not seen or known.reading != view.reading:
            files = unreadable_files(seen, view.reading)
            known = _UnreadableFiles(seen, view.reading, files)
            self._unreadable_by_root[seen.root] = known
        return known.files

    def _stand_ins(self, root: Path) -> dict[Path, Path]:
        """Write the masked copies of files with secrets, and the certificates that commands trust.

        Returns the path of each written file by the path at which commands see it. Without masked
        credentials, writes nothing and returns {}.
        """
        if not self.masks:
            return {}
        found = {}
        for place, text in self.masks.of_files(root).items():
            copy = self._place / f"masked-{name_for(place)}"
            _write(copy, text.encode("utf-8", "surrogateescape"))
            found[place] = copy
        if self.state.kind in _WITH_NETWORK:
            trusted = self._place / CERTIFICATES.name
            if not trusted.exists():
                _write(trusted, bundle(self._authority, os.environ))
            found[self._certificates] = trusted
        return found

    @property
    def _certificates(self) -> Path:
        """Path at which commands find the file with the certificates that they trust."""
        if self.state.kind == "bubblewrap":
            return CERTIFICATES
        return self._place / CERTIFICATES.name

    def _caches(
        self, root: Path, layer: Layer | None, *, kept: bool
    ) -> tuple[tuple[int, ...], Path | None]:
        """Return a lock, and the directory that it locks, for the layers over the user's caches.

        The lock is a tuple that contains its descriptor. With ``kept``, the directory is the
        project's own, if there is one and no other command holds its lock. Otherwise it is a
        directory in ``layer`` that is removed with the layer, and the tuple is empty. Without a
        layer, or if the layer is a copy, returns ``((), None)``.
        """
        if layer is None or layer.is_copy:
            return (), None
        parent = None
        if kept:
            parent = self._memory or self._cache_of(root)
        if parent is not None:
            name = name_for(root)
            lock = os.open(parent / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(lock)
            else:
                return (lock,), parent / name
        return (), layer.place / "caches"

    def _assemble(
        self,
        launch: Launch,
        command: Sequence[str],
        network: SessionNetwork | None,
        *,
        inherits: bool,
    ) -> None:
        layout = launch.layout
        if len(layout.mounts) > MAX_MOUNTS:
            raise SandboxError(
                "The sandbox can't be set up: too many files of the project need protection."
            )
        port = 0
        joining: tuple[str, ...] = ()
        if network is not None:
            port = network.proxy.port
            joining = network.joining()
        if self.state.kind != "bubblewrap":
            launch.arguments, owned = self.state.arguments_for(layout, command, port)
            launch.owned += owned
            return
        calls = keyring_filter()
        launch.owned += (calls,)
        is_alone = network is None
        start = partial(bubblewrap_command, self.state.bubblewrap, layout, command)
        if inherits:
            launch.info, report = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
            launch.owned += (launch.info, report)
            launch.descriptors = (report, calls)
            words = start(own_network=is_alone, info=report, calls=calls)
            launch.arguments = (*joining, *words)
        else:
            words = start(own_network=is_alone, calls=_INHERITED)
            opener = f'exec "$@" {_INHERITED}<"$0"'
            place = f"/proc/{os.getpid()}/fd/{calls}"
            launch.arguments = ("/bin/sh", "-c", opener, place, *joining, *words)

    def _make_mount_points(self, root: Path, view: View, *, needed: bool) -> Iterator[Path]:
        """Create missing paths that the command may write, because only existing paths are mounted.

        Creates and yields the files outside the project that the command may write and, if
        ``needed``, ignored output directories at the top of the project.
        """
        for path in view.grants.write:
            if (
                not os.path.lexists(path)
                and is_directory(path.parent)
                and not path.is_relative_to(root)
            ):
                with contextlib.suppress(OSError):
                    path.touch(exist_ok=False)
                    yield path
        if not needed or not view.writes_outputs or view.grants.sources or view.grants.repository:
            return
        rules = IgnoreRules.above(root).entering(root)
        for name in sorted(OUTPUT_DIRECTORIES - NEVER_KEPT):
            path = root / name
            if not os.path.lexists(path) and rules.ignored(str(path), directory=True):
                with contextlib.suppress(OSError):
                    path.mkdir()
                    yield path

    # -- a command's changes -------------------------------------------------------------------

    def _judge(self, root: Path) -> JudgeProcess:
        """Return the judge process of a project, which is created on first use."""
        seen = self._scan(root, refresh=False)
        key = (root, *seen.elsewhere)
        with self._lock:
            if key not in self._judges:
                self._judges[key] = JudgeProcess(partial(self._judge_command, root))
            return self._judges[key]

    def _judge_command(self, root: Path) -> Started:
        """Return the command line that runs a judge in the sandbox, and the descriptors it reads.

        The judge may change the project, its linked repositories and the layers. It sees the
        system's programs and its own code, read-only.
        """
        plan = self._plan(root)
        opened = [root, *plan.seen.elsewhere, *filter(None, [self._layers_at(root)])]
        mounts: dict[Path, Mount] = {}
        for mount in (*plan.layout().mounts, *mounted(judge_places(), MountKind.READ)):
            if not mount.kind.is_writable and not mount.place.is_relative_to(root):
                mounts[mount.place] = mount
        mounts |= {mount.place: mount for mount in mounted(opened, MountKind.WRITE)}
        layout = Layout(
            root, plan.folders.place / EMPTY, tuple(at_real_places(mounts.values(), root))
        )
        state = self.state
        if state.kind == "bubblewrap" and state.bubblewrap.root:
            # A judge that root runs may have to change files of other users, so it keeps root's
            # rights.
            form = replace(state.bubblewrap, users=False, capabilities=_OF_ROOT)
            of_root = replace(state, form=form)
            if not of_root.failure(layout):
                state = of_root
        return state.arguments_for(layout, judge_words(root))

    async def _judge_changes(
        self, launch: Launch, layer: Layer, *, ended: bool
    ) -> tuple[Verdict, frozenset[str]]:
        """Have the judge decide about the changes on a layer, and keep build outputs at once.

        Also returns the changed and deleted files that checkpoints can restore, as relative paths.
        If the judge needs to know what git and the checkpoints know about some paths, a second
        request tells it. If the command has ``ended``, outputs are moved instead of copied. Raises
        JudgeError if the judge fails.
        """
        root = launch.seen.root
        request: dict[str, Any] = {
            "place": str(layer.place),
            "is_copy": layer.is_copy,
            "outputs": _names_in(root, launch.seen.kept_outputs),
            "writes": launch.view.writes.value,
            "grants": grants_row(launch.view.grants),
            "mounts": [(str(mount.place), mount.kind.value) for mount in launch.layout.mounts],
            "ended": ended,
        }

        def ask(known: Mapping[str, list[str]] | None) -> dict[str, Any]:
            return self._judge(root).ask("judge", **request, rules=lines_above(root), known=known)

        verdict = verdict_from(await asyncio.to_thread(ask, None), root)
        if not verdict.needs:
            return verdict, frozenset()
        known = await _known_paths(root, verdict.needs)
        verdict = verdict_from(await asyncio.to_thread(ask, known), root)
        return verdict, frozenset(known["shared"])

    async def _apply_changes(
        self, launch: Launch, recorded: Recorded | None
    ) -> tuple[Grants, tuple[str, ...], list[str]]:
        """Have the judge decide about an ended command's changes, and keep the allowed changes.

        Returns the grants that the discarded changes needed, the files that the user could allow
        to change, and notes for the model. Raises JudgeError if the judge fails.
        """
        if (layer := launch.layer) is None:
            await self._tidy(launch, ended=True)
            return Grants(), (), launch.notes
        root = launch.seen.root
        verdict, restorable = await self._judge_changes(launch, layer, ended=True)
        notes = verdict.notes(launch.view)
        if verdict.keeps:
            paths = _recorded(root, verdict.sources, launch.view.grants, restorable)
            async with contextlib.nullcontext() if recorded is None else recorded(paths):
                row = await asyncio.to_thread(self._judge(root).ask, "keep", place=str(layer.place))
            with checking_answer():
                failed = paths_from(row["failed"])
            if failed:
                names = Names(failed[:MAX_NAMES], len(failed))
                notes += Verdict(lost={LossReason.FAILED: names}).notes(launch.view)
        await self._tidy(launch, ended=True)
        return verdict.wanted, verdict.asks_about, notes + launch.notes

    def _watch(self, plan: ViewPlan) -> tuple[str, frozenset[Path]]:
        """Have the judge record the state of the directories that a command will change directly.

        Returns the name of the watch, and the output directories with files that have hard links
        outside. Returns ``("", frozenset())`` if the command changes nothing directly.
        """
        seen = plan.seen
        root = plan.root
        if plan.layer is None and plan.view.writes_outputs:
            outputs = seen.outputs
        else:
            outputs = []
        if not outputs and not plan.changes_project_itself:
            return "", frozenset()
        name = secrets.token_hex(8)
        try:
            row = self._judge(root).ask(
                "watch",
                name=name,
                in_place=plan.changes_project_itself,
                grants=grants_row(plan.view.grants),
                repositories=list(map(str, (*seen.repositories, *seen.elsewhere))),
                outputs=list(map(str, outputs)),
                besides=list(map(str, seen.outputs)),
            )
            with checking_answer():
                linked = set(map(str, row["linked"]))
        except JudgeError as error:
            raise SandboxError(f"The process that checks changes failed: {error}.") from error
        return name, frozenset(path for path in outputs if str(path) in linked)

    async def _tidy(self, launch: Launch, *, ended: bool) -> None:
        """Have the judge rename or remove dangerous files that a command wrote without a layer.

        Adds notes to ``launch.notes``. Does nothing if the command has no watch.
        """
        if not launch.watched:
            return
        root = launch.seen.root
        if launch.view.grants.repository:
            tracked = await asyncio.to_thread(tracked_files, root)
        else:
            tracked = frozenset[str]()
        ask = partial(
            self._judge(root).ask, "tidy", name=launch.watched, tracked=sorted(tracked), ended=ended
        )
        row = await asyncio.to_thread(ask)
        texts = {
            "aside": "[Renamed or removed: {}. Other programs would run these files or read them as settings, "
            "or the files lead outside the project.]",
            "kept": "[These new files are run or read as settings by other programs: {}. Tell the user to check them.]",
        }
        for kind, text in texts.items():
            with checking_answer():
                found = names_from(row[kind])
            note = text.format(found.listed())
            if found.names and note not in launch.notes:
                launch.notes.append(note)

    def _lacking(self, launch: Launch, output: str) -> Grants:
        cwd = launch.layout.cwd
        root = launch.seen.root
        if self._copy is not None:
            # The command saw the copy at the project's path, so replace that path by the copy's
            # own.
            output = output.replace(str(self._copy.project), str(root))
            cwd = Path(str(cwd).replace(str(self._copy.project), str(root), 1))
        shows = partial(self.shows, project=root)
        wanted = lacking(
            output, cwd, launch.view, seen=launch.seen, shows=shows, large=launch.large
        )
        return wanted or Grants(secrets=files_named_in(output, launch.hidden, root))

    async def _clear_up_unused(self, preparing: "asyncio.Task[Launch]") -> None:
        """Wait until an unneeded launch has been prepared, and clean it up."""
        await asyncio.wait([preparing])
        if not preparing.cancelled() and preparing.exception() is None:
            await asyncio.to_thread(self._clear_up, preparing.result())

    def _clear_up(self, launch: Launch) -> None:
        if launch.layer is not None and launch.is_gone:
            self._let_go(launch.layer)
        elif launch.layer is not None:
            remove_tree(launch.layer.place)
        _close(launch.owned)
        launch.owned = ()
        _remove_empty(launch.made)

    # -- caches --------------------------------------------------------------------------------

    def _scan(self, project: Path, *, refresh: bool = True) -> ProjectScan:
        """Return the scan of a project. With ``refresh``, scan it again if files have changed.

        Takes at most `SCAN_SECONDS`. Files that weren't searched for secrets by then are ``unseen``
        in the scan.
        """
        until = time.monotonic() + SCAN_SECONDS
        return self._scan_while(
            project.resolve(), lambda: time.monotonic() < until, refresh=refresh
        )

    def _scan_to_the_end(self, project: Path) -> None:
        """Scan the project and search all its files for secrets, for at most `WHOLE_SCAN_SECONDS`.

        Blocks the thread. Commands that start meanwhile use the result so far.
        """
        until = time.monotonic() + WHOLE_SCAN_SECONDS
        self._scan_while(
            project.resolve(),
            lambda: time.monotonic() < until and not self._ended.is_set(),
            refresh=False,
        )

    def _scan_while(self, root: Path, may_continue: MayContinue, *, refresh: bool) -> ProjectScan:
        # If another thread's scan takes too long, this thread scans the project, too.
        is_mine = self._walking.acquire(timeout=SCAN_SECONDS)
        try:
            known = self._scans.get(root)
            if known is None or not known.is_whole or (refresh and not known.is_current()):
                known = walk_project(root, may_continue)
                # Mark all files as unsearched, for threads that use the scan before the search.
                known.search(self._search, lambda: False)
                self._scans[root] = known
                fresh = True
            else:
                fresh = False
        finally:
            if is_mine:
                self._walking.release()
        if fresh or known.unseen:
            known.search(self._search, may_continue)
        return known

    def _machine_of(self, environ: Mapping[str, str]) -> Machine:
        telling = {name: environ[name] for name in TOOLCHAIN_VARIABLES if name in environ}
        if self._machine is None or self._machine[0] != telling:
            self._machine = (
                telling,
                scan_machine(telling, self._home.resolve(), file_holds_secret),
            )
        return self._machine[1]

    def _cache_of(self, root: Path) -> Path | None:
        """Return the directory of one project's caches, which is created if it is missing.

        None if the sandbox has no directory for caches, or if the race that the project copy
        belonged to has ended.
        """
        try:
            cache = self._make_cache()
            if cache is None:
                return None
            place = cache / name_for(root)
            for directory in (place, place / "cache", place / "plan"):
                directory.mkdir(exist_ok=True, mode=0o700)
        except FileNotFoundError:
            return None
        return place

    def _make_cache(self) -> Path | None:
        """Create and return the directory of all caches; None if the sandbox has none.

        Raises FileNotFoundError if this is the sandbox of a race's copy, and the race has ended.
        """
        if self._cache is not None:
            # A copy's parent directories are removed with its race, and must not be created again.
            self._cache.mkdir(parents=self._copy is None, exist_ok=True, mode=0o700)
        return self._cache

    def _layer_parent(self, root: Path) -> Path | None:
        """Return the directory for layers over a project; None if overlays don't work for it."""
        if not self.state.layered:
            return None
        with self._lock:
            if root not in self._layer_parents:
                self._layer_parents[root] = self._find_layer_parent(root)
            return self._layer_parents[root]

    def _find_layer_parent(self, root: Path) -> Path | None:
        # Memory is tried first, because the kernel flushes a disk when a layer on it is unmounted.
        for place in (self._memory, (self._cache or self._place) / "layers"):
            if place is None or is_inside(root, place):
                continue
            if self._layers_work(root, place):
                return place
        return None

    def _layers_at(self, root: Path) -> Path | None:
        """Return the directory for layers or, if overlays don't work, for copies of the project.

        None if all usable directories are in the project, or the sandbox isn't bubblewrap.
        """
        if self.state.kind != "bubblewrap":
            return None
        if parent := self._layer_parent(root):
            return parent
        usable = (place for place in (self._disk, self._place) if not place.is_relative_to(root))
        return next(usable, None)

    def _layer(self, root: Path, *, live: bool) -> Layer | None:
        """Return a new layer or a project copy for a command; None if the sandbox isn't bubblewrap.

        The copy may be an unused one. With ``live``, the layer or copy has only output directories.
        Raises SandboxError if there is no directory or no space for it.
        """
        if self.state.kind != "bubblewrap":
            return None
        parent = self._layers_at(root)
        if parent is None:
            raise SandboxError("No directory outside the project can hold a copy of the project.")
        if free := self._copies.take(root, live=live):
            return free
        is_copy = parent != self._layer_parent(root)
        try:
            return make_layer(root, parent, is_copy=is_copy, live=live)
        except OSError as error:
            text = f"There is no space for the command's changes ({error.strerror})."
            raise SandboxError(text) from error

    def _let_go(self, layer: Layer) -> None:
        """Remove a layer, or return a project copy to the pool."""
        if layer.is_copy:
            self._copies.put_back(layer)
        else:
            remove_tree(layer.place)

    def _make_first_copy(self, root: Path) -> None:
        """Start the judge process and, if commands need project copies, make the first copy."""
        self._judge(root).ask("ready")
        parent = self._layers_at(root)
        if parent is None or parent == self._layer_parent(root):
            return
        with self._copies.making_first():
            layer = make_layer(root, parent, is_copy=True)
            plan = replace(self._plan(root), layer=layer)
            try:
                self._refresh_copy(layer, plan, plan.layout())
            except BaseException:
                remove_tree(layer.place)
                raise
            self._let_go(layer)

    def _refresh_copy(self, layer: Layer, plan: ViewPlan, layout: Layout) -> tuple[Path, ...]:
        """Have the judge process bring a copy up to date with the project.

        Returns the absolute paths that are too large to copy. Raises SandboxError if the judge
        fails.
        """
        root = plan.root
        bounded: dict[str, Path] = {}
        for path in self._may_be_large(plan):
            if not _is_granted_file(path, plan.view.grants):
                bounded[path.relative_to(root).as_posix()] = path
        inside = [mount for mount in layout.mounts if root in mount.place.parents]
        left_out = places_of_kind(inside, *MountKind)
        parts = None
        if layer.live:
            copied = places_of_kind(inside, MountKind.PRIVATE)
            left_out -= copied
            parts = _names_in(root, copied)
        ask = self._judge(root).ask
        try:
            row = ask(
                "refresh",
                place=str(layer.place),
                parts=parts,
                left_out=_names_in(root, left_out),
                bounded=list(bounded),
            )
            with checking_answer():
                return tuple(bounded[name] for name in paths_from(row["large"]))
        except JudgeError as error:
            # If the sandbox itself no longer works, that is the reason to report.
            why = self.state.failure(layout) or error
            raise SandboxError(f"The project could not be copied: {why}.") from error

    def _may_be_large(self, plan: ViewPlan) -> tuple[Path, ...]:
        """Return the absolute paths that are only copied if they are small.

        These are the output directories and, if the whole project is copied, ignored data and large
        files.
        """
        outputs = tuple(plan.seen.kept_outputs)
        if not plan.whole:
            return outputs
        if self._bounded is None or self._bounded[0] is not plan.seen:
            self._bounded = (plan.seen, tuple(unrestorable(plan.seen)))
        return outputs + self._bounded[1]

    def _layers_work(self, root: Path, parent: Path) -> bool:
        try:
            layer = make_layer(root, parent)
        except OSError:
            return False
        mounts = (*system_mounts(), Mount(root, MountKind.LAYER, layer.upper, layer.work))
        try:
            return not self.state.failure(Layout(root, Path(os.devnull), mounts))
        finally:
            remove_tree(layer.place)

    @cached_property
    def _memory(self) -> Path | None:
        """The directory of this session in ``/dev/shm``, which is kept in memory.

        None if less than `MIN_MEMORY` is free there, or the directory can't be created.
        """
        try:
            room = os.statvfs(SHARED_MEMORY)
            if room.f_bavail * room.f_frsize < MIN_MEMORY:
                return None
            return make_own_directory(self, SHARED_MEMORY)
        except OSError:
            return None

    @cached_property
    def _disk(self) -> Path:
        """Directory on a disk for project copies, which can share file blocks with the project."""
        try:
            return make_own_directory(self, self._make_cache() or self._place)
        except OSError:
            return self._place

    @cached_property
    def _place(self) -> Path:
        try:
            place = make_own_directory(self, Path(tempfile.gettempdir()))
        except OSError as error:
            log.warning("the sandbox can't use the directory for temporary files: %s", error)
            place = make_own_directory(self, self._cache or Path(tempfile.mkdtemp()))
        room = SandboxFolders(place)
        for directory in (*map(room.temporary, TEMPORARY), place / HOME):
            directory.mkdir()
        (place / EMPTY).touch()
        if sys.platform == "linux":
            os.mknod(place / CLOSED, stat.S_IFSOCK | 0o400)
        return place

    def _environment(self, environ: Mapping[str, str], root: Path) -> dict[str, str]:
        """Return the environment of commands in the sandbox, made from ``environ``.

        Variables that name sockets outside are removed, masked credentials are replaced by
        placeholders, and variables for temporary and cache directories name directories that
        commands can write to.
        """
        found = without_left_out("sandbox", environ)
        found["GIT_OPTIONAL_LOCKS"] = "0"
        found |= self.masks.of_variables()
        if self.masks and self.state.kind in _WITH_NETWORK:
            found |= certificate_variables(self._certificates)
        if self.state.kind == "bubblewrap":
            found["TMPDIR"] = "/tmp"  # noqa: S108 - the sandbox's own
            cache = self._machine_of(environ).cache
        else:
            found["TMPDIR"] = str(self._place / "tmp")
            private = self._cache_of(root)
            if private is not None:
                cache = private / "cache"
            else:
                cache = self._place / "tmp" / "cache"
            found["XDG_CACHE_HOME"] = str(cache)
            # Commands get another home directory, so tell them where the user's toolchains are.
            home = self._machine_of(environ).home
            for toolchain in TOOLCHAINS:
                place = home / toolchain.home
                if toolchain.variable and is_directory(place):
                    found[toolchain.variable] = str(place)
            if is_file(home / ".gitconfig"):
                found["GIT_CONFIG_GLOBAL"] = str(home / ".gitconfig")
            found["HOME"] = str(self._place / HOME)
        # The project's programs must not leave compiled code beside its sources, because other
        # programs could run that code.
        found.setdefault("PYTHONPYCACHEPREFIX", str(cache / "pycache"))
        return found

    async def _own_network(self) -> SessionNetwork | None:
        """Return the network of the session's commands, which is created on first use.

        None if the network can't be created, or if the sandbox is Landlock, in which commands have
        no network.
        """
        if self.state.kind not in _WITH_NETWORK:
            return None
        loop = asyncio.get_running_loop()
        if self._network is not None and self._network.loop is not loop:
            self._network.close()
            self._ports = None
            self._network, self._network_lock = None, asyncio.Lock()
        async with self._network_lock:
            if self._network is None:
                private = PrivateHosts(self.settings.hosts)
                proxy = Proxy(
                    private=private,
                    reaches=self.proxy_reaches,
                    masks=self.masks,
                    authority=self._authority,
                )
                self._network = await make_network(self.state, proxy, self._outside)
        return self._network if self._network.proxy.port else None


def _is_granted_file(path: Path, grants: Grants) -> bool:
    """Return True if a large file is copied because the user let the command change it.

    In a copy the command can remove it, too. A mount point can't be removed.
    """
    if not is_among(path, grants.write) or not is_file(path):
        return False
    with contextlib.suppress(OSError):
        return path.stat().st_size <= MAX_BYTES
    return False


def _large_mounts(large: Iterable[Path], grants: Grants) -> Iterator[Mount]:
    """Yield the mounts of paths that were too large to copy; granted ones are changed directly."""
    for path in large:
        yield Mount(path, MountKind.WRITE if is_among(path, grants.write) else MountKind.READ)
        inside = [place for place in grants.write if path in place.parents and is_there(place)]
        yield from mounted(inside, MountKind.WRITE)


def _write(path: Path, data: bytes) -> None:
    """Write a file unless it has this content already, so that commands can go on reading it."""
    if not path.exists() or path.read_bytes() != data:
        path.write_bytes(data)


def _close(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            os.close(descriptor)


def _remove_empty(made: Iterable[Path]) -> None:
    """Remove the files and directories that were created as mount points and are still empty."""
    for path in made:
        with contextlib.suppress(OSError):
            if path.is_dir():
                path.rmdir()
            elif path.stat().st_size == 0:
                path.unlink()


def _names_in(root: Path, paths: Iterable[Path]) -> list[str]:
    """Return absolute paths as paths relative to the project, in the same order, for the judge."""
    return [path.relative_to(root).as_posix() for path in paths]


def _hidden_in(layout: Layout, plan: ViewPlan) -> tuple[Path, ...]:
    """Return the project's hidden files that the user may allow, because no rule denies them."""
    found = []
    for mount in layout.mounts:
        is_hidden = mount.kind is MountKind.HIDDEN_FILE and mount.place.is_relative_to(plan.root)
        if is_hidden and plan.unreadable.get(mount.place) != "deny":
            found.append(mount.place)
    return tuple(found)


def _of_unseen(seen: ProjectScan) -> str:
    """Return a note for the model on paths that are hidden because they weren't searched yet.

    The note is "" if ``unseen`` is empty.
    """
    if not seen.unseen:
        return ""
    if seen.is_whole and len(seen.unseen) == len(seen.left_out):
        return f"[Hidden from this command: directories nested more than {MAX_DEPTH} deep.]"
    places = sorted({os.path.relpath(os.path.dirname(name), seen.root) for name in seen.unseen})  # noqa: PTH120 - of many files
    named = ", ".join(places[:_PLACES_NAMED])
    more = ""
    if len(places) > _PLACES_NAMED:
        left = len(places) - _PLACES_NAMED
        more = f" and {left} more {'directory' if left == 1 else 'directories'}"
    if len(seen.unseen) == 1:
        count = "a file or directory"
    else:
        count = f"{len(seen.unseen):,} files and directories"
    return (
        f"[Hidden from this command until they are searched for secrets: {count} in {named}{more}. "
        "The search continues; run the command again to see them.]"
    )
