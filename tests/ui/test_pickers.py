"""The screens to pick from: sessions, models, themes, and what a first start shows."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.events import Click
from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from tests.support.ui_app import (
    HOME,
    MODELS,
    Stage,
    make_stage,
    press,
    run_command,
    screen_text,
    send,
    until,
    write,
)
from tui_agent.app.frontend import ModelPick
from tui_agent.app.model_commands import save_server
from tui_agent.app.services import FirstView, ModelRow, OpenHow, OpenRequest
from tui_agent.config import Config, split_key
from tui_agent.model.naming import NameStanding, NameVerdict
from tui_agent.model.settings import ModelSettings
from tui_agent.session.entries import TextPart, UserEntry
from tui_agent.session.errors import SessionHeld
from tui_agent.session.session import Session
from tui_agent.ui.screens.dialogs import ChoiceScreen
from tui_agent.ui.screens.help import HelpScreen
from tui_agent.ui.screens.models import ModelPicker, order
from tui_agent.ui.screens.picker import MAX_ROWS
from tui_agent.ui.widgets.options import Options


def make_session(stage: Stage, *texts: str, cwd: object = HOME, title: str = "") -> Session:
    session = Session(
        stage.store, stage.store.create_session(str(cwd), title=title).id, estimate=lambda _entry: 1
    )
    for text in texts:
        session.append(UserEntry(parts=(TextPart(text=text),)))
    return session


async def rows(stage: Stage, pilot: object, count: int) -> list[str]:
    listing = stage.app.screen.query_one("#rows")

    def shown() -> int:
        return sum(not option.disabled for option in listing.options)  # type: ignore[attr-defined]

    await until(lambda: shown() == count and listing.display == bool(count), pilot)
    return [str(option.prompt) for option in listing.options if not option.disabled]  # type: ignore[attr-defined]


async def go_to_row(stage: Stage, pilot: Pilot[int], word: str) -> str:
    """Move from the first of two rows to the one with a word in it, and return that row."""
    found = await rows(stage, pilot, 2)
    position = next(number for number, row in enumerate(found) if word in row)
    await press(pilot, *["down"] * position)
    return found[position]


async def test_one_escape_leaves_the_search_and_the_next_one_the_list(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, start=FirstView(screen="sessions"))
    async with stage.run() as pilot:
        await rows(stage, pilot, 1)
        await pilot.press("slash", *"nowhere")
        await until(lambda: not stage.app.screen.query_one("#rows").display, pilot)
        assert "type to search" in screen_text(stage)
        await pilot.press("escape")
        await rows(stage, pilot, 1)
        await until(lambda: stage.app.screen.query_one("#rows").has_focus, pilot)
        await pilot.press("slash", "escape")
        assert stage.app.screen.query_one("#rows").has_focus
        await until(lambda: "xx delete" in screen_text(stage), pilot)
        await pilot.press("escape")
        await until(lambda: stage.app.screen is stage.main, pilot)


async def test_arrows_stop_at_both_ends(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, start=FirstView(screen="sessions"))
    make_session(stage, "one")
    make_session(stage, "two")
    async with stage.run() as pilot:
        await rows(stage, pilot, 3)
        picker: Any = stage.app.screen
        top = picker.highlighted
        await pilot.press("up", "up")
        assert picker.highlighted == top
        await pilot.press(*["down"] * 5)
        last = picker.highlighted
        assert last not in {None, top}
        await pilot.press("slash", "down")
        await until(lambda: picker.highlighted == last, pilot)


async def test_the_highlight_stays_in_place_after_a_delete_and_goes_to_what_comes_back(
    tmp_path: Path,
) -> None:
    stage = make_stage(tmp_path, start=FirstView(screen="sessions"))
    for name in ("one", "two", "three"):
        make_session(stage, name)
    async with stage.run() as pilot:
        await rows(stage, pilot, 4)
        screen = stage.app.screen
        await press(pilot, "down", "down")
        ids = [option.id for option in screen.listing.options]
        victim, after = ids[2:4]
        await pilot.press("x", "x")
        assert screen.highlighted == after, "at once, not when the list was read anew"
        await rows(stage, pilot, 3)
        assert screen.highlighted == after
        await pilot.press("u")
        await rows(stage, pilot, 4)
        assert screen.highlighted == victim
        await pilot.press("end", "x", "x")
        await rows(stage, pilot, 3)
        assert screen.listing.highlighted == 2, "without a row after it, the one before"


async def test_a_delete_is_asked_about_by_name_and_can_be_undone(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, start=FirstView(screen="sessions"))
    victim = make_session(stage, "victim")
    async with stage.run() as pilot:
        found = await rows(stage, pilot, 2)
        position = next(number for number, row in enumerate(found) if "victim" in row)
        for answer, left in (("escape", 2), ("enter", 2), ("x", 1)):
            await pilot.press("home", *["down"] * position, "x")
            await until(lambda: "Delete “victim”?" in screen_text(stage), pilot)
            await pilot.press(answer)
            await rows(stage, pilot, left)
            assert len(stage.store.sessions()) == left
        await press(pilot, "x", "x")
        assert len(stage.store.sessions()) == 1, "the open session is not deleted"
        await pilot.press("escape")
        await until(lambda: stage.app.screen is stage.main, pilot)
        stage.main.controller.begin("sessions", "")
        await until(lambda: stage.app.screen is not stage.main, pilot)
        await rows(stage, pilot, 1)
        await pilot.press("u")
        await rows(stage, pilot, 2)
        assert victim.id in [info.id for info in stage.store.sessions()]


async def test_rename(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, start=FirstView(screen="sessions"))
    session = make_session(stage, "dull")
    async with stage.run() as pilot:
        await go_to_row(stage, pilot, "dull")
        await pilot.press("e", *"Bright [name]", "enter")
        await until(lambda: "Bright [name]" in screen_text(stage), pilot)
        assert session.info.title == "Bright [name]"


async def test_a_held_session_says_so_and_offers_three_ways(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, start=FirstView(screen="sessions"))
    other = make_session(stage, "busy")
    other.hold()
    async with stage.run((100, 24)) as pilot:
        assert "in use by process" in await go_to_row(stage, pilot, "busy")
        await press(pilot, "enter")
        text = screen_text(stage)
        assert "Open it read-only" in text
        assert "Fork it" in text
        assert "Take it over" in text
        await pilot.press("down", "down", "enter")
        await until(lambda: len(stage.agents) == 2, pilot)
        assert stage.requests[-1] == OpenRequest(other.id, OpenHow.TAKE_OVER)


async def test_why_a_held_session_can_t_be_deleted_is_said_on_the_page(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, start=FirstView(screen="sessions"))
    other = make_session(stage, "busy")
    other.hold()
    async with stage.run((100, 24)) as pilot:
        await go_to_row(stage, pilot, "busy")
        await press(pilot, "x", "x")
        await until(lambda: any("Close it first." in one for one in stage.toasts), pilot)


async def test_a_session_of_a_detached_run_names_the_command_that_shows_it(tmp_path: Path) -> None:
    names: dict[str, str] = {}
    start = FirstView(screen="sessions")
    stage = make_stage(tmp_path, start=start, detached_run=lambda found: names.get(found, ""))
    other = make_session(stage, "busy")
    other.hold()
    names[other.id] = "k7f2"
    async with stage.run((100, 24)) as pilot:
        found = await rows(stage, pilot, 2)
        position = next(number for number, row in enumerate(found) if "busy" in row)
        await press(pilot, *["down"] * position, "enter")
        await until(lambda: "running as k7f2; tui-agent attach k7f2" in screen_text(stage), pilot)


async def test_without_a_session_the_way_to_one_is_said(tmp_path: Path) -> None:
    def refuse(_request: OpenRequest) -> Session:
        raise SessionHeld("busy", 1, "elsewhere", 0)

    stage = make_stage(tmp_path, start=FirstView(OpenRequest("busy")), open_session=refuse)
    async with stage.app.run_test(size=(100, 24)) as pilot:
        await until(lambda: "open in process 1 on elsewhere" in screen_text(stage), pilot)
        await send(pilot, "hello")
        await until(lambda: "Answer the question first" in screen_text(stage), pilot)
        assert "open in process 1 on elsewhere" in screen_text(stage)
        assert stage.main.prompt.text == "hello"
        await press(pilot, "ctrl+c", "escape")
        await until(lambda: "No session is open.  ctrl+n start one" in screen_text(stage), pilot)
        await send(pilot, "/hotkeys")
        await until(lambda: isinstance(stage.app.screen, HelpScreen), pilot)


async def test_models_with_a_key_come_first_and_one_is_picked_by_typing(stage: Stage) -> None:
    async with stage.run((100, 24)) as pilot:
        await pilot.press("f2")
        found = await rows(stage, pilot, 5)
        assert "● anthropic/claude-sonnet-4-5" in found[0]
        assert "200k" in found[0]
        assert "$3 / $15" in found[0]
        assert [("no key" in row) for row in found] == [False, False, False, True, True]
        await write(pilot, "qwen")
        await rows(stage, pilot, 1)
        await press(pilot, "enter")
        assert stage.agent.model == "ollama/qwen3:4b"
        assert stage.saved == {"model": "ollama/qwen3:4b"}
        await pilot.press("f2")
        await rows(stage, pilot, 5)
        await write(pilot, "my/own-model")
        await until(lambda: "Use my/own-model" in screen_text(stage), pilot)
        await press(pilot, "enter")
        assert stage.agent.model == "my/own-model"


async def test_models_stand_in_groups_and_one_can_be_for_this_session_only(stage: Stage) -> None:
    async with stage.run((100, 24)) as pilot:
        await pilot.press("f2")
        await rows(stage, pilot, 5)
        text = screen_text(stage)
        headings = ["Recent", "Anthropic", "Ollama", "No API key yet: /login adds one"]
        assert [text.index(heading) for heading in headings] == sorted(
            text.index(heading) for heading in headings
        )
        assert "ctrl+s this session only" in text
        await press(pilot, "down", "ctrl+s")
        assert stage.agent.model == "anthropic/claude-haiku-4-5"
        assert stage.saved == {}
        assert "claude-haiku-4-5 is used in this session only." in screen_text(stage)
        await pilot.press("f2")
        await rows(stage, pilot, 5)
        await write(pilot, "qwen")
        await rows(stage, pilot, 1)
        await press(pilot, "enter")
        assert "ollama/qwen3:4b is used here and from the next start on." in screen_text(stage)


async def test_another_model_of_your_server_is_picked_and_set_up_there(tmp_path: Path) -> None:
    url = "http://127.0.0.1:8961/v1"
    listed = [
        *MODELS,
        ModelRow("openai/mini", "openai", 8_192, has_key=True, server=url),
    ]
    stage = make_stage(tmp_path, models=lambda: listed)
    async with stage.run((100, 24)) as pilot:
        await pilot.press("f2")
        await rows(stage, pilot, 6)
        assert f"Also at {url}" in screen_text(stage)
        await write(pilot, "mini")
        await until(lambda: len(stage.app.screen.query_one("#rows").options) == 2, pilot)  # type: ignore[attr-defined]
        await press(
            pilot, "down" if "gpt-5-mini" in screen_text(stage).split("\n")[4] else "up", "enter"
        )
        assert stage.agent.model == "openai/mini"
        assert stage.saved == {'models."openai/mini".base_url': url, "model": "openai/mini"}


@pytest.mark.parametrize("name", ['openai/C:\\new "model".gguf', "日本"])
async def test_a_model_with_an_odd_name_is_set_up_under_that_name(
    tmp_path: Path, name: str
) -> None:
    stage = make_stage(tmp_path)
    async with stage.run():
        save_server(stage.main.controller, ModelPick(name, "http://127.0.0.1:8961/v1"))
    assert [split_key(key) for key in stage.saved] == [["models", name, "base_url"]]


async def test_servers_are_asked_while_the_list_is_shown_and_when_one_is_picked(
    tmp_path: Path,
) -> None:
    answered, asked = asyncio.Event(), list[str | None]()
    listed = list(MODELS)

    async def ask_servers(model: str | None) -> list[str]:
        asked.append(model)
        if model is not None:
            return []
        await answered.wait()
        listed.append(ModelRow("openai/team-model", "openai", 64_000, has_key=True))
        return ["llm.example.com (OPENAI_BASE_URL): 1 model, listed just now"]

    stage = make_stage(tmp_path, models=lambda: listed, ask_servers=ask_servers)
    async with stage.run((100, 24)) as pilot:
        await pilot.press("f2")
        await rows(stage, pilot, 5)
        await pilot.press("down", "down")
        before = stage.app.screen.query_one("#rows").highlighted_option.id  # type: ignore[attr-defined]
        assert "example.com" not in screen_text(stage)
        answered.set()
        found = await rows(stage, pilot, 6)
        assert any("openai/team-model" in row and "64k" in row for row in found)
        assert "llm.example.com (OPENAI_BASE_URL): 1 model, listed just now" in screen_text(stage)
        assert stage.app.screen.query_one("#rows").highlighted_option.id == before  # type: ignore[attr-defined]
        assert asked == [None]
        await pilot.press("enter")
        await until(lambda: asked == [None, before], pilot)


def judged(similar: tuple[str, ...] = ()) -> Any:
    """Judge names as the catalog would: ``new/`` is a provider, the rest is not."""

    def judge(name: str) -> NameVerdict:
        return NameVerdict(
            name, NameStanding.NEW if name.startswith("new/") else NameStanding.IMPOSSIBLE, similar
        )

    return judge


async def test_a_name_that_can_be_no_models_changes_nothing(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, judge_model=judged(("ollama/qwen3:4b",)))
    async with stage.run() as pilot:
        await send(pilot, "/model nowhere/qwen")
        await until(lambda: stage.main.notice.message, pilot)
        assert "Did you mean ollama/qwen3:4b?" in stage.main.notice.message
        assert "The model was not changed" in stage.main.notice.message
        assert stage.saved == {}
        assert stage.agent.model == "anthropic/claude-sonnet-4-5"


async def test_the_one_model_of_a_name_is_used_at_once(tmp_path: Path) -> None:
    verdict = NameVerdict("qwen3:4b", NameStanding.IMPOSSIBLE, only="ollama/qwen3:4b")
    stage = make_stage(tmp_path, judge_model=lambda _name: verdict)
    async with stage.run() as pilot:
        await send(pilot, "/model qwen3:4b")
        await until(lambda: stage.agent.model == "ollama/qwen3:4b", pilot)
        await until(lambda: "the only model with this name" in stage.main.notice.message, pilot)
        assert not isinstance(stage.app.screen, ModelPicker)


async def test_a_part_of_a_name_filters_the_list(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, judge_model=judged())
    async with stage.run() as pilot:
        await send(pilot, "/model opus")
        await until(lambda: isinstance(stage.app.screen, ModelPicker), pilot)
        await until(lambda: stage.app.screen.query_one(Input).value == "opus", pilot)
        assert stage.agent.model == "anthropic/claude-sonnet-4-5"


@pytest.mark.parametrize(
    ("keys", "model"),
    [
        (["enter"], "ollama/qwen3:4b"),
        (["down", "enter"], "new/qwen"),
        (["down", "down", "enter"], None),
        (["escape"], None),
    ],
)
async def test_a_name_newer_than_the_catalog_is_asked_about(
    tmp_path: Path, keys: list[str], model: str | None
) -> None:
    stage = make_stage(tmp_path, judge_model=judged(("ollama/qwen3:4b",)))
    async with stage.run() as pilot:
        await send(pilot, "/model new/qwen")
        await until(lambda: isinstance(stage.app.screen, ChoiceScreen), pilot)
        await pilot.press(*keys)
        await until(lambda: stage.app.screen is stage.main, pilot)
        await pilot.pause()
        assert stage.saved == ({"model": model} if model else {})
        assert stage.agent.model == (model or "anthropic/claude-sonnet-4-5")


async def test_a_theme_is_previewed_escape_restores_and_one_that_is_picked_is_kept(
    stage: Stage,
) -> None:
    async with stage.run() as pilot:
        await run_command(stage, pilot, "theme", "")
        before = stage.app.theme
        await press(pilot, "down")
        assert stage.app.theme != before
        await press(pilot, "escape")
        assert stage.app.theme == before
        assert stage.saved == {}
        await stage.main.controller.run("theme", "")
        await send(pilot, "gruvbox")
        assert stage.app.theme == "gruvbox"
        assert stage.saved == {"ui.theme": "gruvbox"}


@pytest.mark.parametrize("is_there", [True, False])
async def test_servers_of_this_machine_are_looked_for_when_the_page_opens(
    tmp_path: Path, is_there: bool
) -> None:
    asked = []
    answered = asyncio.Event()
    listed: list[ModelRow] = []
    slow = asyncio.Event()

    async def find_servers() -> list[str]:
        asked.append(True)
        await answered.wait()
        if not is_there:
            return []
        listed.append(ModelRow("ollama/devstral", "ollama", 64_000, has_key=True))
        return ["Ollama at 127.0.0.1:11434: 1 model, listed just now"]

    async def ask_servers(model: str | None) -> list[str]:
        if model is None and is_there:
            await slow.wait()
        return []

    stage = make_stage(
        tmp_path,
        start=FirstView(screen="welcome"),
        models=lambda: [*listed, ModelRow("demo", "demo", has_key=True)],
        find_servers=find_servers,
        ask_servers=ask_servers,
    )
    async with stage.run((100, 30)) as pilot:
        await until(lambda: "Welcome" in screen_text(stage), pilot)
        await write(pilot, "mo")
        await until(lambda: stage.main.prompt.text == "mo", pilot)
        await pilot.press("tab", "m")
        await rows(stage, pilot, 1)
        assert asked == [True], "nobody is asked before the page is open"
        answered.set()
        if not is_there:
            await until(
                lambda: "No model server answers on this machine" in screen_text(stage), pilot
            )
            return
        # A gateway that has not answered yet holds up nothing.
        await until(lambda: "ollama/devstral" in screen_text(stage), pilot)
        assert "Ollama at 127.0.0.1:11434: 1 model" in screen_text(stage)
        await pilot.press("enter")
        await until(lambda: stage.agent.model == "ollama/devstral", pilot)
        assert stage.saved == {"model": "ollama/devstral"}
        slow.set()


async def test_welcome_says_that_the_settings_have_models_when_none_is_chosen(
    tmp_path: Path,
) -> None:
    models = {name: ModelSettings(base_url="http://localhost:8080/v1") for name in ("x/1", "x/2")}
    stage = make_stage(
        tmp_path, start=FirstView(screen="welcome"), config=lambda: Config(models=models)
    )
    async with stage.run((100, 30)) as pilot:
        await until(lambda: "2 models, but none is chosen" in screen_text(stage), pilot)


@pytest.mark.parametrize("names", [["a"], ["a", "b", "c", "d"]])
async def test_welcome_sets_up_the_models_of_another_program_with_one_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    models = [{"id": name} for name in names]
    provider = {"baseUrl": "http://localhost:9/v1", "api": "openai-completions", "models": models}
    listed = tmp_path / "home/.pi/agent/models.json"
    listed.parent.mkdir(parents=True)
    listed.write_text(json.dumps({"providers": {"bench": provider}}))
    stage = make_stage(tmp_path, start=FirstView(screen="welcome"))
    async with stage.run() as pilot:
        await until(lambda: "that you use in Pi" in screen_text(stage), pilot)
        assert "http://localhost:9/v1" in screen_text(stage)
        assert stage.saved == {}, "nothing happens silently"
        await pilot.press("tab", "u")
        last = names[-1]
        await until(lambda: f'models."openai/{last}"' in stage.saved, pilot)
        assert stage.saved[f'models."openai/{last}"'] == {"base_url": "http://localhost:9/v1"}
        if len(names) == 1:
            await until(lambda: stage.agent.model == "openai/a", pilot)
        else:
            await until(lambda: isinstance(stage.app.screen, ModelPicker), pilot)


async def test_welcome_offers_models_with_a_key(tmp_path: Path) -> None:
    keys = {"OpenAI": "OPENAI_API_KEY"}
    stage = make_stage(tmp_path, start=FirstView(screen="welcome"), provider_keys=lambda: keys)
    async with stage.run() as pilot:
        await until(lambda: "m  choose a model" in screen_text(stage), pilot)


class Page(App[None]):
    def compose(self) -> ComposeResult:
        yield Options("one", "two", "three")


async def test_page_keys_before_the_list_is_laid_out_do_nothing() -> None:
    class Hidden(Page):
        CSS = "Options { display: none }"

    async with Hidden().run_test() as pilot:
        listing = pilot.app.query_one(OptionList)
        listing.highlighted = 0
        listing.action_page_down()  # type: ignore[no-untyped-call]
        listing.action_page_up()  # type: ignore[no-untyped-call]
        assert listing.highlighted == 0


async def test_a_click_on_a_row_that_is_gone_chooses_nothing() -> None:
    chosen: list[object] = []
    async with Page().run_test(message_hook=chosen.append) as pilot:
        await pilot.pause()
        listing = pilot.app.query_one(OptionList)
        drawn = listing.render_line(2)
        listing.set_options(["one"])
        style = next(
            segment.style for segment in drawn if segment.style and "option" in segment.style.meta
        )
        listing.post_message(Click(listing, 1, 2, 0, 0, 1, False, False, False, style=style))
        await pilot.pause()
        assert pilot.app.is_running
        assert not [message for message in chosen if isinstance(message, OptionList.OptionSelected)]


async def test_help_with_words_is_searched_for_them(stage: Stage) -> None:
    async with stage.run((100, 30)) as pilot:
        await run_command(stage, pilot, "help", "copy")
        await until(lambda: isinstance(stage.app.screen, HelpScreen), pilot)
        await until(lambda: stage.app.screen.typed == "copy", pilot)
        assert "/copy" in screen_text(stage)
        assert "/undo" not in screen_text(stage)


@pytest.mark.parametrize("typed", ["", "model", "lab/model"])
async def test_of_a_long_list_the_first_models_are_shown_and_the_others_counted(
    tmp_path: Path, typed: str
) -> None:
    found = [ModelRow(f"lab/model-{number}", "lab", has_key=True) for number in range(3_000)]
    stage = make_stage(tmp_path, models=lambda: found)
    async with stage.run((80, 24)) as pilot:
        await press(pilot, "f2")
        await until(lambda: "lab/model-0" in screen_text(stage), pilot)
        await write(pilot, typed)
        listing = stage.app.screen.query_one("#rows", OptionList)

        def told() -> str:
            return str(listing.options[-1].prompt) if listing.options else ""

        await until(lambda: "more: type to narrow" in told(), pilot)
        shown = [option for option in listing.options if not option.disabled]
        counted = 3_000 + ("/" in typed)  # with the offer to use the name as it was typed
        await until(lambda: told() == f"{counted - len(shown)} more: type to narrow", pilot)
        assert MAX_ROWS - 2 <= len(shown) <= MAX_ROWS


async def test_a_model_stands_under_the_server_that_the_user_set_for_it(tmp_path: Path) -> None:
    here = "127.0.0.1:8080"
    rows = [
        ModelRow("openai/mine", "openai", has_key=True, own_host=here),
        ModelRow("openai/gpt-5", "openai", has_key=True),
        ModelRow("ollama/qwen3", "ollama", has_key=True, own_host="big-machine:11434"),
        ModelRow("lab/coder", "lab", has_key=True, own_host="lab.example.com"),
    ]
    stage = make_stage(tmp_path, models=lambda: rows)
    async with stage.run((80, 24)) as pilot:
        await press(pilot, "f2")
        await until(lambda: "openai/mine" in screen_text(stage), pilot)
        shown = [line.strip() for line in screen_text(stage).split("\n")]
        for heading, model in (
            (f"Your server at {here}", "openai/mine"),
            ("OpenAI", "openai/gpt-5"),
            ("Ollama at big-machine:11434", "ollama/qwen3"),
            ("lab at lab.example.com", "lab/coder"),
        ):
            assert model in shown[shown.index(heading) + 1]


async def test_what_servers_say_is_not_cut(tmp_path: Path) -> None:
    said = [
        "llama.cpp at 127.0.0.1:8080: 1 model, listed just now",
        "LM Studio at 127.0.0.1:1234: could not connect; showing its list from 3 days ago",
    ]

    async def find_servers() -> Sequence[str]:
        return said

    stage = make_stage(tmp_path, find_servers=find_servers)
    async with stage.run((80, 24)) as pilot:
        await press(pilot, "f2")
        await until(lambda: "llama.cpp at" in screen_text(stage), pilot)
        text = " ".join(screen_text(stage).split())
        assert all(sentence in text for sentence in said)


def test_the_model_used_last_comes_before_one_used_more_often() -> None:
    rows = [ModelRow(name, "test", None) for name in "abc"]
    assert [row.id for row in order(rows, "", ["c", "b", "b", "c"])] == ["c", "b", "a"]
