import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.entry_strategies import paths
from tests.support.session_paths import PathBuilder
from tests.support.thoroughness import EXAMPLES
from tui_agent.context.branch_summary import (
    BranchBudget,
    MovePlan,
    branch_summary_entry,
    plan_branch_summary,
    plan_merge,
    plan_move,
)
from tui_agent.context.budget import ContextSize
from tui_agent.context.compaction import CompactionPlan, PlanOptions, plan_compaction
from tui_agent.context.request import ContentText, Message, ModelRequest
from tui_agent.context.serialise import blocks_of, compaction_tasks, serialise
from tui_agent.context.settings import CompactionSettings, ContextSettings
from tui_agent.context.summariser import (
    ATTEMPTS,
    THINKING,
    SummariserLimits,
    SummaryAnswer,
    SummaryCall,
    SummaryFailure,
    SummaryPrompts,
    SummaryTask,
    build_request,
    choose_input,
    chunk,
    rejection,
    summarise,
)
from tui_agent.context.view import resolve_all
from tui_agent.resources import prompt
from tui_agent.session.entries import (
    INTERRUPTED_OUTPUT,
    FilePart,
    ImagePart,
    ReasoningPart,
    SummaryDetails,
    TextPart,
    ToolCallPart,
    ToolMetadata,
    ToolSchema,
    UserEntry,
)
from tui_agent.session.records import Divergence, EntryOutline, Outlines
from tui_agent.tools.registry import tool_traits

PROMPTS = SummaryPrompts("COMPACT", "UPDATE", "PREFIX", "BRANCH", "MERGE")
LIMITS = SummariserLimits(window=100_000, summary=1_000)
GOOD = "## Goal\nport the theme to the new renderer"


def tokens(text: str) -> int:
    return -(-len(text) // 4)


def drive(tasks, answer, limits=LIMITS):
    """Answer every call with ``answer(call)`` and return the result and the batches of calls."""
    batches: list[tuple[SummaryCall, ...]] = []
    work = summarise(tasks, PROMPTS, limits, tokens)
    try:
        calls = next(work)
        while True:
            batches.append(calls)
            calls = work.send([answer(call) for call in calls])
    except StopIteration as end:
        return end.value, batches


def say(text):
    return lambda _call: SummaryAnswer(text)


def test_a_split_turn_is_two_calls_and_an_update_hands_over_or_keeps_the_previous_summary():
    _, batches = drive(
        [SummaryTask("compaction_update", ("[User]: hi",), previous="## Goal\nold")], say(GOOD)
    )
    call = batches[0][0]
    assert call.instruction == "UPDATE"
    assert call.text.index("<previous-summary>\n## Goal\nold") < call.text.index("<conversation>")

    tasks = [
        SummaryTask("compaction_update", (), previous="## Goal\nold"),
        SummaryTask("turn_prefix", ("b",)),
    ]
    result, batches = drive(tasks, say(GOOD))
    assert [call.instruction for call in batches[0]] == ["PREFIX"]
    assert result == f"## Goal\nold\n\n{GOOD}"

    tasks = [
        SummaryTask("compaction", ("a",), share=0.7),
        SummaryTask("turn_prefix", ("b",), share=0.3),
    ]
    result, batches = drive(
        tasks, lambda call: SummaryAnswer(f"## Goal\n{call.instruction} says enough")
    )
    assert len(batches) == 1
    assert len(batches[0]) == 2
    assert result == "## Goal\nCOMPACT says enough\n\n## Goal\nPREFIX says enough"


@pytest.mark.parametrize("focus", ["", "  ", "the tests"])
@pytest.mark.parametrize("previous", ["", "\n", "## Goal\nold"])
def test_a_call_says_nothing_outside_its_tags_and_has_none_for_what_is_blank(focus, previous):
    task = SummaryTask("compaction_update", ("[User]: hi",), previous=previous, focus=focus)
    _, batches = drive([task], say(GOOD))
    found = re.findall(r"<([a-z-]+)>\n(.+?)\n</\1>", batches[0][0].text, re.DOTALL)
    length = re.fullmatch(r"\d+ words", found[-1][1])
    wanted = {"previous-summary": previous, "conversation": "[User]: hi", "focus": focus}
    assert found == [(name, text) for name, text in wanted.items() if text.strip()] + [
        ("length", length[0])
    ]
    tagged = [f"<{name}>\n{text}\n</{name}>" for name, text in found]
    assert batches[0][0].text == "\n\n".join(tagged)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (SummaryAnswer(""), "says nothing"),
        (SummaryAnswer("No prior history."), "says nothing"),
        (SummaryAnswer(GOOD, finish="length"), "cut off"),
        (SummaryAnswer(GOOD, finish="content_filter"), "refused"),
        (SummaryAnswer(GOOD, tool_calls=1), "tool"),
        (SummaryAnswer(GOOD, error="connection lost"), "connection lost"),
    ],
)
def test_bad_answers_are_retried_and_never_become_a_summary(answer, reason):
    assert reason in (rejection(answer) or "")
    result, batches = drive([SummaryTask("compaction", ("a",))], lambda _call: answer)
    assert reason in result.reason
    assert [call.attempt for batch in batches for call in batch] == list(range(1, ATTEMPTS + 1))
    mended, _ = drive(
        [SummaryTask("compaction", ("a",))],
        lambda call: answer if call.attempt == 1 else SummaryAnswer(GOOD),
    )
    assert mended == GOOD


@pytest.mark.parametrize(
    "text",
    [
        "I can't help with that request.",
        "Sure! Next I will write the parser and then the tests for it.",
        "Let me think about what the user wants here.\n\n**Hmm**\nI am not sure.",
    ],
)
def test_what_is_no_summary_never_replaces_the_history(text):
    task = SummaryTask("compaction", ("[User]: mend load_config in src/app.py",), live=True)
    result, batches = drive([task], lambda _call: SummaryAnswer(text))
    assert isinstance(result, SummaryFailure)
    assert result.is_unfit
    assert len(batches) <= 1 + ATTEMPTS

    named = "The user wants load_config mended; nothing is done."
    assert drive([task], lambda _call: SummaryAnswer(named))[0] == named
    headed = "## Next Steps\n1. Mend what was asked for."
    assert drive([task], lambda _call: SummaryAnswer(headed))[0] == headed


def test_only_the_rejected_call_is_made_again_with_more_room_or_the_serialised_conversation():
    tasks = [SummaryTask("compaction", ("a",)), SummaryTask("turn_prefix", ("b",))]

    def answer(call):
        cut = call.instruction == "PREFIX" and call.attempt == 1
        return SummaryAnswer(f"{GOOD}: {call.instruction}", finish="length" if cut else "stop")

    result, batches = drive(tasks, answer)
    assert [len(batch) for batch in batches] == [2, 1]
    assert batches[1][0].max_output_tokens == 2 * batches[0][1].max_output_tokens
    assert result == f"{GOOD}: COMPACT\n\n{GOOD}: PREFIX"

    task = SummaryTask("compaction", ("[User]: hi",), live=True)
    result, batches = drive(
        [task], lambda call: SummaryAnswer(GOOD, tool_calls=1 if call.live else 0)
    )
    assert result == GOOD
    assert [call.live for batch in batches for call in batch] == [True, False]
    assert "conversation" not in batches[0][0].text
    accepted, batches = drive([task], say(GOOD))
    assert (accepted, len(batches)) == (GOOD, 1)


def test_a_refused_call_is_asked_for_in_halves():
    """The model counts more tokens than we do: nothing of the size that it refused is sent again."""
    blocks = tuple(f"[User]: message {number} " + "word " * 300 for number in range(18))
    limits = SummariserLimits(window=8_192, summary=500)
    refused: list[int] = []

    def answer(call):
        if len(call.text) > 12_000:
            refused.append(len(call.text))
            return SummaryAnswer(error="The request is larger than it takes.", too_long=True)
        return SummaryAnswer(GOOD)

    result, batches = drive([SummaryTask("compaction", blocks)], answer, limits)
    assert result == GOOD
    assert len(refused) == len(set(refused)) > 0
    assert all(f"message {number} " in str(batches) for number in range(18))

    never, _ = drive(
        [SummaryTask("compaction", blocks)],
        lambda _call: SummaryAnswer(error="Too long.", too_long=True),
        limits,
    )
    assert never == SummaryFailure("The summary was refused: Too long.", too_long=True)


@pytest.mark.parametrize(
    "refusal", [SummaryAnswer(finish="content_filter"), SummaryAnswer(error="No.", refused=True)]
)
@pytest.mark.parametrize("live", [False, True])
def test_raw_thinking_that_is_refused_is_left_out_and_asked_for_once_more(refusal, live):
    thinking = f"{THINKING}I weigh options"
    task = SummaryTask("compaction", ("[User]: go", thinking, "[Assistant]: done"), live=live)

    result, calls = drive(
        [task], lambda call: refusal if call.live or THINKING in call.text else SummaryAnswer(GOOD)
    )

    assert result == GOOD
    assert len(calls) == 2
    assert "[Assistant]: done" in calls[-1][0].text


def test_words_of_the_users_that_look_like_thinking_do_not_ask_for_ever():
    task = SummaryTask("compaction", (f"[User]: what is {THINKING}",))

    result, calls = drive([task], lambda _call: SummaryAnswer(finish="content_filter"))

    assert isinstance(result, SummaryFailure)
    assert len(calls) <= ATTEMPTS


def test_what_does_not_fit_is_summarised_in_chunks_and_merged():
    limits = SummariserLimits(window=8_000, summary=500)
    blocks = tuple(f"[User]: message {number} " + "word " * 400 for number in range(30))
    seen: list[str] = []

    def answer(call):
        if call.instruction == "MERGE":
            return SummaryAnswer(
                "merged: " + " ".join(sorted(set(call.text.split()) & set(seen))) + "\n## Progress"
            )
        seen.append(f"part{len(seen)}-of-the-many-parts")
        return SummaryAnswer(f"## Progress\n{seen[-1]}")

    result, batches = drive(
        [SummaryTask("compaction_update", blocks, previous="KNOWN before all this")], answer, limits
    )
    first = batches[0]
    assert len(first) == 3
    assert {call.instruction for call in first} == {"COMPACT"}
    for number in range(30):
        assert sum(f"message {number} " in call.text for call in first) == 1
    for call in (call for batch in batches for call in batch):
        assert (
            tokens(call.instruction) + tokens(call.text) + call.max_output_tokens <= limits.window
        )
    assert "<part>\nKNOWN before all this\n</part>" in batches[1][0].text
    assert len(batches[-1]) == 1
    assert result.startswith("merged: ")

    limits = SummariserLimits(window=4_000, summary=300)
    blocks = tuple("word " * 800 for _ in range(9))
    result, _ = drive(
        [SummaryTask("compaction", blocks)],
        lambda call: SummaryAnswer(
            GOOD, finish="length" if call.instruction == "MERGE" else "stop"
        ),
        limits,
    )
    assert isinstance(result, SummaryFailure)


@pytest.mark.parametrize(
    ("setting", "live", "serialised", "warm", "expected"),
    [
        ("auto", 50_000, 9_000, True, "live"),
        ("auto", 50_000, 9_000, False, "serialised"),
        (
            "auto",
            50_000,
            4_000,
            True,
            "serialised",
        ),  # 50k cached tokens cost more than 4k fresh ones
        ("auto", 99_000, 50_000, True, "serialised"),  # no room for the answer
        ("live", 50_000, 10, False, "live"),
        ("live", 99_000, 10, True, "serialised"),
        ("serialised", 10, 50_000, True, "serialised"),
    ],
)
def test_the_cheaper_input_that_fits_is_chosen(setting, live, serialised, warm, expected):
    chosen = choose_input(
        setting, LIMITS, live_tokens=live, serialised_tokens=serialised, cache_warm=warm
    )
    assert chosen == expected


def test_a_live_request_extends_the_conversations_own():
    tool = ToolSchema(name="read", description="Read", parameters={})
    live = ModelRequest("m", (Message("user", (ContentText("hi"),)),), tools=(tool,))
    request = build_request(SummaryCall("COMPACT", "<length>9</length>", 500, live=True), "m", live)
    assert request.messages[:-1] == live.messages
    assert request.tools == live.tools
    assert request.tool_choice == live.tool_choice
    assert request.max_output_tokens == 500
    assert request.messages[-1].text == "COMPACT\n\n<length>9</length>"


@given(st.lists(st.text(max_size=400), max_size=20), st.integers(40, 300))
@settings(max_examples=EXAMPLES, deadline=None)
def test_chunks_fit_and_keep_everything_that_fits(blocks, budget):
    texts = chunk(blocks, budget, tokens)
    assert all(tokens(text) <= budget for text in texts)
    joined = "\n\n".join(texts)
    if all(tokens(block) <= budget - 2 for block in blocks):
        assert joined == "\n\n".join(blocks)
    for block in blocks:
        if tokens(block) <= budget - 2:
            assert block in joined


def test_the_prompts_ask_for_the_structured_format():
    prompts = SummaryPrompts.load(prompt)
    headings = [
        "Goal",
        "Constraints & Preferences",
        "Progress",
        "Done",
        "In Progress",
        "Blocked",
        "Key Decisions",
    ]
    for text in (prompts.compaction, prompts.branch_summary):
        places = [
            text.index(f"# {heading}") for heading in [*headings, "Next Steps", "Critical Context"]
        ]
        assert places == sorted(places)
    for tag in ("<previous-summary>", "<conversation>", "<focus>"):
        assert tag in prompts.compaction_update
    assert "<part>" in prompts.merge_chunks
    assert "<conversation>" in prompts.turn_prefix
    for name in ("title", "continue", "step_limit"):
        assert prompt(name)


def test_every_kind_of_entry_has_its_mark():
    build = PathBuilder()
    build.system()
    build.user("What they said")
    asked = build.add(
        build.say("").model_copy(
            update={
                "parts": (
                    ReasoningPart(text="Internal reasoning", blob="{}"),
                    TextPart(text="Response text"),
                    ToolCallPart(call_id="a", tool="read", arguments='{"path": "foo.ts"}'),
                    ToolCallPart(call_id="b", tool="edit", arguments='{"path": "bar.ts", "n": 1}'),
                )
            }
        )
    )
    build.result("a", "Output from tool", "read")
    build.result("b", "Edited", "edit")
    assert serialise([build.path[1], asked, *build.path[-2:]]) == (
        "[User]: What they said",
        "[Assistant thinking]: Internal reasoning",
        "[Assistant]: Response text",
        '[Assistant tool calls]: read(path="foo.ts"); edit(path="bar.ts", n=1)',
        "[Tool result]: Output from tool",
        "[Tool result]: Edited",
    )

    build = PathBuilder()
    image = ImagePart(blob="b" * 64, mime="image/png", width=64, height=48, path="shot.png")
    build.add(UserEntry(parts=(TextPart(text="see"), FilePart(path="a.md", text="body"), image)))
    build.shell("make", "boom\n", exit_code=2)
    build.shell("secret", "hidden", excluded=True)
    build.branch_summary("tried it", from_id=9)
    build.compaction("not told here", None)
    cut_off = PathBuilder()
    cut_off.call(("read", {"path": "a.py"}))
    cleared = cut_off.user("old words")
    assert serialise(cut_off.path, replaced={cleared.id: "[cleared]"})[1:] == (
        f"[Tool result]: {INTERRUPTED_OUTPUT}",
        "[User]: [cleared]",
    )
    assert serialise(build.path) == (
        "[User]: see\n@a.md\nbody\n[image: shot.png, 64x48]",
        "[User]: ran `make` (exit code 2)\nboom",
        "[Summary of a branch that was left]: tried it",
    )


def test_results_are_cut_at_both_ends_and_missing_ones_marked_in_place():
    build = PathBuilder()
    build.run("bash", {"command": "START" + "x" * 5_000 + "STOP"}, "HEAD" + "y" * 9_000 + "TAIL")
    call, result = serialise(build.path)
    assert "START" in call
    assert 'STOP"' in call
    assert len(call) < 1_100
    assert result.startswith("[Tool result]: HEAD")
    assert result.endswith("TAIL")
    assert "characters left out] …" in result
    assert len(result) < 2_100

    build = PathBuilder()
    asked = build.call(("bash", {"command": "a"}), ("bash", {"command": "b"}))
    build.result(asked.tool_calls[0].call_id, "done")
    build.user("stop")
    build.call(("bash", {"command": "c"}))
    texts = serialise(build.path)
    assert texts[1:4] == (
        "[Tool result]: done",
        "[Tool result]: [Tool execution was interrupted]",
        "[User]: stop",
    )
    assert texts[-1] == "[Tool result]: [Tool execution was interrupted]"


def test_tasks_leave_out_what_the_user_took_out_of_view():
    build = PathBuilder()
    build.user("go", tokens=50)
    dropped = build.run("bash", {"command": "env"}, "SECRET", tokens=50)
    build.edit(dropped.id, "drop")
    masked = build.user("MASKED TEXT", tokens=50)
    build.edit(masked.id, "mask")
    build.say("kept", tokens=100)
    text = "\n".join(
        block for task in compaction_tasks(plan(build), "serialised") for block in task.blocks
    )
    assert "SECRET" not in text
    assert "interrupted" not in text
    assert "[User]: [Hidden: " in text


def test_the_summariser_reads_the_calls_that_were_answered():
    build = PathBuilder()
    build.user("go", tokens=50)
    build.run("bash", {"command": "make all"}, "built", tokens=50)
    build.say("done", tokens=50)
    build.say("kept", tokens=100)
    text = "\n".join(
        block for task in compaction_tasks(plan(build), "serialised") for block in task.blocks
    )
    assert '[Assistant tool calls]: bash(command="make all")' in text
    assert "[Tool result]: built" in text


def plan(build: PathBuilder) -> CompactionPlan:
    size = ContextSize(0, 900, 900, 50_000, 1_000, 40_000, None, estimated=True)
    found = plan_compaction(
        build.path,
        ContextSettings(),
        size,
        PlanOptions(tool_traits(), keep_recent=100, instructions="the bug"),
    )
    assert isinstance(found, CompactionPlan)
    return found


def test_a_split_turn_has_two_tasks_and_a_previous_summary_is_updated():
    build = PathBuilder()
    build.user("first", tokens=50)
    build.say("yes", tokens=50)
    build.user("second", tokens=50)
    build.say("working", tokens=50)
    build.say("kept", tokens=100)
    history, prefix = compaction_tasks(plan(build), "serialised")
    assert (history.prompt, history.blocks) == ("compaction", ("[User]: first", "[Assistant]: yes"))
    assert (prefix.prompt, prefix.blocks) == (
        "turn_prefix",
        ("[User]: second", "[Assistant]: working"),
    )
    assert history.focus == prefix.focus == "the bug"
    assert history.share + prefix.share == 1
    (live,) = compaction_tasks(plan(build), "live")
    assert live.live
    assert live.blocks == (*history.blocks, *prefix.blocks)

    build = PathBuilder()
    build.user("first", tokens=50)
    build.compaction("## Goal\nport it", first_kept_id=None)
    build.user("second", tokens=50)
    build.say("yes", tokens=50)
    build.user("third", tokens=50)
    build.say("kept", tokens=100)
    history, _ = compaction_tasks(plan(build), "serialised")
    assert (history.prompt, history.previous) == ("compaction_update", "## Goal\nport it")
    assert "port it" not in "".join(history.blocks)


@given(paths(max_size=25))
@settings(max_examples=EXAMPLES, deadline=None)
def test_any_path_can_be_told(path):
    texts = serialise(path)
    assert texts == serialise(list(path))
    assert all(text.startswith("[") for text in texts)


SETTINGS = ContextSettings()


def tree():
    """Return the paths of: system 1, user 2, say 3, then branch 4-5-6 and branch 7-8."""
    build = PathBuilder()
    build.system()
    build.user("root question")
    build.say("root answer")
    trunk = list(build.path)
    build.user("left question")
    build.say("left answer")
    build.say("left end")
    left = list(build.path)
    build.path = list(trunk)
    build.user("right question")
    build.say("right answer")
    return left, list(build.path)


def parting(path, other) -> Divergence:
    """Tell two paths from each other."""
    shared = [one.id for one, two in zip(path, other, strict=False) if one.id == two.id]
    left = Outlines.of(EntryOutline(entry.id, entry.kind, 0) for entry in path[len(shared) :])
    return Divergence(path[-1].id if path else None, shared[-1] if shared else None, left)


def loading(*paths):
    known = {entry.id: entry for path in paths for entry in path}
    return lambda ids: [known[entry_id] for entry_id in ids]


def moved(path, target, **fields) -> MovePlan:
    """Plan the move from the end of one path to the end of another."""
    end = target[-1].id if target else None
    return plan_move(parting(path, target), end, loading(path, target), **fields)


def summary(move: MovePlan, path, room: int = 10_000, **fields):
    abandoned = loading(path)(list(move.abandoned.ids))
    return plan_branch_summary(
        move, abandoned, SETTINGS, BranchBudget(room, 40_000, tokens), tool_traits(), **fields
    )


def ids(entries):
    return [entry.id for entry in entries]


def test_a_chosen_user_message_goes_back_into_the_prompt_and_the_leaf_before_it():
    left, right = tree()
    file = FilePart(path="a.py", text="text")
    right[3] = right[3].model_copy(update={"parts": (TextPart(text="right question"), file)})
    move = moved(left, right[:4])
    assert (move.target, move.leaf, move.prompt) == (right[3].id, 3, right[3].parts)
    tip = moved(left, right[:4], continue_from_here=True)
    assert (tip.target, tip.leaf, tip.prompt) == (7, 7, ())

    left, _ = tree()
    move = moved(left, left[:2])
    assert (move.leaf, move.ancestor, ids(move.abandoned)) == (1, 2, [3, 4, 5, 6])
    assert move.prompt[0].text == "root question"
    bare = [UserEntry(id=1, parts=(TextPart(text="only"),))]
    assert moved(bare, bare).leaf is None


@given(st.lists(st.sampled_from(["edit", "drop", "mask", "compaction"]), max_size=6))
def test_a_branch_summary_has_nothing_that_the_user_replaced_or_hid(steps: list[str]) -> None:
    build = PathBuilder()
    first = build.user("root")
    build.say("ok")
    targets = [build.user(f"ORIGINAL {number}") for number in range(len(steps) + 1)]
    changed = set()
    for step, target in zip(steps, targets, strict=False):
        if step == "compaction":
            build.compaction("what came before", None)
            continue
        changed.add(target.id)
        edit = build.edit(target.id, step)
        if step == "edit":
            build.path[-1] = edit.model_copy(update={"text": "REPLACED"})
    build.say("the end")
    plan = summary(moved(build.path, [first], continue_from_here=True), build.path)
    assert plan is not None
    text = "\n".join(plan.blocks)
    for number, target in enumerate(targets):
        assert (f"ORIGINAL {number}" in text) is (target.id not in changed)


def test_a_branch_that_is_hidden_whole_needs_no_summary():
    build = PathBuilder()
    first = build.user("root")
    build.say("ok")
    hidden = [build.user("a question"), build.say("an answer")]
    for entry in hidden:
        build.edit(entry.id, "drop")
    move = moved(build.path, build.path[:2], continue_from_here=True)
    assert first.id not in ids(move.abandoned)
    assert summary(move, build.path) is None


def test_a_move_over_no_message_asks_nothing_and_merging_back_moves_nothing():
    build = PathBuilder()
    build.user("go")
    build.say("ok")
    build.model("other/model")
    build.shell("secret", "x", excluded=True)
    move = moved(build.path, build.path[:2])
    assert len(move.abandoned) == 2
    assert not move.asks
    assert summary(move, build.path) is None

    left, right = tree()
    merge = plan_merge(parting(right, left), loading(left, right))
    assert (ids(merge.abandoned), merge.from_id) == ([7, 8], 8)
    assert plan_merge(parting(left[:4], left), loading(left)) is None


def test_summaries_on_the_way_come_before_older_messages_and_the_entry_carries_their_files():
    build = PathBuilder()
    build.user("old " + "x" * 4_000)
    build.compaction("EARLIER summary", first_kept_id=None)
    build.branch_summary("TRIED elsewhere", from_id=99)
    for number in range(10):
        build.user(f"message {number} " + "x" * 400)
    plan = summary(moved(build.path, []), build.path, room=500)
    text = "\n".join(plan.blocks)
    assert "EARLIER summary" in text
    assert "TRIED elsewhere" in text
    assert text.index("EARLIER") < text.index("TRIED") < text.index("message 9 ")

    huge = PathBuilder()
    huge.user("START " + "x" * 100_000 + " END")
    (block,) = summary(moved(huge.path, []), huge.path, room=1_000).blocks
    assert "START" in block
    assert block.endswith("END"), "a message that is too big by itself is cut"

    build = PathBuilder()
    build.user("go")
    build.compaction(
        "s", None, details=SummaryDetails(read_files=("old.py",), modified_files=("made.py",))
    )
    build.branch_summary("b", from_id=77, details=SummaryDetails(modified_files=("branch.py",)))
    build.run("read", {"path": "new.py"}, "text", metadata=ToolMetadata(read_files=("new.py",)))
    build.checkpoint("generated.py")
    plan = summary(moved(build.path, []), build.path, focus="the files")
    assert (plan.task().prompt, plan.task().focus) == ("branch_summary", "the files")
    entry = branch_summary_entry(plan, "## Goal\nport it", tokens)
    assert entry.from_id == build.path[-1].id
    assert entry.summary == "## Goal\nport it"
    assert entry.details.read_files == ("old.py", "new.py")
    assert entry.details.modified_files == ("made.py", "branch.py", "generated.py")
    assert entry.details.user_messages == ()


@given(paths(max_size=20), st.integers(0, 19), st.integers(60, 3_000))
@settings(max_examples=EXAMPLES, deadline=None)
def test_a_branch_with_a_message_is_never_told_as_nothing_and_always_fits(path, at, room):
    move = moved(path, path[:at])
    plan = summary(move, path, room=room)
    if plan is None:
        view = resolve_all(path[at:])
        assert not move.asks or not blocks_of(view.entries, view, CompactionSettings())
        return
    assert sum(tokens(block) + 2 for block in plan.blocks) <= room + 2
    if plan.omitted:
        assert plan.blocks
