"""Obtains an API key from a provider: the user signs in with the browser (OAuth with PKCE).

This module listens on a local port and exchanges the code for the key. The caller opens the browser
and stores the key.
"""

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
from tui_agent.json_text import as_dict, as_text, loads
from tui_agent.model.error_facts import failure_facts
from tui_agent.model.errors import Failure, Target, classify
from tui_agent.model.providers import Provider, SignIn
from tui_agent.model.redaction import redact
from tui_agent.model.wires.http import Http
from tui_agent.model.wires.wire import WireFailure
from tui_agent.safe_text import one_line
from tui_agent.web.callback import Callback, answer_in

SECONDS = 600.0
"""The user must sign in within this time, in seconds."""
_REQUEST_SECONDS = 30.0


class SignInError(UserFacingError):
    """Raised if a sign-in failed. The message says why."""


class BrowserSignIn:
    """A browser sign-in, as a context manager that listens on a local port.

    Open ``url`` in the browser, then await ``key``. The code is received at the port, or through
    ``paste``.
    """

    def __init__(self, provider: Provider, how: SignIn, *, seconds: float = SECONDS) -> None:
        self._provider = provider
        self._how = how
        self._seconds = seconds
        self._verifier = secrets.token_urlsafe(48)
        # The path is random, so that other programs and pages can't send an answer instead of the
        # user.
        self._callback = Callback(path=f"/callback/{secrets.token_urlsafe(12)}")
        self._back = ""
        """The address to which the browser is redirected at the end of the sign-in."""

    async def __aenter__(self) -> Self:
        try:
            await self._callback.listen()
        except OSError as error:
            raise SignInError(
                f"Can't open a local port for the browser's answer: {error}."
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
        digest = hashlib.sha256(self._verifier.encode()).digest()
        query = {
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
            "callback_url": self._back,
        }
        return f"{self._how.page}?{urlencode(query)}"

    def is_key(self, text: str) -> bool:
        return text.strip().startswith(self._how.key_prefix)

    def paste(self, text: str) -> None:
        """Accept what the user copied: the code, or the address of the browser's last page.

        Raises:
            SignInError: the text contains no code.
        """
        text = text.strip()
        if "://" in text:
            values = answer_in(text.partition("?")[2].partition("#")[0])
        else:
            values = {"code": text}
        if not values or not values.get("code", "x") or any(letter.isspace() for letter in text):
            raise SignInError(
                "This text contains no code. Copy the address of the browser's last page, or the code in it."
            )
        self._callback.give(values)

    async def key(self) -> str:
        """Wait until the user has signed in, exchange the code, and return the key.

        Raises:
            SignInError: the user refused or took too long, or the provider returned no key.
        """
        name = self._provider.name
        try:
            async with asyncio.timeout(self._seconds):
                answer = await self._callback.wait()
        except TimeoutError:
            raise SignInError(
                f"The sign-in to {name} was not finished within {self._seconds / 60:.0f} minutes."
            ) from None
        if "code" not in answer:
            why = one_line(answer.get("error_description") or answer["error"], 120)
            raise SignInError(f"{name} ended the sign-in: {why}.")
        given = {
            "code": answer["code"],
            "code_verifier": self._verifier,
            "code_challenge_method": "S256",
        }
        key = (await _post(self._provider, self._how.exchange, given)).get("key")
        if not isinstance(key, str) or not key:
            raise SignInError(f"{name} answered without a key. Sign in again, or paste a key.")
        return key


async def _post(provider: Provider, url: str, given: dict[str, str]) -> dict[str, Any]:
    """Post ``given`` as JSON and return the JSON object that the server answers with.

    The object is {} if the answer contains none.

    Raises:
        SignInError: the request was refused or not answered.
    """
    http = Http(os.environ)
    try:
        headers = {"accept": "application/json"}
        response, text = await http.fetch(
            "POST", url, headers=headers, timeout=_REQUEST_SECONDS, json=given
        )
    except WireFailure as failed:
        raise SignInError(f"{provider.name} can't be reached: {failed.failure.text}") from None
    except (httpx.HTTPError, OSError) as error:
        target = Target("", provider.name, urlsplit(url).netloc, "")
        failure = classify(Failure(**failure_facts(error, given.values())), target, now=time.time())
        raise SignInError(failure.message) from None
    finally:
        await http.aclose()
    try:
        table = as_dict(loads(text))
    except ValueError:
        table = {}
    if response.is_success and "error" not in table:
        return table
    fault = table.get("error")
    said = (as_dict(fault).get("message"), fault, table.get("message"))
    words = next(filter(None, map(as_text, said)), "")
    why = one_line(redact(words, given.values()), 120) or f"status {response.status_code}"
    raise SignInError(
        f"{provider.name} refused the sign-in ({why}). Sign in again, because a code works only once."
    )
