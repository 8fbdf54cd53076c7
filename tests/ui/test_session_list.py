"""The list of sessions: what was said in them, forks, exports, directories, sizes; and /export and /import."""

import json
import string
from pathlib import Path

import pytest

from tests.support.thoroughness import NIGHTLY
from tests.support.ui_app import HOME, Stage, make_stage, press, screen_text, until, write
from tui_agent.app.exporting import ExportFormat, ExportOrder, write_export
from tui_agent.app.services import FirstView, OpenRequest
from tui_agent.session.entries import AssistantEntry, TextPart, UserEntry
from tui_agent.session.session import Session
from tui_agent.session.store import Store
from tui_agent.ui.screens.sessions import SessionPicker


def say(text: str) -> UserEntry:
    return UserEntry(parts=(TextPart(text=text),))


def make_session(store: Store, *texts: str, cwd: object = HOME, **facts: object) -> Session:
    session = Session(
        store, store.create_session(str(cwd), **facts).id, estimate=lambda _entry: 1_000
    )
    session.append_many([say(text) for text in texts])
    return session


async def shown(stage: Stage, pilot: object, count: int) -> list[str]:
    listing = stage.app.screen.query_one("#rows")
    await until(lambda: len(listing.options) == count and listing.display, pilot)
    return [str(option.prompt) for option in listing.options]


async def found(stage: Stage, pilot: object, words: str, count: int) -> list[str]:
    await pilot.press("slash")
    await write(pilot, words)
    return await shown(stage, pilot, count)


def listed(tmp_path: Path, **more: object) -> Stage:
    return make_stage(tmp_path, start=FirstView(screen="sessions"), **more)


async def test_a_search_shows_the_entries_and_goes_to_one(tmp_path: Path) -> None:
    stage = listed(tmp_path)
    session = make_session(
        stage.store, "first words", "deep inside: a [b]zebra[/]\x1b]0;", "more", "a zebra again"
    )
    make_session(stage.store, "something else")
    make_session(stage.store, "and more")
    async with stage.run((100, 24)) as pilot:
        await shown(stage, pilot, 4)
        rows = await found(stage, pilot, "zebra", 3)
        assert "first words" in rows[0]
        assert rows[1].strip().startswith("#4 a zebra again")
        assert rows[2].strip().startswith("#2 deep inside: a [b]zebra[/]·]0;"), "it acts on nothing"
        await pilot.press("down", "down", "enter")
        await until(lambda: len(stage.agents) == 2, pilot)
        assert stage.requests[-1] == OpenRequest(session.id, entry=2)
        await until(lambda: stage.view.transcript.focused_target() is not None, pilot)
        assert stage.main.prompt.has_focus


@pytest.mark.parametrize("key", ["enter", "escape"])
async def test_a_prompt_of_the_command_line_waits_for_the_choice(tmp_path: Path, key: str) -> None:
    stage = make_stage(tmp_path, start=FirstView(screen="sessions", prompt="go on"))
    session = make_session(stage.store, "first words")
    async with stage.run((100, 24)) as pilot:
        await shown(stage, pilot, 2)
        await pilot.press("down", key)
        await until(lambda: stage.main.prompt.text == "go on", pilot)
        assert (stage.agent.session.id == session.id) is (key == "enter")
        assert stage.app.screen is stage.main


async def test_a_found_entry_of_the_open_session_is_shown_without_opening_it_anew(
    stage: Stage,
) -> None:
    async with stage.run() as pilot:
        stage.agent.session.append_many([say("a zebra"), say("more")])
        opened = len(stage.requests)
        await pilot.press("ctrl+s")
        await shown(stage, pilot, 1)
        await found(stage, pilot, "zebra", 2)
        called: list[int] = []
        stage.view.show_entry = called.append  # type: ignore[method-assign]
        await pilot.press("down", "enter")
        await until(lambda: called == [1], pilot)
        assert len(stage.requests) == opened


async def test_an_entry_of_another_branch_is_shown_in_the_tree(stage: Stage) -> None:
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
    make_session(stage.store, "elsewhere", cwd="/other/place")
    async with stage.run((110, 24)) as pilot:
        await shown(stage, pilot, 3)
        await until(lambda: "$1.50" in screen_text(stage), pilot)
        rows = await shown(stage, pilot, 3)
        assert "/other/place" in rows[-1], "other directories stand last"
        row = next(number for number, text in enumerate(rows) if "costly" in text)
        assert "2 entries · $1.50 · opus" in rows[row]
        await pilot.press(*["down"] * row)
        await until(
            lambda: "/home/ada/src/shop · opus · ~2k tokens · $1.50" in screen_text(stage), pilot
        )
        await pilot.press("enter")
        await until(lambda: stage.requests[-1] == OpenRequest(session.id), pilot)


async def test_subagents_sessions_are_found_and_named_as_such(tmp_path: Path) -> None:
    stage = listed(tmp_path)
    parent = make_session(stage.store, "parent")
    make_session(stage.store, "another")
    make_session(stage.store, "look for the okapi", parent=(parent.id, 1), agent="general")
    async with stage.run((110, 24)) as pilot:
        await shown(stage, pilot, 3)
        rows = await found(stage, pilot, "okapi", 2)
        assert "subagent general" in rows[0]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """A program started in a directory of its own; the one of its sessions is another machine's."""
    return make_stage(tmp_path, cwd=tmp_path)


async def test_export_asks_for_the_form_and_writes_beside_the_project(tmp_path: Path) -> None:
    stage = listed(tmp_path, cwd=tmp_path)
    session = make_session(stage.store, "original", "one way")
    session.move(1)
    session.append(say("the other way"))
    async with stage.run() as pilot:
        rows = await shown(stage, pilot, 2)
        await press(
            pilot, *["down"] * next(n for n, text in enumerate(rows) if "original" in text), "E"
        )
        assert "every branch" in screen_text(stage)
        await pilot.press("down", "down", "enter")
        await until(lambda: any("Exported to" in toast for toast in stage.toasts), pilot)
        [page] = tmp_path.glob(f"original-{session.id[-8:]}.html")
        assert "one way" in page.read_text()
        assert isinstance(stage.app.screen, SessionPicker), "one can go on in the list"


@pytest.mark.parametrize(
    ("typed", "name", "has", "lacks"),
    [
        ("page.html --all", "page.html", "left behind", "no such words"),
        ("page.html --branch", "page.html", "/home/ada", "left behind"),
        ("'my talk.md' --redact", "my talk.md", "[redacted]", "/home/ada"),
        ("json", "*.jsonl", "left behind", "no such words"),
    ],
)
async def test_export_takes_a_name_and_flags(
    tmp_path: Path, stage: Stage, typed: str, name: str, has: str, lacks: str
) -> None:
    async with stage.run() as pilot:
        session = stage.agent.session
        session.append_many([say("in /home/ada/shop"), say("left behind")])
        session.move(1)
        session.append(say("here"))
        await stage.main.controller.run("export", typed)
        await until(lambda: "Exported to" in screen_text(stage), pilot)
        [written] = tmp_path.glob(name)
        assert has in written.read_text()
        assert lacks not in written.read_text()


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("a.md b.md", "Use, for example,"),
        ("--everything", "Use, for example,"),
        ("talk.xyz", "is not an export format"),
        ("there.md", "already exists. Choose another name"),
        ("missing/a.md", "can't be written: the directory does not exist"),
    ],
)
async def test_what_goes_wrong_is_said(tmp_path: Path, stage: Stage, typed: str, said: str) -> None:
    (tmp_path / "there.md").touch()
    async with stage.run((120, 24)) as pilot:
        await stage.main.controller.run("export", typed)
        await until(lambda: said in stage.main.notice.message, pilot)


async def test_import_tells_what_came(tmp_path: Path, stage: Stage) -> None:
    with Store(tmp_path / "a.db") as store:
        session = make_session(store, "hello", title="Greetings")
        path, _size = write_export(store, ExportOrder(session.id, ExportFormat.JSON), tmp_path)
    assert path.name == f"greetings-{session.id[-8:]}.jsonl"
    assert json.loads(path.read_text().splitlines()[0])["id"] == session.id
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "bad \x1b[2J.jsonl").write_text("nonsense\n")
    path.rename(tmp_path / "some" / "in.jsonl")
    async with stage.run() as pilot:
        await stage.main.controller.run("import", "some/in.jsonl")
        opens = f"/sessions {session.id[-8:]} opens it."
        await until(lambda: opens in stage.main.notice.message, pilot)
        assert f"as {session.id[-8:]}." in stage.main.notice.message
        await stage.main.controller.run("import", "some")
        await until(lambda: "bad ␛[2J.jsonl" in screen_text(stage), pilot)
        assert "1 already here, 1 could not be read." in stage.main.notice.message


LETTERS = string.ascii_letters if NIGHTLY else "aderstxyARZ"
"""What is typed into the list: letters that are keys in it, and others."""


async def test_a_letter_that_is_no_key_begins_the_search_and_no_single_one_acts(
    tmp_path: Path,
) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        make_session(stage.store, "first")
        for letter in LETTERS:
            await press(pilot, "ctrl+s")
            page = stage.app.screen
            assert isinstance(page, SessionPicker)
            before = len(stage.store.sessions())
            is_key = letter in page.active_bindings
            await press(pilot, letter)
            if not is_key:
                assert page.field.value == letter
                await press(pilot, "x")
                assert page.field.value == f"{letter}x"
            assert len(stage.requests) == 1, f"{letter} opened a session"
            assert len(stage.store.sessions()) == before
            while len(stage.app.screen_stack) > 1:
                stage.app.pop_screen()
                await pilot.pause()
