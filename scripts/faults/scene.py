"""A place with a session file and a project, and an agent that works there."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.agents import MODEL, YES, FixedDirectory
from tests.support.request_validator import validate
from tests.support.scripted_client import Call, Reply, Script, ScriptedClient
from tui_agent.agent.agent import Agent
from tui_agent.agent.calls.repetition import ANSWER_PATTERN
from tui_agent.agent.checkpoints.recorder import SnapshotStore
from tui_agent.agent.events import AgentEvent, PermissionAsked
from tui_agent.agent.permissions import Action, Rule
from tui_agent.agent.ports import AgentPorts
from tui_agent.resources import prompt
from tui_agent.session.session import Session
from tui_agent.session.store import Store
from tui_agent.tools.registry import builtin_tools

SUMMARY = "## Goal\n\nFind why the redirect loses its query.\n\n## Next Steps\n\n1. Write a test.\n"
FILES = 12
"""Files of the project that turns change."""
WINDOW = 40_000


@dataclass(frozen=True)
class Place:
    """A directory with ``sessions.db`` and ``project``."""

    root: Path

    @property
    def file(self) -> Path:
        return self.root / "sessions.db"

    @property
    def project(self) -> Path:
        return self.root / "project"

    def store(self) -> Store:
        return Store(self.file)

    @contextmanager
    def session(self) -> Iterator[Session]:
        """The oldest session, to be read."""
        with self.store() as store:
            yield Session(store, oldest(store), estimate=lambda _entry: 1)


def oldest(store: Store) -> str:
    """Return the id of the session that everything happens to."""
    return min(store.sessions(), key=lambda info: info.created_at).id


def edits(turn: int) -> list[Reply]:
    """Return a turn in which a command changes every file and an edit one more."""
    change = f"for n in $(seq {FILES}); do echo 'line {turn}' >> file$n.txt; done; seq {turn} 2500"
    write = {"path": f"new{turn}.txt", "content": f"made in turn {turn}\n" * 40}
    return [
        Reply(
            f"I change the files for the {turn}th time.",
            (Call("bash", json.dumps({"command": change})),),
        ),
        Reply("", (Call("write", json.dumps(write)),)),
        Reply(f"Turn {turn} is done: " + "all files have one line more. " * 20),
    ]


def script(turns: int) -> Script:
    """Return a model that edits in its first ``turns`` turns, answers after that, and summarises when asked to."""
    replies = iter([reply for turn in range(turns) for reply in edits(turn)])

    def answer(request: object) -> Reply:
        if not getattr(request, "tools", ()):
            return Reply(SUMMARY)
        return next(replies, Reply("There is nothing left to do. " * 30))

    return answer


@asynccontextmanager
async def an_agent(
    place: Place, client: ScriptedClient, *, window: int = WINDOW, take_over: bool = False
) -> AsyncIterator[Agent]:
    """An agent that works on the oldest session, or on a new one where there is none; it allows everything."""
    place.project.mkdir(exist_ok=True, parents=True)
    store = place.store()
    session_id = oldest(store) if store.sessions() else store.create_session(place.project).id
    directory = FixedDirectory(window)
    session = Session(store, session_id, estimate=directory.counter(MODEL).estimate)
    session.hold(take_over=take_over)
    session.recover()
    ports = AgentPorts(
        client=client,
        tools=builtin_tools(),
        directory=directory,
        prompt=prompt,
        cwd=place.project,
        project=place.project,
        put_blob=store.put_blob,
        blob=store.blob,
        environment={"PATH": "/usr/bin:/bin"},
        checkpoints=SnapshotStore(store.put_blob, store.blob),
        copies=place.root / "races",
        rules=(Rule("doom_loop", ANSWER_PATTERN, Action.ALLOW, "default"),),
    )
    agent = Agent(session, ports, model=MODEL)

    def allow(event: AgentEvent) -> None:
        if isinstance(event, PermissionAsked):
            asyncio.get_running_loop().call_soon(
                agent.answer_permission, event.request.call_id, YES
            )

    agent.channel.subscribe(allow)
    try:
        yield agent
    finally:
        await agent.aclose()
        session.release()
        store.close()


async def work(agent: Agent, texts: Sequence[str]) -> None:
    """Have turns."""
    for text in texts:
        agent.submit(text)
        await agent.wait_idle()


async def go_on(place: Place) -> None:
    """Have one more turn on what is left; the request it sends must be one a strict server takes."""
    client = ScriptedClient(script(1))
    async with an_agent(place, client) as agent:
        await work(agent, ["Go on."])
    for request in client.requests:
        validate(request)


def files(root: Path) -> dict[str, bytes]:
    """Return every file below a directory."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
