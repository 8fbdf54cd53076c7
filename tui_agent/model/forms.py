"""The form of requests that a server accepts, and the next form to try after a refusal. Pure.

A server's lasting limits are its ``ServerForm``, which is remembered. A part that is wrong in one
request or session is left out of that request alone.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
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

MAX_TRIES = 3
"""Maximum times that one request is sent, each time in another form."""
SHORT_ID_CHARS = 9
"""Length of the shortest call ids, in characters, which are letters and digits only (Mistral)."""
LEFT_OUT_IMAGE = "[image: left out, the provider can't read it]"
_ACKNOWLEDGED = "[…]"
"""Answer inserted between two user messages, for servers that require alternating roles."""
_DEFAULT_ID_CHARS = 40
"""Maximum length of call ids, in characters, for servers that don't name theirs; OpenAI's limit."""
_NAMED_PARTS = 5
"""Maximum names of parts in a message for the user."""
_PLACE = LazyPattern(r"(?:messages|input|contents)[\[.]\d+\]?(?:[.\[]\w+\]?)*")
_STEP = LazyPattern(r"\w+")


@frozen
class Remedy:
    """What is done after the refusal of a part: texts for the documentation and for the user."""

    tried: str
    kept: Literal["server", "session", "request"]
    """What remembers it: the server's form, an entry of the session, or only this request."""
    said: str

    def sentence(self, provider: str, parts: Sequence[str]) -> str:
        """Return the message for the user; ``parts`` are the names of the refused parts."""
        named = ", ".join(parts[:_NAMED_PARTS])
        if len(parts) > _NAMED_PARTS:
            named = f"{named} and {len(parts) - _NAMED_PARTS} more"
        return self.said.format(name=provider, parts=named)


REMEDIES: Mapping[Part, Remedy] = {
    Part.FORMAT: Remedy(
        "the address is spoken to in chat completions",
        "server",
        "{name} has no Responses: it is spoken to in chat completions.",
    ),
    Part.ROLES: Remedy(
        "messages of one role are sent as one, with an answer between a result and the user; "
        "then the system text begins the first message",
        "server",
        "{name} wants roles to alternate: messages of one role are sent as one.",
    ),
    Part.SYSTEM: Remedy(
        "the system text begins the first message of the user",
        "server",
        "{name} takes no system messages: their text begins the first message.",
    ),
    Part.PICTURES: Remedy(
        "no pictures: a note stands for each",
        "server",
        "{name} takes no pictures with this model: notes stand for them.",
    ),
    Part.PICTURE: Remedy(
        "without the picture whose place is named, the oldest over a number that is named, or those since "
        "the last answer, of the first ones the older half; then without any",
        "session",
        "{name} can't read a picture or a document: it is taken out.",
    ),
    Part.TOOLS: Remedy(
        "the tools are told in the prompt, and calls are read from the answer's text",
        "server",
        "{name} takes no tools with this model: it is told of them in the prompt and writes its calls as text.",
    ),
    Part.TOOL_COUNT: Remedy(
        "the number of tools that is named, else half of them: those that were called, then the first ones",
        "server",
        "{name} takes fewer tools than there are. Left out: {parts}.",
    ),
    Part.TOOL: Remedy(
        "the tool's parameters by name and type only; then without the tool",
        "server",
        "{name} refuses the schema of {parts}: it is sent in a plain form, or left out if that is refused too.",
    ),
    Part.CACHE_MARKS: Remedy(
        "no cache marks", "server", "{name} takes no cache marks: requests go without."
    ),
    Part.CALL_IDS: Remedy(
        "ids of calls of the named length, else 40 characters; then nine letters and digits",
        "server",
        "{name} takes only short ids of calls: they are cut.",
    ),
    Part.REASONING: Remedy(
        "without the reasoning that is sent back; then without asking for any",
        "session",
        "{name} refuses the reasoning: the request goes without.",
    ),
    Part.FIELD: Remedy(
        "without the named fields; then without any that can be left out",
        "server",
        "{name} doesn't know fields of the request ({parts}): they are left out.",
    ),
    Part.ROOM: Remedy(
        "the longest answer that is named; where the prompt alone fits the window, without a limit of the answer",
        "server",
        "{name} gives shorter answers than were asked for: the limit is lowered.",
    ),
    Part.SUMMARY_THINKING: Remedy("the summary is asked for once more without it", "request", ""),
}
"""What is done if a provider refuses a part, in the order of ``docs/models.md``."""


class ServerForm(BaseModel):
    """What a server accepts in one model's requests; the defaults fit most servers."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    wire: WireName | None = None
    """The format used in place of one that the server lacks; None for the usual one."""
    roles: Literal["apart", "joined", "alternating"] = "apart"
    """``joined``: consecutive user messages are joined. ``alternating``: in addition, no user
    message follows a tool result."""
    system: bool = True
    """Whether it accepts system messages; otherwise their text begins the first user message."""
    pictures: bool = True
    cache_marks: bool = True
    asks_reasoning: bool = True
    """Whether the server accepts a request for reasoning."""
    takes_reasoning: bool = True
    """Whether the server accepts the reasoning of earlier answers."""
    call_id_chars: int = 0
    """Longest tool call id the server accepts, in characters; 0: any length."""
    answer_tokens: int = 0
    """Longest answer the server can be asked for, in tokens; 0: any length."""
    fields: tuple[str, ...] = ()
    """Fields of the request body that the server rejects."""
    tools: bool = True
    """Whether it accepts tools; otherwise they are described in the prompt and called in the
    answer's text."""
    end_marks: bool = True
    """Whether it marks the end of an answer; otherwise an answer that just ends counts as
    complete."""
    tool_count: int = 0
    """Maximum tools in a request; 0: any number."""
    plain_tools: tuple[str, ...] = ()
    """Tools sent with names and types of parameters only: ``name#digest of the schema``."""
    without_tools: tuple[str, ...] = ()
    """Tools that the server refuses in any form."""

    def lines(self) -> list[str]:
        """Return one line for each way in which requests to the server are changed."""
        facts = {
            f"spoken to in the format {self.wire}": self.wire is not None,
            "messages of one role are sent as one": self.roles != "apart",
            "system text begins the first message": not self.system,
            "no pictures": not self.pictures,
            "no cache marks": not self.cache_marks,
            "not asked for reasoning": not self.asks_reasoning,
            "no reasoning sent back": not self.takes_reasoning,
            f"ids of calls cut to {self.call_id_chars} characters": self.call_id_chars > 0,
            f"answers of at most {self.answer_tokens:,} tokens": self.answer_tokens > 0,
            f"without the fields {', '.join(self.fields)}": bool(self.fields),
            "tools told in the prompt, calls read from the text": not self.tools,
            f"at most {self.tool_count} tools": self.tool_count > 0,
            "does not say when an answer is whole": not self.end_marks,
            f"parameters simplified: {_tool_names(self.plain_tools)}": bool(self.plain_tools),
            f"tools left out: {_tool_names(self.without_tools)}": bool(self.without_tools),
        }
        return [line for line, holds in facts.items() if holds]


@frozen
class Shape:
    """The form of one attempt: the server's, and what is left out of this request alone."""

    form: ServerForm = field(default_factory=ServerForm)
    fields: frozenset[str] = frozenset()
    blobs: frozenset[str] = frozenset()
    """Blobs of the pictures that are left out."""
    reasoning: bool = True
    """Whether reasoning is sent back and requested."""

    @property
    def left_out(self) -> frozenset[str]:
        """Fields of the body that are left out."""
        return self.fields | frozenset(self.form.fields)

    @property
    def with_reasoning(self) -> bool:
        return self.reasoning and self.form.asks_reasoning


@frozen
class Refused:
    """A refused request: its shape, its body, and the error's body."""

    request: ModelRequest
    shape: Shape
    sent: object
    error: ErrorBody
    optional: Sequence[str] = ()
    """Fields that may be left out of the body."""
    is_last_try: bool = False
    """Whether only one more attempt is left."""


def next_shape(refused: Refused, refusal: Refusal) -> Shape | None:  # noqa: C901, PLR0911, PLR0912 - an arm per part
    """Return the shape to try after a refusal; None where there is nothing left to change."""
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
            # A server that refuses one after the other is strict: at last it is sent none of them.
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
    """Return a request in a shape.

    ``call_id_chars`` is the longest call id its provider is known to accept, 0 for any. ``prompt``
    returns a text of ``prompts/`` by name; in the one for tools ``{tools}`` is replaced by them.
    ``is_tiny``: the model works in steps.
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
    """Return a message without the parts that a server doesn't accept."""
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
    """Return the names of the tools left out of a request because there are too many."""
    if not form.tool_count:
        return []
    taken = {tool.name for tool in _taken(request, form)}
    return [tool.name for tool in request.tools if tool.name not in taken]


def _taken(request: ModelRequest, form: ServerForm) -> tuple[ToolSchema, ...]:
    """Return the tools in the form a server accepts.

    Of too many, those already called come first.
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
    """Join consecutive messages of one role.

    ``alternating`` inserts an answer before a user message.
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
    """Return messages with call ids of at most ``longest`` characters; shorter ids stay."""
    given = calls_in(messages)
    kept = {call_id for call_id in given if _fits(call_id, longest)}
    ids: dict[str, str] = {}
    for number, call_id in enumerate(given):
        short = f"c{number:08d}"
        if call_id not in kept and short not in kept:
            ids[call_id] = short
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
    """Return a message with notes in place of the given pictures."""
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
    """Return the pictures to leave out.

    That is the one whose place is named; or the oldest, where only ``taken`` of them are; or those
    since the last answer. Where that is all there are, it is the older half, and none is left for
    the last try.
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
    """Return the picture at a refusal's place (``messages.1.content.0.image``), "" for none."""
    import base64

    match = _PLACE.search(refused.error.judged)
    if match is None:
        return ""
    value = refused.sent
    for step in _STEP.findall(match[0]):
        if isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
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
    """Return a tool's name with a digest of its schema, so that a changed schema is tried again."""
    schema = json.dumps(tool.parameters, sort_keys=True, default=str)
    return f"{tool.name}#{hashlib.sha256(schema.encode('utf-8', 'replace')).hexdigest()[:8]}"


def _tool_names(keys: Sequence[str]) -> str:
    return ", ".join(key.rpartition("#")[0] for key in keys)


def _tools_mended(now: Shape, names: Sequence[str], tools: Sequence[ToolSchema]) -> Shape | None:
    """Return a shape with refused tools simplified, and those refused as simplified left out."""
    refused = [_key(tool) for tool in tools if tool.name in names]
    again = [key for key in refused if key in now.form.plain_tools]
    if len(refused) == len(tools) and again:
        return None  # no tool is named, and without any nothing can be done
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
    said = as_dict(value)
    plain: dict[str, Any] = {"type": "string"}
    if said.get("type") in ("number", "integer", "boolean"):
        plain["type"] = said["type"]
    if isinstance(said.get("description"), str):
        plain["description"] = said["description"]
    return plain


# -- reasoning ----------------------------------------------------------------------------------------------


def _reasoning_out(refused: Refused) -> Shape | None:
    """Return a shape without the reasoning of answers or, if that was refused, without requesting any.

    A server that doesn't know the field is never sent reasoning again.
    """
    now = refused.shape
    has_any = any(message.reasoning for message in refused.request.messages)
    is_sent = has_any and now.reasoning and now.form.takes_reasoning
    if is_sent and is_about_reasoning_field(refused.error):
        return _learnt(now, takes_reasoning=False)
    if is_sent:
        return replace(now, reasoning=False)
    return _learnt(now, asks_reasoning=False)
