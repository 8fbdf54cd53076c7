"""What each entry of a view adds to the next request, in uncorrected tokens.

A live entry adds what it was counted with when it was appended, so estimating a long path is one addition per entry;
only what edits and prunes changed is counted anew. Messages that come from no entry (a stand-in first message) are
not counted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tui_agent.context.request import ContentText, ImageRef, Message
from tui_agent.context.tokens import REQUEST_TOKENS, TokenCounter, images_of
from tui_agent.context.view import ContextView, EntryState, resolve
from tui_agent.session.entries import (
    INTERRUPTED_OUTPUT,
    AssistantEntry,
    CompactionEntry,
    Entry,
    ReasoningPart,
    ToolResultEntry,
)
from tui_agent.session.path_queries import place_of_newest

_STAND_IN = Message("tool", (ContentText(INTERRUPTED_OUTPUT),))


@dataclass(frozen=True, slots=True)
class RequestModel:
    """The model that is asked, as far as it changes what a request weighs."""

    model: str
    vision: bool = True


class Weights:
    """Weighs the entries of one view as the model would be sent them."""

    def __init__(self, view: ContextView, counter: TokenCounter, asked: RequestModel) -> None:
        self._view = view
        self._counter = counter
        self._asked = asked
        self._answered = view.answered()

    def head(self) -> int:
        """Return the tokens of system messages and tools."""
        system = self._view.system
        return REQUEST_TOKENS + ((system.tokens or self._counter.head(system)) if system else 0)

    def all(self) -> Iterator[tuple[Entry, int]]:
        """Yield what is shown, in the order of the request, with its tokens."""
        compaction = self._view.compaction
        entries = self._view.entries if compaction is None else (compaction, *self._view.entries)
        for entry in entries:
            if tokens := self.of(entry):
                yield entry, tokens

    def of(self, entry: Entry) -> int:
        """Return the tokens an entry adds, stand-ins for results of its calls included; 0 when it is not shown."""
        if not entry.is_sent or self._view.states.get(entry.id) is EntryState.DROPPED:
            return 0
        if isinstance(entry, ToolResultEntry) and entry.id not in self._answered:
            return 0
        if entry.kind == "compaction" and entry is not self._view.compaction:
            return 0
        if isinstance(entry, AssistantEntry):
            return self._answer(entry)
        return self._stored(entry) if self._is_whole(entry) else self._counted(entry)

    def _answer(self, entry: AssistantEntry) -> int:
        results = self._view.results.get(entry.id, ())
        states = self._view.states
        parted = bool(states) and any(r and states.get(r.id) is EntryState.DROPPED for r in results)
        foreign = entry.model != self._asked.model and any(isinstance(p, ReasoningPart) for p in entry.parts)
        tokens = self._stored(entry) if self._is_whole(entry) and not parted and not foreign else self._counted(entry)
        # Asked for only when it is needed: a path whose entries were all counted needs no encoding at all.
        return tokens + _stand_in_tokens(self._counter) * results.count(None) if None in results else tokens

    def _is_whole(self, entry: Entry) -> bool:
        if isinstance(entry, CompactionEntry) and len(self._view.pinned) < len(entry.details.pinned):
            return False
        return self._view.is_open(entry.id) and (self._asked.vision or not images_of(entry))

    def _stored(self, entry: Entry) -> int:
        return entry.tokens or self._counter.estimate(entry)

    def _counted(self, entry: Entry) -> int:
        """Count what is really sent of an entry that something changed."""
        counter = self._counter
        messages = counter.told(entry, self._view, model=self._asked.model, vision=self._asked.vision)
        sent = any(isinstance(part, ImageRef) for message in messages for part in message.content)
        return counter.messages(messages) + (counter.images(entry) if sent else 0)


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimate of a path's request, in uncorrected tokens, and what it takes to go on from it.

    ``settled`` is history that no appended message can change: what stands before the newest answer, at ``cut`` on the
    path. ``length``, ``first`` and ``last`` tell which path it was made of; ``cut`` None means that it cannot be
    gone on from.
    """

    head: int
    settled: int
    unsettled: int
    cut: int | None
    length: int
    first: Entry | None
    last: Entry | None

    @property
    def history(self) -> int:
        """Tokens of everything but head and tools."""
        return self.settled + self.unsettled

    @property
    def total(self) -> int:
        """Tokens of the whole request."""
        return self.head + self.settled + self.unsettled


def estimate_path(
    path: Sequence[Entry], counter: TokenCounter, asked: RequestModel, before: Estimate | None = None
) -> Estimate:
    """Estimate a path's request.

    ``before`` is an earlier estimate with the same counter and model; when the path only grew since, only what was
    appended is looked at. The result is the same with and without it.
    """
    if before is not None and before.cut is not None and _extends(path, before):
        return _go_on(path, before.cut, before, counter, asked)
    view = resolve(path)
    weights = Weights(view, counter, asked)
    total = sum(tokens for _, tokens in weights.all())
    cut = _cut(path)
    unsettled = 0 if cut is None else sum(map(weights.of, path[cut:]))
    return _estimate(path, (weights.head(), total - unsettled, unsettled), cut)


def appended_tokens(entries: Sequence[Entry], counter: TokenCounter, asked: RequestModel) -> int:
    """Return the uncorrected tokens of what follows an answer whose size the provider reported.

    ``entries`` begins with that answer. Its calls that still wait for a result weigh nothing.
    """
    if len(entries) == 1:
        return 0
    view = resolve(entries)
    weights = Weights(view, counter, asked)
    answer = entries[0]
    closed = any(entry.kind == "assistant" for entry in entries[1:])
    stand_ins = view.results.get(answer.id, ()).count(None) if closed else 0
    return sum(map(weights.of, entries[1:])) + (stand_ins * _stand_in_tokens(counter) if stand_ins else 0)


def _stand_in_tokens(counter: TokenCounter) -> int:
    """Return the uncorrected tokens of the message that stands in for a missing result."""
    return counter.messages((_STAND_IN,))


def _extends(path: Sequence[Entry], before: Estimate) -> bool:
    if not 0 < before.length <= len(path):
        return False
    same = path[0] is before.first and path[before.length - 1] is before.last
    return same and not any(entry.breaks_prefix for entry in path[before.length :])


def _go_on(path: Sequence[Entry], cut: int, before: Estimate, counter: TokenCounter, asked: RequestModel) -> Estimate:
    tail = path[cut:]
    weights = Weights(resolve(tail), counter, asked)
    newest = _newest_answer(tail) or 0
    settled = before.settled + sum(map(weights.of, tail[:newest]))
    return _estimate(path, (before.head, settled, sum(map(weights.of, tail[newest:]))), cut + newest)


def _estimate(path: Sequence[Entry], sizes: tuple[int, int, int], cut: int | None) -> Estimate:
    head, settled, unsettled = sizes
    first, last = (path[0], path[-1]) if path else (None, None)
    return Estimate(head, settled, unsettled, cut, len(path), first, last)


def _cut(path: Sequence[Entry]) -> int | None:
    """Return where the newest answer stands; None when a compaction follows it: results may still reach over it."""
    newest = _newest_answer(path)
    compaction = place_of_newest(path, CompactionEntry)
    if compaction is not None and (newest is None or newest < compaction):
        return None
    return newest or 0


def _newest_answer(path: Sequence[Entry]) -> int | None:
    return place_of_newest(path, AssistantEntry)
