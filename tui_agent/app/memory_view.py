"""Shows the project's memory as rows, and makes the user's changes to it.

``files.memory`` reads and writes the files. After a change, the rows are out of date until
`MemoryView.read` is called again.
"""

from collections.abc import Callable, Sequence
from dataclasses import field

from tui_agent.agent.memory.section import row_of
from tui_agent.app.format import age, dotted, one_line, plural, tokens
from tui_agent.errors import CommandError
from tui_agent.files.memory import (
    MODEL,
    USER,
    Memory,
    MemoryLine,
    MemoryState,
    Proposal,
    line_of,
)
from tui_agent.files.notes import NOTES_FILE, NoteError
from tui_agent.lazy import dataclass, frozen

NOTHING = (
    "The memory is empty. /remember TEXT adds a line; others are proposed at the end of a run."
)
NOT_THERE = "The memory has nothing on “{}”."
_NOTE = f"{NOTES_FILE}:{{}}"
"""Template for the topic of a line in the project's notes file; takes the line's number, from 1."""


@frozen
class MemoryRow:
    """A line of the project's memory, or a proposal for one; ``proposal`` is None for a line.

    ``diff`` has pairs of a mark (``+``, ``-`` or a space) and a text. ``facts`` is one line about
    use, source and tokens. ``key`` is the topic; for a proposal, it begins with ``+``.
    """

    key: str
    diff: tuple[tuple[str, str], ...]
    facts: str
    line: MemoryLine
    proposal: Proposal | None = None


@dataclass
class MemoryView:
    """The project's memory as it was last read.

    ``session`` is the short id of the open session.

    ``text_of`` returns the text of the entry that a line's source names. ``count`` returns the
    number of tokens of a text. ``cost`` returns the number of tokens that the lines take in a
    request. ``clock`` returns milliseconds since the epoch.
    """

    memory: Memory
    session: str
    text_of: Callable[[str], str | None]
    count: Callable[[str], int]
    cost: Callable[[Sequence[MemoryLine]], int]
    clock: Callable[[], int]
    proposed: list[MemoryRow] = field(default_factory=list)
    kept: list[MemoryRow] = field(default_factory=list)

    def read(self) -> None:
        """Read the memory and the notes file again.

        Raises `NotKeptError` if the memory can't be read.
        """
        state = self.memory.read()
        try:
            notes = self.memory.notes()
        except (NoteError, OSError):
            notes = []  # reported when a session starts
        self.proposed = [self._proposed_row(state, one) for one in state.proposed]
        self.kept = [self._kept_row(line) for line in state.lines]
        for number, text in enumerate(notes, 1):
            line = MemoryLine(topic=_NOTE.format(number), text=text, source=NOTES_FILE)
            facts = f"{line.topic} · {tokens(self.count(text))} tokens"
            self.kept.append(MemoryRow(line.topic, ((" ", text),), facts, line))

    def find(self, key: str) -> MemoryRow:
        """Return the row with this topic or row key.

        If a proposal and a line have this topic, returns the proposal. Raises `CommandError` if
        there is no such row.
        """
        name = " ".join(key.lower().split())
        for row in (*self.proposed, *self.kept):
            if name in {row.key, row.line.topic}:
                return row
        raise CommandError(NOT_THERE.format(one_line(key, 60)))

    def take(self, row: MemoryRow) -> str:
        """Accept a proposal; return a sentence about what was done.

        Raises `CommandError` if the row is not a proposal.
        """
        proposal = row.proposal
        if proposal is None:
            raise CommandError("That line is in the memory already. You can edit or drop it.")
        if proposal.removes:
            self._change(lambda state: state.without_line(proposal.line, answers=proposal))
            return f"Dropped: {_quoted(row.line)}."
        return self._keep(row.line, row)

    def edit(self, row: MemoryRow, text: str) -> str:
        """Save a line or a proposal with a new text; return a sentence about what was done.

        A proposal whose text is unchanged is accepted, as ``take`` does. Raises `CommandError` for
        a line of the notes file.
        """
        wanted = line_of(text)
        if row.proposal is not None and text.strip() == row.line.shown:
            return self.take(row)
        if row.line.source == NOTES_FILE:
            raise CommandError(f"That is a line of {NOTES_FILE}. Edit the file to change it.")
        topic = wanted.topic or row.line.topic
        changed = {"topic": topic, "text": wanted.text, "origin": USER}
        return self._keep(row.line.model_copy(update=changed), row)

    def drop(self, row: MemoryRow) -> str:
        """Decline a proposal, or remove a line; return a sentence about what was done.

        Raises `CommandError` if the line can't be removed.
        """
        proposal = row.proposal
        if proposal is None:
            try:
                self.memory.drop(row.line)
            except (NoteError, OSError) as error:
                raise CommandError(str(error)) from error
            return f"Dropped: {_quoted(row.line)}."
        self._change(lambda state: state.without_proposal(proposal))
        if proposal.removes:
            return f"The line stays: {_quoted(row.line)}."
        return f"Not kept, and won't be proposed again: {_quoted(row.line)}."

    def undo(self) -> str:
        """Undo the newest change of the memory, and return a sentence about it.

        The change may have been made by another session. Raises `CommandError` if the memory can't
        be read or changed.
        """
        try:
            change = self.memory.undo()
        except (NoteError, OSError) as error:
            raise CommandError(str(error)) from error
        if change is None:
            return "There is nothing to undo, because the memory has not been changed."
        line = change.before or change.after
        if line is None and change.proposal is not None:
            line = change.proposal.line
        if line is not None:
            return f"Undone: {_quoted(line)}."
        return "Undone."

    def lines(self) -> list[str]:
        """Return the proposals and lines as text, for frontends without a screen."""
        if not self.proposed and not self.kept:
            return [NOTHING]
        lines: list[str] = []
        if self.proposed:
            answers = "Proposed: /memory take TOPIC, /memory drop TOPIC"
            lines += [answers, *_row_lines(self.proposed), ""]
        if self.kept:
            lines += [self.kept_heading, *_row_lines(self.kept)]
        return lines

    @property
    def kept_heading(self) -> str:
        """The heading above the memory's lines: their number, and their tokens in each request."""
        count = plural(len(self.kept), "line")
        lines = [row.line for row in self.kept]
        return f"Kept: {count}, {tokens(self.cost(lines))} tokens of each request"

    def _keep(self, line: MemoryLine, row: MemoryRow) -> str:
        """Save ``line`` in place of the row's line.

        If the row is a proposal, accepts it with that text.
        """
        kept = line.model_copy(update={"kept_at": self.clock(), "unused": 0})
        instead_of = None
        if row.proposal is None:
            instead_of = row.line
        self._change(
            lambda state: state.with_line(kept, instead_of=instead_of, answers=row.proposal)
        )
        return f"Kept: {_quoted(kept)}."

    def _change(self, change: Callable[[MemoryState], MemoryState]) -> None:
        self.memory.change(change)

    def _proposed_row(self, state: MemoryState, proposal: Proposal) -> MemoryRow:
        line = proposal.line
        before = state.line(line.topic)
        if proposal.removes:
            facts = f"not used in {plural(line.unused, 'session')} · {self._price(line)}"
            return MemoryRow(f"+{line.topic}", (("-", line.shown),), facts, line, proposal)
        diff = [("+", line.shown)]
        if before is not None:
            diff.insert(0, ("-", before.shown))
        facts = dotted(*self._source(line), self._price(line))
        return MemoryRow(f"+{line.topic}", tuple(diff), facts, line, proposal)

    def _kept_row(self, line: MemoryLine) -> MemoryRow:
        if line.uses:
            use = f"used {plural(line.uses, 'time')}, last {age(line.used_at, self.clock() / 1000)}"
        elif line.unused:
            use = f"not used in {plural(line.unused, 'session')}"
        else:
            use = "not used yet"
        facts = dotted(*self._source(line), use, self._price(line))
        return MemoryRow(line.topic, ((" ", line.shown),), facts, line)

    def _source(self, line: MemoryLine) -> list[str]:
        """Return the session and entry a memory line comes from ("" if unknown), and its author."""
        session, _sign, entry = line.source.partition("#")
        where = ""
        if entry:
            where = f"#{entry} here" if session == self.session else f"{session} #{entry}"
        whose = f"from {line.origin}"
        if line.origin == USER:
            whose = "your words"
        elif line.origin == MODEL:
            whose = "the model's words"
        return [where, whose]

    def _price(self, line: MemoryLine) -> str:
        return f"{tokens(self.count(row_of(line)))} tokens"


def _row_lines(rows: Sequence[MemoryRow]) -> list[str]:
    lines: list[str] = []
    for row in rows:
        lines += [f"{mark} {text}" for mark, text in row.diff]
        warning = "! " if row.line.is_foreign else ""
        lines.append(f"    {warning}{row.facts}")
    return lines


def _quoted(line: MemoryLine) -> str:
    return f"“{one_line(line.text, 60)}”"
