"""Makes the blocks that show an entry, for each kind of entry.

This module decides what is shown of an entry, and which actions its blocks offer. model.py and
feed.py pass facts about other entries in a `BuildContext`, and put the blocks into items. An item
contains the blocks of one entry.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial

from tui_agent.app import format as wording
from tui_agent.app.commands import key_of
from tui_agent.app.format import dotted
from tui_agent.app.status_marks import style_of
from tui_agent.context.context_status import Standing
from tui_agent.context.rendering import line_count
from tui_agent.context.verdict import Verdict, verdict_on
from tui_agent.lazy import frozen
from tui_agent.session.entries import (
    AssistantEntry,
    BranchSummaryEntry,
    CheckEntry,
    CheckpointEntry,
    CompactionEntry,
    ContextEditEntry,
    EffortChangeEntry,
    Entry,
    FilePart,
    ImagePart,
    ModeChangeEntry,
    ModelChangeEntry,
    PruneEntry,
    RaceEntry,
    ReasoningPart,
    ShellEntry,
    SubagentEntry,
    SystemEntry,
    TextPart,
    ToolCallPart,
    ToolResultEntry,
    UserEntry,
    command_line,
    typed_text,
)
from tui_agent.ui.widgets.transcript import sanitize
from tui_agent.ui.widgets.transcript.blocks import (
    ActionName,
    AnswerBlock,
    Block,
    EndingBlock,
    MarkerBlock,
    ReasoningBlock,
    ShiftedLine,
    UserBlock,
    indented_lines,
)
from tui_agent.ui.widgets.transcript.bodies import INDENT, TextBody, body_lines
from tui_agent.ui.widgets.transcript.cards import CardBlock, ShellBlock
from tui_agent.ui.widgets.transcript.document import MarkdownDocument
from tui_agent.ui.widgets.transcript.lines import Line, crop_spans
from tui_agent.ui.widgets.transcript.races import race_block
from tui_agent.ui.widgets.transcript.source import SizeOf, stored_size

MAX_EDITED_CHARS = 120
"""Maximum number of characters of an edited entry's text in the line that reports the edit."""

_EDITS = {
    "drop": "hidden",
    "mask": "cleared",
    "pin": "pinned",
    "restore": "brought back",
    "edit": "edited",
}
_TRIGGERS = {
    "manual": "by hand",
    "threshold": "at the threshold",
    "overflow": "after an overflow",
    "model_switch": "for another model",
    "idle": "before the cache expired",
    "notes": "from the model's notes",
}
GO_ON = "continue"
"""Value of ``synthetic`` in the program's own messages that ask the model to continue."""
_RULE = "compaction:"
"""Prefix of a block's key if the block shows a compaction as a horizontal rule."""
_ENDINGS = {
    Verdict.CUT: "The answer was cut off at the model's output limit",
    Verdict.UNMARKED: "The server ended the answer without marking it as complete",
    Verdict.REFUSED: "The provider's content filter stopped the answer",
    Verdict.SILENT: "The model gave no answer",
    Verdict.THINKING: "The model only thought and gave no answer",
}
"""The text shown after an incomplete answer, for each reason why it is incomplete."""
_CONTINUED = frozenset({Verdict.CUT, Verdict.UNMARKED})
"""Verdicts on answers that the model can continue."""


@frozen
class BuildContext:
    """Facts about the run and about other entries that affect the blocks of an entry."""

    results: Mapping[str, ToolResultEntry] = field(default_factory=dict)
    """Tool results that belong to the calls of the answer, by call id."""
    count_summarised: Callable[[CompactionEntry], int] = lambda _entry: 0
    """Returns how many messages, answers and tool results a compaction has summarised."""
    live: bool = False
    """Whether a tool call without a result may still receive one. If not, it was interrupted."""
    newest: bool = True
    """Whether the entry is the newest, that is, no message or answer follows it."""
    shows_key_hints: bool = False
    """Whether the newest answer shows hints for the keys that act on it."""
    key_of: Callable[[str], str] = key_of
    """Returns the text to display for the key of a command."""
    running: bool = False
    """Whether the agent's run is still in progress, so that it may retry a failed request."""
    was_retried: bool = False
    """Whether the request of the failed answer was retried successfully."""
    size_of: SizeOf = stored_size
    """Returns the size of a tool result, in tokens of the current model."""
    load: Callable[[Sequence[int]], Sequence[Entry]] = lambda _ids: ()
    """Returns the entries with the given ids. It is used for lines that name other entries."""


def blocks_of(entry: Entry, context: BuildContext) -> list[Block]:  # noqa: C901, PLR0911, PLR0912 - an arm per kind
    """Return the blocks that show an entry.

    Returns an empty list if entries of this kind are not shown.
    """
    match entry:
        case UserEntry():
            return [_user(entry)]
        case AssistantEntry():
            return list(_assistant(entry, context))
        case ToolResultEntry():
            call = ToolCallPart(
                call_id=entry.call_id or f"entry-{entry.id}", tool=entry.tool, arguments=""
            )
            return [CardBlock(call, entry, context.size_of)]
        case ShellEntry():
            return [ShellBlock(entry)]
        case CompactionEntry():
            return [_compaction(entry, context)]
        case BranchSummaryEntry():
            text = f"Summary of the branch left at #{entry.from_id}"
            if entry.style == "hook":
                text += " · by a hook"
            return [_summary("branch_summary", text, entry, ("jump",))]
        case RaceEntry():
            return [race_block(entry)]
        case CheckEntry():
            return [_check(entry)]
        case SubagentEntry():
            return []
        case PruneEntry():
            return [_prune(entry, context)]
        case ContextEditEntry():
            return [_context_edit(entry)]
        case ModelChangeEntry():
            return [MarkerBlock("model_change", f"Model: {entry.label}", rule="marker")]
        case EffortChangeEntry():
            return [MarkerBlock("effort_change", f"Effort: {entry.level}", rule="marker")]
        case ModeChangeEntry():
            return [MarkerBlock("mode_change", f"Mode: {entry.mode}", rule="marker")]
        case SystemEntry() | CheckpointEntry():
            return []


def _user(entry: UserEntry) -> Block:
    if entry.diagnostics:
        texts = entry.texts("attached")
        found = wording.plural(sum(entry.diagnostics.values()), "new problem")
        text = f"{found} in {', '.join(entry.diagnostics)}"
        problems = []
        for attached in texts:
            problems.extend(attached.splitlines()[1:])
        listing = "\n".join(problems)
        return MarkerBlock(
            "diagnostics", text, style="status-warning", body=_text_body(listing), copied=listing
        )
    if entry.synthetic:
        return MarkerBlock(
            "synthetic",
            f"Note to the model · {entry.occasion}",
            body=_text_body(entry.text),
            copied=entry.text,
        )
    attachments: list[str] = []
    for part in entry.parts:
        match part:
            case FilePart(problem=problem) if problem:
                attachments.append(f"@{part.path} · not sent: {problem}")
            case FilePart():
                attachments.append(
                    f"@{part.path} · {wording.plural(line_count(part.text), 'line')}"
                )
            case ImagePart():
                size = ""
                if part.pages:
                    size = f" · {wording.plural(part.pages, 'page')}"
                elif part.width:
                    size = f" · {part.width}×{part.height}"
                attachments.append(f"[{part.kind}{size}] {part.path or ''}".rstrip())
            case _:
                pass
    note = "sent while working" if entry.mid_run else ""
    sent = ""
    if command_line(entry.parts) is not None:
        sent = entry.text
    block = UserBlock(typed_text(entry.parts), attachments, note, sent)
    block.starts_turn = not entry.mid_run
    return block


def mark_problems(blocks: Sequence[Block], problems: Mapping[str, int]) -> None:
    """Show the number of new problems in each file on the last card that edited the file.

    ``problems`` maps paths to numbers of problems. A card is the block of a tool call.
    """
    cards = {}
    for block in blocks:
        if isinstance(block, CardBlock) and block.traits.writes:
            cards[block.metadata.path] = block
    for path, count in problems.items():
        if path in cards:
            cards[path].problems = count
            cards[path].invalidate()


def _assistant(entry: AssistantEntry, context: BuildContext) -> Iterator[Block]:
    for index, part in enumerate(entry.parts):
        match part:
            case ReasoningPart() if part.text.strip():
                document = MarkdownDocument(part.text, base="reasoning", finished=True)
                yield ReasoningBlock(f"reasoning:{index}", document)
            case TextPart() if part.text.strip():
                answer = AnswerBlock(f"text:{index}", MarkdownDocument(part.text, finished=True))
                is_last = context.newest and index == len(entry.parts) - 1
                if is_last and context.shows_key_hints:
                    answer.set_key_hints(_keys_for(part.text, context.key_of))
                yield answer
            case ToolCallPart():
                card = CardBlock(part, context.results.get(part.call_id), context.size_of)
                if part.call_id not in context.results and not context.live:
                    card.stop()
                yield card
            case _:
                pass
    yield from _endings(entry, context)


def _keys_for(text: str, key_of: Callable[[str], str]) -> str:
    """Return the key hints of an answer.

    The hint to copy code is included only if ``text`` contains a code fence.
    """
    hints = [f"{key_of('copy')} copy", f"{key_of('undo')} undo"]
    if "```" in text and (key := key_of("copy_code")):
        hints.append(f"{key} code")
    return " · ".join(hints)


def _endings(entry: AssistantEntry, context: BuildContext) -> Iterator[Block]:
    """Yield a block that says why an answer failed or ended early.

    Yields nothing for a complete answer. After an error, the user can retry from the block if no
    message or answer follows.
    """
    if entry.finish == "repetition":
        text = "Stopped, because the answer repeats itself"
        yield EndingBlock(text, icon="■", style="status-warning")
    elif entry.interrupted or entry.finish == "interrupted":
        waited = ""
        if entry.error:
            waited = f" while waiting to try again: {entry.error}"
        retry = ""
        if entry.error and context.newest:
            retry = context.key_of("retry")
        yield EndingBlock(f"Interrupted{waited}", icon="■", style="status-warning", retry=retry)
    elif entry.error or entry.finish == "error":
        text = entry.error or "The request failed"
        ending = EndingBlock(
            text,
            icon="✗",
            style="status-error",
            retry=context.key_of("retry") if context.newest else "",
            may_be_retried=context.running and not context.was_retried,
        )
        if context.was_retried:
            ending.withdraw_retry(was_retried=True)
        yield ending
    elif words := _ENDINGS.get(verdict := verdict_on(entry)):
        if verdict in _CONTINUED and context.newest:
            words += " · send “continue” to go on"
        yield EndingBlock(words, icon="■", style="status-warning")


def _compaction(entry: CompactionEntry, context: BuildContext) -> Block:
    """Return the horizontal rule of a compaction, which can unfold the compaction's summary.

    The rule is shown above the entries that the compaction kept.
    """
    count = context.count_summarised(entry)
    missing = len(entry.details.untold)
    words = [
        f"{wording.plural(count, 'entry')} summarised" if count else "summarised",
        _sizes(entry),
        "prepared" if entry.prepared else "",
        f"{wording.plural(missing, 'name')} missing" if missing else "",
        "by the provider" if entry.item else "",
        "by a hook" if entry.style == "hook" else "",
        wording.money(entry.cost) if entry.cost else "",
    ]
    return _summary(f"{_RULE}{entry.id}", dotted(*words), entry, ("edit", "undo"))


def _sizes(entry: CompactionEntry) -> str:
    """Return a text with the size of the history, in tokens, before and after a compaction."""
    return f"{wording.tokens(entry.tokens_before)} → {wording.tokens(entry.tokens_after)}"


def is_rule(block: Block) -> bool:
    """Return True if the block is the horizontal rule of a compaction."""
    return block.key.startswith(_RULE)


def belongs_to_compaction(entry: Entry, before: str, after: str) -> bool:
    """Return True if an entry isn't shown because a compaction's horizontal rule represents it.

    This is the case for a prune that the compaction made, and for the program's message after the
    compaction that asks the model to continue. ``before`` and ``after`` are the kinds of the
    neighboring entries.
    """
    from tui_agent.context.pruning import Occasion

    if isinstance(entry, PruneEntry):
        return after == "compaction" and entry.reason == Occasion.COMPACTION
    return isinstance(entry, UserEntry) and entry.synthetic == GO_ON and before == "compaction"


def compaction_note(entry: CompactionEntry) -> MarkerBlock:
    """Return the line shown for a compaction entry whose horizontal rule is further up.

    The user can jump to the rule or undo the compaction from this line.
    """
    text = dotted("compacted", _sizes(entry))
    block = MarkerBlock("compacted", text, icon="↑", actions=("jump", "undo"))
    block.entry = (entry.id, entry.kind)
    return block


def _summary(
    key: str, text: str, entry: CompactionEntry | BranchSummaryEntry, actions: Sequence[ActionName]
) -> MarkerBlock:
    body = partial(_summary_lines, entry, MarkdownDocument(entry.summary, finished=True))
    rule = style_of(Standing.SUMMARISED)
    block = MarkerBlock(key, text, rule=rule, actions=actions, body=body, copied=entry.summary)
    block.entry = (entry.id, entry.kind)
    return block


def _summary_lines(
    entry: CompactionEntry | BranchSummaryEntry, document: MarkdownDocument, width: int
) -> Iterator[Line]:
    yield from indented_lines(document, width)
    details = entry.details
    kept = [
        (len(details.user_messages), "user message"),
        (len(details.rules), "rule"),
        (len(details.anchors), "anchor"),
    ]
    own = f"only {entry.model} can read it; other models get the original entries"
    rows = [
        ("Compacted", _TRIGGERS[entry.trigger] if isinstance(entry, CompactionEntry) else ""),
        ("Provider's version", own if isinstance(entry, CompactionEntry) and entry.item else ""),
        ("Names still in use, but not in the summary", ", ".join(details.untold)),
        ("Files read", ", ".join(details.read_files)),
        ("Files changed", ", ".join(details.modified_files)),
        ("Also kept", ", ".join(wording.plural(count, noun) for count, noun in kept if count)),
    ]
    lines = [f"{name}: {value}" for name, value in rows if value]
    if lines:
        yield Line()
        yield from body_lines(TextBody(sanitize.text("\n".join(lines)), "muted"), width)


def _context_edit(entry: ContextEditEntry) -> Block:
    if entry.action == "leave_out":
        text = f"{entry.note[:1].upper()}{entry.note[1:]}"
        return MarkerBlock(
            "context_edit", sanitize.line(text), rule="marker", actions=("restore", "jump")
        )
    text = f"#{entry.target} {_EDITS[entry.action]}"
    if entry.text:
        text += f": {wording.one_line(entry.text, MAX_EDITED_CHARS)}"
    return MarkerBlock("context_edit", sanitize.line(text), rule="marker", actions=("undo", "jump"))


def _prune(entry: PruneEntry, context: BuildContext) -> Block:
    freed = wording.tokens(entry.tokens_freed)
    left = "The model gets a placeholder for each entry."
    if entry.removes_images:
        left = "The model still gets the text beside the images."
    elif entry.keep_chars:
        left = f"The model gets {entry.keep_chars:,} characters of each long text."
    left = f"{left} The originals are still shown here."
    notes = dict(zip(entry.targets, entry.notes, strict=False))

    def body(width: int) -> Iterator[Line]:
        yield from _text_body(left)(width)
        for target in context.load(entry.targets):
            size = f"  {wording.token_count(context.size_of(target))} · "
            spans = [(f"#{target.id}  {_name_of(target)}", "text"), (size, "muted")]
            offer = ("bring back", f"action act:restore:{target.id}")
            yield Line(
                [
                    *crop_spans(spans, max(width - len(INDENT) - len(offer[0]), 1)),
                    offer,
                ],
                prefix=((INDENT, "text"),),
            )
            if note := notes.get(target.id):
                yield from map(ShiftedLine, _text_body(note)(max(width - len(INDENT), 1)))

    text = f"{entry.effect.capitalize()} · {freed} tokens freed · {entry.reason}"
    rule = style_of(Standing.CLEARED)
    copied = "\n".join(
        [left, *(f"#{target}  {notes.get(target, '')}".rstrip() for target in entry.targets)]
    )
    return MarkerBlock("prune", text, rule=rule, actions=("restore",), body=body, copied=copied)


def _name_of(entry: Entry) -> str:
    """Return a short name for an entry removed from the context, such as ``read orders.csv``."""
    if not isinstance(entry, ToolResultEntry):
        return entry.kind.replace("_", " ")
    return sanitize.line(f"{entry.tool} {entry.title or entry.metadata.path or ''}".rstrip())


def _check(entry: CheckEntry) -> Block:
    if entry.passed:
        said = f"Check passed: {entry.command}"
    else:
        said = f"Check failed ({entry.result}): {entry.command}"
    style = "marker" if entry.passed else "status-warning"
    body = None
    if entry.output.strip():
        body = _text_body(entry.output)
    return MarkerBlock(
        "check",
        f"{said} · {entry.seconds:.1f} s",
        icon="" if body else "·",
        style=style,
        body=body,
        copied=entry.output,
    )


def _text_body(text: str) -> Callable[[int], Iterable[Line]]:
    return partial(body_lines, TextBody(sanitize.text(text), "muted"))
