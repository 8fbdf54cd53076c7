from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import numbered
from tests.support.entry_strategies import paths
from tests.support.session_paths import PathBuilder
from tests.support.thoroughness import EXAMPLES
from tui_agent.agent.context_inspector import room_made
from tui_agent.context.budget import ContextSize
from tui_agent.context.compaction import (
    CompactionPlan,
    PlanOptions,
    Refusal,
    RefusalReason,
    boundaries,
    carried_details,
    compaction_entry,
    plan_compaction,
    recut,
    with_summary,
    without_oldest_turn,
)
from tui_agent.context.compaction_policy import NO_FAILURES, HoldReason, hold, is_due
from tui_agent.context.files import FileOperations, call_path, file_operations
from tui_agent.context.preserved import Budgets, digest, fit
from tui_agent.context.rendering import carried_blocks, pinned_text
from tui_agent.context.settings import CompactionSettings, ContextSettings
from tui_agent.context.templates import Templates
from tui_agent.context.view import resolve
from tui_agent.session.entries import (
    FilePart,
    ImagePart,
    PinnedText,
    SummaryDetails,
    TextPart,
    ToolMetadata,
    ToolStatus,
    UserEntry,
)
from tui_agent.tools.registry import tool_traits

SETTINGS = ContextSettings()


def words(text: str) -> int:
    return len(text.split())


def size(budget: int = 40_000, history: int = 38_000, fixed: int = 2_000) -> ContextSize:
    window = budget + fixed + 5_000
    return ContextSize(
        fixed, history, fixed + history, window, 5_000, budget + fixed, None, estimated=True
    )


def plan(build: PathBuilder, keep: int | None = None, **fields) -> CompactionPlan | Refusal:
    return plan_compaction(
        build.path, SETTINGS, size(), PlanOptions(tool_traits(), keep_recent=keep, **fields)
    )


def planned(build: PathBuilder, keep: int | None = None, **fields) -> CompactionPlan:
    found = plan(build, keep, **fields)
    assert isinstance(found, CompactionPlan), found
    return found


def four_turns() -> PathBuilder:
    build = PathBuilder()
    for number in range(4):
        build.user(f"question {number}", tokens=50)
        build.say(f"answer {number}", tokens=50)
    return build


def outputs(tokens: int) -> PathBuilder:
    build = PathBuilder()
    build.user("go", tokens=50)
    for number in range(12):
        build.run("read", {"path": f"{number}.py"}, "x" * 300, tokens=tokens)
    return build


def ids(entries) -> list[int]:
    return [entry.id for entry in entries]


@pytest.mark.parametrize(
    ("keep", "first_kept", "split"),
    [(50, 8, True), (51, 7, False), (101, 6, True), (151, 5, False), (301, 2, True)],
)
def test_worked_example(keep, first_kept, split):
    found = planned(four_turns(), keep)
    assert found.first_kept_id == first_kept
    assert bool(found.turn_prefix) is split
    assert ids(found.turn_prefix) == ([first_kept - 1] if split else [])
    assert ids(found.history) == list(range(1, first_kept - (1 if split else 0)))
    assert ids(found.kept) == list(range(first_kept, 9))


def test_a_turn_starts_at_a_users_command_too_and_invisible_entries_go_to_the_kept_side():
    build = PathBuilder()
    build.user("one", tokens=100)
    build.say("yes", tokens=100)
    build.shell("make", "output")
    build.say("built", tokens=100)
    assert ids(planned(build, keep=100).turn_prefix) == [3]
    hidden = PathBuilder()
    hidden.user("one", tokens=100)
    hidden.shell("make", "output", excluded=True)
    hidden.say("yes", tokens=100)
    assert ids(planned(hidden, keep=100).turn_prefix) == [1]

    build = four_turns()
    tail = build.path[6:]
    build.path = build.path[:6]
    change = build.model("other/model")
    edit = build.edit(2, "pin")
    build.path += [entry.model_copy(update={"id": entry.id + 10}) for entry in tail]
    found = planned(build, keep=100)
    assert not found.turn_prefix
    assert found.first_kept_id == change.id
    assert ids(found.kept)[:2] == [change.id, edit.id]


def test_a_compaction_goes_on_from_the_previous_one_and_carries_its_details_once():
    build = four_turns()
    build.compaction("## Goal\nfirst summary", first_kept_id=5)
    build.user("question 4", tokens=50)
    build.say("answer 4", tokens=50)
    found = planned(build, keep=100)
    assert ids(found.history) == [5, 6, 7, 8]
    assert found.previous_summary == "## Goal\nfirst summary"

    build = four_turns()
    details = SummaryDetails(
        read_files=("old.py",),
        modified_files=("made.py",),
        user_messages=("#1 question 0", "#2 from long ago"),
    )
    build.compaction("summary", first_kept_id=5, details=details)
    build.run("read", {"path": "new.py"}, "text", tokens=100)
    build.user("newest", tokens=50)
    build.say("yes", tokens=100)
    carried = carry(build)
    assert carried.read_files == ("old.py", "new.py")
    assert carried.modified_files == ("made.py",)
    assert carried.user_messages[:2] == ("#1 question 0", "#2 from long ago")
    assert len(carried.user_messages) == len(set(carried.user_messages)) == 5


def test_a_refusal_says_why():
    build = four_turns()
    build.compaction("summary", first_kept_id=5)
    build.model("other/model")
    found = plan(build, keep=50)
    assert found.reason is RefusalReason.ALREADY_COMPACTED

    build = PathBuilder()
    first = build.user("word " * 40_000, tokens=40_000)
    found = plan(build)
    assert found.reason is RefusalReason.NOTHING_TO_COMPACT
    assert (
        found.message
        == f"There is nothing to summarise. #{first.id} (user) alone takes 40,000 tokens: hide or clear it in /context."
    )

    found = plan(four_turns(), boundary=1)
    assert (found.reason, found.message) == (
        RefusalReason.NOTHING_TO_COMPACT,
        "There is nothing to summarise before #1.",
    )

    overhead = (("environment", 300), ("tools", 12_000), ("AGENTS.md", 7_000), ("skills", 1_700))
    full = ContextSize(21_000, 500, 21_500, 32_000, 11_000, 21_000, None, estimated=True)
    found = plan_compaction(
        four_turns().path, SETTINGS, full, PlanOptions(tool_traits(), overhead=overhead)
    )
    assert (
        found.message
        == "Instructions and tools take 21k of the window's 32k tokens: tools 12k, AGENTS.md 7.0k, skills 1.7k."
    )


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (four_turns(), "The messages take only 400 tokens, and the newest 10,000 are kept."),
        (
            outputs(1_700),
            "The messages take only 7,422 tokens once old outputs are cleared, and the newest 10,000 are kept.",
        ),
        (outputs(150), "The messages take only 2,102 tokens, and the newest 10,000 are kept."),
    ],
    ids=["messages", "clearable outputs", "small outputs"],
)
def test_a_refusal_says_how_little_there_is_and_whether_outputs_were_cleared_for_it(build, message):
    assert plan(build).message == message


@pytest.mark.parametrize("sizes", [(50,) * 8, (900, 50, 20, 30), (20, 900, 20, 30), (5, 5)])
def test_what_the_user_asks_for_is_compacted_however_short_it_is(sizes):
    build = PathBuilder()
    for at, tokens in enumerate(sizes):
        (build.say if at % 2 else build.user)(f"text {at}", tokens=tokens)
    assert plan(build).reason is RefusalReason.NOTHING_TO_COMPACT
    found = planned(build, trigger="manual")
    assert found.tokens_summarised > 0
    assert found.kept
    assert found.tokens_kept <= max(sum(sizes) // 4, *sizes)


def test_a_single_message_is_not_compacted():
    build = PathBuilder()
    build.user("go", tokens=50)
    message = "There is nothing to summarise before the newest message."
    assert plan(build, trigger="manual").message == message


def test_cutting_or_clearing_outputs_is_offered_where_that_is_enough():
    build = PathBuilder()
    build.user("go", tokens=50)
    huge = build.run("bash", {"command": "cat"}, "x" * 100_000, tokens=30_000)
    found = plan(build)
    assert isinstance(found, Refusal)
    (cut,) = found.prunes
    assert cut.targets == (huge.id,)
    assert cut.keep_chars == 77_000  # 24,000 tokens are the goal

    found = plan(outputs(1_700))
    assert isinstance(found, Refusal)
    (prune,) = found.prunes
    assert prune.keep_chars == 0
    assert prune.tokens_freed > 8_000
    little = plan(outputs(150))
    assert isinstance(little, Refusal)
    assert not little.prunes


def test_a_huge_newest_output_leaves_room_for_the_summary_and_all_that_is_carried():
    build = PathBuilder()
    for number in range(40):
        build.user(f"question {number}", tokens=500)
        build.say(f"answer {number}", tokens=500)
    build.run("bash", {"command": "cat"}, "x" * 100_000, tokens=30_000)
    found = planned(build, keep=1_000)
    (cut,) = found.prunes
    carried = Budgets.of(SETTINGS.compaction, 40_000)
    parts = (carried.user_messages, carried.anchors, carried.files, carried.state)
    room = 24_000 - SETTINGS.compaction.summary_tokens(40_000) - sum(parts)
    kept = cut.keep_chars * 0.3  # 30,000 tokens of 100,000 characters
    assert 1_000 < kept <= room


def test_moving_the_cut_lists_what_no_summary_covers():
    build = four_turns()
    found = planned(build, keep=200)
    shorter = recut(found, 100)
    assert ids(shorter.unsummarised) == [5, 6]
    assert ids(shorter.kept) == [7, 8]
    assert recut(shorter, 100) is None
    last = without_oldest_turn(found)
    assert ids(last.kept) == [7, 8]
    step = without_oldest_turn(last)
    assert ids(step.kept) == [8]
    assert without_oldest_turn(step) is None


def carry(
    build: PathBuilder, keep: int = 100, summary: str = "", budget: int = 40_000
) -> SummaryDetails:
    found = plan_compaction(
        build.path, SETTINGS, size(budget), PlanOptions(tool_traits(), keep_recent=keep)
    )
    assert isinstance(found, CompactionPlan)
    return carried_details(found, summary, words)


def test_user_messages_are_carried_verbatim_the_first_and_the_newest_that_fit():
    build = PathBuilder()
    build.add(
        UserEntry(
            parts=(
                TextPart(text="Port   the theme,\nplease"),
                FilePart(path="a.md", text="long " * 500),
                ImagePart(blob="b" * 64, mime="image/png", path="shot.png"),
            ),
            tokens=700,
        )
    )
    build.user("Continue if you have next steps", synthetic="compaction")
    build.user("Never touch main", mid_run=True)
    build.say("ok", tokens=200)
    assert carry(build).user_messages == (
        "#1 Port   the theme,\nplease\n@a.md\n[image: shot.png]",
        "#3 Never touch main",
    )

    build = PathBuilder()
    for number in range(20):
        build.user(f"message {number} " + "word " * 60, tokens=60)
    build.say("ok", tokens=200)
    carried = carry(build, budget=4_000).user_messages  # 400 tokens
    assert carried[0].startswith("#1 message 0 ")
    assert carried[-1].startswith("#20 message 19 ")
    numbers = [int(text.split()[0][1:]) for text in carried[1:]]
    assert numbers == list(range(numbers[0], 21))
    assert sum(words(text) for text in carried) <= 400


def test_lists_skills_and_pins_are_carried_as_they_stand():
    build = PathBuilder()
    build.user("go", tokens=50)
    build.run("todo", {"items": []}, "[ ] first", tokens=10)
    build.run("skill", {"name": "release"}, "How to release", title="release", tokens=10)
    build.run("todo", {"items": []}, "[x] first [ ] second", tokens=10)
    build.say("ok", tokens=200)
    first = carry(build)
    assert [(item.tool, item.name, item.text) for item in first.state] == [
        ("skill", "release", "How to release"),
        ("todo", "", "[x] first [ ] second"),
    ]
    build.compaction("summary", first_kept_id=build.path[-1].id, details=first)
    build.user("more", tokens=100)
    build.say("ok", tokens=200)
    assert carry(build).state == first.state

    build = four_turns()
    build.edit(2, "pin")
    found = planned(build, keep=100)
    details = carried_details(found, "", words)
    assert [(pin.id, pin.text) for pin in details.pinned] == [(2, "answer 0")]
    build.compaction("summary", found.first_kept_id, details=details)
    build.user("next", tokens=100)
    build.say("ok", tokens=100)
    assert [pin.id for pin in carried_details(planned(build, keep=100), "", words).pinned] == [2]
    build.edit(2, "restore")
    build.say("ok", tokens=100)
    assert carried_details(planned(build, keep=100), "", words).pinned == ()


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (numbered.user(1, "go"), "go"),
        (
            numbered.answer(2, "I look.", numbered.call("a", '{"path": "x"}')),
            'I look.\nread {"path": "x"}',
        ),
        (numbered.result(3, "a", "data", title="x.py"), "read x.py\ndata"),
        (numbered.compaction(4, None, "We fixed it."), "We fixed it."),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_a_pin_of_any_kind_of_entry_is_carried_with_its_text(entry, text):
    assert pinned_text(entry, Templates()) == PinnedText(id=entry.id, text=text)


def test_anchors_have_no_trace_of_hidden_entries_and_do_not_repeat_what_stays_in_view():
    build = PathBuilder()
    build.user("go", tokens=50)
    secret = build.run(
        "bash", {"command": "env"}, "error: token leakedValue42 at src/secret_file.py", tokens=50
    )
    build.edit(secret.id, "drop")
    build.user("SECRET message", tokens=50)
    build.edit(build.path[-1].id, "mask")
    build.say("ok", tokens=200)
    found = planned(build, keep=100)
    text = str(carried_details(found, "", words))
    assert "leakedValue42" not in text
    assert "SECRET" not in text

    build = PathBuilder()
    build.user("go", tokens=50)
    build.say(
        "look at src/summarised_file.py\nand src/kept_file.py\nand src/told_file.py", tokens=300
    )
    build.user("next", tokens=50)
    build.say("and src/kept_file.py", tokens=100)
    lines = "\n".join(carry(build, keep=100, summary="told: and src/told_file.py").anchors)
    assert "src/summarised_file.py" in lines
    assert "kept_file" not in lines
    assert "told_file" not in lines


def test_an_entry_keeps_what_the_last_one_said_or_cuts_its_summary_to_the_budget():
    build = four_turns()
    build.compaction("## Goal\nport it", first_kept_id=5)
    build.user("next", tokens=100)
    build.say("kept", tokens=200)
    entry = compaction_entry(planned(build, keep=200), "", words)
    assert entry.summary.startswith("## Goal\nport it")
    assert "answer 3" in entry.summary

    found = planned(four_turns(), keep=100)
    told = compaction_entry(found, "## Goal " + "word " * 50_000 + "## Next", words).summary
    assert words(told) <= found.summary_tokens
    assert told.startswith("## Goal")
    assert told.endswith("## Next")


@given(paths(max_size=25), st.integers(0, 30_000), st.integers(1, 60_000))
@settings(max_examples=EXAMPLES, deadline=None)
def test_plans_are_deterministic_and_never_part_a_call_from_its_result(path, keep, budget):
    options = PlanOptions(tool_traits(), keep_recent=keep)
    found = plan_compaction(path, SETTINGS, size(budget), options)
    assert found == plan_compaction(list(path), SETTINGS, size(budget), options)
    if isinstance(found, Refusal):
        assert found.message
        return
    entries = found.view.entries
    assert found.dropped + found.kept == entries
    assert found.kept[0].id == found.first_kept_id
    assert [e.id for e in (*found.history, *found.turn_prefix)] == [
        e.id for e in found.dropped if e.id in {x.id for x in (*found.history, *found.turn_prefix)}
    ]
    kept = {entry.id for entry in found.kept}
    for entry_id, row in found.view.results.items():
        for result in row:
            if result is not None:
                assert (entry_id in kept) == (result.id in kept)
    assert sum(1 for _ in found.history) + sum(1 for _ in found.turn_prefix) > 0


def up_to(build: PathBuilder, boundary: int, **fields) -> CompactionPlan | Refusal:
    options = PlanOptions(tool_traits(), boundary=boundary, trigger="manual", **fields)
    return plan_compaction(build.path, ContextSettings(), size(), options)


def test_a_person_says_what_is_the_first_entry_to_stay():
    build = four_turns()
    path = build.path
    for place in boundaries(path):
        plan = up_to(build, place.entry_id)
        assert plan.first_kept_id == plan.boundary == place.entry_id
        assert ids((*plan.history, *plan.turn_prefix)) == [
            e.id for e in path if e.id < place.entry_id and e.is_sent
        ]
        assert plan.prunes == ()
        assert place.is_turn is isinstance(plan.kept[0], UserEntry)
    build.run("bash", {"command": "ls"}, "ok")
    build.say("done")
    assert [place.entry_id for place in boundaries(build.path)][-2:] == [9, 11], (
        "none is between a call and its result"
    )


def test_a_boundary_can_be_moved_on_but_not_to_where_nothing_is_left_to_summarise():
    build = four_turns()
    refused = up_to(build, build.path[0].id)
    assert refused.message == f"There is nothing to summarise before #{build.path[0].id}."

    build = four_turns()
    first = planned(build, 150)
    build.compaction("short", first.first_kept_id)
    later = boundaries(build.path)
    assert later
    moved = up_to(build, later[-1].entry_id)
    assert moved.previous_summary == "short"
    summarised = up_to(build, 1)
    assert summarised.message == "Everything before #1 has already been summarised."


def test_the_tail_can_be_bounded_in_turns():
    build = PathBuilder()
    for number in range(6):
        build.user(f"question {number}", tokens=500)
        build.say(f"answer {number}", tokens=500)
    bounded = ContextSettings(compaction=CompactionSettings(keep_turns=2, keep_recent_share=1.0))

    found = plan_compaction(
        build.path, bounded, size(6_000, 6_000), PlanOptions(tool_traits(), keep_recent=5_000)
    )

    assert [entry.text for entry in found.kept if isinstance(entry, UserEntry)] == [
        "question 4",
        "question 5",
    ]


def test_one_line_per_step_with_its_address_and_outcome_the_newest_first():
    build = PathBuilder()
    build.user("not told: carried elsewhere")
    build.call(("bash", {"command": "make"}), text="Let me\nbuild it.")
    build.result("c1", "boom", title="make", metadata=ToolMetadata(exit_code=2))
    build.run("edit", {"path": "a.py"}, "no match", status=ToolStatus.ERROR)
    build.call(("read", {"path": "b.py"}))
    build.shell("git status", "clean", exit_code=0)
    assert digest(build.path, 1_000, words).splitlines() == [
        "- #2 Let me build it.",
        "- #3 bash make → exit 2",
        '- #5 edit {"path": "a.py"} → error',
        '- #6 read {"path": "b.py"} → interrupted',
        "- #7 user ran `git status` → exit 0",
    ]

    build = PathBuilder()
    for number in range(20):
        build.say(f"step {number}")
    lines = digest(build.path, 20, words).splitlines()
    assert lines == [f"- #{number + 1} step {number}" for number in range(16, 20)]
    assert digest(build.path, 2, words) == ""


def test_fit_cuts_the_middle_and_never_exceeds_the_budget():
    def tokens(text):
        return -(-len(text) // 4)

    text = "START " + "中文内容" * 500 + " END"
    for budget in (12, 50, 300):
        shown = fit(text, budget, tokens)
        assert tokens(shown) <= budget
    assert fit(text, 300, tokens).startswith("START")
    assert fit(text, 300, tokens).endswith("END")
    assert fit(text, 10_000, tokens) == text
    assert fit(text, 5, tokens) == ""


def test_sources_of_file_operations_and_that_the_last_touch_counts():
    build = PathBuilder()
    build.add(UserEntry(parts=(FilePart(path="attached.md", text="x"),)))
    build.run("read", {"path": "./src/a.py"}, "text")
    build.run("read", {"path": "missing.py"}, "no such file", status=ToolStatus.ERROR)
    build.run("write", {"file_path": "src/b.py", "content": "x"}, "ok")
    build.run(
        "bash",
        {"command": "x"},
        "ok",
        metadata=ToolMetadata(modified_files=("gen.py",), read_files=("seen.py",)),
    )
    build.run("grep", {"path": "src"}, "matches")
    build.checkpoint("by_shell.py")
    assert file_operations(build.path, tool_traits()) == FileOperations(
        read=("attached.md", "src/a.py", "seen.py"), modified=("src/b.py", "gen.py", "by_shell.py")
    )

    build = PathBuilder()
    build.run("read", {"path": "a.py"}, "text")
    newest = build.path[-1].id
    build.branch_summary("b", from_id=9, details=SummaryDetails(file_ids={"a.py": 1, "b.py": 1}))
    assert file_operations(build.path, tool_traits()).ids == {"a.py": newest, "b.py": 1}

    build = PathBuilder()
    for path in ("a", "b", "c"):
        build.run("read", {"path": path}, "text")
    build.run("edit", {"path": "b"}, "ok")
    build.run("read", {"path": "a"}, "text")
    assert file_operations(build.path, tool_traits()) == FileOperations(
        read=("c", "a"), modified=("b",)
    )

    build = PathBuilder()
    build.branch_summary(
        "b", from_id=9, details=SummaryDetails(read_files=("r1",), modified_files=("m1",))
    )
    build.compaction("s", None, details=SummaryDetails(read_files=("r2", "m1")))
    earlier = SummaryDetails(read_files=("r0",), modified_files=("r2",))
    assert file_operations(build.path, tool_traits(), earlier) == FileOperations(
        read=("r0", "r1"), modified=("r2", "m1")
    )


@pytest.mark.parametrize(
    "arguments", ["", "{", "[1]", '{"path": 3}', '{"path": ""}', '{"pattern": "x"}', "[" * 5000]
)
def test_arguments_without_a_path(arguments):
    assert call_path(arguments) is None


def test_only_the_newest_files_of_a_long_list_are_shown_with_the_entries_that_told_of_them():
    operations = FileOperations(
        read=tuple(f"r{n}" for n in range(100)), modified=tuple(f"m{n}" for n in range(3))
    )
    shown = operations.shown(12, lambda text: len(text.split("\n")))
    assert shown == 8
    details = SummaryDetails(
        read_files=operations.read, modified_files=operations.modified, shown_files=shown
    )
    text = carried_blocks(details)
    assert "<read-files>\n(92 earlier files not listed)\nr92\n" in text
    assert "r91\n" not in text
    assert "<modified-files>\nm0\nm1\nm2\n</modified-files>" in text

    build = PathBuilder()
    for path in (
        "/home/someone/project/src/a.py",
        "/home/someone/project/b.py",
        "/home/someone/project/src/a.py",
    ):
        build.run("read", {"path": path}, "text")
    newest, other = build.path[-1].id, build.path[-3].id
    operations = file_operations(
        build.path, tool_traits(), SummaryDetails(read_files=("/home/someone/project/c.py",))
    )
    details = SummaryDetails(read_files=operations.read, file_ids=dict(operations.ids))
    assert carried_blocks(details).split("\n")[1:-1] == [
        "/home/someone/project/c.py",
        f"/home/someone/project/b.py #{other}",
        f"/home/someone/project/src/a.py #{newest}",
    ]
    assert file_operations([], tool_traits(), details).ids == operations.ids
    # Where the room is short, their directory is told once.
    number = operations.shown(80, len)
    short = carried_blocks(details.model_copy(update={"shown_files": number}))
    assert short.split("\n")[1:-1] == [
        "/home/someone/project/",
        "c.py",
        f"b.py #{other}",
        f"src/a.py #{newest}",
    ]


def started() -> PathBuilder:
    build = PathBuilder()
    build.user("go")
    return build


def test_no_second_compaction_by_a_model_without_a_completed_step():
    build = started()
    build.say("yes")
    build.compaction("summary", None)
    assert hold(build.path, SETTINGS.compaction, NO_FAILURES, "threshold") is HoldReason.NO_STEP
    build.say("", error="network", finish="error")
    build.say("half an answ", interrupted=True, finish="interrupted")
    build.user("and now?")
    assert hold(build.path, SETTINGS.compaction, NO_FAILURES, "overflow") is HoldReason.NO_STEP
    build.call(("read", {"path": "a"}))
    assert hold(build.path, SETTINGS.compaction, NO_FAILURES, "threshold") is None

    build = started()
    build.compaction("by rule", None, model=None)
    assert hold(build.path, SETTINGS.compaction, NO_FAILURES, "threshold") is None


def test_two_failures_pause_until_the_next_user_message():
    build = started()
    record = NO_FAILURES.failed(build.path)
    assert hold(build.path, SETTINGS.compaction, record, "threshold") is None
    build.user("Continue", synthetic="compaction")
    record = record.failed(build.path)
    assert hold(build.path, SETTINGS.compaction, record, "threshold") is HoldReason.PAUSED
    build.user("try again")
    assert hold(build.path, SETTINGS.compaction, record, "threshold") is None
    assert hold(build.path, SETTINGS.compaction, record.failed(build.path), "threshold") is None


@pytest.mark.parametrize(
    "settings", [CompactionSettings(auto=False), CompactionSettings(threshold=0)]
)
@pytest.mark.parametrize("trigger", ["threshold", "overflow", "model_switch"])
def test_off_means_off(settings, trigger):
    assert hold(started().path, settings, NO_FAILURES, trigger) is HoldReason.OFF


def test_a_person_may_always_compact():
    build = started()
    build.compaction("summary", None)
    record = NO_FAILURES.failed(build.path).failed(build.path)
    assert hold(build.path, CompactionSettings(auto=False), record, "manual") is None


def test_compaction_is_due_above_the_threshold_only():
    def of(total, threshold):
        return ContextSize(0, total, total, 100, 10, threshold, None, estimated=True)

    assert is_due(of(91, 90))
    assert not is_due(of(90, 90))
    assert not is_due(of(1_000, None))


def test_compactions_and_prunes_are_counted_and_the_newest_is_named() -> None:
    build = PathBuilder()
    build.user("go")
    assert room_made(build.path).sentence == ""
    build.prune(1, tokens_freed=900)
    assert room_made(build.path).sentence == "So far cleared old outputs once (900 tokens)."
    build.compaction("first", 1)
    build.prune(1, tokens_freed=1_100)
    newest = build.compaction("second", None, tokens_before=12_000, tokens_after=3_000)
    made = room_made(build.path)
    assert (made.compactions, made.prunes, made.freed, made.newest) == (2, 2, 2_000, newest)
    assert made.sentence == (
        "So far compacted 2 times, last at #5 (12,000 → 3,000 tokens of history), "
        "cleared old outputs 2 times (2,000 tokens)."
    )


NAMES = [f"name_{letter}" for letter in "abcdefgh"]


@settings(max_examples=EXAMPLES)
@given(
    before=st.lists(st.sets(st.sampled_from(NAMES), max_size=3), min_size=1, max_size=5),
    meanwhile=st.lists(
        st.tuples(st.sampled_from(NAMES), st.sets(st.sampled_from(NAMES), max_size=2)), max_size=5
    ),
    summary=st.sets(st.sampled_from(NAMES), max_size=3),
    budget=st.sampled_from([200, 2_000, 40_000]),
)
def test_what_the_agent_used_while_the_summary_was_written_is_told_or_named_as_missing(
    before, meanwhile, summary, budget
):
    build = PathBuilder()
    build.user("go", tokens=50)
    for names in before:
        text = "\n".join(f"the line of {name} with {'x' * 280}" for name in sorted(names))
        build.run("bash", {"command": "ls"}, text, tokens=100)
    build.say("now", tokens=10)
    begun = build.path[-1].id
    shown = set(summary)
    used = set()
    for name, names in meanwhile:
        build.run("bash", {"command": f"grep {name}"}, " ".join(sorted(names)), tokens=10)
        used.add(name)
        shown |= names
    found = plan_compaction(
        build.path, SETTINGS, size(), PlanOptions(tool_traits(), boundary=begun)
    )
    assert isinstance(found, CompactionPlan), found
    found = replace(found, boundary=None, begun=begun, budget=budget)
    details = carried_details(found, " ".join(sorted(summary)), words)
    held = set().union(*before)
    told = "\n".join(details.anchors)
    for name in (used & held) - shown:
        assert (name in told) is (name not in details.untold)
    assert set(details.untold) <= (used & held) - shown
    if budget > 2_000:
        assert not details.untold


def test_a_summary_made_while_nobody_worked_is_not_doubted():
    build = PathBuilder()
    build.user("go", tokens=50)
    build.run("bash", {"command": "ls"}, "def old_name(): ...", tokens=100)
    build.say("now", tokens=10)
    build.run("bash", {"command": "grep old_name"}, "nothing", tokens=10)
    found = planned(build, keep=20)
    assert not carried_details(found, "", words).untold


def test_a_summary_that_the_user_rewrote_keeps_the_same_entries_and_counts_its_own_words():
    build = four_turns()
    build.edit(8, "pin")
    build.compaction("one two three four", first_kept_id=5, tokens_before=900, tokens_after=100)
    view = resolve(build.path)

    def count(entry) -> int:
        return words(entry.summary)

    entry = with_summary(view, "one two", count)
    assert (entry.summary, entry.first_kept_id, entry.trigger) == ("one two", 5, "manual")
    assert (entry.tokens_before, entry.tokens_after) == (900, 98)
    assert entry.details.pinned == view.pinned
    assert with_summary(view, "one " * 10, count).tokens_after == 106
    assert with_summary(view, "", lambda one: 500 * words(one.summary)).tokens_after == 0
    with pytest.raises(ValueError, match="no summary is in force"):
        with_summary(resolve(four_turns().path), "one", count)
