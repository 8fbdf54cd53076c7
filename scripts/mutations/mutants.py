"""Which mutants are tried, what became of them, and which survivors are accepted."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = "tui_agent"
ACCEPTED = Path(__file__).with_name("accepted.toml")
SEPARATOR = "ǁ"
"""What mutmut puts around the name of a class: ``xǁClassǁmethod``, but ``x_function``."""


class Outcome(StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"
    ACCEPTED = "survived, accepted"
    NOT_CALLED = "called by none of the tests"
    CRASHED = "ended in another way"
    NOT_TRIED = "not tried within the time"


OUTCOMES = {
    "killed": Outcome.KILLED,
    "segfault": Outcome.KILLED,
    "timeout": Outcome.TIMED_OUT,
    "survived": Outcome.SURVIVED,
    "no tests": Outcome.NOT_CALLED,
    "not checked": Outcome.NOT_TRIED,
}
"""Outcomes by mutmut's words for them; every other word is a crash."""


@dataclass(frozen=True)
class Mutant:
    """One change of one function."""

    name: str
    """mutmut's: ``tui_agent.context.files.xǁFilesǁadd__mutmut_3``."""
    path: str
    """Of the module, relative to the project."""

    @property
    def function(self) -> str:
        """Name of the changed function, with its class if it has one."""
        module, _, mangled = self.name.rpartition(".")
        plain = mangled.partition("__mutmut_")[0]
        return f"{module}.{plain[2:].replace(SEPARATOR, '.')}"


@dataclass(frozen=True)
class Change:
    """The lines of a function that a mutant replaces, without their indentation."""

    function: str
    before: str
    after: str


def change_of(function: str, diff: Iterable[str]) -> Change:
    """Read a change from the lines of a unified diff."""
    before = list[str]()
    after = list[str]()
    for line in diff:
        if line.startswith(("---", "+++")):
            continue
        if line.startswith("-"):
            before.append(line[1:].strip())
        if line.startswith("+"):
            after.append(line[1:].strip())
    return Change(function, "\n".join(before), "\n".join(after))


def accepted(path: Path = ACCEPTED) -> dict[Change, str]:
    """Return the accepted changes with their reasons."""
    rows = tomllib.loads(path.read_text(encoding="utf-8")).get("accepted", [])
    return {
        Change(row["function"], row["before"].strip(), row["after"].strip()): row["reason"]
        for row in rows
    }


def chosen(mutants: Iterable[Mutant], modules: Iterable[str]) -> list[Mutant]:
    """Return the mutants of modules and packages such as ``context/files`` and ``shell``; all without names.

    A name may also be that of one mutant.

    Raises:
        ValueError: one of the names has no mutants.
    """
    found = list(mutants)
    names = list(modules)
    if not names:
        return found
    by_name = {name: [mutant for mutant in found if _is_of(mutant, name)] for name in names}
    for name, belonging in by_name.items():
        if not belonging:
            raise ValueError(
                f"{name}: no such module, package or mutant among those that are changed"
            )
    return list({mutant: None for belonging in by_name.values() for mutant in belonging})


def drawn(mutants: Iterable[Mutant], count: int, seed: int) -> list[Mutant]:
    """Return ``count`` mutants at random. A mutant's place in the draw depends only on the seed and its own name."""

    def place(mutant: Mutant) -> bytes:
        return sha256(f"{seed} {mutant.name}".encode()).digest()

    return sorted(mutants, key=place)[:count]


def _is_of(mutant: Mutant, name: str) -> bool:
    if name == mutant.name:
        return True
    path = f"{PACKAGE}/{name.removesuffix('.py').strip('/')}"
    return mutant.path == f"{path}.py" or mutant.path.startswith(f"{path}/")
