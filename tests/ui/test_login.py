"""Entering a key: from the welcome, by command, and out again."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.login_server import KEY as LOGIN_KEY
from tests.support.login_server import LoginServer, browse
from tests.support.ui_app import Stage, make_stage, press, screen_text, send, until, write
from tui_agent.app.logins import LoginRow
from tui_agent.app.services import FirstView, OpenRequest
from tui_agent.model.discovery import Trial
from tui_agent.model.providers import PROVIDERS
from tui_agent.model.sign_in import BrowserSignIn
from tui_agent.ui.screens.dialogs import ChoiceScreen, LineScreen
from tui_agent.ui.screens.picker import PickScreen

KEY = "sk-entered-0123456789abcdef"
GOOD = Trial("accepted", "Groq accepts the key.")


class FakeLogins:
    """Keys in memory; ``trials`` are the answers of the next trials."""

    def __init__(self, *trials: Trial) -> None:
        self.kept: dict[str, str] = {}
        self.tried: list[str] = []
        self.trials = list(trials)

    def rows(self) -> Sequence[LoginRow]:
        return [
            LoginRow("openai", "OpenAI", "OPENAI_API_KEY", source="OPENAI_API_KEY"),
            LoginRow(
                "groq",
                "Groq",
                "GROQ_API_KEY",
                "https://console.groq.com/keys",
                is_kept="groq" in self.kept,
            ),
            LoginRow(
                "azure",
                "Azure OpenAI",
                "AZURE_API_KEY",
                missing=("AZURE_API_BASE",),
                is_kept="azure" in self.kept,
            ),
        ]

    def where(self) -> str:
        return "the system's keyring"

    async def try_key(self, provider: str, key: str) -> Trial:
        self.tried.append(key)
        return self.trials.pop(0)

    def keep_key(self, provider: str, key: str) -> str:
        self.kept[provider] = key
        return "The key is saved in the system's keyring."

    def forget(self, provider: str) -> str:
        del self.kept[provider]
        return "The key of Groq is removed."

    def first_model(self) -> str:
        return "groq/llama"


async def shown(stage: Stage, pilot: Any, kind: type[Any]) -> str:
    await until(lambda: isinstance(stage.app.screen, kind), pilot)
    await pilot.pause()
    return screen_text(stage)


async def test_a_key_is_pasted_unseen_tried_and_kept(tmp_path: Path) -> None:
    logins = FakeLogins(GOOD)
    stage = make_stage(tmp_path, logins=logins)
    async with stage.run() as pilot:
        await stage.main.controller.run("login")
        assert "key from OPENAI_API_KEY" in await shown(stage, pilot, PickScreen)
        await send(pilot, "gro")
        text = await shown(stage, pilot, ChoiceScreen)
        assert "https://console.groq.com/keys" in text
        assert "saved in the system's keyring" in text
        await pilot.press("enter")
        await shown(stage, pilot, LineScreen)
        await write(pilot, KEY)
        assert KEY not in screen_text(stage)
        await pilot.press("enter")
        await until(lambda: logins.kept, pilot)
        await pilot.pause()
        assert logins.kept == {"groq": KEY}
        assert (
            stage.main.notice.message
            == "Groq accepts the key. The key is saved in the system's keyring."
        )
        assert stage.agent.model == "anthropic/claude-sonnet-4-5", "there was a model"
    assert KEY.encode() not in b"".join(
        path.read_bytes() for path in tmp_path.glob("sessions.db*") if path.is_file()
    )


async def enter_key(stage: Stage, pilot: Any, key: str) -> None:
    await shown(stage, pilot, ChoiceScreen)
    await pilot.press("enter")
    await shown(stage, pilot, LineScreen)
    await send(pilot, key)


@pytest.mark.parametrize(
    ("verdict", "keys", "kept"),
    [
        ("refused", ["enter"], KEY),
        ("unknown", ["down", "enter"], KEY),
        ("unknown", ["enter"], "sk-wrong"),
    ],
)
async def test_a_key_that_was_not_accepted_is_kept_only_if_it_was_not_tried_and_the_user_says_so(
    tmp_path: Path, verdict: Any, keys: list[str], kept: str
) -> None:
    logins = FakeLogins(Trial(verdict, "Groq did not take it."), GOOD)
    stage = make_stage(tmp_path, logins=logins)
    async with stage.run() as pilot:
        task = stage.main.controller.begin("login", "groq")
        await enter_key(stage, pilot, "sk-wrong")
        text = await shown(stage, pilot, ChoiceScreen)
        assert "Groq did not take it" in text
        assert ("Save it anyway" in text) is (verdict == "unknown")
        await pilot.press(*keys)
        if kept == KEY:
            await until(lambda: "Log in to Groq" in screen_text(stage), pilot)
            await enter_key(stage, pilot, KEY)
        await until(task.done, pilot)
        assert logins.kept == {"groq": kept}
        assert logins.tried == ["sk-wrong", KEY][: len(logins.tried)]


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        (f"groq {KEY}", "Type /login groq without the key"),
        ("azure", "Azure OpenAI also needs AZURE_API_BASE"),
    ],
)
async def test_what_cannot_be_is_a_sentence(tmp_path: Path, argument: str, words: str) -> None:
    logins = FakeLogins()
    stage = make_stage(tmp_path, logins=logins)
    async with stage.run():
        await stage.main.controller.run("login", argument)
        assert words in stage.main.notice.message
        assert KEY not in stage.main.notice.message
        assert logins.tried == []


async def test_logging_out_removes_only_what_was_entered(tmp_path: Path) -> None:
    logins = FakeLogins()
    stage = make_stage(tmp_path, logins=logins)
    async with stage.run() as pilot:
        await stage.main.controller.run("logout")
        assert "No API key was entered" in stage.main.notice.message
        logins.kept["groq"] = KEY
        await stage.main.controller.run("logout", "openai")
        assert "There is no provider openai" in stage.main.notice.message
        logins.kept["azure"] = KEY
        await stage.main.controller.run("logout", "azure")
        await until(lambda: list(logins.kept) == ["groq"], pilot)
        await stage.main.controller.run("logout")
        asked = await shown(stage, pilot, PickScreen)
        assert "OpenAI" not in asked
        assert "Remove the key of" in asked
        await pilot.press("enter")
        await until(lambda: not logins.kept, pilot)
        await until(lambda: stage.main.notice.message == "The key of Groq is removed.", pilot)


async def test_a_first_start_begins_with_it_and_ends_with_a_model(tmp_path: Path) -> None:
    logins = FakeLogins(GOOD)
    start = FirstView(screen="welcome", prompt="fix the test")
    stage = make_stage(tmp_path, logins=logins, start=start)
    async with stage.run((80, 24)) as pilot:
        await until(lambda: "l  log in" in screen_text(stage), pilot)
        stage.agent.change_model("")
        await pilot.press("tab", "l")
        await shown(stage, pilot, PickScreen)
        await pilot.press("escape")
        await until(lambda: "l  log in" in screen_text(stage), pilot)
        await pilot.press("tab", "l")
        await shown(stage, pilot, PickScreen)
        await send(pilot, "groq")
        await enter_key(stage, pilot, KEY)
        await until(lambda: stage.agent.model == "groq/llama", pilot)
        await until(lambda: stage.app.screen is stage.main, pilot)
        assert stage.saved["model"] == "groq/llama"
        assert "The model is groq/llama" in stage.main.notice.message
        assert stage.main.prompt.text == "fix the test"


@pytest.mark.parametrize("keys", [["enter"], ["d", "enter"], ["D", "enter"], ["tab", "d"]])
async def test_the_demo_is_one_key_away(tmp_path: Path, keys: list[str]) -> None:
    stage = make_stage(tmp_path, logins=FakeLogins(), start=FirstView(screen="welcome"))
    async with stage.run() as pilot:
        await until(lambda: "d  start the demo" in screen_text(stage), pilot)
        await pilot.press(*keys)
        await until(lambda: stage.requests[-1] == OpenRequest(demo=True), pilot)
        assert not stage.main.prompt.text


async def test_the_demo_among_the_models_is_the_demo(tmp_path: Path) -> None:
    """Its script would act on the project, and be the model of the next start."""
    stage = make_stage(tmp_path)
    async with stage.run():
        await stage.main.controller.run("model", "demo")
        assert stage.requests[-1] == OpenRequest(demo=True)
        assert stage.saved == {}


@pytest.mark.parametrize(
    "text", ["hello", "look at this", "list the files", "do it", "so what", "1 thing"]
)
async def test_first_words_are_a_message_and_no_choice(tmp_path: Path, text: str) -> None:
    stage = make_stage(tmp_path, logins=FakeLogins(), start=FirstView(screen="welcome"))
    async with stage.run() as pilot:
        await until(lambda: "d  start the demo" in screen_text(stage), pilot)
        stage.agent.change_model("")
        await pilot.press(*(character if character != " " else "space" for character in text))
        assert stage.main.prompt.text == text
        await press(pilot, "enter")
        assert stage.agent.sent == [(text, False)]
        assert stage.app.screen is stage.main
        assert "d  start the demo" in screen_text(stage), "there still is no model"


class Accounts(FakeLogins):
    """One provider that is signed in to at a scripted server."""

    def __init__(self, server: LoginServer) -> None:
        super().__init__()
        self._url = server.url

    def rows(self) -> Sequence[LoginRow]:
        return [LoginRow("openrouter", "OpenRouter", "A_KEY", signs_in=True)]

    def sign_in(self, provider: str) -> BrowserSignIn:
        known = PROVIDERS[provider]
        assert known.sign_in is not None
        here = replace(known.sign_in, page=f"{self._url}/auth", exchange=f"{self._url}/keys")
        return BrowserSignIn(known, here)


@pytest.mark.parametrize("way", ["browser", "paste"])
async def test_signing_in_opens_the_page_and_takes_its_answer(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LoginServer() as server:
        logins = Accounts(server)
        stage = make_stage(tmp_path, logins=logins)
        opened: list[str] = []
        async with stage.run() as pilot:
            monkeypatch.setattr(stage.app, "open_url", opened.append)
            monkeypatch.setattr(stage.app, "copy_to_clipboard", opened.append)
            task = stage.main.controller.begin("login", "openrouter")
            await shown(stage, pilot, ChoiceScreen)
            await pilot.press(*(["enter"] if way == "browser" else ["down", "enter"]))
            assert "Sign in at" in await shown(stage, pilot, LineScreen)
            if way == "browser":
                await browse(opened[0])
            else:
                await send(pilot, "not a code")
                assert "contains no code" in await shown(stage, pilot, ChoiceScreen)
                await pilot.press("enter")
                await until(lambda: "Sign in with the browser" in screen_text(stage), pilot)
                await pilot.press("down", "enter")
                await shown(stage, pilot, LineScreen)
                async with httpx.AsyncClient(trust_env=False) as browser:
                    await send(pilot, (await browser.get(opened[-1])).headers["location"])
            await until(task.done, pilot)
            await pilot.pause()
            assert logins.kept == {"openrouter": LOGIN_KEY}
            assert "You are signed in to OpenRouter" in stage.main.notice.message
            assert not isinstance(stage.app.screen, LineScreen)
            assert LOGIN_KEY not in screen_text(stage)
