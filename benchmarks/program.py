"""Starts the real program in a terminal, with a scripted server on this machine and directories of its own."""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import psutil

from tests.support.model_script import echo
from tests.support.model_server import ModelServer
from tests.support.terminal import Terminal

SIZE = (120, 40)
PROMPT_HINT = "Ask anything"
MODEL = "openai/bench"
WORDS = [
    "a",
    "paragraph",
    "that",
    "tells",
    "nothing",
    "new",
    "and",
    "only",
    "has",
    "to",
    "be",
    "read",
    "parsed",
    "wrapped",
    "and",
    "put",
    "on",
    "the",
    "screen",
    "in",
    "time",
]
"""Words of long answers, drawn by lot: what repeats itself is stopped."""

CONFIG = """
model = "{model}"
[models."{model}"]
base_url = "{url}"
api_key = "none"
context_window = {window}
wire = "{wire}"
[permissions]
bash = "allow"
edit = "allow"
[ui]
reduced_motion = true
permission_grace = 0
typing_pause = 0
[sandbox]
mode = "{commands}"
"""

# Letters that neither the program nor a scripted answer writes, so that seeing one means that a key was shown.
_probes = (chr(code) for _ in count() for code in range(0x100, 0x180))


class TimedServer(ModelServer):
    """A scripted server that notes when it had written the last byte of an answer."""

    finished_at: float = 0.0

    def _changed(self) -> None:
        self.finished_at = time.perf_counter()
        super()._changed()


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Directories and a server for one or more runs of the program."""

    root: Path
    server: TimedServer

    @property
    def project(self) -> Path:
        """The directory the program works in."""
        return self.root / "project"

    @property
    def database(self) -> Path:
        """Directory of the sessions."""
        return self.root / "data"

    @property
    def env(self) -> dict[str, str]:
        """What redirects the program to this sandbox."""
        return {
            "HOME": str(self.root),
            "TUI_AGENT_CONFIG_DIR": str(self.root / "config"),
            "TUI_AGENT_DATA_DIR": str(self.database),
            "TEXTUAL_ANIMATIONS": "none",
        }

    def terminal(self, *arguments: str, size: tuple[int, int] = SIZE) -> Terminal:
        """Start the program."""
        command = [sys.executable, "-m", "tui_agent", *arguments]
        return Terminal(command, size=size, env=self.env, cwd=self.project, echo=False)

    @contextmanager
    def ready(self, *arguments: str, size: tuple[int, int] = SIZE) -> Iterator[Terminal]:
        """Start the program and wait until its prompt is there and it has come to rest."""
        with self.terminal(*arguments, size=size) as terminal:
            terminal.wait_for(PROMPT_HINT)
            terminal.wait_quiet(0.5)
            yield terminal

    @contextmanager
    def warm(self, *arguments: str, size: tuple[int, int] = SIZE) -> Iterator[Terminal]:
        """Start the program and let it answer once, so that everything is loaded."""
        self.server.play_function(echo)
        with self.ready(*arguments, size=size) as terminal:
            ask(terminal, "warm up", "You said: warm up")
            terminal.wait_quiet(0.5)
            yield terminal


@contextmanager
def sandbox(
    *, wire: str = "chat", commands: str = "off", window: int = 1_000_000
) -> Iterator[Sandbox]:
    """Make a sandbox whose server echoes until told otherwise. ``wire`` is how it is spoken to.

    ``commands`` is the mode of the sandbox that commands run in; making one takes longer than a short command.
    ``window`` is the model's, in tokens.
    """
    with tempfile.TemporaryDirectory(prefix="tui-agent-bench-") as name, TimedServer() as server:
        root = Path(name)
        for part in ("project", "config", "data"):
            (root / part).mkdir()
        config = CONFIG.format(
            model=MODEL, url=server.openai_url, wire=wire, commands=commands, window=window
        )
        (root / "config" / "config.toml").write_text(config, encoding="utf-8")
        yield Sandbox(root, server)


def probe_key(terminal: Terminal, timeout: float = 30.0) -> float:
    """Type one letter and return the seconds until it was shown."""
    letter = next(_probes)
    start = time.perf_counter()
    seen = len(terminal.raw)
    terminal.type(letter)
    _wait_raw(terminal, letter.encode(), seen, timeout)
    return time.perf_counter() - start


def ask(terminal: Terminal, prompt: str, marker: str, timeout: float = 60.0) -> float:
    """Type a prompt, press Enter, and return the seconds from Enter until ``marker`` was written to the terminal."""
    seen = len(terminal.raw)
    terminal.type(prompt)
    _wait_raw(terminal, prompt[-1:].encode(), seen, timeout)
    terminal.wait_quiet(0.05)
    return press_enter(terminal, marker, timeout)


def press_enter(terminal: Terminal, marker: str, timeout: float = 60.0) -> float:
    """Press Enter and return the seconds until ``marker`` was written to the terminal."""
    seen = len(terminal.raw)
    start = time.perf_counter()
    terminal.press("enter")
    _wait_raw(terminal, marker.encode(), seen, timeout)
    return time.perf_counter() - start


def wait_written(terminal: Terminal, marker: str, since: int, timeout: float = 120.0) -> float:
    """Wait until ``marker`` was written after position ``since``; return the time of it."""
    _wait_raw(terminal, marker.encode(), since, timeout)
    return time.perf_counter()


def _wait_raw(terminal: Terminal, marker: bytes, since: int, timeout: float) -> None:
    terminal.wait_until(_written(terminal, marker, since), repr(marker.decode()), timeout)


def _written(terminal: Terminal, marker: bytes, since: int) -> Callable[[], bool]:
    start = since

    def written() -> bool:
        nonlocal start
        found = terminal.raw.find(marker, start) >= 0
        start = max(since, len(terminal.raw) - len(marker))
        return found

    return written


def cpu_seconds(process: psutil.Process) -> float:
    """Return the processor time a process has used so far."""
    times = process.cpu_times()
    return float(times.user + times.system)


def private(process: psutil.Process) -> float:
    """Return the memory in MB that ends with a process: all but what it shares or could read from a file again."""
    smaps = Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="ascii")
    dirty = next(line for line in smaps.splitlines() if line.startswith("Private_Dirty:"))
    return int(dirty.split()[1]) / 1024


def pss(process: psutil.Process) -> float:
    """Return the memory of a process in MB, shared pages divided among their users."""
    full = process.memory_full_info()
    return float(getattr(full, "pss", full.uss)) / 2**20
