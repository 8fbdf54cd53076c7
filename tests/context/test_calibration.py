"""A gauge that is right for any script: at the first request by the tokenizer's family, soon by what is reported."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.scripts_of_the_world import COUNTS, TEXTS
from tui_agent.context.budget import Meter, ModelLimits, measure
from tui_agent.context.calibration import Calibration, Factor, first_calibration, script_of
from tui_agent.context.settings import ContextSettings
from tui_agent.context.tokens import TokenCounter, count_text, encoding_name
from tui_agent.session.counting import Count
from tui_agent.session.entries import (
    AssistantEntry,
    EntryAdapter,
    SystemEntry,
    TextPart,
    Usage,
    UserEntry,
)
from tui_agent.session.rows import body_of, completed

MODELS = {
    "qwen": "ollama/qwen3:8b",
    "gemma": "gemini/gemini-2.5-pro",
    "deepseek": "deepseek/deepseek-chat",
    "llama3": "groq/llama-3.3-70b-versatile",
}
UNKNOWN = "acme/newest-model"
HEAD_PLACES = [("english", 0), ("english", 1), ("json", 0), ("english", 0), ("json", 1)]
HEAD = [TEXTS[what][which] for what, which in HEAD_PLACES]
"""What stands in front of every conversation: a prompt and tools."""


def counter_of(model):
    return TokenCounter(model, first_calibration(model))


def truth(family, what, which):
    """Return the tokens of a text in a family's tokenizer."""
    return COUNTS[family][what][which]


@pytest.mark.parametrize("family", MODELS)
@pytest.mark.parametrize("what", TEXTS)
def test_the_first_request_is_within_ten_percent_in_any_script(family, what):
    """Counts are those of the tokenizers' own files; the factors were fitted on other texts."""
    counter = counter_of(MODELS[family])
    counted = sum(map(counter.text, (*HEAD, TEXTS[what][1])))
    expected = sum(truth(family, *place) for place in (*HEAD_PLACES, (what, 1)))

    assert counted == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("family", MODELS)
@pytest.mark.parametrize("what", [what for what in TEXTS if what != "english"])
def test_after_eight_reports_the_gauge_is_within_two_percent(family, what):
    """Nothing is known of the tokenizer; the ninth request adds a text that no report was about."""
    counter, settings = TokenCounter(UNKNOWN, first_calibration(UNKNOWN)), ContextSettings()
    limits = ModelLimits(UNKNOWN, 200_000)

    def stored(entry, number):
        return completed(entry.model_copy(update={"id": number}), number, None, 1, counter.estimate)

    path = [stored(SystemEntry(blocks=("\n".join(HEAD * 2),), model=UNKNOWN), 1)]
    sent = 2 * sum(truth(family, *place) for place in HEAD_PLACES)
    for step in range(9):
        which = int(step == 8)
        path.append(stored(UserEntry(parts=(TextPart(text=TEXTS[what][which]),)), 2 + 2 * step))
        sent += truth(family, what, which) + 4
        size = measure(path, limits, settings, counter)
        meter = Meter(limits, settings, counter)
        answer = AssistantEntry(parts=(TextPart(text="ok"),), model=UNKNOWN, usage=Usage(input=sent, output=1))
        path.append(
            stored(answer.model_copy(update={"estimate": counter.calibrated(meter.counted(path[:-1]))}), 3 + 2 * step)
        )
        counter = counter.learn(meter.counted(path[:-1]), sent)
        sent += 5

    assert size.total == pytest.approx(sent - 5, rel=0.02)


def test_what_one_script_teaches_leaves_the_others_alone():
    """After JSON, a first Thai text was off by half."""
    counter = counter_of("acme/qwen3-clone")
    json_text = TEXTS["json"][0] * 6
    counted = count_text(json_text, encoding_name("acme/qwen3-clone"))
    thai = counter.text(TEXTS["thai"][0])
    for _ in range(8):
        counter = counter.learn(counted, round(counted * 1.6))

    assert counter.text(json_text) == pytest.approx(counted * 1.6, rel=0.02)
    assert counter.text(TEXTS["thai"][0]) == pytest.approx(thai, rel=0.15)


def test_a_count_knows_its_scripts():
    count = count_text("def main(): pass  # ความคิดเห็นภาษาไทย")

    assert isinstance(count, Count)
    assert [script for script, _ in count.scripts] == ["thai"]
    assert 0 < dict(count.scripts)["thai"] < count
    assert (count + count - count).scripts == count.scripts
    assert sum([1, count, 2]) == count + 3
    assert type(count_text("plain")) is int
    assert dict(count_text("port 80, 1234567").scripts) == {"digits": 5}


def test_an_entry_keeps_what_is_outside_ascii():
    entry = UserEntry(parts=(TextPart(text="สวัสดี hello"),))
    stored = completed(entry, 7, None, 1, TokenCounter("gpt-4o").estimate)

    assert dict(stored.scripts)["thai"] > 0
    assert EntryAdapter.validate_python(stored.model_dump()) == stored
    assert "scripts" not in json.loads(body_of(entry))


@pytest.mark.parametrize(
    ("character", "script"),
    [("a", "ascii"), ("é", "latin"), ("я", "cyrillic"), ("ก", "thai"), ("字", "han"), ("カ", "kana"), ("한", "hangul"),
     ("ह", "devanagari"), ("ب", "arabic"), ("😀", "emoji"), ("│", "symbols"), ("𠀀", "han"), ("、", "han")],
)  # fmt: skip
def test_a_character_has_a_script(character, script):
    assert script_of(character) == script


@pytest.mark.parametrize(
    ("counted", "reported"), [(0, 5_000), (5_000, 0), (50, 60), (10_000, 500_000), (10_000, 300), (-5, 1_000)]
)
def test_absurd_reports_teach_nothing(counted, reported):
    known = Calibration(learnt={"ascii": Factor(1.1, 0.1)})

    assert known.learn(counted, reported) == known


@given(st.floats(0.3, 8.0), st.floats(0, 1), st.integers(0, 10**7), st.integers(0, 10**7))
def test_a_factor_stays_within_its_limits(value, doubt, counted, reported):
    learnt = Calibration(learnt={"ascii": Factor(value, doubt)}).learn(counted, reported)

    assert 0.3 <= learnt.factor("ascii").value <= 8


def test_a_single_report_teaches_most():
    counter = counter_of("anthropic/claude-sonnet-4-5")

    assert counter.learn(20_000, 26_000).calibrated(10_000) == pytest.approx(13_000, rel=0.01)
    assert counter.calibrated(10_000) == 12_000


@pytest.mark.parametrize(("model", "per_digit"), [("ollama/qwen3:8b", 1), ("mistral/mistral-medium", 1), ("gpt-4o", 0)])
def test_digits_count_as_the_tokenizer_packs_them(model, per_digit):
    """A table of numbers was counted at half its tokens where each digit is one."""
    table = "\n".join(f"{number * 7_919:09d},{number * 104_729:09d}" for number in range(100, 200))
    packed = count_text(table)
    digits = sum(character.isdigit() for character in table)
    expected = packed + per_digit * (digits - 2 * 3 * 100)

    assert counter_of(model).text(table) == pytest.approx(expected, rel=0.06)


def test_a_first_report_teaches_how_digits_are_packed():
    counter = counter_of(UNKNOWN)
    table = "\n".join(f"{number * 7_919:09d},{number * 104_729:09d}" for number in range(100, 300))
    single = count_text(table) + 6 * 2 * 200
    counter = counter.learn(count_text(table), single)

    assert counter.text(table) == pytest.approx(single, rel=0.03)
    assert counter.text(HEAD[0]) == pytest.approx(counter_of(UNKNOWN).text(HEAD[0]), rel=0.08)
