"""Parses a provider's error body, in any form, into message, codes, status and place."""

import ast
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from tui_agent.json_text import as_dict, as_list, as_text, loads, objects
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.model.redaction import redact

_CLASSES = LazyPattern(r"^(?:(?:litellm\.)?\w*(?:Error|Exception|Timeout)\w*(?::|\s-)\s*)+")
_STATUS_WORDS = LazyPattern(r"^Error code: \d+(?: - |$)")
_BYTES = LazyPattern(r"b(['\"]).*?\1(?=$|\s)", re.DOTALL)
PAGE = LazyPattern(
    r"<(?:!doctype|!--|\?xml|html|head|body|title|center|h1|Error>|Response)", re.IGNORECASE
)
_TITLE = LazyPattern(r"<(title|h1|message)\b[^>]*>(.*?)</\1>", re.DOTALL | re.IGNORECASE)
_STATUS_TAG = LazyPattern(r"<([45]\d\d)>\s*")
"""Matches the status at the beginning of DashScope's messages."""
_CODE_KEYS = ("code", "type", "status", "reason", "error_type", "__type")
_WORD_KEYS = (
    "message",
    "msg",
    "detail",
    "errorMessage",
    "error_message",
    "error_msg",
    "status_msg",
    "error_description",
)
_STATUS_KEYS = ("status_code", "status", "code")
_LEVELS = 4
"""Maximum nesting of error bodies, such as a provider's error within a gateway's."""
_STATUS_OF_TYPE = {
    "invalidrequesterror": 400,
    "authenticationerror": 401,
    "billingerror": 402,
    "permissionerror": 403,
    "notfounderror": 404,
    "requesttoolarge": 413,
    "ratelimiterror": 429,
    "apierror": 500,
    "timeouterror": 504,
    "overloadederror": 529,
}
"""The HTTP statuses that Anthropic documents for its error types. They are needed because an error
within a stream states only its type, not its status."""
_ANSWER_KEYS = frozenset(
    {
        "choices",
        "candidates",
        "output",
        "response",
        "object",
        "type",
        "usage",
        "usageMetadata",
        "promptFeedback",
        "done",
        "delta",
        "item",
        "content",
        "prompt_progress",
        "x_groq",
    }
)
"""Keys that answers and their events contain, in any format. A document with a message but without
any of these keys is an error."""
_ERROR_TYPE = LazyPattern(r"(?:error|exception)$", re.IGNORECASE)


@frozen
class ErrorBody:
    """The parts of an error body.

    ``words`` is the innermost message. ``codes`` are the error's codes and types, outermost first,
    in lower case with letters and digits only: ``rate_limit_exceeded`` is ``ratelimitexceeded``.
    ``status`` is the HTTP status that the body states, None if it states none; an error within a
    stream has no other status. ``place`` is the faulty part of the request as the provider writes
    it (``messages[1].role``), "" if it names none.
    """

    words: str = ""
    codes: tuple[str, ...] = ()
    status: int | None = None
    place: str = ""

    @property
    def judged(self) -> str:
        """The message, place and codes in one text.

        ``refusals`` and ``forms`` search this text for the part of the request that the provider
        refused.
        """
        return " ".join(filter(None, (self.words, self.place, *self.codes)))


def is_error(value: dict[str, Any], event: str = "") -> bool:
    """Return True if a JSON document or a stream's event reports an error.

    ``event`` is the event's name, "" if it has none.
    """
    if (
        value.get("error")
        or event == "error"
        or value.get("object") == "error"
        or value.get("success") is False
    ):
        return True
    if as_dict(value.get("base_resp")).get("status_code"):
        return True  # MiniMax; 0 is success
    if _ERROR_TYPE.search(as_text(value.get("type"))):
        return True
    return not value.keys() & _ANSWER_KEYS and any(
        isinstance(value.get(key), str | list) for key in _WORD_KEYS
    )


def read_body(text: str) -> ErrorBody:
    """Parse an error text into its parts. Secrets in the message are replaced.

    Exception names, byte literals, JSON and HTML around the message are removed.
    """
    text = text.strip()
    codes: list[str] = []
    status: int | None = None
    place = ""
    for _ in range(_LEVELS):
        text = _bare(text)
        found = _parse(text)
        if found is None:
            break
        inner = _inner(found)
        levels = (found, inner, as_dict(inner.get("metadata")), *objects(inner.get("details")))
        for level in levels:
            codes += _codes(level)
        status = status or _status(levels)
        place = as_text(inner.get("param")) or place
        message = _message_of(found, text).strip()
        if message == text:
            break
        text = message
    if tag := _STATUS_TAG.match(text):
        text = text[tag.end() :]
        status = status or int(tag[1])
    for code in codes:
        status = status or _STATUS_OF_TYPE.get(code)
    return ErrorBody(redact(text), tuple(dict.fromkeys(codes)), status, place)


def _codes(level: dict[str, Any]) -> Iterator[str]:
    """Yield an error object's codes and types, in lower case and reduced to letters and digits."""
    for key in _CODE_KEYS:
        if code := re.sub(r"[^a-z0-9]", "", as_text(level.get(key)).lower()):
            yield code


def _status(levels: Iterable[dict[str, Any]]) -> int | None:
    """Return the first HTTP status (400 to 599) in an error's objects, whether number or text."""
    for level in levels:
        for key in _STATUS_KEYS:
            value = level.get(key)
            if isinstance(value, str) and re.fullmatch(r"[45]\d\d", value):
                return int(value)
            if isinstance(value, int) and 400 <= value < 600:
                return value
    return None


def _bare(text: str) -> str:
    text = _STATUS_WORDS.sub("", _CLASSES.sub("", text))
    if match := _BYTES.match(text):
        try:
            text = ast.literal_eval(match[0]).decode("utf-8", "replace")
        except (ValueError, SyntaxError):
            return text
    if PAGE.match(text):
        title = _TITLE.search(text)
        from html import unescape

        # The body is a page from a proxy between this program and the provider. Only the page's
        # title is useful.
        if title:
            return " ".join(unescape(title[2]).split())
        return ""
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
    """Return the object that contains the error's message.

    This is a nested object of a known form or, if there is none, ``data`` itself.
    """
    within = as_dict(data.get("response")).get("error")  # OpenAI's response.failed
    several = objects(data.get("errors"))  # Cloudflare
    base = as_dict(data.get("base_resp"))  # MiniMax
    return as_dict(within) or (several[0] if several else as_dict(data.get("error", base or data)))


def _message_of(data: dict[str, Any], text: str) -> str:
    error = data.get("error")
    if isinstance(error, str):
        # In Spring and NestJS ``error`` is the status, and the message is in another field.
        said = _said(data)
        if said:
            return f"{_words(said)} ({error})"
        return error
    inner = _inner(data)
    # OpenRouter has the provider's message in ``metadata.raw``.
    words = (_said(inner) or data.get("message"), as_dict(inner.get("metadata")).get("raw"))
    message = " ".join([_words(said) for said in words if said])
    code = ""
    for key in ("status", "type", "code"):
        if isinstance(inner.get(key), str):
            code = inner[key]
    if not message:
        return code or text
    if code and code not in message:
        return f"{message} ({code})"
    return message


def _said(data: dict[str, Any]) -> object:
    """Return an object's message, which is its first non-empty value under `_WORD_KEYS`.

    Returns None if there is no such value.
    """
    for key in _WORD_KEYS:
        if data.get(key):
            return data[key]
    return None


def _words(said: object) -> str:
    """Return a message as text. FastAPI's list of faults is written as ``place: message; …``."""
    if isinstance(said, str):
        return said
    faults = objects(said)
    if not faults:
        return json.dumps(said)
    lines = []
    for row in faults:
        place = ".".join(map(str, as_list(row.get("loc"))))
        lines.append(f"{place}: {as_text(row.get('msg'))}")
    return "; ".join(lines)
