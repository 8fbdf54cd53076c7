"""What a kind of entry says of itself holds wherever kinds are told apart, so that a new one cannot be forgotten."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.texts import answered, said
from tui_agent.acp.updates import Updates
from tui_agent.agent.archive import entry_text
from tui_agent.context.branch_summary import holds_message
from tui_agent.context.budget import Weights
from tui_agent.context.cache import BreakCause, prefix_break
from tui_agent.context.projection import ModelTraits, project
from tui_agent.context.tokens import TokenCounter
from tui_agent.context.view import resolve
from tui_agent.session import entries
from tui_agent.session.entries import CONTENT, KINDS, BookkeepingEntry, EntryAdapter
from tui_agent.session.records import Outlines
from tui_agent.session.rows import size_of, text_of
from tui_agent.session.session import Session
from tui_agent.session.skeleton import Headers
from tui_agent.session.store import Store
from tui_agent.session.tree_index import UNKNOWN_KIND
from tui_agent.ui import panel_content
from tui_agent.ui.widgets.transcript.build import BuildContext, blocks_of
from tui_agent.ui.widgets.transcript.source import estimate
from tui_agent.ui.widgets.tree.rows import Filter, rows_of

MODEL = "test/model"
USAGE = entries.Usage(input=1, output=1)
CALL = entries.ToolCallPart(call_id="c", tool="read", arguments='{"path": "a.py"}')
BEFORE: tuple[entries.Entry, ...] = (
    entries.SystemEntry(blocks=("You are an agent.",), model=MODEL),
    said("begin"),
    entries.AssistantEntry(parts=(entries.TextPart(text="I look."), CALL), model=MODEL),
)
"""Entries 1, 2 and 3: what the one under test, entry 4, comes after."""

SAMPLES: dict[str, entries.Entry] = {
    entry.kind: entry
    for entry in (
        entries.SystemEntry(blocks=("Be brief.",), model=MODEL),
        said("needle"),
        entries.ShellEntry(command="needle", output="o"),
        entries.AssistantEntry(parts=(entries.TextPart(text="needle"),), model=MODEL, usage=USAGE, cost=0.5),
        entries.ToolResultEntry(call_id="c", tool="read", status=entries.ToolStatus.COMPLETED, output="needle"),
        entries.CompactionEntry(
            summary="needle", first_kept_id=2, tokens_before=9, tokens_after=1, trigger="manual",
            model=MODEL, usage=USAGE, cost=0.5,
        ),
        entries.BranchSummaryEntry(summary="needle", from_id=2, model=MODEL, usage=USAGE, cost=0.5),
        entries.PruneEntry(targets=(2,), tokens_freed=5, reason="threshold"),
        entries.ContextEditEntry(target=2, action="mask"),
        entries.ModelChangeEntry(model=MODEL),
        entries.EffortChangeEntry(effort=None),
        entries.ModeChangeEntry(mode="plan"),
        entries.CheckpointEntry(files=(entries.FileChange(path="a.py"),)),
        entries.CheckEntry(command="make test", output="needle", exit_code=1),
        entries.SubagentEntry(agent="explore", task="needle", call_id="c"),
        entries.RaceEntry(prompt="needle", runners=(entries.RaceRunner(name="sonnet"),), taken=1),
    )
}  # fmt: skip

every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def grown(tmp_path: Path) -> Callable[[str], Session]:
    """Store a session that ends with an entry of a kind."""

    def grow(kind: str) -> Session:
        store = Store(tmp_path / "sessions.db", clock=lambda: 1_000)
        session = Session(store, store.create_session("/project").id, estimate=lambda _entry: 7)
        session.append_many([*BEFORE, SAMPLES[kind]])
        return session

    return grow


def test_there_is_a_sample_of_every_kind_and_each_has_a_letter_of_its_own() -> None:
    assert (
        SAMPLES.keys()
        == KINDS.keys()
        == EntryAdapter.json_schema()["discriminator"]["mapping"].keys()
    )
    assert len({UNKNOWN_KIND, *(entry.letter for entry in KINDS.values())}) == len(KINDS) + 1


@every_kind
def test_it_says_its_text_for_searches_recall_and_summaries(kind: str) -> None:
    entry = SAMPLES[kind].model_copy(update={"preview": "needle"})
    is_message = KINDS[kind].is_message is not False
    assert is_message is not issubclass(KINDS[kind], BookkeepingEntry)
    assert "needle" in text_of(entry) or kind == "checkpoint"
    assert any(entry.texts(*CONTENT)) is is_message
    assert bool(entry_text(entry)) is is_message


@every_kind
def test_the_store_finds_it_in_lists_the_tree_and_costs(
    grown: Callable[[str], Session], kind: str
) -> None:
    session = grown(kind)
    reopened = Session(session.store, session.id, estimate=lambda _entry: 1)
    assert reopened.entry(4).kind == kind
    assert reopened.entry(4).preview
    assert reopened.path_outline().kinds[-1] == kind == reopened.skeleton()[3].kind
    assert reopened.skeleton().of_kinds([kind])[-1] == 3
    assert (4 in [record.id for record in reopened.reader.requests()]) is KINDS[kind].costs
    assert ({"model", "usage", "cost"} <= KINDS[kind].model_fields.keys()) is KINDS[kind].costs
    found = session.store.mentionable(session.id, "4", 10)
    assert (4 in [header.id for header in found]) is KINDS[kind].is_mentionable


@every_kind
@pytest.mark.parametrize("after", [0, 1, 2])
def test_undo_takes_back_it_alone_or_with_its_turn_whatever_files_were_kept_after_it(
    grown: Callable[[str], Session], kind: str, after: int
) -> None:
    session = grown(kind)
    session.append_many([SAMPLES["checkpoint"]] * after)
    alone = KINDS[kind].undone_alone or kind == "user"
    assert session.history.newest().entry == (4 if alone else 2)


@every_kind
def test_the_request_and_its_weight_hold_it_if_it_is_sent(
    grown: Callable[[str], Session], kind: str
) -> None:
    path = grown(kind).path()
    view = resolve(path)
    before, request = (project(known, ModelTraits(MODEL)) for known in (path[:3], path))
    sent = any(4 in message.origin for message in request.messages if message.role != "system")
    assert sent is SAMPLES[kind].is_sent
    assert bool(Weights(view, TokenCounter(MODEL), ModelTraits(MODEL)).of(path[-1])) is sent
    assert holds_message(Outlines((4,), (kind,), (1,)), lambda _ids: [path[-1]]) is sent
    changes_view = bool(view.states) or view.compaction is not None
    assert changes_view is KINDS[kind].edits_view
    found = prefix_break(before, request, path[3:])
    # A result takes the place of the stand-in that was sent for it.
    assert found is None or KINDS[kind].breaks_prefix or kind == "tool_result"
    assert found is None or found.cause is not BreakCause.UNKNOWN


@every_kind
def test_of_the_past_of_a_compaction_only_the_last_state_counts(
    grown: Callable[[str], Session], kind: str
) -> None:
    session = grown(kind)
    session.append_many([SAMPLES[kind], said("kept")])
    session.append(
        entries.CompactionEntry(
            summary="s", first_kept_id=6, tokens_before=9, tokens_after=1, trigger="manual"
        )
    )
    active = [entry.id for entry in session.active_path()]
    assert (5 in active) is (KINDS[kind].sets_state or kind == "context_edit")
    assert 4 not in active or kind == "context_edit"


@every_kind
def test_the_transcript_and_an_editor_show_what_is_shown(kind: str, tmp_path: Path) -> None:
    told = list(Updates(tmp_path).replay(SAMPLES[kind]))
    assert bool(told) or not (KINDS[kind].is_dialogue or kind in {"shell", "tool_result"})
    entry = SAMPLES[kind].model_copy(update={"id": 4})
    blocks = blocks_of(entry, BuildContext())
    assert bool(blocks) is KINDS[kind].is_shown is (estimate(kind, size_of(entry), 80) > 0)
    assert {block.kind for block in blocks} <= {"marker"} or not KINDS[kind].is_marker


@every_kind
def test_the_tree_leaves_out_what_is_quiet_and_the_outline_what_is_not_in_it(kind: str) -> None:
    entry = SAMPLES[kind].model_copy(update={"id": 1, "preview": "words"})
    headers = Headers.of([entry])  # type: ignore[list-item]  # a header is the first fields of an entry
    assert bool(list(rows_of(headers, Filter.DEFAULT, {}).firsts)) is not KINDS[kind].is_quiet
    assert list(rows_of(headers, Filter.EVERYTHING, {}).firsts) == [0]
    headers = Headers.of(
        entry.model_copy(update={"id": number, "parent_id": number - 1 or None, "preview": "words"})  # type: ignore[misc]
        for number, entry in enumerate([said("first"), SAMPLES[kind], answered("last")], start=1)
    )
    rows = panel_content.outline(headers, 3, {})
    assert (2 in [row.entry_id for row in rows]) is KINDS[kind].in_outline
