"""Keys the user entered: where they are kept, what counts before them, how they are tried."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from tests.support.list_server import ListServer
from tests.support.model_server import refused_url
from tui_agent.model.addresses import AddressSetting
from tui_agent.model.catalog import Catalog
from tui_agent.model.discovery import Trial, try_key
from tui_agent.model.keys import Keys
from tui_agent.model.logins import SOURCE, LoginError, Logins
from tui_agent.model.protocol import ModelError
from tui_agent.model.providers import provider_of
from tui_agent.model.route import Router
from tui_agent.model.settings import ProviderSettings

KEY = "sk-entered-0123456789abcdef"


class FakeKeyring:
    """A keyring in memory; ``broken`` fails as a locked one does."""

    def __init__(self, *, broken: bool = False) -> None:
        self.kept: dict[tuple[str, str], str] = {}
        self.broken = broken

    def get_password(self, service: str, user: str) -> str | None:
        self._check()
        return self.kept.get((service, user))

    def set_password(self, service: str, user: str, password: str) -> None:
        self._check()
        self.kept[service, user] = password

    def delete_password(self, service: str, user: str) -> None:
        self._check()
        del self.kept[service, user]

    def _check(self) -> None:
        if self.broken:
            raise RuntimeError("locked")


def logins(tmp_path: Path, keyring: FakeKeyring | None = None) -> Logins:
    return Logins(tmp_path / "credentials.json", lambda: keyring)


def found(kept: Logins, provider: str = "openai") -> str | None:
    return kept.find(provider)


def test_a_key_is_kept_in_a_file_for_its_owner_alone_and_removed_again(tmp_path: Path) -> None:
    kept = logins(tmp_path)
    assert kept.keep("openai", KEY) == str(kept.path)
    assert kept.path.stat().st_mode & 0o777 == 0o600
    kept.path.chmod(0o644)
    kept.keep("groq", KEY)
    assert kept.path.stat().st_mode & 0o777 == 0o600, "it is closed again by the next key"
    assert kept.forget("groq")
    assert found(logins(tmp_path)) == KEY
    assert kept.forget("openai")
    assert KEY not in kept.path.read_text()
    assert found(kept) is None
    assert not kept.forget("openai")


def test_where_there_is_a_keyring_the_file_has_no_key(tmp_path: Path) -> None:
    keyring = FakeKeyring()
    kept = logins(tmp_path, keyring)
    assert kept.keep("openai", KEY) == "the system's keyring"
    assert json.loads(kept.path.read_text()) == {"openai": {"keyring": True}}
    assert logins(tmp_path, keyring).find("openai") == KEY
    assert kept.forget("openai")
    assert keyring.kept == {}


def test_a_keyring_that_takes_nothing_leaves_the_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = logins(tmp_path, FakeKeyring(broken=True))
    assert kept.keep("openai", KEY) == str(kept.path)
    assert found(kept) == KEY
    assert KEY not in caplog.text


def test_a_keyring_that_gives_nothing_is_no_key_and_one_that_removes_nothing_is_told(
    tmp_path: Path,
) -> None:
    keyring = FakeKeyring()
    logins(tmp_path, keyring).keep("openai", KEY)
    keyring.broken = True
    kept = logins(tmp_path, keyring)
    assert found(kept) is None
    with pytest.raises(LoginError, match="didn't delete the key of openai"):
        kept.forget("openai")
    assert list(kept) == ["openai"]


def test_a_key_entered_in_another_program_counts_at_once(tmp_path: Path) -> None:
    kept, other = logins(tmp_path), logins(tmp_path)
    assert found(kept) is None
    other.keep("openai", KEY)
    assert found(kept) == KEY
    other.keep("openai", f"{KEY}-newer")
    assert found(kept) == f"{KEY}-newer"


@pytest.mark.parametrize("text", ["", "[]", "{", '{"openai": "x"}', '{"openai": {"key": 3}}', "\0"])
def test_a_damaged_file_is_no_key_and_is_replaced(tmp_path: Path, text: str) -> None:
    kept = logins(tmp_path)
    kept.path.write_text(text)
    assert found(kept) is None
    kept.keep("openai", KEY)
    assert found(kept) == KEY


def test_settings_count_before_the_environment_and_that_before_a_login(tmp_path: Path) -> None:
    kept = logins(tmp_path)
    kept.keep("openai", KEY)
    environ = {"OPENAI_API_KEY": "usual", "WORK": "team"}
    providers = {"openai": ProviderSettings(api_key_env="WORK")}

    for keys, source in (
        (Keys({}, logins=kept), SOURCE),
        (Keys(environ, logins=kept), "OPENAI_API_KEY"),
        (Keys(environ, providers=providers, logins=kept), "WORK"),
    ):
        assert keys.available() == {"openai": source}


def test_a_request_is_sent_with_it_and_a_missing_one_names_the_way(tmp_path: Path) -> None:
    kept = logins(tmp_path)
    router = Router(Catalog(), {}, logins=kept)
    with pytest.raises(
        ModelError, match=r"use /login \(or tui-agent login anthropic\), or set ANTHROPIC_API_KEY"
    ):
        router.route("anthropic/claude-sonnet-5")
    kept.keep("anthropic", KEY)
    assert router.route("anthropic/claude-sonnet-5").secret_headers() == {"x-api-key": KEY}


WANTED = {
    "openai": ("authorization", f"Bearer {KEY}"),
    "anthropic": ("x-api-key", KEY),
    "gemini": ("x-goog-api-key", KEY),
    "azure": ("api-key", KEY),
}


async def tried(
    provider: str, answers: dict[str, Any], *, key: str = KEY, wanted: tuple[str, str] | None = None
) -> Trial:
    with ListServer(answers, wanted) as server:
        return await try_key(provider_of(provider), AddressSetting(f"{server.url}/v1"), key)


@pytest.mark.parametrize("provider", WANTED)
async def test_a_good_key_is_accepted_the_way_its_provider_takes_it(provider: str) -> None:
    trial = await tried(
        provider, {"/v1/models": {"data": []}}, key=f"  {KEY}\n", wanted=WANTED[provider]
    )
    assert trial.verdict == "accepted"


async def test_a_wrong_key_is_refused_in_words_that_do_not_repeat_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG):
        trial = await tried(
            "openai", {"/v1/models": {}}, key="sk-wrong-abcdefghijklmnop", wanted=WANTED["openai"]
        )
    assert trial.verdict == "refused"
    assert "OpenAI refuses the key" in trial.sentence
    assert "abcdefghij" not in trial.sentence + caplog.text


async def test_a_list_that_anyone_may_see_says_nothing_of_a_key() -> None:
    trial = await tried("deepinfra", {"/v1/models": {"data": []}})
    assert trial.verdict == "unknown"
    assert "also answers without a key" in trial.sentence


async def test_a_provider_with_a_public_list_is_asked_for_something_else() -> None:
    answers = {"/v1/models": {"data": []}, "/v1/key": {"data": {}}}
    wrong = await tried("openrouter", answers, key="sk-or-wrong", wanted=WANTED["openai"])
    right = await tried("openrouter", answers, wanted=WANTED["openai"])
    assert (wrong.verdict, right.verdict) == ("refused", "accepted")


@pytest.mark.parametrize(
    ("answer", "words"),
    [(404, "no list of models"), (500, "OpenAI failed (500)."), (302, "it redirects")],
)
async def test_what_says_nothing_of_the_key_is_not_held_against_it(answer: int, words: str) -> None:
    trial = await tried("openai", {"/v1/models": answer})
    assert trial.verdict == "unknown"
    assert words in trial.sentence


async def test_a_provider_that_cannot_be_reached_is_told_plainly() -> None:
    trial = await try_key(provider_of("openai"), AddressSetting(refused_url()), KEY)
    assert trial.verdict == "unknown"
    assert "Nothing answers at 127.0.0.1" in trial.sentence
    assert (await try_key(provider_of("bedrock"), AddressSetting(""), KEY)).verdict == "unknown"


@pytest.mark.parametrize("key", ["", "two words", "geheim…schlüssel", "a\x1b[31m"])
async def test_what_can_be_no_key_is_sent_to_nobody(key: str) -> None:
    with ListServer({"/v1/models": {}}) as server:
        trial = await try_key(provider_of("openai"), AddressSetting(f"{server.url}/v1"), key)
        assert trial.verdict == "refused"
        assert server.asked == []
