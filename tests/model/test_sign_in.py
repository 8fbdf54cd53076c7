"""Signing in with a browser against a scripted authorisation server."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest

from tests.support.login_server import CODE, KEY, LoginServer, browse
from tui_agent.model.providers import PROVIDERS, SignIn
from tui_agent.model.sign_in import BrowserSignIn, SignInError


@pytest.fixture
def server() -> Iterator[LoginServer]:
    with LoginServer() as server:
        yield server


def attempt(server: LoginServer, *, seconds: float = 20) -> BrowserSignIn:
    provider = PROVIDERS["openrouter"]
    assert isinstance(provider.sign_in, SignIn)
    how = replace(provider.sign_in, page=f"{server.url}/auth", exchange=f"{server.url}/keys")
    return BrowserSignIn(provider, how, seconds=seconds)


async def test_the_browser_comes_back_and_its_code_becomes_a_key(server: LoginServer) -> None:
    async with attempt(server) as signing:
        secret = asyncio.ensure_future(signing.login())
        assert "logged in" in await browse(signing.url)
        assert (await secret).key == KEY
    assert server.pages[0]["callback_url"].startswith("http://localhost:")
    assert server.pages[0]["code_challenge_method"] == "S256"
    with pytest.raises(httpx.ConnectError):
        await browse(server.way_back(CODE))


@pytest.mark.parametrize("whole", [True, False])
async def test_a_pasted_address_or_code_does_as_well(server: LoginServer, *, whole: bool) -> None:
    async with attempt(server) as signing:
        async with httpx.AsyncClient(trust_env=False) as browser:
            back = (await browser.get(signing.url)).headers["location"]
        signing.paste(f" {back}\n" if whole else CODE)
        assert (await signing.login()).key == KEY
        assert signing.is_key(KEY)
        assert not signing.is_key(CODE)


@pytest.mark.parametrize("text", ["", "two words", "https://openrouter.ai/auth?callback_url=x", "http://["])
async def test_what_has_no_code_is_not_taken_for_one(server: LoginServer, text: str) -> None:
    async with attempt(server) as signing:
        with pytest.raises(SignInError, match="has no code"):
            signing.paste(text)


async def test_only_the_page_that_was_asked_may_answer(server: LoginServer) -> None:
    async with attempt(server) as signing:
        port = httpx.URL(httpx.URL(signing.url).params["callback_url"]).port
        assert await browse(f"http://127.0.0.1:{port}/callback?code=stolen") == "Not here."
        signing.paste(CODE)
        with pytest.raises(SignInError, match="refused the sign-in"):
            await signing.login()
        assert [given["code"] for _path, given in server.posts] == [CODE]


async def test_a_refused_code_is_said_without_the_code(server: LoginServer) -> None:
    async with attempt(server) as signing:
        await browse(signing.url)
        server.script["/keys"] = [(403, {"error": {"message": f"Invalid code {CODE}"}})]
        with pytest.raises(SignInError, match="OpenRouter refused the sign-in \\(Invalid code") as caught:
            await signing.login()
        assert CODE not in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("error=access_denied&error_description=You+said+no", "did not let you in: You said no"),
        ("", "Nobody signed in"),
    ],
)
async def test_a_user_who_refuses_or_closes_the_browser(server: LoginServer, answer: str, told: str) -> None:
    async with attempt(server, seconds=20 if answer else 0) as signing:
        if answer:
            await browse(f"{httpx.URL(signing.url).params['callback_url'].replace('localhost', '127.0.0.1')}?{answer}")
        with pytest.raises(SignInError, match=told):
            await signing.login()
    assert server.posts == []


async def test_a_server_that_can_not_be_reached_or_answers_nonsense(server: LoginServer) -> None:
    for status, table in ((200, {}), (500, {})):
        async with attempt(server) as signing:
            server.script["/keys"] = [(status, table)]
            signing.paste(CODE)
            with pytest.raises(SignInError, match="without a key" if status == 200 else "status 500"):
                await signing.login()
    with LoginServer() as gone:
        pass
    async with attempt(gone) as signing:
        signing.paste(CODE)
        with pytest.raises(SignInError, match="Nothing answers"):
            await signing.login()
