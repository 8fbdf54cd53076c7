"""Decides by rules and mode whether a need is allowed, asked about or denied. Pure.

Within a source the last matching rule counts, and a stronger source overrules a weaker one. Two things are firmer:
what a rule denies stays denied unless a flag of this very run allows it, and a catch-all never covers what is out of
the ordinary (secrets, the files that rule the program itself, commands that can't be understood).

Modes: ``plan`` changes nothing, ``build`` build output, ``auto-edit`` the files of the project. In the sandbox a mode
is what a command may write to, whatever the command is called. ``yolo`` runs everything that no rule denies, and is
never taken over from an earlier run.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import PurePath

from tui_agent.agent.permissions.rules import STRENGTH, Action, Rule, Source
from tui_agent.files.sensitive import is_sensitive, rules_programs
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.sandbox.view import Grants, View, Writes

_SUBCOMMAND = re.compile(r"[A-Za-z][\w-]*")
_RUNS = "it runs a command"
_NOBODY = Rule("*", "*", Action.ASK)


def decide(need: PermissionNeed, rules: Iterable[Rule], tool: str = "") -> Rule:
    """Return the rule that decides a need; its action is ``ask`` when none does."""
    verdicts: dict[Source, Rule] = {}
    rules = tuple(rules)
    for rule in rules:
        if rule.matches(need, tool) and _covers(rule, need):
            verdicts[rule.source] = rule
    flag = verdicts.get("flag")
    denied = [rule for rule in verdicts.values() if rule.action is Action.DENY and rule.source != "default"]
    if denied and flag is None:
        return min(denied, key=lambda rule: STRENGTH[rule.source])
    winner = max(verdicts.values(), key=lambda rule: STRENGTH[rule.source], default=_NOBODY)
    if winner.action is Action.ASK and winner.pattern == "*" and is_free(need):
        return Rule("bash", "*", Action.ALLOW)
    if winner.action is Action.ASK and winner.source == "default" and is_contained(need, rules):
        return Rule(need.permission.value, "*", Action.ALLOW)
    return winner


def refusal_of_tool(tool: str, rules: Iterable[Rule]) -> Rule | None:
    """Return the rule that forbids a tool as such, also where a call needs nothing else."""
    last: Rule | None = None
    for rule in sorted(rules, key=lambda rule: STRENGTH[rule.source]):
        if rule.pattern == "*" and rule.permission != "*" and rule.names_tool(tool):
            last = rule
    return last if last is not None and last.action is Action.DENY else None


def is_free(need: PermissionNeed) -> bool:
    """Whether a need is a command of the closed grammar."""
    return need.permission is Permission.BASH and need.harmless and not need.unclear


def is_contained(need: PermissionNeed, rules: Iterable[Rule]) -> bool:
    """Whether a need is to run something that the sandbox holds to its mode, so that what it is called does not matter.

    A rule against particular commands still counts: one that can't be told from those is asked about.
    """
    if not need.permission.runs or not need.sandboxed or need.changes:
        return False
    against = (rule for rule in rules if rule.action is not Action.ALLOW and rule.pattern != "*")
    return not (need.unclear and any(rule.is_about(need.permission.value) for rule in against))


def is_named(address: str, said: Iterable[str]) -> bool:
    """Whether an address stands in a text as it is, with nothing added that could carry something along."""
    bare = address.rstrip("/")
    end = r"(?=/?(?:[\s<>\"')\]},;!?]|[.:](?:\s|$)|$))"
    return any(re.search(re.escape(bare) + end, text) for text in said)


def holds_secrets(need: PermissionNeed) -> bool:
    """Whether a file is read that usually holds keys, or was found to."""
    return need.permission is Permission.READ and (need.secret or is_sensitive(PurePath(need.pattern)))


def is_protected(need: PermissionNeed) -> bool:
    """Whether a file is changed that rules what programs do here, or that usually holds keys."""
    if need.permission is not Permission.EDIT:
        return False
    path = PurePath(need.pattern)
    return rules_programs(path) or is_sensitive(path)


def _covers(rule: Rule, need: PermissionNeed) -> bool:
    """Whether a rule that matches may decide: one that allows everything may not have meant this."""
    if rule.action is not Action.ALLOW:
        return True
    if need.exceeds and rule.pattern == need.exceeds:
        return False
    meant = rule.source in {"user", "here", "flag"}
    if need.unclear:
        return rule.pattern == "*" and rule.source != "default"
    if holds_secrets(need) or is_protected(need):
        return rule.source != "default" and (rule.pattern != "*" or meant)
    return True


def reasons_for(asked: Sequence[tuple[PermissionNeed, Rule]], others: Iterable[PermissionNeed] = ()) -> str:
    """Return why a call asks, in a few words that name every command of a chain.

    ``others`` are its needs that are allowed. Commands with the same reason share a clause.
    """
    others = [need for need in others if need.permission is Permission.BASH]
    is_chain = len(others) + sum(need.permission is Permission.BASH for need, _rule in asked) > 1
    found: dict[str, list[str]] = {}
    for need, rule in asked:
        if need.changes and not holds_secrets(need) and not is_protected(need):
            found.setdefault(_change(need), []).append(_program(need))
            continue
        reason = reason_for(need, rule)
        runs = is_chain and reason == _RUNS
        found.setdefault(_RUNS if runs else reason, []).extend([_program(need)] if runs else [])
    clauses = []
    for reason, programs in found.items():
        names = list(dict.fromkeys(programs))
        if reason == _RUNS and names:
            clauses.append(f"it runs {_listed(names)}")
        elif names:
            clauses.append(f"{_listed(names)} {'wants' if len(names) == 1 else 'want'} to {reason}")
        else:
            clauses.append(reason)
    named = {program for programs in found.values() for program in programs}
    return ", and ".join(clauses) + _about_others([need for need in others if _program(need) not in named])


def _about_others(needs: Iterable[PermissionNeed]) -> str:
    held = list(dict.fromkeys(_program(need) for need in needs if need.sandboxed))
    free = list(dict.fromkeys(_program(need) for need in needs if not need.sandboxed))
    parts = [f"{_listed(held)} {'stays' if len(held) == 1 else 'stay'} in the sandbox"] if held else []
    parts += [f"{_listed(free)} {'needs' if len(free) == 1 else 'need'} no permission"] if free else []
    return "".join(f"; {part}" for part in parts)


def _listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence: ``a, b and c``."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _change(need: PermissionNeed) -> str:
    return f"change {' and '.join(map(_CHANGED.__getitem__, need.changes))}"


def reason_for(need: PermissionNeed, rule: Rule) -> str:
    """Return why a need asks, in a few words."""
    if need.unclear and not need.changes:
        return need.unclear
    if holds_secrets(need):
        return f"{need.pattern} {'holds a secret' if need.secret else 'usually holds secrets'}"
    if is_protected(need):
        secret = is_sensitive(PurePath(need.pattern))
        return f"{need.pattern} {'usually holds secrets' if secret else 'is run or read as settings by other programs'}"
    if need.changes:
        return f"{_program(need)} wants to {_change(need)}"
    if need.exceeds:
        return f"it has an option that “{need.exceeds}” does not stand for"
    known = {
        Permission.EXTERNAL_DIRECTORY: f"{need.pattern} is outside the project",
        Permission.EDIT: "it changes a file",
        Permission.BASH: _RUNS,
        Permission.TOOL: "it runs a function of a tool file",
        Permission.NETWORK: f"it wants to reach {need.pattern} on the network",
    }
    return known.get(need.permission, f"the rule “{rule}” asks")


_CHANGED = {
    "sources": "files of the project",
    "repository": "the repository",
    "data": "what /undo cannot bring back",
}


def _program(need: PermissionNeed) -> str:
    """Return the words a command is known by: ``ruff format``, ``git commit``; a tool's name; for a file "it"."""
    if need.permission is Permission.TOOL:
        return need.pattern
    if need.permission is not Permission.BASH:
        return "it"
    words = need.pattern.split()[:2]
    return " ".join(words[:1] + [word for word in words[1:] if _SUBCOMMAND.fullmatch(word)]) or "it"


class Mode(StrEnum):
    """What a session may do without asking."""

    BUILD = "build"
    AUTO_EDIT = "auto-edit"
    PLAN = "plan"
    YOLO = "yolo"


CYCLE = (Mode.BUILD, Mode.AUTO_EDIT, Mode.PLAN)
"""Modes that a key goes through; yolo has to be named."""

MODE_HELP: dict[Mode, str] = {
    Mode.BUILD: "asks before files of the project change; commands run in the sandbox and may write build output",
    Mode.AUTO_EDIT: "changes files of the project without asking, with commands in the sandbox too",
    Mode.PLAN: "changes nothing: reads, searches, and runs commands whose changes are thrown away",
    Mode.YOLO: "runs everything that no rule denies, without asking; ends with the program",
}
"""What each mode means, for lists."""

PLAN_REFUSAL = (
    "Not run: the session is in plan mode, in which nothing is changed. Read, search and describe what you would do; "
    "the user switches to build mode when it is to be done."
)
"""What the model is told of a call that plan mode refuses."""

_ANY_FILE = PermissionNeed(Permission.EDIT, ".")
PLAN_RULE = Rule("*", "*", Action.DENY)
"""What decides a need that plan mode refuses, whatever the rules say."""


def next_mode(mode: str) -> Mode:
    """Return the mode that the key goes to from ``mode``."""
    return CYCLE[(CYCLE.index(Mode(mode)) + 1) % len(CYCLE)] if mode in CYCLE else Mode.BUILD


def resumed_mode(mode: str | None, default: str) -> str:
    """Return the mode of a session that is opened again: what it was, but never yolo."""
    return default if mode is None else Mode.BUILD if mode == Mode.YOLO else mode


def view_in_mode(rules: Iterable[Rule], mode: str) -> View:
    """Return what commands in the sandbox may change in a mode: in build also the files that may be edited."""
    edits = decide(_ANY_FILE, rules).action
    if mode == Mode.PLAN:
        return View(Writes.NOTHING)
    if mode in {Mode.AUTO_EDIT, Mode.YOLO} and edits is not Action.DENY:
        return View(Writes.PROJECT)
    return View(Writes.OUTPUTS, Grants(sources=edits is Action.ALLOW))


def is_refused_by_plan(need: PermissionNeed) -> bool:
    if need.permission.runs:
        # What the sandbox throws away has changed nothing.
        return not is_free(need) and not (need.sandboxed and not need.changes)
    return need.permission in {Permission.EDIT, Permission.MCP}


def decide_in_mode(need: PermissionNeed, rules: Iterable[Rule], mode: str, tool: str = "") -> Rule:
    rules = tuple(rules)
    if "sources" in need.changes and (mode == Mode.PLAN or view_in_mode(rules, mode).changes_sources):
        # They may change, or what changes is thrown away.
        need = replace(need, changes=tuple(change for change in need.changes if change != "sources"))
    if mode == Mode.PLAN and is_refused_by_plan(need):
        return PLAN_RULE
    rule = decide(need, rules, tool)
    if rule.action is not Action.ASK:
        return rule
    if mode == Mode.YOLO and need.permission is not Permission.DOOM_LOOP:
        return Rule("*", "*", Action.ALLOW)
    if mode == Mode.AUTO_EDIT and _is_plain_edit(need) and rule.pattern == "*":
        return Rule("edit", "*", Action.ALLOW)
    return rule


def _is_plain_edit(need: PermissionNeed) -> bool:
    """Whether a file of the project is changed that a checkpoint can take back. Files outside have an absolute path."""
    plain = need.permission is Permission.EDIT and not need.pattern.startswith("/")
    return plain and not need.changes and not is_protected(need)
