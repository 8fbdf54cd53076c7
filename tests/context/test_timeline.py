"""The timeline of a path: what each request took, and what changed it, from the entries alone."""

from pathlib import Path

from tests.support.long_walk import walked
from tui_agent.agent.timeline import CHANGING_KINDS, Mark, ModelScale, PathShape, Step, marks_after, steps_of
from tui_agent.context.cache import BreakCause
from tui_agent.session.entries import (
    AssistantEntry,
    CompactionEntry,
    ContextEditEntry,
    Entry,
    PruneEntry,
    SystemEntry,
    TextPart,
    Usage,
    UserEntry,
)
from tui_agent.session.session import Session
from tui_agent.session.store import Store

MODEL = "test/model"


def a_session(tmp_path: Path) -> Session:
    store = Store(tmp_path / "sessions.db")
    session = Session(store, store.create_session("/project").id, estimate=lambda entry: entry.tokens or 10)
    session.append(SystemEntry(blocks=("You are an agent.",), model=MODEL, tokens=1_200))
    return session


def shape_of(session: Session) -> PathShape:
    outline = session.path_outline()
    changes = [row.id for row in outline if row.kind in CHANGING_KINDS]
    return PathShape(outline.ids, session.reader.requests(), session.reader.load(changes), session.returns())


def steps(session: Session, *, window: int = 16_000) -> list[Step]:
    return steps_of(shape_of(session), lambda _model: ModelScale(window), 300)


def answer(session: Session, **fields: object) -> Entry:
    fields.setdefault("estimate", 1_000)
    return session.append(AssistantEntry(parts=(TextPart(text="so"),), model=MODEL, **fields))  # type: ignore[arg-type]


def asked(session: Session, text: str = "go on") -> Entry:
    return session.append(UserEntry(parts=(TextPart(text=text),), tokens=20))


def test_each_answer_is_a_step_as_big_as_reported_with_marks_of_what_came_before_it(tmp_path: Path) -> None:
    session = a_session(tmp_path)
    walked(session, model=MODEL)
    found = steps(session)
    answers = [entry for entry in session.path() if isinstance(entry, AssistantEntry)]
    assert [step.answer for step in found] == [entry.id for entry in answers]
    assert [step.total for step in found] == [entry.usage.prompt for entry in answers if entry.usage]
    assert all(step.exact and step.head == 1_200 and step.window == 16_000 for step in found)
    assert [step.leaf for step in found] == [entry.parent_id for entry in answers]

    session = a_session(tmp_path)
    walked(session, model=MODEL)
    found = steps(session)
    path = session.path()
    marked = [(at, step.marks) for at, step in enumerate(found) if step.marks]
    for at, marks in marked:
        previous = found[at - 1].answer or 0
        between = [entry for entry in path if previous < entry.id < (found[at].answer or 0)]
        assert any(isinstance(entry, CompactionEntry) for entry in between) is (Mark.COMPACTION in marks)
        assert any(isinstance(entry, PruneEntry) for entry in between) is (Mark.PRUNE in marks)
    assert [marks[0] for _, marks in marked] == [Mark.PRUNE, Mark.MOVE, Mark.MISS, Mark.COMPACTION]
    cold = next(step for step in found if step.marks == (Mark.MISS,))
    assert cold.miss is not None
    assert cold.miss.cause is BreakCause.COLD


def test_a_move_and_an_edit_are_marked(tmp_path: Path) -> None:
    session = a_session(tmp_path)
    asked(session)
    answer(session)
    session.move(1)
    asked(session, "another way")
    answer(session)
    assert [step.marks for step in steps(session)] == [(Mark.MOVE,)]

    session = a_session(tmp_path)
    asked(session)
    last = answer(session)
    assert marks_after(shape_of(session), last.id) == ()
    session.append(ContextEditEntry(target=2, action="mask"))
    assert marks_after(shape_of(session), last.id) == (Mark.EDIT,)


def test_each_request_has_the_window_of_its_own_model(tmp_path: Path) -> None:
    session = a_session(tmp_path)
    asked(session)
    answer(session, usage=Usage(input=900, output=5))
    session.append(AssistantEntry(parts=(TextPart(text="so"),), model="other", usage=Usage(input=800, output=5)))
    windows = {MODEL: 8_000, "other": 200_000}
    found = steps_of(shape_of(session), lambda model: ModelScale(windows[model]), 300)
    assert [step.window for step in found] == [8_000, 200_000]
    assert [step.head for step in found] == [900, 800], "a head is never more than the whole"
