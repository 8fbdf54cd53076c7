"""The application with a real agent and a scripted model, on a session with branches."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from textual.screen import Screen

from tests.support.agents import MODEL, FixedDirectory, ports_of
from tests.support.scripted_client import Reply, ScriptedClient
from tests.support.stores import open_store
from tests.support.texts import said
from tests.support.ui_app import HOME, NOW, STILL, Stage, make_stage, until
from tui_agent.agent.agent import Agent
from tui_agent.agent.checkpoints.file_snapshots import digest_of
from tui_agent.agent.checkpoints.recorder import SnapshotStore
from tui_agent.app.services import FirstView, OpenRequest
from tui_agent.session.entries import (
    AssistantEntry,
    CheckpointEntry,
    CompactionEntry,
    Entry,
    FileChange,
    SystemEntry,
    TextPart,
    ToolCallPart,
    ToolMetadata,
    ToolResultEntry,
    ToolStatus,
)
from tui_agent.session.session import Session
from tui_agent.ui.screens.dialogs import ChoiceScreen
from tui_agent.ui.screens.tree import TreeScreen
from tui_agent.ui.widgets.tree.session_tree import SessionTree

SUMMARY = "## Goal\nTried middleware; the order of the middleware was wrong.\n"


def answered(text: str, *calls: ToolCallPart, cost: float | None = 0.01) -> AssistantEntry:
    return AssistantEntry(
        parts=(*([TextPart(text=text)] if text else []), *calls), model=MODEL, cost=cost
    )


def called(
    number: int, tool: str, title: str, **meta: Any
) -> tuple[AssistantEntry, ToolResultEntry]:
    """Return a call without a word, and its result."""
    call = ToolCallPart(call_id=f"c{number}", tool=tool, arguments=f'{{"path": "{title}"}}')
    result = ToolResultEntry(
        call_id=f"c{number}", tool=tool, status=ToolStatus.COMPLETED, output=f"output of {tool} {number}", title=title,
        metadata=ToolMetadata(**meta),
    )  # fmt: skip
    return answered("", call, cost=None), result


def login() -> list[Entry]:
    """Return the trunk: a question, three calls in a row, an answer."""
    return [
        SystemEntry(blocks=("You are an agent.",), model=MODEL),
        said("the login redirect loses the query string"),
        *called(1, "grep", '"next="'),
        *called(2, "read", "src/auth/views.py"),
        *called(3, "edit", "src/auth/views.py", path="src/auth/views.py", additions=3, deletions=1),
        answered("The redirect dropped `next` because it was built from a constant."),
    ]


def plant(session: Session) -> dict[str, int]:
    """Grow the tree of INTERFACE.md; returns the entries that tests go to by name."""
    trunk = session.append_many(login())
    fork = trunk[-1].id
    tests = session.append_many(
        [said("write a test for it"), answered("added tests/test_redirect.py")]
    )
    session.move(fork)
    other = session.append_many(
        [said("try middleware instead"), answered("Which one?"), said("the session one")]
    )
    late: list[Entry] = []
    for number in range(10, 19):
        late += called(number, "bash", f"make step{number}")
    middle = session.append_many([*late, answered("The xylophone plays: 中文字 and more.")])
    sizes = {"tokens_before": 96_000, "tokens_after": 14_000}
    summary, kept = "## Goal\nMiddleware is done.", middle[-1].id
    compaction = session.append(
        CompactionEntry(summary=summary, first_kept_id=kept, trigger="threshold", **sizes)
    )
    end = session.append(answered("Done with middleware."))
    session.move(tests[-1].id)
    session.label(tests[0].id, "green")
    return {
        "question": trunk[1].id, "run": trunk[-2].id, "fork": fork, "test": tests[0].id, "leaf": tests[-1].id,
        "middleware": other[0].id, "which": other[1].id, "xylophone": middle[-1].id, "compaction": compaction.id,
        "end": end.id,
    }  # fmt: skip


FILES = {
    "src/auth/views.py": (
        b"def login():\n    return redirect('/')\n",
        b"def login():\n    return go(next)\n",
    ),
    "tests/test_redirect.py": (None, b"def test_next():\n    assert True\n"),
    "old.cfg": (b"[old]\n", None),
    "notes.md": (b"# Notes\n", b"# Notes\nby the agent\n"),
}
"""What the last turn of ``plant_files`` changed: each file before and after."""
MINE = b"# Notes\nmine\n"
"""What the user made of notes.md since."""


def plant_files(session: Session) -> dict[str, int]:
    """Grow the tree of ``plant``, then a turn that changed files."""
    names = plant(session)
    changes = []
    for path, (before, after) in FILES.items():
        modes = {"before_mode": 0o644 if before else 0, "after_mode": 0o644 if after else 0}
        digests = {"before": before and digest_of(before), "after": after and digest_of(after)}
        changes.append(FileChange(path=path, **digests, **modes))
    turn = [
        said("fix the files"),
        *called(30, "bash", "make fix"),
        CheckpointEntry(files=tuple(changes)),
        answered("Fixed."),
    ]
    added = session.append_many(turn)
    return names | {"before": names["leaf"], "fix": added[0].id, "leaf": added[-1].id}


def write_files(stage: "TreeStage") -> Path:
    """Put the files of ``plant_files`` as they are after it into the project, and their images into the store."""
    root = stage.root
    for path, images in FILES.items():
        for image in filter(None, images):
            stage.stage.store.put_blob(image)
        if images[1] is not None:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(images[1])
            (root / path).chmod(0o644)
    (root / "notes.md").write_bytes(MINE)
    return root


@dataclass
class TreeStage:
    """The application, the session in it, and its entries by name."""

    stage: Stage
    client: ScriptedClient
    names: dict[str, int]
    session_id: str
    root: Path
    """The project."""
    pilot: Any = None
    """What presses keys, while the application runs."""

    @property
    def agent(self) -> Agent:
        agent: Any = self.stage.main.agent
        assert isinstance(agent, Agent)
        return agent

    @property
    def session(self) -> Session:
        return self.agent.session

    @property
    def screen(self) -> TreeScreen:
        return next(
            screen for screen in self.stage.app.screen_stack if isinstance(screen, TreeScreen)
        )

    @property
    def tree(self) -> SessionTree:
        return self.screen.session_tree

    @property
    def top(self) -> Any:
        return self.stage.app.screen

    @property
    def is_open(self) -> bool:
        return any(isinstance(screen, TreeScreen) for screen in self.stage.app.screen_stack)

    def at(self) -> int:
        line = self.tree.line
        assert line is not None
        return line.entry

    def rows(self) -> list[str]:
        return [
            self.tree.render_line(y).text.rstrip() for y in range(min(self.tree.outline.total, 200))
        ]

    def stored(self) -> tuple[Any, ...]:
        """Return everything a navigation could have changed."""
        session = Session(
            self.stage.store, self.session_id, estimate=lambda _entry: 1, read_only=True
        )
        headers, sessions = list(session.skeleton()), self.stage.store.sessions()
        return session.leaf, headers, session.labels(), session.moves(), len(sessions)

    def conversation(self) -> str:
        return "\n".join(row.line.text for row in self.stage.view.transcript.visible_rows())

    @asynccontextmanager
    async def run(
        self, size: tuple[int, int] = (80, 24), **arguments: Any
    ) -> AsyncIterator[Pilot[int]]:
        async with self.stage.run(size, **arguments) as self.pilot:
            await until(lambda: self.stage.main.agent is not None, self.pilot)
            yield self.pilot

    @asynccontextmanager
    async def opened(
        self, *keys: str, at: str = "", size: tuple[int, int] = (80, 24), **arguments: Any
    ) -> AsyncIterator[Pilot[int]]:
        """Run the application with the tree open, as ``open`` does it."""
        async with self.run(size, **arguments) as pilot:
            await self.open(*keys, at=at)
            yield pilot

    async def open(self, *keys: str, at: str = "") -> None:
        """Open the tree, put the cursor on an entry if one is named, and press keys."""
        await self.stage.main.controller.run("tree", "")
        await until(
            lambda: self.is_open and self.screen.is_mounted and self.tree.size.height, self.pilot
        )
        await self.pilot.pause()
        if at:
            await self.highlight(at)
        await self.pilot.press(*keys)

    async def highlight(self, name: str) -> None:
        self.tree.go_to_entry(self.names[name])
        await self.pilot.pause()

    async def asked(self, kind: type[Screen[Any]] = ChoiceScreen) -> Any:
        """Wait for a dialog, by itself the one about a summary, and return it."""
        await until(lambda: isinstance(self.top, kind) and self.top.is_mounted, self.pilot)
        await self.pilot.pause()
        return self.top

    async def closed(self) -> None:
        await until(lambda: not self.is_open, self.pilot)
        await self.pilot.pause()

    async def go(self, *, key: str = "enter", answer: str = "1") -> None:
        """Go to the entry under the cursor: by itself with Enter and without a summary."""
        await self.pilot.press(key)
        await self.asked()
        await self.pilot.press(answer)
        await self.closed()


def tree_stage(
    tmp_path: Path,
    script: Sequence[Reply] | Any = (),
    *,
    theme: str = "textual-dark",
    planting: Any = plant,
) -> TreeStage:
    """Return an application that has not been run yet, the session of ``plant`` in it."""
    store = open_store(tmp_path / "sessions.db", clock=lambda: int(NOW * 1000))
    directory = FixedDirectory()
    session = Session(
        store,
        store.create_session(HOME, title="login").id,
        estimate=directory.counter(MODEL).estimate,
    )
    names = planting(session)
    session_id = session.id
    store.close()
    client = ScriptedClient(
        script or (lambda request: Reply("Answer.") if request.tools else Reply(SUMMARY))
    )
    project = tmp_path / "project"
    project.mkdir(exist_ok=True)

    def make_agent(opened: Any) -> Agent:
        checkpoints = SnapshotStore(opened.store.put_blob, opened.store.blob)
        ports = ports_of(
            opened,
            client,
            project,
            directory=directory,
            clock=lambda: int(NOW * 1000),
            checkpoints=checkpoints,
        )
        return Agent(opened, ports, model=MODEL)

    stage = make_stage(
        tmp_path,
        start=FirstView(OpenRequest(session_id)),
        settings=STILL.model_copy(update={"theme": theme}),
        make_agent=make_agent,
    )
    return TreeStage(stage, client, names, session_id, project)
