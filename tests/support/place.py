"""A place to run the real program in: directories of its own, a configuration, the programs started there."""

import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.terminal import Terminal

PROMPT_HINT = "Ask anything"
MODEL = "openai/scripted"

CONFIG = """
model = "{model}"
[models."{model}"]
base_url = "{url}"
api_key = "sk-of-the-test"
context_window = 100000
[retry]
attempts = 1
[ui]
reduced_motion = true
permission_grace = 0
typing_pause = 0
"""


@dataclass
class Place:
    """Directories of one user on one machine, and the programs started there."""

    root: Path
    terminals: list[Terminal] = field(default_factory=list)

    projects: int = 0
    variables: dict[str, str] = field(default_factory=dict)
    """More of the environment that programs are started with."""

    def __post_init__(self) -> None:
        for name in ("config", "data", "scratch"):
            (self.root / name).mkdir()
        self.configure("http://127.0.0.1:9/v1")
        self.move_to_new_project()

    @property
    def project(self) -> Path:
        """The directory programs are started in."""
        return self.root / f"project{self.projects}"

    def move_to_new_project(self) -> None:
        """Work in an empty directory from now on."""
        self.projects += 1
        self.project.mkdir()

    @property
    def env(self) -> dict[str, str]:
        return {
            "HOME": str(self.root),
            "TMPDIR": str(self.root / "scratch"),
            "TUI_AGENT_CONFIG_DIR": str(self.root / "config"),
            "TUI_AGENT_DATA_DIR": str(self.root / "data"),
            "TEXTUAL_ANIMATIONS": "none",
            **self.variables,
        }

    def configure(self, url: str, *, more: str = "") -> None:
        """Write the user's configuration: a model behind an address."""
        text = CONFIG.format(model=MODEL, url=url) + more
        path = self.root / "config" / "config.toml"
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)

    def start(self, *arguments: str, size: tuple[int, int] = (100, 30)) -> Terminal:
        """Start the program in a terminal and wait for its prompt."""
        terminal = self.open([sys.executable, "-m", "tui_agent", *arguments], size=size)
        terminal.wait_for(PROMPT_HINT)
        return terminal

    def open(
        self, command: list[str], *, size: tuple[int, int] = (100, 30), **variables: str
    ) -> Terminal:
        """Start any command in a terminal that is closed with the others."""
        terminal = Terminal(command, size=size, env={**self.env, **variables}, cwd=self.project)
        self.terminals.append(terminal)
        return terminal

    def run(self, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        """Run the program without a terminal until it ends."""
        return subprocess.run(
            [sys.executable, "-m", "tui_agent", *arguments],
            cwd=self.project,
            env={"PATH": os.environ["PATH"], **self.env},
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
        )

    def report(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start a run that tells what happens in lines of JSON; use it in a ``with`` block."""
        return subprocess.Popen(
            [sys.executable, "-m", "tui_agent", "--json", *arguments],
            cwd=self.project,
            env={"PATH": os.environ["PATH"], **self.env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def killed(self, sign: str, *arguments: str) -> str:
        """Kill a run without a warning once it reports ``sign``; return the id of its session."""
        with self.report(*arguments) as process:
            assert process.stdout
            late = threading.Timer(30, process.kill)
            late.start()
            first = process.stdout.readline()
            came = any(sign in line for line in process.stdout)
            late.cancel()
            process.kill()
        assert came, f"{sign} never came"
        assert process.returncode == -9
        return str(json.loads(first)["id"])

    def close(self) -> None:
        """End every program that still runs."""
        while self.terminals:
            self.terminals.pop().close()
