"""The commands that show a report: ``/cost``, ``/todo``, ``/help`` and ``/doctor``.

On the full screen, ``/cost`` opens the page of ``/status`` at the cost, and ``/help`` opens its own
page. ``/doctor`` also marks the warnings that it shows as read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.format import lower_case, visible
from tui_agent.app.frontend import Heading, HelpPage, Output, Report
from tui_agent.errors import CommandError
from tui_agent.safe_text import one_line

if TYPE_CHECKING:
    from tui_agent.app.controller import Controller

TODO_MARKS: Mapping[str, str] = {"pending": "○", "in_progress": "◐", "done": "●", "cancelled": "–"}
"""The mark that shows the state of an item of the to-do list."""
NAME_CELLS = 19
"""Width of the column of command names, in characters; longer names are on a line of their own."""
_STATES: Mapping[str, str] = {"in_progress": "  (now)", "cancelled": "  (cancelled)"}


@Command(
    "cost",
    "show tokens and dollars spent",
    place=340,
    aliases=("usage", "stats"),
    words="price, money, budget, spending",
)
async def cost(controller: Controller, argument: str) -> None:
    from tui_agent.app import session_reports, status_commands

    agent = controller.open_agent
    if controller.frontend.has_screen and argument != "--json":
        await status_commands.show_status(controller, agent, status_commands.COST)
        return
    found, names = await status_commands.look_up_spending(controller, agent)
    as_json = argument == "--json"
    if as_json:
        text = session_reports.cost_json(found)
    else:
        text = "\n".join(session_reports.cost_lines(found, names))
    controller.show(Output("Cost of this session", text))


@Command(
    "todo",
    "show the model's to-do list",
    aliases=("todos",),
    place=350,
    words="plan, tasks, progress",
)
async def todo(controller: Controller, _argument: str) -> None:
    from tui_agent.tools.todo import current_todos

    todos = current_todos(controller.open_agent.session.active_path())
    controller.show(
        Report("To-dos", todo_lines([(str(todo.status), todo.content) for todo in todos]))
    )


def todo_lines(todos: Sequence[tuple[str, str]]) -> list[str]:
    """Return the lines of a to-do list; ``todos`` contains the state and text of each item."""
    if not todos:
        return [
            "There is no to-do list yet. The model makes one for work that takes several steps."
        ]
    from tui_agent.tools.todo import done_of

    done, count = done_of(status for status, _text in todos)
    lines = [Heading(f"{done} of {count} done"), ""]
    for status, text in todos:
        mark = TODO_MARKS.get(status, "○")
        lines.append(f"{mark} {visible(text)}{_STATES.get(status, '')}")
    return lines


@Command(
    "help",
    "find a command, a key or a setting",
    key="f1",
    argument="[WORDS]",
    hint="help",
    aliases=("keys", "hotkeys", "keymap", "keybindings"),
    place=390,
    words="shortcuts, how do I, palette",
)
async def show_help(controller: Controller, argument: str) -> None:
    if controller.frontend.has_screen:
        controller.show(HelpPage(query=argument))
        return
    commands = _commands_about(controller.commands, argument)
    if not commands:
        raise CommandError(
            f"No command matches “{one_line(argument, 80)}”. /help lists all commands."
        )
    lines: list[str] = [Heading("Commands")]
    for command in commands:
        name = f"/{command.name} {command.argument}".strip()
        if len(name) > NAME_CELLS:
            lines.append(f"  {name}")
            name = ""
        lines.append(f"  {name:<{NAME_CELLS}} {command.help}")
    controller.show(Report("Help", lines))


def _commands_about(commands: Sequence[Command], argument: str) -> list[Command]:
    """Return the command with the name ``argument``, for its help.

    If there is none, return the commands whose names, help and search words contain all its words.
    """
    words = lower_case(argument).removeprefix("/").split()
    found = []
    for command in commands:
        if words == [command.name]:
            return [command]
        texts = (command.name, *command.aliases, command.help, command.words)
        text = lower_case(" ".join(texts))
        if all(word in text for word in words):
            found.append(command)
    return found


@Command(
    "doctor",
    "check the setup and show warnings",
    place=410,
    words="problems, install, version, debug",
)
async def doctor(controller: Controller, _argument: str) -> None:
    controller.say("Checking the setup …")
    lines = list(await asyncio.to_thread(controller.services.doctor))
    if warned := controller.warnings.lines():
        lines = [Heading("Warnings since the start"), *warned, "", Heading("Current setup"), *lines]
    controller.frontend.warnings_read()
    shown = [line if isinstance(line, Heading) else visible(line) for line in lines]
    controller.show(Report("Doctor", shown or ["There is nothing to report."]))
