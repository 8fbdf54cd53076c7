"""The preview on the session tree screen, which shows the entries of a row as a conversation.

Above them, it shows the entries' ids, time, tokens and cost, and the files that they changed.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from textual import getters
from textual.app import ComposeResult
from textual.containers import Vertical

from tui_agent.app import format as wording
from tui_agent.context.context_status_cache import Standings
from tui_agent.session.entries import (
    AssistantEntry,
    Entry,
    SummaryEntry,
    SystemEntry,
    TextPart,
    ToolResultEntry,
    UserEntry,
    kinds,
)
from tui_agent.session.records import EntryHeader, Outlines
from tui_agent.ui.panel_content import changed_files
from tui_agent.ui.widgets.plain_text import PlainText
from tui_agent.ui.widgets.transcript import sanitize
from tui_agent.ui.widgets.transcript.blocks import Fold
from tui_agent.ui.widgets.transcript.source import EntrySource
from tui_agent.ui.widgets.transcript.transcript import Transcript
from tui_agent.ui.widgets.tree.outline import LineKind, TreeLine
from tui_agent.ui.widgets.tree.segments import TreeIndex
from tui_agent.ui.widgets.tree.wording import short_time

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent
    from tui_agent.session.session import Session

MAX_ENTRIES = 40
"""Maximum number of entries shown for a group of calls, or searched for changed files."""

_OPENED = 2
"""If a row has at most this many entries, the entries' blocks are unfolded.

A tool call and its result are two entries.
"""
_FILES = 6
_AFTER_CALLS = kinds(lambda kind: kind.follows_calls)
"""Kinds of entries that may come between a tool call and the checkpoint of the files it changed."""


def _shown_entries(session: "Session", ids: Sequence[int]) -> Sequence[Entry]:
    """Return the entries with the given ids in a form that a transcript can show.

    System prompts are turned into user entries.
    """
    return [_as_shown(entry) for entry in session.entries(ids)]


def _as_shown(entry: Entry) -> Entry:
    if not isinstance(entry, SystemEntry):
        return entry
    text = TextPart(text="\n\n".join(entry.blocks))
    return UserEntry(id=entry.id, parts=(text,), synthetic="system prompt")


class EntryPreview(Vertical):
    """Shows facts about a line of the tree and, below them, its entries as a conversation."""

    facts = getters.query_one("#preview-facts", PlainText)
    transcript = getters.query_one(Transcript)

    def __init__(self, agent: "Agent", clock: Callable[[], float]) -> None:
        super().__init__()
        self._agent = agent
        self._session = agent.session
        self._clock = clock

    def compose(self) -> ComposeResult:
        yield PlainText(id="preview-facts")
        yield Transcript()

    def show(
        self, index: TreeIndex, line: TreeLine | None, standings: Standings | None = None
    ) -> None:
        """Show the entries of a line of the session tree.

        If the line is on the path to the leaf, the preview also shows whether the model receives
        the entries. If ``line`` is None, the preview is empty.
        """
        headers = headers_of(index, line)
        self.facts.update(self._facts(headers, line))
        self.transcript.model.set_counter(self._agent.counter)
        source = EntrySource(Outlines.of(headers), partial(_shown_entries, self._session))
        self.transcript.set_entries(source, from_start=True)
        self.transcript.set_standings(standings if line is not None and line.active else None)
        model = self.transcript.model
        unfolds = line is not None and len(headers) <= _OPENED and self.transcript.page_height
        for place in range(len(model) if unfolds else 0):
            for block in model.item(place).blocks:
                if (
                    block.kind in {"card", "marker"}
                    and block.foldable
                    and block.fold is Fold.CLOSED
                ):
                    block.cycle()
            model.remeasure(place)
        self.transcript.action_go_to("home")

    def _facts(self, headers: Sequence[EntryHeader], line: TreeLine | None) -> str:
        entries = list(self._session.entries([header.id for header in headers]))
        if line is None or not entries:
            return ""
        when = short_time(entries[-1].created_at, self._clock())
        if line.what is LineKind.GROUP and len(entries) > 2:
            results = [entry for entry in entries if isinstance(entry, ToolResultEntry)]
            total = sum(map(self._agent.counter.entry, entries))
            facts = [
                f"#{entries[0].id}–#{entries[-1].id}",
                wording.plural(len(results), "call"),
                when.strip(),
            ]
            text = " · ".join([*facts, wording.token_count(total)])
        else:
            entry = entries[0]
            size = self._agent.counter.entry(entry)
            cost = self._session.reader.costs().get(entry.id)
            text = _facts_of(entry, size=size, cost=cost, when=when)
        if line.is_head or line.what is LineKind.FOLD:
            segment = line.segment
            branch = [
                wording.plural(segment.count, "entry"),
                wording.token_count(segment.tokens),
            ]
            if segment.cost:
                branch.append(wording.money(segment.cost))
            text += f"\nbranch: {' · '.join(branch)}"
        changed = list(changed_files([*entries, *self._following(line)]).values())
        files = [
            f"{sanitize.line(file.path)} {wording.lines_text(file.additions, file.deletions)}".rstrip()
            for file in changed[:_FILES]
        ]
        if len(changed) > _FILES:
            files.append(f"{len(changed) - _FILES} more")
        if files:
            return f"{text}\n{' · '.join(files)}"
        return text

    def _following(self, line: TreeLine) -> Sequence[Entry]:
        """Return the entries after a row that record which files the row changed.

        For a user's message, these are the tool results and checkpoints of the message's turn, at
        most `MAX_ENTRIES`. For tool calls and commands, they are the checkpoints that follow
        directly. For the line of a folded branch, there are none.
        """
        headers = line.segment.headers
        whole_turn = line.what is LineKind.ENTRY and headers[line.row.last].kind == "user"
        if line.what is LineKind.FOLD:
            return ()
        found: list[int] = []
        for header in headers[line.row.last + 1 :]:
            if (
                header.kind == "user"
                or len(found) == MAX_ENTRIES
                or not (whole_turn or header.kind in _AFTER_CALLS)
            ):
                break
            if header.kind == "checkpoint" or (whole_turn and header.kind == "tool_result"):
                found.append(header.id)
        return self._session.entries(found)


def headers_of(index: TreeIndex, line: TreeLine | None) -> Sequence[EntryHeader]:
    """Return the headers of a line's entries, oldest first, at most `MAX_ENTRIES`.

    For an answer, the results of its tool calls are included. For the line of a folded branch, only
    the header of the newest entry in the branch is returned. If ``line`` is None, the result is
    empty.
    """
    if line is None:
        return ()
    headers = line.segment.headers
    row = line.row
    if line.what is LineKind.FOLD:
        tip = index.headers.position(line.entry)
        if tip is None:
            return ()
        return (index.headers[tip],)
    last = row.last
    if headers[row.first].kind == "assistant":
        while last + 1 < len(headers) and headers[last + 1].kind == "tool_result":
            last += 1
    return headers[row.first : min(last + 1, row.first + MAX_ENTRIES)]


def _facts_of(entry: Entry, *, size: int, cost: float | None, when: str) -> str:
    match entry:
        case UserEntry():
            if entry.synthetic is None:
                who = "you"
            else:
                who = sanitize.line(entry.occasion)
        case AssistantEntry() | SummaryEntry() if entry.model:
            who = wording.short_model(entry.model)
        case SystemEntry():
            who = f"system prompt, {wording.plural(len(entry.tools), 'tool')}"
        case _:
            who = entry.kind.replace("_", " ")
    facts = [f"#{entry.id}", who, when.strip(), wording.token_count(size)]
    if cost:
        facts.append(wording.money(cost))
    if isinstance(entry, AssistantEntry):
        if entry.usage is not None:
            facts.append(f"sent {wording.tokens(entry.usage.prompt)}")
        facts.append(entry.ending)
    return " · ".join(fact for fact in facts if fact)
