"""``tui-agent adopt``: lists the files of other coding agents and their effect here.

The command can also leave files out. This module also makes the notice about such files, which is
shown once. The user's settings record which files are left out (``other_programs.leave_out``).
agent/programs reads the files and decides their effect.
"""

from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import groupby
from pathlib import Path

from tui_agent.agent.knowledge.knowledge import Knowledge
from tui_agent.agent.programs.found import FoundItem, ItemState
from tui_agent.agent.programs.inventory import inventory, summary
from tui_agent.app.commands import is_reserved
from tui_agent.cli.arguments import UsageError
from tui_agent.cli.extensions import Extensions, folders_of, is_trusted, knowledge_of
from tui_agent.cli.output import say, say_json
from tui_agent.config import load_config, set_value
from tui_agent.path_checks import is_there
from tui_agent.paths import data_dir
from tui_agent.places import LeftOut
from tui_agent.safe_text import one_line

NOTICE_SHOWN = "other-programs-told"
"""Name of a file in the data directory, which exists once the notice has been shown.

The notice is about other programs' files.
"""
_SIGNS = {
    ItemState.ACTIVE: "✓",
    ItemState.HELD_BACK: "…",
    ItemState.LEFT_OUT: "○",
    ItemState.WITHOUT_EFFECT: "–",
}


def run_adopt(arguments: Namespace) -> int:
    if arguments.without or arguments.with_:
        return _choose(arguments)
    items = found_items(Path.cwd())
    if arguments.json:
        for item in items:
            say_json(asdict(item))
        return 0
    if not items:
        say("No files of other coding agents were found in your home directory or in this project.")
        return 0
    say(
        "To leave something out: tui-agent adopt --without 'Claude Code/hooks'. To use it again: --with.\n"
    )
    for program, rows in groupby(items, key=lambda item: item.program):
        say(f"{program}")
        for state, same in groupby(rows, key=lambda item: item.state):
            say(f"  {_SIGNS[state]} {state.value}")
            for line in _lines(list(same)):
                say(f"      {line}")
    return 0


def found_items(cwd: Path) -> tuple[FoundItem, ...]:
    """Find other programs' files in the user's home directory and in the project of ``cwd``.

    Includes the files that the user leaves out. Reads the files and the settings on each call.
    """
    config = load_config().config
    chosen = folders_of(cwd, config)
    # Also list the files that the user leaves out.
    folders = replace(chosen, left_out=LeftOut())
    trusted = is_trusted(cwd)
    knowledge = knowledge_of(folders, config, trusted=trusted)
    knowledge.load()
    servers = Extensions(is_trusted).servers(cwd)
    items = inventory(chosen, knowledge, servers, trusted=trusted)
    return tuple(map(_reachable, items))


def _reachable(item: FoundItem) -> FoundItem:
    """Return the item; if it is a command named like a built-in one, mark it as without effect."""
    if item.kind != "command" or not is_reserved(item.name.removeprefix("/")):
        return item
    why = f"a built-in command is named {item.name}, so rename the file"
    return replace(item, state=ItemState.WITHOUT_EFFECT, why=why)


def notice_maker(cwd: Path) -> Callable[[Knowledge], str] | None:
    """Return a function that makes the notice about other programs' files; None if already shown.

    The function records that the notice was shown, and returns the notice; "" if there are no such
    files.
    """
    shown = data_dir() / NOTICE_SHOWN
    if is_there(shown):
        return None

    def news(_knowledge: Knowledge) -> str:
        text = summary(found_items(cwd))
        if text:
            with suppress(OSError):  # if this fails, the notice is shown again
                shown.touch()
        return text

    return news


def _choose(arguments: Namespace) -> int:
    """Apply ``--without`` and ``--with`` to ``other_programs.leave_out``, and print the result.

    Raises `UsageError` if a program or group to leave out was not found.
    """
    known = load_config().config.other_programs.leave_out
    items = found_items(Path.cwd())
    groups = {item.program for item in items} | {
        f"{item.program}/{item.group}" for item in items if item.group
    }
    unknown = [name for name in arguments.without if name not in groups]
    if unknown:
        raise UsageError(
            f"“{unknown[0]}” was not found. Choose one of: {', '.join(sorted(groups))}."
        )
    kept = [name for name in known if name not in arguments.with_]
    left_out = list(dict.fromkeys([*kept, *arguments.without]))
    set_value("other_programs.leave_out", left_out or None)
    say(f"Left out in new sessions: {', '.join(left_out) or 'nothing'}.")
    return 0


def _lines(items: Sequence[FoundItem]) -> list[str]:
    heads = [one_line(f"{item.kind} {item.name}") for item in items]
    width = max(map(len, heads))
    lines = []
    for head, item in zip(heads, items, strict=True):
        if item.place == item.name:
            place = ""
        else:
            place = one_line(item.place)
        if item.why:
            why = f"  {one_line(item.why)}"
        else:
            why = ""
        lines.append(f"{head:<{min(width, 50)}}  {place}{why}".rstrip())
    return lines
