"""Searches in any case mark the characters that they found, whatever the alphabet."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.app.format import lower_case
from tui_agent.ui.prompting.fuzzy import fuzzy_match
from tui_agent.ui.screens.picker import has_words, word_offsets
from tui_agent.ui.widgets.transcript.paint import find_all

TEXTS = st.text(st.sampled_from("İIıiÅßſKΣς ") | st.characters(), max_size=12)
BEFORE = "İİİİ "


def test_every_character_keeps_its_length() -> None:
    changed = [
        character
        for character in map(chr, range(sys.maxunicode + 1))
        if len(lower_case(character)) != 1
    ]
    assert changed == []


@given(TEXTS)
def test_a_text_keeps_its_length(text: str) -> None:
    assert len(lower_case(text)) == len(text)


@given(TEXTS, TEXTS)
def test_what_is_marked_is_what_was_searched(text: str, query: str) -> None:
    spans = list(find_all(text, query))
    assert bool(spans) == bool(query and lower_case(query) in lower_case(text))
    for start, end in spans:
        assert lower_case(text)[start:end] == lower_case(query)


@pytest.mark.parametrize("query", ["istanbul", "İSTANBUL", "b.c"])
def test_offsets_after_a_letter_with_a_long_lower_case(query: str) -> None:
    text = f"{BEFORE}İstanbul b.c"
    start = lower_case(text).index(lower_case(query))
    place = (start, start + len(query))
    assert list(find_all(text, query)) == [place]
    words = [lower_case(query)]
    assert has_words(text, words)
    assert word_offsets(text, words) == tuple(range(*place))
    assert fuzzy_match(query, text).offsets == tuple(range(*place))
