import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.thoroughness import EXAMPLES
from tui_agent.context.request import ContentText, Message, ModelRequest
from tui_agent.context.summariser import (
    ATTEMPTS,
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
from tui_agent.resources import prompt
from tui_agent.session.entries import ToolSchema

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
    _, batches = drive([SummaryTask("compaction_update", ("[User]: hi",), previous="## Goal\nold")], say(GOOD))
    call = batches[0][0]
    assert call.instruction == "UPDATE"
    assert call.text.index("<previous-summary>\n## Goal\nold") < call.text.index("<conversation>")

    tasks = [SummaryTask("compaction_update", (), previous="## Goal\nold"), SummaryTask("turn_prefix", ("b",))]
    result, batches = drive(tasks, say(GOOD))
    assert [call.instruction for call in batches[0]] == ["PREFIX"]
    assert result == f"## Goal\nold\n\n{GOOD}"

    tasks = [SummaryTask("compaction", ("a",), share=0.7), SummaryTask("turn_prefix", ("b",), share=0.3)]
    result, batches = drive(tasks, lambda call: SummaryAnswer(f"{call.instruction} says enough here"))
    assert len(batches) == 1
    assert len(batches[0]) == 2
    assert result == "COMPACT says enough here\n\nPREFIX says enough here"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (SummaryAnswer(""), "empty"),
        (SummaryAnswer("No prior history."), "says nothing"),
        (SummaryAnswer(GOOD, finish="length"), "cut off"),
        (SummaryAnswer(GOOD, finish="content_filter"), "content_filter"),
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
        [SummaryTask("compaction", ("a",))], lambda call: answer if call.attempt == 1 else SummaryAnswer(GOOD)
    )
    assert mended == GOOD


def test_only_the_rejected_call_is_made_again_and_a_cut_off_one_gets_more_room():
    tasks = [SummaryTask("compaction", ("a",)), SummaryTask("turn_prefix", ("b",))]

    def answer(call):
        cut = call.instruction == "PREFIX" and call.attempt == 1
        return SummaryAnswer(f"{call.instruction}: {GOOD}", finish="length" if cut else "stop")

    result, batches = drive(tasks, answer)
    assert [len(batch) for batch in batches] == [2, 1]
    assert batches[1][0].max_output_tokens == 2 * batches[0][1].max_output_tokens
    assert result == f"COMPACT: {GOOD}\n\nPREFIX: {GOOD}"


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
        [SummaryTask("compaction", blocks)], lambda _call: SummaryAnswer(error="Too long.", too_long=True), limits
    )
    assert never == SummaryFailure("The summary was refused: Too long.", too_long=True)


def test_a_rejected_live_answer_falls_back_to_the_serialised_conversation():
    task = SummaryTask("compaction", ("[User]: hi",), live=True)
    result, batches = drive([task], lambda call: SummaryAnswer(GOOD, tool_calls=1 if call.live else 0))
    assert result == GOOD
    assert [call.live for batch in batches for call in batch] == [True, False]
    assert "conversation" not in batches[0][0].text
    accepted, batches = drive([task], say(GOOD))
    assert (accepted, len(batches)) == (GOOD, 1)


def test_what_does_not_fit_is_summarised_in_chunks_and_merged():
    limits = SummariserLimits(window=8_000, summary=500)
    blocks = tuple(f"[User]: message {number} " + "word " * 400 for number in range(30))
    seen: list[str] = []

    def answer(call):
        if call.instruction == "MERGE":
            return SummaryAnswer("merged: " + " ".join(sorted(set(call.text.split()) & set(seen))) + " and more")
        seen.append(f"part{len(seen)}-of-the-many-parts")
        return SummaryAnswer(seen[-1])

    result, batches = drive(
        [SummaryTask("compaction_update", blocks, previous="KNOWN before all this")], answer, limits
    )
    first = batches[0]
    assert len(first) == 3
    assert {call.instruction for call in first} == {"COMPACT"}
    for number in range(30):
        assert sum(f"message {number} " in call.text for call in first) == 1
    for call in (call for batch in batches for call in batch):
        assert tokens(call.instruction) + tokens(call.text) + call.max_output_tokens <= limits.window
    assert "<part>\nKNOWN before all this\n</part>" in batches[1][0].text
    assert len(batches[-1]) == 1
    assert result.startswith("merged: ")

    limits = SummariserLimits(window=4_000, summary=300)
    blocks = tuple("word " * 800 for _ in range(9))
    result, _ = drive(
        [SummaryTask("compaction", blocks)],
        lambda call: SummaryAnswer(GOOD, finish="length" if call.instruction == "MERGE" else "stop"),
        limits,
    )
    assert isinstance(result, SummaryFailure)


@pytest.mark.parametrize(
    ("setting", "live", "serialised", "warm", "expected"),
    [
        ("auto", 50_000, 9_000, True, "live"),
        ("auto", 50_000, 9_000, False, "serialised"),
        ("auto", 50_000, 4_000, True, "serialised"),  # 50k cached tokens cost more than 4k fresh ones
        ("auto", 99_000, 50_000, True, "serialised"),  # no room for the answer
        ("live", 50_000, 10, False, "live"),
        ("live", 99_000, 10, True, "serialised"),
        ("serialised", 10, 50_000, True, "serialised"),
    ],
)
def test_the_cheaper_input_that_fits_is_chosen(setting, live, serialised, warm, expected):
    chosen = choose_input(setting, LIMITS, live_tokens=live, serialised_tokens=serialised, cache_warm=warm)
    assert chosen == expected


def test_a_live_request_extends_the_conversations_own():
    tool = ToolSchema(name="read", description="Read", parameters={})
    live = ModelRequest("m", (Message("user", (ContentText("hi"),)),), tools=(tool,))
    request = build_request(SummaryCall("COMPACT", "<length>9</length>", 500, live=True), "m", live)
    assert request.messages[:-1] == live.messages
    assert request.tools == live.tools
    assert request.tool_choice == live.tool_choice
    assert request.messages[-1].text == "COMPACT\n\n<length>9</length>"


@given(st.lists(st.text(max_size=400), max_size=20), st.integers(40, 300))
@settings(max_examples=EXAMPLES, deadline=None)
def test_chunks_fit_and_keep_everything_that_fits(blocks, budget):
    texts = chunk(blocks, budget, tokens)
    assert all(tokens(text) <= budget for text in texts)
    joined = "\n\n".join(texts)
    for block in blocks:
        if tokens(block) <= budget - 2:
            assert block in joined


def test_the_prompts_ask_for_the_structured_format():
    prompts = SummaryPrompts.load(prompt)
    headings = ["Goal", "Constraints & Preferences", "Progress", "Done", "In Progress", "Blocked", "Key Decisions"]
    for text in (prompts.compaction, prompts.branch_summary):
        places = [text.index(f"# {heading}") for heading in [*headings, "Next Steps", "Critical Context"]]
        assert places == sorted(places)
    for tag in ("<previous-summary>", "<conversation>", "<focus>"):
        assert tag in prompts.compaction_update
    assert "<part>" in prompts.merge_chunks
    assert "<conversation>" in prompts.turn_prefix
    for name in ("title", "continue", "step_limit"):
        assert prompt(name)
