"""Reads OpenCode's ``opencode.json``: instructions, permissions that restrict, agents and commands.

The rest is named; its servers are read by ``foreign_servers``. Source: OpenCode's page on its configuration.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from tui_agent.agent.knowledge.documents import Document
from tui_agent.agent.knowledge.folders import Folder, Folders
from tui_agent.agent.permissions import Action, Rule, RuleError, rules_from_table
from tui_agent.agent.programs.found import (
    ForeignSettings,
    FoundItem,
    ItemState,
    settings_files,
    unreadable,
    unused_settings,
    without_effect,
)
from tui_agent.foreign_file import ForeignFile
from tui_agent.json_text import as_list
from tui_agent.lazy import frozen
from tui_agent.permission import Permission
from tui_agent.places import OPENCODE_FILES, OPENCODE_HOME_FILES

PROGRAM = "OpenCode"

_READ_HERE = {"$schema", "mcp", "agent", "command", "instructions", "permission"}
_BODIES = {"agent": "prompt", "command": "template"}
"""The field that holds the text of each kind of document."""
_GUARDED = [name for name in Permission if name not in {Permission.NETWORK, Permission.DOOM_LOOP}]
"""The permissions that a star stands for."""
_INSTEAD = {
    "model": "choose a model with F2, or set model in config.toml",
    "small_model": "set small_model in config.toml",
    "provider": "set [providers] or [models] in config.toml",
    "theme": "choose a theme with /theme",
    "keybinds": "set [keys] in config.toml",
    "plugin": "its plugins can't run here",
}


@frozen
class InlineDocument:
    """A command or agent in the settings, with the file it is in as its folder."""

    document: Document
    folder: Folder


def read_opencode(folders: Folders) -> ForeignSettings:
    """Return what OpenCode's settings of the user and of the project mean here."""
    rules: list[Rule] = []
    instructions: list[str] = []
    items: list[FoundItem] = []
    for file in settings_files(folders, OPENCODE_HOME_FILES, OPENCODE_FILES):
        items += unreadable(PROGRAM, file)
        rules += _rules(file, items)
        instructions += _instructions(file, folders, items)
        items += unused_settings(PROGRAM, file, _READ_HERE, instead=_INSTEAD)
    return ForeignSettings(rules=tuple(rules), instructions=tuple(instructions), items=tuple(items))


def inline_documents(
    folders: Folders, kind: Literal["agent", "command"]
) -> dict[Path, InlineDocument]:
    """Return the commands or agents in the settings, weak to strong, by file and name."""
    found: dict[Path, InlineDocument] = {}
    if folders.left_out.covers(PROGRAM, f"{kind}s"):
        return found
    for file in settings_files(folders, OPENCODE_HOME_FILES, OPENCODE_FILES):
        folder = Folder(file.path, file.shown, PROGRAM, of_project=file.of_project)
        for name, given in file.section(kind).items():
            if isinstance(given, dict):
                # A name must not lead to another place.
                path = file.path / name.replace("/", ":")
                found[path] = InlineDocument(_inline_document(given, _BODIES[kind]), folder)
    return found


def _inline_document(given: Mapping[str, Any], body_key: str) -> Document:
    """Return a table as a document; a text that names a file (``{file:x}``) is not read."""
    fields = dict(given)
    body = str(fields.pop(body_key, "")).strip()
    if body.startswith("{file:"):
        fields[f"{body_key} {body}"] = True
        body = ""
    return Document(fields, body)


def _instructions(file: ForeignFile, folders: Folders, items: list[FoundItem]) -> Iterator[str]:
    for pattern in as_list(file.table.get("instructions")):
        name = str(pattern)
        problem = _not_read(name, file)
        state = ItemState.WITHOUT_EFFECT if problem else ItemState.ACTIVE
        place = file.place(name)
        items.append(FoundItem(PROGRAM, "instructions", name, place, state=state, why=problem))
        if not problem:
            yield from _looked_up(name, folders)


def _looked_up(pattern: str, folders: Folders) -> Iterator[str]:
    """Yield a pattern for each directory on the way up in which it names a file, as it is looked for there."""
    if pattern.startswith(("~", "/")):
        yield pattern
        return
    *below, root = folders.upward()
    for folder in reversed(below):
        try:
            found = next(folder.glob(pattern), None)
        except (OSError, ValueError, NotImplementedError, IndexError, RecursionError):
            found = None
        if found is not None:
            yield f"{folder.relative_to(root).as_posix()}/{pattern}"
    yield pattern


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
        place = file.place(name)
        if name not in known:
            why = "there is no such permission here"
            items.append(without_effect(PROGRAM, "rule", name, place=place, why=why))
            continue
        rules = _table(name, value, place, items)
        for number, rule in enumerate(rules, 1):
            if rule.action is Action.ALLOW:
                continue
            # As there, the last pattern that matches counts.
            spared = [later.pattern for later in rules[number:] if later.action is not Action.DENY]
            kept = replace(rule, unless=tuple(spared), origin=place)
            kind = f"{rule.action} rule"
            items.append(FoundItem(PROGRAM, kind, str(kept), place, state=ItemState.ACTIVE))
            yield kept


def _permissions(file: ForeignFile) -> Mapping[str, Any]:
    given = file.table.get("permission")
    if isinstance(given, str):
        return dict.fromkeys(_GUARDED, given)
    return by_permission(file.section("permission"))


def by_permission(table: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the values by permission.

    As there, a star is all of them, but for those named later.
    """
    found: dict[str, Any] = {}
    for name, value in table.items():
        if name == "*":
            found |= dict.fromkeys(_GUARDED, value)
        else:
            found[str(name)] = value
    return found


def _table(name: str, value: object, place: str, items: list[FoundItem]) -> list[Rule]:
    """Return the rules of one permission.

    Rows that are wrong are named, and take no other along.
    """
    rules: list[Rule] = []
    actions = value if isinstance(value, dict) else {"*": value}
    for pattern, action in actions.items():
        try:
            rules += rules_from_table({name: {pattern: str(action)}}, "other")
        except RuleError as error:
            items.append(without_effect(PROGRAM, "rule", name, place=place, why=str(error)))
    # The catch-all pattern comes first, so that others overrule it.
    return sorted(rules, key=_is_narrow)


def _is_narrow(rule: Rule) -> bool:
    return rule.pattern != "*"
