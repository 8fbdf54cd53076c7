"""Other agents that are installed, taken through the same cases against the same scripted server.

A peer is a row: how it is told of the server, and how it is run once. What is not on the ``PATH``
is left out. Nothing is downloaded, nobody's real configuration is read: each has an empty home.
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil

from benchmarks.headless import spent
from benchmarks.program import pss, sandbox
from benchmarks.report import Row
from tests.support.model_script import echo
from tests.support.model_server import ModelServer
from tests.support.terminal import Terminal

NAME = "compare"
ROUNDS = 3
TURNS = 5
SIZE = (120, 40)
ANSWER = "You said"


@dataclass(frozen=True, slots=True)
class Peer:
    """One agent. ``tell`` writes its configuration into a home, for the address of the server and the project."""

    name: str
    version: tuple[str, ...]
    once: tuple[str, ...]
    tell: Callable[[Path, str, Path], None]


def _tell_pi(home: Path, url: str, _project: Path) -> None:
    models = [{"id": "bench", "contextWindow": 1_000_000}]
    provider = {"baseUrl": url, "api": "openai-completions", "apiKey": "none", "models": models}
    _write(home / ".pi/agent/models.json", json.dumps({"providers": {"bench": provider}}))
    _write(home / ".pi/agent/settings.json", json.dumps({"defaultProvider": "bench", "defaultModel": "bench"}))


def _tell_codex(home: Path, url: str, project: Path) -> None:
    text = f"""
model = "gpt-5"
model_provider = "bench"
check_for_update_on_startup = false
[model_providers.bench]
name = "bench"
base_url = "{url}"
wire_api = "responses"
[projects."{project}"]
trust_level = "trusted"
"""
    _write(home / ".codex/config.toml", text)


def _tell_opencode(home: Path, url: str, _project: Path) -> None:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": url, "apiKey": "none"},
        "models": {"bench": {"limit": {"context": 1_000_000, "output": 8_000}}},
    }
    config = {"provider": {"bench": provider}, "model": "bench/bench", "autoupdate": False, "share": "disabled"}
    _write(home / ".config/opencode/opencode.json", json.dumps(config))


def _tell_aider(home: Path, url: str, _project: Path) -> None:
    off = ("git", "check-update", "analytics", "show-model-warnings", "show-release-notes", "detect-urls")
    lines = ["model: openai/bench", f"openai-api-base: {url}", "openai-api-key: none", "yes-always: true"]
    _write(home / ".aider.conf.yml", "\n".join([*lines, *(f"{name}: false" for name in off)]))


PEERS = (
    Peer("pi", ("--version",), ("-p", "hello"), _tell_pi),
    Peer("codex", ("--version",), ("exec", "--skip-git-repo-check", "hello"), _tell_codex),
    Peer("opencode", ("--version",), ("run", "hello"), _tell_opencode),
    Peer("aider", ("--version",), ("--message", "hello"), _tell_aider),
)


def run() -> Iterator[Row]:
    """Take this program and every peer that is found through the cases, in turn."""
    with sandbox() as box:
        box.server.play_function(echo)
        command = (sys.executable, "-m", "tui_agent")
        yield from _cases("tui-agent", "", (*command, "-p", "hello"), command, {**os.environ, **box.env}, box.project)
    for peer in PEERS:
        program = shutil.which(peer.name)
        if program is None:
            print(f"{peer.name}: not installed", file=sys.stderr)
            continue
        with sandbox() as box, ModelServer() as server:
            server.play_function(echo)
            home = box.root / "home"
            peer.tell(home, server.openai_url, box.project)
            env = {"PATH": os.environ["PATH"], "HOME": str(home), "OPENAI_API_KEY": "none", "PI_OFFLINE": "1"}
            env |= {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}
            version = " ".join(spent([program, *peer.version], env, box.project).said.split()[-1:])
            yield from _cases(peer.name, version, (program, *peer.once), (program,), env, box.project)


def _cases(
    name: str, version: str, once: tuple[str, ...], screen: tuple[str, ...], env: dict[str, str], project: Path
) -> Iterator[Row]:
    try:
        first, *later = [spent(list(once), env, project) for _ in range(ROUNDS + 1)]
        yield Row(NAME, f"{name}: one-shot, first", first.wall, "s", note=version)
        yield Row(NAME, f"{name}: one-shot", median(one.wall for one in later), "s")
        yield Row(NAME, f"{name}: one-shot, CPU", median(one.cpu for one in later), "s")
    except AssertionError as error:
        print(f"{name}: {error}", file=sys.stderr)
    try:
        turns = [_screen(screen, env, project) for _ in range(ROUNDS)]
    except AssertionError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return
    start, first_turn, later_turn, memory, cpu = (median(values) for values in zip(*turns, strict=True))
    yield Row(NAME, f"{name}: start until a key is shown", start, "s")
    yield Row(NAME, f"{name}: Enter → first token, first turn", first_turn * 1000, "ms")
    yield Row(NAME, f"{name}: Enter → first token", later_turn * 1000, "ms")
    yield Row(NAME, f"{name}: memory after the turns", memory, "MB", note="PSS, every process")
    yield Row(NAME, f"{name}: CPU of start and turns", cpu, "s")


def _screen(command: tuple[str, ...], env: dict[str, str], project: Path) -> tuple[float, float, float, float, float]:
    """Start a screen, type as soon as it shows letters, and take some turns."""
    begin = time.perf_counter()
    with Terminal(command, size=SIZE, env=env, cwd=project) as terminal:
        process = psutil.Process(terminal.process.pid)
        letter = "§"
        while letter not in terminal.text:
            if terminal.raw and not _is_echoed(terminal):
                terminal.type(letter)
            terminal.pump(0.02)
            if time.perf_counter() - begin > 60:
                raise AssertionError(f"no key was shown\n{terminal.framed()}")
        shown = time.perf_counter() - begin
        terminal.wait_quiet(1.5, timeout=60)
        terminal.type("\x7f" * 100)
        terminal.wait_quiet(0.3)
        first = _turn(terminal, "one")
        later = [_turn(terminal, f"turn{number}x") for number in range(TURNS)]
        processes = [process, *process.children(recursive=True)]
        used = sum(sum(one.cpu_times()[:2]) for one in processes)
        return shown, first, median(later), sum(map(pss, processes)), used


def _is_echoed(terminal: Terminal) -> bool:
    """Whether there is nothing but what the terminal itself shows."""
    return not any(line.strip("§ ") for line in terminal.lines)


def _turn(terminal: Terminal, word: str) -> float:
    terminal.type(word)
    terminal.wait_until(lambda: word in terminal.text, word, 30)
    terminal.wait_quiet(0.3, timeout=60)
    seen = terminal.text.count(ANSWER)
    start = time.perf_counter()
    terminal.press("enter")
    terminal.wait_until(lambda: f"{ANSWER}: {word}" in terminal.text, f"the answer, the {seen + 1}th", 60)
    taken = time.perf_counter() - start
    terminal.wait_quiet(0.5, timeout=60)
    return taken


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
