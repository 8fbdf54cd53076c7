"""Tool outputs are cut when they are born: exact counts, whole lines, errors from the middle."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.context.settings import TruncationSettings
from tui_agent.context.truncation import (
    OutputLimits,
    cut_middle,
    error_looking,
    limits_for,
    most_informative,
    truncate,
)

ROOMY = OutputLimits(lines=2_000, bytes=50 * 1024, line_chars=2_000, tokens=20_000)


def numbered(count: int, bad: tuple[int, ...] = ()) -> str:
    return "".join(
        f"step {n}{' ERROR: no such thing' if n in bad else ' done'}\n" for n in range(1, count + 1)
    )


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

    cut = truncate(numbered(5_000), "head", ROOMY, first_line=101)

    assert cut.next_line == 101 + cut.truncation.kept_lines
    assert f"[Lines 101-{cut.next_line - 1:,} of 5,100 shown" in cut.text


def test_lines_that_are_only_cut_inside_have_no_next_line():
    limits = OutputLimits(lines=2_000, bytes=4_000, line_chars=2_000, tokens=20_000)

    cut = truncate("\n".join(["word " * 300] * 4), "head", limits, hint="Read on at {next}.")

    assert cut.truncation.kept_lines == cut.truncation.total_lines == 4
    assert cut.truncation.kept_bytes < cut.truncation.total_bytes
    assert cut.next_line is None
    assert "Read on" not in cut.text
    assert cut.text.count("characters left out") == 4


def test_both_ends_stay_and_twenty_errors_from_the_middle_with_their_line_numbers():
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

    cut = truncate(numbered(9_000, bad=(1, 5_500, 9_000)), "ends", ROOMY)
    assert cut.text.count("ERROR") == 3, "lines that are shown are not listed"

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
    assert cut_middle("x" * 100, 5, "#7") == "xx…#7", "where the note has no room, the address has"

    assert truncate("x" * 5_000_000, "ends", ROOMY).truncation.kept_bytes < 2_000
    log = truncate("all is well here, as far as anybody can tell\n" * 200_000, "ends", ROOMY)
    assert log.truncation.total_lines == 200_000
    assert len(log.text) <= ROOMY.bytes


def test_dense_text_gets_less_and_much_free_room_gives_more():
    limits = limits_for(16_384, 0, TruncationSettings())

    assert len(truncate("0123abcd" * 4_000, "ends", limits).text) < 1_638 * 1.5
    assert len(truncate("a word or two\n" * 4_000, "ends", limits).text) > 1_638 * 2

    full, roomy = (
        limits_for(65_536, free, TruncationSettings()).tokens for free in (5_000, 45_000)
    )

    assert full == 6_554
    assert roomy == 18_000
    assert limits_for(16_384, 12_000, TruncationSettings()).tokens == 1_638, (
        "one more would push out all else"
    )


lines = st.lists(
    st.one_of(st.text(max_size=30), st.sampled_from(["error: x", "字" * 500, "y" * 3_000, ""])),
    max_size=300,
)


@given(lines, st.sampled_from(["head", "ends"]), st.integers(1_024, 9_000), st.integers(20, 200))
def test_no_output_exceeds_its_limits_and_counts_are_exact(rows, keep, size, count):
    text = "\n".join(rows)
    limits = OutputLimits(lines=count, bytes=size, line_chars=200, tokens=100_000)

    cut = truncate(text, keep, limits)

    assert len(cut.text.encode("utf-8", "surrogatepass")) <= size
    assert cut.text.count("\n") <= count
    assert cut.next_line is None or cut.next_line <= len(text.splitlines())
    if cut.truncation:
        assert cut.truncation.total_bytes == len(text.encode("utf-8", "surrogatepass"))
        assert cut.truncation.kept_bytes <= cut.truncation.total_bytes
        assert cut.truncation.kept_lines <= cut.truncation.total_lines
    else:
        assert cut.text == text


NOISE = 1_500

PYTEST = """\
tests/test_errors.py::test_error_{n} PASSED                              [ {n}%]
---

E       assert 3 == 4
E        +  where 3 = total([1, 2])

tests/test_totals.py:5: AssertionError
FAILED tests/test_totals.py::test_totals_add_up - assert 3 == 4
"""
GCC = """\
gcc -Wall -c src/error_{n}.c -o build/error_{n}.o
---
src/parse.c:41:19: error: expected ';' before '}' token
/usr/bin/ld: build/main.o: in function `main':
main.c:(.text+0x1b): undefined reference to `frobnicate'
make: *** [Makefile:12: app] Error 1
"""
RUSTC = """\
   Compiling thiserror-impl v1.0.{n}
---
error[E0382]: borrow of moved value: `name`
  --> src/main.rs:9:20
error: could not compile `app` (bin "app") due to 1 previous error
thread 'tests::adds' panicked at src/lib.rs:12:9:
"""
GO = """\
=== RUN   TestErrorPath{n}
---
./main.go:8:2: declared and not used: total
./main.go:3:8: "fmt" imported and not used
--- FAIL: TestTotals (0.00s)
    totals_test.go:9: Total() = 3, want 4
panic: runtime error: index out of range [3] with length 3
"""
NPM = """\
  ✓ reports the error number {n} (3 ms)
---
npm ERR! code ELIFECYCLE
npm error Missing script: "biuld"
  ✕ adds totals (4 ms)
not ok 3 - adds totals
src/app.js
  14:7  error  'total' is assigned a value but never used  no-unused-vars
"""
SAMPLES = {
    "pytest": (
        PYTEST,
        ["assert 3 == 4", "test_totals.py:5: AssertionError", "FAILED tests/test_totals.py"],
    ),
    "gcc": (
        GCC,
        [
            "parse.c:41:19: error: expected",
            "undefined reference to `frobnicate'",
            "*** [Makefile:12: app]",
        ],
    ),
    "rustc": (
        RUSTC,
        [
            "error[E0382]: borrow",
            "--> src/main.rs:9:20",
            "could not compile",
            "panicked at src/lib.rs",
        ],
    ),
    "go": (
        GO,
        [
            "main.go:8:2: declared",
            '"fmt" imported',
            "FAIL: TestTotals",
            "totals_test.go:9: Total()",
            "panic: ",
        ],
    ),
    "npm": (
        NPM,
        ["npm ERR! code", 'Missing script: "biuld"', "✕ adds totals", "not ok 3", "14:7  error"],
    ),
}


def output(sample: str) -> str:
    """Return a long output with the sample's lines in its middle and its first line as noise around."""
    noise, _, errors = sample.partition("---\n")
    around = [noise.format(n=number) for number in range(NOISE)]
    return "".join([*around, errors, *around])


@pytest.mark.parametrize("window", [200_000, 32_000])
@pytest.mark.parametrize("name", SAMPLES)
def test_the_errors_of_a_program_survive_the_cut(name: str, window: int) -> None:
    sample, wanted = SAMPLES[name]
    text = output(sample)
    cut = truncate(text, "ends", OutputLimits(2_000, 50 * 1024, 2_000, window // 10))
    lines = text.split("\n")
    for part in wanted:
        shown = next(line for line in cut.text.split("\n") if part in line)
        number, _, rest = shown.partition(": ")
        assert lines[int(number) - 1].strip() == rest
    assert cut.text.count(": ") < 2_100


def test_reassuring_lines_are_no_errors_and_the_same_again_leaves_room_for_others() -> None:
    lines = [
        "0 errors", "no errors found", "errors: 0", "TypeError: x", "build failed", "fine", "FATAL x",
        "Tests run: 3, Failures: 1, Errors: 0", "test_error.py::test_error PASSED", "ok   app/errors 0.1s",
        "app.py:3: warning: x", "app.py:3:1: E501 line too long", "http://error.example:80: up",
    ]  # fmt: skip
    assert error_looking(lines) == [3, 4, 6, 7, 11, 12]

    lines = [f"error: lost connection {number}" for number in range(500)] + [
        "ValueError: the cause"
    ]
    lines += [f"error: lost connection {number}" for number in range(500)]
    chosen = most_informative(lines, 20)
    assert 500 in chosen
    assert len(chosen) == 20
