"""Turns an editor's prompts into messages, and events and entries into the protocol's updates.

Pictures and PDFs in a prompt are checked, scaled if necessary, and stored as blobs of the session;
a PDF is converted to text in a separate process, to look for secrets. The updates are sent by
`tui_agent.acp.session`.
"""

import base64
import binascii
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from acp import RequestError, helpers
from acp.schema import (
    BlobResourceContents,
    Cost,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    SessionInfoUpdate,
    TextContentBlock,
    TextResourceContents,
    ToolCallLocation,
    ToolCallUpdate,
    UsageUpdate,
)

from tui_agent.agent.attachments import read_pdf
from tui_agent.agent.events import (
    AgentEvent,
    AnswerDelta,
    CompactionEnded,
    CompactionStarted,
    EntryAppended,
    HookAwaited,
    MessageRefused,
    Notice,
    PermissionRequest,
    ReasoningProgress,
    RetryScheduled,
    TitleChanged,
    ToolCallProgress,
    ToolOutput,
    ToolStarted,
)
from tui_agent.app.format import retry_text
from tui_agent.app.permission_text import details_of
from tui_agent.context.budget import ContextSize
from tui_agent.json_text import loads
from tui_agent.lazy import frozen
from tui_agent.pictures import MAX_PDF_BYTES, MAX_PDF_PAGES, PDF, NoPicture, read_picture
from tui_agent.session.entries import (
    AssistantEntry,
    BookkeepingEntry,
    BranchSummaryEntry,
    CompactionEntry,
    Entry,
    FilePart,
    ImagePart,
    ModeChangeEntry,
    ReasoningPart,
    ShellEntry,
    TextPart,
    ToolCallPart,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
    UserPart,
    command_line,
)
from tui_agent.tools.outputs import image_part
from tui_agent.tools.registry import tool_traits
from tui_agent.tools.todo import TodoStatus, TodoTool, parse

MAX_RESOURCE_CHARS = 200_000
"""Maximum number of characters that are used of a resource embedded in a prompt."""

MAX_OUTPUT_CHARS = 20_000
"""Maximum characters of a tool's output that are sent to the editor. The session keeps all of
it."""

OUTPUT_STEP_CHARS = 400
"""A running command's output is sent again when it has grown by at least this many characters."""

_PLAN: dict[TodoStatus, Any] = {
    TodoStatus.PENDING: "pending",
    TodoStatus.IN_PROGRESS: "in_progress",
    TodoStatus.DONE: "completed",
}


@frozen
class Prompt:
    """A message from the editor: the typed text and its attachments."""

    text: str
    attached: tuple[UserPart, ...] = ()


async def read_prompt(blocks: Sequence[Any], cwd: Path, put_blob: Callable[[bytes], str]) -> Prompt:
    """Return the content blocks of a prompt as a message: the joined texts, and the attachments.

    Raises:
        RequestError: a block is not supported or invalid.
    """
    texts: list[str] = []
    attached: list[UserPart] = []
    for block in blocks:
        match block:
            case TextContentBlock():
                texts.append(block.text)
            case ResourceContentBlock():
                texts.append(_spaced(texts, _name(block.uri, cwd)))
            case ImageContentBlock():
                attached.append(_image(block.data, block.mime_type, block.uri, put_blob))
            case EmbeddedResourceContentBlock(resource=TextResourceContents() as resource):
                text = resource.text[:MAX_RESOURCE_CHARS]
                if len(resource.text) > len(text):
                    text += f"\n[{len(resource.text) - len(text)} more characters; use read for the rest]"
                attached.append(FilePart(path=_name(resource.uri, cwd), text=text))
                texts.append(_spaced(texts, _name(resource.uri, cwd)))
            case EmbeddedResourceContentBlock(
                resource=BlobResourceContents(mime_type=type_) as resource
            ) if type_ == PDF:
                attached.append(await _document(resource, put_blob))
            case EmbeddedResourceContentBlock(resource=BlobResourceContents() as resource):
                attached.append(
                    _image(resource.blob, resource.mime_type or "", resource.uri, put_blob)
                )
            case _:
                raise invalid(
                    f"Prompts can't have content of the type {getattr(block, 'type', 'unknown')}."
                )
    return Prompt("".join(texts), tuple(attached))


def _spaced(texts: Sequence[str], name: str) -> str:
    """Return a resource's name to append to ``texts``, with a space before it if necessary."""
    if not texts or texts[-1][-1:].isspace():
        return name
    return f" {name}"


def _image(data: str, mime: str, uri: str | None, put_blob: Callable[[bytes], str]) -> ImagePart:
    if not mime.startswith("image/"):
        raise invalid(
            f"Attachments of the type {mime or 'unknown'} are not supported; images and PDFs are."
        )
    picture = read_picture(_decoded(data))
    if isinstance(picture, NoPicture):
        raise invalid(f"An image can't be attached: it is {picture.reason}.")
    return image_part(picture, put_blob, _file_name(uri))


async def _document(resource: BlobResourceContents, put_blob: Callable[[bytes], str]) -> ImagePart:
    name = _file_name(resource.uri)
    picture = await read_pdf(_decoded(resource.blob), Path(name or "document.pdf"))
    if picture is None:
        raise invalid(
            f"The PDF can't be attached: it is unreadable, contains secrets, has more than {MAX_PDF_PAGES}"
            f" pages, or is larger than {MAX_PDF_BYTES // 1_000_000} MB. Mention its file in the prompt instead."
        )
    return image_part(picture, put_blob, name)


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise invalid("An attachment is not valid base64.") from None


def _file_name(uri: str | None) -> str | None:
    if not uri:
        return None
    return Path(unquote(urlsplit(uri).path)).name or None


def _name(uri: str, cwd: Path) -> str:
    """Return a resource's name for the model: its path, relative if below ``cwd``, or its URI."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return uri
    path = Path(unquote(parts.path))
    if path.is_relative_to(cwd):
        return str(path.relative_to(cwd))
    return str(path)


def invalid(sentence: str) -> RequestError:
    """Return the protocol's error for a request that contains invalid values."""
    return RequestError(-32602, sentence)


@frozen
class CompactionUpdate:
    """The protocol's ``compaction_update``, which the SDK has no class for yet (schema 1.20)."""

    id: str
    status: Literal["in_progress", "completed", "failed", "cancelled"]
    summary: str = ""
    error: str = ""

    def params(self, session_id: str) -> dict[str, Any]:
        update: dict[str, Any] = {
            "sessionUpdate": "compaction_update",
            "compactionId": self.id,
            "status": self.status,
        }
        if self.summary:
            update["summary"] = [{"type": "text", "text": self.summary}]
        if self.error:
            update["error"] = self.error
        return {"sessionId": session_id, "update": update}


class Updates:
    """Creates the updates of one session, with a unique id for each tool call.

    ``cwd`` is the session's directory. ``blob`` returns an image's bytes by digest, None if they no
    longer exist. With ``compactions``, compactions are reported in updates of their own, which the
    editor must support; otherwise they are reported as thoughts.
    """

    def __init__(
        self,
        cwd: Path,
        blob: Callable[[str], bytes | None] = lambda _digest: None,
        *,
        compactions: bool = False,
    ) -> None:
        self._cwd = cwd
        self._blob = blob
        self._compactions = compactions
        self._compaction_id = ""
        self._ids: dict[str, str] = {}
        self._last_id = 0
        self._outputs: dict[str, str] = {}
        self._sent: dict[str, int] = {}
        self._streamed = False

    # -- during a run

    def updates_for(self, event: AgentEvent) -> Iterator[Any]:
        """Yield the updates that show the editor an event of the agent."""
        match event:
            case AnswerDelta(text=text):
                self._streamed = True
                yield helpers.update_agent_message_text(text)
            case ReasoningProgress(text=text):
                yield helpers.update_agent_thought_text(text)
            case ToolCallProgress(call_id=call_id, tool=tool):
                if call_id not in self._ids:
                    yield self._begin(call_id, tool, tool)
            case ToolStarted():
                yield from self._started(event)
            case ToolOutput(call_id=call_id, text=text):
                yield from self._output(call_id, text)
            case EntryAppended(entry=entry):
                yield from self._appended(entry)
            case CompactionStarted() | CompactionEnded() if self._compactions:
                yield from self._compaction(event)
            case CompactionStarted() | RetryScheduled() | HookAwaited() | Notice():
                yield helpers.update_agent_thought_text(f"{_thought(event)}\n")
            case MessageRefused(reason=reason):
                yield helpers.update_agent_message_text(reason)
            case TitleChanged(title=title):
                yield SessionInfoUpdate(session_update="session_info_update", title=title)
            case _:
                pass

    def _appended(self, entry: Entry) -> Iterator[Any]:
        match entry:
            case AssistantEntry():
                if entry.text and not self._streamed:
                    yield helpers.update_agent_message_text(entry.text)
                self._streamed = False
            case ToolResultEntry():
                yield from self._result(entry)
            case ModeChangeEntry(mode=mode):
                yield helpers.update_current_mode(mode)
            case CompactionEntry() if self._compactions:
                yield from self._compaction(entry)
            case CompactionEntry():
                yield helpers.update_agent_thought_text(
                    f"Compacted: {entry.tokens_before:,} → {entry.tokens_after:,} tokens.\n"
                )
            case UserEntry() if entry.diagnostics:
                listings = [text.partition("\n")[2] for text in entry.texts("attached")]
                found = "\n".join(listings)
                yield helpers.update_agent_thought_text(f"New problems after the edits:\n{found}\n")
            case _:
                pass

    def _compaction(
        self, what: CompactionStarted | CompactionEnded | CompactionEntry
    ) -> Iterator[CompactionUpdate]:
        match what, self._compaction_id:
            case CompactionStarted(), _:
                self._last_id += 1
                self._compaction_id = f"compaction.{self._last_id}"
                yield CompactionUpdate(self._compaction_id, "in_progress")
                return
            case CompactionEntry(id=id_, summary=summary), began:
                yield CompactionUpdate(began or f"compaction.of.{id_}", "completed", summary)
            case CompactionEnded(error=error), began if began:
                yield CompactionUpdate(began, "failed" if error else "cancelled", error=error or "")
            case _:
                pass
        self._compaction_id = ""

    def _started(self, event: ToolStarted) -> Iterator[Any]:
        if event.call_id not in self._ids:
            yield self._begin(event.call_id, event.tool, event.title)
        try:
            given: Any = loads(event.arguments)
        except ValueError:
            given = event.arguments
        path = None
        if isinstance(given, dict):
            path = given.get("path")
        yield helpers.update_tool_call(
            self._ids[event.call_id],
            title=_title(event.tool, event.title),
            status="in_progress",
            locations=[ToolCallLocation(path=self._path(path))]
            if isinstance(path, str) and path
            else None,
            raw_input=given,
        )

    def _output(self, call_id: str, text: str) -> Iterator[Any]:
        if call_id not in self._ids:
            return
        output = self._outputs[call_id] = (self._outputs.get(call_id, "") + text)[
            -MAX_OUTPUT_CHARS:
        ]
        self._sent[call_id] = self._sent.get(call_id, OUTPUT_STEP_CHARS) + len(text)
        if self._sent[call_id] >= OUTPUT_STEP_CHARS:
            self._sent[call_id] = 0
            yield helpers.update_tool_call(self._ids[call_id], content=[_text(output)])

    def _begin(self, call_id: str, tool: str, title: str) -> Any:
        self._last_id += 1
        self._ids[call_id] = f"{call_id}.{self._last_id}"
        return helpers.start_tool_call(
            self._ids[call_id], _title(tool, title), kind=tool_traits()[tool].kind, status="pending"
        )

    def _result(self, entry: ToolResultEntry) -> Iterator[Any]:
        if entry.call_id not in self._ids:
            yield self._begin(entry.call_id, entry.tool, entry.title)
        call = self._ids.pop(entry.call_id)
        self._outputs.pop(entry.call_id, None)
        self._sent.pop(entry.call_id, None)
        diffs = diffs_of(entry.metadata.diff or "", self._path(entry.metadata.path or ""))
        shown = entry.output[:MAX_OUTPUT_CHARS]
        path = entry.metadata.path
        yield helpers.update_tool_call(
            call,
            title=_title(entry.tool, entry.title) if entry.title else None,
            status="completed" if entry.status is ToolStatus.COMPLETED else "failed",
            content=[
                *(diffs or ([_text(shown)] if shown else [])),
                *(helpers.tool_content(self._part(image)) for image in entry.attachments),
            ],
            locations=[ToolCallLocation(path=self._path(path))] if path else None,
        )
        if entry.tool == TodoTool.name and entry.status is ToolStatus.COMPLETED:
            plan = [todo for todo in parse(entry.output) if todo.status in _PLAN]
            yield helpers.update_plan(
                helpers.plan_entry(todo.content, status=_PLAN[todo.status]) for todo in plan
            )

    # -- questions

    def question(self, request: PermissionRequest) -> ToolCallUpdate:
        """Return the tool call that a permission request to the editor shows."""
        if request.call_id not in self._ids:
            self._begin(request.call_id, request.tool, request.title)
        content: list[Any] = []
        for need in request.needs:
            if need.detail_kind == "diff":
                content += diffs_of(need.detail, self._path(need.pattern))
        for text, kind in details_of(request):
            if kind != "diff":
                content.append(_text(text[:MAX_OUTPUT_CHARS]))
        content.append(
            _text("\n".join(filter(None, [request.reason, *request.loop]))[:MAX_OUTPUT_CHARS])
        )
        kind = tool_traits()[request.tool].kind
        call = self._ids[request.call_id]
        title = request.question or _title(request.tool, request.title)
        return ToolCallUpdate(
            tool_call_id=call, title=title, kind=kind, status="pending", content=content
        )

    # -- loading a session

    def replay(self, entry: Entry) -> Iterator[Any]:
        """Yield the updates that show the editor a stored entry while a session is loaded."""
        match entry:
            case UserEntry(synthetic=None) if (line := command_line(entry.parts)) is not None:
                yield helpers.update_user_message_text(line)
            case UserEntry(synthetic=None):
                for part in entry.parts:
                    yield helpers.update_user_message(self._part(part))
            case ShellEntry():
                yield helpers.update_user_message_text(
                    f"!{entry.command}\n{entry.output[:MAX_OUTPUT_CHARS]}"
                )
            case AssistantEntry():
                for said in entry.parts:
                    match said:
                        case TextPart() if said.text:
                            yield helpers.update_agent_message_text(said.text)
                        case ReasoningPart() if said.text:
                            yield helpers.update_agent_thought_text(said.text)
                        case ToolCallPart():
                            yield self._begin(said.call_id, said.tool, said.tool)
                        case _:
                            pass
            case ToolResultEntry() | CompactionEntry() | UserEntry():
                yield from self._appended(entry)
            case BranchSummaryEntry() | BookkeepingEntry():
                pass

    def _part(self, part: UserPart) -> Any:
        if isinstance(part, ImagePart) and (content := self._blob(part.blob)) is not None:
            data = base64.b64encode(content).decode("ascii")
            if part.is_document:
                uri = Path(part.path or "document.pdf").name
                blob = helpers.embedded_blob_resource(uri, data, mime_type=part.mime)
                return helpers.resource_block(blob)
            return helpers.image_block(data, part.mime)
        return helpers.text_block(
            part.text if isinstance(part, TextPart) else f"@{part.path or part.type}"
        )

    def _path(self, path: str) -> str:
        return str(self._cwd / path)


def usage_update(size: ContextSize, cost: float | None) -> UsageUpdate:
    dollars = None
    if cost:
        dollars = Cost(amount=cost, currency="USD")
    return UsageUpdate(
        session_update="usage_update", used=max(0, size.total), size=size.window, cost=dollars
    )


def diffs_of(diff: str, path: str) -> list[Any]:
    """Return a unified diff of the file ``path`` as the protocol's diffs: one for each hunk."""
    found: list[Any] = []
    old: list[str] = []
    new: list[str] = []
    inside = False
    ended: list[list[str]] = []
    for line in (*diff.splitlines(), "@@"):  # "@@" ends the last hunk
        if line.startswith("@@"):
            if old or new:
                found.append(
                    helpers.tool_diff_content(path, "".join(new), "".join(old) if old else None)
                )
            old = []
            new = []
            inside = True
        elif inside and line.startswith("\\"):  # the line before this one has no line end
            for side in ended:
                side[-1] = side[-1].removesuffix("\n")
        elif inside:
            mark = line[:1]
            text = f"{line[1:]}\n"
            ended = [side for side, other in ((old, "+"), (new, "-")) if mark != other]
            for side in ended:
                side.append(text)
    return found


def _thought(event: CompactionStarted | RetryScheduled | HookAwaited | Notice) -> str:
    match event:
        case HookAwaited():
            return event.sentence
        case RetryScheduled(seconds=seconds, reason=reason, loading=loading):
            if loading is not None:
                return reason
            return retry_text(reason, seconds)
        case Notice(message=message):
            return message
        case _:
            return "Summarising the history to make room."


def _text(text: str) -> Any:
    return helpers.tool_content(helpers.text_block(text))


def _title(tool: str, title: str) -> str:
    if title.startswith(tool):
        return title
    return f"{tool} {title}".strip()
