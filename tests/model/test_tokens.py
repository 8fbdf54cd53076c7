"""Signing in with OAuth against a scripted server: codes to enter, tokens that end, are renewed and given back."""

import asyncio
import logging
import multiprocessing
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.login_server import CODE, KEY, LoginServer, browse
from tests.support.model_client import ask, collect
from tui_agent.model.catalog import Catalog
from tui_agent.model.client import ProviderClient
from tui_agent.model.logins import Login, Logins
from tui_agent.model.protocol import ErrorKind
from tui_agent.model.providers import PROVIDERS, Provider, SignIn
from tui_agent.model.route import Router
from tui_agent.model.sign_in import BrowserSignIn, DeviceSignIn, SignInError, renew, sign_out

CLIENT = "client-of-an-organisation"
MODEL = "github_copilot/gpt-4.1"


@pytest.fixture
def server() -> Iterator[LoginServer]:
    with LoginServer() as server:
        yield server


def at(server: LoginServer, name: str = "github_copilot") -> Provider:
    provider = PROVIDERS[name]
    assert provider.sign_in is not None
    return replace(provider, sign_in=server.oauth(provider.sign_in), url=f"{server.url}/v1")


def device(server: LoginServer, **arguments: Any) -> DeviceSignIn:
    provider = at(server)
    assert provider.sign_in is not None
    return DeviceSignIn(provider, provider.sign_in, CLIENT, **arguments)


def kept(tmp_path: Path) -> Logins:
    return Logins(tmp_path / "credentials.json", lambda: None)


async def signed_in(server: LoginServer, logins: Logins, **changes: Any) -> Login:
    server.entered.set()
    async with device(server) as attempt:
        login = replace(await attempt.login(), **changes)
    logins.keep("github_copilot", login)
    return login


async def test_a_code_is_shown_and_asked_about_until_it_was_entered(server: LoginServer) -> None:
    async with device(server) as attempt:
        assert attempt.code == "WDJB-MJHT"
        assert attempt.url.startswith(server.url)
        waiting = asyncio.ensure_future(attempt.login())
        while len(server.posts) < 3:
            await asyncio.sleep(0.01)
        assert not waiting.done()
        server.entered.set()
        login = await waiting
    assert (login.key, login.client) == (server.access, CLIENT)
    assert login.refresh.startswith("renews-")
    assert all(given.get("client_id", CLIENT) == CLIENT for _path, given in server.posts)
    assert server.access not in repr(login)


async def test_it_slows_down_when_told_and_after_no_answer(server: LoginServer) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(round(seconds, 2))

    async with device(server, sleep=sleep) as attempt:
        server.script["/token"] = [
            (400, {"error": "slow_down"}),
            (200, {"error": "slow_down", "interval": 9}),
        ]
        server.entered.set()
        await attempt.login()
    assert slept == [0.05, 5.02, 9]


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        (400, "access_denied", "did not let you in"),
        (200, "expired_token", "Nobody entered the code"),
        (
            200,
            "incorrect_client_credentials",
            "refused the sign-in \\(incorrect_client_credentials\\)",
        ),
        (503, "", "refused the sign-in \\(status 503\\)"),
    ],
)
async def test_what_ends_it_is_a_sentence(
    server: LoginServer, status: int, error: str, words: str
) -> None:
    async with device(server) as attempt:
        server.script["/token"] = [(status, {"error": error} if error else {})]
        with pytest.raises(SignInError, match=words) as caught:
            await attempt.login()
        assert "device-code" not in str(caught.value)


async def test_a_code_that_nobody_enters_ends_by_itself(server: LoginServer) -> None:
    answer = {
        "verification_uri": f"{server.url}/enter",
        "user_code": "A-B",
        "device_code": "d",
        "expires_in": 0.2,
    }
    server.script["/device"] = [(200, {**answer, "interval": 0.01})]
    async with device(server) as attempt:
        with pytest.raises(SignInError, match="as long as it was good"):
            await attempt.login()


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"user_code": "A"},
        {"user_code": "A", "device_code": "d", "verification_uri": "file:///etc"},
    ],
)
async def test_a_server_without_a_code_is_told(server: LoginServer, answer: dict[str, str]) -> None:
    server.script["/device"] = [(200, answer)]
    with pytest.raises(SignInError, match="without a code"):
        await device(server).__aenter__()


async def test_a_browser_brings_tokens_and_nobody_else_can(server: LoginServer) -> None:
    provider = at(server, "chatgpt")
    assert provider.sign_in is not None
    async with BrowserSignIn(provider, provider.sign_in, CLIENT) as attempt:
        asked = httpx.URL(attempt.url).params
        assert (asked["client_id"], asked["response_type"]) == (CLIENT, "code")
        back = asked["redirect_uri"].replace("localhost", "127.0.0.1")
        assert await browse(f"{back}?code=stolen&state=guessed") == "Not here."
        with pytest.raises(SignInError, match="another attempt"):
            attempt.paste(f"{back}?code=stolen&state=guessed")
        waiting = asyncio.ensure_future(attempt.login())
        assert "logged in" in await browse(attempt.url)
        assert (await waiting).key == server.access
    assert provider.key_header(server.access)["chatgpt-account-id"] == "account-7"
    assert [given["code"] for _path, given in server.posts] == [CODE]


@pytest.mark.parametrize(
    ("lasts", "later", "posts"),
    [(3600, 0, 0), (3600, 3550, 1), (3600, -9e8, 0), (None, 3550, 1), (0.5, 0, 1)],
    ids=[
        "fresh",
        "before its end",
        "the clock went back",
        "told by the token itself",
        "lasts no time",
    ],
)
async def test_a_token_is_renewed_before_its_end(
    server: LoginServer, tmp_path: Path, lasts: float | None, later: float, posts: int
) -> None:
    server.expires_in, logins = lasts, kept(tmp_path)
    login = await signed_in(server, logins)
    before = len(server.posts)
    assert await renew(
        logins, at(server), now=lambda: login.expires - (lasts or 3600) + later
    ) is bool(posts)
    assert len(server.posts) - before == posts
    found = logins.find("github_copilot")
    assert found is not None
    assert (found.key == server.access, found.client) == (True, CLIENT)


def _renew_in_a_program(url: str, path: Path, refused: str) -> None:
    logins, provider = Logins(path, lambda: None), PROVIDERS["github_copilot"]
    assert provider.sign_in is not None
    how = replace(provider.sign_in, exchange=f"{url}/token")
    assert asyncio.run(renew(logins, replace(provider, sign_in=how), refused))


async def test_two_programs_renew_one_after_the_other(server: LoginServer, tmp_path: Path) -> None:
    logins = kept(tmp_path)
    old = (await signed_in(server, logins)).key
    server.hold.clear()
    started = multiprocessing.get_context("spawn")
    programs = [
        started.Process(target=_renew_in_a_program, args=(server.url, logins.path, old))
        for _ in range(2)
    ]
    for program in programs:
        program.start()
    while server.posts[-1][1]["grant_type"] != "refresh_token":
        await asyncio.sleep(0.02)
    server.hold.set()
    for program in programs:
        await asyncio.to_thread(program.join, 60)
    assert [program.exitcode for program in programs] == [0, 0]
    renewed = [given for path, given in server.posts if given.get("grant_type") == "refresh_token"]
    assert len(renewed) == 1
    found = logins.find("github_copilot")
    assert found is not None
    assert found.key == server.access


@pytest.fixture
def client(server: LoginServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProviderClient:
    monkeypatch.setitem(PROVIDERS, "github_copilot", at(server))
    return ProviderClient(Router(Catalog(), {}, logins=kept(tmp_path)))


async def test_a_refused_token_is_renewed_and_the_same_request_sent_once_more(
    server: LoginServer, client: ProviderClient, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = await signed_in(server, kept(tmp_path))
    server.issued += 1  # The provider took it back before its time.
    server.script["/token"] = [
        (
            200,
            {
                "access_token": server.access,
                "refresh_token": f"renews-{server.access}",
                "expires_in": 3600,
            },
        )
    ]
    with caplog.at_level(logging.DEBUG):
        answers = await asyncio.gather(*(collect(client, ask(MODEL)) for _ in range(3)))
    assert [answer.text for answer in answers] == ["Signed in."] * 3
    assert set(server.admitted) == {first.key, server.access}
    assert server.admitted.count(server.access) == 3
    assert (
        len([given for _path, given in server.posts if given.get("grant_type") == "refresh_token"])
        == 1
    )
    assert not any(secret in caplog.text for secret in (first.key, first.refresh, server.access))
    await client.aclose()


async def test_a_token_that_is_refused_twice_is_an_error(
    server: LoginServer, client: ProviderClient, tmp_path: Path
) -> None:
    login = await signed_in(server, kept(tmp_path))
    wrong = {"access_token": "wrong", "refresh_token": "other", "expires_in": 3600}
    server.issued, server.script["/token"] = 9, [(200, wrong)]
    error = (await collect(client, ask(MODEL))).failure
    assert "refuses the key" in str(error)
    assert server.admitted == [login.key, "wrong"]
    assert login.key not in str(error)
    await client.aclose()


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (
            (400, {"error": "invalid_grant"}),
            ErrorKind.AUTH,
            "sign in again with /login or tui-agent login github_cop",
        ),
        ((503, {}), ErrorKind.OVERLOADED, "status 503"),
    ],
)
async def test_a_sign_in_that_ended_says_what_to_do_and_an_outage_can_be_tried_again(
    server: LoginServer,
    client: ProviderClient,
    tmp_path: Path,
    answer: Any,
    kind: ErrorKind,
    words: str,
) -> None:
    await signed_in(server, kept(tmp_path), expires=1.0)
    server.script["/token"] = [answer]
    error = (await collect(client, ask(MODEL))).failure
    assert (error.kind, words in str(error)) == (kind, True)
    assert server.admitted == []
    await client.aclose()


async def test_giving_a_request_up_does_not_lose_what_renews(
    server: LoginServer, client: ProviderClient, tmp_path: Path
) -> None:
    logins = kept(tmp_path)
    await signed_in(server, logins, expires=1.0)
    server.hold.clear()
    request = asyncio.ensure_future(collect(client, ask(MODEL)))
    while server.posts[-1][1]["grant_type"] != "refresh_token":
        await asyncio.sleep(0.01)
    request.cancel()
    await asyncio.gather(request, return_exceptions=True)
    server.hold.set()
    await client.aclose()
    found = logins.find("github_copilot")
    assert found is not None
    assert (found.key, found.refresh) == (server.access, f"renews-{server.access}")


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("chatgpt", 200, ""),
        ("chatgpt", 500, "status 500"),
        ("github_copilot", 200, "github.com/settings/applications"),
    ],
)
async def test_signing_out_gives_tokens_back_where_one_can(
    server: LoginServer, name: str, status: int, words: str
) -> None:
    login = Login("access", "renews-it", client=CLIENT)
    server.script["/revoke"] = [(status, {})]
    told = await sign_out(at(server, name), login)
    assert words in told
    assert bool(told) is bool(words)
    given = [given["token"] for path, given in server.posts if path == "/revoke"]
    assert given == (["renews-it"] if name == "chatgpt" else [])


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


@pytest.mark.parametrize(
    "text", ["", "two words", "https://openrouter.ai/auth?callback_url=x", "http://["]
)
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


@pytest.mark.parametrize("refuses", [True, False])
async def test_a_user_who_refuses_or_closes_the_browser(
    server: LoginServer, *, refuses: bool
) -> None:
    async with attempt(server, seconds=20 if refuses else 0) as signing:
        if refuses:
            back = httpx.URL(signing.url).params["callback_url"].replace("localhost", "127.0.0.1")
            await browse(f"{back}?error=access_denied&error_description=You+said+no")
        with pytest.raises(
            SignInError, match="did not let you in: You said no" if refuses else "Nobody signed in"
        ):
            await signing.login()
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
            await signing.login()
        assert CODE not in str(caught.value)


async def test_a_server_that_can_not_be_reached_is_told() -> None:
    with LoginServer() as gone:
        pass
    async with attempt(gone) as signing:
        signing.paste(CODE)
        with pytest.raises(SignInError, match="Nothing answers"):
            await signing.login()
