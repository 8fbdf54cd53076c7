"""Makes the request for a path of entries; every request of a conversation is made here.

``view.resolve`` decides which entries are used and in which state, ``rendering`` what text an entry
has in that state. This module turns them into messages. A path leads from the root of the session
tree to an entry. The head is the beginning of a request: the system prompt, the tool definitions
and the opening message. The caller adds the bytes of images, the effort and other options.

Requests have the same form for every provider:

- at most two system messages, then a conversation that starts with a user message;
- every tool call is answered exactly once, directly after its assistant message, in the order of
  the calls;
- no message is empty, arguments are JSON objects, call ids are unique.

Consecutive messages of one role are not merged, because that would change a message that was
already sent. So an appended entry only appends bytes to the request, unless its kind changes
earlier entries. The special needs of some servers (merged messages, short ids) are met when the
request is sent (see ``model.forms``).

A path that ends in an answer becomes a request that ends in an assistant message, which some models
refuse; to retry a cut-off answer, append a user entry first.
"""

from collections.abc import Sequence
from dataclasses import field, replace

from tui_agent.context.rendering import (
    Content,
    Shown,
    arguments_json,
    assistant_text,
    image_label,
    image_text,
    reasoning_blobs,
    result_text,
    summary_text,
    user_content,
)
from tui_agent.context.request import ContentText, ImageRef, Message, ModelRequest, RequestToolCall
from tui_agent.context.templates import Templates
from tui_agent.context.view import ContextView, EntryState, resolve
from tui_agent.lazy import LazyPattern, dataclass, frozen
from tui_agent.safe_text import valid
from tui_agent.session.effort import Effort
from tui_agent.session.entries import (
    INTERRUPTED_OUTPUT,
    AssistantEntry,
    BookkeepingEntry,
    BranchSummaryEntry,
    CompactionEntry,
    Entry,
    ImagePart,
    ShellEntry,
    SystemEntry,
    ToolCallPart,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)

MAX_NAME_CHARS = 64
"""Maximum characters of a tool name or call id that every provider accepts."""

CACHED_HEAD_MESSAGES = 2
"""Maximum number of messages before the conversation that are marked for the provider's cache."""
CACHED_LAST_MESSAGES = 2
"""Number of messages at the end of a request that are marked for the provider's cache."""

_AS_IT_IS = {
    (vision, documents): Shown(vision=vision, documents=documents)
    for vision in (False, True)
    for documents in (False, True)
}
"""How an unchanged entry is sent, by whether the model accepts images and whether it accepts PDFs."""
_PORTABLE_ID = LazyPattern(r"[A-Za-z0-9_-]{1,64}")
_UNPORTABLE = LazyPattern(r"[^A-Za-z0-9_-]+")


_AnsweredCall = tuple[RequestToolCall, ToolResultEntry | None]
"""A tool call as it is sent, and its result (None if there is none)."""


@frozen
class ModelTraits:
    """The traits of a model and its server that affect the request.

    ``vision`` says whether the model accepts images, ``documents`` whether it accepts PDF files.
    ``tools`` says whether the server accepts tool schemas; if it doesn't, the prompt describes the
    tools. A ``small`` model is given few tools; a ``tiny`` one is given none and works in steps
    (see ``model.steps``). ``images_in_results`` says whether tool results may contain images,
    ``bound_reasoning`` whether the provider checks returned reasoning against everything before it,
    ``hour_cache`` whether a cache lifetime of an hour can be requested, and ``searches`` whether
    the provider can search the web. ``efforts`` are the model's levels of effort.
    """

    model: str
    vision: bool = True
    documents: bool = False
    tools: bool = True
    small: bool = False
    tiny: bool = False
    images_in_results: bool = False
    bound_reasoning: bool = False
    hour_cache: bool = False
    searches: bool = False
    efforts: tuple[Effort, ...] = tuple(Effort)

    def takes(self, image: ImagePart) -> bool:
        return self.documents if image.is_document else self.vision


def project(
    path: Sequence[Entry],
    traits: ModelTraits,
    templates: Templates | None = None,
    *,
    max_output_tokens: int | None = None,
) -> ModelRequest:
    """Return the request for a path of entries, without the bytes of images.

    ``path`` may be the whole path or the active one (`Session.active_path`).
    """
    view = resolve(path)
    head = []
    if view.system is not None:
        head = head_messages(view.system)
    builder = Builder(view, traits, templates or Templates(), list(head))
    builder.summary()
    for entry in view.entries:
        builder.add(entry)
    return ModelRequest(
        model=traits.model,
        messages=_with_cache_marks(builder.messages, len(head)),
        tools=view.system.tools if view.system else (),
        max_output_tokens=max_output_tokens,
    )


@dataclass
class Builder:
    """Builds the messages of a request, entry by entry.

    ``messages`` contains those built so far.
    """

    view: ContextView
    traits: ModelTraits
    templates: Templates
    messages: list[Message] = field(default_factory=list)
    _used_ids: set[str] = field(default_factory=set)

    def summary(self) -> None:
        """Add the message of the view's compaction, if there is one and the user hasn't hidden it.

        If it is hidden and keeps no entry, a placeholder message is added instead.
        """
        entry = self.view.compaction
        if entry is None:
            return
        if not self._is_shown(entry):
            if entry.first_kept_id is None:
                self._start_with_user()
            return
        shown = self._shown(entry)
        text = summary_text(entry, self.view.pinned, shown, self.templates)
        parts: Content = (ContentText(text),)
        own: tuple[str, ...] = ()
        if entry.item and shown.whole:
            # The provider's item is sent instead of the summary's text to the model that made it.
            # The message contains both, so that every model counts the same tokens.
            head, mark, tail = text.partition("</summary>")
            parts = (ContentText(f"{head}{mark}"), ContentText(tail))
            if entry.model == self.traits.model:
                own = (entry.item,)
        self.messages.append(Message("user", parts, reasoning=own, origin=(entry.id,)))

    def add(self, entry: Entry) -> None:
        """Add the messages of one entry. For an answer, this includes the messages of its results.

        The method adds nothing for a result on its own, a compaction, or a kind that is not sent.
        """
        match entry:
            case AssistantEntry():
                self._put_assistant(entry)
            case UserEntry() | ShellEntry() | BranchSummaryEntry():
                if entry.is_sent:
                    self._put_user(entry)
            case ToolResultEntry() | CompactionEntry() | BookkeepingEntry():
                pass

    def result(self, entry: ToolResultEntry) -> None:
        """Add the message of a tool result without its call, so that the message can be counted."""
        if self._is_shown(entry):
            self._put_results([(RequestToolCall("", "", "{}"), entry)], 0)

    def _is_shown(self, entry: Entry) -> bool:
        return self.view.states.get(entry.id) is not EntryState.DROPPED

    def _shown(self, entry: Entry) -> Shown:
        state = self.view.states.get(entry.id)
        lost = None
        if type(entry) is ToolResultEntry and not self.view.holds(entry.metadata.known_from):
            lost = entry.metadata.known_from
        left_out = self.view.left_out.get(entry.id, frozenset())
        if state is None and lost is None and not left_out:
            return _AS_IT_IS[self.traits.vision, self.traits.documents]
        return Shown(
            state or EntryState.LIVE,
            self.view.kept_chars.get(entry.id, 0),
            vision=self.traits.vision,
            documents=self.traits.documents,
            note=self.view.notes.get(entry.id, ""),
            lost=lost,
            left_out=left_out,
        )

    def _put_user(self, entry: UserEntry | ShellEntry | BranchSummaryEntry) -> None:
        if not self._is_shown(entry):
            # Providers refuse a request with only system messages.
            self._start_with_user()
        elif content := user_content(entry, self._shown(entry), self.templates):
            self.messages.append(Message("user", content, origin=(entry.id,)))

    def _put_assistant(self, entry: AssistantEntry) -> None:
        if not self._is_shown(entry):
            return
        shown = self._shown(entry)
        text = assistant_text(entry, shown, self.templates)
        results = self.view.results.get(entry.id, ())
        answered = self._answered_calls(entry, shown, results) if results else []
        if not text and not answered:
            return
        self._start_with_user()
        reasoning: tuple[str, ...] = ()
        if shown.whole and len(answered) == len(results) and self._takes_reasoning(entry):
            reasoning = reasoning_blobs(entry, self.traits.model)
        self.messages.append(
            Message(
                "assistant",
                (ContentText(text),) if text else (),
                tool_calls=tuple(call for call, _result in answered),
                reasoning=reasoning,
                origin=(entry.id,),
            )
        )
        if answered:
            self._put_results(answered, entry.id)

    def _takes_reasoning(self, entry: AssistantEntry) -> bool:
        """Return True if an answer's reasoning may be sent back.

        It is not sent if this or a newer answer's reasoning was refused. If the provider checks
        reasoning against the messages before it, it is not sent either if one of them was changed
        after the answer.
        """
        if entry.id < self.view.reasoning_from:
            return False
        if not self.traits.bound_reasoning:
            return True
        return not any(changed < entry.id < by for changed, by in self.view.rewrites)

    def _answered_calls(
        self, entry: AssistantEntry, shown: Shown, results: Sequence[ToolResultEntry | None]
    ) -> list[_AnsweredCall]:
        """Return an answer's calls, each with its result. Calls that the user hid are left out."""
        answered: list[_AnsweredCall] = []
        for call, result in zip(entry.tool_calls, results, strict=True):
            if result is not None and not self._is_shown(result):
                continue
            sent = RequestToolCall(
                self._call_id(call, entry),
                tool_name(call.tool),
                arguments_json(call.arguments, shown, entry.id),
            )
            answered.append((sent, result))
        return answered

    def _put_results(self, answered: Sequence[_AnsweredCall], entry_id: int) -> None:
        moved: list[ContentText | ImageRef] = []
        origin: list[int] = []
        for call, answer in answered:
            if answer is None:
                stand_in = (ContentText(INTERRUPTED_OUTPUT),)
                self.messages.append(
                    Message("tool", stand_in, call_id=call.call_id, failed=True, origin=(entry_id,))
                )
                continue
            content, images = self._result_content(answer)
            if self.traits.images_in_results:
                content = (*content, *(self._image_ref(answer, image) for image in images))
                images = ()
            failed = answer.status is not ToolStatus.COMPLETED
            self.messages.append(
                Message("tool", content, call_id=call.call_id, failed=failed, origin=(answer.id,))
            )
            if images:
                origin.append(answer.id)
                for image in images:
                    moved += [ContentText(image_label(image)), self._image_ref(answer, image)]
        if moved:
            content = (ContentText(f"{self.templates.tool_images}\n"), *moved)
            self.messages.append(Message("user", content, origin=tuple(origin)))

    def _result_content(self, entry: ToolResultEntry) -> tuple[Content, tuple[ImagePart, ...]]:
        """Return the content that is sent for a result's text, and the images to send with it."""
        shown = self._shown(entry)
        text = result_text(entry, shown, self.templates)
        if not entry.attachments or not (shown.whole or shown.cut):
            return (ContentText(text),), ()
        sent = tuple(filter(shown.shows, entry.attachments))
        if any(image.is_document for image in sent) and entry.metadata.path == sent[0].path:
            # The result's text is the text of the PDF. It is only needed by models that don't
            # accept PDFs.
            return (ContentText(image_label(sent[0])),), sent
        lines = [text]
        for image in entry.attachments:
            if not image.is_document or image.blob in shown.left_out:
                lines.append(image_text(image, entry.id, shown, self.templates))
        return (ContentText("\n".join(lines)),), sent

    def _image_ref(self, entry: ToolResultEntry, image: ImagePart) -> ImageRef:
        text = ""
        if image.is_document:
            text = result_text(entry, self._shown(entry), self.templates)
        return ImageRef(image.blob, image.mime, text)

    def _start_with_user(self) -> None:
        """Add a placeholder user message if the conversation has no message yet.

        Providers require that a conversation starts with a user message.
        """
        if not self.messages or self.messages[-1].role == "system":
            self.messages.append(Message("user", (ContentText(self.templates.conversation_start),)))

    def _call_id(self, call: ToolCallPart, entry: AssistantEntry) -> str:
        """Return the call's id, changed if necessary to be valid and unique in the request.

        The model's id stays unchanged if possible, because some providers keep state in it
        (Gemini's thought signatures).
        """
        if _PORTABLE_ID.fullmatch(call.call_id):
            base = call.call_id
        elif (
            entry.model == self.traits.model
            and call.call_id.isascii()
            and call.call_id.isprintable()
        ):
            base = call.call_id.strip() or "call"
        else:
            base = _UNPORTABLE.sub("_", call.call_id)[: MAX_NAME_CHARS - 8] or "call"
        unique = base
        number = 1
        if len(base) <= MAX_NAME_CHARS:
            base = base[: MAX_NAME_CHARS - 8]
        # Ids must still be different after a wire format has replaced special characters in them.
        while (portable := _UNPORTABLE.sub("_", unique)) in self._used_ids:
            number += 1
            unique = f"{base}_{number}"
        self._used_ids.add(portable)
        return unique


def head_messages(system: SystemEntry) -> list[Message]:
    """Return the messages before the conversation: at most two system messages and the opening.

    The opening is a user message that the system entry contains; it is left out if it is empty. The
    first block of the system prompt is a separate message, so that it stays cached when the other
    blocks change.
    """
    blocks = [valid(block) for block in system.blocks if block.strip()]
    texts = [text for text in (*blocks[:1], "\n\n".join(blocks[1:])) if text]
    messages = [Message("system", (ContentText(text),), origin=(system.id,)) for text in texts]
    if system.opening:
        messages.append(Message("user", (ContentText(valid(system.opening)),), origin=(system.id,)))
    return messages


def messages_of(
    entry: Entry, view: ContextView, traits: ModelTraits, templates: Templates
) -> list[Message]:
    """Return the messages that one entry of a view contributes to a request.

    An answer's messages include the placeholders for its missing results, but not its results.
    """
    builder = Builder(view, traits, templates)
    if isinstance(entry, ToolResultEntry):
        builder.result(entry)
        return builder.messages
    if isinstance(entry, CompactionEntry):
        builder.summary()
    else:
        builder.add(entry)
    return [message for message in builder.messages if message.origin == (entry.id,)]


def tool_name(name: str) -> str:
    """Return a tool's name as every provider accepts it: at most 64 letters, digits, "_" and "-".

    Models may call tools by invented names, which can contain other characters.
    """
    if _PORTABLE_ID.fullmatch(name):
        return name
    return _UNPORTABLE.sub("_", name)[:MAX_NAME_CHARS] or "unknown"


def _with_cache_marks(messages: list[Message], head: int) -> tuple[Message, ...]:
    """Return the messages with cache marks on the first messages and on the newest two.

    ``head`` is the number of messages before the conversation (the system prompt and the opening
    message); at most two of them are marked.
    """
    heads = min(head, CACHED_HEAD_MESSAGES)
    tails = len(messages) - CACHED_LAST_MESSAGES
    for at, message in enumerate(messages):
        if at < heads or (at >= tails and message.role != "system"):
            messages[at] = replace(message, cache=True)
    return tuple(messages)
