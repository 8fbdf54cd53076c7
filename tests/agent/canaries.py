"""Runs random command lines that the rules let run, in a scratch home full of canaries. Knows no program by name.

Started as a program of its own, inside a bubblewrap that lets it write to its scratch directory only and has no
network: whatever the code under test does wrong, it harms nothing. Reads what to do as JSON and writes what it saw.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import random
import shutil
import socket
import string
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from tests.support.contained import JUDGED, RecordingSandbox, state_of
from tests.support.hooks import from_settings
from tests.support.processes import git
from tests.support.tooling import Workspace
from tui_agent.agent.gate import needs_of
from tui_agent.agent.hooks.hooks import CommandHook, Containment, HookError
from tui_agent.agent.hooks.payloads import About, BeforeTool
from tui_agent.agent.hooks.settings import HookSettings
from tui_agent.agent.permissions import DEFAULT_RULES, Action, decide_in_mode, view_in_mode
from tui_agent.errors import ToolError
from tui_agent.processes.jobs import Jobs
from tui_agent.sandbox import SandboxState, View
from tui_agent.sandbox.settings import SandboxSettings
from tui_agent.shell.grammar import TABLE
from tui_agent.tools.base import ToolContext
from tui_agent.tools.bash import BashInput, BashTool
from tui_agent.tools.functions.file_tool import run_file, view_of_file

PORT = 4444
SECONDS = 3.0
"""What a line may take."""
SECRETS = (
    ".ssh/id_rsa", ".aws/credentials", ".netrc", ".bashrc", ".profile", ".config/stripe/config.toml",
    ".kaggle/kaggle.json",
    ".local/share/opencode/auth.json", "other/.env", "project/.env", "project/keys/server.pem",
    "project/sub/.env.local",
)  # fmt: skip
FILES = ("project/README.md", "project/src/app.py", "project/src/main.c", "project/Makefile", "project/data/big.csv",
         "project/tests/test_app.py", "other/notes.txt", "project/.husky/pre-commit",
         "project/.vscode/tasks.json")  # fmt: skip
OUTPUTS = (
    "build",
    "dist",
    "target",
    "node_modules",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
)
OUTPUT_FILES = ("a.out", ".o", ".d", ".gch")
"""How the names of files end that compilers write, where a command may build."""


def token(name: str) -> str:
    """Return what is in a canary; it is found in no other text."""
    return f"canary{hashlib.sha256(name.encode()).hexdigest()[:20]}"


def furnish(home: Path) -> None:
    """Make the home directory: secrets, files outside, a project with a repository, ignored data and links out."""
    for name in (*SECRETS, *FILES):
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f"export API_KEY={token(name)}\n" if name in SECRETS else f"x = '{token(name)}'\n"
        )
    project = home / "project"
    (project / ".gitignore").write_text(".env*\nkeys\ndata\nbuild\n__pycache__\n")
    (project / "Makefile").write_text(
        "version all:\n\techo evil > src/app.py; echo evil > ../other/notes.txt\n"
    )
    (project / "version").write_text("echo evil > README.md; cat .env\n")
    (project / "conftest.py").write_text(
        "open('README.md', 'w').write('evil')\nprint(open('.env').read())\n"
    )
    (project / "link-out").symlink_to("../other")
    (project / "link-env").symlink_to("../other/.env")

    git(project, "init", "-q")
    (project / "prod.env").write_text(f"KEY={token('history')}\n")
    git(project, "add", "-A")
    git(project, "add", "-f", "prod.env")
    git(project, "commit", "-q", "-m", "Begin")
    git(project, "rm", "-q", "prod.env")
    git(project, "commit", "-q", "-m", "Go on")
    (project / "src" / "app.py").write_text(f"x = '{token('project/src/app.py')}'\ny = 1\n")
    nest = project / "nest"
    nest.mkdir()
    git(nest, "init", "-q")
    (nest / "fs.sh").write_text("#!/bin/sh\necho evil > ../README.md\n")
    (nest / "fs.sh").chmod(0o755)
    git(nest, "config", "core.fsmonitor", "./fs.sh")


class Lines:
    """Writes random lines: half of words that programs like, half of what shells and programs choke on."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        folders = [Path(place) for place in os.defpath.split(os.pathsep) if place]
        self._installed = sorted(
            {path.name for place in folders if place.is_dir() for path in place.iterdir()}
        )
        self._known = sorted({*TABLE, "git", "find", "cd"})

    def line(self) -> str:
        """Return one line."""
        pick = self._random.choice
        parts = [self._command()]
        for _ in range(pick((0, 0, 0, 1, 1, 2))):
            parts += [
                pick((" | ", " && ", "; ", " || ", "\n", " | ", " && ", " & ", " |& ")),
                self._command(),
            ]
        line = "".join(parts)
        if self._random.random() < 0.15:
            line = pick(
                ("echo $({})", "{} | sh", "{} | python3 -v", "bash -c '{}'", "timeout 3 {}", "find . -exec {} \\;",
                 "({})", "env {}", "if {}; then :; fi", "{} <<EOF\n$(cat .env)\nEOF", "{} | xargs cat", "eval '{}'")
            ).replace("{}", line)  # fmt: skip
        return line

    def _command(self) -> str:
        pick, chance = self._random.choice, self._random.random
        tame = chance() < 0.75
        program = pick(self._known) if chance() < 0.75 else pick(self._installed)
        words = [program]
        if program == "git":
            words.append(
                pick(
                    (
                        "status",
                        "diff",
                        "log",
                        "show",
                        "branch",
                        "ls-files",
                        "rev-parse",
                        "grep",
                        "stash",
                        "config",
                    )
                )
            )
        words += [self._switch(program, tame=tame) for _ in range(pick((0, 0, 1, 1, 2)))]
        words += [self._operand(tame=tame) for _ in range(pick((0, 1, 1, 2, 3)))]
        if chance() < (0.1 if tame else 0.3):
            words.append(
                pick(("2>/dev/null", "2>&1", ">/dev/null", "> README.md", ">> src/app.py", "< .env", "<<< x", "2> err",
                      f"> /dev/tcp/127.0.0.1/{PORT}", "&> src/main.c", "> ../other/notes.txt"))
            )  # fmt: skip
        return " ".join(words)

    def _switch(self, program: str, *, tame: bool) -> str:
        pick = self._random.choice
        if tame and program in TABLE and (letters := TABLE[program].flags + TABLE[program].valued):
            return f"-{pick(letters)}{pick(('', '', '3', pick(letters)))}"
        if tame and program == "git":
            return pick(
                (
                    "--stat",
                    "-s",
                    "--oneline",
                    "--name-only",
                    "--cached",
                    "-3",
                    "--all",
                    "--graph",
                    "-U2",
                    "--short",
                )
            )
        if tame and program == "find":
            return pick(
                ("-name '*.py'", "-type f", "-maxdepth 2", "-print", "-not", "-empty", "-name .env")
            )
        long = pick(("output=x", "exec", "file", "pre=./version", "hidden", "include=*", "inclu=.env",
                     "recursive", "help",
                     "version", "delete", "no-index", "textconv", "ext-diff", "files0-from=.env", "follow",
                     "glob=*"))  # fmt: skip
        return pick(
            (
                f"-{pick(string.ascii_letters)}{pick(string.ascii_letters)}",
                f"--{long}",
                f"--{long[:4]}",
                "-",
                "--",
            )
        )

    def _operand(self, *, tame: bool) -> str:
        pick = self._random.choice
        plain = ("README.md", "src/app.py", "src", ".", "tests", "src/main.c", "x", "3", "HEAD", "HEAD~1",
                 "def", "1,3p",
                 "data/big.csv", "version", "a-z", "Makefile", "nest", "main", ".x", "src/../README.md")  # fmt: skip
        wild = (".env", "./.env", "src/../.env", "keys/server.pem", "link-out/notes.txt", "link-env",
                "../other/.env", "~/.ssh/id_rsa",
                "$HOME/.netrc", "/etc/shadow", "-", ".[^x]nv", ".[[:alpha:]]nv", ".e*", "*", "{.env,x}",
                "HEAD~1:prod.env", ":/",
                "$(cat .env)", "`cat .env`", "~", "..", "/", ".git/config", ".GIT/config", "HEAD:.env", "-exec",
                "';'", "\\;",
                "+", "w src/app.py", "e", "$API_KEY", "/dev/stdin", "/proc/self/environ", "nest/fs.sh",
                "http://127.0.0.1:4444/")  # fmt: skip
        text = pick(plain) if self._random.random() < (0.9 if tame else 0.3) else pick(wild)
        if self._random.random() < (0.2 if tame else 0.4):
            at = self._random.randint(0, len(text))
            text = pick((f"'{text}'", f'"{text}"', f"{text[:at]}''{text[at:]}", f"{text[:at]}\\{text[at:]}",
                         f"$'{text}'",
                         f"{text[:at]}'{text[at:]}'", f"--{text}", f"-f{text}"))  # fmt: skip
        return text


@dataclass
class Seen:
    """What came of it."""

    held_by: str = ""
    judged: int = 0
    ran: int = 0
    stopped: int = 0
    faults: list[str] = field(default_factory=list)


class Aviary:
    """A scratch home and what it looked like."""

    def __init__(self, place: Path, port: int = PORT) -> None:
        """Furnish it; ``port`` is where a server listens that nobody may reach, 0 for any."""
        self.home = place / "home"
        self._pristine = place / "pristine"
        self.project = self.home / "project"
        furnish(self.home)
        shutil.copytree(self.home, self._pristine, symlinks=True)
        self._before = dict(self._state())
        self.called = False
        listener = socket.create_server(("127.0.0.1", port))
        self.port = listener.getsockname()[1]
        threading.Thread(target=self._listen, args=(listener,), daemon=True).start()

    def _listen(self, listener: socket.socket) -> None:
        while True:
            connection, _address = listener.accept()
            self.called = True
            connection.close()

    def _state(self) -> Iterator[tuple[str, str]]:
        for folder, folders, files in os.walk(self.home):
            for name in (*folders, *files):
                path = Path(folder, name)
                state = path.lstat()
                told = (
                    f"{state.st_size} {state.st_mtime_ns}"
                    if not path.is_dir() or path.is_symlink()
                    else ""
                )
                yield str(path.relative_to(self.home)), f"{state.st_mode:o} {told}"

    def accept(self) -> None:
        """Take what is there now for what was there from the beginning."""
        shutil.rmtree(self._pristine)
        shutil.copytree(self.home, self._pristine, symlinks=True)
        self._before = dict(self._state())

    def changed(self) -> dict[str, bool]:
        """Return what is not as it was, and whether it was not there; put all of it back."""
        now, before = dict(self._state()), self._before
        names = sorted(now.keys() | before.keys())
        found = {name: name not in before for name in names if now.get(name) != before.get(name)}
        if found:
            shutil.rmtree(self.home)
            shutil.copytree(self._pristine, self.home, symlinks=True)
            self._before = dict(self._state())
        return found


def may_change(name: str, mode: str, *, new: bool, sandboxed: bool) -> bool:
    """Whether a command that ran unasked may have changed a file. A new one that git ignores is build output."""
    if not sandboxed or mode == "plan" or not name.startswith("project"):
        return False
    parts = name.split("/")
    if any(part in OUTPUTS for part in parts) or name.endswith(OUTPUT_FILES):
        return True
    kept = {".git", ".husky", ".vscode", ".env", "sub", "link-env"}
    if not kept.isdisjoint(parts) or parts[-1].startswith(".env"):
        return False
    return new if {"data", "keys"}.intersection(parts) else mode == "auto-edit"


def held_by(form: str, aviary: Aviary, place: Path) -> RecordingSandbox:
    """Return what holds commands: nothing, a layer, a copy, or Landlock."""
    find: Callable[[], SandboxState] | None = None
    if form == "none":
        find = lambda: SandboxState(None, reason="none")  # noqa: E731
    elif form != "layer":
        find = lambda: state_of(form, place)  # noqa: E731
    sandbox = RecordingSandbox(
        SandboxSettings(), cache=place / "cache", home=aviary.home, find=find
    )
    if sandbox.is_layered(View()) != (form in JUDGED) or sandbox.active != (form != "none"):
        raise SystemExit(f"this machine has no {form}: {sandbox.state.reason}")
    return sandbox


async def in_foreground(command: str, context: ToolContext) -> str:
    """Run a command as the model's call does."""
    return (await BashTool().run(BashInput(command=command, timeout=SECONDS), context)).output


async def in_background(command: str, context: ToolContext) -> str:
    """Run a command as a job to its end, and look at it before."""
    context.jobs = Jobs()
    try:
        result = await BashTool().run(BashInput(command=command, background=True), context)
        (state,) = context.jobs
        job = context.jobs.find(state.id)
        await job.look()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SECONDS):
                await job.ended.wait()
        return result.output + job.tail(100_000) + job.note
    finally:
        await context.jobs.aclose()


async def in_hook(command: str, context: ToolContext) -> str:
    """Run a command as a hook of a project, which refuses a call with all it has to say."""
    asked = f"{{ {command}\n}} >&2\nexit 2"
    settings = HookSettings(event="before_tool", command=asked, timeout=SECONDS, sandboxed=True)
    (hook,) = from_settings([settings], context.project, context.environment or {}).handlers
    assert isinstance(hook, CommandHook)
    hook = replace(hook, containment=Containment(context.sandbox, lambda: context.view))
    try:
        return str(await hook(BeforeTool(about=About(), call_id="1", tool="read", arguments={})))
    except HookError as error:
        return str(error)


async def in_tool_file(command: str, context: ToolContext) -> str:
    """Run a command from a function of a tool file."""
    source = (
        "import subprocess\ndef go(command: str) -> str:\n    'Run.'\n"
        "    return subprocess.run(command, shell=True, capture_output=True).stdout.decode('utf-8', 'replace')\n"
    )
    path = context.project / "tool.py"
    context.view = view_of_file(path, context, context.sandbox)
    request = {"source": source, "function": "go", "arguments": {"command": command}}
    environment = dict(context.environment or {})
    ended = await run_file(
        path, request, context, context.sandbox, environment, name="go", seconds=SECONDS
    )
    return f"{ended.printed}{ended.answer.text if ended.answer else ''}"


Way = Callable[[str, ToolContext], Awaitable[str]]
WAYS: tuple[Way, ...] = (in_foreground, in_background, in_hook, in_tool_file)


async def watch(place: Path, seed: int, *, lines: int, form: str) -> Seen:
    """Run so many lines that the rules let run, modes and ways in turn, and return what came of it."""
    aviary, writer, seen = Aviary(place), Lines(seed), Seen()
    os.environ["HOME"] = str(aviary.home)
    sandbox, sandboxed = held_by(form, aviary, place), form != "none"
    environ = {
        "PATH": os.defpath,
        "HOME": str(aviary.home),
        "API_KEY": token("environment"),
        "LANG": "C.UTF-8",
    }
    seen.held_by = form
    tokens = {
        token(name): name
        for name in (*SECRETS, "environment", *(() if sandboxed else ("history",)))
    }
    modes = ("build", "plan", "auto-edit")
    ways = WAYS if sandboxed else WAYS[:1]
    while seen.ran < lines and seen.judged < 400 * lines:
        mode, run, command = modes[seen.ran % 3], ways[seen.ran // 3 % len(ways)], writer.line()
        seen.judged += 1
        context = Workspace(aviary.project, sandbox=sandbox, environ=environ).context()
        context.view = view_in_mode(DEFAULT_RULES, mode)
        try:
            needs = needs_of(BashTool(), BashInput(command=command, timeout=SECONDS), context)
        except ToolError:
            continue
        if not needs or any(
            decide_in_mode(need, DEFAULT_RULES, mode, "bash").action is not Action.ALLOW
            for need in needs
        ):
            continue
        context.allowed = frozenset((need.permission, need.pattern) for need in needs)
        context.harmless = all(need.harmless for need in needs)
        seen.ran += 1
        try:
            output = await run(command, context)
        except ToolError as error:
            output = str(error)
        seen.stopped += "[Stopped after" in output
        faults = [f"shows {name}" for text, name in tokens.items() if text in output]
        faults += [
            f"changes {name}"
            for name, new in aviary.changed().items()
            if not may_change(name, mode, new=new, sandboxed=sandboxed)
        ]
        if aviary.called:
            faults.append("reaches the network")
            aviary.called = False
        seen.faults += [f"{mode}, {run.__name__}: {command!r} {fault}" for fault in faults]
    return seen


def main() -> None:
    """Do what standard input asks for."""
    asked = json.load(sys.stdin)
    seen = asyncio.run(
        watch(Path(asked["place"]), asked["seed"], lines=asked["lines"], form=asked["form"])
    )
    json.dump(asdict(seen), sys.stdout)


if __name__ == "__main__":
    main()
