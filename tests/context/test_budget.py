"""How big the next request is, and what that number is held against."""

import json
import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.support.entry_strategies import MODELS, grown_paths, paths
from tests.support.thoroughness import thorough
from tui_agent.context.budget import (
    ContextSize,
    Meter,
    ModelLimits,
    Report,
    ViewWeights,
    appended_tokens,
    complaint,
    estimate_path,
    is_silent_overflow,
    judge_report,
    long_share,
    newest_report,
    overhead,
    overhead_parts,
    reserve,
    threshold,
    within,
)
from tui_agent.context.compaction_policy import missing_meanwhile
from tui_agent.context.projection import ModelTraits, project
from tui_agent.context.settings import CompactionSettings, ContextSettings
from tui_agent.context.tokens import REQUEST_TOKENS, TokenCounter, image_tokens
from tui_agent.context.view import resolve
from tui_agent.session.entries import (
    AssistantEntry,
    CompactionEntry,
    ContextEditEntry,
    FilePart,
    ImagePart,
    ModelChangeEntry,
    PruneEntry,
    ReasoningPart,
    ShellEntry,
    SystemEntry,
    TextPart,
    ToolCallPart,
    ToolResultEntry,
    ToolSchema,
    ToolStatus,
    Usage,
    UserEntry,
)

MODEL = "openai/gpt-4o"
COUNTER = TokenCounter(MODEL)
LIMITS = ModelLimits(MODEL, 128_000, 16_384)
SETTINGS = ContextSettings()
ENGLISH = "The quick brown fox jumps over the lazy dog, and then it doesn't. "


def stored(entry):
    """Return the entry as the store keeps it: with its estimate."""
    return entry.model_copy(update={"tokens": COUNTER.estimate(entry)})


def head(number=1):
    tool = ToolSchema(name="read", description="Read a file", parameters={"type": "object"})
    return stored(
        SystemEntry(
            id=number, blocks=("You are an agent.", ENGLISH * 5), tools=(tool,), model=MODEL
        )
    )


def user(number, text=ENGLISH):
    return stored(UserEntry(id=number, parts=(TextPart(text=text),)))


def answer(number, usage=None, call_id=None, **fields):
    calls = (ToolCallPart(call_id=call_id, tool="read", arguments="{}"),) if call_id else ()
    parts = (TextPart(text=ENGLISH), *calls)
    return stored(AssistantEntry(id=number, parts=parts, usage=usage, **{"model": MODEL, **fields}))


def result(number, call_id, output=ENGLISH * 20):
    status = ToolStatus.COMPLETED
    return stored(
        ToolResultEntry(id=number, call_id=call_id, tool="read", status=status, output=output)
    )


USAGE = Usage(input=2_000, cache_read=3_000, cache_write=500, output=250)


def test_a_report_counts_whole_and_what_came_without_one_is_estimated():
    path = [head(), user(2)]

    size = Meter(LIMITS, SETTINGS, COUNTER).measure(path)
    assert size.total == head().tokens + user(2).tokens + REQUEST_TOKENS
    assert size.fixed == head().tokens + REQUEST_TOKENS
    assert size.history == user(2).tokens
    assert size.estimated
    assert size.exact_until is None

    size = Meter(LIMITS, SETTINGS, COUNTER).measure([head(), user(2), answer(3, USAGE)])

    assert size.total == 5_750
    assert size.exact_until == 3
    assert not size.estimated
    assert size.history == 5_750 - head().tokens

    path = [head(), user(2), answer(3, USAGE, "a"), result(4, "a"), user(5)]

    size = Meter(LIMITS, SETTINGS, COUNTER).measure(path)
    assert size.total == 5_750 + result(4, "a").tokens + user(5).tokens
    assert size.exact_until == 3
    assert size.estimated


@pytest.mark.parametrize(
    "change",
    [
        PruneEntry(id=9, targets=(2,), tokens_freed=1, reason="x"),
        ContextEditEntry(id=9, target=2, action="mask"),
        ModelChangeEntry(id=9, model=MODEL),
        CompactionEntry(
            id=9, summary="s", first_kept_id=2, tokens_before=1, tokens_after=1, trigger="manual"
        ),
        SystemEntry(id=9, blocks=("new",), model=MODEL),
    ],
    ids=lambda entry: entry.kind,
)
def test_a_report_before_a_change_of_the_view_does_not_count(change):
    size = Meter(LIMITS, SETTINGS, COUNTER).measure([head(), user(2), answer(3, USAGE), change])

    assert size.exact_until is None
    assert size.total < 1_000


@pytest.mark.parametrize(
    "given",
    [
        {"usage": USAGE, "error": "overloaded", "finish": "error"},
        {"usage": USAGE, "interrupted": True},
        {"usage": None},
        {"usage": Usage()},
        {"usage": USAGE, "model": "other"},
        {"usage": Usage(input=900_000, output=1), "estimate": 5_000},
        {"usage": Usage(input=3, output=1), "estimate": 50_000},
    ],
)
def test_a_report_that_cannot_be_trusted_is_passed_over_for_an_older_one(given):
    entry = answer(5, **given)
    size = Meter(LIMITS, SETTINGS, COUNTER).measure(
        [head(), user(2), answer(3, USAGE), user(4), entry]
    )

    assert size.exact_until == 3
    assert size.total == 5_750 + user(4).tokens + entry.tokens


def test_a_call_without_a_result_counts_only_if_another_answer_follows():
    def appended(*path):
        return appended_tokens(path, COUNTER, ModelTraits(MODEL))

    asking = answer(3, USAGE, "a")
    assert appended(asking) == 0
    assert appended(asking, user(4)) == user(4).tokens
    later = user(4).tokens + answer(5).tokens
    assert appended(answer(3, USAGE), user(4), answer(5)) == later
    assert appended(asking, user(4), answer(5)) > later


@pytest.mark.parametrize(("estimate", "believed"), [(5_000, True), (5_040, True), (5_100, False)])
def test_a_report_that_stays_the_same_while_requests_grow_is_not_believed(estimate, believed):
    before = answer(3, USAGE, estimate=5_000)
    after = answer(5, USAGE, estimate=estimate)
    path = [head(), user(2), before, user(4), after]
    assert newest_report(path) == (after if believed else None)


def test_reasoning_that_does_not_go_back_is_not_counted():
    usage = Usage(input=1_000, output=900, reasoning=800)
    hidden = answer(3, usage)
    blob = ReasoningPart(text="", blob="{}", model=MODEL)
    shown = hidden.model_copy(update={"parts": (blob, *hidden.parts)})

    assert Meter(LIMITS, SETTINGS, COUNTER).measure([user(2), hidden]).total == 1_100
    assert Meter(LIMITS, SETTINGS, COUNTER).measure([user(2), shown]).total == 1_900


def as_openai_reads(request):
    """Count a request as OpenAI's published chat format lays it out: one token per special mark, TypeScript tools."""
    tokens = 3
    for tool in request.tools:
        tokens += COUNTER.text(
            f"// {tool.description}\ntype {tool.name} = (_: {json.dumps(tool.parameters)}) => any;\n"
        )
    for message in request.messages:
        tokens += 4 + COUNTER.text(message.text)
        for call in message.tool_calls:
            tokens += 5 + COUNTER.text(f"to=functions.{call.tool}") + COUNTER.text(call.arguments)
    return tokens


KINDS_OF_TEXT = {
    "english": ENGLISH * 30,
    "code": "    def total(self) -> int:\n        return self.head + self.settled  # tokens\n" * 25,
    "json": '{"path": "src/app.py", "line": 120, "matches": [1, 22, 333], "ok": true},\n' * 25,
    "cjk": "上下文窗口管理还有三层机制防止上下文溢出。日本語のテキストと 한국어 문장도 있다。" * 20,
}


@pytest.mark.parametrize("kind", KINDS_OF_TEXT)
def test_the_estimate_of_a_conversation_is_within_three_percent(kind):
    path = [head()]
    for number in range(2, 42, 4):
        text = KINDS_OF_TEXT[kind]
        path += [user(number, text[:300]), answer(number + 1, None, f"call_{number}")]
        path += [result(number + 2, f"call_{number}", text), answer(number + 3)]

    truth = as_openai_reads(project(path, ModelTraits(MODEL)))
    assert Meter(LIMITS, SETTINGS, COUNTER).measure(path).total == pytest.approx(truth, rel=0.03)


@pytest.mark.parametrize(
    ("window", "max_output", "expected"),
    [
        (200_000, 64_000, 20_000),
        (128_000, 8_192, 8_192),
        (32_768, None, 6_554),
        (3_000, None, 1_024),
    ],
)
def test_the_reserve_scales_with_the_window(window, max_output, expected):
    assert reserve(ModelLimits("m", window, max_output), SETTINGS) == expected


@pytest.mark.parametrize(
    ("setting", "window", "expected"),
    [
        (None, 200_000, 180_000),
        ("80%", 200_000, 160_000),
        ("-20%", 200_000, 160_000),
        (120_000, 200_000, 120_000),
        (120_000, 32_768, 32_768 - 6_554),
        (-20_000, 200_000, 180_000),
        (-20_000, 16_384, 8_192),
        (0, 200_000, None),
        ("150_000", 200_000, 150_000),
    ],
)
def test_a_threshold_is_a_share_tokens_used_or_tokens_left(setting, window, expected):
    own = ContextSettings.model_validate({"compaction": {"threshold": setting}})

    assert threshold(ModelLimits("m", window, 20_000), own) == expected


@pytest.mark.parametrize("setting", ["80", 80, "x", "120%", "80 percent", True, 0.8])
def test_a_threshold_that_makes_no_sense_is_refused(setting):
    with pytest.raises(ValueError, match="threshold"):
        ContextSettings.model_validate({"compaction": {"threshold": setting}})


def test_a_model_can_have_its_own_threshold_and_window_and_none_without_compaction():
    own = ContextSettings.model_validate(
        {
            "compaction": {"threshold": "90%"},
            "models": {
                "ollama/*": {"window": 16_384, "threshold": "50%"},
                "ollama/big": {"threshold": 0},
            },
        }
    )

    assert threshold(ModelLimits("gpt", 100_000), own) == 80_000
    small = within(ModelLimits("ollama/qwen", 128_000), own)
    assert (small.window, small.origin) == (16_384, "config")
    assert threshold(small, own) == 8_192
    assert threshold(ModelLimits("ollama/big", 100_000), own) is None

    own = ContextSettings.model_validate({"compaction": {"auto": False}})

    size = Meter(LIMITS, own, COUNTER).measure([head(), user(2)])
    assert size.threshold is None
    assert size.budget == 128_000 - 16_384 - size.fixed


def test_the_overhead_names_its_largest_parts():
    blocks = (
        "You are an agent.",
        f'<environment>\nLinux\n</environment>\n<instructions path="AGENTS.md">\n{ENGLISH * 300}\n</instructions>',
    )
    tool = ToolSchema(name="bash", description=ENGLISH * 20, parameters={})
    system = SystemEntry(id=1, blocks=blocks, tools=(tool,), model=MODEL)

    told = overhead(system, ModelLimits(MODEL, 10_000, 1_024), SETTINGS, COUNTER)
    assert [part.label for part in told.parts] == [
        "AGENTS.md",
        "tool bash",
        "environment",
        "agent prompt",
    ]
    assert sum(part.tokens for part in told.parts) == pytest.approx(told.tokens, abs=30)
    assert told.budget == 8_976 - told.tokens
    assert told.crowded
    assert not overhead(system, LIMITS, SETTINGS, COUNTER).crowded
    half = ModelLimits(MODEL, 2 * told.tokens, 1_024)
    rest = overhead(
        system, half, ContextSettings(compaction=CompactionSettings(minimum_budget=0)), COUNTER
    )
    assert rest.crowded  # for its share of the window alone
    assert overhead_parts(told.parts)[-1][0] == "tools"


def without_images(path):
    """Images are weighed by entry but sent in shared messages: leave them to their own tests."""
    return [
        entry.model_copy(update={"attachments": ()})
        if entry.kind == "tool_result"
        else entry.model_copy(update={"parts": tuple(p for p in entry.parts if p.type != "image")})
        if entry.kind == "user"
        else entry
        for entry in path
    ]


@given(paths(), st.sampled_from(MODELS), st.booleans())
@thorough
def test_the_estimate_is_what_the_projected_request_counts(path, model, vision):
    path = [stored(entry) for entry in without_images(path)]

    request = project(path, ModelTraits(model, vision=vision))
    heads = {entry.id for entry in path if entry.kind == "system"}
    sent = [
        message
        for message in request.messages
        if message.origin and not heads.intersection(message.origin)
    ]
    estimate = estimate_path(path, COUNTER, ModelTraits(model, vision=vision))
    assert estimate.history == sum(map(COUNTER.message, sent))


@given(grown_paths(), st.sampled_from(MODELS), st.booleans())
@thorough
def test_going_on_from_an_estimate_gives_what_starting_over_gives(grown, model, vision):
    path = [stored(entry) for entry in [*grown[0], grown[1]]]
    asked = ModelTraits(model, vision=vision)

    before = None
    for end in range(len(path) + 1):
        before = estimate_path(path[:end], COUNTER, asked, before)
        fresh = estimate_path(path[:end], COUNTER, asked)
        assert (before.head, before.history) == (fresh.head, fresh.history)


@given(paths(), st.sampled_from(MODELS))
@thorough
def test_a_meter_gives_what_measuring_afresh_gives(path, model):
    path = [stored(entry) for entry in path]
    limits = ModelLimits(model, 32_768)
    meter = Meter(limits, SETTINGS, COUNTER)

    for end in (*range(len(path) + 1), len(path) // 2):
        size = Meter(limits, SETTINGS, COUNTER).measure(path[:end])
        assert meter.measure(path[:end]) == size
        assert size.total == size.fixed + size.history
        assert min(size.fixed, size.history) >= 0


@pytest.mark.parametrize(
    ("usage", "estimate", "verdict"),
    [
        pytest.param(Usage(input=120), 1_700, Report.TOO_FEW, id="a made-up number"),
        pytest.param(Usage(input=4_096), 15_000, Report.CUT, id="a small window"),
        pytest.param(
            Usage(input=20, cache_read=1_500, cache_write=100),
            1_700,
            Report.USABLE,
            id="mostly cached",
        ),
        pytest.param(Usage(input=30), 250, Report.USABLE, id="too small to tell"),
        pytest.param(Usage(input=90_000_000), 1_700, Report.TOO_MANY, id="nonsense"),
        pytest.param(Usage(input=120), 0, Report.USABLE, id="no estimate to compare with"),
        pytest.param(Usage(), 1_700, Report.MISSING, id="zero"),
        pytest.param(None, 1_700, Report.MISSING, id="nothing"),
    ],
)
def test_what_a_report_is_worth(usage: Usage | None, estimate: int, verdict: Report) -> None:
    assert judge_report(usage, estimate) is verdict


def test_a_report_that_is_not_used_or_tells_of_an_overflow_is_explained() -> None:
    cut = complaint(answer(3, Usage(input=4_096), model=MODEL, estimate=15_000), 32_768)
    few = complaint(answer(3, Usage(input=120), model=MODEL, estimate=1_700), 32_768)
    assert (
        few == "The server reports 120 tokens for a request of about 1,700. This count is not used."
    )
    assert cut is not None
    assert "4,096" in cut
    assert "smaller than the 32,768" in cut
    assert complaint(answer(3, Usage(input=1_500), estimate=1_700), 32_768) is None

    over = answer(3, Usage(input=30_000, cache_read=3_000), estimate=30_000)
    assert is_silent_overflow(over, 32_768)
    assert not is_silent_overflow(over, 128_000)
    assert not is_silent_overflow(answer(3), 10)
    assert "33,000 tokens for a window of 32,768" in (complaint(over, 32_768) or "")
    nonsense = answer(3, Usage(input=90_000_000), estimate=30_000)
    assert not is_silent_overflow(nonsense, 32_768), "a count that is not believed tells of nothing"


@pytest.mark.parametrize(
    ("output", "believed"),
    [
        pytest.param(40, True, id="what it looks like"),
        pytest.param(300, True, id="another tokenizer"),
        pytest.param(30_000, False, id="reasoning counted without telling"),
        pytest.param(90_000_000, False, id="nonsense"),
    ],
)
def test_an_answers_length_is_believed_where_it_can_be_that_of_what_goes_back(
    output: int, *, believed: bool
) -> None:
    last = answer(3, Usage(input=5_000, output=output), estimate=5_000)
    size = Meter(LIMITS, SETTINGS, COUNTER).measure([head(), user(2), last])
    assert size.total == 5_000 + (output if believed else last.tokens)
    assert size.estimated is not believed
    assert size.exact_until == 3


def test_an_answer_that_a_server_did_not_count_is_not_nothing() -> None:
    long = TextPart(text="The quick brown fox jumps over the lazy dog. " * 200)
    last = answer(3, Usage(input=5_000, output=0), estimate=5_000)
    last = last.model_copy(update={"parts": (long,), "tokens": 0})
    size = Meter(LIMITS, SETTINGS, COUNTER).measure([head(), user(2), last])
    assert size.total == 5_000 + COUNTER.estimate(last)


@given(
    text=st.integers(0, 400),
    argument=st.integers(0, 400),
    keep=st.integers(1, 300),
    words=st.booleans(),
)
@example(text=0, argument=5, keep=4, words=False)
def test_the_share_that_cutting_long_texts_frees(text, argument, keep, words):
    call = ToolCallPart(
        call_id="a", tool="write", arguments=json.dumps({"content": "x" * argument})
    )
    entry = AssistantEntry(id=1, parts=(TextPart(text="y" * text), call), model=MODEL)
    freed = sum(
        size - keep for size in ((argument, text) if words else (argument,)) if size > keep * 5 // 4
    )
    share = long_share(entry, keep, words=words)
    assert share == pytest.approx(freed / max(1, text + argument))
    assert 0 <= share < 1


@pytest.mark.parametrize(
    ("total", "missing"), [(0, 0), (90_000, 0), (95_000, 0), (95_001, 1), (120_000, 25_000)]
)
def test_a_request_may_exceed_the_limit_a_little_while_its_summary_is_written(total, missing):
    size = ContextSize(1_000, total - 1_000, total, 100_000, 10_000, 90_000, None, estimated=True)
    assert missing_meanwhile(size) == missing


@pytest.mark.parametrize("given", [None, 0, 1_024, 120_000, -20_000, "80%", "-20%", "1024"])
def test_a_threshold_that_makes_sense_is_taken(given):
    assert CompactionSettings(threshold=given).threshold == (
        int(given) if given == "1024" else given
    )


@pytest.mark.parametrize("given", [1, 1_023, "1023", True, "101%", "-100%", "much", 0.5])
def test_a_threshold_that_makes_none_is_refused(given):
    with pytest.raises(ValidationError):
        CompactionSettings(threshold=given)


@pytest.mark.parametrize(
    ("reported", "believed"),
    [
        pytest.param(5_000, True, id="it fell"),
        pytest.param(9_000, True, id="a gateway adds as much as before"),
        pytest.param(12_000, False, id="the same number as ever"),
        pytest.param(14_000, False, id="all of the session"),
    ],
)
def test_a_report_that_does_not_notice_that_room_was_made_is_not_believed(
    reported: int, believed: bool
) -> None:
    compaction = CompactionEntry(
        id=4,
        parent_id=3,
        summary="s",
        first_kept_id=3,
        tokens_before=9_000,
        tokens_after=900,
        trigger="threshold",
    )
    before = answer(3, Usage(input=12_000, output=10), estimate=8_000)
    after = answer(5, Usage(input=reported, output=10), estimate=4_000)
    path = [head(), user(2), before, compaction, after]
    assert (Meter(LIMITS, SETTINGS, COUNTER).measure(path).exact_until == 5) is believed
    assert (newest_report(path) is after) is believed


def test_a_reserve_never_takes_more_than_half_and_pruning_is_switched_off_in_a_word():
    assert CompactionSettings(reserved=30_000).reserve(200_000, 8_000) == 30_000
    assert CompactionSettings(reserved=30_000).reserve(16_000, 8_000) == 8_000

    assert ContextSettings.model_validate({"prune": False}).prune.when == "off"
    assert ContextSettings.model_validate({"prune": True}).prune.when == "auto"
    assert ContextSettings.model_validate({"prune": {"when": "run_end"}}).prune.when == "run_end"


@pytest.mark.parametrize(
    ("model", "reserved"),
    [
        ("anthropic/claude-sonnet", 3_000),
        ("anthropic/other", 2_000),
        ("gpt", 4_000),
        ("gpt-4", 5_000),
    ],
)
def test_the_name_or_else_the_longest_pattern_chooses_the_settings_of_a_model(model, reserved):
    own = ContextSettings.model_validate(
        {
            "models": {
                "anthropic/*": {"reserved": 2_000},
                "*claude-sonnet*": {"reserved": 3_000},
                "gpt": {"reserved": 4_000},
                "gpt*": {"reserved": 5_000},
            }
        }
    )
    assert own.for_model(model).compaction.reserved == reserved


def test_settings_of_a_model_replace_those_of_all():
    own = ContextSettings.model_validate(
        {
            "window": 100_000,
            "models": {
                "anthropic/*": {"keep_recent": 5_000, "window": 150_000},
                "anthropic/claude-opus-4-8": {"reserved": 9_000},
            },
        }
    )

    assert own.for_model("gpt").compaction.keep_recent == 60_000
    sonnet = own.for_model("anthropic/claude-sonnet-4-5")
    assert (sonnet.compaction.keep_recent, sonnet.window) == (5_000, 100_000)
    opus = own.for_model("anthropic/claude-opus-4-8")
    assert (opus.compaction.reserved, opus.compaction.keep_recent) == (9_000, 60_000)


def test_what_a_start_does_not_need_is_not_compiled():
    program = (
        "from tui_agent.tools.bash import BashInput\n"
        "from tui_agent.session.entries import CheckpointEntry\n"
        "print([kind.__pydantic_complete__ for kind in (BashInput, CheckpointEntry)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[False, False]"


@pytest.mark.parametrize(
    ("window", "tier", "expected"),
    [
        (1_000_000, None, 400_000),
        (1_000_000, 200_000, 200_000),
        (400_000, 200_000, 380_000),
        (200_000, None, 180_000),
    ],
)
def test_a_very_large_window_is_not_used_to_its_end(window, tier, expected):
    assert CompactionSettings().threshold_at(window, 20_000, price_tier=tier) == expected
    assert (
        CompactionSettings(effective_window=0).threshold_at(window, 20_000, price_tier=tier)
        == window - 20_000
    )
    assert (
        CompactionSettings(threshold="90%").threshold_at(window, 20_000, price_tier=tier)
        <= window * 0.9
    )


def test_a_picture_that_was_taken_out_counts_no_more():
    pictures = tuple(
        ImagePart(blob=letter * 64, mime="image/png", width=1_000, height=1_000) for letter in "ab"
    )
    message = stored(UserEntry(id=1, parts=(TextPart(text="look"), *pictures)))
    edit = ContextEditEntry(
        id=2, parent_id=1, target=1, action="leave_out", parts=("a" * 64,), note="taken out"
    )
    asked = ModelTraits(MODEL)
    both = estimate_path([message], COUNTER, asked).total
    one = estimate_path([message, stored(edit)], COUNTER, asked).total
    picture = image_tokens(1_000, 1_000, MODEL)
    assert picture * 0.9 <= both - one <= picture


CUT_TEXT = "a line of text\n" * 2_000


@pytest.mark.parametrize(
    ("entry", "texts"),
    [
        (UserEntry(id=2, parts=(TextPart(text=CUT_TEXT),)), 1),
        (UserEntry(id=2, parts=(FilePart(path="a.py", text=CUT_TEXT),)), 1),
        (UserEntry(id=2, parts=(TextPart(text=CUT_TEXT), FilePart(path="a.py", text=CUT_TEXT))), 2),
        (result(2, "a", CUT_TEXT), 1),
        (ShellEntry(id=2, command="make", output=CUT_TEXT), 1),
    ],
    ids=["typed", "attached", "both", "result", "shell"],
)
def test_what_a_cut_leaves_of_every_text_of_an_entry_is_weighed(entry, texts):
    keep = 4_000
    cut = PruneEntry(id=3, targets=(2,), tokens_freed=1, reason="pressure", keep_chars=keep)
    weights = ViewWeights(resolve([answer(1, call_id="a"), stored(entry), cut]))
    weight = weights.of(weights.view.entries[1])
    assert texts * keep // 4 <= weight <= texts * keep // 2
