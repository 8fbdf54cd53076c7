"""A project's memory: one line per topic. The model receives the lines in every session.

The model itself can only propose lines. A proposed line isn't sent to the model until the user
accepts the proposal. Lines and proposals are stored in a file in the program's data directory. The
methods of `MemoryState` have no side effects. The methods of `Memory` read and write the file, and
also remove and restore notes in the project's notes file.
"""

import hashlib
import re
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from tui_agent.errors import UserFacingError
from tui_agent.files.atomic import write_atomically
from tui_agent.files.inside import read_regular
from tui_agent.files.notes import NOTES_FILE, add_note, drop_note, read_notes
from tui_agent.files.own_git import main_worktree
from tui_agent.lazy import LazyPattern
from tui_agent.path_checks import is_there, real_path
from tui_agent.safe_text import visible
from tui_agent.session.locks import FileLock
from tui_agent.word_lists import listed

USER = ""
MODEL = "the model"
"""Values of `MemoryLine.origin` for lines that were written by the user or by the model."""

MAX_CHARS = 500
"""Maximum number of characters of a line in the memory, including its topic."""
MAX_TOPIC_CHARS = 24
MAX_LINES = 200
MAX_PROPOSED = 12
"""Maximum number of pending proposals.

If another proposal arrives, the oldest one whose text comes from a web page, a file or a command is
dropped. If there is no such proposal, the oldest of all is dropped.
"""
MAX_DECLINED = 200
MAX_CHANGES = 50
"""Maximum number of changes that can be undone."""
UNUSED_SESSIONS = 20
"""After this many successive sessions that don't use a line, its removal is proposed."""

_MAX_BYTES = 4_000_000
_LOCK_SECONDS = 5.0
_TOPIC = LazyPattern(r"([^\W_][\w ./+-]{0,31}):\s+(\S.*)")
_UNSPACED = LazyPattern("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Matches characters of scripts without spaces between words. Each character counts as a word."""
_WORD = LazyPattern(r"\w[\w.+-]*\w|\w")
_SHORT = 3
"""Maximum length of a word that keeps a final s.

A final s is removed from longer words, because it may mark a plural.
"""
_COMMON = listed(
    "a after all also always an and any are at avoid be been before by can do don ensure every first "
    "for from has have here i in is it its make must need needs never no not now of on only or our out please "
    "remember run should so sure that the their them then there they this to up us use used "
    "using was we when with you your",
)
"""Common words, in lower case, which are ignored because they don't tell what a line is about."""


class NotKeptError(UserFacingError):
    """Raised when the memory can't be read or changed. The message is for the user or the model."""


class MemoryLine(BaseModel):
    """A remembered line about a topic.

    ``source`` is the session entry from which the line comes (``SESSION#ENTRY``), `NOTES_FILE` for
    a note in the project's notes file, or "" for a line that the user wrote. ``origin`` says where
    the text of the line comes from. It is `USER`, `MODEL`, or, for example, ``webfetch
    example.com``. ``topic`` is "" until a topic is chosen. Times are in milliseconds since the
    epoch.
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
    """Number of consecutive sessions that received the line but didn't use it."""

    @property
    def shown(self) -> str:
        if not self.topic:
            return self.text
        return f"{self.topic}: {self.text}"

    @property
    def is_foreign(self) -> bool:
        """Whether the text of the line comes from a web page, a file or a command."""
        return self.origin not in {USER, MODEL}


class Proposal(BaseModel):
    """A proposal to add ``line``, which replaces any line on the same topic.

    If ``removes`` is True, the proposal is to remove ``line`` instead.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    line: MemoryLine
    removes: bool = False


class MemoryChange(BaseModel):
    """One change of the lines or proposals in the memory, recorded so that it can be undone.

    ``before`` and ``after`` are the line before and after the change. ``before`` is None for an
    added line, ``after`` is None for a removed line, and both are None if only a proposal was
    declined. ``proposal`` is the proposal that the change accepted or declined, or None.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    before: MemoryLine | None = None
    after: MemoryLine | None = None
    proposal: Proposal | None = None


class MemoryState(BaseModel):
    """A project's memory: its lines and its pending proposals, each with unique topics.

    ``changes`` are the changes that can be undone, oldest first. The methods don't change the
    state, but return a changed copy of it.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    lines: tuple[MemoryLine, ...] = ()
    proposed: tuple[Proposal, ...] = ()
    declined: tuple[str, ...] = ()
    """Texts of proposed lines that the user has declined, which are not proposed again."""
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
        """Add a line. It replaces ``instead_of`` or, if that is None, the line on the same topic.

        ``answers`` is the proposal that the user accepted with this line, perhaps after editing it.
        If the line's topic differs from that of ``answers`` or else ``instead_of``, and another
        line or proposal has this topic, the new line receives an unused topic instead, such as
        ``build 2``. Otherwise, it would replace a line that the user hasn't seen.

        Raises:
            NotKeptError: the line replaces no other line, and there are already `MAX_LINES`.
        """
        replaced = instead_of
        if answers is not None:
            replaced = answers.line
        if replaced is not None and replaced.topic != line.topic:
            # If the memory already has a line on this topic, the user has not seen that line.
            line = self.on_free_topic(line)
        before = instead_of or self.line(line.topic)
        if before is None and len(self.lines) >= MAX_LINES:
            raise NotKeptError(f"The memory is full ({MAX_LINES} lines). Drop some in /memory.")
        return _changed(self, MemoryChange(before=before, after=line, proposal=answers))

    def on_free_topic(self, line: MemoryLine) -> MemoryLine:
        """Return a copy of ``line`` with a topic that isn't used yet, adding a number if necessary.

        For a line without a topic, the topic is the first uncommon word of its text, or "note".
        """
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
        """Decline a proposal, and return the changed memory.

        The text of a declined line isn't proposed again. If a line's removal was proposed, the line
        stays, and the count of sessions that didn't use it starts at 0 again.
        """
        line = self.line(proposal.line.topic)
        if proposal.removes and line is not None:
            fresh = line.model_copy(update={"unused": 0})
            return _changed(self, MemoryChange(before=line, after=fresh, proposal=proposal))
        declined = (*self.declined, proposal.line.text)[-MAX_DECLINED:]
        state = _changed(self, MemoryChange(proposal=proposal))
        return state.model_copy(update={"declined": declined})

    def with_proposals(self, proposals: Iterable[Proposal]) -> "MemoryState":
        """Add proposals. A new proposal replaces the pending proposal on the same topic.

        A proposed line is ignored if the memory already contains it, if the user has declined it,
        or if it is already pending. A proposed removal is ignored if no line has its topic, or if a
        proposal on that topic is already pending. If more than `MAX_PROPOSED` proposals are
        pending, some are dropped.
        """
        state = self
        for proposal in proposals:
            if state._is_news(proposal):
                state = state._with_proposal(proposal)
        return state

    def counted(self, used: Collection[str], now: int) -> "MemoryState":
        """Record that a run of the agent used the memory lines on the topics in ``used``.

        ``now`` is in milliseconds.
        """
        lines = []
        for line in self.lines:
            update: dict[str, int] = {}
            if line.topic in used:
                update = {"uses": line.uses + 1, "used_at": now, "unused": 0}
            lines.append(line.model_copy(update=update))
        return self.model_copy(update={"lines": tuple(lines)})

    def counted_unused(self, topics: Collection[str]) -> "MemoryState":
        """Record that a session received the lines on the given topics but didn't use them."""
        lines = []
        for line in self.lines:
            unused = line.unused + (line.topic in topics)
            lines.append(line.model_copy(update={"unused": unused}))
        return self.model_copy(update={"lines": tuple(lines)})

    def undone(self) -> "MemoryState":
        """Undo the newest change, if any, and return the changed state.

        If the change accepted or declined a proposal, that proposal becomes pending again.
        """
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
        """Return the pending proposals on topics other than that of ``proposal``."""
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
    """The memory of one project, stored in a file in ``folder``.

    All worktrees of a repository share one memory, and several programs may use it at once. The
    methods block.
    """

    def __init__(self, folder: Path, project: Path) -> None:
        self.project = project
        real = str(real_path(main_worktree(project)))
        name = re.sub(r"[^\w.-]", "_", Path(real).name)[:40]
        digest = hashlib.sha256(real.encode("utf-8", "surrogateescape")).hexdigest()[:12]
        self.path = folder / f"{name}-{digest}.json"

    def read(self) -> MemoryState:
        """Return the content of the memory file. It is empty if there is no file.

        Raises NotKeptError if the file is not valid.
        """
        if not is_there(self.path):
            return MemoryState.model_construct()
        try:
            return MemoryState.model_validate_json(read_regular(self.path, _MAX_BYTES) or b"")
        except ValidationError as error:
            raise NotKeptError(
                f"The memory file {self.path} is not valid. Repair it or move it away."
            ) from error

    def change(self, change: Callable[[MemoryState], MemoryState]) -> MemoryState:
        """Apply ``change`` to the memory on disk, under a lock, and return the new memory.

        Raises NotKeptError if the memory can't be read or written, or if ``change`` raises it.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.path.with_suffix(".lock"))
            try:
                if not lock.take(timeout=_LOCK_SECONDS):
                    raise NotKeptError("Another program is writing the memory file. Try again.")
                before = self.read()
                after = change(before)
                if after != before:
                    write_atomically(self.path, after.model_dump_json().encode(), mode=0o600)
            finally:
                lock.close()
        except OSError as error:
            why = error.strerror or error
            raise NotKeptError(f"The memory file {self.path} can't be written: {why}.") from error
        return after

    def add(self, text: str, now: int) -> MemoryLine:
        """Add a line that the user wrote, on a topic that isn't used yet, and return the line.

        ``now`` is in milliseconds since the epoch. Raises NotKeptError if the line is empty, too
        long or already known, or if it can't be stored. Raises NoteError or OSError if the
        project's notes can't be read.
        """
        line = line_of(text)
        if line.text in map(line_text, self.notes()):
            raise NotKeptError("This line is already in the project's notes.")

        def change(state: MemoryState) -> MemoryState:
            if state.knows(line.text):
                raise NotKeptError("This line is already in the memory.")
            kept = state.on_free_topic(line)
            return state.with_line(kept.model_copy(update={"kept_at": now}))

        return self.change(change).lines[-1]

    def drop(self, line: MemoryLine) -> None:
        """Remove a line from the memory or, if it comes from `NOTES_FILE`, from the notes.

        Raises NotKeptError if the line can't be removed. For a note, it may also raise NoteError or
        OSError.
        """
        if line.source != NOTES_FILE:
            self.change(lambda state: state.without_line(line))
            return
        drop_note(self.project, line.text)
        self.change(lambda state: _noted(state, MemoryChange(before=line)))

    def undo(self) -> MemoryChange | None:
        """Undo the newest change and return it. If there is nothing to undo, return None.

        Raises the errors of `drop`.
        """
        undone: list[MemoryChange] = []

        def change(state: MemoryState) -> MemoryState:
            undone.extend(state.changes[-1:])
            before = undone[0].before if undone else None
            if before is None or before.source != NOTES_FILE:
                return state.undone()
            add_note(self.project, before.text)
            return state.model_copy(update={"changes": state.changes[:-1]})

        self.change(change)
        return undone[0] if undone else None

    def notes(self) -> list[str]:
        """Return the notes in the project's notes file, or [] if there is no file.

        Raises NoteError and OSError as `read_notes` does.
        """
        return read_notes(self.project)


def line_text(text: str) -> str:
    """Return text as one line, with single spaces and with hidden characters made visible."""
    return visible(" ".join(text.split()))


def line_of(text: str) -> MemoryLine:
    """Return a new memory line for a text, which may begin with a topic (``build: use pnpm``).

    Raises:
        NotKeptError: the text is empty or longer than `MAX_CHARS`.
    """
    line = line_text(text)
    if not line:
        raise NotKeptError("There is nothing to remember.")
    if len(line) > MAX_CHARS:
        raise NotKeptError(f"A line can have at most {MAX_CHARS} characters; this one is longer.")
    found = _TOPIC.fullmatch(line)
    if found is None:
        return MemoryLine(topic="", text=line)
    return MemoryLine(topic=" ".join(found[1].lower().split()), text=found[2])


def words_of(text: str) -> frozenset[str]:
    """Return the words, in lower case, that show what a text is about. Common words are left out.

    A plural s is removed. In scripts without spaces between words, each character is a word.
    """
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
    """Return the memory after a change of its lines. The change is recorded, so it can be undone.

    If the change accepts or declines a proposal, that proposal is no longer pending.
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
    """Return a copy of the lines in which ``new`` replaces the line with the topic of ``old``.

    If no line has that topic, ``new`` is added at the end. If ``new`` is None, the old line is
    removed.
    """
    rows = list(lines)
    topics = [line.topic for line in rows]
    at = len(rows)
    if old is not None and old.topic in topics:
        at = topics.index(old.topic)
    rows[at : at + 1] = [new] if new is not None else []
    return tuple(rows)
