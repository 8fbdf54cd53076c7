"""The list of sessions: what was said in them, forks, exports, directories, sizes; and /export and /import."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.ui_app import HOME, Stage, make_stage, screen_text, until, write
from tui_agent.app.exporting import ExportFormat, ExportOrder
from tui_agent.app.services import FileTransfer, FirstView, ImportOutcome, OpenRequest
from tui_agent.session.entries import AssistantEntry, TextPart, UserEntry
from tui_agent.session.session import Session
from tui_agent.session.store import Store
from tui_agent.ui.screens.sessions import SessionPicker


def say(text: str) -> UserEntry:
    return UserEntry(parts=(TextPart(text=text),))


def make_session(store: Store, *texts: str, cwd: object = HOME, **facts: object) -> Session:
    session = Session(store, store.create_session(str(cwd), **facts).id, estimate=lambda _entry: 1_000)
    session.append_many([say(text) for text in texts])
    return session


async def shown(stage: Stage, pilot: object, count: int) -> list[str]:
    listing = stage.app.screen.query_one("#rows")
    await until(lambda: len(listing.options) == count and listing.display, pilot)
    return [str(option.prompt) for option in listing.options]


def listed(tmp_path: Path, **more: object) -> Stage:
    return make_stage(tmp_path, start=FirstView(screen="sessions"), **more)


async def test_a_search_shows_the_entries_and_goes_to_one(tmp_path: Path) -> None:
    stage = listed(tmp_path)
    session = make_session(stage.store, "first words", "deep inside: a zebra", "more", "a zebra again")
    make_session(stage.store, "something else")
    make_session(stage.store, "and more")
    async with stage.run((100, 24)) as pilot:
        await shown(stage, pilot, 4)
        await pilot.press("slash")
        await write(pilot, "zebra")
        rows = await shown(stage, pilot, 3)
        assert "first words" in rows[0]
        assert rows[1].strip().startswith("#4 a zebra again")
        assert rows[2].strip().startswith("#2 deep inside: a zebra")
        await pilot.press("down", "down", "enter")
        await until(lambda: len(stage.agents) == 2, pilot)
        assert stage.requests[-1] == OpenRequest(session.id, entry=2)
        await until(lambda: stage.view.transcript.has_focus, pilot)


async def test_a_found_entry_of_the_open_session_is_shown_without_opening_it_anew(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        stage.agent.session.append_many([say("a zebra"), say("more")])
        opened = len(stage.requests)
        await pilot.press("ctrl+s")
        await shown(stage, pilot, 1)
        await pilot.press("slash")
        await write(pilot, "zebra")
        await shown(stage, pilot, 2)
        called: list[int] = []
        stage.view.show_entry = called.append  # type: ignore[method-assign]
        await pilot.press("down", "enter")
        await until(lambda: called == [1], pilot)
        assert len(stage.requests) == opened


async def test_an_entry_of_another_branch_is_shown_in_the_tree(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    session = make_session(stage.store, "root")
    left = session.append(say("a zebra"))
    session.move(1)
    session.append(say("here"))
    async with stage.run() as pilot:
        asked: list[tuple[str, str]] = []

        def begin(name: str, arguments: str) -> None:
            asked.append((name, arguments))

        stage.main.controller.begin = begin  # type: ignore[method-assign]
        await stage.main.controller.open(OpenRequest(session.id, entry=left.id))
        await until(lambda: asked == [("tree", f"#{left.id}")], pilot)


async def test_rows_and_the_line_below_tell_sizes_and_costs(tmp_path: Path) -> None:
    stage = listed(tmp_path)
    session = make_session(stage.store, "costly")
    session.append(AssistantEntry(parts=(TextPart(text="ok"),), model="anthropic/opus", cost=1.25))
    session.add_cost(0.25)
    async with stage.run((110, 24)) as pilot:
        await shown(stage, pilot, 2)
        await until(lambda: "$1.50" in screen_text(stage), pilot)
        rows = await shown(stage, pilot, 2)
        row = next(number for number, text in enumerate(rows) if "costly" in text)
        assert "2 entries · $1.50 · opus" in rows[row]
        await pilot.press(*["down"] * row)
        await until(lambda: "/home/ada/src/shop · opus · ~2k tokens · $1.50" in screen_text(stage), pilot)


async def test_subagents_sessions_are_found_and_named_as_such(tmp_path: Path) -> None:
    stage = listed(tmp_path)
    parent = make_session(stage.store, "parent")
    make_session(stage.store, "another")
    make_session(stage.store, "look for the okapi", parent=(parent.id, 1), agent="general")
    async with stage.run((110, 24)) as pilot:
        await shown(stage, pilot, 3)
        await pilot.press("slash")
        await write(pilot, "okapi")
        rows = await shown(stage, pilot, 2)
        assert "subagent general" in rows[0]


async def test_hostile_words_act_on_nothing(tmp_path: Path) -> None:
    stage = listed(tmp_path)
    make_session(stage.store, "another")
    make_session(stage.store, "[bold]zebra[/] \x1b]0;x\x07 \u202e end")
    async with stage.run() as pilot:
        await shown(stage, pilot, 3)
        await pilot.press("slash")
        await write(pilot, "zebra")
        rows = await shown(stage, pilot, 2)
        assert "[bold]zebra[/]" in rows[1]
        assert not set("\x1b\x07\u202e") & set("".join(rows))


class Files:
    """A transfer port that writes nothing."""

    def __init__(self, failing: Exception | None = None, told: Sequence[str] = ("Imported it.",)) -> None:
        self.orders: list[tuple[ExportOrder, Path]] = []
        self.imported: list[Path] = []
        self.failing = failing
        self.told = tuple(told)

    def export(self, order: ExportOrder, target: Path) -> Path:
        self.orders.append((order, target))
        if self.failing is not None:
            raise self.failing
        return target / "talk.md" if target == HOME else target

    def import_files(self, path: Path) -> ImportOutcome:
        self.imported.append(path)
        return ImportOutcome(self.told, "0123456789abcdef" if len(self.told) == 1 else None)


async def test_export_asks_for_the_form_and_writes_beside_the_project(tmp_path: Path) -> None:
    files = Files()
    stage = listed(tmp_path, transfer=files)
    session = make_session(stage.store, "original")
    async with stage.run() as pilot:
        rows = await shown(stage, pilot, 2)
        await pilot.press(*["down"] * next(n for n, text in enumerate(rows) if "original" in text), "E")
        await pilot.pause()
        assert "every branch" in screen_text(stage)
        await pilot.press("down", "down", "enter")
        await until(lambda: files.orders, pilot)
        assert files.orders == [(ExportOrder(session.id, ExportFormat.HTML, whole=True), HOME)]
        await until(lambda: any("Exported to" in toast for toast in stage.toasts), pilot)
        assert isinstance(stage.app.screen, SessionPicker), "one can go on in the list"


@pytest.mark.parametrize(
    ("typed", "order", "target"),
    [
        ("page.html --all", {"format": ExportFormat.HTML, "whole": True}, "page.html"),
        ("'my talk.md' --redact", {"redacted": True}, "my talk.md"),
        ("json", {"format": ExportFormat.JSON}, ""),
    ],
)
async def test_export_takes_a_name_and_flags(tmp_path: Path, typed: str, order: dict, target: str) -> None:
    files = Files()
    stage = make_stage(tmp_path, transfer=files)
    async with stage.run() as pilot:
        await stage.main.controller.run("export", typed)
        await until(lambda: "Exported to" in screen_text(stage), pilot)
        assert files.orders == [(ExportOrder(stage.agent.session.id, **order), HOME / target)]


async def test_a_session_of_another_machine_is_exported_where_the_program_was_started(tmp_path: Path) -> None:
    files = Files()
    stage = make_stage(tmp_path, transfer=files, cwd=tmp_path)
    session = make_session(stage.store, "hello", cwd="/Users/somebody/shop")
    async with stage.run() as pilot:
        await stage.main.controller.open(OpenRequest(session.id))
        await stage.main.controller.run("export", "talk.md")
        await until(lambda: files.orders, pilot)
        assert files.orders[0][1] == tmp_path / "talk.md"


@pytest.mark.parametrize(
    ("typed", "failing", "said"),
    [
        ("a.md b.md", None, "Write it like"),
        ("--everything", None, "Write it like"),
        ("talk.xyz", None, "is not a file type to export to"),
        ("a.md", FileExistsError("a.md"), "already exists; choose another name"),
        ("a.md", PermissionError(13, "Permission denied"), "can't be written: Permission denied"),
    ],
)
async def test_what_goes_wrong_is_said(tmp_path: Path, typed: str, failing: Exception | None, said: str) -> None:
    stage = make_stage(tmp_path, transfer=Files(failing))
    async with stage.run((120, 24)) as pilot:
        await stage.main.controller.run("export", typed)
        await until(lambda: said in screen_text(stage), pilot)


async def test_import_tells_what_came(tmp_path: Path) -> None:
    files = Files()
    stage = make_stage(tmp_path, transfer=files)
    async with stage.run() as pilot:
        await stage.main.controller.run("import", "in.jsonl")
        await until(lambda: "Imported it. /sessions 89abcdef opens it." in screen_text(stage), pilot)
        assert files.imported == [HOME / "in.jsonl"]


async def test_import_of_many_shows_a_list(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, transfer=Files(told=("one", "two \x1b[2J", "2 imported.")))
    async with stage.run() as pilot:
        await stage.main.controller.run("import", "folder")
        await until(lambda: "two ␛[2J" in screen_text(stage), pilot)


def test_files_are_really_written_and_read(tmp_path: Path) -> None:
    with Store(tmp_path / "a.db") as store, Store(tmp_path / "b.db") as other:
        session = make_session(store, "hello", title="Greetings")
        folder = tmp_path / "out"
        folder.mkdir()
        path = FileTransfer(store).export(ExportOrder(session.id, ExportFormat.JSON), folder)
        assert path.name == f"greetings-{session.id[-8:]}.jsonl"
        assert json.loads(path.read_text().splitlines()[0])["id"] == session.id
        with pytest.raises(FileExistsError):
            FileTransfer(store).export(ExportOrder(session.id, ExportFormat.JSON), path)
        outcome = FileTransfer(other).import_files(path)
        assert outcome.session_id == session.id
        (folder / "bad.jsonl").write_text("nonsense\n")
        outcome = FileTransfer(other).import_files(folder)
        assert outcome.failed == 1
        assert outcome.told[-1] == "1 already here, 1 could not be read."
