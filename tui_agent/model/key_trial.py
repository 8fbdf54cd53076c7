"""Tries a key at its provider with the cheapest request there is: its list of models, or what its table names.

Some show that to anyone. So it is asked for without the key as well: only what is refused then says something of it.
"""

import os
import time
from typing import Literal

import httpx
from pydantic import SecretStr

from tui_agent.lazy import dataclass
from tui_agent.model.addresses import AddressSetting, split
from tui_agent.model.discovery import request_headers
from tui_agent.model.errors import Failure, Target, classify, describe
from tui_agent.model.keys import Key
from tui_agent.model.protocol import ErrorKind
from tui_agent.model.providers import Provider
from tui_agent.model.redaction import redact
from tui_agent.model.wires.http import Http
from tui_agent.model.wires.wire import WireFailure

TIMEOUT = 15.0
"""Seconds each of the two requests may take."""
_MOST_READ = 64 << 10
_NO_SUCH_PATH = {404, 405, 501}
_LATER = "The first message will show whether it is good."


@dataclass(frozen=True, slots=True)
class Trial:
    """How trying a key went; ``sentence`` tells it to a person. ``unknown``: nothing can be said of the key."""

    verdict: Literal["accepted", "refused", "unknown"]
    sentence: str


async def try_key(provider: Provider, place: AddressSetting, key: Key, *, timeout: float = TIMEOUT) -> Trial:  # noqa: ASYNC109 - httpx's own, for each request
    name, secret = provider.name, key.secret.get_secret_value()
    if not (secret.isascii() and secret.isprintable()) or not secret or " " in secret:
        return Trial("refused", "That can't be a key: it is empty, or has a character that no key has, like a space.")
    if not place.url:
        return Trial("unknown", f"The key of {name} can't be tried without a model. {_LATER}")
    http = Http(os.environ)
    try:
        failure = await _ask(http, provider, place, key, timeout)
        if failure is None:
            public = await _ask(http, provider, place, None, timeout) is None
            told = f"{name} answers without a key too, so it was not tried. {_LATER}"
            return Trial("unknown", told) if public else Trial("accepted", f"{name} accepts the key.")
    finally:
        await http.aclose()
    if failure.status in _NO_SUCH_PATH:
        return Trial("unknown", f"{name} has no list of models to try the key with. {_LATER}")
    target = Target("", name, split(place.url).netloc.rpartition("@")[2], "it may be cut off, or of another provider")
    error = classify(failure, target, now=time.time())
    return Trial("refused" if error.kind is ErrorKind.AUTH else "unknown", error.message)


async def _ask(
    http: Http, provider: Provider, place: AddressSetting, key: Key | None, seconds: float
) -> Failure | None:
    """Return why a request was not answered, None when it was. Nobody is followed elsewhere with a key."""
    secrets = [key.secret.get_secret_value()] if key is not None else []
    url = f"{place.url.rstrip('/')}{provider.key_path}"
    try:
        client = await http.client(url)
        async with client.stream(
            "GET", url, headers=request_headers(provider, key), timeout=seconds, follow_redirects=False
        ) as response:
            if response.is_success:
                return None
            if response.is_redirect:
                return Failure("it points elsewhere: put that address into base_url", response.status_code)
            body = bytearray()
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > _MOST_READ:
                    break
            return Failure(redact(body.decode("utf-8", "replace"), secrets), response.status_code)
    except WireFailure as failed:
        return failed.failure
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        return Failure(**describe(error, secrets))


def typed(secret: str) -> Key:
    """Return a key somebody typed or pasted, without what stands around it."""
    return Key(SecretStr(secret.strip()), "")
