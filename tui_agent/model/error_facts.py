"""Reads the status, message and cause of a failed request from litellm's or httpx's exception.

litellm maps errors to its own classes and loses facts. For example, a refused connection becomes
status 500, 529 becomes 500, 413 becomes 400. So the chain of causes is searched for the original
exception.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from tui_agent.json_text import as_text
from tui_agent.model.redaction import redact

_CAUSES = (
    (
        "certificate",
        (
            "ClientConnectorCertificateError",
            "SSLCertVerificationError",
            "SSLError",
            "ClientSSLError",
        ),
    ),
    ("unresolved", ("ClientConnectorDNSError", "gaierror")),
    ("connect_timeout", ("ConnectTimeout", "ConnectionTimeoutError")),
    ("refused", ("ClientConnectorError", "ConnectionRefusedError", "ConnectError")),
    (
        "timeout",
        ("ReadTimeout", "WriteTimeout", "PoolTimeout", "ServerTimeoutError", "APITimeoutError"),
    ),
    (
        "closed",
        (
            "ClientPayloadError",
            "RemoteProtocolError",
            "ServerDisconnectedError",
            "ConnectionResetError",
            "BrokenPipeError",
            "IncompleteReadError",
            "ReadError",
            "WriteError",
            "ClientOSError",
        ),
    ),
    (
        "broken",
        (
            "JSONDecodeError",
            "UnicodeDecodeError",
            "TransferEncodingError",
            "APIResponseValidationError",
        ),
    ),
)
"""Causes of a failed connection, with the names of the exception classes that show them. The first
match is used."""

_WANTED_HEADERS = ("retry-after", "ratelimit", "rate-limit")
_TEXT_LENGTH = 20_000


def failure_facts(error: BaseException, secrets: Iterable[str] = ()) -> dict[str, Any]:
    """Return an exception's facts as keyword arguments of `errors.Failure`, without secrets.

    ``secrets`` are texts to replace, besides texts that look like secrets.
    """
    chain = list(_chain(error))
    response = next((found for found in map(_response, chain) if found is not None), None)
    names: set[str] = set()
    for each in chain:
        names.update(base.__name__ for base in type(each).__mro__)
    facts: dict[str, Any]
    if response is not None and response.status_code >= 400:
        facts = {"status": response.status_code, "headers": wait_headers(response.headers)}
        text = _body(chain, response) or str(error)
    elif cause := next((cause for cause, classes in _CAUSES if names.intersection(classes)), None):
        facts = {"cause": cause}
        text = str(error)
    else:
        # The status of a provider's exception is more precise than that of litellm's own classes.
        by_trust = sorted(chain, key=lambda each: type(each).__module__ == "litellm.exceptions")
        facts = {"status": _status(by_trust), "headers": {}}
        texts = [str(getattr(each, "message", None) or each) for each in chain]
        text = next((text for text in texts if "{" in text), texts[0])
    # litellm appends tracebacks to some messages, and repeats the original message after others.
    text = text.partition("\nTraceback (most recent call last)")[0]
    text = text.partition(" Original exception: ")[0]
    return {**facts, "text": redact(text[: 2 * _TEXT_LENGTH], secrets)[:_TEXT_LENGTH]}


def _chain(error: BaseException) -> Iterator[BaseException]:
    waiting = [error]
    seen = set[int]()
    while waiting:
        current = waiting.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        inner = (
            getattr(current, "original_exception", None),
            current.__cause__,
            current.__context__,
        )
        waiting.extend(item for item in inner if isinstance(item, BaseException))


def _status(errors: Iterable[BaseException]) -> int | None:
    for error in errors:
        status = getattr(error, "status_code", None)
        if isinstance(status, int) and 400 <= status < 600:
            return status
    return None


def _response(error: BaseException) -> Any | None:
    """Return an exception's HTTP response; None if it has none.

    The function also returns None for litellm's own exceptions, because their response isn't the
    provider's.
    """
    if type(error).__module__.partition(".")[0] == "litellm":
        return None
    response = getattr(error, "response", None)
    if isinstance(getattr(response, "status_code", None), int):
        return response
    return None


def wait_headers(headers: Any) -> dict[str, str]:
    wanted = {}
    for name, value in headers.items() if headers is not None else ():
        lower = name.lower()
        if any(part in lower for part in _WANTED_HEADERS):
            wanted[lower] = value
    return wanted


def _body(chain: list[BaseException], response: Any) -> str:
    for error in chain:
        body = getattr(error, "body", None)
        if isinstance(body, dict) and body and "error" not in body:
            return json.dumps({"error": body})
        if isinstance(body, dict | list) and body:
            return json.dumps(body)
    try:
        text = response.text
    except RuntimeError:  # a streamed body that was not read
        text = ""
    return as_text(text)
