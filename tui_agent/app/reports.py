"""The lines of the reports: help, costs, to-dos, skills. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from tui_agent.app.format import one_line, visible
from tui_agent.app.frontend import Heading
from tui_agent.session.entries import SKILL_PREFIX, ToolSchema

if TYPE_CHECKING:
    from tui_agent.agent.knowledge.knowledge import CommandRow
    from tui_agent.app.commands import Command
    from tui_agent.tools.base import Tool
    from tui_agent.tools.functions.tool_files import ToolFiles

TODO_MARKS: Mapping[str, str] = {"pending": "○", "in_progress": "◐", "done": "●", "cancelled": "–"}
"""Marks of the states of a to-do."""
NAME_CELLS = 19
"""Cells for the name of a command; what it does stands below a longer one."""
_STATES: Mapping[str, str] = {"in_progress": "  (now)", "cancelled": "  (cancelled)"}


def command_lines(commands: "Iterable[Command]", keymap: Mapping[str, str]) -> list[str]:
    lines: list[str] = [Heading("Commands")]
    for command in commands:
        name = f"/{command.name} {command.argument}".strip()
        keys = keymap.get(command.name, command.key)
        if len(name) > NAME_CELLS:
            lines.append(f"  {name}")
            name = ""
        lines.append(f"  {name:<{NAME_CELLS}} {command.help}{f'  ({keys})' if keys else ''}")
    return lines


def todo_lines(todos: Sequence[tuple[str, str]]) -> list[str]:
    if not todos:
        return ["The model has made no list here. It makes one for work of several steps."]
    done = sum(status == "done" for status, _text in todos)
    rows = [f"{TODO_MARKS.get(status, '○')} {visible(text)}{_STATES.get(status, '')}" for status, text in todos]
    return [Heading(f"{done} of {len(todos)} done"), "", *rows]


def tools_lines(own: "Iterable[Tool[Any]]", files: "ToolFiles", count: "Callable[[ToolSchema], int]") -> list[str]:
    lines = [f"Built in: {', '.join(tool.name for tool in own if tool.offered)}.", "Tools of servers: /mcp."]
    for shown, tools in groupby(files.tools, lambda tool: tool.shown):
        lines += ["", Heading(visible(shown))]
        for number, tool in enumerate(tools):
            declared = tool.declared.words() if not number else ""
            lines += [f"  It {visible(declared)}."] if declared else []
            lines.append(f"  {tool.name}: {visible(one_line(tool.description, 90))} ({count(tool.schema())} tokens)")
    lines += ["", *map(visible, files.problems)] if files.problems else []
    if not files.tools and not files.problems:
        lines.append("A file in .tui-agent/tools of the project adds tools: each of its typed functions is one.")
    return lines


def skills_lines(rows: "Iterable[CommandRow]") -> list[str]:
    skills = [row for row in rows if row.name.startswith(SKILL_PREFIX)]
    if not skills:
        return ["There are no skills. A skill is a folder with a SKILL.md in .agents/skills of the project."]
    lines: list[str] = ["The agent loads one when it fits; /skill:NAME TASK has it used."]
    for row in skills:
        lines += ["", Heading(visible(row.name.removeprefix(SKILL_PREFIX))), f"  {visible(row.description)}"]
    return lines
