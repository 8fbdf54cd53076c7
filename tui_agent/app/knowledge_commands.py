"""Commands for skills, tools, agents, output styles and MCP servers; also /init and /review.

Skills, tools, agents and servers share one page, the equipment page; on the full screen, each
command opens it at its own heading. ``/mcp`` also adds, reloads and restarts servers.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from itertools import groupby
from typing import TYPE_CHECKING, Any

from tui_agent.app.commands import Command
from tui_agent.app.format import one_line, visible
from tui_agent.app.frontend import Choice, EquipmentLine, EquipmentPage, Heading, Report, TextLine
from tui_agent.app.model_commands import may_reread
from tui_agent.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tui_agent.agent.agent import Agent
    from tui_agent.agent.knowledge.knowledge import CommandRow
    from tui_agent.app.controller import Controller
    from tui_agent.context.projection import ModelTraits
    from tui_agent.session.entries import ToolSchema
    from tui_agent.tools.base import Tool
    from tui_agent.tools.functions.tool_files import ToolFiles


_SERVER_NAME = re.compile(r"[\w.-]{1,60}")

AGENTS = "Agents"
SKILLS = "Skills"
TOOLS = "Tools"
SERVERS = "MCP servers"
"""Headings of the equipment page."""
_DEFAULT_STYLE = "default"


async def _show_equipment(controller: Controller, owner: Agent, at: str) -> None:
    """Show agents, skills, tools and servers on one page, with the cursor at the heading ``at``.

    Without a screen, shows only the skills or the tools if ``at`` is their heading; otherwise says
    that the page needs the full screen.
    """
    ports = owner.ports
    count = ports.directory.counter(owner.model).schema
    await asyncio.to_thread(ports.knowledge.load)
    await ports.read_tool_files()
    parts = {
        SKILLS: skills_lines(owner.commands()),
        TOOLS: tools_lines(
            ports.tools, ports.tool_files, count, ports.directory.traits(owner.model)
        ),
    }
    if not controller.frontend.has_screen:
        controller.show(Report(at, parts[at]) if at in parts else EquipmentPage())
        return
    lines = [EquipmentLine(Heading(AGENTS))]
    for name, about in primary_agents(owner).items():
        mark = "●" if name == owner.mode else "○"
        lines.append(EquipmentLine(f"  {mark} {name:<14} {one_line(about, 200)}", name))
    for heading, rows in parts.items():
        lines += [EquipmentLine(""), EquipmentLine(Heading(heading))]
        for row in rows:
            if row:
                lines.append(EquipmentLine(type(row)(f"  {row}")))
    lines += [EquipmentLine(""), EquipmentLine(Heading(SERVERS))]
    controller.show(EquipmentPage(lines, at))


def tools_lines(
    own: Sequence[Tool[Any]],
    files: ToolFiles,
    count: Callable[[ToolSchema], int],
    model: ModelTraits,
) -> list[str]:
    """Return lines about the built-in tools, the tools of tool files, and problems with tools.

    The tools of tool files are listed with the sizes of their schemas; ``count`` returns the number
    of tokens of a schema.
    """
    offered = []
    missing = []
    for tool in own:
        if tool.offered_to(model):
            offered.append(tool.name)
        elif tool.missing:
            missing.append(tool.missing)
    lines = [f"Built in: {', '.join(offered)}.", "Tools of MCP servers: see /mcp.", *missing]
    for shown, tools in groupby(files.tools, lambda tool: tool.shown):
        lines += ["", Heading(visible(shown))]
        for number, tool in enumerate(tools):
            if not number and (about := tool.about):
                lines.append(f"  It {visible(about)}.")
            lines.append(
                f"  {tool.name}: {visible(one_line(tool.description, 90))} ({count(tool.schema())} tokens)"
            )
    if files.problems:
        lines += ["", *map(visible, files.problems)]
    if not files.tools and not files.problems:
        lines.append(
            "To add tools, write typed Python functions in the project's .tui-agent/tools/NAME.py."
        )
    return lines


def skills_lines(rows: Iterable[CommandRow]) -> list[str]:
    """Return the lines about the skills among the user's commands, or how to write one."""
    from tui_agent.session.entries import SKILL_PREFIX

    skills = [row for row in rows if row.name.startswith(SKILL_PREFIX)]
    if not skills:
        return ["No skills yet (.agents/skills/NAME/SKILL.md)."]
    lines: list[str] = [
        "The agent loads a skill when it fits the task; /skill:NAME TASK uses one at once."
    ]
    for row in skills:
        lines += [
            "",
            Heading(visible(row.name.removeprefix(SKILL_PREFIX))),
            f"  {visible(row.description)}",
        ]
    return lines


def primary_agents(owner: Agent) -> dict[str, str]:
    """Return the descriptions of the agents to which a user can switch, by name.

    The built-in agent comes first.
    """
    own = owner.ports.knowledge.primaries
    return {"build": "the built-in agent"} | {name: own[name].description for name in own}


@Command("skills", "list the skills the agent can load", place=250, words="knowledge, plugins")
async def skills(controller: Controller, _argument: str) -> None:
    await _show_equipment(controller, controller.open_agent, SKILLS)


@Command(
    "tools",
    "list the tools, and problems of tool files",
    place=245,
    words="functions, output, enable, disable",
)
async def tools(controller: Controller, _argument: str) -> None:
    await _show_equipment(controller, controller.open_agent, TOOLS)


@Command(
    "agent",
    "switch to another agent",
    argument="[NAME]",
    place=270,
    aliases=("agents",),
    words="persona, role, subagent",
)
async def agent(controller: Controller, argument: str) -> None:
    chooser = controller.open_agent
    if not argument and controller.frontend.has_screen:
        await _show_equipment(controller, chooser, AGENTS)
        return
    await asyncio.to_thread(chooser.ports.knowledge.load)
    kinds = primary_agents(chooser)
    name = argument or await _choice_of(controller, "Switch to which agent?", kinds)
    if name:
        _require_known("agent", name, kinds)
        await _switch(controller, chooser, name)


@Command(
    "style",
    "choose how answers are written",
    argument="[NAME]",
    place=272,
    aliases=("output-style",),
    words="tone, output, short, verbose",
)
async def style(controller: Controller, argument: str) -> None:
    chooser = controller.open_agent
    await asyncio.to_thread(chooser.ports.knowledge.load)
    styles = {}
    for spec in chooser.ports.knowledge.specs:
        if spec.is_style:
            styles[spec.name] = spec.description
    if not styles:
        raise CommandError(
            "There are no output styles yet. Write .tui-agent/output-styles/NAME.md."
        )
    kinds = {_DEFAULT_STYLE: "the built-in style"} | styles
    name = argument or await _choice_of(controller, "Which output style?", kinds)
    if name:
        _require_known("style", name, kinds)
        await _switch(controller, chooser, "build" if name == _DEFAULT_STYLE else name)


def _require_known(what: str, name: str, kinds: Mapping[str, str]) -> None:
    if name not in kinds:
        known = ", ".join(kinds)
        raise CommandError(f"There is no {what} “{one_line(name, 40)}”. Available: {known}.")


async def _choice_of(controller: Controller, question: str, kinds: dict[str, str]) -> str:
    answers = [(name, f"{name}  {one_line(about, 70)}".rstrip()) for name, about in kinds.items()]
    return await controller.ask(Choice(question, answers)) or ""


async def _switch(controller: Controller, chooser: Agent, name: str) -> None:
    """Switch to an agent or output style; ask first if cached tokens must be read again."""
    if await may_reread(controller, chooser, f"Switch to {name}?", chooser.model):
        chooser.choose_agent(name)
        controller.frontend.refresh_facts()


@Command(
    "mcp",
    "show MCP servers: state, tools, log, login",
    argument="[add|reload]",
    needs_screen=True,
    place=260,
    words="add a server, connect, plugin, integration",
)
async def mcp(controller: Controller, argument: str) -> None:
    """Show the MCP servers, or carry out ``argument``: ``add``, ``restart NAME`` or ``reload``."""
    owner = controller.open_agent
    word, _, name = argument.partition(" ")
    match word, name.strip():
        case "", _:
            await _show_equipment(controller, owner, SERVERS)
        case "reload", "":
            if await may_reread(
                controller, owner, "Reload the servers and send their tools again?", owner.model
            ):
                await reload_servers(controller, owner)
        case "add", rest:
            await add_server(controller, owner, rest)
        case "restart", server if server:
            await owner.ports.mcp.restart(server)
            controller.say(f"{server} was restarted.")
        case _:
            raise CommandError("Use /mcp, /mcp add, /mcp reload or /mcp restart NAME.")


async def reload_servers(controller: Controller, owner: Agent, restarted: str = "") -> None:
    """Read and apply the settings again, and start the MCP servers that are new, failed or changed.

    Stops servers that are no longer in the settings. ``restarted`` is the name of a server to
    restart even if its settings are the same, "" for none.

    Raises:
        ConfigError: the settings are invalid; nothing was restarted.
    """
    controller.services.reread_settings()
    await owner.mcp.reload_and_resend(restarted)


async def add_server(controller: Controller, owner: Agent, given: str) -> None:
    """Add an MCP server to the user's settings and start it.

    ``given`` is the server's name, followed by its command line or URL; the user is asked for
    anything missing. Raises `CommandError` if the name is taken, or if the name, command line or
    URL is invalid.
    """
    name, _, words = given.strip().partition(" ")
    name = name or await controller.ask(TextLine("Name of the new server", confirm="next")) or ""
    if not name.strip():
        return
    if _SERVER_NAME.fullmatch(name.strip()) is None:
        raise CommandError("A server's name may contain only letters, digits, “_”, “-” and “.”.")
    name = name.strip()
    if name in controller.services.config().mcp:
        raise CommandError(
            f"There is already a server {name}. tui-agent mcp remove {name} removes it."
        )
    asked = TextLine(
        f"Command or address of {name}",
        confirm="add",
        details="A command with arguments (npx -y @scope/server ~/notes), or an address (https://…).",
    )
    words = words.strip() or await controller.ask(asked) or ""
    if not words.strip():
        return
    controller.services.save_setting(f'mcp."{name}"', _server_row(words))
    await reload_servers(controller, owner)
    controller.say(f"Added {name}; it is starting. /mcp shows its state.")


def _server_row(words: str) -> dict[str, object]:
    """Return an MCP server's settings, made from its command line or URL.

    Raises `CommandError` if a quote is not closed, or the URL is invalid.
    """
    from tui_agent.agent.mcp.settings import is_web_address

    try:
        parts = shlex.split(words)
    except ValueError:
        raise CommandError("A quote in the command is not closed.") from None
    if "://" not in parts[0]:
        row: dict[str, object] = {"command": parts[0]}
        if parts[1:]:
            row["args"] = parts[1:]
        return row
    if len(parts) > 1 or not is_web_address(parts[0]):
        raise CommandError(
            "An address begins with http:// or https:// and a host, and has no arguments."
        )
    return {"url": parts[0]}


@Command(
    "init",
    "have the model write AGENTS.md",
    argument="[HINT]",
    place=280,
    words="instructions, CLAUDE.md, set up the project",
)
async def init(controller: Controller, argument: str) -> None:
    await controller.outbox.send_command("init", argument, "There is no prompt for /init.")


@Command(
    "review",
    "have changes reviewed: uncommitted, a branch, a commit",
    argument="[BRANCH|COMMIT]",
    place=296,
    is_replaceable=True,
    words="code review, bugs, pull request",
)
async def review(controller: Controller, argument: str) -> None:
    await controller.outbox.send_command("review", argument, "There is no prompt for /review.")
