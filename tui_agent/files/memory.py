"""A project's memory: one line for each topic, sent to the model in every session, and proposed lines.

Only the user can make a proposal a line; proposals are never sent. Both are kept in the program's
data directory. The functions on a ``MemoryState`` are pure.
"""

import hashlib
import re
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from tui_agent.errors import UserFacingError
from tui_agent.files.atomic import write_atomically
from tui_agent.files.inside import read_regular
from tui_agent.files.notes import (
    NOTES_FILE,
    notes_in,
    read_notes,
    with_note,
    without_note,
    write_notes,
)
from tui_agent.files.own_git import main_worktree
from tui_agent.lazy import LazyPattern
from tui_agent.path_checks import is_there, real_path
from tui_agent.safe_text import visible
from tui_agent.session.locks import FileLock
from tui_agent.word_lists import listed

USER = ""
MODEL = "the model"
"""Origins of words that the model hasn't read anywhere."""

MAX_CHARS = 500
"""Maximum characters of a line."""
MAX_TOPIC_CHARS = 24
MAX_LINES = 200
MAX_PROPOSED = 12
"""Maximum proposals that wait for an answer; the oldest are dropped, foreign ones first."""
MAX_DECLINED = 200
MAX_CHANGES = 50
"""Maximum changes that can be undone."""
UNUSED_SESSIONS = 20
"""Sessions in a row without use of a line after which its removal is proposed."""

_MAX_BYTES = 4_000_000
_LOCK_SECONDS = 5.0
_TOPIC = LazyPattern(r"([^\W_][\w ./+-]{0,31}):\s+(\S.*)")
_UNSPACED = LazyPattern("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Characters of scripts without spaces between words; each counts as a word."""
_WORD = LazyPattern(r"\w[\w.+-]*\w|\w")
_SHORT = 3
"""Longest word, in characters, whose final s isn't taken for a plural."""
_COMMON = listed(
    "a after all also always an and any are at avoid be been before by can do don ensure every first "
    "for from has have here i in is it its make must need needs never no not now of on only or our out please "
    "remember run should so sure that the their them then there they this to up us use used "
    "using was we when with you your",
)
"""Common words, which say nothing about the subject of a line."""


class NotKeptError(UserFacingError):
    """Something can't be remembered; the message is for a person or a model."""


class MemoryLine(BaseModel):
    """A remembered line about a topic.

    ``source`` is the entry it comes from, as ``SESSION#ENTRY``, "" for a line the user wrote;
    ``origin`` is where the words come from if not from the user: ``webfetch example.com``.
    ``topic`` is "" until one is chosen. Times are milliseconds since the epoch.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    topic: str
    text: str
    source: str = ""
    origin: str = ""
    kept_at: int = 0
    used_at: int = 0
    uses: int = 0
    unused: int = 0
    """Number of sessions in a row that were sent the line and didn't use it."""

    @property
    def shown(self) -> str:
        if not self.topic:
            return self.text
        return f"{self.topic}: {self.text}"

    @property
    def is_foreign(self) -> bool:
        """Whether the words come from a web page, a file or a command."""
        return self.origin not in {USER, MODEL}


class Proposal(BaseModel):
    """A proposed line, which would replace the line on its topic.

    Or the proposed removal of a line.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    line: MemoryLine
    removes: bool = False


class MemoryChange(BaseModel):
    """One undoable change: the line before and after, and the proposal answered, None for none."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    before: MemoryLine | None = None
    after: MemoryLine | None = None
    proposal: Proposal | None = None


class MemoryState(BaseModel):
    """A project's lines and proposals; topics are unique among each."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    lines: tuple[MemoryLine, ...] = ()
    proposed: tuple[Proposal, ...] = ()
    declined: tuple[str, ...] = ()
    """Declined texts, which are not proposed again."""
    changes: tuple[MemoryChange, ...] = ()

    def line(self, topic: str) -> MemoryLine | None:
        return next((line for line in self.lines if line.topic == topic), None)

    def proposal(self, topic: str) -> Proposal | None:
        return next((one for one in self.proposed if one.line.topic == topic), None)

    def knows(self, text: str) -> bool:
        return any(_same(line.text, text) for line in self.lines)

    def with_line(
        self,
        line: MemoryLine,
        *,
        instead_of: MemoryLine | None = None,
        answers: Proposal | None = None,
    ) -> "MemoryState":
        """Keep a line in place of another, else of the one on its topic, perhaps as the answer to a proposal.

        Only a line that was seen is replaced: with another topic than ``instead_of`` or the
        proposal has, it gets one of its own.

        Raises:
            NotKeptError: there are too many lines.
        """
        replaced = instead_of
        if answers is not None:
            replaced = answers.line
        if replaced is not None and replaced.topic != line.topic:
            # Nobody was shown the line that is on this topic already.
            line = self.on_free_topic(line)
        before = instead_of or self.line(line.topic)
        if before is None and len(self.lines) >= MAX_LINES:
            raise NotKeptError(f"The memory has {MAX_LINES} lines: drop some of them in /memory.")
        return _changed(self, MemoryChange(before=before, after=line, proposal=answers))

    def on_free_topic(self, line: MemoryLine) -> MemoryLine:
        """Return the line with a free topic: its own, or that with a number."""
        taken = {one.topic for one in self.lines} | {one.line.topic for one in self.proposed}
        topic = line.topic or _topic_of(line.text)
        name = topic
        number = 1
        while name in taken:
            number += 1
            name = f"{topic} {number}"
        return line.model_copy(update={"topic": name})

    def without_line(self, line: MemoryLine, *, answers: Proposal | None = None) -> "MemoryState":
        return _changed(self, MemoryChange(before=line, proposal=answers))

    def without_proposal(self, proposal: Proposal) -> "MemoryState":
        """Decline a proposal; a line whose removal was declined is counted from zero again."""
        line = self.line(proposal.line.topic)
        if proposal.removes and line is not None:
            fresh = line.model_copy(update={"unused": 0})
            return _changed(self, MemoryChange(before=line, after=fresh, proposal=proposal))
        declined = (*self.declined, proposal.line.text)[-MAX_DECLINED:]
        state = _changed(self, MemoryChange(proposal=proposal))
        return state.model_copy(update={"declined": declined})

    def with_proposals(self, proposals: Iterable[Proposal]) -> "MemoryState":
        """Add new proposals; a later one replaces an earlier one on its topic."""
        state = self
        for proposal in proposals:
            if state._is_news(proposal):
                state = state._with_proposal(proposal)
        return state

    def counted(self, used: Collection[str], now: int) -> "MemoryState":
        """Record that a run used the lines on some topics."""
        lines = []
        for line in self.lines:
            update: dict[str, int] = {}
            if line.topic in used:
                update = {"uses": line.uses + 1, "used_at": now, "unused": 0}
            lines.append(line.model_copy(update=update))
        return self.model_copy(update={"lines": tuple(lines)})

    def counted_unused(self, topics: Collection[str]) -> "MemoryState":
        """Record that a session was sent the lines on some topics and didn't use them."""
        lines = []
        for line in self.lines:
            unused = line.unused + (line.topic in topics)
            lines.append(line.model_copy(update={"unused": unused}))
        return self.model_copy(update={"lines": tuple(lines)})

    def undone(self) -> "MemoryState":
        """Undo the newest change; a proposal that it answered waits again."""
        if not self.changes:
            return self
        change = self.changes[-1]
        update: dict[str, object] = {
            "changes": self.changes[:-1],
            "lines": _replaced(self.lines, change.after, change.before),
        }
        if change.proposal is not None:
            text = change.proposal.line.text
            update["declined"] = tuple(one for one in self.declined if not _same(one, text))
            others = self.proposals_beside(change.proposal)
            update["proposed"] = (*others, change.proposal)
        return self.model_copy(update=update)

    def proposals_beside(self, proposal: Proposal) -> tuple[Proposal, ...]:
        """Return the proposals on other topics."""
        topic = proposal.line.topic
        return tuple(one for one in self.proposed if one.line.topic != topic)

    def _with_proposal(self, proposal: Proposal) -> "MemoryState":
        if not proposal.line.topic:
            line = self.on_free_topic(proposal.line)
            proposal = proposal.model_copy(update={"line": line})
        proposed = [*self.proposals_beside(proposal), proposal]
        if len(proposed) > MAX_PROPOSED:
            foreign = (at for at, one in enumerate(proposed) if one.line.is_foreign)
            del proposed[next(foreign, 0)]
        return self.model_copy(update={"proposed": tuple(proposed)})

    def _is_news(self, proposal: Proposal) -> bool:
        topic = proposal.line.topic
        if proposal.removes:
            return self.line(topic) is not None and self.proposal(topic) is None
        text = proposal.line.text
        declined = any(_same(one, text) for one in self.declined)
        waiting = any(_same(one.line.text, text) and not one.removes for one in self.proposed)
        return not (declined or waiting or self.knows(text))


class Memory:
    """The memory of one project, on disk; worktrees of a repository share one.

    Methods block. Several programs may use it at once.
    """

    def __init__(self, folder: Path, project: Path) -> None:
        self.project = project
        real = str(real_path(main_worktree(project)))
        name = re.sub(r"[^\w.-]", "_", Path(real).name)[:40]
        digest = hashlib.sha256(real.encode("utf-8", "surrogateescape")).hexdigest()[:12]
        self.path = folder / f"{name}-{digest}.json"

    def read(self) -> MemoryState:
        """Return the lines and proposals on disk; raises NotKeptError if they can't be read."""
        if not is_there(self.path):
            return MemoryState.model_construct()
        try:
            return MemoryState.model_validate_json(read_regular(self.path, _MAX_BYTES) or b"")
        except ValidationError as error:
            raise NotKeptError(f"The memory {self.path} can't be read: mend or move it.") from error

    def change(self, change: Callable[[MemoryState], MemoryState]) -> MemoryState:
        """Apply a change to the present state on disk, and return the new state.

        Raises NotKeptError if it can't be read or written, or if ``change`` raises it.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.path.with_suffix(".lock"))
            try:
                if not lock.take(timeout=_LOCK_SECONDS):
                    raise NotKeptError("Another program is writing the memory; try again.")
                before = self.read()
                after = change(before)
                if after != before:
                    write_atomically(self.path, after.model_dump_json().encode(), mode=0o600)
            finally:
                lock.close()
        except OSError as error:
            why = error.strerror or error
            raise NotKeptError(f"The memory {self.path} can't be written: {why}.") from error
        return after

    def add(self, text: str, now: int) -> MemoryLine:
        """Add a line in the user's words, on a topic of its own; raises NotKeptError."""
        line = line_of(text)
        if line.text in map(line_text, self.notes()):
            raise NotKeptError("That is in the memory already.")

        def change(state: MemoryState) -> MemoryState:
            if state.knows(line.text):
                raise NotKeptError("That is in the memory already.")
            kept = state.on_free_topic(line)
            return state.with_line(kept.model_copy(update={"kept_at": now}))

        return self.change(change).lines[-1]

    def drop(self, line: MemoryLine) -> None:
        """Remove a line, or a note in the project's file.

        Raises NotKeptError, NoteError, OSError.
        """
        if line.source != NOTES_FILE:
            self.change(lambda state: state.without_line(line))
            return
        write_notes(self.project, without_note(read_notes(self.project), line.text))
        self.change(lambda state: _noted(state, MemoryChange(before=line)))

    def undo(self) -> MemoryChange | None:
        """Undo the newest change and return it, None if there is none; raises as `drop`."""
        undone: list[MemoryChange] = []

        def change(state: MemoryState) -> MemoryState:
            undone.extend(state.changes[-1:])
            before = undone[0].before if undone else None
            if before is None or before.source != NOTES_FILE:
                return state.undone()
            write_notes(self.project, with_note(read_notes(self.project), before.text))
            return state.model_copy(update={"changes": state.changes[:-1]})

        self.change(change)
        return undone[0] if undone else None

    def notes(self) -> list[str]:
        """Return the lines of the project's notes file; raises NoteError, OSError."""
        return notes_in(read_notes(self.project))


def line_text(text: str) -> str:
    """Return a text as one line without harmful or invisible characters."""
    return visible(" ".join(text.split()))


def line_of(text: str) -> MemoryLine:
    """Return the line of a text such as ``build: use pnpm``, or without a topic ``use pnpm``.

    Raises:
        NotKeptError: it is empty or too long.
    """
    line = line_text(text)
    if not line:
        raise NotKeptError("There is nothing to remember.")
    if len(line) > MAX_CHARS:
        raise NotKeptError(f"A line has at most {MAX_CHARS} characters: say it shorter.")
    found = _TOPIC.fullmatch(line)
    if found is None:
        return MemoryLine(topic="", text=line)
    return MemoryLine(topic=" ".join(found[1].lower().split()), text=found[2])


def words_of(text: str) -> frozenset[str]:
    """Return the words that say what a text is about, in lower case."""
    words = set[str]()
    for word in frozenset(_WORD.findall(text.lower())) - _COMMON:
        if _UNSPACED.search(word):
            words.update(word)
        elif len(word) > _SHORT:
            words.add(word.removesuffix("s"))
        else:
            words.add(word)
    return frozenset(words)


def _topic_of(text: str) -> str:
    words = (word for word in _WORD.findall(text.lower()) if word not in _COMMON)
    return next(words, "note")[:MAX_TOPIC_CHARS]


def _same(one: str, other: str) -> bool:
    return one.casefold().rstrip(".") == other.casefold().rstrip(".")


def _changed(state: MemoryState, change: MemoryChange) -> MemoryState:
    """Return the state after a change, which is recorded for undo.

    The proposal that it answers, if any, no longer waits.
    """
    update: dict[str, object] = {"lines": _replaced(state.lines, change.before, change.after)}
    if change.proposal is not None:
        update["proposed"] = state.proposals_beside(change.proposal)
    return _noted(state.model_copy(update=update), change)


def _noted(state: MemoryState, change: MemoryChange) -> MemoryState:
    return state.model_copy(update={"changes": (*state.changes, change)[-MAX_CHANGES:]})


def _replaced(
    lines: Iterable[MemoryLine], old: MemoryLine | None, new: MemoryLine | None
) -> tuple[MemoryLine, ...]:
    """Return the lines with ``new`` in place of the line that has the topic of ``old``.

    If no line has that topic, ``new`` goes to the end; without ``new`` the old line is removed.
    """
    rows = list(lines)
    topics = [line.topic for line in rows]
    at = len(rows)
    if old is not None and old.topic in topics:
        at = topics.index(old.topic)
    rows[at : at + 1] = [new] if new is not None else []
    return tuple(rows)
