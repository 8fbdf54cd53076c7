"""Converts settings of ``opencode.json``: instructions, rules that ask or deny, agents, commands.

All other settings are only listed; ``foreign_servers`` reads the MCP servers. Source: OpenCode's
documentation of its configuration.
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
"""For each kind of document, the name of the field that contains its text."""
_GUARDED = [name for name in Permission if name not in {Permission.NETWORK, Permission.DOOM_LOOP}]
"""The permissions that ``*`` covers in OpenCode's ``permission`` table."""
_INSTEAD = {
    "model": "choose a model with /model, or set model in config.toml",
    "small_model": "set small_model in config.toml",
    "provider": "set [providers] or [models] in config.toml",
    "theme": "choose a theme with /theme",
    "keybinds": "set [keys] in config.toml",
    "plugin": "its plugins are not supported",
}
"""For OpenCode's settings without effect here: how to get their effect in this program."""


@frozen
class InlineDocument:
    """A command or agent written in a settings file; ``folder`` represents the file."""

    document: Document
    folder: Folder


def read_opencode(folders: Folders) -> ForeignSettings:
    """Return OpenCode's instructions, and its rules that ask or deny as rules of this program.

    Reads the settings files of the user and the project. ``items`` also contains the settings
    without effect.
    """
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
    """Return the commands or agents in OpenCode's settings files; none if the user excludes them.

    Each key is a made-up path: the file's path followed by the name. Later files override earlier
    ones.
    """
    found: dict[Path, InlineDocument] = {}
    if folders.left_out.covers(PROGRAM, f"{kind}s"):
        return found
    for file in settings_files(folders, OPENCODE_HOME_FILES, OPENCODE_FILES):
        folder = Folder(file.path, file.shown, PROGRAM, of_project=file.of_project)
        for name, given in file.section(kind).items():
            if isinstance(given, dict):
                # A slash in the name would lead to another path.
                path = file.path / name.replace("/", ":")
                found[path] = InlineDocument(_inline_document(given, _BODIES[kind]), folder)
    return found


def _inline_document(given: Mapping[str, Any], body_key: str) -> Document:
    """Return the settings table of a command or agent as a document.

    If the table's text only refers to a file (``{file:PATH}``), the file is not read, and the
    reference is listed as an unused field.
    """
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
    """Yield the patterns, relative to the project's root, for one pattern of ``instructions``.

    First comes one pattern for each directory below the root, down to the working directory, in
    which the pattern matches a file. The last one is the pattern itself. A pattern that begins with
    ``~`` or ``/`` is yielded unchanged.
    """
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
    """Return why an entry of ``instructions`` can't be used; "" if it can."""
    if name.startswith(("http://", "https://")):
        return "web pages are not read; save the page as a file"
    leads_out = name.startswith(("~", "/")) or ".." in Path(name).parts
    if file.of_project and leads_out:
        return "it is outside the project"
    return ""


def _rules(file: ForeignFile, items: list[FoundItem]) -> Iterator[Rule]:
    """Yield the rules that deny or ask; add an item for each, and for unusable rows, to ``items``.

    A rule excludes the patterns that a later rule of the same table allows or asks about (``unless``).
    """
    known = set(Permission)
    for name, value in _permissions(file).items():
        place = file.place(name)
        if name not in known:
            why = "there is no such permission in this program"
            items.append(without_effect(PROGRAM, "rule", name, place=place, why=why))
            continue
        rules = _table(name, value, place, items)
        for number, rule in enumerate(rules, 1):
            if rule.action is Action.ALLOW:
                continue
            # As in OpenCode, the last pattern that matches counts.
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
    """Return a table's values by permission. ``*`` sets all of them, and later rows override it."""
    found: dict[str, Any] = {}
    for name, value in table.items():
        if name == "*":
            found |= dict.fromkeys(_GUARDED, value)
        else:
            found[str(name)] = value
    return found


def _table(name: str, value: object, place: str, items: list[FoundItem]) -> list[Rule]:
    """Return the rules for one permission; invalid rows are added to ``items`` and skipped."""
    rules: list[Rule] = []
    actions = value if isinstance(value, dict) else {"*": value}
    for pattern, action in actions.items():
        try:
            rules += rules_from_table({name: {pattern: str(action)}}, "other")
        except RuleError as error:
            items.append(without_effect(PROGRAM, "rule", name, place=place, why=str(error)))
    # The catch-all pattern comes first, so that the others override it.
    return sorted(rules, key=_is_narrow)


def _is_narrow(rule: Rule) -> bool:
    return rule.pattern != "*"
