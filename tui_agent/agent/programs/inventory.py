"""Lists files and settings that users wrote for other programs, and whether they are used here.

The list is only shown (``tui-agent adopt``, ``doctor``, a notice at the first start). The modules
``settings`` and ``hooks`` of this package, ``knowledge`` and ``mcp`` decide what is used; this
module repeats their conditions (trust, the user's exclusions) to find the state of each item.
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tui_agent.agent.agent_specs import AgentSpec, load_specs
from tui_agent.agent.hooks.claude_hooks import UnusableHook
from tui_agent.agent.knowledge.commands import UserCommand
from tui_agent.agent.knowledge.folders import Folders
from tui_agent.agent.knowledge.knowledge import Knowledge
from tui_agent.agent.mcp.settings import FoundServers
from tui_agent.agent.programs.found import FoundItem, ItemState, without_effect
from tui_agent.agent.programs.hooks import found_hooks
from tui_agent.agent.programs.settings import read_programs
from tui_agent.claude_settings import PROJECT_FILES
from tui_agent.foreign_servers import (
    SERVER_FILES,
    ForeignServer,
    mark_disabled,
    servers_of_project,
    servers_of_user,
)
from tui_agent.places import (
    OPENCODE_FILES,
    PLACES,
    LeftOut,
    Place,
    in_home,
    places_of,
    shown_in_home,
)
from tui_agent.tools.skill import Skill
from tui_agent.trust import CODEX_HOOKS

_UNREAD = (
    (
        "Claude Code",
        ".claude/plugins/installed_plugins.json",
        "",
        "add each: tui-agent plugin add FOLDER|GIT-URL",
    ),
    ("Claude Code", "", ".claude-plugin/plugin.json", "add it: tui-agent plugin add ."),
    ("Claude Code", ".claude/keybindings.json", "", "set [keys] in config.toml"),
    (
        "Claude Code",
        ".claude/agent-memory",
        ".claude/agent-memory",
        "add its facts with /remember",
    ),
    ("OpenCode", ".config/opencode/plugin", ".opencode/plugin", "its plugins are not supported"),
    ("OpenCode", ".config/opencode/plugins", ".opencode/plugins", "its plugins are not supported"),
    ("OpenCode", ".config/opencode/tool", ".opencode/tool", "write tools/NAME.py"),
    ("OpenCode", ".config/opencode/tools", ".opencode/tools", "write tools/NAME.py"),
    ("Pi", ".pi/agent/keybindings.json", "", "set [keys] in config.toml"),
    ("Pi", ".pi/agent/themes", ".pi/themes", "choose a theme with /theme"),
    (
        "Pi",
        ".pi/agent/SYSTEM.md",
        ".pi/SYSTEM.md",
        "write prompts/system.md in the settings directory",
    ),
    ("Pi", ".pi/agent/extensions", ".pi/extensions", "its extensions are not supported"),
    ("Cursor", ".cursor/mcp.json", ".cursor/mcp.json", "add its servers: tui-agent mcp add"),
    ("Cursor", "", ".cursorrules", "move it to AGENTS.md or .cursor/rules"),
)
"""Files and folders that another program reads but this program does not.

Each row contains the program, the path below the home directory, the path in a project, and what to
do instead.
"""
_FOLDERS = {".claude": "Claude Code", ".codex": "Codex", ".opencode": "OpenCode", ".pi": "Pi"}
"""The other programs' directories in a project. Unknown files in them are listed as unused."""
_IN_FOLDERS = {
    *(project for _program, _home, project, _why in _UNREAD),
    *PROJECT_FILES,
    *OPENCODE_FILES,
    *SERVER_FILES,
    CODEX_HOOKS,
    ".codex/rules",
    ".pi/settings.json",
    ".opencode/package.json",
    ".opencode/node_modules",
    ".opencode/bun.lock",
    ".claude/worktrees",
}
"""Known paths in ``_FOLDERS``: they are used, listed in ``_UNREAD``, or not written by the user."""


def inventory(
    folders: Folders, knowledge: Knowledge, servers: FoundServers, *, trusted: bool
) -> tuple[FoundItem, ...]:
    """Return every item of other programs in the home directory and the project, sorted by program.

    ``knowledge`` must be loaded, and both it and ``servers`` must ignore the user's exclusions, so
    that excluded items are found, too.
    """
    items = [
        *read_programs(folders, trusted=trusted).items,
        *_of_knowledge(folders, knowledge, trusted=trusted),
        *_of_servers(folders, servers, trusted=trusted),
        *_of_hooks(folders, trusted=trusted),
        *_unread(folders),
        *_unknown(folders),
    ]
    # Each reader of an unreadable file reports it, so there are duplicates.
    found = dict.fromkeys(_with_exclusions(item, folders.left_out) for item in items)
    return tuple(sorted(found, key=lambda item: (item.program, item.state.value, item.kind)))


def summary(items: Sequence[FoundItem]) -> str:
    """Return sentences that name the programs, and count the items in each state; "" for none."""
    if not items:
        return ""
    programs = ", ".join(dict.fromkeys(item.program for item in items))
    states = Counter(item.state for item in items)
    counts = "; ".join(f"{state.value}: {states[state]}" for state in ItemState if states[state])
    return f"Found files of {programs} ({counts}). List them with tui-agent adopt."


def _with_exclusions(item: FoundItem, left_out: LeftOut) -> FoundItem:
    """Return the item, marked as left out if the user's settings exclude it."""
    if item.state is ItemState.WITHOUT_EFFECT or not left_out.covers(item.program, item.group):
        return item
    return replace(item, state=ItemState.LEFT_OUT)


def _of_knowledge(folders: Folders, knowledge: Knowledge, *, trusted: bool) -> Iterator[FoundItem]:
    owners: dict[str, str] = {}
    for item in knowledge.instructions:
        owner = _owner(folders, item.name) or owners.get(item.imported.rpartition(":")[0], "")
        owners[item.name] = owner
        if owner:
            yield FoundItem(
                owner, "instructions", item.name, item.imported or item.name, ItemState.ACTIVE
            )
    for name in knowledge.rules_for_paths:
        yield FoundItem(
            _owner(folders, name),
            "instructions",
            name,
            place=name,
            state=ItemState.ACTIVE,
            why="read together with a file it applies to",
        )
    yield from _unusable(folders, knowledge)
    held_back = knowledge.held_back()
    for found in (*knowledge.commands, *knowledge.skills.values(), *held_back):
        kind = "skill"
        name = found.name
        if isinstance(found, UserCommand):
            kind = "command"
            name = f"/{found.name}"
        yield from _of_file(kind, found, name, waits=found in held_back)
    yield from _of_specs(folders, knowledge, trusted=trusted)


def _of_specs(folders: Folders, knowledge: Knowledge, *, trusted: bool) -> Iterator[FoundItem]:
    in_use = {(spec.name, spec.origin) for spec in knowledge.specs}
    specs = knowledge.specs
    if not trusted:
        specs = load_specs(folders, lambda _name: "")
    for spec in specs:
        kind = "output style" if spec.is_style else "agent"
        waits = (spec.name, spec.origin) not in in_use
        yield from _of_file(kind, spec, spec.name, waits=waits)


def _of_file(
    kind: str, found: UserCommand | AgentSpec | Skill, name: str, *, waits: bool
) -> Iterator[FoundItem]:
    """Yield an item for another program's file, and an item for each unused field in the file.

    Yields nothing for a file of this program.
    """
    program = found.program
    if program:
        state = ItemState.HELD_BACK if waits else ItemState.ACTIVE
        yield FoundItem(program, kind, name, found.file, state)
        for field in found.unused:
            yield without_effect(program, "field", f"{field} of {name}", place=found.file, why="")


def _unusable(folders: Folders, knowledge: Knowledge) -> Iterator[FoundItem]:
    """Yield an item for each file in another program's folder that ``knowledge`` can't use."""
    for problem in knowledge.problems:
        if program := _whose_folder(folders, problem, PLACES):
            kind, _space, rest = problem.partition(" ")
            name, _colon, why = rest.partition(": ")
            yield without_effect(program, kind.lower(), name, place=name, why=why)


def _owner(folders: Folders, name: str) -> str:
    """Return the other program that an instruction or rule file belongs to; "" if there is none."""
    for place in places_of("instructions"):
        if place.home and name == folders.name(in_home(folders.home, place.home)):
            return place.whose
    for place in places_of("instructions"):
        if place.project and f"/{name}".endswith(f"/{place.project}"):
            return place.whose
    return _whose_folder(folders, name, tuple(places_of("rules")))


def _whose_folder(folders: Folders, text: str, places: Sequence[Place]) -> str:
    """Return the other program whose folder is named in ``text``; "" if there is none."""
    for place in places:
        names = [place.project] if place.project else []
        if place.home:
            names.append(folders.name(in_home(folders.home, place.home)))
        if place.whose and any(f"{name}/" in text for name in names):
            return place.whose
    return ""


def _of_servers(folders: Folders, found: FoundServers, *, trusted: bool) -> Iterator[FoundItem]:
    running = {spec.name for spec in found.specs if spec.settings.enabled}
    for server in servers_of_user(folders.home, folders.project):
        is_used = server.name in running or folders.left_out.covers(server.program, "servers")
        yield _server_item(server, ItemState.ACTIVE if is_used else ItemState.WITHOUT_EFFECT)
    theirs = servers_of_project(folders.project, folders.upward())
    for server in mark_disabled(theirs, folders.home, folders.project):
        is_used = trusted and server.name in running
        yield _server_item(server, ItemState.ACTIVE if is_used else ItemState.HELD_BACK)


def _of_hooks(folders: Folders, *, trusted: bool) -> Iterator[FoundItem]:
    for program, file, hook in found_hooks(folders.project, folders.home):
        if isinstance(hook, UnusableHook):
            yield without_effect(program, "hook", hook.event, place=hook.place, why=hook.why)
            continue
        may_run = trusted or not file.of_project
        state = ItemState.ACTIVE if may_run else ItemState.HELD_BACK
        yield FoundItem(program, "hook", f"{hook.event} {hook.command}", hook.place, state)


def _server_item(server: ForeignServer, state: ItemState) -> FoundItem:
    if server.row is None:
        state = ItemState.WITHOUT_EFFECT
    elif server.row.get("enabled") is False:
        state = ItemState.LEFT_OUT
    kind = "MCP server" if server.name else "settings"
    name = server.name or server.place
    return FoundItem(
        server.program, kind, name, place=server.place, state=state, why=server.problem
    )


def _unread(folders: Folders) -> Iterator[FoundItem]:
    for program, home, project, why in _UNREAD:
        rows = []
        if home:
            path = in_home(folders.home, home)
            rows.append((path, shown_in_home(folders.home, path)))
        if project:
            rows.append((folders.project / project, project))
        for path, shown in rows:
            if os.path.lexists(path):
                yield without_effect(program, "file", shown, place=shown, why=why)


def _unknown(folders: Folders) -> Iterator[FoundItem]:
    """Yield an item for each unknown file directly in a directory of `_FOLDERS` in the project."""
    known = _IN_FOLDERS | {place.project for place in PLACES if place.project}
    for folder, program in _FOLDERS.items():
        for path in _children(folders.project / folder):
            name = f"{folder}/{path.name}"
            if name not in known and not path.name.startswith(".git"):
                yield without_effect(program, "file", name, place=name, why="it is not read")


def _children(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []
