"""Errors of real programs are found in the middle of long outputs."""

import pytest

from tui_agent.context.truncation import OutputLimits, error_looking, most_informative, truncate

NOISE = 1_500

PYTEST = """\
tests/test_errors.py::test_error_{n} PASSED                              [ {n}%]
---
=================================== FAILURES ===================================
______________________________ test_totals_add_up ______________________________

    def test_totals_add_up():
>       assert total([1, 2]) == 4
E       assert 3 == 4
E        +  where 3 = total([1, 2])

tests/test_totals.py:5: AssertionError
=========================== short test summary info ============================
FAILED tests/test_totals.py::test_totals_add_up - assert 3 == 4
"""
GCC = """\
gcc -Wall -c src/error_{n}.c -o build/error_{n}.o
---
src/parse.c: In function 'parse':
src/parse.c:41:19: error: expected ';' before '}' token
   41 |     return count
      |                   ^
      |                   ;
/usr/bin/ld: build/main.o: in function `main':
main.c:(.text+0x1b): undefined reference to `frobnicate'
collect2: error: ld returned 1 exit status
make: *** [Makefile:12: app] Error 1
"""
RUSTC = """\
   Compiling thiserror-impl v1.0.{n}
---
error[E0382]: borrow of moved value: `name`
  --> src/main.rs:9:20
   |
7  |     let name = String::from("x");
   |         ---- move occurs because `name` has type `String`, which does not implement the `Copy` trait
error: could not compile `app` (bin "app") due to 1 previous error
thread 'tests::adds' panicked at src/lib.rs:12:9:
assertion `left == right` failed
"""
GO = """\
=== RUN   TestErrorPath{n}
---
# example.com/app
./main.go:8:2: declared and not used: total
./main.go:3:8: "fmt" imported and not used
--- FAIL: TestTotals (0.00s)
    totals_test.go:9: Total() = 3, want 4
panic: runtime error: index out of range [3] with length 3
FAIL	example.com/app	0.004s
"""
NPM = """\
  ✓ reports the error number {n} (3 ms)
---
npm ERR! code ELIFECYCLE
npm ERR! Exit status 1
npm error Missing script: "biuld"
  ✕ adds totals (4 ms)
not ok 3 - adds totals
src/app.js
  14:7  error  'total' is assigned a value but never used  no-unused-vars
"""
SAMPLES = {
    "pytest": (PYTEST, ["assert 3 == 4", "test_totals.py:5: AssertionError", "FAILED tests/test_totals.py"]),
    "gcc": (GCC, ["parse.c:41:19: error: expected", "undefined reference to `frobnicate'", "*** [Makefile:12: app]"]),
    "rustc": (RUSTC, ["error[E0382]: borrow", "--> src/main.rs:9:20", "could not compile", "panicked at src/lib.rs"]),
    "go": (GO, ["main.go:8:2: declared", '"fmt" imported', "FAIL: TestTotals", "totals_test.go:9: Total()", "panic: "]),
    "npm": (NPM, ["npm ERR! code", 'Missing script: "biuld"', "✕ adds totals", "not ok 3", "14:7  error"]),
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


def test_reassuring_lines_are_not_errors() -> None:
    lines = [
        "0 errors", "no errors found", "errors: 0", "TypeError: x", "build failed", "fine", "FATAL x",
        "Tests run: 3, Failures: 1, Errors: 0", "test_error.py::test_error PASSED", "ok   app/errors 0.1s",
        "app.py:3: warning: x", "app.py:3:1: E501 line too long", "http://error.example:80: up",
    ]  # fmt: skip
    assert error_looking(lines) == [3, 4, 6, 7, 11, 12]


def test_the_same_error_again_and_again_leaves_room_for_others() -> None:
    lines = [f"error: lost connection {number}" for number in range(500)] + ["ValueError: the cause"]
    lines += [f"error: lost connection {number}" for number in range(500)]
    chosen = most_informative(lines, 20)
    assert 500 in chosen
    assert len(chosen) == 20
