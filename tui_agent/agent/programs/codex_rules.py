"""Converts Codex's rules that forbid a command or ask about it (``.codex/rules/*.rules``).

The files are in Starlark. Calls of ``prefix_rule`` with literal arguments are read, with Python's
parser; nothing is run. Rules that allow, and everything else, are only listed. Source: Codex's
documentation of its rules.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_agent.agent.knowledge.folders import Folders
from tui_agent.agent.permissions import Action, Rule
from tui_agent.agent.programs.found import (
    ForeignSettings,
    FoundItem,
    ItemState,
    unreadable,
    without_effect,
)
from tui_agent.agent.programs.tool_rules import verbatim
from tui_agent.foreign_file import ForeignFile, read_foreign
from tui_agent.places import in_home, shown_in_home

if TYPE_CHECKING:
    import ast

_FOLDER = ".codex/rules"
_RULE = "prefix_rule"
_ACTIONS = {"forbidden": Action.DENY, "prompt": Action.ASK}
"""This program's action for each of Codex's decisions. A rule without a decision allows."""
_MAX_COMMANDS = 100
"""Maximum number of commands that the pattern of one rule may stand for."""


class _UnusableError(ValueError):
    """Raised for a statement that has no effect in this program; the message says why."""


def read_codex_rules(program: str, folders: Folders) -> ForeignSettings:
    """Return the user's and the project's rules that forbid or ask, as rules for this program.

    ``program`` is Codex's name. ``items`` also contains the statements without effect.
    """
    rules: list[Rule] = []
    items: list[FoundItem] = []
    for file in _files(folders):
        items += unreadable(program, file)
        for statement in _statements(program, file, items):
            place = f"{file.shown}:{statement.lineno}"
            try:
                made = _rules(statement, place)
            except _UnusableError as error:
                items.append(without_effect(program, "rule", place, place=place, why=str(error)))
                continue
            for rule in made:
                kind = f"{rule.action} rule"
                items.append(FoundItem(program, kind, str(rule), place, state=ItemState.ACTIVE))
            rules += made
    return ForeignSettings(rules=tuple(rules), items=tuple(items))


def _files(folders: Folders) -> Iterator[ForeignFile]:
    """Yield the rule files: the user's first, then the project's, from its root downwards."""
    for path in _in_folder(in_home(folders.home, _FOLDER)):
        file = read_foreign(path, shown_in_home(folders.home, path))
        if file is not None:
            yield file
    for folder in reversed(folders.upward()):
        for path in _in_folder(folder / _FOLDER):
            file = read_foreign(path, folders.name(path), folders.project)
            if file is not None:
                yield file


def _in_folder(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".rules")
    except OSError:
        return []


def _statements(program: str, file: ForeignFile, items: list[FoundItem]) -> "Sequence[ast.stmt]":
    """Return the statements of a file; if it can't be parsed, add an item to ``items``."""
    import ast

    try:
        return ast.parse(file.text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        why = "it can't be parsed as a file of rules"
        items.append(without_effect(program, "file", file.shown, place=file.shown, why=why))
        return ()


def _rules(statement: "ast.stmt", place: str) -> list[Rule]:
    """Return the rules for a call of ``prefix_rule``; raises _UnusableError for anything else."""
    given = _arguments(statement)
    decision = given.get("decision", "allow")
    action = _ACTIONS.get(str(decision))
    if action is None:
        raise _UnusableError(
            f"decision {decision}: write [permissions] in config.toml to allow a command"
        )
    commands = list(_commands(given.get("pattern")))
    return [Rule("bash", f"{command} *", action, "other", origin=place) for command in commands]


def _arguments(statement: "ast.stmt") -> dict[str, Any]:
    import ast

    call = getattr(statement, "value", None)
    if not isinstance(call, ast.Call) or getattr(call.func, "id", "") != _RULE:
        raise _UnusableError(f"only {_RULE} is read")
    try:
        return {str(row.arg): ast.literal_eval(row.value) for row in call.keywords}
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise _UnusableError("its arguments are not literal") from None


def _commands(pattern: object) -> Iterator[str]:
    """Yield the beginnings of commands that a pattern stands for, as parts of globs.

    A pattern is a list of words; instead of a word, it may contain a list of alternatives. Raises
    _UnusableError for another form.
    """
    if not isinstance(pattern, list) or not pattern:
        raise _UnusableError("its pattern is not a list of words")
    choices: list[list[str]] = []
    count = 1
    for part in pattern:
        words = part if isinstance(part, list) else [part]
        if not words or not all(isinstance(word, str) and word for word in words):
            raise _UnusableError("its pattern is not a list of words")
        choices.append(words)
        count *= len(words)
    if count > _MAX_COMMANDS:
        raise _UnusableError(f"its pattern stands for more than {_MAX_COMMANDS} commands")
    for chosen in product(*choices):
        # `verbatim` doesn't escape stars.
        yield " ".join([verbatim(word).replace("*", "[*]") for word in chosen])
