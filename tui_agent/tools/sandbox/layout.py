"""What a sandboxed command may touch, and how bubblewrap and sandbox-exec are told. Pure.

Everything is read-only but the project, a private /tmp and what the user adds. Secrets of the home directory are
hidden. Inside the project stays read-only what other programs run of their own accord: git's hooks and configuration,
and this program's. A command that runs unasked finds the whole repository read-only and the project's secrets hidden.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

SECRETS = (
    ".ssh", ".aws", ".azure", ".gnupg", ".kube", ".docker", ".oci", ".password-store", ".terraform.d", ".vault-token",
    ".netrc", ".git-credentials", ".npmrc", ".pypirc", ".pgpass", ".my.cnf", ".boto", ".s3cfg", ".Xauthority",
    ".config/gcloud", ".config/gh", ".config/hub", ".config/glab-cli", ".config/git/credentials", ".config/op",
    ".config/rclone", ".config/sops", ".config/age", ".config/google-chrome",
    ".config/chromium", ".config/BraveSoftware",
    ".config/containers/auth.json", ".config/pip/pip.conf", ".config/github-copilot", ".cargo/credentials",
    ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml", ".gradle/gradle.properties", ".mozilla",
    ".thunderbird", ".local/share/keyrings", ".claude", ".claude.json", ".codex", ".gemini",
    "Library/Keychains", "Library/Cookies", "Library/Application Support/Google/Chrome",
    "Library/Application Support/Firefox", ".bash_history", ".zsh_history", ".python_history",
)  # fmt: skip
"""Files and directories of the home directory that no build needs."""

SOCKETS = (
    "/run/user", "/run/docker.sock", "/run/podman", "/run/containerd", "/run/dbus", "/var/run/docker.sock",
    "/run/snapd.socket", "/run/libvirt",
)  # fmt: skip
"""Places of sockets through which other programs can be made to do something outside."""

RUNTIME = Path("/run")
RUNTIME_KEPT = frozenset(
    {"current-system", "booted-system", "opengl-driver", "opengl-driver-32", "wrappers", "host", "lock"}
)
"""What programs need below ``/run``. The rest is sockets of databases and name services: a network by another name."""

GUARDED = (".git/hooks", ".git/config", ".tui-agent", ".mcp.json")
"""Paths in the project that programs outside of the sandbox obey."""

KEPT_FROM_BUILDS = (
    ".git", ".hg", ".svn", ".jj", ".husky", ".githooks", ".vscode", ".idea", ".claude", ".agents",
)  # fmt: skip
"""What no build writes to in the project, and what others there run or obey: not to be changed without being asked."""

KERNEL = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus")
"""Where root, without any capability, changes settings of the kernel."""

Access = Literal["write", "read", "hide"]


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths are absolute, without links, and exist.

    ``temporary`` stands for ``/tmp``, ``empty`` is a file that stands for hidden ones.
    """

    cwd: Path
    temporary: Path
    empty: Path
    writable: tuple[Path, ...]
    read_only: tuple[Path, ...] = ()
    hidden_directories: tuple[Path, ...] = ()
    hidden_files: tuple[Path, ...] = ()
    absent: tuple[Path, ...] = ()
    """Places where nothing is and nothing may come to be; the exception to what is said above."""
    network: bool = False

    def steps(self) -> list[tuple[Path, Access]]:
        """Return who may do what with which path: what lies deeper comes later and counts."""
        order: list[tuple[Path, Access]] = [
            *((path, "write") for path in self.writable),
            *((path, "read") for path in self.read_only),
            *((path, "hide") for path in (*self.hidden_directories, *self.hidden_files)),
        ]
        return sorted(order, key=lambda step: len(step[0].parts))


def bubblewrap_command(program: str, layout: Layout, command: Sequence[str]) -> tuple[str, ...]:
    """Return the command line that runs a command in bubblewrap."""
    files = set(layout.hidden_files)
    mounts: list[str] = []
    for path, access in layout.steps():
        match access:
            case "write":
                mounts += ["--bind", str(path), str(path)]
            case "read":
                mounts += ["--ro-bind", str(path), str(path)]
            case "hide" if path in files:
                mounts += ["--ro-bind", str(layout.empty), str(path)]
            case _:
                mounts += ["--tmpfs", str(path)]
    for path in layout.absent:
        mounts += ["--tmpfs", str(path), "--remount-ro", str(path)]
    return (
        program,
        # Processes of its own only: others' environments hold keys.
        "--unshare-user-try", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
        *(() if layout.network else ("--unshare-net",)),
        "--die-with-parent", "--cap-drop", "ALL",
        "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", str(layout.temporary), "/tmp",  # noqa: S108 - the sandbox's own
        *(word for path in KERNEL for word in ("--ro-bind-try", path, path)),
        *mounts,
        "--chdir", str(layout.cwd), "--", *command,
    )  # fmt: skip


def seatbelt_command(program: str, layout: Layout, command: Sequence[str]) -> tuple[str, ...]:
    """Return the command line that runs a command in sandbox-exec."""
    return program, "-p", seatbelt_profile(layout), *command


def seatbelt_profile(layout: Layout) -> str:
    """Return the profile for sandbox-exec; of its rules the last that fits counts."""
    lines = [
        "(version 1)",
        "(allow default)",
        "(deny file-write*)",
        _rule("allow", "file-write*", [Path("/dev"), Path("/private/tmp"), layout.temporary]),
    ]
    for path, access in layout.steps():
        match access:
            case "write":
                lines += [_rule("allow", "file-read*", [path]), _rule("allow", "file-write*", [path])]
            case "read":
                lines.append(_rule("deny", "file-write*", [path]))
            case _:
                lines += [_rule("deny", "file-read*", [path]), _rule("deny", "file-write*", [path])]
    lines += [_rule("deny", "file-write*", [path]) for path in layout.absent]
    if not layout.network:
        lines.append("(deny network*)")
    return "\n".join(lines)


def _rule(action: str, operation: str, paths: Iterable[Path]) -> str:
    quoted = (str(path).replace("\\", "\\\\").replace('"', '\\"') for path in paths)
    subpaths = " ".join(f'(subpath "{path}")' for path in quoted)
    return f"({action} {operation} {subpaths})"
