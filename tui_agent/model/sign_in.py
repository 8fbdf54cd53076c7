"""Signs in to a provider's account: the user agrees in a browser, here or elsewhere, and gets a key or tokens.

Elsewhere is the device flow of RFC 8628. No clock but the event loop's says how long to wait, and a
token's life is counted from when it came.
"""

import asyncio
import base64
import contextlib
import hashlib
import os
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

import httpx

from tui_agent.errors import UserFacingError
from tui_agent.json_text import as_dict, as_text, loads
from tui_agent.model.error_facts import describe
from tui_agent.model.errors import Failure, Target, classify
from tui_agent.model.logins import Login, LoginError, Logins
from tui_agent.model.protocol import ErrorKind
from tui_agent.model.providers import PROVIDERS, Provider, SignIn, claims_of
from tui_agent.model.redaction import redact
from tui_agent.model.wires.http import Http
from tui_agent.model.wires.wire import WireFailure
from tui_agent.safe_text import one_line
from tui_agent.web.callback import Callback, answer_in

SECONDS = 600.0
"""Seconds the user may take in the browser."""
_DEVICE_SECONDS = 900.0
"""Seconds a code to enter is good for, where nobody says, and at most."""
_INTERVAL = 5.0
"""Seconds between two questions whether it was entered, where nobody says; also added when asked to
slow down."""
_FASTEST = 0.05
_REQUEST_SECONDS = 30.0


class SignInError(UserFacingError):
    """Signing in, or renewing a token, failed; ``kind`` says whether it can be tried again."""

    def __init__(self, message: str, kind: ErrorKind = ErrorKind.AUTH) -> None:
        super().__init__(message)
        self.kind = kind


class BrowserSignIn:
    """One attempt in a browser. The answer comes back to this machine, or the user pastes it.

    ``client`` is the id of a registered OAuth app; "" where the provider asks for none.
    """

    code = ""

    def __init__(
        self, provider: Provider, how: SignIn, client: str = "", *, seconds: float = SECONDS
    ) -> None:
        self._provider = provider
        self._how = how
        self._client = client
        self._seconds = seconds
        self._verifier = secrets.token_urlsafe(48)
        # Whoever knows neither the path nor the state can't answer in the user's place.
        port, path = how.callback
        self._state = secrets.token_urlsafe(12)
        self._callback = Callback(
            port, path or f"/callback/{self._state}", self._state if client else None
        )
        self._back = ""
        """Where the browser is sent to in the end."""

    async def __aenter__(self) -> Self:
        try:
            await self._callback.listen()
        except OSError as error:
            raise SignInError(
                f"No port of this machine is free for the browser to come back to: {error}."
            ) from None
        self._back = f"http://localhost:{self._callback.port}{self._callback.path}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._callback.close()

    @property
    def url(self) -> str:
        challenge = (
            base64.urlsafe_b64encode(hashlib.sha256(self._verifier.encode()).digest())
            .rstrip(b"=")
            .decode()
        )
        query = {"code_challenge": challenge, "code_challenge_method": "S256"}
        if self._client:
            query |= {
                "response_type": "code",
                "client_id": self._client,
                "redirect_uri": self._back,
            }
            query |= {"scope": self._how.scope, "state": self._state}
        else:
            query["callback_url"] = self._back
        return f"{self._how.page}?{urlencode(query)}"

    def is_key(self, text: str) -> bool:
        return bool(self._how.key_prefix) and text.strip().startswith(self._how.key_prefix)

    def paste(self, text: str) -> None:
        """Take the code, or the address the browser ended at.

        Raises:
            SignInError: there is no code in it.
        """
        text = text.strip()
        is_address = "://" in text
        if is_address:
            values = answer_in(text.partition("?")[2].partition("#")[0])
        else:
            values = {"code": text}
        if not values or not values.get("code", "x") or any(letter.isspace() for letter in text):
            raise SignInError(
                "That has no code: copy the whole address the browser ended at, or only its code."
            )
        if is_address and not self._callback.fits(values):
            raise SignInError(
                "That is the address of another attempt: sign in at the page that is shown now."
            )
        self._callback.give(values)

    async def login(self) -> Login:
        """Wait for the user, then return the login.

        Raises:
            SignInError: the user refused or took too long, or the provider did not take the code.
        """
        name = self._provider.name
        try:
            async with asyncio.timeout(self._seconds):
                answer = await self._callback.wait()
        except TimeoutError:
            raise SignInError(
                f"Nobody signed in to {name} within {self._seconds / 60:.0f} minutes."
            ) from None
        if "code" not in answer:
            why = one_line(answer.get("error_description") or answer["error"], 120)
            raise SignInError(f"{name} did not let you in: {why}.")
        given = {"code": answer["code"], "code_verifier": self._verifier}
        if self._client:
            given |= {
                "grant_type": "authorization_code",
                "client_id": self._client,
                "redirect_uri": self._back,
            }
            table = await post(self._provider, self._how.exchange, data=given)
        else:
            table = await post(
                self._provider, self._how.exchange, json={**given, "code_challenge_method": "S256"}
            )
        return _login(self._provider, table, self._client)


class DeviceSignIn:
    """One attempt with a code that the user enters in a browser anywhere."""

    def __init__(
        self,
        provider: Provider,
        how: SignIn,
        client: str,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._provider = provider
        self._how = how
        self._client = client
        self._sleep = sleep
        self._given: dict[str, str] = {}
        self.url = ""
        """The page to enter the code at."""
        self.code = ""

    async def __aenter__(self) -> Self:
        provider = self._provider
        id_ = {"client_id": self._client}
        table = await post(provider, self._how.device, data={**id_, "scope": self._how.scope})
        texts = {name: text for name, text in table.items() if isinstance(text, str)}
        self.code, self.url = (
            one_line(texts.get("user_code", ""), 40),
            texts.get("verification_uri", ""),
        )
        device = texts.get("device_code", "")
        if not (self.code and device and urlsplit(self.url).scheme in {"http", "https"}):
            raise SignInError(
                f"{provider.name} answered without a code to enter. Sign in again, or paste a key."
            )
        kind = "urn:ietf:params:oauth:grant-type:device_code"
        self._given = {**id_, "device_code": device, "grant_type": kind}
        self._seconds = min(_number(table.get("expires_in")) or _DEVICE_SECONDS, _DEVICE_SECONDS)
        self._interval = _number(table.get("interval")) or _INTERVAL
        return self

    async def __aexit__(self, *_: object) -> None: ...

    def is_key(self, _text: str) -> bool:
        return False

    def paste(self, _text: str) -> None:
        raise SignInError(f"Enter the code at {self.url}, not here.")

    async def login(self) -> Login:
        """Wait until the code was entered, then return the login.

        Raises:
            SignInError: the user refused, or did not enter it as long as it was good.
        """
        try:
            async with asyncio.timeout(self._seconds):
                while (login := await self._asked()) is None:
                    pass
        except TimeoutError:
            ended = f"Nobody entered the code at {self.url} as long as it was good. Sign in again for another."
            raise SignInError(ended) from None
        return login

    async def _asked(self) -> Login | None:
        provider = self._provider
        await self._sleep(max(self._interval, _FASTEST))
        try:
            status, table = await ask(provider, self._how.exchange, data=self._given)
        except SignInError:
            self._interval *= 2
            return None
        error = table.get("error")
        if error == "authorization_pending":
            return None
        if error == "slow_down":
            self._interval = _number(table.get("interval")) or self._interval + _INTERVAL
            return None
        if error == "expired_token":
            raise TimeoutError
        if error == "access_denied":
            raise SignInError(f"{provider.name} did not let you in: the sign-in was refused there.")
        return _login(
            provider, _accepted(provider, status, table, self._given.values()), self._client
        )


async def renew(
    logins: Logins, provider: Provider, refused: str = "", now: Callable[[], float] = time.time
) -> bool:
    """Renew a token that ends soon or was ``refused``; return whether there is another now.

    Programs do so one after the other: the second finds the token of the first.

    Raises:
        SignInError: the user has to sign in again, or the provider can't be reached.
        LoginError: the new token can't be kept.
    """
    async with logins.turn():
        login = await asyncio.to_thread(logins.find, provider.id)
        if login is None or provider.sign_in is None or not login.is_due(refused, now()):
            return login is not None and bool(refused) and login.key != refused
        given = {
            "grant_type": "refresh_token",
            "refresh_token": login.refresh,
            "client_id": login.client,
        }
        try:
            table = await post(provider, provider.sign_in.exchange, data=given)
        except SignInError as error:
            if error.kind is not ErrorKind.AUTH:
                raise
            advice = f"sign in again with /login or tui-agent login {provider.id}"
            raise SignInError(f"Your sign-in to {provider.name} has ended: {advice}.") from None
        # A server that gives no other one keeps to the first.
        renewed = _login(provider, {"refresh_token": login.refresh, **table}, login.client, now())
        await asyncio.to_thread(logins.keep, provider.id, renewed)
        return True


async def renew_due(logins: Logins) -> None:
    """Renew tokens that end soon, before servers are asked for their models.

    The next request shows failures.
    """
    for name in logins:
        login = await asyncio.to_thread(logins.find, name)
        provider = PROVIDERS.get(name)
        if login is not None and provider is not None and login.is_due("", time.time()):
            with contextlib.suppress(SignInError, LoginError):
                await renew(logins, provider)


async def sign_out(provider: Provider, login: Login) -> str:
    """Give tokens back; return a sentence on the rest for the user to do, "" for nothing."""
    how = provider.sign_in
    if how is None or not login.client:
        return ""
    by_hand = f"Take the app's access away at {how.apps_page}."
    if not how.revoke:
        return by_hand
    hint = "refresh_token" if login.refresh else "access_token"
    given = {
        "token": login.refresh or login.key,
        "token_type_hint": hint,
        "client_id": login.client,
    }
    try:
        await post(provider, how.revoke, json=given)
    except SignInError as error:
        return f"{error} {by_hand}"
    return ""


async def ask(provider: Provider, url: str, **body: Any) -> tuple[int, dict[str, Any]]:
    """Post a request of a sign-in; return the answer's status and its table, empty where it has none.

    Raises:
        SignInError: it was not answered.
    """
    http = Http(os.environ)
    hidden = [
        value for values in body.values() for value in values.values() if isinstance(value, str)
    ]
    try:
        headers = {"accept": "application/json"}
        response, text = await http.fetch(
            "POST", url, headers=headers, timeout=_REQUEST_SECONDS, **body
        )
    except WireFailure as failed:
        raise SignInError(
            f"{provider.name} can't be reached: {failed.failure.text}", ErrorKind.NETWORK
        ) from None
    except (httpx.HTTPError, OSError) as error:
        target = Target("", provider.name, urlsplit(url).netloc, "")
        failure = classify(Failure(**describe(error, hidden)), target, now=time.time())
        raise SignInError(failure.message, failure.kind) from None
    finally:
        await http.aclose()
    try:
        return response.status_code, as_dict(loads(text))
    except ValueError:
        return response.status_code, {}


async def post(provider: Provider, url: str, **body: Any) -> dict[str, Any]:
    """Post a request of a sign-in and return the answer's table.

    Raises:
        SignInError: it was refused or not answered.
    """
    status, table = await ask(provider, url, **body)
    return _accepted(
        provider, status, table, [value for values in body.values() for value in values.values()]
    )


def _accepted(
    provider: Provider, status: int, table: dict[str, Any], hidden: Any
) -> dict[str, Any]:
    """Return a table that is no refusal, whatever the status: GitHub refuses with 200."""
    if 200 <= status < 300 and "error" not in table:
        return table
    error = table.get("error")
    texts = (
        table.get("error_description"),
        as_dict(error).get("message"),
        error,
        table.get("message"),
    )
    why = (
        one_line(redact(next(filter(None, map(as_text, texts)), ""), hidden), 120)
        or f"status {status}"
    )
    if status >= 500 or status == 429:
        kind = ErrorKind.OVERLOADED
    else:
        kind = ErrorKind.AUTH
    raise SignInError(
        f"{provider.name} refused the sign-in ({why}). Sign in again: a code works once.", kind
    )


def _login(
    provider: Provider, table: Mapping[str, Any], client: str = "", now: float | None = None
) -> Login:
    key, refresh = table.get("access_token" if client else "key"), table.get("refresh_token")
    if not isinstance(key, str) or not key:
        raise SignInError(f"{provider.name} answered without a key. Sign in again, or paste a key.")
    claims = claims_of(key)
    life = _number(table.get("expires_in")) or _number(claims.get("exp")) - _number(
        claims.get("iat")
    )
    begin = time.time() if now is None else now
    return Login(
        key, refresh if isinstance(refresh, str) else "", begin + life if life > 0 else 0.0, client
    )


def _number(value: object) -> float:
    """Return a number however it is written, 0 for anything else."""
    try:
        return max(0.0, float(value)) if isinstance(value, int | float | str) else 0.0
    except ValueError:
        return 0.0
