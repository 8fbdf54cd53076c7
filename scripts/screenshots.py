"""Draws the pictures in docs/images: the real application with the demo model, every clock held still.

The same checkout gives the same files on any machine: sizes, times and directories are fixed.
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
HOME = Path("/home/ada")
"""Home directory that the pictures show; nothing is written there."""
SHOWN = HOME / "src" / "shop"
"""Where the project seems to be."""

sys.path.insert(0, str(ROOT))
# Before the imports below, which read them.
os.environ |= {"HOME": str(HOME), "TZ": "UTC"}

from textual.message import Message
from textual.pilot import Pilot
from textual.screen import Screen

from tests.support import settled  # noqa: F401 - a pause ends when everything is painted
from tests.support.services import app_services
from tui_agent.agent.agent import Agent
from tui_agent.agent.checkpoints.recorder import SnapshotStore
from tui_agent.agent.events import PermissionAsked, RunEnded
from tui_agent.agent.ports import AgentPorts
from tui_agent.agent.race.race import RaceOrder
from tui_agent.agent.race.specs import RunnerSpec
from tui_agent.app import race_commands
from tui_agent.app.services import AppServices, FirstView, Look, OpenRequest
from tui_agent.config import Config, UiSettings
from tui_agent.context.tokens import TokenCounter
from tui_agent.model.demo import DEMO_MODEL, DemoCatalog, DemoClient, create_demo_workspace
from tui_agent.model.directory import CatalogDirectory
from tui_agent.model.learnt import LearntFacts
from tui_agent.resources import prompt
from tui_agent.session.entries import TextPart
from tui_agent.session.session import Session
from tui_agent.session.store import Store
from tui_agent.tools.registry import builtin_tools
from tui_agent.ui.app import TuiAgentApp
from tui_agent.ui.screens.compact import CompactScreen
from tui_agent.ui.screens.context import ContextScreen
from tui_agent.ui.screens.race import RaceScreen
from tui_agent.ui.screens.tree import TreeScreen
from tui_agent.ui.widgets.session_view import SessionView
from tui_agent.ui.widgets.transcript.transcript import Transcript

NOW = 1_790_000_000
"""Seconds since the epoch on every clock."""
WIDE = (120, 36)
TIMEOUT = 60

PYTHON = """#!/bin/sh
# Runs the real interpreter; only the time that the tests took and the place are always the same.
"{python}" -B "$@" 2>&1 | sed -E -e 's/ in [0-9.]+s$/ in 0.001s/' -e "s|$PWD|{shown}|g"
"""

CHECKED = """#!/bin/sh
# The same, ending as the interpreter does.
said=$("{python}" -B "$@" 2>&1); code=$?
echo "$said" | sed -E -e 's/ in [0-9.]+s$/ in 0.001s/' -e "s|$PWD|{shown}|g"
exit $code
"""


def shown_prompt(name: str) -> str:
    """Return a prompt that names the place shown instead of the real one, so that it counts the same everywhere."""
    return (
        prompt(name)
        .replace("$cwd", str(SHOWN))
        .replace("$project", str(SHOWN))
        .replace("$platform", "Linux x86_64")
    )


@dataclass
class Scene:
    """The application on its way to a picture."""

    app: TuiAgentApp
    pilot: Pilot[int]
    agents: list[Agent]

    async def say(self, text: str, until: type[object], *, keys: tuple[str, ...] = ()) -> None:
        """Send a message, press a key for each question, and wait for an event after the last."""
        await self.after(
            PermissionAsked if keys else until, lambda: self.app.main.controller.outbox.send(text)
        )
        for position, key in enumerate(keys, start=1):
            event = PermissionAsked if position < len(keys) else until
            await self.after(event, lambda key=key: self.pilot.press(key))

    async def opened(self, key: str, screen: type[Screen[object]]) -> None:
        """Press a key and wait until it has brought a screen."""
        await self.pilot.press(key)
        async with asyncio.timeout(TIMEOUT):
            while not isinstance(self.app.screen, screen):
                await self.pilot.pause(0.05)

    async def after(
        self, event: type[object], action: Callable[[], Awaitable[None] | None]
    ) -> None:
        """Do something and wait until an event of the agent has reached the screen."""
        happened = asyncio.Event()
        leave = self.agents[-1].channel.subscribe(
            lambda seen: happened.set() if isinstance(seen, event) else None
        )
        done = action()
        if done is not None:
            await done
        await asyncio.wait_for(happened.wait(), TIMEOUT)
        leave()
        await self.pilot.pause()
        await self.pilot.pause()


async def permission(scene: Scene) -> None:
    """A question with a diff."""
    await scene.say("fix the bug", PermissionAsked, keys=("y",))


async def doom_loop(scene: Scene) -> None:
    """The model repeats a call: the question before it goes on."""
    await scene.say("go round in circles", PermissionAsked)


async def tree(scene: Scene) -> None:
    """Three branches, one of them left with a summary, and the preview of the highlighted entry."""
    await scene.say("explain this project", RunEnded)
    agent = scene.agents[-1]
    fork = agent.session.leaf
    await scene.say("fix the bug", RunEnded, keys=("y", "y", "y"))
    agent.session.label(agent.session.leaf or 0, "fixed")
    await agent.navigator.move(agent.navigator.plan(fork), focus="")
    await scene.say("show markdown", RunEnded)
    await agent.navigator.go(fork)
    await scene.say("run the tests", RunEnded, keys=("y",))
    await scene.opened("ctrl+t", TreeScreen)


async def context_map(scene: Scene) -> None:
    """What fills the window after old outputs were cleared."""
    await fill(scene)
    await scene.opened("ctrl+g", ContextScreen)


async def markers(scene: Scene) -> None:
    """The conversation after pruning and a compaction."""
    await fill(scene)
    await scene.agents[-1].compact()
    await scene.pilot.pause()


async def compaction(scene: Scene) -> None:
    """The dialog before a compaction: what goes, what stays."""
    await fill(scene)
    await scene.opened("f4", CompactScreen)


async def race(scene: Scene) -> None:
    """Three runners have ended, one of them passed the check."""
    agent, controller = scene.agents[-1], scene.app.main.controller
    agent.change_mode("auto-edit")
    await scene.say("explain this project", RunEnded)
    parts, specs = (TextPart(text="give a discount"),), (RunnerSpec(),) * 3
    order = RaceOrder(
        "give a discount", parts, specs, agent.session.leaf, "python3 -m unittest tests.discount"
    )
    running = await race_commands.begin(controller, order)
    await asyncio.wait_for(running.over.wait(), TIMEOUT)
    # Who answered first, and in how long, is another each time.
    records = sorted(
        (runner.record for runner in running.runners), key=lambda record: record.tokens
    )
    for runner, record in zip(running.runners, records, strict=True):
        told = {"name": f"same {runner.number}", "seconds": 11.0 + 3 * runner.number}
        runner.record = record.model_copy(update=told)
    race_commands.show(controller)
    async with asyncio.timeout(TIMEOUT):
        while not (isinstance(scene.app.screen, RaceScreen) and scene.app.screen.number):
            await scene.pilot.pause(0.05)


async def fill(scene: Scene) -> None:
    """Fill the window until outputs are cleared."""
    await scene.say("explain this project", RunEnded)
    await scene.say("fill the window", RunEnded)


PICTURES: dict[str, tuple[tuple[int, int], Callable[[Scene], Awaitable[None]]]] = {
    "permission": (WIDE, permission),
    "doom-loop": (WIDE, doom_loop),
    "tree": ((120, 24), tree),
    "race": ((120, 20), race),
    "context-map": (WIDE, context_map),
    "markers": (WIDE, markers),
    "compaction": (WIDE, compaction),
}
"""File name, size of the terminal, and how to get there."""


@asynccontextmanager
async def stage(root: Path, size: tuple[int, int], *, races: bool = False):  # type: ignore[no-untyped-def]  # asynccontextmanager names the type
    """Run the application on a new demo project."""
    project = root / "shop"
    project.mkdir()
    create_demo_workspace(project)
    programs = root / "bin"
    programs.mkdir()
    python = programs / "python3"
    python.write_text(
        (CHECKED if races else PYTHON).format(python=sys.executable, shown=SHOWN), encoding="utf-8"
    )
    python.chmod(0o755)
    store = Store(root / "sessions.db", clock=lambda: NOW * 1000)
    agents: list[Agent] = []

    def open_session(request: OpenRequest) -> Session:
        del request
        return Session(
            store, store.create_session(SHOWN).id, estimate=TokenCounter(DEMO_MODEL).entry
        )

    def make_agent(session: Session) -> Agent:
        ports = AgentPorts(
            client=DemoClient(pace=0),
            tools=builtin_tools(),
            directory=CatalogDirectory(DemoCatalog({}, {}), LearntFacts()),
            prompt=shown_prompt,
            cwd=project,
            project=project,
            put_blob=store.put_blob,
            blob=store.blob,
            environment={"PATH": f"{programs}:/usr/bin:/bin"},
            clock=lambda: NOW * 1000,
            parallel_calls=1,  # else the order of results depends on the machine
            copies=root / "races" if races else None,
            checkpoints=SnapshotStore(store.put_blob, store.blob) if races else None,
        )
        agents.append(Agent(session, ports, model=DEMO_MODEL))
        return agents[-1]

    services = app_services(
        store=store,
        open_session=open_session,
        make_agent=make_agent,
        cwd=SHOWN,
        state_dir=root,
        clock=lambda: float(NOW),
        config=lambda: Config(
            ui=UiSettings(
                theme="textual-dark",
                reduced_motion=True,
                permission_grace=0,
                typing_pause=0,
                cursor_blink=False,
            )
        ),
    )

    async def load() -> tuple[AppServices, FirstView]:
        return services, FirstView()

    app = TuiAgentApp(load, Look("textual-dark", reduced_motion=True))
    opened = asyncio.Event()

    def on_message(message: Message) -> None:
        if isinstance(message, SessionView.Opened):
            opened.set()

    async with app.run_test(size=size, message_hook=on_message) as pilot:
        await asyncio.wait_for(opened.wait(), TIMEOUT)
        yield Scene(app, pilot, agents)
    store.close()


async def see_all(scene: Scene) -> None:
    """Scroll through everything once: heights of what was never seen are estimates, and the scroll bar shows them."""
    transcript = scene.app.main.query_one(Transcript)
    await scene.pilot.pause()
    transcript.scroll_home(animate=False)
    async with asyncio.timeout(TIMEOUT):
        while transcript.scroll_offset.y < transcript.max_scroll_y:
            await scene.pilot.pause()
            transcript.scroll_page_down(animate=False)
    transcript.scroll_end(animate=False)


async def draw(directory: Path, names: Sequence[str]) -> None:
    """Draw pictures into a directory, every one if no name is given."""
    with tempfile.TemporaryDirectory() as name:
        for picture, (size, act) in PICTURES.items():
            if names and picture not in names:
                continue
            root = Path(name) / picture
            root.mkdir()
            async with stage(root, size, races=act is race) as scene:
                await act(scene)
                await see_all(scene)
                await scene.pilot.pause()
                svg = scene.app.export_screenshot(title="tui-agent")
            (directory / f"{picture}.svg").write_text(svg, encoding="utf-8")
            print(f"{picture}.svg")


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    target.mkdir(parents=True, exist_ok=True)
    asyncio.run(draw(target, sys.argv[2:]))
