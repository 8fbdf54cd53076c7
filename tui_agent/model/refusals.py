"""Finds the part of a request that a provider refuses, from the provider's error message.

The patterns match the wording of providers' documentation, chat templates and public reports; the
tests have an example of each. ``forms`` decides how the request is changed, and ``client`` sends it
again.
"""

import re
from dataclasses import field
from enum import StrEnum

from tui_agent.lazy import LazyPattern, frozen
from tui_agent.model.error_body import ErrorBody
from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.whole_numbers import whole_number

_JUDGED = {
    ErrorKind.INVALID_REQUEST,
    ErrorKind.NOT_FOUND,
    ErrorKind.UNKNOWN,
    ErrorKind.CONTEXT_OVERFLOW,
}
_NO_SUCH_PATH = {404, 405, 501}
_INTERNAL = {None, 500}
_FORBIDDEN = 403
_LIMITS = frozenset({"max_tokens", "max_completion_tokens", "max_output_tokens"})

_REASONING = LazyPattern(
    r"thinking|signature|reasoning|encrypted[_ ]content|\brs_\w+", re.IGNORECASE
)

_WRONG_REASONING = LazyPattern(
    r"signature|encrypted[_ ]content|\brs_\w+|redacted_thinking", re.IGNORECASE
)
"""Matches messages about an error in the reasoning that was sent back to the provider."""

_UNKNOWN_FIELD = LazyPattern(
    r"extra inputs|not permitted|unknown|unrecogni[sz]ed|unexpected|unsupported|not supported|additional propert",
    re.IGNORECASE,
)
_EFFORT = LazyPattern(r"reasoning[._]?effort", re.IGNORECASE)

_VALUES = LazyPattern(
    r"(?:supported|allowed|invalid|permitted) values?|must be one of|expected one of", re.IGNORECASE
)
"""Matches messages that a known field of the request has an invalid value."""

_ANSWER_LIMIT = LazyPattern(
    r"max(?:imum)?[_ ]?(?:completion|output|new)?[_ ]?tokens\b.{0,160}?"
    r"(?:range|maximum|at most|less than|too (?:large|high|big)|> \d|exceed|<=)",
    re.IGNORECASE | re.DOTALL,
)
_SIZE = LazyPattern(r"\d[\d,_]*")
_ID_SIZE = LazyPattern(r"(?:maximum length|at most|length of|<=) (\d{1,9})", re.IGNORECASE)
_PICTURE_COUNT = LazyPattern(
    r"too many|too much media|number of images|(?:at most|contains|maximum of|up to) \d+ image",
    re.IGNORECASE,
)
_TOOL_PLACE = LazyPattern(r"(?:tools?|function_?declarations)(?:\[|\.)(\d{1,9})", re.IGNORECASE)


class Part(StrEnum):
    """The part of a request that a provider refuses, which can be changed or left out."""

    FORMAT = "format"
    ROLES = "order of roles"
    SYSTEM = "system role"
    PICTURES = "pictures"
    PICTURE = "a picture"
    TOOLS = "tools"
    TOOL_COUNT = "number of tools"
    TOOL = "schema of a tool"
    CACHE_MARKS = "cache marks"
    CALL_IDS = "call ids"
    REASONING = "reasoning"
    FIELD = "optional field"
    ROOM = "room of the answer"
    SUMMARY_THINKING = "raw thinking in the prompt of a summary"
    """The reason if a summary was refused because of thinking in the prompt. ``find_refusal`` never
    returns this part; ``context.summariser`` leaves it out."""


@frozen
class Refusal:
    """The part of a request that a provider refuses, with the details that its error names."""

    part: Part
    names: tuple[str, ...] = ()
    """Names of the refused tools or body fields."""
    number: int = 0
    """The limit that the error names: a number of tools or pictures, of characters of a call id, or
    of tokens of an answer; 0 if it names none."""


@frozen
class Sent:
    """The facts about a refused request that determine which parts the error can be about."""

    optional: tuple[str, ...] = ()
    """Fields of the request's body that can be left out."""
    tools: tuple[str, ...] = ()
    blobs: frozenset[str] = field(default_factory=frozenset)
    """SHA-256 names of the request's pictures."""
    answer_tokens: int = 0
    """Maximum length of the answer that the request asked for, in tokens; 0 if it set no limit."""
    has_effort: bool = False
    """Whether the request asked for a reasoning effort."""
    can_change_format: bool = False
    """Whether the address may support chat completions instead of the refused format."""


_NAMED: tuple[tuple[Part, re.Pattern[str]], ...] = (
    (
        Part.CALL_IDS,  # OpenAI; Mistral; Anthropic; Responses
        LazyPattern(
            r"(?:tool_?calls?\b.{0,12}\bid|tool_?use_?id|tool_use\.id|call_id|tool call id)\b.{0,160}?"
            r"(?:too long|maximum length|at most \d+|must be|should match|pattern|length of \d+)",
            re.IGNORECASE | re.DOTALL,
        ),
    ),
    (
        Part.CACHE_MARKS,  # Anthropic, Bedrock and gateways before them
        LazyPattern(
            r"cache_control|cache_?point|(?:allow|support|access to)(?: explicit)? prompt caching"
            r"|maximum of \d+ (?:cache )?blocks",
            re.IGNORECASE,
        ),
    ),
    (
        Part.TOOL_COUNT,  # OpenAI; Groq; pydantic's words, as in vLLM and LiteLLM; Google
        LazyPattern(
            r"\btools\b[\"'`]?\W{0,3}(?:array too long|too many|maximum number of items|list should have at most)"
            r"|too many (?:tools|functions|function[ _]?declarations)"
            r"|(?:maximum|at most|more than|up to|limit)\D{0,20}\d+\s+(?:tools|functions|function[ _]?declarations)",
            re.IGNORECASE,
        ),
    ),
    (
        Part.TOOLS,  # Ollama; OpenRouter; Bedrock; DeepSeek; Groq; Google; llama.cpp; vLLM
        LazyPattern(
            r"(?:not|n't|no endpoints found that) support(?!.{0,20}(?:parallel|strict)).{0,20}"
            r"(?<!\w)(?:tools?\b(?!\W?choice)|tool[ _-]?(?:use|calls?|calling)\b|function[ _-]?call(?:s|ing)?\b)"
            r"|(?<!\w)(?<!parallel )(?<!strict )"
            r"(?:tools|tool[ -]?(?:use|calls?|calling)|function[ _-]?call(?:s|ing)?)\b\W{0,3}"
            r"(?:param\w*|inputs?)?\W{0,3}(?:is|are) "
            r"(?:(?:currently )?not (?:supported|enabled|available|allowed|permitted)|unsupported|disabled)"
            r"|tools param requires|unsupported param\w*:? \W*tools\b|tool choice requires --enable|--tool-call-parser",
            re.IGNORECASE | re.DOTALL,
        ),
    ),
    (
        Part.TOOL,  # OpenAI; Anthropic; Google; llama.cpp; xAI
        LazyPattern(
            r"schema for (?:function|tool)|invalid_?function_?parameters|input_schema"
            r"|tools?[\[.]\d+\]?[.\[].{0,80}(?:schema|parameters|propert|function)"
            r"|function_?declarations\[|(?:schema|grammar).{0,60}(?:unsupported|unrecogni[sz]ed|invalid|fail|error)"
            r"|(?:fail|unable|error|invalid|unsupported).{0,40}\b(?:json[ _-]?)?(?:schema|grammar)\b",
            re.IGNORECASE | re.DOTALL,
        ),
    ),
    (
        Part.PICTURES,  # OpenRouter; llama.cpp; DeepSeek; OpenAI; vLLM; Ollama; SiliconFlow; MLX; Groq; NIM; Zhipu
        LazyPattern(
            r"(?:not|n't|no endpoints found that) support.{0,20}(?:image|vision|picture|multi-?modal)"
            r"|(?:image|vision|multi-?modal)(?:_url)?\W{0,3}(?:inputs?|content)?\W{0,3}"
            r"(?:is|are) (?:not (?:supported|enabled|available|allowed)|only supported by|unsupported)"
            r"|mmproj|unknown variant .?image_url|not a multi-?modal model|image_url is only supported"
            r"|missing data required for image input|at most 0 image|not a VLM\b|only \W?text\W? content type"
            r"|\bcontent\W{1,4}(?:value )?must be a string|\bcontent\.str\W+input should be a valid string"
            r"|\bcontent\S*type\b.{0,20}invalid.{0,20}allowed values\W+text\W+(?:$|\d)",
            re.IGNORECASE | re.DOTALL,
        ),
    ),
    (
        Part.PICTURE,  # or a PDF: Anthropic; OpenAI; Google; Mistral; Bedrock; llama.cpp
        LazyPattern(
            r"(?:process|decode|load|parse|read|identify|open|download|fetch)\w* (?:\w+ ){0,3}(?:image|picture)"
            r"|(?:image|picture)s?\b.{0,80}?(?:exceed|too (?:large|big|small|many)|invalid|corrupt|damaged|unsupported"
            r"|unknown format|not (?:valid|supported|a valid)|was specified using|could not|cannot|can't|failed|maximum"
            r"|max allowed)"
            r"|(?:at most|up to|maximum of) [1-9]\d* image|too much media"
            r"|(?:invalid|unsupported|malformed|corrupt\w*|bad|too many)[ _](?:\w+[ _]){0,2}(?:image|picture)"
            r"|invalid_?image|image_?parse|media_?type|mime_? ?type|invalid base64|base64.{0,30}invalid"
            r"|\bpdfs?\b|password.protected|\bdocument\b.{0,40}(?:pages|invalid|support|process|too)"
            r"|\bfile_data\b|input_file|(?:invalid|unsupported) file",
            re.IGNORECASE | re.DOTALL,
        ),
    ),
    (
        Part.SYSTEM,  # Gemma's templates; Google; OpenAI; Qwen's templates
        LazyPattern(
            r"(?:system|developer)\W? (?:role|message|prompt|instruction)s?\b.{0,50}?"
            r"(?:not (?:be )?(?:supported|allowed|enabled|permitted)|unsupported|n't|must be (?:at )?the begin)"
            r"|(?:not|n't) support (?:the )?\W?(?:system|developer)\b"
            r"|(?:unexpected|unknown|invalid|unsupported) (?:message )?role:? ?\W?(?:system|developer)"
            r"|role \W?(?:system|developer)\W? .{0,20}(?:not|invalid|unknown|unsupported)"
            r"|unknown variant \W?(?:system|developer)\b"
            r"|only \W?user\W?,? (?:\W?tool\W?,? )?(?:and )?\W?assistant",
            re.IGNORECASE | re.DOTALL,
        ),
    ),
    (
        Part.ROLES,  # Mistral's and Gemma's templates; Mistral; Anthropic; Perplexity; Cohere; Baidu
        LazyPattern(
            r"\balternat(?:e|es|ing)\b|unexpected role \W?(?:user|assistant|tool)\W? after|invalid message order"
            r"|(?:consecutive|multiple|two|successive)\W+(?:\w+\W+)?(?:user|assistant|messages?|roles?|turns?)\b"
            r".{0,60}(?:not|role|row)|same role|call turn comes immediately after"
            r"|role of message with (?:even|odd) index|messages must be an odd number",
            re.IGNORECASE | re.DOTALL,
        ),
    ),
)
"""Patterns of messages that name a refused part, whatever the HTTP status; the first match wins."""

_OF_TOOLS = frozenset({Part.TOOLS, Part.TOOL_COUNT, Part.TOOL})


def named_part(body: ErrorBody) -> Part | None:
    """Return the part of the request that an error message names; None if it names none.

    The HTTP status doesn't matter. Fields, reasoning and the answer's length are found only by
    ``find_refusal``.
    """
    said = body.judged
    return next((part for part, pattern in _NAMED if pattern.search(said)), None)


def is_about_reasoning_field(body: ErrorBody) -> bool:
    """Return whether an error about reasoning says that the field is unknown or unsupported.

    If it doesn't, the server knows the field but refuses its content.
    """
    return bool(_UNKNOWN_FIELD.search(body.judged))


def find_refusal(error: ModelError, body: ErrorBody, sent: Sent) -> Refusal | None:
    """Return the part of the request that the error refuses; None if it concerns no part."""
    if error.kind is ErrorKind.OVERLOADED and error.status in _INTERNAL:
        return _named(body, sent)  # llama.cpp and others answer 500 to a part that they can't read
    if error.status == _FORBIDDEN and named_part(body) is Part.CACHE_MARKS:
        return Refusal(Part.CACHE_MARKS)  # Amazon's answer to an account without prompt caching
    if error.kind not in _JUDGED:
        return None
    return _judged(error, body, sent)


def _judged(error: ModelError, body: ErrorBody, sent: Sent) -> Refusal | None:
    """Return the refused part for an error whose kind doesn't say what was wrong.

    Returns None if the message names no part that the request has, or lists the effort levels that
    the model accepts.
    """
    if error.kind is ErrorKind.CONTEXT_OVERFLOW:
        return _room_besides(error, sent)
    if sent.can_change_format and error.status in _NO_SUCH_PATH:
        return Refusal(Part.FORMAT)
    said = body.judged
    if sent.has_effort and _EFFORT.search(said) and _VALUES.search(said):
        # Such a message lists the levels that the model has, so the user has to choose one of them.
        return None
    return _answer_limit(said, sent) or _named(body, sent) or _of_request(error, said, sent)


def _named(body: ErrorBody, sent: Sent) -> Refusal | None:
    """Return the part of the request that the error message names; None if it names none.

    Also returns None if the part is tools or pictures and the request contains none.
    """
    said = body.judged
    part = named_part(body)
    if part in _OF_TOOLS:
        return _of_tools(part, said, sent.tools)
    if part is Part.PICTURE and sent.blobs:
        is_count = _PICTURE_COUNT.search(said) is not None
        return Refusal(part, number=_count_taken(said, len(sent.blobs)) if is_count else 0)
    if part is Part.PICTURES and sent.blobs:
        return Refusal(part)
    if part is Part.CALL_IDS:
        size = _ID_SIZE.search(said)
        return Refusal(part, number=int(size[1]) if size else 0)
    if part in (Part.CACHE_MARKS, Part.SYSTEM, Part.ROLES):
        return Refusal(part)
    return None


def _of_tools(part: Part, said: str, tools: tuple[str, ...]) -> Refusal | None:
    if not tools:
        return None
    if part is Part.TOOL:
        return Refusal(part, _tools_named(said, tools))
    if part is Part.TOOL_COUNT:
        return Refusal(part, number=_count_taken(said, len(tools)) or len(tools) // 2)
    return Refusal(part)


def _of_request(error: ModelError, said: str, sent: Sent) -> Refusal | None:
    """Return a refusal of the part that an error message names: the reasoning or optional fields.

    Returns None if the message names neither.
    """
    if _WRONG_REASONING.search(said):
        return Refusal(Part.REASONING)
    if error.kind is ErrorKind.NOT_FOUND:
        return None
    if named := tuple(name for name in sent.optional if _names(said, name)):
        return Refusal(Part.FIELD, named)
    if _REASONING.search(said):
        return Refusal(Part.REASONING)
    return None


def _room_besides(error: ModelError, sent: Sent) -> Refusal | None:
    """Return a refusal of the answer limit after the request overflowed the context window.

    The refusal names the fields that limit the answer's length. Returns None if the request has no
    such field, or if the error's numbers don't show that the prompt alone fits the window.
    """
    limits = tuple(name for name in sent.optional if name in _LIMITS)
    fits = error.sent and error.window and error.sent < error.window
    if limits and fits:
        return Refusal(Part.ROOM, limits)
    return None


def _answer_limit(said: str, sent: Sent) -> Refusal | None:
    """Return a refusal that states the answer limit, in tokens, which an error names.

    Returns None if the error names no limit below the requested length.
    """
    match = _ANSWER_LIMIT.search(said)
    if match is None or not sent.answer_tokens:
        return None
    numbers = _numbers_in(said[match.start() :])
    taken = [number for number in numbers if 1 < number < sent.answer_tokens]
    if taken:
        return Refusal(Part.ROOM, number=max(taken))
    return None


def _count_taken(said: str, sent: int) -> int:
    """Return the largest number in an error message that is below ``sent``; 0 if there is none.

    The number is taken as the maximum of tools or pictures that the server allows.
    """
    return max((number for number in _numbers_in(said) if number < sent), default=0)


def _numbers_in(said: str) -> list[int]:
    found = map(whole_number, (re.sub(r"\D", "", size) for size in _SIZE.findall(said)))
    return [number for number in found if number is not None]


def _tools_named(said: str, tools: tuple[str, ...]) -> tuple[str, ...]:
    """Return the refused tools, which an error names by name or index.

    If the error names none, all tools are returned. If some names are in quotation marks, only
    those are used.
    """
    named = tuple(
        tool for tool in tools if re.search(rf"(?<![\w-]){re.escape(tool)}(?![\w-])", said)
    )
    marked = tuple(tool for tool in named if re.search(rf"[\"'`“‘]{re.escape(tool)}[\"'`”’]", said))
    if marked or named:
        return marked or named
    places = [int(number) for number in _TOOL_PLACE.findall(said)]
    # Google's path begins with the index of the list of tools, and the tool's own index comes last.
    place = next((number for number in reversed(places) if number < len(tools)), None)
    if place is None:
        return tools
    return (tools[place],)


def _names(text: str, name: str) -> bool:
    """Return whether an error message names the field ``name``, in snake or camel case.

    A name of one word counts only in quotation marks or after a word like "parameter".
    """
    if "_" in name or "." in name:
        words = name.split("_")
        camel = words[0] + "".join(word.title() for word in words[1:])
        written = rf"(?:body\.)?(?:{re.escape(name)}|{re.escape(camel)})"
        return re.search(rf"(?<![\w.]){written}(?![\w.]*\w)", text) is not None
    marked = rf"[\"'`]{name}[\"'`]|(?:parameter|field|argument|property|supplied)s?\W{{1,3}}{name}(?![\w.]*\w)"
    return re.search(marked, text, re.IGNORECASE) is not None
