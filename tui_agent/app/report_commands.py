"""The commands that show a report: costs, the to-do list, help, keys, the doctor."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.format import visible
from tui_agent.app.frontend import Heading, HelpPage, Output, Report

if TYPE_CHECKING:
    from tui_agent.app.controller import Controller


@Command("cost", "show tokens and dollars spent", place=340)
async def cost(controller: Controller, argument: str) -> None:
    from tui_agent.app import session_reports, status_commands

    agent = controller.open_agent
    if controller.frontend.has_screen and argument != "--json":
        await status_commands.show_status(controller, agent, status_commands.COST)
        return
    found, names = await status_commands.look_up_spending(controller, agent.session)
    as_json = argument == "--json"
    text = session_reports.cost_json(found) if as_json else "\n".join(session_reports.cost_lines(found, names))
    controller.show(Output("Cost of this session", text))


@Command("todo", "show the model's to-do list", place=350)
async def todo(controller: Controller, _argument: str) -> None:
    from tui_agent.app import reports
    from tui_agent.tools.todo import current_todos

    todos = current_todos(controller.open_agent.session.active_path())
    controller.show(Report("To-dos", reports.todo_lines([(str(todo.status), todo.content) for todo in todos])))


@Command("help", "find a command, a key or a setting", key="f1", hint="help", aliases=("keys",), place=390)
async def show_help(controller: Controller, _argument: str) -> None:
    from tui_agent.app import reports

    if controller.frontend.has_screen:
        controller.show(HelpPage())
    else:
        controller.show(
            Report("Help", reports.command_lines([replace(row, key="") for row in controller.commands], {}))
        )


@Command("doctor", "check the setup and show warnings", place=410)
async def doctor(controller: Controller, _argument: str) -> None:
    controller.say("Looking …")
    lines = list(await asyncio.to_thread(controller.services.doctor))
    if warned := controller.warnings.lines():
        lines = [Heading("Warnings since the start"), *warned, "", Heading("Set up now"), *lines]
    controller.frontend.warnings_read()
    shown = [line if isinstance(line, Heading) else visible(line) for line in lines]
    controller.show(Report("Doctor", shown or ["There is nothing to report."]))
