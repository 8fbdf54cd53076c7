"""The sandbox commands run in: found and tried once, laid out for each command."""

import contextlib
import fnmatch
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal

from tui_agent.tools.sandbox.layout import (
    GUARDED,
    KEPT_FROM_BUILDS,
    RUNTIME,
    RUNTIME_KEPT,
    SECRETS,
    SOCKETS,
    Layout,
    bubblewrap_command,
    seatbelt_command,
)
from tui_agent.tools.settings import SandboxSettings
from tui_agent.tools.shell.reach import secrets_below

TRIAL_SECONDS = 10
MOST_FILES = 200_000
"""Files of a project that are looked at for secrets; with more nothing runs unasked for being in the sandbox."""

UNPROTECTED = "A command that is allowed can read and change all your files and use the network."

_CACHES = {
    "GOCACHE": "go-build",
    "npm_config_cache": "npm",
    "PIP_CACHE_DIR": "pip",
    "UV_CACHE_DIR": "uv",
    "YARN_CACHE_FOLDER": "yarn",
}
"""Programs that don't work without a cache they can write to; the user's own stays as it is."""

_NO_NETWORK = (
    "name resolution", "Could not resolve host", "Network is unreachable", "Name or service not known", "ENOTFOUND",
    "EAI_AGAIN", "ENETUNREACH", "nodename nor servname", "Connection refused", "ECONNREFUSED", "Failed to connect",
    "dial tcp", "No address associated with hostname",
)  # fmt: skip
_MISSES_SETTINGS = re.compile(
    r"\benv|not set|KeyError|\bmissing\b|secret|credential|certificate|PEM\b|\.key\b|api.?key", re.IGNORECASE
)
"""How programs complain whose settings or keys are not there."""
_READ_ONLY = ("Read-only file system", "EROFS", "could not write config file", "Device or resource busy")


Kind = Literal["bubblewrap", "sandbox-exec"]


@dataclass(frozen=True, slots=True)
class SandboxState:
    """Which sandbox works here; ``reason`` says why none does."""

    kind: Kind | None
    program: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Held:
    """A command is held to building and testing: no secrets of the project but those ``named``, no writing to git."""

    named: frozenset[Path] = frozenset()


@lru_cache(maxsize=1)
def find_sandbox() -> SandboxState:
    """Look for the system's sandbox and try it; takes some milliseconds once."""
    kind: Kind = "sandbox-exec" if sys.platform == "darwin" else "bubblewrap"
    program = shutil.which("sandbox-exec" if kind == "sandbox-exec" else "bwrap")
    layout = Layout(Path("/"), Path(tempfile.gettempdir()), Path("/"), ())
    build = seatbelt_command if kind == "sandbox-exec" else bubblewrap_command
    command = build(program or "", layout, ["true"])
    if program is None:
        return SandboxState(None, reason=f"{kind} is not installed")
    try:
        done = subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, timeout=TRIAL_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return SandboxState(None, reason=f"{kind} does not work here ({error})")
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().split("\n")[0] or f"exit code {done.returncode}"
        return SandboxState(None, reason=f"{kind} does not work here ({said})")
    return SandboxState(kind, program)


class Sandbox:
    """The sandbox of one session. ``private`` are directories of this program that commands have no business in."""

    def __init__(
        self,
        settings: SandboxSettings,
        private: Iterable[Path] = (),
        cache: Path | None = None,
        *,
        home: Path | None = None,
        find: Callable[[], SandboxState] = find_sandbox,
    ) -> None:
        self.settings = settings
        self._private = tuple(private)
        self._cache = cache
        self._home = home or Path.home()
        self._find = find
        self._told = False
        self._kept_clear: set[Path] = set()
        weakref.finalize(self, _remove_empty, self._kept_clear)

    @cached_property
    def state(self) -> SandboxState:
        """Which sandbox is used. The first look takes some milliseconds: not on the event loop's thread."""
        if self.settings.mode == "off":
            return SandboxState(None, reason="it is switched off (sandbox = off)")
        return self._find()

    @property
    def active(self) -> bool:
        """Whether commands run in a sandbox, those excluded aside."""
        return self.state.kind is not None

    def covers(self, command: str) -> bool:
        """Whether a command would run inside."""
        plain = " ".join(command.split())
        return self.active and not any(fnmatch.fnmatchcase(plain, pattern) for pattern in self.settings.exclude)

    def refusal(self) -> str:
        """Return why no command may run: it is required and there is none; "" when one may."""
        if self.settings.mode != "required" or self.active:
            return ""
        return f"Commands may only run in a sandbox (sandbox = required), and {self.state.reason}. Tell the user."

    def notice(self) -> str:
        """Return once what is not protected where there is no sandbox, then nothing."""
        if self._told or self.settings.mode != "auto" or self.active:
            return ""
        self._told = True
        return f"Commands run without a sandbox: {self.state.reason}. {UNPROTECTED}"

    def secrets(self, project: Path) -> list[Path] | None:
        """Return the project's files that usually hold secrets, less those the settings open up. Looks at files.

        None when there are too many files to tell.
        """
        root = project.resolve()
        found = secrets_below([root], kind="all", most=MOST_FILES)
        opened = [text for text in self.settings.readable if not text.startswith(("/", "~", "$"))]
        return found and [
            path
            for path in found
            if not any(fnmatch.fnmatchcase(path.relative_to(root).as_posix(), pattern) for pattern in opened)
        ]

    def wrap(
        self, command: Sequence[str], cwd: Path, project: Path, *, network: bool = False, held: Held | None = None
    ) -> tuple[str, ...]:
        """Return the command line that runs a command inside. Looks at files."""
        self.tidy(project)
        layout = self._layout(cwd, project, network=network)
        if held is not None:
            layout = self._narrowed(layout, project.resolve(), held)
        build = seatbelt_command if self.state.kind == "sandbox-exec" else bubblewrap_command
        return build(self.state.program, layout, command)

    @staticmethod
    def tidy(project: Path) -> str:
        """Take away what a command left for git to obey outside, and say so; "" when there is nothing.

        ``commondir`` in a repository of its own makes git read another configuration, which may name programs. It
        is not there before, so it can't be made read-only.
        """
        planted = project / ".git" / "commondir"
        if planted.parent.is_symlink() or not (planted.is_symlink() or planted.is_file()):
            return ""
        planted.unlink(missing_ok=True)
        return "[.git/commondir was removed: it would have given the repository another configuration.]"

    def environment(self, environ: Mapping[str, str], project: Path) -> dict[str, str]:
        """Return the environment inside: caches that can be written to."""
        extra = {"TMPDIR": "/tmp" if self.state.kind == "bubblewrap" else str(self._place / "tmp")}  # noqa: S108 - the sandbox's own
        if (cache := self._cache_of(project)) is not None:
            extra |= {name: str(cache / directory) for name, directory in _CACHES.items()}
        return {**environ, **extra}

    def advice(self, output: str, project: Path, *, network: bool, held: Held | None = None) -> str:
        """Return a line for the model where a failed command seems to have met the walls."""
        if not network and any(sign in output for sign in _NO_NETWORK):
            return "[The sandbox has no network, not even to servers here. If it needs one, set network.]"
        if held is not None and ".git" in output and any(sign in output for sign in _READ_ONLY):
            return "[What builds and tests unasked can't change .git: call git by itself.]"
        if any(sign in output for sign in _READ_ONLY):
            return (
                "[In the sandbox only the project and /tmp can be changed, and not .git/config or .git/hooks. "
                "Ask the user to run what needs more with !.]"
            )
        if held is not None and _MISSES_SETTINGS.search(output):
            return self._hidden_advice(project, held)
        return ""

    def _hidden_advice(self, project: Path, held: Held) -> str:
        root = project.resolve()
        names = [path.relative_to(root).as_posix() for path in self.secrets(project) or () if path not in held.named]
        if not names:
            return ""
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        return f"[Hidden from what runs unasked: {shown}. If it needs them: the user can set sandbox.readable.]"

    def _cache_of(self, project: Path) -> Path | None:
        """Return a project's caches. They are its own: what one's tests put there no other's build takes out."""
        if self._cache is None:
            return None
        return self._cache / hashlib.sha256(os.fsencode(project.resolve())).hexdigest()[:16]

    @cached_property
    def _place(self) -> Path:
        place = Path(tempfile.mkdtemp(prefix="tui-agent-sandbox-")).resolve()
        weakref.finalize(self, shutil.rmtree, place, ignore_errors=True)
        (place / "tmp").mkdir()
        (place / "empty").touch()
        return place

    def _layout(self, cwd: Path, project: Path, *, network: bool) -> Layout:
        if (cache := self._cache_of(project)) is not None:
            cache.mkdir(parents=True, exist_ok=True, mode=0o700)
        root = project.resolve()
        git = list(_git_directories(root))
        extra = list(self._expanded(self.settings.writable))
        shown = {path.resolve() for path in (*extra, *self._expanded(self.settings.readable))}
        secrets = [self._home / name for name in SECRETS]
        sockets = map(Path, SOCKETS) if network else _runtime_places()
        hidden = [path for path in _real([*secrets, *sockets, *self._private]) if path not in shown]
        guarded = [root / name for name in GUARDED] + [path / name for path in git for name in ("hooks", "config")]
        return Layout(
            cwd=cwd.resolve(),
            temporary=self._place / "tmp",
            empty=self._place / "empty",
            writable=tuple(_real([root, *git, *extra, *([cache] if cache else [])])),
            read_only=tuple(_real(guarded)),
            hidden_directories=tuple(path for path in hidden if path.is_dir()),
            hidden_files=tuple(path for path in hidden if not path.is_dir()),
            network=network,
        )

    def _narrowed(self, layout: Layout, root: Path, held: Held) -> Layout:
        """Return a layout for a command that nobody was asked about."""
        git = root / ".git"
        if not os.path.lexists(git):
            self._kept_clear.add(git)
        secrets = [path for path in _real(self.secrets(root) or ()) if path not in held.named]
        kept = [*_git_directories(root), *(root / name for name in KEPT_FROM_BUILDS)]
        return replace(
            layout,
            writable=tuple(path for path in layout.writable if path not in kept),
            read_only=tuple(_real([*layout.read_only, *kept])),
            hidden_files=(*layout.hidden_files, *secrets),
            absent=() if os.path.lexists(git) else (git,),
        )

    def _expanded(self, texts: Iterable[str]) -> Iterator[Path]:
        for text in texts:
            yield self._home / text[2:] if text.startswith("~/") else Path(os.path.expandvars(text)).expanduser()


def _remove_empty(directories: Iterable[Path]) -> None:
    """Remove what bubblewrap made to have a place for keeping something from coming to be."""
    for directory in directories:
        with contextlib.suppress(OSError):
            directory.rmdir()


def _runtime_places() -> list[Path]:
    """Return what is in ``/run`` beside what programs need."""
    try:
        return [path for path in RUNTIME.iterdir() if path.name not in RUNTIME_KEPT]
    except OSError:
        return list(map(Path, SOCKETS))


def _real(paths: Iterable[Path]) -> list[Path]:
    """Return where existing paths lead, each once; what can't be looked at is left out."""
    found: dict[Path, None] = {}
    for path in paths:
        try:
            found[path.resolve(strict=True)] = None
        except OSError:
            continue
    return list(found)


def _git_directories(project: Path) -> Iterator[Path]:
    """Return the repository: mounted on its own it can't be moved away and replaced.

    That of a linked worktree lies outside. A ``.git`` file could be written by a command to name any directory, so
    the other end must name this worktree too.
    """
    link = project / ".git"
    try:
        if link.is_symlink():
            return
        if link.is_dir():
            yield link
            return
        directory = (project / link.read_text().removeprefix("gitdir:").strip()).resolve()
        if Path((directory / "gitdir").read_text().strip()).resolve() == link.resolve():
            yield (directory / (directory / "commondir").read_text().strip()).resolve()
    except (OSError, UnicodeDecodeError, ValueError):
        return
