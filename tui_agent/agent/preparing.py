"""Creates a message from the user's text: fills in a command or skill, and attaches what it names.

Runs the shell commands in a template (outside the sandbox, as the user's own) and asks MCP servers
for prompts and resources. This module neither switches to the message's model and mode nor sends
the message: the caller does both (`Agent.switch_for`, `Agent.submit`).
"""

import asyncio
import re
from dataclasses import replace
from functools import partial
from typing import Literal

from tui_agent.agent.attachments import Naming, Prepared, load_message
from tui_agent.agent.channel import EventChannel
from tui_agent.agent.knowledge.commands import UserCommand, fill_command, fill_template
from tui_agent.agent.knowledge.knowledge import Knowledge
from tui_agent.agent.knowledge.placeholders import given
from tui_agent.agent.mcp.records import McpError
from tui_agent.agent.ports import AgentPorts
from tui_agent.agent.shell import run_shell
from tui_agent.context.templates import fill
from tui_agent.errors import CommandError
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.session.entries import AGENT_PREFIX, SKILL_PREFIX, FilePart, TextPart, UserPart
from tui_agent.session.session import Session
from tui_agent.tools.bash import NO_OUTPUT
from tui_agent.tools.skill import Skill

_COMMAND = LazyPattern(r"/([A-Za-z][\w:.-]*)(?:\s+(.*))?", re.DOTALL)


async def prepare(text: str, session: Session, ports: AgentPorts, *, piped: str = "") -> Prepared:
    """Return the message for a user's text, with the files that it names attached.

    For ``/NAME …``, this is the message of the command or skill NAME, if there is one. ``piped`` is
    the program's standard input, which is added unchanged. Raises CommandError if the command can't
    be carried out.
    """
    await asyncio.to_thread(ports.knowledge.load)
    prepared = None
    if found := _COMMAND.fullmatch(text.rstrip()):
        prepared = await prepare_command(found[1].lower(), (found[2] or "").strip(), session, ports)
    if prepared is None:
        prepared = await load_message(
            text, ports.cwd, session, ports.put_blob, named=partial(load_named, ports)
        )
    return with_piped(prepared, piped)


def with_piped(prepared: Prepared, piped: str) -> Prepared:
    """Return a message with ``piped`` added to its text; unchanged if it doesn't begin with text.

    Files named in ``piped`` are not attached.
    """
    first = prepared.parts[0]
    if not piped or not isinstance(first, TextPart):
        return prepared
    first = first.model_copy(update={"text": "\n\n".join(filter(str.strip, [first.text, piped]))})
    return replace(prepared, parts=(first, *prepared.parts[1:]))


async def prepare_command(
    name: str, arguments: str, session: Session, ports: AgentPorts
) -> Prepared | None:
    """Return the message of the command, skill, MCP prompt or built-in prompt with this name.

    ``name`` has no slash; for a skill it is ``skill:NAME``. Returns None if there is no such
    command, skill or prompt. Raises CommandError if it can't be carried out.
    """
    prepared = await _made(name, arguments, session, ports)
    if prepared is None or not isinstance(first := prepared.parts[0], TextPart):
        return prepared
    first = first.model_copy(update={"typed": f"/{name} {arguments}".rstrip()})
    return replace(prepared, parts=(first, *prepared.parts[1:]))


async def _made(name: str, arguments: str, session: Session, ports: AgentPorts) -> Prepared | None:
    knowledge = ports.knowledge
    await asyncio.to_thread(knowledge.load)
    if name.startswith(SKILL_PREFIX):
        skill = knowledge.skill(name.removeprefix(SKILL_PREFIX))
        if skill is None:
            await asyncio.to_thread(_refuse_held_back, name, knowledge)
            return None
        return await _skill(skill, arguments, ports)
    command = next((known for known in knowledge.commands if known.name == name), None)
    if name == "init" or (name == "review" and command is None):
        return Prepared(
            (TextPart(text="\n\n".join(filter(None, [ports.prompt(name), arguments]))),)
        )
    if command is None:
        prompt = await _server_prompt(name, arguments, ports)
        if prompt is None:
            await asyncio.to_thread(_refuse_held_back, name, knowledge)
        return prompt
    return await _filled(command, arguments, session, ports)


async def _server_prompt(name: str, arguments: str, ports: AgentPorts) -> Prepared | None:
    prompt = None
    for offer in ports.mcp.offers():
        prompt = next((known for known in offer.prompts if known.command == name), prompt)
    if prompt is None:
        return None
    if missing := prompt.missing(arguments):
        raise CommandError(f"/{name} needs {' and '.join(missing)}: /{name} {prompt.usage}")
    try:
        parts = await ports.mcp.prompt(
            prompt.server, prompt.name, prompt.values(arguments), ports.put_blob
        )
    except McpError as error:
        raise CommandError(str(error)) from None
    if parts:
        return Prepared(parts)
    return None


async def _skill(skill: Skill, arguments: str, ports: AgentPorts) -> Prepared:
    """Return a message with a skill's text attached, which the model then follows."""

    def fill_part(part: str) -> str:
        return skill.filled(part, arguments)

    body, _own = await fill_template(
        skill.body, given(arguments), fill_part, partial(_run_unheard, ports)
    )
    text = await asyncio.to_thread(skill.with_files, body)
    request = arguments or fill(ports.prompt("skill_message"), name=skill.name)
    return Prepared(
        (TextPart(text=request), FilePart(path=f"{SKILL_PREFIX}{skill.name}", text=text))
    )


def _refuse_held_back(name: str, knowledge: Knowledge) -> None:
    """Raise CommandError if ``name`` is a command or skill of a project that isn't trusted.

    Reads files.
    """
    for item in knowledge.held_back():
        shown = item.name
        if isinstance(item, Skill):
            shown = f"{SKILL_PREFIX}{item.name}"
        if shown == name:
            raise CommandError(
                f"/{name} came with the project. Trust the project first: /trust shows what the project "
                "would run or set, and asks you. --trust trusts it for one run."
            )


async def _run_unheard(ports: AgentPorts, shell_command: str) -> str:
    """Run a template's command without events and return its output; "" if it printed nothing."""
    entry = await run_shell(shell_command, ports, EventChannel(), excluded=True)
    return "" if entry.output == NO_OUTPUT else entry.output


async def _filled(
    command: UserCommand, arguments: str, session: Session, ports: AgentPorts
) -> Prepared:
    mode = command.agent
    if mode is not None and mode != "build" and ports.knowledge.primary(mode) is None:
        raise CommandError(f"/{command.name} needs the agent “{mode}”, which does not exist.")
    text, own_text = await fill_command(command, arguments, partial(_run_unheard, ports))
    naming = Naming(own_text, ports.project if command.of_project else None, arguments)
    named = partial(load_named, ports)
    loaded = await load_message(
        text, ports.cwd, session, ports.put_blob, naming=naming, named=named
    )
    return replace(loaded, model=command.model, mode=mode)


@frozen
class Named:
    """A subagent or an MCP resource that a message can name after ``@``."""

    name: str
    description: str
    kind: Literal["agent", "resource", "template"]
    """"template": a resource whose name contains ``{placeholders}`` that the user fills in."""


def all_named(ports: AgentPorts) -> tuple[Named, ...]:
    """Return the subagents and MCP resources that a message can name after ``@``, in this order."""
    agents: list[Named] = []
    if ports.gives_tasks:
        for spec in ports.subagent_kinds().values():
            agents.append(Named(spec.name, spec.description, "agent"))
    resources: list[Named] = []
    templates: list[Named] = []
    for offer in ports.mcp.offers():
        for row in offer.resources:
            resources.append(Named(row.mention, row.description or row.name, "resource"))
        for row in offer.templates:
            templates.append(Named(row.mention, row.description or row.name, "template"))
    return (*agents, *resources, *templates)


async def load_named(ports: AgentPorts, name: str) -> tuple[UserPart, ...]:
    """Return the message parts for the name of a subagent or of an MCP server's resource.

    Returns no parts if the name is unknown, or if the server can't return the resource. For a
    subagent, the part asks the model to give that subagent the task.
    """
    if ports.gives_tasks and name in ports.subagent_kinds():
        text = fill(ports.prompt("agent_mention"), name=name)
        return (FilePart(path=f"{AGENT_PREFIX}{name}", text=text),)
    if ":" not in name:
        return ()
    try:
        return await ports.mcp.resource(name, ports.put_blob)
    except McpError:
        return ()
