"""The lines of a text that a query is about."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.texts import said
from tui_agent.session.search import passage, snippet

LINES = st.lists(st.sampled_from(["", "a b", "b", "b c  ", "A", "filler", "more"]), max_size=12)
QUERIES = st.sampled_from(["a", "b", "A c", "c b a", "d", "", "-", "a -"])


def best_line(lines: list[str], query: str) -> int | None:
    """Return the number of the first line with the greatest sum of weights, None if no word is in any."""
    words = {word for word in query.lower().split() if word.isalnum()}
    weights = [0.0] * len(lines)
    for word in words:
        found = [at for at, line in enumerate(lines) if word in line.lower()]
        for at in found:
            weights[at] += 1 / len(found)
    if not any(weights):
        return None
    return weights.index(max(weights)) + 1


@given(lines=LINES, query=QUERIES, most=st.integers(1, 8))
def test_a_passage_has_the_best_line_in_the_order_of_the_text(
    lines: list[str], query: str, most: int
) -> None:
    found = passage("\n".join(lines), query, most)
    numbers = [number for number, _ in found]
    assert numbers == sorted(set(numbers))
    assert all(line == lines[number - 1].rstrip() for number, line in found if lines)
    best = best_line(lines, query)
    if best is None:
        assert numbers == [*range(1, len(lines or [""]) + 1)][:2]
    else:
        assert best in numbers
        assert len(numbers) <= most


def test_lines_beside_a_match_are_shown_while_there_is_room() -> None:
    text = "before\nneedle\nafter\nfar\nneedle\nend"
    every = list(enumerate(text.split("\n"), 1))
    assert passage(text, "needle", 6) == every
    assert passage(text, "needle", 5) == every[:3] + every[4:5]
    assert passage(text, "needle", 4) == every[:3] + every[4:5]
    assert passage(text, "needle", 3) == every[:3]
    assert passage(text, "needle", 2) == [every[1], every[4]]


def test_rare_words_weigh_more_and_long_lines_are_cut() -> None:
    rare = "rare " + "x" * 300
    assert passage("often\noften\nmiddle\n" + rare, "often rare", 1) == [(4, rare[:240])]


def test_a_snippet_is_a_line_around_the_first_match() -> None:
    assert snippet(said("needle\n  here"), "Needle") == ("needle here", ((0, 6),))
    line, spans = snippet(said("before " * 50 + "needle"), "needle")
    assert line.startswith("…")
    assert [line[start:end] for start, end in spans] == ["needle"]
    assert snippet(said("nothing of it"), "needle") == ("nothing of it", ())
