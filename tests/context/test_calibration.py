"""A gauge that is right for any script: at the first request by the tokenizer's family, soon by what is reported."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.context.calibration import Calibration, characters_of, first_calibration
from tui_agent.context.tokens import TokenCounter, count_text, encoding_name
from tui_agent.session.counting import Count
from tui_agent.session.entries import EntryAdapter, TextPart, UserEntry
from tui_agent.session.rows import body_of, completed

_HELD = json.loads(Path(__file__).with_name("scripts.json").read_text(encoding="utf-8"))
TEXTS: dict[str, tuple[str, str]] = {what: tuple(pair) for what, pair in _HELD["texts"].items()}
"""A pair of texts by language; neither is a translation of something the factors were fitted on."""
COUNTS: dict[str, dict[str, tuple[int, int]]] = _HELD["counts"]
"""Tokens of each pair, by the tokenizer's family (``scripts/tokenizer_counts.py``)."""
MODELS = {
    "qwen": "ollama/qwen3:8b",
    "qwen3.5": "ollama/qwen3.5",
    "gemma": "gemini/gemini-2.5-pro",
    "deepseek": "deepseek/deepseek-chat",
    "llama3": "groq/llama-3.3-70b-versatile",
    "mistral": "mistral/mistral-medium",
}
FAR_OFF = {("qwen", "greek"), ("qwen", "hindi"), ("qwen3.5", "thai"), ("llama3", "hebrew")}
"""Scripts that one tokenizer of a family was hardly trained on, or far more than its relatives."""
UNKNOWN = "acme/newest-model"
HEAD_PLACES = [("english", 0), ("english", 1), ("json", 0), ("english", 0), ("json", 1), ("code", 0)] * 2
HEAD = [TEXTS[what][which] for what, which in HEAD_PLACES]
"""What stands in front of every conversation: a prompt and tools."""


def counter_of(model):
    return TokenCounter(model, first_calibration(model))


def truth(family, what, which):
    """Return the tokens of a text in a family's tokenizer."""
    return COUNTS[family][what][which]


def first_and_second(family, what, model):
    """Return the shares by which a first request is off, and the next, which adds a text of the kind."""
    counter = counter_of(model)
    places = [*HEAD_PLACES, *[(what, 0)] * 4]
    counted = sum((count_text(TEXTS[kind][which]) for kind, which in places), Count(0))
    reported = sum(truth(family, *place) for place in places)
    first = counter.calibrated(counted) / reported - 1
    added = 2 * counter.learn(counted, reported).text(TEXTS[what][1])
    return abs(first), abs((reported + added) / (reported + 2 * truth(family, what, 1)) - 1)


@pytest.mark.parametrize("family", MODELS)
@pytest.mark.parametrize("what", TEXTS)
def test_the_first_request_is_within_fifteen_percent_and_the_second_within_three(family, what):
    """Counts are those of the tokenizers' own files; the sizes were fitted on other texts."""
    first, second = first_and_second(family, what, MODELS[family])

    assert first < (0.31 if (family, what) in FAR_OFF else 0.155)
    assert second < 0.03


@pytest.mark.parametrize("family", MODELS)
@pytest.mark.parametrize("what", TEXTS)
def test_the_second_request_to_an_unknown_model_is_within_three_percent(family, what):
    assert first_and_second(family, what, UNKNOWN)[1] < 0.033


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


def test_a_count_and_an_entry_know_what_is_outside_ascii_by_class():
    count = count_text("def main(): pass  # ความคิดเห็นภาษาไทย")

    assert isinstance(count, Count)
    assert [script for script, _ in count.scripts] == ["indic"]
    assert 0 < dict(count.scripts)["indic"] < count
    assert (count + count - count).scripts == count.scripts
    assert sum([1, count, 2]) == count + 3
    assert type(count_text("plain")) is int
    assert dict(count_text("port 80, 1234567").scripts) == {"digits": 5}

    entry = UserEntry(parts=(TextPart(text="สวัสดี hello"),))
    stored = completed(entry, 7, None, 1, TokenCounter("gpt-4o").estimate)

    assert dict(stored.scripts)["indic"] > 0
    assert EntryAdapter.validate_python(stored.model_dump()) == stored
    assert "scripts" not in json.loads(body_of(entry))

    calibration = first_calibration("ollama/qwen3:8b")
    stored = Count.of(100, [("thai", 20), ("han", 30), ("greek", 10)])

    assert calibration.apply(stored) == calibration.apply(
        Count.of(100, [("indic", 20), ("cjk", 30), ("alphabets", 10)])
    )


@pytest.mark.parametrize(
    ("character", "kind"),
    [("é", "alphabets"), ("я", "alphabets"), ("ب", "alphabets"), ("ก", "indic"), ("ह", "indic"), ("字", "cjk"),
     ("カ", "cjk"), ("한", "cjk"), ("、", "cjk"), ("😀", "signs"), ("│", "signs")],
)  # fmt: skip
def test_a_character_has_a_class(character, kind):
    assert characters_of(f"a1 {character}") == {kind: 1}


@pytest.mark.parametrize(
    ("counted", "reported"), [(0, 5_000), (5_000, 0), (50, 60), (10_000, 500_000), (10_000, 300), (-5, 1_000)]
)
def test_absurd_reports_teach_nothing(counted, reported):
    known = Calibration(learnt={"text": 1.1})

    assert known.learn(counted, reported) == known


@given(st.floats(0, 8), st.integers(0, 10**7), st.integers(0, 10**7), st.integers(0, 10**7))
def test_a_size_stays_within_its_limits(size, counted, digits, reported):
    learnt = Calibration("other", {"text": size}).learn(Count.of(counted, [("digits", digits)]), reported)

    assert 0 <= learnt.size("text") <= 8
    assert 0 <= learnt.size("digits") <= 8


@pytest.mark.parametrize(("model", "per_digit"), [("ollama/qwen3:8b", 1), ("mistral/mistral-medium", 1), ("gpt-4o", 0)])
def test_digits_count_as_the_tokenizer_packs_them(model, per_digit):
    """A table of numbers was counted at half its tokens where each digit is one."""
    table = "\n".join(f"{number * 7_919:09d},{number * 104_729:09d}" for number in range(100, 200))
    packed = count_text(table)
    digits = sum(character.isdigit() for character in table)
    expected = packed + per_digit * (digits - 2 * 3 * 100)

    assert counter_of(model).text(table) == pytest.approx(expected, rel=0.06)
