"""The next request block by block."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.entry_strategies import MODELS, paths
from tests.support.long_walk import walked
from tests.support.numbered import MODEL, answer, call, result, user
from tests.support.thoroughness import thorough
from tui_agent.agent.context_map import context_map
from tui_agent.agent.timeline import (
    CHANGING_KINDS,
    Mark,
    ModelScale,
    PathShape,
    Step,
    marks_after,
    steps_of,
)
from tui_agent.context.budget import Meter, ModelLimits, estimate_tokens
from tui_agent.context.cache import BreakCause
from tui_agent.context.calibration import Calibration
from tui_agent.context.settings import ContextSettings
from tui_agent.context.tokens import TokenCounter
from tui_agent.context.view import EntryState
from tui_agent.session.entries import (
    AssistantEntry,
    CompactionEntry,
    ContextEditEntry,
    Entry,
    PruneEntry,
    SystemEntry,
    TextPart,
    ToolSchema,
    Usage,
    UserEntry,
)
from tui_agent.session.session import Session
from tui_agent.session.store import Store

CORRECTED = TokenCounter(MODEL, Calibration(learnt={"text": 1.1}))
LIMITS = ModelLimits(MODEL, 128_000, 16_384)
SETTINGS = ContextSettings()
TEXT = "The quick brown fox jumps over the lazy dog. "


HEAD = SystemEntry(
    id=1,
    blocks=("You are an agent.", '<instructions path="AGENTS.md">\nBe kind.\n</instructions>'),
    tools=(ToolSchema(name="read", description="Read a file", parameters={}),),
    model=MODEL,
)
READ = call("a", '{"path": "src/app.py"}')
PATH = [
    HEAD,
    user(2, TEXT),
    answer(3, TEXT, READ),
    result(4, "a", TEXT * 50),
    answer(5, TEXT),
    user(6, TEXT),
]


def mapped(path, **fields):
    return context_map(path, Meter(LIMITS, SETTINGS, CORRECTED), **fields)


def block(path, entry_id, **fields):
    return next(b for b in mapped(path, **fields).blocks if b.origin == (entry_id,))


def test_a_result_names_where_it_is_from_and_a_report_how_wrong_the_estimate_is():
    told = block(PATH, 4)

    assert (told.tool, told.path) == ("read", "src/app.py")
    assert (told.age_entries, told.age_steps) == (2, 1)
    assert told.state is EntryState.LIVE
    assert told.hidden == 0

    path = [*PATH, answer(7, TEXT, usage=Usage(input=5_000, output=9))]

    told = mapped(path)
    assert told.size.total == 5_009


def test_what_the_provider_remembers_is_marked_and_changing_a_block_costs_all_from_it_on():
    blocks = mapped(PATH, cached=frozenset({1, 2, 3})).blocks

    assert [b.cached for b in blocks] == [True, True, True, True, True, False, False, False]

    blocks = mapped(PATH).blocks

    assert blocks[0].following == mapped(PATH).estimate
    assert blocks[-1].following == blocks[-1].tokens
    assert all(a.following == a.tokens + b.following for a, b in pairwise(blocks))


@given(paths(), st.sampled_from(MODELS), st.booleans(), st.sampled_from([0.7, 1.0, 1.3]))
@thorough
def test_the_blocks_of_any_path_add_up(path, model, vision, factor):
    limits = ModelLimits(model, 32_768, vision=vision)
    counter = TokenCounter(model, Calibration(learnt={"text": factor}))

    told = context_map(path, Meter(limits, SETTINGS, counter))
    whole = estimate_tokens(path, limits, counter)
    if told.size.is_known and 0 < told.size.total < whole:
        whole = told.size.total  # what was measured counts where the estimate is more
    assert abs(told.estimate - whole) <= 1
    assert all(b.tokens >= 0 and b.hidden >= 0 for b in told.blocks)


def a_session(tmp_path: Path) -> Session:
    store = Store(tmp_path / "sessions.db")
    session = Session(
        store, store.create_session("/project").id, estimate=lambda entry: entry.tokens or 10
    )
    session.append(SystemEntry(blocks=("You are an agent.",), model=MODEL, tokens=1_200))
    return session


def shape_of(session: Session) -> PathShape:
    outline = session.path_outline()
    changes = [row.id for row in outline if row.kind in CHANGING_KINDS]
    return PathShape(
        outline.ids, session.reader.requests(), session.reader.load(changes), session.returns()
    )


def steps(session: Session, *, window: int = 16_000) -> list[Step]:
    return steps_of(shape_of(session), lambda _model: ModelScale(window), 300)


def replied(session: Session, **fields: object) -> Entry:
    fields.setdefault("estimate", 1_000)
    return session.append(AssistantEntry(parts=(TextPart(text="so"),), model=MODEL, **fields))  # type: ignore[arg-type]


def asked(session: Session, text: str = "go on") -> Entry:
    return session.append(UserEntry(parts=(TextPart(text=text),), tokens=20))


def test_each_answer_is_a_step_as_big_as_reported_with_marks_of_what_came_before_it(
    tmp_path: Path,
) -> None:
    session = a_session(tmp_path)
    walked(session, model=MODEL)
    found = steps(session)
    answers = [entry for entry in session.path() if isinstance(entry, AssistantEntry)]
    assert [step.answer for step in found] == [entry.id for entry in answers]
    assert [step.total for step in found] == [
        entry.usage.prompt for entry in answers if entry.usage
    ]
    assert all(step.exact and step.head == 1_200 and step.window == 16_000 for step in found)
    assert [step.leaf for step in found] == [entry.parent_id for entry in answers]

    path = session.path()
    marked = [(at, step.marks) for at, step in enumerate(found) if step.marks]
    for at, marks in marked:
        previous = found[at - 1].answer or 0
        between = [entry for entry in path if previous < entry.id < (found[at].answer or 0)]
        assert any(isinstance(entry, CompactionEntry) for entry in between) is (
            Mark.COMPACTION in marks
        )
        assert any(isinstance(entry, PruneEntry) for entry in between) is (Mark.PRUNE in marks)
    assert [marks[0] for _, marks in marked] == [Mark.PRUNE, Mark.MOVE, Mark.MISS, Mark.COMPACTION]
    cold = next(step for step in found if step.marks == (Mark.MISS,))
    assert cold.miss is not None
    assert cold.miss.cause is BreakCause.COLD


def test_a_move_and_an_edit_are_marked_and_each_step_has_the_window_of_its_own_model(
    tmp_path: Path,
) -> None:
    session = a_session(tmp_path)
    asked(session)
    replied(session)
    session.move(1)
    asked(session, "another way")
    replied(session)
    assert [step.marks for step in steps(session)] == [(Mark.MOVE,)]

    session = a_session(tmp_path)
    asked(session)
    last = replied(session)
    assert marks_after(shape_of(session), last.id) == ()
    session.append(ContextEditEntry(target=2, action="mask"))
    assert marks_after(shape_of(session), last.id) == (Mark.EDIT,)

    session = a_session(tmp_path)
    asked(session)
    replied(session, usage=Usage(input=900, output=5))
    session.append(
        AssistantEntry(
            parts=(TextPart(text="so"),), model="other", usage=Usage(input=800, output=5)
        )
    )
    windows = {MODEL: 8_000, "other": 200_000}
    found = steps_of(shape_of(session), lambda model: ModelScale(windows[model]), 300)
    assert [step.window for step in found] == [8_000, 200_000]
    assert [step.head for step in found] == [900, 800], "a head is never more than the whole"


def test_what_came_before_a_request_of_unknown_size_is_marked_at_the_next(tmp_path: Path) -> None:
    session = a_session(tmp_path)
    asked(session)
    replied(session)
    session.append(ContextEditEntry(target=2, action="mask"))
    replied(session, estimate=0)
    session.move(1)
    replied(session, estimate=0)
    replied(session)
    session.append(ContextEditEntry(target=2, action="mask"))
    replied(session, estimate=0)
    replied(session)
    replied(session)
    assert [step.marks for step in steps(session)] == [(Mark.MOVE,), (Mark.EDIT,), ()]


@pytest.mark.parametrize(
    ("started_at", "cause"), [(0, BreakCause.COLD), (301_000, BreakCause.COLD), (1_000, None)]
)
def test_a_long_answer_does_not_make_its_own_cache_cold(
    tmp_path: Path, started_at: int, cause: BreakCause | None
) -> None:
    session = a_session(tmp_path)
    replied(session, created_at=1, usage=Usage(cache_write=9_000, output=5))
    replied(session, created_at=401_000, started_at=started_at, usage=Usage(input=9_900, output=5))
    miss = steps(session)[-1].miss
    assert miss is not None
    assert miss.cause is cause


@pytest.mark.parametrize(
    ("tools", "cause"), [(("read",), BreakCause.HEAD), (("read", "job"), BreakCause.TOOLS)]
)
def test_a_miss_after_another_head_says_whether_it_was_the_tools(
    tmp_path: Path, tools: tuple[str, ...], cause: BreakCause
) -> None:
    session = a_session(tmp_path)
    for names in (("read",), tools):
        offered = tuple(ToolSchema(name=name, description="", parameters={}) for name in names)
        session.append(SystemEntry(blocks=("Be good.", str(cause)), tools=offered, model=MODEL))
        asked(session)
        replied(session, usage=Usage(input=100, cache_write=9_000), estimate=9_100)
    assert [step.miss and step.miss.cause for step in steps(session)] == [None, cause]
