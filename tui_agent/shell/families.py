"""Which rule "always" offers for a command: the family it belongs to, where that is known; else the very same command.

`git commit -m x` belongs to `git commit *`; `npm run test` is a family of its own. A family is a
program with the options listed in `families.txt`: each only selects input or how it is shown, or
does the family's work. An option that is not listed (one that starts a program, writes to a named
file, or reads other settings) is asked about, though a rule allows the family.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from tui_agent.shell.reader import Word
from tui_agent.word_lists import listed

_TABLE = Path(__file__).with_suffix(".txt")
"""The options of each family, from the programs' own help."""

_TASKS = listed("npm pnpm yarn bun")
"""Programs whose `run` takes the name of a task, which is a family."""
_RUNNERS = (
    "uv run",
    "poetry run",
    "pipenv run",
    "pdm run",
    "bundle exec",
    "npx",
    "bunx",
    "pnpm exec",
)
"""The rest is a command with a family of its own."""
_MODULES = listed(
    "pytest unittest doctest mypy ruff black isort flake8 pylint compileall coverage build"
)
_SCRIPTED = re.compile(r"(?:python|pypy)[\d.]*|node|ts-node|tsx|bash|sh|zsh|ruby|perl|php")
_PLAIN = re.compile(r"[\w.@/:+-]+", re.ASCII)
_BRANCHES = listed("fetch pull")
"""Subcommands of git whose operands name remotes and branches; an address would reach another
machine."""

_MODULES_ONLY = listed("unittest doctest compileall coverage build")
"""Known as modules of Python; programs may have these names, too."""


def family(words: Sequence[Word]) -> tuple[str, str]:
    """Return the pattern of the rule that "always" creates for a simple command.

    With it the pattern of the family that the command would belong to but for an option; "" where
    there is none.
    """
    exact = escaped(" ".join(word.shown for word in words))
    named, fits = _named([word.value if word.value is not None else "$" for word in words]) or (
        (),
        False,
    )
    if not named or not all(map(_PLAIN.fullmatch, named)):
        return exact, ""
    pattern = f"{' '.join(named)} *"
    if not fits:
        return exact, pattern
    # A task as it stands is the one asked about; with arguments it is a family.
    is_task = named[0] in _TASKS and "run" in named
    return exact if len(named) == len(words) and is_task else pattern, ""


def run_by(words: Sequence[str]) -> list[str]:
    """Return the commands a runner (``uv run``, ``npx``) may run, for rules against that: all of it, or less."""
    size = _runner_size(words)
    if size:
        return [" ".join(words[first:]) for first in range(size, min(len(words), size + 6))]
    return []


def _runner_size(words: Sequence[str]) -> int:
    """Return how many words at the beginning are a runner."""
    return next((size for size in (1, 2) if " ".join(words[:size]) in _RUNNERS), 0)


def escaped(text: str) -> str:
    """Return a pattern that matches a text only."""
    return re.sub(r"([*?\[])", r"[\1]", text)


def _named(words: Sequence[str]) -> tuple[tuple[str, ...], bool] | None:
    """Return the family of a command; None where only the very same command may be offered."""
    if size := _runner_size(words):
        inner = _named(words[size:])
        return ((*words[:size], *inner[0]), inner[1]) if inner else None
    program, second = (*words, "", "")[:2]
    if program in _TASKS and second == "run" and len(words) > 2:
        return tuple(words[:3]), _knows(f"{program} run", words[3:])
    for size in (3, 2, 1):
        name = " ".join(words[:size])
        if len(words) >= size and name in option_table() and name not in _MODULES_ONLY:
            return tuple(words[:size]), _knows(name, words[size:])
    if _SCRIPTED.fullmatch(program):
        if second == "-m" and words[2:3] and words[2] in _MODULES:
            module = " ".join(words[2:4]) if words[2] == "ruff" else words[2]
            return tuple(words[:3]), _knows(module, words[2 + len(module.split()) :])
        return (tuple(words[:2]), True) if "." in second and not second.startswith("-") else None
    return ((program,), True) if program.startswith("./") and len(program) > 2 else None


def _knows(name: str, words: Sequence[str]) -> bool:
    """Return whether every option is listed for a family. Words after ``--`` are operands."""
    known = option_table().get(name, frozenset())
    flags = "".join(option[1] for option in known if len(option) == 2)
    valued = {option[1] for option in known if len(option) == 3 and option.endswith(":")}
    for word in words:
        if word == "--":
            break
        if not word.startswith("-") or word == "-":
            if name.partition(" ")[2] in _BRANCHES and ":" in word:
                return False
            continue
        whole = word.partition("=")[0]
        if whole in known or f"{whole}:" in known or re.fullmatch(r"-\d{1,6}", word):
            continue
        # Letters may be joined, the last one with its value; Go has words with one dash instead.
        rest = word[1:].lstrip(flags)
        if word.startswith("--") or name.startswith("go ") or (rest and rest[0] not in valued):
            return False
    return True


@lru_cache(maxsize=1)
def option_table() -> Mapping[str, frozenset[str]]:
    """Return the options of each family, as they are written; a letter with a colon takes a value."""
    found: dict[str, frozenset[str]] = {}
    for block in re.findall(
        r"^(\w[^:]*):\n((?:    .*\n)+)", _TABLE.read_text(encoding="utf-8"), re.MULTILINE
    ):
        found |= dict.fromkeys(
            map(str.strip, re.sub(r"\s+", " ", block[0]).split(",")), frozenset(block[1].split())
        )
    return found
