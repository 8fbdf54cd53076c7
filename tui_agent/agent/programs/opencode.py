"""Reads OpenCode's ``opencode.json``: instructions, and the permissions that restrict; the rest by name.

Its servers are read by ``foreign_servers``. Source: OpenCode's page on its configuration.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tui_agent.agent.knowledge.folders import Folders
from tui_agent.agent.permissions import Action, Rule, RuleError, rules_from_table
from tui_agent.agent.programs.found import ForeignSettings, FoundItem, ItemState
from tui_agent.foreign_file import ForeignFile, read_foreign
from tui_agent.permission import Permission

PROGRAM = "OpenCode"

_NAMES = ("opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc")
_HOME = (".config/opencode/opencode.json", ".config/opencode/opencode.jsonc")
_READ_ELSEWHERE = {"$schema", "mcp"}
_INSTEAD = {
    "agent": "write .opencode/agents/NAME.md",
    "command": "write .opencode/commands/NAME.md",
    "model": "choose a model with F2, or set model in config.toml",
    "small_model": "set small_model in config.toml",
    "provider": "set [providers] or [models] in config.toml",
    "theme": "choose a theme with /theme",
    "keybinds": "set [ui.keys] in config.toml",
    "plugin": "its plugins can't run here",
}


def read_opencode(folders: Folders) -> ForeignSettings:
    """Return what OpenCode's settings of the user and of the project mean here."""
    files = [read_foreign(folders.home / name, f"~/{name}") for name in _HOME]
    files += [read_foreign(folders.project / name, name, folders.project) for name in _NAMES]
    rules: list[Rule] = []
    instructions: list[str] = []
    items: list[FoundItem] = []
    for file in filter(None, files):
        if file.problem:
            items.append(
                FoundItem(
                    PROGRAM,
                    "settings",
                    file.shown,
                    file.shown,
                    ItemState.WITHOUT_EFFECT,
                    file.problem,
                )
            )
        rules += _rules(file, items)
        instructions += _instructions(file, items)
        items += _others(file)
    return ForeignSettings(rules=tuple(rules), instructions=tuple(instructions), items=tuple(items))


def _instructions(file: ForeignFile, items: list[FoundItem]) -> Iterator[str]:
    listed = file.table.get("instructions")
    for pattern in listed if isinstance(listed, list) else ():
        name = str(pattern)
        problem = _not_read(name, file)
        state = ItemState.WITHOUT_EFFECT if problem else ItemState.ACTIVE
        items.append(FoundItem(PROGRAM, "instructions", name, file.place(name), state, problem))
        if not problem:
            yield name


def _not_read(name: str, file: ForeignFile) -> str:
    """Return why instructions are not read, "" when they are."""
    if name.startswith(("http://", "https://")):
        return "pages are not loaded as instructions; save it as a file"
    leads_out = name.startswith(("~", "/")) or ".." in Path(name).parts
    if file.of_project and leads_out:
        return "it is outside the project"
    return ""


def _rules(file: ForeignFile, items: list[FoundItem]) -> Iterator[Rule]:
    """Yield the rules that deny or ask; each spares what a later one of its table takes back."""
    known = set(Permission)
    for name, value in _permissions(file).items():
        if name not in known:
            why = "there is no such permission here"
            items.append(
                FoundItem(PROGRAM, "rule", name, file.place(name), ItemState.WITHOUT_EFFECT, why)
            )
            continue
        rules = _table(name, value, file, items)
        for number, rule in enumerate(rules):
            if rule.action is not Action.ALLOW:
                place = file.place(name)
                # As there, the last pattern that matches counts.
                spared = (
                    later.pattern
                    for later in rules[number + 1 :]
                    if later.action is not Action.DENY
                )
                kept = replace(rule, unless=tuple(spared), origin=place)
                items.append(
                    FoundItem(PROGRAM, f"{rule.action} rule", str(kept), place, ItemState.ACTIVE)
                )
                yield kept


def _permissions(file: ForeignFile) -> Mapping[str, Any]:
    given = file.table.get("permission")
    if isinstance(given, str):
        return {"edit": given, "bash": given, "webfetch": given}
    return file.section("permission")


def _others(file: ForeignFile) -> Iterator[FoundItem]:
    for key in file.table:
        if key not in {*_READ_ELSEWHERE, "instructions", "permission"}:
            why = _INSTEAD.get(key, "")
            yield FoundItem(PROGRAM, "setting", key, file.place(key), ItemState.WITHOUT_EFFECT, why)


def _table(name: str, value: object, file: ForeignFile, items: list[FoundItem]) -> list[Rule]:
    """Return the rules of one permission; rows that are wrong are named, and take no other along."""
    rules: list[Rule] = []
    for pattern, action in value.items() if isinstance(value, dict) else [("*", value)]:
        try:
            rules += rules_from_table({name: {pattern: str(action)}}, "other")
        except RuleError as error:
            items.append(
                FoundItem(
                    PROGRAM, "rule", name, file.place(name), ItemState.WITHOUT_EFFECT, str(error)
                )
            )
    # The catch-all pattern comes first, so that others overrule it.
    return sorted(rules, key=_is_narrow)


def _is_narrow(rule: Rule) -> bool:
    return rule.pattern != "*"
