"""What ``/undo`` takes back and ``/redo`` brings again: the newest thing, whatever a request is made of."""

import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.app.test_race_commands import Told, controller_of, do
from tests.support.agents import Harness, make_agent
from tests.support.processes import git
from tests.support.races import ALLOW, runs, writes
from tests.support.real_stage import SUMMARY
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tests.support.thoroughness import NIGHTLY
from tui_agent.agent.agent_specs import AgentSpec
from tui_agent.app.controller import Controller
from tui_agent.app.frontend import Choice
from tui_agent.app.moves import make_move
from tui_agent.app.rewind_commands import put_files_back
from tui_agent.app.undo_commands import name_of_step
from tui_agent.context.projection import ModelTraits, project
from tui_agent.context.request import ModelRequest, request_bytes
from tui_agent.secret_forms import SecretForms
from tui_agent.session import entries
from tui_agent.session.effort import Effort
from tui_agent.session.errors import NothingToUndo
from tui_agent.session.history import History
from tui_agent.session.redacting import Removal, remove
from tui_agent.session.session import Session
from tui_agent.session.store import Store
from tui_agent.tools.registry import builtin_tools
from tui_agent.tools.task import TaskTool

STEPS = 10_000 if NIGHTLY else 160
IN_A_SESSION = 80
AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@b")
EXPLORER = AgentSpec("explore", "finds and reads", prompt="You explore.", tools=("read", "ls"))
EXPLORE = Call("task", '{"agent": "explore", "task": "Look around."}')
GO_ON = Call("task", '{"agent": "explore", "task": "Look around.", "context": "conversation"}')


def compaction(first_kept: int | None) -> entries.CompactionEntry:
    return entries.CompactionEntry(
        summary="They asked.",
        first_kept_id=first_kept,
        tokens_before=90,
        tokens_after=9,
        trigger="threshold",
    )


class Actor:
    """Does to a session what people and agents do, and knows how everything was before each of it."""

    def __init__(self, harness: Harness, controller: Controller, choose: random.Random) -> None:
        self.harness, self.agent, self.controller, self.choose = (
            harness,
            harness.agent,
            controller,
            choose,
        )
        self.project = Path(harness.session.info.cwd)
        self.past: list[object] = []
        self.future: list[object] = []
        self.next_turn: list[Reply] = []
        self.compacts = False
        self.last_left: int | None = None

    @property
    def session(self) -> Session:
        return self.harness.session

    def reply(self, request: ModelRequest) -> Reply:
        if not request.tools:
            return Reply(SUMMARY)
        if self.compacts:
            # Between the calls and the answer: the message of the turn is summarised in its own turn.
            self.compacts = False
            going_on = entries.UserEntry(
                parts=(entries.TextPart(text="Go on."),), synthetic="continue"
            )
            self.agent.keep(compaction(None), going_on)
        return self.next_turn.pop(0) if self.next_turn else Reply("Done.")

    def state(self) -> tuple[object, ...]:
        """Return the path without the state at its end, the request, the files."""
        ids = list(self.session.path_outline().ids)
        kinds = list(self.session.path_outline().kinds)
        while kinds and entries.KINDS[kinds[-1]].sets_state:
            kinds.pop()
        files = {path.name: path.read_bytes() for path in sorted(self.project.glob("*.txt"))}
        request = request_bytes(project(self.session.active_path(), ModelTraits("test/model")))
        return tuple(ids[: len(kinds)]), request, files

    def reopened(self) -> History:
        """Return what another program finds in the log."""
        session = self.session.beside(self.session.leaf)
        history = History(session.reader)
        for move in session.moves():
            history.apply(move)
        return history.reach(session.leaf)

    def of(self, *kinds: type[object]) -> list[int]:
        return [entry.id for entry in self.session.path() if isinstance(entry, kinds)]

    async def step(self) -> None:
        """Do one thing, or undo or redo one."""
        actions: list[Callable[[], object]] = [
            self.turn, self.turn, self.turn, self.shell, self.prune, self.compact, self.edit, self.move, self.move,
            self.race, self.merge, self.put_back, self.effort,
        ]  # fmt: skip
        action = self.choose.choice(["undo", "undo", "redo", *actions])
        if isinstance(action, str):
            await (self.undo if action == "undo" else self.redo)()
            return
        before, left = self.state(), self.session.leaf
        await action()  # type: ignore[misc]
        if self.state() != before:
            self.past.append(before)
            self.future.clear()
            self.last_left = left

    async def undo(self) -> None:
        now = self.state()
        assert await do(self.controller, "undo")
        if not self.past:
            assert self.state() == now
            assert self.told == "There is nothing to undo."
            return
        self.future.append(now)
        assert self.state() == self.past.pop()

    async def redo(self) -> None:
        now = self.state()
        assert await do(self.controller, "redo")
        if not self.future:
            assert self.state() == now
            assert self.told == "There is nothing to redo."
            return
        self.past.append(now)
        assert self.state() == self.future.pop()

    @property
    def told(self) -> str:
        assert isinstance(self.controller.frontend, Told)
        return self.controller.frontend.words[-1]

    async def turn(self) -> None:
        number = self.choose.randrange(1_000)
        work = (
            (writes(f"f{number % 3}.txt", f"from {number}\n"),),
            (runs(f"echo {number} >> f{number % 3}.txt"), EXPLORE),
            (GO_ON,),
            (),
        )
        calls = self.choose.choice(work)
        self.compacts = bool(calls) and self.choose.random() < 0.3
        self.next_turn = [Reply("Now this.", calls)] if calls else []
        self.controller.outbox.submit(f"Do {number}.")
        ended = await self.harness.ended()
        assert ended.reason == "done", ended
        await self.agent.files.settle()

    async def shell(self) -> None:
        """Run a command of the user, whose changes stay, and one that is restored."""
        (self.project / "own.md").unlink(missing_ok=True)
        restorable = self.choose.random() < 0.5
        name = "f0.txt" if restorable else "own.md"
        await self.agent.run_shell(f"echo {self.choose.random()} > {name}", restorable=restorable)
        assert (self.project / "own.md").exists() is not restorable
        await self.agent.files.settle()

    async def prune(self) -> None:
        if results := self.of(entries.ToolResultEntry):
            self.agent.keep(
                entries.PruneEntry(
                    targets=(self.choose.choice(results),), tokens_freed=9, reason="old"
                )
            )

    async def compact(self) -> None:
        kept = self.of(entries.UserEntry)
        if results := self.of(entries.ToolResultEntry):
            self.agent.keep(
                entries.PruneEntry(targets=(results[0],), tokens_freed=9, reason="compaction"),
                compaction(self.choose.choice([None, *kept])),
            )

    async def edit(self) -> None:
        targets = self.of(entries.UserEntry, entries.AssistantEntry, entries.ToolResultEntry)
        if targets:
            some = self.choose.sample(targets, min(len(targets), self.choose.choice([1, 1, 3])))
            action = self.choose.choice(["pin", "pin", "mask", "drop", "restore", "edit", "edit"])
            if action == "edit":
                text = f"words {self.choose.random()}"
                self.agent.edit_context(some[0], action, text=text)
            else:
                self.agent.edit_context(some[0], action, *some[1:])

    async def effort(self) -> None:
        self.agent.change_effort(self.choose.choice([None, Effort.LOW, Effort.HIGH]))

    async def move(self) -> None:
        target = self.choose.choice(list(self.session.skeleton())).id
        path: Any = self.state()[0]
        if not self.session.entry(target).is_sent or (target,) == path[-1:]:
            return
        plan = self.agent.navigator.plan(target, continue_from_here=True)
        files = await self.agent.files.plan(plan.leaf)
        focus = "" if plan.abandoned and self.choose.random() < 0.4 else None
        await make_move(self.agent, plan, files, focus=focus)

    async def merge(self) -> None:
        others = [one.id for one in self.session.skeleton() if not self.session.on_path(one.id)]
        at = self.choose.choice(others) if others else None
        if at is not None and at != self.last_left and self.session.entry(at).is_sent:
            await self.agent.navigator.merge(at)

    async def race(self) -> None:
        """Take the runner of a race, as its branch is when it has ended."""
        start, name = self.session.leaf, f"f{self.choose.randrange(3)}.txt"
        runner = self.session.beside(start)
        place = self.project / name
        before = place.read_bytes() if place.exists() else None
        runner.append_many(
            (
                entries.UserEntry(parts=(entries.TextPart(text="Race."),)),
                entries.AssistantEntry(parts=(entries.TextPart(text="Won."),), model="test/model"),
                entries.CheckpointEntry(
                    files=(
                        entries.FileChange(
                            path=name,
                            before=None if before is None else self.harness.store.put_blob(before),
                            before_mode=0 if before is None else place.stat().st_mode & 0o7777,
                            after=self.harness.store.put_blob(b"raced\n"),
                            after_mode=0o644,
                        ),
                    )
                ),
            )
        )
        plan = self.agent.navigator.plan(runner.leaf, continue_from_here=True)
        await make_move(self.agent, plan, await self.agent.files.plan(runner.leaf))
        row = entries.RaceRunner(name="same 1", leaf=runner.leaf, state=entries.RunnerState.DONE)
        self.agent.keep(entries.RaceEntry(prompt="Race.", start=start, runners=(row,), taken=1))

    async def put_back(self) -> None:
        said = [
            entry
            for entry in self.session.path()
            if isinstance(entry, entries.UserEntry) and not entry.synthetic
        ]
        if said:
            message = self.choose.choice(said)
            await put_files_back(self.controller, self.agent, message)


async def actor_at(root: Path, seed: int) -> Actor:
    actors: list[Actor] = []
    client = ScriptedClient(lambda request: actors[0].reply(request))  # noqa: PLW0108 - made later
    harness = make_agent(
        root,
        client,
        keeps_files=True,
        rules=ALLOW,
        tools=(*builtin_tools(), TaskTool()),
        agents=(EXPLORER,),
    )
    controller = await controller_of(harness)
    await harness.agent.context.warm()
    harness.agent.context.ensure_head()
    actors.append(Actor(harness, controller, random.Random(seed)))
    return actors[0]


async def test_an_edit_after_a_move_is_counted_by_its_entries(tmp_path: Path) -> None:
    actor = await actor_at(tmp_path, 0)
    agent = actor.agent
    ends = []
    for text in ("one", "two", "three"):
        actor.controller.outbox.submit(text)
        await actor.harness.ended()
        ends.append(actor.session.leaf)
    await agent.navigator.go(ends[1])
    first, second = actor.of(entries.UserEntry)
    agent.edit_context(first, "pin")
    newest = actor.session.history.newest()
    assert newest is not None
    assert name_of_step(actor.session, newest) == f"edit of the context: pin #{first}"
    agent.edit_context(first, "drop", second)
    newest = actor.session.history.newest()
    assert newest is not None
    assert name_of_step(actor.session, newest) == "edit of the context: drop 2 entries"


async def test_a_turn_whose_message_is_damaged_is_undone_and_redone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    actor = await actor_at(tmp_path, 0)
    actor.controller.outbox.submit("one")
    await actor.harness.ended()
    (message,) = actor.of(entries.UserEntry)
    reader = actor.session.reader
    read = reader.entries
    reader.unreadable.add(message)
    monkeypatch.setattr(reader, "entries", lambda ids: read(one for one in ids if one != message))
    words = actor.controller.frontend.words  # type: ignore[attr-defined]
    assert await do(actor.controller, "undo")
    assert words[-1] == f"Undone: everything from #{message} on · /redo brings it back"
    assert await do(actor.controller, "redo")
    assert words[-1] == f"Redone: everything from #{message} on · /undo takes it back"


async def test_a_turn_that_was_summarised_in_itself_is_undone_and_not_the_one_of_a_pinned_message(
    tmp_path: Path,
) -> None:
    actor = await actor_at(tmp_path, 0)
    controller, agent = actor.controller, actor.agent
    for text, calls in (("rule one is tabs", ()), ("fix the bug", (runs("echo 1 > f0.txt"),))):
        actor.compacts, actor.next_turn = bool(calls), [Reply("Now this.", calls)]
        controller.outbox.submit(text)
        await actor.harness.ended()
        agent.edit_context(actor.of(entries.UserEntry)[0], "pin")
    before, help_text = actor.session.leaf, {row.name: row.help for row in controller.commands}
    assert help_text["undo"] == "undo: edit of the context: pin #2"
    assert await do(controller, "undo")
    assert await do(controller, "undo")
    said = "Undone: turn “fix the bug”, f0.txt deleted · /redo brings it back"
    assert said in actor.controller.frontend.words  # type: ignore[attr-defined]
    assert [entry.kind for entry in actor.session.path()][-1] == "context_edit"
    assert {row.name: row.help for row in controller.commands}["redo"] == "redo: turn “fix the bug”"
    assert await do(controller, "redo")
    assert await do(controller, "redo")
    assert actor.session.leaf == before
    await actor.race()
    assert await do(controller, "undo")
    assert actor.told == "Undone: race “Race.”, f1.txt deleted · /redo brings it back"
    await controller.close()


@pytest.mark.parametrize("seed", range(STEPS // IN_A_SESSION))
async def test_any_sequence_is_undone_to_the_bare_head_and_redone(
    tmp_path: Path, seed: int
) -> None:
    actor = await actor_at(tmp_path, seed)
    for _ in range(IN_A_SESSION):
        await actor.step()
        assert actor.reopened() == actor.session.history
    assert actor.session.subagents()
    done = len(actor.past)
    while actor.past:
        await actor.undo()
    assert actor.state()[0] == ()
    await actor.undo()
    for _ in range(done):
        await actor.redo()
    await actor.controller.close()


def ways(store: Store, session_id: str) -> list[int | None]:
    """Return where a session's leaf goes when everything is undone, and then redone."""
    session = Session(store, session_id, estimate=lambda _entry: 1)
    found: list[int | None] = []
    for step in (session.undo, session.redo):
        with suppress(NothingToUndo):
            while True:
                found.append(step())
    return found


async def test_a_redacted_session_is_undone_and_redone_as_before(tmp_path: Path) -> None:
    actor = await actor_at(tmp_path, 3)
    for _ in range(40):
        await actor.step()
    await actor.controller.close()
    store, session_id = actor.harness.store, actor.session.id
    said = next(entry for entry in actor.session.path() if isinstance(entry, entries.UserEntry))
    store.rewrite()
    copy = tmp_path / "copy.db"
    copy.write_bytes(store.path.read_bytes())
    forms = SecretForms([said.text, "from "])
    remove(store, Removal(forms, lambda _entry: 1))
    with Store(copy) as before:
        way = ways(before, session_id)
        assert len(way) > 20
        assert ways(store, session_id) == way
    path = Session(store, session_id, estimate=lambda _entry: 1).path()
    assert said.text not in request_bytes(project(path, ModelTraits("test/model"))).decode()


class Asked(Told):
    """A frontend that keeps what it was asked, and answers as it is told."""

    def __init__(self, answer: str) -> None:
        super().__init__()
        self.answer = answer
        self.asked: list[Choice] = []

    async def ask(self, question: Choice) -> str:  # type: ignore[override]
        self.asked.append(question)
        return self.answer


async def worked_at(root: Path, answer: str, *calls: Call) -> tuple[Actor, Asked]:
    """Return a session in which one turn made some calls."""
    actor = await actor_at(root, 0)
    frontend = Asked(answer)
    actor.controller.frontend = frontend
    actor.next_turn = [Reply("Now this.", calls)]
    actor.controller.outbox.submit("fix the cart")
    await actor.harness.ended()
    await actor.agent.files.settle()
    return actor, frontend


@pytest.mark.parametrize(
    "edited", [(), ("a.txt",), ("b.txt",), ("a.txt", "b.txt"), ("new.txt", "a.txt")]
)
@pytest.mark.parametrize("answer", ["y", "c", "n"])
async def test_undo_asks_only_about_files_that_somebody_else_changed(
    tmp_path: Path, edited: tuple[str, ...], answer: str
) -> None:
    calls = (writes("a.txt", "one\n"), writes("b.txt", "two\n"), writes("new.txt", "three\n"))
    actor, frontend = await worked_at(tmp_path, answer, *calls)
    after = actor.state()
    for name in edited:
        (actor.project / name).write_text("mine\n")
    assert await do(actor.controller, "undo")
    left = {path.name for path in actor.project.glob("*.txt")}
    if not edited:
        assert frontend.asked == []
        assert left == set()
        told = (
            "Undone: turn “fix the cart”, a.txt, b.txt and new.txt deleted · /redo brings it back"
        )
        assert frontend.words[0] == told
    else:
        (question,) = frontend.asked
        assert all(name in question.question for name in edited)
        assert {file.path for file in question.files} == set(edited)
        assert all("+mine" in file.diff for file in question.files)
        assert left == (set(edited) if answer == "y" else {"a.txt", "b.txt", "new.txt"})
        assert (actor.state()[0] == after[0]) is (answer == "n"), "no is no move"
    assert all((actor.project / name).read_text() == "mine\n" for name in edited)
    if answer != "n" or not edited:
        assert await do(actor.controller, "redo")
        assert len(frontend.asked) == min(1, len(edited)), (
            "a change that one knows of is asked about once"
        )
    assert actor.state()[0] == after[0]
    kept = {path.name: path.read_text() for path in actor.project.glob("*.txt")}
    written = {"a.txt": "one\n", "b.txt": "two\n", "new.txt": "three\n"}
    assert kept == written | dict.fromkeys(edited, "mine\n")
    await actor.controller.close()


async def test_nothing_is_undone_if_the_session_went_on_while_the_user_was_asked(
    tmp_path: Path,
) -> None:
    actor, frontend = await worked_at(tmp_path, "y", writes("a.txt", "one\n"))
    (actor.project / "a.txt").write_text("mine\n")

    async def ask_slowly(question: Choice) -> str:
        frontend.asked.append(question)
        actor.next_turn = [Reply("The job is done.")]
        actor.controller.outbox.submit("its report")
        await actor.harness.ended()
        return "y"

    frontend.ask = ask_slowly  # type: ignore[method-assign,assignment]
    assert not await do(actor.controller, "undo")
    assert len(frontend.asked) == 1
    assert "went on meanwhile" in frontend.words[-1]
    assert actor.agent.session.path()[-1].text == "The job is done."
    await actor.controller.close()


async def test_undo_says_that_a_commit_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    git(project, "init", "-q")
    with monkeypatch.context() as earlier:
        earlier.setenv("GIT_COMMITTER_DATE", "2020-01-01T00:00:00Z")
        git(project, "commit", "-q", "--allow-empty", "-m", "first")
    commit = f"git add . && git {' '.join(AUTHOR)} commit -q -m work"
    actor, frontend = await worked_at(tmp_path, "y", writes("a.txt", "one\n"), runs(commit))
    name = git(actor.project, "rev-parse", "--short=7", "HEAD").strip()
    assert await do(actor.controller, "undo")
    said = f"Undone: turn “fix the cart”, a.txt deleted, the commit {name} stays · /redo brings it back"
    assert frontend.words[0] == said
    await actor.controller.close()
