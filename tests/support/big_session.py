"""Builds big sessions through the public API, for tests and benchmarks."""

from collections.abc import Iterator
from itertools import islice

from tui_agent.session.entries import (
    AssistantEntry,
    CompactionEntry,
    Entry,
    SystemEntry,
    TextPart,
    ToolCallPart,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.session.session import Session
from tui_agent.session.store import Store

MODEL = "test/model"
_TEXT = "the login redirect drops its query string because renderWidget splits scroll_offset before it is encoded"
_WORDS = _TEXT.split()


def words(number: int, count: int) -> str:
    """Return ``count`` words that differ from number to number and repeat across numbers as prose does."""
    return (
        " ".join(_WORDS[(number * 7 + at * at) % len(_WORDS)] for at in range(count))
        + f" n{number}"
    )


def turns() -> Iterator[Entry]:
    """Return entries of endless turns of five: a message, two tool calls, their results, an answer."""
    number = 0
    while True:
        number += 1
        yield UserEntry(parts=(TextPart(text=f"Message {number}: {words(number, 20)}"),))
        calls = tuple(
            ToolCallPart(
                call_id=f"c{number}.{at}",
                tool="read",
                arguments=f'{{"path": "src/file{number + at}.py"}}',
            )
            for at in range(2)
        )
        yield AssistantEntry(
            parts=(TextPart(text="I look at both."), *calls),
            model=MODEL,
            finish="tool_calls",
            estimate=9_000,
        )
        for call in calls:
            yield ToolResultEntry(
                call_id=call.call_id,
                tool=call.tool,
                status=ToolStatus.COMPLETED,
                output=words(number, 60),
                title=f"src/file{number}.py",
            )
        yield AssistantEntry(parts=(TextPart(text=words(number, 40)),), model=MODEL, estimate=9_000)


def fill(session: Session, count: int, *, branch_every: int = 0, compact_every: int = 0) -> None:
    """Append ``count`` entries, a system entry first.

    Args:
        session: What to fill.
        count: How many entries.
        branch_every: After so many entries the leaf moves back by 50 entries; 0 makes no branches.
        compact_every: After so many entries a compaction is appended that keeps the 100 before it; 0 makes none.
    """
    source = turns()
    session.append(SystemEntry(blocks=("You are an agent.",), model=MODEL))
    done = 1
    while done < count:
        chunk = list(islice(source, min(500, count - done)))
        done += len(session.append_many(chunk))
        if compact_every and done % compact_every < len(chunk) and done < count:
            sizes = {"tokens_before": 90_000, "tokens_after": 20_000}
            kept = session.path_outline().ids[-100]
            session.append(
                CompactionEntry(
                    summary=words(done, 100), first_kept_id=kept, trigger="threshold", **sizes
                )
            )
            done += 1
        if branch_every and done % branch_every < len(chunk) and done < count:
            session.move(session.path_outline().ids[-50])


def big_session(
    store: Store, count: int, *, branch_every: int = 5_000, compact_every: int = 2_000
) -> Session:
    """Create a session of ``count`` entries with branches and compactions, its leaf at the last entry."""
    session = Session(store, store.create_session("/project").id, estimate=lambda _entry: 100)
    fill(session, count, branch_every=branch_every, compact_every=compact_every)
    return session
