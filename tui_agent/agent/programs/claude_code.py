"""Converts rules, variables and directories of Claude Code's settings, and lists all other settings.

A project's rules that ask or deny always apply; its rules that allow, directories and variables
apply only once the project is trusted. Hooks, MCP servers, agents, commands and skills are read
elsewhere.
"""

import glob
import os
from dataclasses import replace
from pathlib import Path

from tui_agent.agent.knowledge.folders import Folders
from tui_agent.agent.permissions import Action, Rule
from tui_agent.agent.programs.found import (
    ForeignSettings,
    FoundItem,
    ItemState,
    effort_command,
    joined,
    unreadable,
    unused_settings,
    without_effect,
)
from tui_agent.agent.programs.tool_rules import Anchor, ForeignRuleError, rules_of
from tui_agent.claude_settings import ClaudeSettings, ListName, project_settings, user_settings
from tui_agent.path_checks import at_home
from tui_agent.permission import NEVER_ASK

PROGRAM = "Claude Code"

_ACTIONS: dict[ListName, Action] = {"allow": Action.ALLOW, "ask": Action.ASK, "deny": Action.DENY}
"""This program's action for each of Claude Code's lists of rules; later lists override earlier
ones."""
_READ_HERE = {
    "permissions",
    "env",
    "hooks",
    "disableAllHooks",
    "disabledMcpjsonServers",
    "$schema",
}
_INSTEAD = {
    "model": "choose a model with /model, or set model in config.toml",
    "statusLine": "set ui.status_line in config.toml",
    "outputStyle": "choose it with /style",
    "effortLevel": "set effort in config.toml, or use /effort",
    "defaultMode": "set mode in config.toml",
    "enabledPlugins": "add them: tui-agent plugin add",
    "theme": "choose a theme with /theme",
    "enabledMcpjsonServers": "trust the project: /trust",
    "enableAllProjectMcpServers": "trust the project: /trust",
}
"""For Claude Code's settings without effect here: how to get their effect in this program."""


def read_claude_code(folders: Folders, *, trusted: bool) -> ForeignSettings:
    """Return the user's and the project's settings of Claude Code as settings of this program.

    Unless the project is ``trusted``, its settings that need trust are listed but not used.
    """
    files = list(user_settings(folders.home))
    for folder in reversed(folders.upward()):
        files += project_settings(folders.project, folder)
    readers = [_Reader(file, folders, trusted=trusted) for file in files]
    for reader in readers:
        reader.read()
    found = [
        ForeignSettings(tuple(reader.rules), reader.environment, items=tuple(reader.items))
        for reader in readers
    ]
    return joined(found)


class _Reader:
    """Converts one settings file; `read` fills ``rules``, ``environment`` and ``items``."""

    def __init__(self, settings: ClaudeSettings, folders: Folders, *, trusted: bool) -> None:
        self._settings = settings
        self._file = file = settings.file
        self._folders = folders
        self._may_act = trusted or not file.of_project
        self.rules: list[Rule] = []
        self.environment: dict[str, str] = {}
        self.items: list[FoundItem] = []

    def read(self) -> None:
        if self._file.problem:
            self.items += unreadable(PROGRAM, self._file)
            return
        for name, action in _ACTIONS.items():
            for text in self._settings.rules(name):
                self._take_rule(text, action)
        for directory in self._settings.directories:
            self._take_directory(directory)
        for variable, value in self._settings.environment.items():
            if self._may_act:
                self.environment[variable] = value
            self._add("environment variable", variable, self._file.place(variable), self._acting)
        if mode := self._file.section("permissions").get("defaultMode"):
            why = f"{_INSTEAD['defaultMode']} ({mode})"
            if mode == "bypassPermissions":
                why = NEVER_ASK
            place = self._file.place("defaultMode")
            self.items.append(
                without_effect(PROGRAM, "setting", "defaultMode", place=place, why=why)
            )
        instead = dict(_INSTEAD)
        if effort := effort_command(self._file.table.get("effortLevel")):
            instead["effortLevel"] = effort
        self.items += unused_settings(PROGRAM, self._file, _READ_HERE, instead=instead)

    @property
    def _acting(self) -> ItemState:
        return ItemState.ACTIVE if self._may_act else ItemState.HELD_BACK

    def _take_rule(self, text: str, action: Action) -> None:
        place = self._file.place(text)
        try:
            rules = rules_of(text, action, "other", self._anchor())
        except ForeignRuleError as error:
            kind = f"{action} rule"
            self.items.append(without_effect(PROGRAM, kind, text, place=place, why=str(error)))
            return
        if action is not Action.ALLOW:
            state = ItemState.ACTIVE
        else:
            state = self._acting
        if state is ItemState.ACTIVE:
            self.rules += [replace(rule, origin=place) for rule in rules]
        self._add(f"{action} rule", text, place, state)

    def _take_directory(self, name: str) -> None:
        place = self._file.place(name)
        path = os.path.normpath(self._folders.cwd / at_home(name))
        if self._may_act:
            rule = Rule(
                "external_directory",
                f"{glob.escape(path.rstrip('/'))}/*",
                Action.ALLOW,
                "other",
                origin=place,
            )
            self.rules.append(rule)
        self._add("directory", name, place, self._acting)

    def _anchor(self) -> Anchor:
        project = self._folders.project
        belongs_to = self._file.path.parent.parent
        return Anchor(
            folder=_relative(self._folders.cwd, project),
            settings=_relative(belongs_to, project),
            project=project.as_posix(),
            home=self._folders.home.as_posix(),
        )

    def _add(self, kind: str, name: str, place: str, state: ItemState) -> None:
        self.items.append(FoundItem(PROGRAM, kind, name, place, state=state))


def _relative(path: Path, project: Path) -> str | None:
    """Return a path relative to the project; "" for the project's root, None if it is outside."""
    if not path.is_relative_to(project):
        return None
    name = path.relative_to(project).as_posix()
    return "" if name == "." else name
