"""A project in a home directory, and commands that run in the sandbox there."""

import asyncio
import os
import shutil
import stat
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import git
from tui_agent.processes.environment import command_environment
from tui_agent.sandbox import AllowHost, CommandOutcome, Launch, Sandbox, SandboxState, View, Writes
from tui_agent.sandbox.detection import bubblewraps, find_bubblewrap, find_sandbox
from tui_agent.sandbox.layout import MIN_LANDLOCK, landlock_version
from tui_agent.sandbox.settings import SandboxSettings

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Without the toolchains of whoever runs the tests."""

NOTHING, OUTPUTS, PROJECT = View(Writes.NOTHING), View(Writes.OUTPUTS), View(Writes.PROJECT)
EVERY_MODE = pytest.mark.parametrize(
    "view", [NOTHING, OUTPUTS, PROJECT], ids=["plan", "build", "auto-edit"]
)
LIVE = pytest.mark.parametrize("live", [False, True], ids=["layer", "live"])

needs_layer = pytest.mark.skipif(
    not find_sandbox().layered, reason="needs bubblewrap 0.11 or newer, and Linux 5.11"
)
BUNDLED = Path(next(bubblewraps(), "/nonexistent"))
"""The bubblewrap that comes with the program; the system's where that one can't be run."""


def bubblewrap_without(option: str, program: Path) -> Path:
    """Write a bubblewrap that does not know one option and does the rest, as releases before 0.11 know no overlay."""
    program.write_text(
        f'#!/bin/sh\nfor word in "$@"; do\n'
        f'  if [ "$word" = {option} ]; then echo "bwrap: Unknown option {option}" >&2; exit 1; fi\ndone\n'
        f'exec {BUNDLED} "$@"\n'
    )
    program.chmod(0o755)
    return program


FORMS = ("layer", "copy", "landlock")
"""How commands are held: on a copy-on-write layer, on a copy by an old bubblewrap, by Landlock."""
JUDGED = ("layer", "copy")
"""The forms in which a command never works on the project itself unless it was granted that."""


def state_of(form: str, scratch: Path) -> SandboxState:
    """Return the state of a machine that has one form; skips the test where this one has not."""
    if form == "landlock":
        if landlock_version() < MIN_LANDLOCK:
            pytest.skip("needs Landlock")
        return SandboxState("landlock", "version 3")
    if form == "layer":
        state = find_sandbox()
    else:
        state = find_bubblewrap(
            [str(bubblewrap_without("--overlay-src", scratch / "bwrap-without-layers"))]
        )
    if state.kind is None or state.layered != (form == "layer"):
        pytest.skip("needs bubblewrap 0.11 or newer, and Linux 5.11")
    return state


@dataclass
class Ran:
    """A command that ran: what it said, how it ended, what the sandbox made of it."""

    output: str
    code: int
    outcome: CommandOutcome
    launch: Launch


class RecordingSandbox(Sandbox):
    """Remembers what was launched."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.launches: list[Launch] = []

    async def launch(self, *given: Any, **named: Any) -> Launch:
        launch = await super().launch(*given, **named)
        self.launches.append(launch)
        return launch


@dataclass
class Contained:
    """``home`` holds everything; the project is in it."""

    home: Path
    settings: SandboxSettings = field(default_factory=SandboxSettings)
    state: SandboxState | None = None
    environ: dict[str, str] = field(default_factory=dict)
    sandbox: RecordingSandbox = field(init=False)

    def __post_init__(self) -> None:
        self.root = self.home / "code" / "demo"
        self.root.mkdir(parents=True, exist_ok=True)
        self.reset()

    def reset(self, **settings: object) -> None:
        """Begin a session, with other settings if given."""
        if settings:
            self.settings = SandboxSettings.model_validate(settings)
        state = self.state
        self.sandbox = RecordingSandbox(
            self.settings,
            private=(self.home / ".config/tui-agent", self.home / ".local/share/tui-agent"),
            cache=self.home / ".cache/tui-agent/commands",
            home=self.home,
            project=self.root,
            find=None if state is None else lambda: state,
        )

    def file(self, name: str, content: str | bytes = "", *, at: Path | None = None) -> Path:
        """Write a file of the project, or below another directory."""
        path = (at or self.root) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def git(self, *arguments: str, cwd: Path | None = None) -> None:
        git(cwd or self.root, *arguments)

    def environment(self) -> Mapping[str, str]:
        """Return what a command gets before the sandbox has its say."""
        return command_environment({"PATH": SYSTEM_PATH, "HOME": str(self.home), **self.environ})

    async def laid_out(
        self,
        command: str,
        view: View | None = None,
        *,
        live: bool = False,
        allow_host: AllowHost | None = None,
    ) -> Launch:
        """Lay out the view of a command that is not started yet."""
        shell = shutil.which("bash") or "/bin/sh"
        return await self.sandbox.launch(
            [shell, "-c", command], self.root, self.root, view or View(), self.environment(),
            live=live, allow_host=allow_host,
        )  # fmt: skip

    async def run(
        self,
        command: str,
        view: View | None = None,
        *,
        live: bool = False,
        allow_host: AllowHost | None = None,
        meanwhile: Callable[[], object] | None = None,
        beside: Callable[[], Awaitable[object]] | None = None,
    ) -> Ran:
        """Run a command to its end.

        ``meanwhile`` is what another does after its view was laid out, ``beside`` what is done
        between its first line and the empty one that it reads then.
        """
        launch = await self.laid_out(command, view, live=live, allow_host=allow_host)
        if meanwhile is not None:
            meanwhile()
        process = await asyncio.create_subprocess_exec(
            *launch.arguments, cwd=self.root, env=launch.environment, pass_fds=launch.descriptors,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        if beside is not None:
            assert process.stdout is not None
            await process.stdout.readline()
            await beside()
        said, _ = await process.communicate(b"\n" if beside is not None else None)
        output = said.decode("utf-8", "replace")
        assert process.returncode is not None
        return Ran(
            output,
            process.returncode,
            await self.sandbox.finish(launch, output, process.returncode),
            launch,
        )

    def layers(self) -> list[Path]:
        """Return what is left of the layers that commands worked on; copies stay for the next command."""
        assert self.sandbox.launches
        return [
            one.layer.place
            for one in self.sandbox.launches
            if one.layer and not one.layer.is_copy and one.layer.place.exists()
        ]

    def outside(self) -> dict[str, tuple[int, int]]:
        """Return mode and size of everything in the home beside the project and this program's own files."""
        states = dict[str, os.stat_result]()
        for place, directories, files in os.walk(self.home):
            # A job changes the project meanwhile.
            left_out = (self.root, self.home / ".cache")
            directories[:] = [name for name in directories if Path(place) / name not in left_out]
            for name in (*directories, *files):
                path = Path(place) / name
                states[path.relative_to(self.home).as_posix()] = path.lstat()
        return {
            name: (state.st_mode, state.st_size * stat.S_ISREG(state.st_mode))
            for name, state in states.items()
        }

    def tree(self) -> dict[str, str]:
        """Return every file of the project with its content, links with where they lead."""
        found = {}
        for path in sorted(self.root.rglob("*")):
            name = path.relative_to(self.root).as_posix()
            if path.is_symlink():
                found[name] = f"-> {path.readlink()}"
            elif path.is_file():
                found[name] = path.read_bytes().decode("latin-1")
        return found
