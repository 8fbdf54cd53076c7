"""``tui-agent adopt``: what users wrote for other programs, and what of it counts here."""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

from tui_agent.agent.knowledge.folders import Folders
from tui_agent.agent.knowledge.knowledge import Knowledge, Sources
from tui_agent.agent.programs.found import FoundItem, ItemState
from tui_agent.agent.programs.inventory import inventory
from tui_agent.cli.extensions import Extensions, is_trusted
from tui_agent.cli.output import say, say_json
from tui_agent.config import load_config
from tui_agent.files.own_git import find_project
from tui_agent.paths import config_dir
from tui_agent.resources import prompt

_SIGNS = {ItemState.ACTIVE: "✓", ItemState.HELD_BACK: "…", ItemState.WITHOUT_EFFECT: "–"}


def run_adopt(arguments: Namespace) -> int:
    items = found_items(Path.cwd())
    if arguments.json:
        for item in items:
            say_json(asdict(item))
        return 0
    if not items:
        say("Nothing of other programs was found in your home and in this project.")
        return 0
    for program, rows in groupby(items, key=lambda item: item.program):
        say(f"{program}")
        for state, same in groupby(rows, key=lambda item: item.state):
            say(f"  {_SIGNS[state]} {state.value}")
            for line in _lines(list(same)):
                say(f"      {line}")
    return 0


def found_items(cwd: Path) -> tuple[FoundItem, ...]:
    """Return everything of other programs in the user's home and in a directory's project, read now."""
    config = load_config().config
    folders = Folders(cwd, find_project(cwd), config_dir(), Path.home())
    trusted = is_trusted(cwd)
    sources = Sources(folders, config.instructions, config.notes_tokens, config.instructions_order)
    knowledge = Knowledge(sources, prompt=prompt, trusted=lambda: trusted)
    knowledge.load()
    servers = Extensions(is_trusted).servers(cwd)
    return inventory(folders, knowledge, servers, trusted=trusted)


def _lines(items: Sequence[FoundItem]) -> list[str]:
    width = max(len(f"{item.kind} {item.name}") for item in items)
    lines = []
    for item in items:
        place = "" if item.place == item.name else item.place
        why = f"  {item.why}" if item.why else ""
        lines.append(f"{f'{item.kind} {item.name}':<{min(width, 50)}}  {place}{why}".rstrip())
    return lines
