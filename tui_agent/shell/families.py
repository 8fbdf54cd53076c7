"""Finds the rule that the user's answer "always" creates, for one command or its whole family.

`git commit -m x` belongs to the family `git commit *`, and `npm run test -- x` to `npm run test *`.
A family consists of a program, perhaps with a subcommand, and the options that `families.txt` lists
for it. These options only select the input, change how it is shown, or do the family's work. Any
other option might start a program, write to a named file, or read other settings. Therefore, the
user is asked about it even if a rule allows the family.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from tui_agent.lazy import frozen
from tui_agent.shell.reader import Word
from tui_agent.word_lists import listed

_TABLE = Path(__file__).with_suffix(".txt")
"""The file that lists the options of each command family, taken from the programs' own help."""

_TASKS = listed("npm pnpm yarn bun")
"""Programs with a `run` subcommand. Each of their tasks is a command family of its own."""
_RUNNERS = frozenset(
    ["uv run", "poetry run", "pipenv run", "pdm run", "bundle exec", "npx", "bunx", "pnpm exec"]
)
"""Programs, called runners, that run the command after them. That command determines the family."""
_MODULES = listed(
    "pytest unittest doctest mypy ruff black isort flake8 pylint compileall coverage build"
)
_SCRIPTED = re.compile(r"(?:python|pypy)[\d.]*|node|ts-node|tsx|bash|sh|zsh|ruby|perl|php")
_BLOCK = re.compile(r"^(\w[^:]*):\n((?:    .*\n)+)", re.MULTILINE)
"""Matches a block of `families.txt`: family names separated by commas, then lines of options."""
_PLAIN = re.compile(r"[\w.@/:+-]+", re.ASCII)
_BRANCHES = listed("fetch pull")
"""Subcommands of git whose families don't cover operands with a colon.

Such an operand can be a URL, which leads to another machine. Names of remotes and branches, which
contain no colon, are covered.
"""

_MODULES_ONLY = listed("unittest doctest compileall coverage build")
"""Names of Python modules that form a family only after ``python -m``.

A program with the same name may be something else.
"""


@frozen
class _Family:
    """The family of a command. ``name`` contains the words with which all its commands begin.

    ``fits`` is True if the family covers all options of the command.
    """

    name: tuple[str, ...]
    fits: bool


def family(words: Sequence[Word]) -> tuple[str, str]:
    """Return the pattern of the rule that is created if the user answers "always" for a command.

    The second result is usually "". If the command's family doesn't cover one of the command's
    options, the rule is only for this command, and the second result is the family's pattern.
    """
    exact = escaped(" ".join(word.shown for word in words))
    found = _named(["$" if word.value is None else word.value for word in words])
    if found is None or not all(map(_PLAIN.fullmatch, found.name)):
        return exact, ""
    pattern = f"{' '.join(found.name)} *"
    if not found.fits:
        return exact, pattern
    # If the task has no arguments, the rule allows exactly this command. Otherwise, it allows the
    # whole family.
    is_task = found.name[0] in _TASKS and "run" in found.name
    if is_task and len(found.name) == len(words):
        return exact, ""
    return pattern, ""


def run_by(words: Sequence[str]) -> list[str]:
    """Return the commands that a runner (``uv run``, ``npx``) may start, so rules can deny them.

    The runner may have options of its own, so the command may begin at any of the next six words.
    Returns [] if the words don't begin with a runner.
    """
    size = _runner_size(words)
    if size:
        return [" ".join(words[first:]) for first in range(size, min(len(words), size + 6))]
    return []


def _runner_size(words: Sequence[str]) -> int:
    """Return how many words at the start form a runner (``uv run``), or 0 if there is no runner."""
    return next((size for size in (1, 2) if " ".join(words[:size]) in _RUNNERS), 0)


def escaped(text: str) -> str:
    """Return a glob pattern that matches exactly the given text."""
    return re.sub(r"([*?\[])", r"[\1]", text)


def _named(words: Sequence[str]) -> _Family | None:
    """Return the family of a command, or None if the command doesn't belong to any family."""
    if size := _runner_size(words):
        inner = _named(words[size:])
        if inner is None:
            return None
        return _Family((*words[:size], *inner.name), inner.fits)
    program, second, *_rest = (*words, "", "")
    if program in _TASKS and second == "run" and len(words) > 2:
        return _family_of(words, 3, f"{program} run")
    for size in (3, 2, 1):
        name = " ".join(words[:size])
        if len(words) >= size and name in option_table() and name not in _MODULES_ONLY:
            return _family_of(words, size, name)
    return _of_script(words, program, second)


def _of_script(words: Sequence[str], program: str, second: str) -> _Family | None:
    """Return the family of a command that runs a local program (``./x``), a script or a module.

    A module is a Python module run with ``-m``. Returns None for other commands.
    """
    if program.startswith("./") and len(program) > 2:
        return _Family((program,), fits=True)
    if not _SCRIPTED.fullmatch(program):
        return None
    if second == "-m" and words[2:3] and words[2] in _MODULES:
        if words[2] != "ruff":
            return _family_of(words, 3, words[2])
        # The options of ruff are listed by subcommand.
        name = " ".join(words[2:4])
        return _Family(tuple(words[:3]), _knows(name, words[2 + len(name.split()) :]))
    if "." in second and not second.startswith("-"):
        return _Family(tuple(words[:2]), fits=True)
    return None


def _family_of(words: Sequence[str], size: int, name: str) -> _Family:
    """Return the family named by the first ``size`` words of a command.

    The family's options are listed under ``name``.
    """
    return _Family(tuple(words[:size]), _knows(name, words[size:]))


def _knows(name: str, words: Sequence[str]) -> bool:
    """Return True if ``words`` contain only options that are listed for the family ``name``.

    Words after ``--`` are not options. For the families in `_BRANCHES`, also returns False if an
    operand has a colon.
    """
    for word in words:
        if word == "--":
            break
        if word.startswith("-") and word != "-":
            is_known = _knows_option(name, word)
        else:
            is_known = ":" not in word or name.partition(" ")[2] not in _BRANCHES
        if not is_known:
            return False
    return True


def _knows_option(name: str, option: str) -> bool:
    known = option_table().get(name, frozenset())
    whole = option.partition("=")[0]
    if whole in known or f"{whole}:" in known or re.fullmatch(r"-\d{1,6}", option):
        return True
    if option.startswith("--") or name.startswith("go "):
        return False  # This is a long option. Go programs write these with one dash.
    # Several one-letter options may be combined in one word. The last of them may be followed by
    # its value.
    flags = "".join(known_one[1] for known_one in known if len(known_one) == 2)
    rest = option[1:].lstrip(flags)
    return not rest or f"-{rest[0]}:" in known


@lru_cache(maxsize=1)
def option_table() -> Mapping[str, frozenset[str]]:
    """Return the options listed in `families.txt`, by family name.

    A one-letter option that takes a value ends with a colon: ``-m:``.
    """
    found: dict[str, frozenset[str]] = {}
    for names, options in _BLOCK.findall(_TABLE.read_text(encoding="utf-8")):
        for name in names.split(","):
            found[" ".join(name.split())] = listed(options)
    return found
