"""Reads an error body: its words, its codes for programs, and that a request doesn't fit the context window.

Texts about the window are those of the providers' own APIs, collected from their documentation and from public
reports; the tests hold one of each.
"""

import ast
import json
import re
from typing import Any

from tui_agent.json_text import as_dict, as_text, loads, objects
from tui_agent.lazy import LazyPattern, dataclass
from tui_agent.model.redaction import redact

_NUMBER = r"(\d[\d,_]*)"

_TEXTS = (
    (r"prompt is too long", "Anthropic; Fireworks"),
    (r"exceed context limit", "Anthropic, with the answer: stackblitz/bolt.new#7418"),
    (r"prompt too long", "Ollama"),
    (r"input is too long", "Bedrock; Kiro: hank9999/kiro.rs#67"),
    (r"exceeds? (?:the |this |its )?(?:model'?s )?(?:maximum )?context (?:window|length|limit|size)", "OpenAI"),
    (r"exceeds the available context size|exceed_context_size", "llama.cpp"),
    (r"context[_ ](?:length|window)[_ ]exceed", "OpenAI's code; MiniMax"),
    (r"context size has been exceeded|greater than the context length", "LM Studio"),
    (r"input token count.{0,40}exceeds", "Google: arkavo-org/arkavo-edge#371"),
    (r"maximum (?:prompt|context|input|model) (?:length|window|size|limit)", "xAI; OpenAI; OpenRouter; vLLM"),
    (r"context length is only \d+", "vLLM: agentscope-ai/AgentTeams#346"),
    (r"maximum allowed input length", "GLM's hosts: mario-andreschak/FLUJO#291"),
    (r"input length \d+ exceeds the maximum length", "Volcengine Ark: langgenius/dify#32221"),
    (r"range of input length should be", "DashScope: QwenLM/qwen-code#98"),
    (r"reduce the length of (?:the|your) (?:messages|prompt|input)", "Groq"),
    (r"reduce the length of either one", "OpenRouter"),
    (r"longer than the model'?s context", "Ollama"),
    (r"too large for model with \d", "Mistral"),
    (r"exceed(?:s|ed) (?:the )?model token limit", "Kimi"),
    (r"(?:prompt|input) tokens? exceed", "Azure"),
    (r"token count of \d+ exceeds the limit", "GitHub Copilot"),
    (r"prompt exceeds max", "Z.ai"),
    (r"`?inputs`? tokens \+ `?max_new_tokens|`?inputs`? must have less than", "Together; Hugging Face"),
    (r"current length is \d+ while limit is", "Cerebras"),
    (r"too many (?:input )?tokens", "Cohere; Bedrock's throttle begins alike"),
    (r"token limit exceeded", "Kimi"),
    (r"model_context_window_exceeded", "Anthropic; Z.ai"),
    (
        r"request_too_large|request (?:entity )?too large|payload too large|content too large",
        "Anthropic; RFC 9110, 413",
    ),
)
"""Texts of an overflow, and who says it or where it was reported."""

_OVERFLOW = LazyPattern("|".join(text for text, _source in _TEXTS), re.IGNORECASE)

_RATE = LazyPattern(
    r"rate.?limit|per.?minute|per.?day|\bTP[MD]\b|\bquota\b|too many requests|throttl|wait before|try again later"
    r"|(?:try again|retry) (?:in|after) \d",
    re.IGNORECASE,
)

_PER_MINUTE = LazyPattern(rf"limit:? {_NUMBER}.{{0,40}}?requested:? {_NUMBER}", re.IGNORECASE | re.DOTALL)

_WINDOW = tuple(
    LazyPattern(pattern, re.IGNORECASE)
    for pattern in (
        rf"> {_NUMBER} maximum",
        rf"exceed context limit: [\d,_]+ \+ [\d,_]+ > {_NUMBER}",
        rf"maximum number of tokens allowed \(?{_NUMBER}",
        rf"maximum (?:context|prompt|model|input) (?:length|window|size)\D{{0,12}}{_NUMBER}",
        rf"too large for model with {_NUMBER}",
        rf"must be <= {_NUMBER}",
        rf"must have less than {_NUMBER}",
        rf"n_ctx\W+{_NUMBER}",
        rf"context size \({_NUMBER} tokens",
        rf"cannot exceed {_NUMBER}",
        rf"while limit is {_NUMBER}",
        rf"token limit:? {_NUMBER}",
        rf"exceeds the limit of {_NUMBER}",
        rf"configured limit of {_NUMBER}",
        rf"range of input length should be \[\d+, ?{_NUMBER}\]",
        rf"exceeds the maximum (?:length|allowed input length of) {_NUMBER}",
        rf"context length is only {_NUMBER}",
    )
)

_SENT = tuple(
    LazyPattern(pattern, re.IGNORECASE)
    for pattern in (
        rf"\({_NUMBER} (?:in the messages|of text input|in your prompt)",
        rf"{_NUMBER} tokens > \d",
        rf"exceed context limit: {_NUMBER} \+",
        rf"token count \(?{_NUMBER}",
        rf"(?:prompt|request) contains {_NUMBER}",
        rf"request \({_NUMBER} tokens",
        rf"n_keep\W+{_NUMBER}",
        rf"n_prompt_tokens\W+{_NUMBER}",
        rf"has {_NUMBER} input tokens",
        rf"given: {_NUMBER}",
        rf"received {_NUMBER}",
        rf"current length is {_NUMBER}",
        rf"requested: {_NUMBER}",
        rf"token count of {_NUMBER}",
        rf"input length {_NUMBER} exceeds",
        rf"too long: {_NUMBER}",
        rf"resulted in {_NUMBER}",
        rf"requested (?:about )?{_NUMBER}",
    )
)

_ANSWER = LazyPattern(
    rf"{_NUMBER} (?:in the (?:completion|output)|of (?:the )?output)|max_(?:new_)?tokens\W+{_NUMBER}", re.IGNORECASE
)
"""The room for the answer, which some providers add to the tokens sent."""
_TOOLS = LazyPattern(rf"{_NUMBER} of tool input", re.IGNORECASE)

_SMALLEST_WINDOW = 256
"""A number below it is not a window: some texts name the excess instead."""


@dataclass(frozen=True, slots=True)
class Overflow:
    """The request doesn't fit. ``window`` and ``sent`` are tokens, when the provider named them.

    ``per_minute`` is the account's limit of tokens per minute when that, not the window, is too small.
    """

    window: int | None = None
    sent: int | None = None
    per_minute: int | None = None


def find_overflow(text: str, status: int | None, *, throttled: bool = False) -> Overflow | None:
    """Return the overflow a provider's error describes, None when it describes something else.

    ``throttled``: status or code say that the provider limits the rate, whatever the words are.
    """
    if throttled or status == 429 or _RATE.search(text):
        match = _PER_MINUTE.search(text)
        if match is None:
            return None
        limit, requested = _int(match[1]), _int(match[2])
        return Overflow(None, requested, limit) if limit and requested > limit else None
    if not _OVERFLOW.search(text):
        # A request too large by bytes (mostly images) fails for the same reason and is helped by the same cure.
        return Overflow() if status == 413 else None
    sizes = (_int(match[1]) for pattern in _WINDOW if (match := pattern.search(text)))
    window = next(sizes, None)
    return Overflow(window if window and window >= _SMALLEST_WINDOW else None, _sent(text))


def _sent(text: str) -> int | None:
    """Return the tokens of the request alone, as far as the text names them."""
    for place, pattern in enumerate(_SENT):
        if match := pattern.search(text):
            sent = _int(match[1])
            if place == 0:
                tools = _TOOLS.search(text)
                return sent + (_int(tools[1]) if tools else 0)
            answer = _ANSWER.search(text) if "requested" in match[0].lower() else None
            return sent - _int(answer[1] or answer[2]) if answer else sent
    return None


def _int(text: str) -> int:
    return int(text.replace(",", "").replace("_", ""))


_CLASSES = LazyPattern(r"^(?:(?:litellm\.)?\w*(?:Error|Exception|Timeout)\w*(?::|\s-)\s*)+")
_STATUS_WORDS = LazyPattern(r"^Error code: \d+(?: - |$)")
_BYTES = LazyPattern(r"b(['\"]).*?\1(?=$|\s)", re.DOTALL)
PAGE = LazyPattern(r"<(?:!doctype|!--|\?xml|html|head|body|title|center|h1|Error>|Response)", re.IGNORECASE)
_TITLE = LazyPattern(r"<(title|h1|message)\b[^>]*>(.*?)</\1>", re.DOTALL | re.IGNORECASE)
_STATUS_TAG = LazyPattern(r"<([45]\d\d)>\s*")
"""How DashScope begins each of its messages."""
_CODE_KEYS = ("code", "type", "status", "reason", "error_type", "__type")
_LEVELS = 4
"""Times a message may hold another one: a gateway's, and in it the provider's."""


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """The parts of an error. ``words`` is the innermost message, ``codes`` its names for programs, outermost first.

    Codes are in lower case, letters and digits only: ``rate_limit_exceeded`` is ``ratelimitexceeded``. ``status`` is
    the number that stands in the body where an error has no status line of its own: in the middle of a stream.
    """

    words: str = ""
    codes: tuple[str, ...] = ()
    status: int | None = None


def read_body(text: str) -> ErrorBody:
    """Return the parts of an error text, without class names, byte literals, JSON and HTML around it."""
    text = text.strip()
    codes: list[str] = []
    status: int | None = None
    for _ in range(_LEVELS):
        text = _bare(text)
        found = _parse(text)
        if found is None:
            break
        inner = _inner(found)
        levels = (found, inner, *objects(inner.get("details")))
        names = (as_text(level.get(key)).lower() for level in levels for key in _CODE_KEYS)
        codes += filter(None, (re.sub(r"[^a-z0-9]", "", name) for name in names))
        numbers = (level.get(key) for level in (inner, found) for key in ("status_code", "code", "status"))
        status = status or next((n for n in numbers if isinstance(n, int) and 400 <= n < 600), None)
        message = _message_of(found, text).strip()
        if message == text:
            break
        text = message
    if tag := _STATUS_TAG.match(text):
        text, status = text[tag.end() :], status or int(tag[1])
    return ErrorBody(redact(text), tuple(dict.fromkeys(codes)), status)


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
    within = as_dict(data.get("response")).get("error")  # OpenAI's response.failed
    several = objects(data.get("errors"))  # Cloudflare
    return as_dict(within) or (several[0] if several else as_dict(data.get("error", data)))


def _message_of(data: dict[str, Any], text: str) -> str:
    error = data.get("error")
    if isinstance(error, str):
        return error
    inner = _inner(data)
    words = [inner.get("message") or inner.get("detail") or inner.get("msg") or data.get("message")]
    # OpenRouter hides the words of the provider behind it.
    words.append(as_dict(inner.get("metadata")).get("raw"))
    code = next((str(inner[key]) for key in ("code", "type", "status") if isinstance(inner.get(key), str)), "")
    message = " ".join(word if isinstance(word, str) else json.dumps(word) for word in words if word)
    if not message:
        return code or text
    return f"{message} ({code})" if code and code not in message else message
