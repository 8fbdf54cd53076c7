"""Tool outputs are cut when they are born: exact counts, whole lines, errors from the middle."""

import re

from hypothesis import given
from hypothesis import strategies as st

from tui_agent.context.settings import TruncationSettings
from tui_agent.context.truncation import OutputLimits, cut_middle, limits_for, truncate

ROOMY = OutputLimits(lines=2_000, bytes=50 * 1024, line_chars=2_000, tokens=20_000)


def numbered(count: int, bad: tuple[int, ...] = ()) -> str:
    return "".join(f"step {n}{' ERROR: no such thing' if n in bad else ' done'}\n" for n in range(1, count + 1))


def test_the_head_ends_with_the_line_to_go_on_from():
    text = numbered(5_000)

    cut = truncate(text, "head", ROOMY, hint="Read on with offset={next}.")

    shown = cut.text.split("\n\n[")[0].split("\n")
    assert shown == text.split("\n")[: len(shown)]
    assert cut.next_line == len(shown) + 1
    assert cut.text.endswith(f"Read on with offset={len(shown) + 1}.]")
    assert cut.truncation.total_lines == 5_000
    assert cut.truncation.total_bytes == len(text)
    assert cut.truncation.kept_lines == len(shown) <= 2_000
    assert cut.truncation.kept_bytes == len("\n".join(shown)) + 1


def test_line_numbers_count_from_the_first_line_given():
    cut = truncate(numbered(5_000), "head", ROOMY, first_line=101)

    assert cut.next_line == 101 + cut.truncation.kept_lines
    assert f"[Lines 101-{cut.next_line - 1:,} of 5,100 shown" in cut.text


def test_both_ends_stay_and_errors_from_the_middle_come_with_their_line_numbers():
    text = numbered(9_000, bad=(4_000, 5_500))

    cut = truncate(text, "ends", ROOMY)

    assert cut.text.startswith("step 1 done\n")
    assert cut.text.endswith("step 9000 done")
    assert "\n4000: step 4000 ERROR: no such thing\n5500: step 5500 ERROR" in cut.text
    missing = re.search(r"\[([\d,]+) of 9,000 lines left out here \(([\d,]+)-([\d,]+)\)", cut.text)
    count, first, last = (int(number.replace(",", "")) for number in missing.groups())
    assert count == last - first + 1 == 9_000 - (cut.truncation.kept_lines - 2)
    assert f"step {first - 1} done\n" in cut.text
    assert f"\nstep {last + 1} done" in cut.text
    assert f"\nstep {first} " not in cut.text


def test_at_most_twenty_errors_are_shown_the_first_and_the_last_ones():
    cut = truncate(numbered(9_000, bad=tuple(range(2_000, 8_000))), "ends", ROOMY)

    shown = re.findall(r"^(\d+): ", cut.text, re.MULTILINE)
    assert len(shown) == 20
    assert [int(number) for number in shown[:16]] == list(range(2_000, 2_016))
    assert [int(number) for number in shown[16:]] == list(range(7_996, 8_000))


def test_a_line_that_is_too_long_is_cut_inside_and_says_by_how_much():
    cut = truncate("short\n" + "x" * 9_000 + "\nend", "head", ROOMY)

    lines = cut.text.split("\n")
    assert lines[0] == "short"
    assert lines[2] == "end"
    assert len(lines[1]) <= 2_000
    left_out = int(re.search(r"\[([\d,]+) characters left out\]", lines[1])[1].replace(",", ""))
    assert left_out == 9_000 - lines[1].count("x")
    assert cut.truncation.kept_bytes == 9_010 - left_out


def test_dense_text_counts_as_more_tokens():
    limits = limits_for(16_384, 0, TruncationSettings())

    assert len(truncate("0123abcd" * 4_000, "ends", limits).text) < 1_638 * 1.5
    assert len(truncate("a word or two\n" * 4_000, "ends", limits).text) > 1_638 * 2


def test_an_output_may_take_more_of_a_window_with_much_free_room():
    full, roomy = (limits_for(65_536, free, TruncationSettings()).tokens for free in (5_000, 45_000))

    assert full == 6_554
    assert roomy == 18_000
    assert limits_for(16_384, 12_000, TruncationSettings()).tokens == 1_638, "one more would push out all else"


def test_a_huge_log_and_a_huge_line_are_cut():
    assert truncate("x" * 5_000_000, "ends", ROOMY).truncation.kept_bytes < 2_000
    log = truncate("all is well here, as far as anybody can tell\n" * 200_000, "ends", ROOMY)
    assert log.truncation.total_lines == 200_000
    assert len(log.text) <= ROOMY.bytes


lines = st.lists(
    st.one_of(st.text(max_size=30), st.sampled_from(["error: x", "字" * 500, "y" * 3_000, ""])), max_size=300
)


@given(lines, st.sampled_from(["head", "ends"]), st.integers(1_024, 9_000), st.integers(20, 200))
def test_no_output_exceeds_its_limits_and_counts_are_exact(rows, keep, size, count):
    text = "\n".join(rows)
    limits = OutputLimits(lines=count, bytes=size, line_chars=200, tokens=100_000)

    cut = truncate(text, keep, limits)

    assert len(cut.text.encode("utf-8", "surrogatepass")) <= size
    assert cut.text.count("\n") <= count
    if cut.truncation:
        assert cut.truncation.total_bytes == len(text.encode("utf-8", "surrogatepass"))
        assert cut.truncation.kept_bytes <= cut.truncation.total_bytes
        assert cut.truncation.kept_lines <= cut.truncation.total_lines
    else:
        assert cut.text == text


@given(st.text(max_size=400), st.integers(1, 300))
def test_cut_middle_never_exceeds_its_length(text, chars):
    cut = cut_middle(text, chars)

    assert len(cut) <= chars
    assert len(text) > chars or cut == text
