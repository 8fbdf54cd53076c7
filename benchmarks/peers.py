"""Other agents that are installed, taken through the same cases against the same scripted server.

A peer is a row: how it is told of the server, and how it is run once. What is not on the ``PATH`` is left out.
Nothing is downloaded, nobody's real configuration is read: each has an empty home. What a peer asks of the network
before it starts is switched off, because an answer that never comes is not its own slowness.
"""

import json
import os
import random
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import psutil

from benchmarks.headless import BASE, spent
from benchmarks.machine import describe
from benchmarks.program import WORDS, Sandbox, cpu_seconds, pss, sandbox
from benchmarks.report import Row
from tests.support.model_script import Recorded, Turn
from tests.support.model_server import ModelServer
from tests.support.terminal import Terminal

NAME = "compare"
ROUNDS = 3
TURNS = 5
SIZE = (120, 40)
START_SECONDS = 90
"""How long a peer may take until it shows a key."""
SETTLE_SECONDS = 3.0
"""How long a peer is left alone after it showed a key, before its first turn."""
LONG = "longer"
END = "thatisall"
PARAGRAPHS = 400
CHUNKS = 2_000


@dataclass(frozen=True, slots=True)
class Peer:
    """One agent. ``tell`` writes its configuration into a home, for the address of the server and the project."""

    name: str
    once: tuple[str, ...]
    tell: Callable[[Path, str, Path], None]
    env: Mapping[str, str] = field(default_factory=dict)


def _tell_pi(home: Path, url: str, _project: Path) -> None:
    models = [{"id": "bench", "contextWindow": 1_000_000}]
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
    config = {
        "provider": {"bench": provider},
        "model": "bench/bench",
        "autoupdate": False,
        "share": "disabled",
    }
    _write(home / ".config/opencode/opencode.json", json.dumps(config))


def _tell_vibe(home: Path, url: str, project: Path) -> None:
    text = f"""
active_model = "bench"
enable_telemetry = false
enable_update_checks = false
enable_auto_update = false
[[providers]]
name = "bench"
api_base = "{url}"
api_key_env_var = "OPENAI_API_KEY"
[[models]]
name = "bench"
provider = "bench"
alias = "bench"
"""
    _write(home / ".vibe/config.toml", text)
    _write(home / ".vibe/trusted_folders.toml", f'trusted = ["{project}"]\nuntrusted = []\n')


def _tell_aider(home: Path, url: str, _project: Path) -> None:
    off = (
        "git",
        "check-update",
        "analytics",
        "show-model-warnings",
        "show-release-notes",
        "detect-urls",
    )
    lines = [
        "model: openai/bench",
        f"openai-api-base: {url}",
        "openai-api-key: none",
        "yes-always: true",
    ]
    _write(home / ".aider.conf.yml", "\n".join([*lines, *(f"{name}: false" for name in off)]))
    # A price list that is there is not fetched.
    _write(home / ".aider/caches/model_prices_and_context_window.json", "{}")


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
    Peer("pi", ("-p", "hello"), _tell_pi, {"PI_OFFLINE": "1"}),
    Peer("codex", ("exec", "--skip-git-repo-check", "hello"), _tell_codex),
    Peer(
        "opencode",
        ("run", "hello"),
        _tell_opencode,
        {
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_PURE": "1",
        },
    ),
    Peer(
        "claude",
        ("-p", "hello"),
        _tell_claude,
        {
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "ANTHROPIC_API_KEY": "none",
        },
    ),
    Peer("vibe", ("-p", "hello"), _tell_vibe),
    Peer("aider", ("--message", "hello"), _tell_aider, {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}),
)


@dataclass(frozen=True, slots=True)
class Contender:
    """A program ready to run: its command, environment and project, and the server it talks to."""

    name: str
    command: tuple[str, ...]
    once: tuple[str, ...]
    env: Mapping[str, str]
    project: Path
    server: ModelServer

    @contextmanager
    def screen(self) -> Iterator[Terminal]:
        """Start its screen; at the end its whole family of processes is ended."""
        with Terminal(
            self.command, size=SIZE, env=self.env, cwd=self.project, echo=False
        ) as terminal:
            try:
                yield terminal
            finally:
                for process in reversed(_family(terminal)):
                    with suppress(psutil.NoSuchProcess):
                        process.kill()


def run() -> Iterator[Row]:
    """Take this program and every peer that is found through the cases, in turn."""
    with sandbox() as box:
        command = (sys.executable, "-m", "tui_agent")
        env = {**os.environ, **box.env}
        yield from _cases(
            Contender("tui-agent", command, ("-p", "hello"), env, box.project, box.server)
        )
    for peer in PEERS:
        if program := shutil.which(peer.name):
            with sandbox() as box:
                yield from _cases(_contender(peer, program, box))
        else:
            print(f"{peer.name}: not installed", file=sys.stderr)


def _contender(peer: Peer, program: str, box: Sandbox) -> Contender:
    home = box.root / "home"
    peer.tell(home, box.server.openai_url, box.project)
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "OPENAI_API_KEY": "none", **peer.env}
    return Contender(peer.name, (program,), peer.once, env, box.project, box.server)


def _cases(who: Contender) -> Iterator[Row]:
    """Yield what each case measured; one that a program does not get through says why, the others still run."""
    who.server.play_function(_answer)
    print(f"{who.name}: load {describe()['load']}", file=sys.stderr, flush=True)
    floor = _floor()
    for kind, value in floor.items():
        yield Row(NAME, f"{who.name}: floor, {kind}", value, "s", note=f"`{BASE}`, just before")
    for case in (_one_shot, _asked_at_once, _conversation):
        try:
            for what, value, unit, note in case(who):
                below = floor["CPU" if "CPU" in what else "wall"] * {"s": 1, "ms": 1000}.get(
                    unit, 0
                )
                ratio = value / below if below else None
                print(f"{who.name}: {what}: {value:.3g} {unit}", file=sys.stderr, flush=True)
                yield Row(NAME, f"{who.name}: {what}", value, unit, note=note, ratio=ratio)
        except (AssertionError, psutil.NoSuchProcess) as error:
            print(f"{who.name}, {case.__name__.strip('_')}: {error}", file=sys.stderr, flush=True)


def _floor() -> dict[str, float]:
    """Seconds of a bare import, taken again for each program: the machine may be busier than it was for the last."""
    runs = [spent([sys.executable, "-c", BASE], {}) for _ in range(ROUNDS)]
    return {"wall": median(run.wall for run in runs), "CPU": median(run.cpu for run in runs)}


Measured = Iterator[tuple[str, float, str, str]]


def _one_shot(who: Contender) -> Measured:
    said = re.search(
        r"\d+(?:\.\d+)+", spent([*who.command, "--version"], who.env, who.project).said
    )
    first, *later = [
        spent([*who.command, *who.once], who.env, who.project) for _ in range(ROUNDS + 1)
    ]
    assert ANSWER in first.said, f"answered {first.said!r}"
    yield "one-shot, first", first.wall, "s", said[0] if said else ""
    yield "one-shot", median(one.wall for one in later), "s", ""
    yield "one-shot, CPU", median(one.cpu for one in later), "s", ""
    bodies = [len(request.body) for request in who.server.requests if request.body]
    yield "bytes of the first request", float(max(bodies)), "", "prompt and tools for “hello”"


def _asked_at_once(who: Contender) -> Measured:
    """Type as soon as a letter is shown, and send that."""
    keys, answers = [], []
    for _ in range(ROUNDS):
        with who.screen() as terminal:
            start = time.perf_counter()
            typed = _type_until_shown(terminal, start)
            keys.append(time.perf_counter() - start)
            terminal.type("\x7f" * typed + "now")
            terminal.wait_until(lambda: "now" in terminal.text, "now", START_SECONDS)
            terminal.read_for(0.2)
            answers.append(_enter(terminal, "now", since=start))
    yield "start until a key is shown", median(keys), "s", ""
    yield "start until the answer to a message typed at once", median(answers), "s", ""


def _conversation(who: Contender) -> Measured:
    """Start, come to rest, take some turns, then read a long answer."""
    runs = []
    for _ in range(ROUNDS):
        with who.screen() as terminal:
            typed = _type_until_shown(terminal, time.perf_counter())
            terminal.read_for(
                SETTLE_SECONDS
            )  # some never stop writing: a cursor blinks, a logo moves
            terminal.type("\x7f" * typed)
            first = _turn(terminal, "first")
            later = median(_turn(terminal, f"turn{number}x") for number in range(TURNS))
            memory, cpu = sum(map(pss, _family(terminal))), _cpu(terminal)
            long = _turn(terminal, LONG, END)
            spent_on_it = _cpu(terminal) - cpu
            after = _turn(terminal, "afterwards")
            runs.append((first * 1000, later * 1000, memory, cpu, long, spent_on_it, after * 1000))
    names = (
        ("Enter → first token, first turn", "ms", ""),
        ("Enter → first token", "ms", ""),
        ("memory after the turns", "MB", "PSS, every process"),
        ("CPU of start and turns", "s", ""),
        (
            "long answer",
            "s",
            f"{CHUNKS:,} pieces, {PARAGRAPHS} paragraphs: Enter until the last word is shown",
        ),
        ("long answer, CPU", "s", "with the second after it"),
        ("Enter → first token, after the long answer", "ms", ""),
    )
    for (what, unit, note), values in zip(names, zip(*runs, strict=True), strict=True):
        yield what, median(values), unit, note


ANSWER = "You said"
REMINDER_END = "</system-reminder>"


def _answer(request: Recorded) -> Turn:
    """Repeat what was said; a question for a longer answer gets one, and its end is a word of its own."""
    if LONG in request.prompt:
        dice = random.Random(1)  # a text that repeats itself is stopped by some
        paragraphs = (
            " ".join(dice.choices(WORDS, k=40)).capitalize() + "." for _ in range(PARAGRAPHS)
        )
        return Turn(text="\n\n".join([*paragraphs, END]), chunks=CHUNKS)
    # Some put reminders of their own before the user's words.
    return Turn(text=f"{ANSWER}: {request.prompt.split(REMINDER_END)[-1].strip()}")


def _type_until_shown(terminal: Terminal, start: float) -> int:
    """Type a letter again and again, as some throw away what comes too early; return how often it was typed."""
    typed = 0
    while "§" not in terminal.text:
        assert time.perf_counter() - start < START_SECONDS, f"no key was shown\n{terminal.framed()}"
        assert terminal.process.poll() is None, f"it ended\n{terminal.framed()}"
        terminal.type("§")
        typed += 1
        terminal.read_for(0.05)
    return typed


def _turn(terminal: Terminal, word: str, answer: str = "") -> float:
    terminal.type(word)
    terminal.wait_until(lambda: word in terminal.text, word, 30)
    terminal.read_for(0.5)
    return _enter(terminal, word, answer)


def _enter(terminal: Terminal, word: str, answer: str = "", since: float | None = None) -> float:
    """Send what was typed; return the seconds until its answer is shown, from ``since`` or from the key."""
    start = since or time.perf_counter()
    terminal.press("enter")
    wanted, seen = answer or f"{ANSWER}: {word}", len(terminal.raw)
    shown = lambda: wanted in terminal.text or terminal.raw.find(wanted.encode(), seen) >= 0  # noqa: E731
    terminal.wait_until(shown, wanted, 60)
    taken = time.perf_counter() - start
    terminal.read_for(1.0)
    return taken


def _family(terminal: Terminal) -> list[psutil.Process]:
    """The process in a terminal and all below it."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(terminal.process.pid)
        return [process, *process.children(recursive=True)]
    return []


def _cpu(terminal: Terminal) -> float:
    return sum(map(cpu_seconds, _family(terminal)))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
