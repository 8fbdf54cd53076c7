"""Adapts requests to what a server accepts, and chooses the next form after a refusal.

A server's permanent limits are kept in its ``ServerForm``, which the client stores. A part that is
wrong in only one request is left out of that request (``Shape``). All functions are pure.
`next_shape` decides, `shaped` changes the request, and ``client`` sends it.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from itertools import count
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from tui_agent.context.request import ContentText, ImageRef, Message, ModelRequest, calls_in
from tui_agent.json_text import as_dict
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.model.error_body import ErrorBody
from tui_agent.model.providers import WireName
from tui_agent.model.refusals import Part, Refusal, is_about_reasoning_field
from tui_agent.model.request_pictures import images_in, images_of
from tui_agent.model.steps import in_steps
from tui_agent.model.written_tools import written
from tui_agent.session.entries import ToolSchema
from tui_agent.whole_numbers import whole_number

MAX_TRIES = 3
"""Maximum number of times that one request is sent, each time in another form."""
SHORT_ID_CHARS = 9
"""Length, in characters, of the shortest call ids, which consist of ASCII letters and digits.
Mistral accepts only this length."""
LEFT_OUT_IMAGE = "[image: left out, the provider can't read it]"
_ACKNOWLEDGED = "[…]"
"""Answer inserted between a tool result and a user message, if a server requires alternating roles."""
_DEFAULT_ID_CHARS = 40
"""Limit for call ids, in characters, after a refusal that names no limit. It is OpenAI's limit."""
_NAMED_PARTS = 5
"""Maximum number of part names in a message for the user."""
_PLACE = LazyPattern(r"(?:messages|input|contents)[\[.]\d+\]?(?:[.\[]\w+\]?)*")
_STEP = LazyPattern(r"\w+")


@frozen
class Remedy:
    """Describes how a request is changed after a provider has refused a part of it."""

    tried: str
    """The changes that are tried, in order, in words for a table cell of ``docs/models.md``."""
    kept: Literal["server", "session", "request"]
    """Where the change is remembered: in the form that is stored for the server, in an entry of the
    session, or nowhere, so that it applies only to this request."""
    said: str
    """Message for the user. In it, ``{name}`` stands for the provider, and ``{parts}`` for the
    refused parts."""

    def sentence(self, provider: str, parts: Sequence[str]) -> str:
        """Return the message for the user, which names at most five of the refused ``parts``."""
        named = ", ".join(parts[:_NAMED_PARTS])
        if len(parts) > _NAMED_PARTS:
            named = f"{named} and {len(parts) - _NAMED_PARTS} more"
        return self.said.format(name=provider, parts=named)


REMEDIES: Mapping[Part, Remedy] = {
    Part.FORMAT: Remedy(
        "the request is sent as chat completions",
        "server",
        "{name} has no Responses API, so requests are sent as chat completions.",
    ),
    Part.ROLES: Remedy(
        "consecutive messages of one role are joined, and an answer is inserted between a tool result and "
        "a user message; after another refusal, the system text is put at the start of the first user message",
        "server",
        "{name} requires roles to alternate, so consecutive messages of one role are joined.",
    ),
    Part.SYSTEM: Remedy(
        "the system text is put at the start of the first user message; after another refusal, roles are "
        "made to alternate",
        "server",
        "{name} accepts no system messages, so their text is put at the start of the first user message.",
    ),
    Part.PICTURES: Remedy(
        "a note replaces each picture",
        "server",
        "{name} accepts no pictures with this model, so a note replaces each picture.",
    ),
    Part.PICTURE: Remedy(
        "the picture that the error points to is left out; otherwise, the oldest pictures above the maximum "
        "that the error names; otherwise, the pictures since the last answer (if that is none or all of "
        "them, the older half). In the end, all pictures are left out",
        "session",
        "{name} can't read a picture or a document, so it is left out.",
    ),
    Part.TOOLS: Remedy(
        "the tools are described in the prompt, and calls are read from the answer's text",
        "server",
        "{name} accepts no tools with this model. They are described in the prompt, and calls are read from "
        "the answer's text.",
    ),
    Part.TOOL_COUNT: Remedy(
        "as many tools are sent as the error allows, otherwise half of them; tools that were called are kept "
        "first",
        "server",
        "{name} accepts fewer tools than there are. Left out: {parts}.",
    ),
    Part.TOOL: Remedy(
        "only names, types and descriptions of the tool's parameters are sent; after another refusal, the "
        "tool is left out",
        "server",
        "{name} refuses the schema of {parts}, so a simpler one is sent. If that is refused too, the tool is left out.",
    ),
    Part.CACHE_MARKS: Remedy(
        "cache marks are left out",
        "server",
        "{name} accepts no cache marks, so requests are sent without them.",
    ),
    Part.CALL_IDS: Remedy(
        "call ids are shortened to the length that the error names, otherwise to 40 characters; after another "
        "refusal, to nine letters and digits",
        "server",
        "{name} accepts only short call ids, so longer ones are replaced.",
    ),
    Part.REASONING: Remedy(
        "the reasoning of earlier answers is left out; after another refusal, reasoning is no longer requested",
        "session",
        "{name} refuses the reasoning, so the request is sent without it.",
    ),
    Part.FIELD: Remedy(
        "the named fields are left out; after another refusal, all optional fields are left out",
        "server",
        "{name} doesn't accept some fields of the request ({parts}), so they are left out.",
    ),
    Part.ROOM: Remedy(
        "the limit that the error names is sent, or no limit if only prompt and answer together exceed the window",
        "server",
        "{name} refuses the limit for the answer's length, so it is lowered or left out.",
    ),
    Part.SUMMARY_THINKING: Remedy(
        "the summary is requested once more without the thinking", "request", ""
    ),
}
"""For each part of a request, the change that is made if a provider refuses it. The order is that
of the table in ``docs/models.md``."""


class ServerForm(BaseModel):
    """What a server accepts in one model's requests; the defaults fit most servers."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    wire: WireName | None = None
    """The format to use because the server lacks the usual one; None if it has the usual one."""
    roles: Literal["apart", "joined", "alternating"] = "apart"
    """How messages are changed for the server. With ``apart``, they are sent as they are. With
    ``joined``, consecutive user or assistant messages are joined. With ``alternating``, an answer
    is also inserted between a tool result and a user message."""
    system: bool = True
    """Whether the server accepts system messages; otherwise they are sent as user messages."""
    pictures: bool = True
    """Whether the server accepts pictures; otherwise a note replaces each of them."""
    cache_marks: bool = True
    """Whether the server accepts marks for the prompt cache."""
    asks_reasoning: bool = True
    """Whether the server accepts requests for reasoning."""
    takes_reasoning: bool = True
    """Whether the server accepts the reasoning of earlier answers in a request."""
    call_id_chars: int = 0
    """Longest tool call id that the server accepts, in characters; 0 for any length."""
    answer_tokens: int = 0
    """Length, in tokens, of the longest answer that the server can be asked for; 0 for any
    length."""
    fields: tuple[str, ...] = ()
    """Fields of the request body that the server rejects."""
    tools: bool = True
    """Whether the server accepts tools; otherwise they are described in the prompt and called in
    the answer's text."""
    end_marks: bool = True
    """Whether the server marks the end of an answer; otherwise an answer that just ends counts as
    complete."""
    tool_count: int = 0
    """Maximum number of tools in a request; 0 for any number."""
    plain_tools: tuple[str, ...] = ()
    """Tools that are sent with only names, types and descriptions of their parameters. A tool is
    written as ``name#digest of the schema``."""
    without_tools: tuple[str, ...] = ()
    """Tools that the server refuses in any form, written as in ``plain_tools``."""

    def lines(self) -> list[str]:
        """Return a phrase for each difference from the default form; empty if there is none."""
        facts = {
            f"requests in the format {self.wire}": self.wire is not None,
            "consecutive messages of one role are joined": self.roles != "apart",
            "the system text is part of the first message": not self.system,
            "no pictures": not self.pictures,
            "no cache marks": not self.cache_marks,
            "reasoning isn't requested": not self.asks_reasoning,
            "reasoning isn't sent back": not self.takes_reasoning,
            f"call ids of at most {self.call_id_chars} characters": self.call_id_chars > 0,
            f"answers of at most {self.answer_tokens:,} tokens": self.answer_tokens > 0,
            f"without the fields {', '.join(self.fields)}": bool(self.fields),
            "tools described in the prompt, calls read from the text": not self.tools,
            f"at most {self.tool_count} tools": self.tool_count > 0,
            "doesn't mark the end of answers": not self.end_marks,
            f"parameters simplified: {_tool_names(self.plain_tools)}": bool(self.plain_tools),
            f"tools left out: {_tool_names(self.without_tools)}": bool(self.without_tools),
        }
        return [line for line, holds in facts.items() if holds]


@frozen
class Shape:
    """Describes how one attempt at a request is written.

    It consists of the form that the server accepts, and of the parts that are left out of this
    request only.
    """

    form: ServerForm = field(default_factory=ServerForm)
    fields: frozenset[str] = frozenset()
    """Fields that are left out of this request's body, in addition to those that the server's form
    leaves out. ``a.b`` is field b of object a."""
    blobs: frozenset[str] = frozenset()
    """SHA-256 names of the pictures that are left out."""
    reasoning: bool = True
    """Whether this request contains and asks for reasoning, as far as the server's form allows
    it."""

    @property
    def left_out(self) -> frozenset[str]:
        """All fields that are left out of this request's body or of all requests to the server."""
        return self.fields | frozenset(self.form.fields)

    @property
    def with_reasoning(self) -> bool:
        return self.reasoning and self.form.asks_reasoning


@frozen
class Refused:
    """A refused request: its shape, the body that was sent, and the error's body."""

    request: ModelRequest
    """The request before ``shape`` was applied, in the form that doesn't depend on the provider."""
    shape: Shape
    sent: object
    """The JSON body as it was sent, in the provider's format."""
    error: ErrorBody
    optional: Sequence[str] = ()
    """Fields of the request's body that may be left out."""
    is_last_try: bool = False
    """Whether only one more attempt is left."""


def next_shape(refused: Refused, refusal: Refusal) -> Shape | None:  # noqa: C901, PLR0911, PLR0912 - an arm per part
    """Return the shape (form) of the request to try next; None if no further change is known."""
    now = refused.shape
    form = now.form
    match refusal.part:
        case Part.FORMAT if form.wire is None:
            return _learnt(now, wire="chat")
        case Part.ROLES if form.roles != "alternating":
            return _learnt(now, roles="alternating")
        case Part.ROLES | Part.SYSTEM if form.system:
            return _learnt(now, system=False)
        case Part.SYSTEM if form.roles != "alternating":
            return _learnt(now, roles="alternating")
        case Part.PICTURES if form.pictures:
            return _learnt(now, pictures=False)
        case Part.PICTURE:
            blobs = _pictures_out(refused, refusal.number)
            if blobs == now.blobs:
                return None
            return replace(now, blobs=blobs)
        case Part.TOOLS if form.tools:
            return _learnt(now, tools=False)
        case Part.TOOL_COUNT if refusal.number:
            return _learnt(now, tool_count=refusal.number)
        case Part.TOOL:
            return _tools_mended(now, refusal.names, refused.request.tools)
        case Part.CACHE_MARKS if form.cache_marks:
            return _learnt(now, cache_marks=False)
        case Part.CALL_IDS:
            return _ids_shortened(now, refusal.number)
        case Part.ROOM if refusal.number:
            return _learnt(now, answer_tokens=refusal.number)
        case Part.ROOM:
            return replace(now, fields=now.fields | set(refusal.names))
        case Part.FIELD:
            # If a server refuses one field after another, the last try leaves out every optional
            # field.
            if refused.is_last_try:
                names = tuple(refused.optional)
            else:
                names = refusal.names
            return _learnt(now, fields=tuple(sorted({*form.fields, *names})))
        case Part.REASONING:
            return _reasoning_out(refused)
        case _:
            return None


def shaped(
    request: ModelRequest,
    shape: Shape,
    *,
    call_id_chars: int = 0,
    prompt: Callable[[str], str] = lambda _name: "{tools}",
    is_tiny: bool = False,
) -> ModelRequest:
    """Return the request changed so that it fits the shape.

    ``call_id_chars`` is the longest call id that the provider is known to accept, 0 for any.
    ``prompt`` returns a file of ``prompts/`` by name, in which ``{tools}`` stands for the tools'
    descriptions. ``is_tiny`` says that the model is so small that it works in steps (see
    ``model.steps``).
    """
    form = shape.form
    request = replace(request, tools=_taken(request, form))
    if is_tiny:
        request = in_steps(request, prompt)
    elif not form.tools:
        request = written(request, prompt("written_tools"))
    messages = [_message_taken(message, shape) for message in request.messages]
    sizes = [size for size in (form.call_id_chars, call_id_chars) if size]
    if sizes:
        messages = _with_short_ids(messages, min(sizes))
    if form.roles != "apart" or not (form.system and form.tools):
        messages = _joined(messages, alternating=form.roles == "alternating")
    asked = request.max_output_tokens
    if asked is not None and form.answer_tokens:
        asked = min(asked, form.answer_tokens)
    return replace(request, messages=tuple(messages), max_output_tokens=asked)


def _message_taken(message: Message, shape: Shape) -> Message:
    """Return the message without those parts that the server doesn't accept.

    If the server requires it, notes replace pictures, and a system message becomes a user message.
    """
    form = shape.form
    if not form.pictures:
        message = _without_pictures(message, images_of([message]))
    elif shape.blobs:
        message = _without_pictures(message, shape.blobs)
    if message.reasoning and not (shape.reasoning and form.takes_reasoning):
        message = replace(message, reasoning=())
    if message.cache and not form.cache_marks:
        message = replace(message, cache=False)
    if message.role == "system" and not form.system:
        message = replace(message, role="user")
    return message


def left_out_tools(request: ModelRequest, form: ServerForm) -> list[str]:
    """Return the names of the tools left out because the server limits their number.

    The result is empty if the server sets no limit. Tools that the server refuses in any form are
    not included.
    """
    if not form.tool_count:
        return []
    taken = {tool.name for tool in _taken(request, form)}
    names: list[str] = []
    for tool in request.tools:
        is_refused = _key(tool) in form.without_tools
        if tool.name not in taken and not is_refused:
            names.append(tool.name)
    return names


def _taken(request: ModelRequest, form: ServerForm) -> tuple[ToolSchema, ...]:
    """Return the tools that a server accepts, in their original order; some get simpler schemas.

    If there are too many, tools that the conversation has called are kept first.
    """
    tools = request.tools
    if form.without_tools or form.plain_tools:
        tools = tuple(_plain(tool, form) for tool in tools if _key(tool) not in form.without_tools)
    if not form.tool_count or len(tools) <= form.tool_count:
        return tools
    called = {call.tool for call in calls_in(request.messages).values()}
    by_need = sorted(tools, key=lambda tool: tool.name not in called)
    kept = {tool.name for tool in by_need[: form.tool_count]}
    return tuple(tool for tool in tools if tool.name in kept)


def _learnt(now: Shape, **changes: Any) -> Shape | None:
    form = now.form.model_copy(update=changes)
    if form == now.form:
        return None
    return replace(now, form=form)


# -- roles --------------------------------------------------------------------------------------------------


def _joined(messages: Sequence[Message], *, alternating: bool) -> list[Message]:
    """Join consecutive user messages, and consecutive assistant messages.

    An assistant message with tool calls isn't joined to the next message; joined messages lose
    their reasoning. ``alternating`` inserts a short answer between a tool result and a user
    message.
    """
    merged: list[Message] = []
    for message in messages:
        last = None
        if merged:
            last = merged[-1]
        if alternating and last is not None and last.role == "tool" and message.role == "user":
            merged.append(Message("assistant", (ContentText(_ACKNOWLEDGED),)))
        if (
            last is None
            or message.role not in ("user", "assistant")
            or last.role != message.role
            or last.tool_calls
        ):
            merged.append(message)
            continue
        apart = (ContentText("\n\n"),) if last.content and message.content else ()
        merged[-1] = replace(
            message,
            content=(*last.content, *apart, *message.content),
            reasoning=(),
            cache=last.cache or message.cache,
            origin=(*last.origin, *message.origin),
        )
    return merged


# -- calls --------------------------------------------------------------------------------------------------


def _with_short_ids(messages: Sequence[Message], longest: int) -> list[Message]:
    """Return the messages with call ids that a server accepts. Ids that already fit are kept.

    Other ids become ``c00000000``, ``c00000001`` and so on, nine characters each.
    """
    given = calls_in(messages)
    kept = {call_id for call_id in given if _fits(call_id, longest)}
    shorts = (f"c{number:08d}" for number in count())
    free = (short for short in shorts if short not in kept)
    ids = {call_id: next(free) for call_id in given if call_id not in kept}
    if ids:
        return [_renamed(message, ids) for message in messages]
    return list(messages)


def _fits(call_id: str, longest: int) -> bool:
    if longest <= SHORT_ID_CHARS:
        return len(call_id) == SHORT_ID_CHARS and call_id.isascii() and call_id.isalnum()
    return len(call_id) <= longest


def _renamed(message: Message, ids: dict[str, str]) -> Message:
    calls = [
        replace(call, call_id=ids.get(call.call_id, call.call_id)) for call in message.tool_calls
    ]
    call_id = message.call_id
    if call_id is not None:
        call_id = ids.get(call_id, call_id)
    return replace(message, tool_calls=tuple(calls), call_id=call_id)


def _ids_shortened(now: Shape, longest: int) -> Shape | None:
    known = now.form.call_id_chars
    wanted = longest or _DEFAULT_ID_CHARS
    if known and wanted >= known:
        wanted = SHORT_ID_CHARS
    return _learnt(now, call_id_chars=wanted)


# -- pictures -----------------------------------------------------------------------------------------------


def _without_pictures(message: Message, blobs: Collection[str]) -> Message:
    """Return the message with a note in place of each picture in ``blobs``."""
    if not any(image.blob in blobs for image in images_in(message)):
        return message
    parts: list[ContentText | ImageRef] = []
    for part in message.content:
        if isinstance(part, ImageRef) and part.blob in blobs:
            parts.append(ContentText(part.text or LEFT_OUT_IMAGE))
        else:
            parts.append(part)
    return replace(message, content=tuple(parts))


def _pictures_out(refused: Refused, taken: int) -> frozenset[str]:
    """Return the blobs of all pictures to leave out of the next try.

    They are the pictures left out so far and, of the others, the first of these that applies:

    - the picture that the error points to;
    - if the maximum ``taken`` is known (not 0), all but the newest ``taken`` pictures;
    - the pictures since the last answer, if there are older ones;
    - the older half, if there are several and this is not the last try;
    - all.
    """
    now = refused.shape
    messages = refused.request.messages
    sent = [blob for blob in images_of(messages) if blob not in now.blobs]
    named = _picture_at(refused)
    if named in sent:
        return now.blobs | {named}
    if taken:
        return now.blobs | set(sent[:-taken])
    answers = [at for at, message in enumerate(messages) if message.role == "assistant"]
    after_answer = max(answers, default=-1) + 1
    newest = set(images_of(messages[after_answer:])) - now.blobs
    if newest and len(newest) < len(sent):
        return now.blobs | newest
    if len(sent) > 1 and not refused.is_last_try:
        return now.blobs | set(sent[: len(sent) // 2])
    return now.blobs | set(sent)


def _picture_at(refused: Refused) -> str:
    """Return the blob of the picture that an error names by its path; "" if it names none.

    Such a path is, for example, ``messages.1.content.0.image``.
    """
    import base64

    match = _PLACE.search(refused.error.judged)
    if match is None:
        return ""
    value = refused.sent
    for step in _STEP.findall(match[0]):
        index = whole_number(step)
        if isinstance(value, list) and index is not None and index < len(value):
            value = value[index]
        elif isinstance(value, dict) and step in value:
            value = value[step]
    if isinstance(value, list) or (isinstance(value, dict) and "role" in value):
        return ""
    held = json.dumps(value)
    for blob, data in refused.request.blobs.items():
        if base64.b64encode(data).decode("ascii") in held:
            return blob
    return ""


# -- tools --------------------------------------------------------------------------------------------------


def _key(tool: ToolSchema) -> str:
    """Return a tool's key, ``name#digest``. A tool with a changed schema has another digest."""
    schema = json.dumps(tool.parameters, sort_keys=True, default=str)
    return f"{tool.name}#{hashlib.sha256(schema.encode('utf-8', 'replace')).hexdigest()[:8]}"


def _tool_names(keys: Sequence[str]) -> str:
    return ", ".join(key.rpartition("#")[0] for key in keys)


def _tools_mended(now: Shape, names: Sequence[str], tools: Sequence[ToolSchema]) -> Shape | None:
    """Return the request's form after the tools ``names`` were refused; None if no form is left.

    The schemas of the refused tools are simplified. If some of these tools were simplified before,
    they are left out instead, and the others stay as they are. Returns None if some were simplified
    before and all the request's tools were refused.
    """
    refused = [_key(tool) for tool in tools if tool.name in names]
    again = [key for key in refused if key in now.form.plain_tools]
    if len(refused) == len(tools) and again:
        return None  # the error names no tool, and a request without any tool is of no use
    if again:
        return _learnt(now, without_tools=tuple(sorted({*now.form.without_tools, *again})))
    return _learnt(now, plain_tools=tuple(sorted({*now.form.plain_tools, *refused})))


def _plain(tool: ToolSchema, form: ServerForm) -> ToolSchema:
    if _key(tool) not in form.plain_tools:
        return tool
    given = as_dict(tool.parameters.get("properties"))
    plain = {name: _plain_property(value) for name, value in given.items()}
    return tool.model_copy(update={"parameters": {"type": "object", "properties": plain}})


def _plain_property(value: object) -> dict[str, Any]:
    """Return a parameter's schema with only its type and description.

    Arrays keep the schema of their items. Objects and values of unknown type become strings.
    """
    said = as_dict(value)
    kind = said.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), None)
    plain: dict[str, Any] = {"type": "string"}
    if kind in ("number", "integer", "boolean"):
        plain["type"] = kind
    elif kind == "array":
        plain = {"type": kind, "items": _plain_property(said.get("items"))}
    if isinstance(said.get("description"), str):
        plain["description"] = said["description"]
    return plain


# -- reasoning ----------------------------------------------------------------------------------------------


def _reasoning_out(refused: Refused) -> Shape | None:
    """Return the shape after reasoning was refused; None if it is neither sent nor requested.

    If the request had reasoning of earlier answers, such reasoning is no longer sent, either never
    again (if the server doesn't know the field) or only not in this request. If the request had
    none, reasoning is no longer requested from the server.
    """
    now = refused.shape
    has_any = any(message.reasoning for message in refused.request.messages)
    is_sent = has_any and now.reasoning and now.form.takes_reasoning
    if is_sent and is_about_reasoning_field(refused.error):
        return _learnt(now, takes_reasoning=False)
    if is_sent:
        return replace(now, reasoning=False)
    return _learnt(now, asks_reasoning=False)
