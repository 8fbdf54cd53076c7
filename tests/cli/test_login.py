"""``tui-agent login`` and ``logout``: keys from a pipe, tried at a local server."""

import asyncio
import io
import json
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from tests.support.list_server import ListServer
from tests.support.login_server import CODE, LoginServer, browse
from tests.support.login_server import KEY as LOGIN_KEY
from tests.support.model_server import refused_url
from tui_agent.cli.main import run
from tui_agent.model.providers import PROVIDERS
from tui_agent.paths import config_dir, data_dir

KEY = "sk-entered-0123456789abcdef"


pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ListServer]:
    with ListServer({"/v1/models": {"data": []}}, ("authorization", f"Bearer {KEY}")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        yield server


def entered(monkeypatch: pytest.MonkeyPatch, text: str, *arguments: str) -> int:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    return run([*arguments])


def everything_written(tmp_path: Path) -> str:
    files = [
        path for path in tmp_path.rglob("*") if path.is_file() and path.name != "credentials.json"
    ]
    return "\n".join(path.read_bytes().decode("utf-8", "replace") for path in files)


def test_a_key_is_tried_kept_shown_by_doctor_and_removed(
    tmp_path: Path,
    server: ListServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert entered(monkeypatch, f"{KEY}\n", "login", "openai") == 0
    told = capsys.readouterr().out
    assert "OpenAI accepts the key" in told
    assert KEY not in told
    kept = config_dir() / "credentials.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert json.loads(kept.read_text()) == {"openai": {"key": KEY}}

    run(["doctor"])
    doctor = capsys.readouterr().out
    assert "openai from tui-agent login" in doctor
    assert "Order: config.toml, then the environment" in doctor
    assert KEY not in doctor
    monkeypatch.setenv("OPENAI_API_KEY", "sk-another")
    run(["doctor"])
    assert (
        "openai from OPENAI_API_KEY, which overrides the one from tui-agent login"
        in capsys.readouterr().out
    )

    assert entered(monkeypatch, "", "logout", "openai") == 0
    assert "OPENAI_API_KEY still provides one" in capsys.readouterr().out
    assert json.loads(kept.read_text()) == {}
    assert KEY not in everything_written(tmp_path)
    assert data_dir().exists()


def test_a_refused_key_is_not_kept(
    server: ListServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert entered(monkeypatch, "sk-wrong-abcdefghijklmnop\n", "login", "OpenAI", "--force") == 1
    told = capsys.readouterr().err
    assert "OpenAI refuses the key" in told
    assert "abcdefghij" not in told
    assert not (config_dir() / "credentials.json").exists()


def test_a_key_that_cannot_be_tried_is_kept_only_with_force(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", refused_url())
    assert entered(monkeypatch, f"{KEY}\n", "login", "openai") == 1
    assert "--force saves it anyway" in capsys.readouterr().err
    assert entered(monkeypatch, f"{KEY}\n", "login", "openai", "--force") == 0
    assert KEY in (config_dir() / "credentials.json").read_text()


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("", 1)])
def test_at_a_terminal_the_key_is_asked_for_unseen_and_whether_to_keep_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: str, code: int
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", refused_url())
    stdin = io.StringIO(f"{answer}\n")
    monkeypatch.setattr(stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", stdin)
    monkeypatch.setattr("getpass.getpass", lambda _question: KEY)
    assert run(["login", "openai"]) == code
    assert (config_dir() / "credentials.json").exists() is (code == 0)
    assert KEY not in str(capsys.readouterr())


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("login", "grok"), 2, "There is no provider “grok”"),
        (("login",), 2, "Name a provider: anthropic, openai"),
        (("login", "openai"), 2, "No key was entered"),
        (("login", "azure"), 1, "Azure OpenAI also needs AZURE_API_BASE"),
        (("logout",), 1, "No API key was entered"),
        (("logins",), 2, "Did you mean login?"),
    ],
)
def test_mistakes_are_sentences(
    monkeypatch, capsys, arguments: tuple[str, ...], code: int, words: str
) -> None:
    assert entered(monkeypatch, "", *arguments) == code
    assert words in capsys.readouterr().err


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoginServer]:
    for name in ("OPENROUTER_API_KEY", "OPENROUTER_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    with LoginServer() as server:
        provider = PROVIDERS["openrouter"]
        assert provider.sign_in is not None
        how = replace(provider.sign_in, page=f"{server.url}/auth", exchange=f"{server.url}/keys")
        monkeypatch.setitem(
            PROVIDERS, "openrouter", replace(provider, sign_in=how, url=f"{server.url}/v1")
        )
        yield server


class PersonAtTheTerminal(io.StringIO):
    """Standard input of somebody who first reads what was printed, and then answers."""

    def __init__(self, printed: io.StringIO, answer: Callable[[str], str]) -> None:
        super().__init__()
        self._printed, self._answer = printed, answer

    def readline(self, _size: int | None = -1, /) -> str:
        (url,) = (word for word in self._printed.getvalue().split() if word.startswith("http"))
        return self._answer(url)


def at_terminal(monkeypatch: pytest.MonkeyPatch, answer: Callable[[str], str]) -> tuple[int, str]:
    printed = io.StringIO()
    monkeypatch.setattr(sys, "stderr", printed)
    monkeypatch.setattr(sys, "stdin", PersonAtTheTerminal(printed, answer))
    return run(["login", "openrouter"]), printed.getvalue()


@pytest.mark.parametrize("way", ["code", "address", "browser"])
def test_login_prints_the_page_and_takes_its_answer(
    way: str,
    tmp_path: Path,
    page: LoginServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    waiting = threading.Event()

    def answer(url: str) -> str:
        if way == "browser":
            asyncio.run(browse(url))
            waiting.wait(20)
            return ""
        with httpx.Client(trust_env=False) as browser:
            back = browser.get(url).headers["location"]
        return CODE if way == "code" else back

    code, told = at_terminal(monkeypatch, answer)
    waiting.set()
    assert code == 0, told
    out = capsys.readouterr().out
    assert "You are signed in to OpenRouter. The key is saved in" in out
    assert LOGIN_KEY not in out + told
    assert json.loads((config_dir() / "credentials.json").read_text()) == {
        "openrouter": {"key": LOGIN_KEY}
    }
    assert LOGIN_KEY not in everything_written(tmp_path)
    assert CODE not in everything_written(tmp_path)


def test_login_says_why_it_failed_and_keeps_nothing(
    page: LoginServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, told = at_terminal(monkeypatch, lambda _url: "wrong-code")
    assert code == 1
    assert "OpenRouter refused the sign-in" in told
    assert not (config_dir() / "credentials.json").exists()
    assert page.posts


@pytest.mark.parametrize("name", ["github_copilot", "chatgpt"])
def test_copilot_and_chatgpt_take_a_token_and_no_sign_in(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert entered(monkeypatch, "", "login", name) == 2
    assert "No key was entered. Type or paste it" in capsys.readouterr().err
