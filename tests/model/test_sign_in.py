"""Signing in with the browser against a scripted server."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

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
        secret = asyncio.ensure_future(signing.key())
        assert "logged in" in await browse(signing.url)
        assert await secret == KEY
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
        assert await signing.key() == KEY
        assert signing.is_key(KEY)
        assert not signing.is_key(CODE)


@pytest.mark.parametrize(
    "text", ["", "two words", "https://openrouter.ai/auth?callback_url=x", "http://["]
)
async def test_what_has_no_code_is_not_taken_for_one(server: LoginServer, text: str) -> None:
    async with attempt(server) as signing:
        with pytest.raises(SignInError, match="contains no code"):
            signing.paste(text)


async def test_only_the_page_that_was_asked_may_answer(server: LoginServer) -> None:
    async with attempt(server) as signing:
        port = httpx.URL(httpx.URL(signing.url).params["callback_url"]).port
        assert await browse(f"http://127.0.0.1:{port}/callback?code=stolen") == "Not here."
        signing.paste(CODE)
        with pytest.raises(SignInError, match="refused the sign-in"):
            await signing.key()
        assert [given["code"] for _path, given in server.posts] == [CODE]


@pytest.mark.parametrize("refuses", [True, False])
async def test_a_user_who_refuses_or_closes_the_browser(
    server: LoginServer, *, refuses: bool
) -> None:
    async with attempt(server, seconds=20 if refuses else 0) as signing:
        if refuses:
            back = httpx.URL(signing.url).params["callback_url"].replace("localhost", "127.0.0.1")
            await browse(f"{back}?error=access_denied&error_description=You+said+no")
        with pytest.raises(
            SignInError, match="ended the sign-in: You said no" if refuses else "was not finished"
        ):
            await signing.key()
    assert server.posts == []


@pytest.mark.parametrize(
    ("status", "table", "words"),
    [
        (200, {}, "without a key"),
        (500, {}, "status 500"),
        (
            403,
            {"error": {"message": f"Invalid code {CODE}"}},
            "OpenRouter refused the sign-in \\(Invalid code",
        ),
    ],
)
async def test_a_code_that_brings_no_key_is_told_without_it(
    server: LoginServer, status: int, table: dict[str, Any], words: str
) -> None:
    async with attempt(server) as signing:
        server.script["/keys"] = [(status, table)]
        signing.paste(CODE)
        with pytest.raises(SignInError, match=words) as caught:
            await signing.key()
        assert CODE not in str(caught.value)


async def test_a_server_that_can_not_be_reached_is_told() -> None:
    with LoginServer() as gone:
        pass
    async with attempt(gone) as signing:
        signing.paste(CODE)
        with pytest.raises(SignInError, match="Nothing answers"):
            await signing.key()
