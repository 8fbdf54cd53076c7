"""Signs in to a provider's account: the user agrees in a browser, whose answer is exchanged for a key."""

import asyncio
import base64
import hashlib
import os
import secrets
import time
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

import httpx

from tui_agent.errors import UserFacingError
from tui_agent.model.errors import Failure, Target, classify, describe
from tui_agent.model.providers import Provider, SignIn
from tui_agent.model.redaction import redact
from tui_agent.model.wires.http import Http
from tui_agent.model.wires.wire import WireFailure
from tui_agent.safe_text import one_line
from tui_agent.web.callback import Callback, answer_in

SECONDS = 600.0
"""Seconds the user may take in the browser."""
_REQUEST_SECONDS = 30.0


class SignInError(UserFacingError):
    """Signing in failed."""


class BrowserSignIn:
    """One attempt in a browser. The answer comes back to this machine, or the user pastes it."""

    def __init__(self, provider: Provider, how: SignIn, *, seconds: float = SECONDS) -> None:
        self._provider = provider
        self._how = how
        self._seconds = seconds
        self._verifier = secrets.token_urlsafe(48)
        # Whoever does not know the path can't answer in the user's place.
        self._callback = Callback(path=f"/callback/{secrets.token_urlsafe(12)}")

    async def __aenter__(self) -> Self:
        try:
            await self._callback.listen()
        except OSError as error:
            raise SignInError(f"No port of this machine is free for the browser to come back to: {error}.") from None
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._callback.close()

    @property
    def url(self) -> str:
        query = {
            "callback_url": f"http://localhost:{self._callback.port}{self._callback.path}",
            "code_challenge": _challenge(self._verifier),
            "code_challenge_method": "S256",
        }
        return f"{self._how.page}?{urlencode(query)}"

    def is_key(self, text: str) -> bool:
        """Whether a text is one of the provider's keys instead of a code."""
        return bool(self._how.key_prefix) and text.strip().startswith(self._how.key_prefix)

    def paste(self, text: str) -> None:
        """Take the code, or the address the browser ended at.

        Raises:
            SignInError: there is no code in it.
        """
        text = text.strip()
        values = answer_in(text.partition("?")[2].partition("#")[0]) if "://" in text else {"code": text}
        if not values or not values.get("code", "x") or any(letter.isspace() for letter in text):
            raise SignInError("That has no code: copy the whole address the browser ended at, or only its code.")
        self._callback.give(values)

    async def secret(self) -> str:
        """Wait for the user, then return what the provider gives.

        Raises:
            SignInError: the user refused or took too long, or the provider did not take the code.
        """
        name = self._provider.name
        try:
            async with asyncio.timeout(self._seconds):
                answer = await self._callback.wait()
        except TimeoutError:
            raise SignInError(f"Nobody signed in to {name} within {self._seconds / 60:.0f} minutes.") from None
        if "code" not in answer:
            why = one_line(answer.get("error_description") or answer["error"], 120)
            raise SignInError(f"{name} did not let you in: {why}.")
        given = {"code": answer["code"], "code_verifier": self._verifier, "code_challenge_method": "S256"}
        table = await post(self._provider, self._how.exchange, json=given)
        key = table.get("key")
        if not isinstance(key, str) or not key:
            raise SignInError(f"{name} answered without a key. Sign in again, or paste a key.")
        return key


async def post(provider: Provider, url: str, **body: Any) -> dict[str, Any]:
    """Post a request of a sign-in and return the answer's table.

    Raises:
        SignInError: it was refused or not answered.
    """
    http = Http(os.environ)
    hidden = [value for values in body.values() for value in values.values() if isinstance(value, str)]
    try:
        client = await http.client(url)
        headers = {"accept": "application/json"}
        response = await client.post(url, headers=headers, timeout=_REQUEST_SECONDS, follow_redirects=False, **body)
    except WireFailure as failed:
        raise SignInError(f"{provider.name} can't be reached: {failed.failure.text}") from None
    except (httpx.HTTPError, OSError) as error:
        target = Target("", provider.name, urlsplit(url).netloc, "")
        message = classify(Failure(**describe(error, hidden)), target, now=time.time()).message
        raise SignInError(message) from None
    finally:
        await http.aclose()
    try:
        answer = response.json()
    except ValueError:
        answer = None
    table = answer if isinstance(answer, dict) else {}
    if response.is_success:
        return table
    why = redact(_reason(table), hidden) or f"status {response.status_code}"
    raise SignInError(f"{provider.name} refused the sign-in ({one_line(why, 120)}). Sign in again: a code works once.")


def _reason(table: dict[str, Any]) -> str:
    """Return why a request was refused, in the forms that providers write it."""
    error = table.get("error")
    texts = (table.get("error_description"), error.get("message") if isinstance(error, dict) else error)
    return next((text for text in (*texts, table.get("message")) if isinstance(text, str) and text), "")


def _challenge(verifier: str) -> str:
    """Return the challenge S256 of RFC 7636."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
