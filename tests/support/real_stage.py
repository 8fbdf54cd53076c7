"""The application on a real agent with a scripted model."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from tests.support.agents import Harness, make_agent
from tests.support.scripted_client import Call, Reply, Script, ScriptedClient
from tests.support.ui_app import Stage, make_stage, screen_text, until
from tui_agent.session.entries import Usage

SUMMARY = "## Goal\n\nFind why the redirect loses its query.\n\n## Next Steps\n\n1. Write a test.\n"


@dataclass
class RealStage(Stage):
    """A stage whose agent is real."""

    harness: Harness = field(kw_only=True)
    client: ScriptedClient = field(kw_only=True)

    @property
    def screen(self) -> Any:
        return self.app.screen

    def text(self) -> str:
        return "\n".join(line.rstrip() for line in screen_text(self).split("\n"))

    @asynccontextmanager
    async def run(
        self, size: tuple[int, int] = (100, 30), *, after: Iterable[str] = ()
    ) -> AsyncIterator[Pilot[int]]:
        """Run the application; the turns before, which begin with these messages, are had without a screen."""
        for text in after:
            await self.harness.say(text)
        async with super().run(size) as pilot:
            yield pilot

    async def say(self, text: str, pilot: Any) -> None:
        await self.harness.say(text)
        await pilot.pause()

    async def until_text(self, text: str, pilot: Any) -> None:
        await until(lambda: text in self.text(), pilot)


def real_stage(
    tmp_path: Path, script: Script, *, services: dict[str, Any] | None = None, **agent: Any
) -> RealStage:
    client = ScriptedClient(script)
    harness = make_agent(tmp_path, client, **agent)
    if isinstance(script, list):
        # A summary prepared beside the steps, which take no time here, would take one of their replies.
        harness.agent.context.compactor.prepared.is_wanted = lambda: False
    given = {
        "store": harness.store,
        "open_session": lambda _request: harness.session,
        "make_agent": lambda _session: harness.agent,
        "close_session": lambda _session: None,
        **(services or {}),
    }
    return RealStage(
        **vars(make_stage(tmp_path / "stage", **given)), harness=harness, client=client
    )


def working_script(turns: int = 1, *, lines: int = 120) -> list[Reply]:
    """Return turns in which the model reads a file, runs a command and answers."""
    usage = Usage(input=800, cache_read=7_200, output=120)
    first = Usage(input=1_500, output=120)
    replies: list[Reply] = []
    for turn in range(turns):
        path = f"module_{turn}.py"
        replies += [
            Reply(
                "I look at it.",
                (Call("read", f'{{"path": "{path}"}}'),),
                usage=usage if turn else first,
            ),
            Reply("", (Call("bash", f'{{"command": "seq 1 {lines}"}}'),), usage=usage),
            Reply(
                f"Module {turn} drops **next** because it was built from a constant.", usage=usage
            ),
        ]
    return replies


def looks(turns: int) -> list[str]:
    return [f"Look at module {turn}." for turn in range(turns)]


def write_modules(tmp_path: Path, turns: int = 1) -> None:
    project = tmp_path / "project"
    project.mkdir(exist_ok=True)
    for turn in range(turns):
        body = "\n".join(
            f"def step_{number}(value):\n    return value + {number}" for number in range(60)
        )
        (project / f"module_{turn}.py").write_text(f'"""Module {turn}."""\n\n{body}\n')


async def map_drawn(screen: Any, pilot: Any) -> None:
    """Wait until the context map is going to show nothing more."""

    def is_drawn() -> bool:
        works = any(worker.node is screen and worker.is_running for worker in screen.workers)
        return screen.is_drawn and not works

    await until(is_drawn, pilot)
