"""Which mutants `make mutations` tries, and which survivors it accepts."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.mutations.mutants import Change, Mutant, accepted, change_of, chosen, drawn

ROOT = Path(__file__).parents[1]

NAMES = [
    f"tui_agent.context.files.x_{name}__mutmut_{number}" for name in "abc" for number in range(9)
]
MUTANTS = [Mutant(name, "tui_agent/context/files.py") for name in NAMES]


@given(
    seed=st.integers(0, 9),
    count=st.integers(0, 30),
    shown=st.permutations(MUTANTS),
    gone=st.sets(st.sampled_from(MUTANTS)),
)
def test_what_else_changes_in_the_program_does_not_change_the_draw(
    seed: int, count: int, shown: list[Mutant], gone: set[Mutant]
) -> None:
    every = drawn(shown, len(shown), seed)
    assert set(every) == set(MUTANTS)
    left = [mutant for mutant in every if mutant not in gone]
    assert drawn([mutant for mutant in MUTANTS if mutant not in gone], count, seed) == left[:count]


def test_seeds_draw_differently() -> None:
    assert len({drawn(MUTANTS, 3, seed)[0] for seed in range(20)}) > 5


def test_modules_and_packages_are_chosen_by_name() -> None:
    files, cutting = (
        MUTANTS[0],
        Mutant("tui_agent.context.cutting.x_a__mutmut_1", "tui_agent/context/cutting.py"),
    )
    shell = Mutant("tui_agent.shell.needs.x_a__mutmut_1", "tui_agent/shell/needs.py")
    every = [files, cutting, shell]
    assert chosen(every, []) == every
    assert chosen(every, ["context"]) == [files, cutting]
    assert chosen(every, ["shell/needs", "context/files", "shell"]) == [shell, files]
    assert chosen(every, [shell.name]) == [shell]
    with pytest.raises(ValueError, match=r"^context/fil: no such module"):
        chosen(every, ["context/fil"])


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        ("x__need__mutmut_12", "_need"),
        ("x_need__mutmut_1", "need"),
        ("xǁFilesǁ__init____mutmut_1", "Files.__init__"),
        ("xǁ_Filesǁadd__mutmut_1", "_Files.add"),
    ],
)
def test_a_mutant_names_the_function_it_changes(mangled: str, name: str) -> None:
    module = "tui_agent.context.files"
    assert Mutant(f"{module}.{mangled}", "").function == f"{module}.{name}"


def test_a_change_is_read_from_a_diff() -> None:
    diff = [
        "--- a.py",
        "+++ a.py",
        "@@ -1,3 +1,3 @@",
        " def a():",
        "-    x = 1",
        "-    y",
        "+    x = 2",
    ]
    assert change_of("a.a", diff) == Change("a.a", "x = 1\ny", "x = 2")


def test_accepted_mutants_are_of_lines_that_exist_and_have_a_reason() -> None:
    for change, reason in accepted().items():
        assert len(reason.split()) > 2, change
        parts = change.function.split(".")
        path = next(path for path in _modules(parts) if path.is_file())
        lines = {line.strip() for line in path.read_text(encoding="utf-8").splitlines()}
        assert [line for line in change.before.splitlines() if line not in lines] == [], change
        assert change.before != change.after


def _modules(parts: list[str]) -> list[Path]:
    return [ROOT.joinpath(*parts[:length]).with_suffix(".py") for length in range(2, len(parts))]
