"""Renders the texts, images and placeholders of an entry as they are sent to a model.

``projection`` builds messages from them. Every text that is sent passes through ``valid``, because
lone surrogates can't be encoded and some servers refuse NUL.
"""

import json
from collections.abc import Iterable
from typing import Any, assert_never

from tui_agent.context.anchors import cut_line
from tui_agent.context.arguments import LONG_ARGUMENT_CHARS, parse_object
from tui_agent.context.files import path_rows
from tui_agent.context.request import ContentText, ImageRef, Message
from tui_agent.context.templates import Templates, fill
from tui_agent.context.truncation import cut_middle
from tui_agent.context.view import ContextView, EntryState
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.safe_text import valid, valid_texts
from tui_agent.session.entries import (
    AssistantEntry,
    BookkeepingEntry,
    BranchSummaryEntry,
    CompactionEntry,
    Entry,
    FilePart,
    ImagePart,
    PinnedText,
    ShellEntry,
    SummaryDetails,
    SummaryEntry,
    TextPart,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.whole_numbers import plural

Content = tuple[ContentText | ImageRef, ...]
"""The content of a message: text, images, or both."""

_CHARS_PER_TOKEN = 4
"""Characters per token assumed for placeholders."""

GIST_CHARS = 120
"""Maximum number of characters of the title or text that a placeholder contains."""

INVALID_ARGUMENTS_KEY = "invalid_arguments"
"""Key of the JSON object in which invalid tool arguments are sent."""

INVALID_ARGUMENTS_CHARS = 2_000
"""Maximum number of characters that are sent of invalid tool arguments."""

_SURROGATE_ESCAPE = LazyPattern(r"\\u(?:[dD][89a-fA-F]|0000)")
_STATUS = {
    ToolStatus.COMPLETED: "ok",
    ToolStatus.ERROR: "error",
    ToolStatus.DENIED: "denied",
    ToolStatus.INTERRUPTED: "interrupted",
}


@frozen
class Shown:
    """How to send an entry to a model.

    ``kept_chars`` is the number of characters that a prune left of each text; 0 if it left none, or
    if there was no prune. ``vision`` and ``documents`` say whether the model accepts images and
    PDFs. ``note`` is added to the placeholder. ``lost`` is the id of an entry that this one refers
    to but that is no longer sent; None if there is no such entry. ``left_out`` are the blobs of
    images that a provider refused.
    """

    state: EntryState = EntryState.LIVE
    kept_chars: int = 0
    vision: bool = True
    documents: bool = False
    note: str = ""
    lost: int | None = None
    left_out: frozenset[str] = frozenset()

    @property
    def whole(self) -> bool:
        """Whether the content of the entry is sent unchanged, that is, neither cut nor replaced."""
        return self.state in (EntryState.LIVE, EntryState.PINNED)

    def shows(self, image: ImagePart) -> bool:
        """Return True if the image itself is sent, and False if a line of text is sent instead."""
        is_taken = self.documents if image.is_document else self.vision
        return self.whole and is_taken and image.blob not in self.left_out

    @property
    def cut(self) -> bool:
        """Whether a prune cut the content, so that only its beginning and end are sent."""
        return self.state is EntryState.PRUNED and self.kept_chars > 0


def user_content(
    entry: UserEntry | ShellEntry | BranchSummaryEntry, shown: Shown, templates: Templates
) -> Content:
    """Return an entry's content as it is sent in a user message; () if it has none."""
    if shown.state is EntryState.MASKED:
        return (ContentText(masked_text(entry, templates)),)
    match entry:
        case UserEntry():
            return _typed_content(entry, shown, templates)
        case ShellEntry():
            return (ContentText(_shell_text(entry, shown, templates)),)
        case BranchSummaryEntry():
            return (ContentText(_branch_text(entry, templates)),)


def _typed_content(entry: UserEntry, shown: Shown, templates: Templates) -> Content:
    pieces: list[str | ImageRef] = []
    for part in entry.parts:
        match part:
            case ImagePart() if shown.shows(part):
                pieces.append(ImageRef(part.blob, part.mime, _document_text(part)))
            case ImagePart():
                pieces.append(image_text(part, entry.id, shown, templates))
            case FilePart():
                text = _cut(part.text, shown, entry)
                pieces.append(valid(fill(templates.attached_file, path=part.path, text=text)))
            case TextPart():
                pieces.append(valid(_cut(part.text, shown, entry)))
    content: list[ContentText | ImageRef] = []
    said: list[str] = []
    for piece in (*pieces, None):
        if isinstance(piece, str):
            said.append(piece)
            continue
        if text := "\n\n".join(text for text in said if text.strip()):
            content.append(ContentText(text))
        said.clear()
        if piece is not None:
            content.append(piece)
    if not entry.mid_run or not content:
        return tuple(content)
    text = "\n\n".join(part.text for part in content if isinstance(part, ContentText))
    images = [part for part in content if isinstance(part, ImageRef)]
    return (ContentText(fill(templates.reminder, message=text)), *images)


def _shell_text(entry: ShellEntry, shown: Shown, templates: Templates) -> str:
    if shown.state is EntryState.PRUNED and not shown.kept_chars:
        output = _pruned(entry, shown, templates)
    else:
        output = _cut(entry.output, shown, entry)
    if not output.strip():
        output = templates.empty_output
    status = "still running"
    if entry.exit_code is not None:
        status = f"exit code {entry.exit_code}"
    return valid(fill(templates.user_shell, command=entry.command, output=output, status=status))


def result_text(entry: ToolResultEntry, shown: Shown, templates: Templates) -> str:
    """Return a tool result's text or its placeholder, without images. It is never empty."""
    if shown.state is EntryState.MASKED:
        return masked_text(entry, templates)
    if shown.state is EntryState.PRUNED and not shown.kept_chars:
        return _pruned(entry, shown, templates)
    output = valid(_cut(entry.output, shown, entry))
    if shown.lost is not None:
        # The first line refers to a read that is no longer sent; the diff after it is still useful.
        _seen, end, difference = output.partition("\n")
        output = f"{fill(templates.reference_lost, id=str(shown.lost))}{end}{difference}"
    if entry.full_output is not None:
        # Add the entry's id, by which the whole output can be recalled. The tool did not know the
        # id yet when it ran.
        output = f"{output}\n[#{entry.id}]"
    return output if output.strip() else templates.empty_output


def assistant_text(entry: AssistantEntry, shown: Shown, templates: Templates) -> str:
    """Return an answer's text or its placeholder, "" if the answer has no text."""
    text = entry.text
    if not text.strip():
        return ""
    if shown.state is EntryState.MASKED:
        return masked_text(entry, templates)
    return valid(_cut(text, shown, entry))


def reasoning_blobs(entry: AssistantEntry, model: str) -> tuple[str, ...]:
    """Return the provider's reasoning blobs of an answer, which are sent back to ``model``.

    The result is empty if any part has no blob or is from another model, or if the answer failed or
    was interrupted, because providers refuse incomplete or foreign reasoning
    (https://platform.claude.com/docs, "Extended thinking").
    """
    if entry.error is not None or entry.interrupted:
        return ()
    blobs: list[str] = []
    for part in entry.reasoning:
        if not part.blob or (part.model or entry.model) != model:
            return ()
        blobs.append(part.blob)
    return tuple(blobs)


def arguments_json(arguments: str, shown: Shown, entry_id: int) -> str:
    """Return a call's arguments as the JSON text of an object.

    Valid arguments stay byte for byte as the model wrote them, unless they contain characters that
    can't be sent, which are replaced, or the entry is cut or cleared, so that long strings are cut.
    In both cases, they are written as JSON again. The beginning of invalid arguments becomes the
    value of `INVALID_ARGUMENTS_KEY`, so that the model sees its mistake; blank arguments become
    ``{}``.
    """
    values = parse_object(arguments)
    if values is None:
        most = INVALID_ARGUMENTS_CHARS
        if shown.cut:
            most = min(shown.kept_chars, INVALID_ARGUMENTS_CHARS)
        kept = {}
        if arguments.strip():
            kept = {INVALID_ARGUMENTS_KEY: valid(arguments[:most])}
        return json.dumps(kept, ensure_ascii=False)
    if not shown.whole:
        most = LONG_ARGUMENT_CHARS
        if shown.cut:
            most = shown.kept_chars
        return json.dumps(_shortened(values, most, entry_id), ensure_ascii=False)
    if not arguments.isascii() or _SURROGATE_ESCAPE.search(arguments):
        cleaned = valid_texts(values)
        if cleaned == values:
            return arguments
        return json.dumps(cleaned, ensure_ascii=False)
    return arguments


def summary_text(
    entry: CompactionEntry, pinned: Iterable[PinnedText], shown: Shown, templates: Templates
) -> str:
    """Return the text of the message that replaces summarised history.

    It consists of the summary and the blocks that the compaction copied, or is a placeholder if the
    user cleared the summary.
    """
    if shown.state is EntryState.MASKED:
        return masked_text(entry, templates)
    blocks = carried_blocks(entry.details, pinned)
    return valid(fill(templates.compaction_summary, summary=entry.summary.strip(), blocks=blocks))


def _branch_text(entry: BranchSummaryEntry, templates: Templates) -> str:
    blocks = carried_blocks(entry.details, entry.details.pinned)
    text = fill(
        templates.branch_summary_message,
        summary=entry.summary.strip(),
        blocks=blocks,
        from_id=str(entry.from_id),
    )
    return valid(text)


def carried_blocks(details: SummaryDetails, pinned: Iterable[PinnedText] = ()) -> str:
    """Return the tagged blocks that follow a summary; "" if all are empty.

    The blocks contain files, anchors, messages, rules, pinned entries and state. Empty blocks are
    left out.
    """
    shown = details.shown_files
    messages = [f"<message>\n{text}\n</message>" for text in details.user_messages]
    pins = [f'<entry id="#{pin.id}">\n{pin.text}\n</entry>' for pin in pinned]
    blocks = [
        _block("read-files", path_rows(details.read_files, shown, details.file_ids)),
        _block("modified-files", path_rows(details.modified_files, shown, details.file_ids)),
        _block("anchors", details.anchors),
        _block("user-messages", messages),
        _block("rules-of-the-user", details.rules),
        _block("pinned", pins),
    ]
    for item in details.state:
        rows = [item.name, item.text] if item.name else [item.text]
        blocks.append(_block(item.tool, rows))
    return "\n\n".join(filter(None, blocks))


def carried_pins(
    view: ContextView, dropped: Iterable[Entry], templates: Templates
) -> tuple[PinnedText, ...]:
    """Return the pinned entries that a compaction copies, by ascending id.

    They are the entries that the previous compaction copied, and the pinned entries in ``dropped``.
    """
    pins = {pin.id: pin for pin in view.pinned}
    for entry in dropped:
        if view.state(entry.id) is EntryState.PINNED:
            pins[entry.id] = pinned_text(entry, templates)
    return tuple(pins[entry_id] for entry_id in sorted(pins))


def pinned_text(entry: Entry, templates: Templates) -> PinnedText:
    """Return a pinned entry's id and text for a compaction; a line names each image."""
    shown = Shown(vision=False)
    match entry:
        case UserEntry() | ShellEntry():
            text = Message("user", user_content(entry, shown, templates)).text
        case ToolResultEntry():
            labels = [image_label(image) for image in entry.attachments]
            text = "\n".join([f"{entry.tool} {entry.title}".strip(), entry.output, *labels])
        case AssistantEntry():
            calls = [f"{call.tool} {call.arguments}" for call in entry.tool_calls]
            text = "\n".join(filter(None, [entry.text, *calls]))
        case SummaryEntry():
            text = entry.summary
        case BookkeepingEntry():
            text = entry.preview
        case _:
            assert_never(entry)
    return PinnedText(id=entry.id, text=valid(text))


def image_label(image: ImagePart) -> str:
    """Return the line of text that names an image, such as ``[image: shots/a.png, 800x600]``."""
    return valid(f"[{image.kind}: {_image_name(image)}]")


def image_text(image: ImagePart, entry_id: int, shown: Shown, templates: Templates) -> str:
    """Return the line that is sent instead of an image.

    For a cleared image, the line says how to get it back.
    """
    if image.blob in shown.left_out:
        return valid(f"[{image.kind}: {_image_name(image)}, removed: the provider can't read it]")
    if shown.whole or not shown.vision:
        return _document_text(image) or image_label(image)
    return valid(fill(templates.placeholder_image, name=_image_name(image), id=str(entry_id)))


def _document_text(image: ImagePart) -> str:
    """Return the line that is sent instead of a PDF; "" for a picture, which has no such line."""
    if image.is_document:
        return valid(f"[document: {_image_name(image)}; use read for its text]")
    return ""


def _image_name(image: ImagePart) -> str:
    size = ""
    if image.pages:
        size = f", {image.pages} pages"
    if image.pages == 1:
        size = ", 1 page"
    if image.width and image.height:
        size = f", {image.width}x{image.height}"
    return f"{image.path or image.mime}{size}"


def gist(entry: Entry) -> str:
    """Describe an entry in one line by its source, size, and status or exit code."""
    lines = ""
    tokens = ""
    ending = ""
    match entry:
        case ToolResultEntry():
            ending = _STATUS[entry.status]
            if code := entry.metadata.exit_code:
                ending = f"exit {code}"
            subject = cut_line(entry.title or entry.metadata.path or "", GIST_CHARS)
            source = f"{entry.tool} {subject}".strip()
        case ShellEntry():
            if entry.exit_code is not None:
                ending = f"exit {entry.exit_code}"
            source = f"$ {cut_line(entry.command, GIST_CHARS)}"
        case UserEntry():
            source = f"user message “{cut_line(entry.text, GIST_CHARS)}”"
        case AssistantEntry():
            source = f"answer “{cut_line(entry.text, GIST_CHARS)}”"
        case SummaryEntry():
            source = "summary"
        case BookkeepingEntry():
            return entry.kind.replace("_", " ")
        case _:
            assert_never(entry)
    if isinstance(entry, ToolResultEntry | ShellEntry):
        count = line_count(entry.output)
        lines = plural(count, "line")
    if entry.tokens:
        tokens = f"{short_count(entry.tokens)} tokens"
    return ", ".join(filter(None, (source, lines, tokens, ending)))


def short_count(tokens: int) -> str:
    """Return a number of tokens in short form: 840, 3.2k, 41k, 1.2M."""
    if tokens < 1_000:
        return str(tokens)
    if tokens < 9_950:
        return f"{tokens / 1_000:.1f}k"
    if tokens < 999_500:
        return f"{tokens / 1_000:.0f}k"
    return f"{tokens / 1_000_000:.1f}M"


def masked_text(entry: Entry, templates: Templates) -> str:
    """Return the text that is sent instead of an entry that the user cleared.

    If the entry is short, the placeholder is short, too.
    """
    text = valid(fill(templates.placeholder_masked, gist=gist(entry), id=str(entry.id)))
    if not entry.tokens or entry.tokens * _CHARS_PER_TOKEN >= len(text):
        return text
    short = f"[Hidden: #{entry.id}]"
    if entry.tokens * _CHARS_PER_TOKEN >= len(short):
        return short
    return f"[#{entry.id}]"


def _pruned(entry: Entry, shown: Shown, templates: Templates) -> str:
    placeholder = fill(templates.placeholder_pruned, gist=gist(entry), id=str(entry.id))
    if shown.note:
        placeholder = f"{placeholder}\n{shown.note}"
    return valid(placeholder)


def _cut(text: str, shown: Shown, entry: Entry) -> str:
    if shown.cut:
        return cut_middle(text, shown.kept_chars, f"#{entry.id}")
    return text


def _block(name: str, rows: Iterable[str]) -> str:
    body = "\n".join(rows)
    if body:
        return f"<{name}>\n{body}\n</{name}>"
    return ""


def _shortened(value: Any, most: int, entry_id: int) -> Any:
    if isinstance(value, str):
        return valid(cut_middle(value, most, f"#{entry_id}"))
    if isinstance(value, list):
        return [_shortened(item, most, entry_id) for item in value]
    if isinstance(value, dict):
        return {valid(key): _shortened(item, most, entry_id) for key, item in value.items()}
    return value


def line_count(text: str) -> int:
    """Return the number of lines in a text. A newline at its end doesn't begin another line."""
    if text:
        return text.count("\n") + (not text.endswith("\n"))
    return 0
