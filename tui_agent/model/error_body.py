"""Reads an error body: what it says to a person, and what it says to a program."""

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

from tui_agent.json_text import loads
from tui_agent.lazy import LazyPattern, dataclass
from tui_agent.model.redaction import redact

_CLASSES = LazyPattern(r"^(?:(?:litellm\.)?\w*(?:Error|Exception|Timeout)\w*(?::|\s-)\s*)+")
_STATUS_WORDS = LazyPattern(r"^Error code: \d+(?: - |$)")
_BYTES = LazyPattern(r"b(['\"]).*?\1(?=$|\s)", re.DOTALL)
_PAGE = LazyPattern(r"<(?:!doctype|!--|\?xml|html|head|body|title|center|h1|Error>|Response)", re.IGNORECASE)
_TITLE = LazyPattern(r"<(title|h1|message)\b[^>]*>(.*?)</\1>", re.DOTALL | re.IGNORECASE)
_STATUS_TAG = LazyPattern(r"<([45]\d\d)>\s*")
"""How DashScope begins each of its messages."""
_CODE_KEYS = ("code", "type", "status", "reason", "error_type", "__type")
_LEVELS = 4
"""Times a message may hold another one: a gateway's, and in it the provider's."""


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """What an error says. ``words`` is the innermost message, ``codes`` its names for programs, outermost first.

    Codes are in lower case, letters and digits only: ``rate_limit_exceeded`` is ``ratelimitexceeded``. ``status`` is
    the number that stands in the body where an error has no status line of its own: in the middle of a stream.
    """

    words: str = ""
    codes: tuple[str, ...] = ()
    status: int | None = None


def read_body(text: str) -> ErrorBody:
    """Return what an error text says, without class names, byte literals, JSON and HTML around it."""
    text = text.strip()
    codes: list[str] = []
    status: int | None = None
    for _ in range(_LEVELS):
        text = _bare(text)
        found = _parse(text)
        if found is None:
            break
        codes += _codes(found)
        status = status or _number(found)
        inner = _message_of(found, text).strip()
        if inner == text:
            break
        text = inner
    if tag := _STATUS_TAG.match(text):
        text, status = text[tag.end() :], status or int(tag[1])
    return ErrorBody(redact(text), tuple(dict.fromkeys(codes)), status)


def is_page(text: str) -> bool:
    """Tell whether a text is a page for people instead of an API's answer."""
    return bool(_PAGE.match(text.lstrip()))


def _bare(text: str) -> str:
    """Return a text without what a library wrote around it."""
    text = _STATUS_WORDS.sub("", _CLASSES.sub("", text))
    if match := _BYTES.match(text):
        try:
            text = ast.literal_eval(match[0]).decode("utf-8", "replace")
        except (ValueError, SyntaxError):
            return text
    if _PAGE.match(text):
        title = _TITLE.search(text)
        from html import unescape

        # A page of a proxy between here and the provider; without a title it says nothing to a person.
        return " ".join(unescape(title[2]).split()) if title else ""
    return text


def _parse(text: str) -> dict[str, Any] | None:
    start = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)
    if start < 0:
        return None
    try:
        value = loads(text[start:], strict=False)
    except json.JSONDecodeError as error:
        if not error.msg.startswith("Extra data"):
            return None
        value = loads(text[start : start + error.pos], strict=False)
    if isinstance(value, list) and value:
        value = value[0]
    return value if isinstance(value, dict) else None


def _inner(data: dict[str, Any]) -> dict[str, Any]:
    response = data.get("response")
    if isinstance(response, dict) and isinstance(response.get("error"), dict):
        return _as_dict(response["error"])  # OpenAI's response.failed
    several = data.get("errors")
    if isinstance(several, list) and several:
        return _as_dict(several[0])  # Cloudflare
    return _as_dict(data.get("error", data))


def _as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _codes(data: dict[str, Any]) -> Iterator[str]:
    inner = _inner(data)
    details = [row for row in inner.get("details") or () if isinstance(row, dict)]
    for level in (data, inner, *details):
        for key in _CODE_KEYS:
            value = level.get(key)
            if isinstance(value, str) and (code := re.sub(r"[^a-z0-9]", "", value.lower())):
                yield code


def _number(data: dict[str, Any]) -> int | None:
    inner = _inner(data)
    values = (level.get(key) for level in (inner, data) for key in ("status_code", "code", "status"))
    return next((value for value in values if isinstance(value, int) and 400 <= value < 600), None)


def _message_of(data: dict[str, Any], text: str) -> str:
    """Return the message in a provider's error body, with its code where the message alone is vague."""
    error = data.get("error")
    if isinstance(error, str):
        return error
    inner = _inner(data)
    words = [inner.get("message") or inner.get("detail") or inner.get("msg") or data.get("message")]
    # OpenRouter hides what the provider behind it said.
    metadata = inner.get("metadata")
    if isinstance(metadata, dict) and metadata.get("raw"):
        words.append(metadata["raw"])
    code = next((str(inner[key]) for key in ("code", "type", "status") if isinstance(inner.get(key), str)), "")
    message = " ".join(word if isinstance(word, str) else json.dumps(word) for word in words if word)
    if not message:
        return code or text
    return f"{message} ({code})" if code and code not in message else message
