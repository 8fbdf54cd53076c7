"""A session that has lived: steps that grow, a prune, a compaction, a move back, a cache that went cold, two days."""

from collections.abc import Sequence

from tui_agent.session.entries import (
    AssistantEntry,
    CompactionEntry,
    Entry,
    PruneEntry,
    TextPart,
    ToolCallPart,
    ToolResultEntry,
    ToolStatus,
    Usage,
    UserEntry,
)
from tui_agent.session.session import Session

BEGIN = 1_700_000_000_000
"""When it began, in milliseconds since the epoch."""
MINUTE = 60_000


class LongWalk:
    """Appends turns to a session. ``size`` is what the next request takes, in tokens."""

    def __init__(self, session: Session, *, model: str, head: int = 1_200) -> None:
        self.session = session
        self.model = model
        self.size = head
        self.known = 0
        self.at = BEGIN
        self._calls = 0

    def append(self, *entries: Entry) -> list[Entry]:
        """Append entries, half a minute apart."""
        found = []
        for entry in entries:
            self.at += MINUTE // 2
            found.append(entry.model_copy(update={"created_at": self.at}))
        return self.session.append_many(found)

    def turn(self, text: str, reads: int = 2, tokens: int = 900) -> None:
        self._grow(self.append(UserEntry(parts=(TextPart(text=text),), tokens=20)))
        for _ in range(reads):
            self._calls += 1
            call = ToolCallPart(
                call_id=f"c{self._calls}",
                tool="read",
                arguments=f'{{"path": "src/f{self._calls}.py"}}',
            )
            self.answer("", call)
            result = ToolResultEntry(
                call_id=call.call_id,
                tool="read",
                status=ToolStatus.COMPLETED,
                output=f"def f{self._calls}():\n    return {self._calls}\n" * 20,
                title=f"src/f{self._calls}.py",
                tokens=tokens,
            )
            self._grow(self.append(result))
        self.answer(f"{text} That is done.")

    def answer(self, text: str, *calls: ToolCallPart) -> None:
        """Append an answer whose provider had in its cache what the request before had left there."""
        read = min(self.known, self.size) if self.known else 0
        usage = Usage(input=self.size - read, cache_read=read, output=40)
        parts = (*([TextPart(text=text)] if text else []), *calls)
        cost = (usage.input * 3 + read * 0.3 + 40 * 15) / 1e6
        self.known = self.size
        self._grow(
            self.append(
                AssistantEntry(
                    parts=parts, model=self.model, usage=usage, cost=cost, estimate=self.size, tokens=40,
                    finish="tool_calls" if calls else "stop",
                )
            )
        )  # fmt: skip

    def prune(self, targets: Sequence[int], freed: int) -> None:
        self.append(PruneEntry(targets=tuple(targets), tokens_freed=freed, reason="pressure"))
        self.size -= freed
        self.known = min(self.known, 2_000)

    def compact(self, first_kept: int, after: int) -> None:
        entry = CompactionEntry(
            summary="## Goal\nFind the bug.\n", first_kept_id=first_kept, tokens_before=self.size, tokens_after=after,
            trigger="threshold", model=self.model, usage=Usage(input=self.size, output=300), cost=0.02, tokens=120,
        )  # fmt: skip
        self.append(entry)
        self.size, self.known = after, 0

    def pause(self, minutes: int) -> None:
        self.at += minutes * MINUTE
        self.known = 0

    def _grow(self, entries: Sequence[Entry]) -> None:
        self.size += sum(entry.tokens for entry in entries)


def walked(session: Session, *, model: str) -> LongWalk:
    """Fill a session, after whatever is in it, with twelve turns, everything a timeline marks among them."""
    walk = LongWalk(session, model=model)
    for number in range(4):
        walk.turn(f"Look at part {number}.")
    results = [entry.id for entry in session.path() if isinstance(entry, ToolResultEntry)]
    walk.prune(results[-8:-4], 3_200)
    walk.turn("Look at part 4.")
    left = session.leaf
    walk.turn("Try it with a cookie.", reads=1)
    assert left is not None
    session.move(left)
    walk.size -= 1_000
    walk.turn("Try it without.")
    walk.pause(24 * 60)
    walk.turn("Good morning. Go on.")
    kept = next(entry.id for entry in reversed(session.path()) if isinstance(entry, UserEntry))
    walk.compact(kept, 3_000)
    for number in range(3):
        walk.turn(f"Write test {number}.", reads=1, tokens=700)
    return walk
