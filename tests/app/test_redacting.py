"""``/redact``: one question with all places, then nothing that the program keeps has the secret."""

import asyncio
import base64
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.app.test_race_commands import do
from tests.session.test_redacting import bytes_with
from tests.support.agents import Harness, make_agent
from tests.support.processes import git
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.agent.agent import Agent
from tui_agent.agent.race.copies import RaceHome
from tui_agent.app.controller import Controller
from tui_agent.app.exporting import ExportFormat, ExportOrder, write_export
from tui_agent.app.frontend import Choice, Frontend, Question, TextLine
from tui_agent.app.redact_commands import BEYOND_REACH
from tui_agent.app.services import OpenRequest
from tui_agent.processes.process import Command
from tui_agent.secret_detector import REMOVED
from tui_agent.secret_forms import SecretForms
from tui_agent.session.entries import CheckpointEntry
from tui_agent.session.errors import StoreError
from tui_agent.session.records import Unsent
from tui_agent.session.redacting import Removal, remove
from tui_agent.session.session import Session
from tui_agent.session.store import Store

SECRET = 'horse"battery\\staple-77'


@dataclass
class UserContact(Frontend):
    """Answers every question with ``answer``, and keeps what was said and asked."""

    answer: str = "redact"
    words: list[str] = field(default_factory=list)
    asked: list[Question[Any]] = field(default_factory=list)
    typed: list[str] = field(default_factory=list)

    def say(self, message: str, severity: str = "information", remedy: object = None) -> None:
        self.words.append(message)

    async def ask(self, question: Question[Any]) -> Any:
        self.asked.append(question)
        return SECRET if isinstance(question, TextLine) else self.answer

    def rewrite_typed(self, clean: Any) -> None:
        self.typed = [clean(text) for text in self.typed]


@dataclass
class Home:
    """A home in which a run has left a secret wherever the program writes."""

    place: Path
    harness: Harness
    controller: Controller

    @property
    def person(self) -> UserContact:
        assert isinstance(self.controller.frontend, UserContact)
        return self.controller.frontend

    @property
    def opened(self) -> Agent:
        return self.controller.open_agent


async def home_of(tmp_path: Path, answer: str = "redact") -> Home:
    place = tmp_path / "home"
    place.mkdir()
    project = tmp_path / "project"
    project.mkdir()
    (project / ".env.example").write_text(f"KEY={SECRET}\n")
    client = ScriptedClient(
        [
            Reply(f"The key is {SECRET}.", calls=(Call("read", '{"path": ".env.example"}'),)),
            Reply(calls=(Call("bash", json.dumps({"command": f"echo '{SECRET}' > made.txt"})),)),
            Reply("Done."),
        ]
    )
    store = Store(place / "sessions.db")
    races = place / "cache" / "races"
    harness = make_agent(tmp_path, client, keeps_files=True, store=store, copies=races)
    agents = dict[str, Agent]()

    def opened(request: OpenRequest) -> Session:
        return Session(store, str(request.session_id), estimate=harness.agent.counter.estimate)

    def agent_of(session: Session) -> Agent:
        made = harness.agent
        if agents:
            made = Agent(session, harness.agent.ports, model=harness.agent.model)
        agents[session.id] = made
        return made

    controller = Controller(UserContact(answer=answer), lambda _event: None)
    services = harness.services(own_places=(place,), open_session=opened, make_agent=agent_of)
    controller.attach(services)
    await controller.open_or_raise(OpenRequest(harness.session.id))
    await harness.say(f"Remember {SECRET}")
    return Home(place, harness, controller)


def litter(home: Home) -> None:
    """Leave the secret beside the session as the program would."""
    place = home.place
    log = place / "log" / "tui-agent.log"
    log.parent.mkdir()
    log.write_text(f"one\nno {SECRET}\nauth Basic {base64.b64encode(SECRET.encode()).decode()}\n")
    (place / "copied.txt").write_text(SECRET)
    (place / "run.json").write_text(json.dumps({"argv": [SECRET]}))
    copies = RaceHome.make(place / "cache" / "races")
    copy = copies.path / "1"
    copy.mkdir()
    git(copy, "init", "-q")
    (copy / "a.txt").write_text(SECRET)
    git(copy, "add", "a.txt")
    copies.release()
    os.utime(copies.path, (0, 0))
    home.harness.store.keep_unsent(str(home.harness.session.id), Unsent("", (SECRET,)))


async def test_it_is_in_no_byte_of_the_home(tmp_path: Path) -> None:
    home = await home_of(tmp_path)
    litter(home)
    session = home.harness.session
    backup = home.place / "sessions.db.v8.bak"
    with Store(home.place / "old" / "sessions.db") as old:
        made = Session(old, old.create_session("/p", title=SECRET).id, estimate=lambda _entry: 1)
        assert made.info.title == SECRET
    (home.place / "old" / "sessions.db").replace(backup)
    orders = [ExportOrder(session.id, form) for form in ExportFormat]
    exported = [
        write_export(home.harness.store, order, tmp_path / "project")[0] for order in orders
    ]
    fork = home.harness.store.fork(session.id, session.leaf)
    assert len(bytes_with(SECRET, home.place)) >= 5
    before = [(entry.id, entry.kind) for entry in session.path()]
    log = home.place / "log" / "tui-agent.log"
    size = log.stat().st_size
    assert await do(home.controller, "redact", SECRET)
    [question] = home.person.asked
    assert isinstance(question, Choice)
    assert "entries of" in question.details
    assert "tui-agent.log" in question.details
    assert SECRET not in question.question + question.details
    assert BEYOND_REACH in home.person.words[-1]
    assert not bytes_with(SECRET, home.place)
    assert log.stat().st_size == size
    assert log.read_text().startswith("one\nno ***")
    encoded = base64.b64encode(SECRET.encode())[4:20]
    assert not [
        path for path in home.place.rglob("*") if path.is_file() and encoded in path.read_bytes()
    ]
    assert not backup.exists()
    assert not list((home.place / "cache" / "races").iterdir())
    assert not {path.name for path in exported}.intersection(bytes_with(SECRET, tmp_path))
    for session_id in (session.id, fork.id):
        again = Session(home.harness.store, session_id, estimate=lambda _entry: 1)
        assert [(entry.id, entry.kind) for entry in again.path()] == before
    assert home.opened is not home.harness.agent, "the session is read again"
    assert (tmp_path / "project" / "made.txt").read_text() == f"{SECRET}\n", "files stay"
    await home.controller.close()


async def test_work_goes_on_and_undo_keeps_files_it_has_no_image_of(tmp_path: Path) -> None:
    home = await home_of(tmp_path)
    assert await do(home.controller, "redact", SECRET)
    agent = home.opened
    path = agent.session.path()
    assert any(REMOVED in entry.preview for entry in path)
    [checkpoint] = [entry for entry in path if isinstance(entry, CheckpointEntry)]
    assert checkpoint.files[0].after is None
    agent.submit("And now?")
    async with asyncio.timeout(60):
        await agent.wait_idle()
    assert await do(home.controller, "undo")
    assert await do(home.controller, "undo")
    assert (tmp_path / "project" / "made.txt").exists()
    assert home.opened.session.path()[-1].kind != "checkpoint"
    assert not bytes_with(SECRET, home.place)
    await home.controller.close()


async def test_it_is_asked_first_and_never_in_plain_sight(tmp_path: Path) -> None:
    home = await home_of(tmp_path, answer="keep")
    home.person.typed = [f"/redact {SECRET}"]
    assert await do(home.controller, "redact", "")
    which, question = home.person.asked
    assert isinstance(which, TextLine)
    assert which.hidden
    assert isinstance(question, Choice)
    assert question.answers[0][0] == "keep", "Enter alone removes nothing"
    assert bytes_with(SECRET, home.place)
    home.person.answer = "redact"
    assert await do(home.controller, "redact", SECRET)
    assert home.person.typed == [f"/redact {REMOVED}"]
    assert await do(home.controller, "redact", SECRET)
    assert home.person.words[-1] == "Not found in anything that the program stores."
    assert not await do(home.controller, "redact", "short")
    assert "6 characters" in home.person.words[-1]
    await home.controller.close()


async def test_if_the_store_can_t_be_rewritten_the_prompt_s_history_is_clean_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_store: Store) -> None:
        raise StoreError("Another program is using the file.")

    home = await home_of(tmp_path)
    home.person.typed = [f"/redact {SECRET}"]
    monkeypatch.setattr(Store, "rewrite", refuse)
    assert not await do(home.controller, "redact", SECRET)
    assert home.person.words[-1] == "Another program is using the file."
    assert home.person.typed == [f"/redact {REMOVED}"]
    await home.controller.close()


async def test_jobs_that_it_would_stop_are_named_before(tmp_path: Path) -> None:
    home = await home_of(tmp_path, answer="keep")
    jobs = home.harness.agent.jobs
    place = tmp_path / "project"
    command = Command(("sleep", "60"), place, {"PATH": "/usr/bin:/bin"}, 0)
    job = jobs.start("sleep 60", command, home.harness.store.put_blob)
    assert await do(home.controller, "redact", SECRET)
    [question] = home.person.asked
    assert isinstance(question, Choice)
    assert "1 background job of this session will be stopped." in question.details
    assert not job.ended.is_set()
    await home.controller.close()


async def test_a_block_goes_with_the_secrets_in_it(tmp_path: Path) -> None:
    home = await home_of(tmp_path)
    key = "sk-ant-api03-abcdefghijklmnop"
    await home.harness.say(f"My key: {key}")
    block = next(entry for entry in home.harness.path() if key in entry.preview)
    await home.harness.say(f"Again {key}, you know")
    assert await do(home.controller, "redact", f"#{block.id}")
    path = home.opened.session.path()
    assert next(entry for entry in path if entry.id == block.id).text == REMOVED
    assert any(entry.preview == f"Again {REMOVED}, you know" for entry in path)
    assert not bytes_with(key, home.place)
    checkpoint = next(entry for entry in path if isinstance(entry, CheckpointEntry))
    assert not await do(home.controller, "redact", f"#{checkpoint.id}")
    assert "no content to remove" in home.person.words[-1]
    await home.controller.close()


async def test_one_that_another_program_has_open_is_left(tmp_path: Path) -> None:
    home = await home_of(tmp_path)
    with Store(home.place / "sessions.db") as other:
        elsewhere = Session(
            other, other.fork(home.harness.session.id, home.harness.session.leaf).id, estimate=len
        )
        elsewhere.hold()
        assert not await do(home.controller, "redact", SECRET)
        assert "Close them there first" in home.person.words[-1]
        elsewhere.release()
    assert bytes_with(SECRET, home.place)
    assert await do(home.controller, "redact", SECRET)
    assert not bytes_with(SECRET, home.place)
    await home.controller.close()


async def test_deleted_parts_of_the_store_are_found_and_written_over(tmp_path: Path) -> None:
    home = await home_of(tmp_path)
    store = home.harness.store
    gone = Session(store, store.create_session("/p").id, estimate=len)
    gone.append(home.harness.path()[1].model_copy(update={"tokens": 1}))
    store.delete(gone.id)
    remove(store, Removal(SecretForms([SECRET]), home.harness.agent.counter.estimate))
    store.purge()
    assert bytes_with(SECRET, home.place)
    assert await do(home.controller, "redact", SECRET)
    assert isinstance(home.person.asked[0], Choice)
    assert "remains of deleted data in the session file" in home.person.asked[0].details
    assert not bytes_with(SECRET, home.place)
    await home.controller.close()
