"""What a message can name beside files and entries: resources of MCP servers, and agents that are to do it."""

from typing import Literal

from tui_agent.agent.agent_specs import AgentSpec
from tui_agent.agent.attachments import LoadNamed
from tui_agent.agent.mcp.records import McpError
from tui_agent.agent.ports import AgentPorts
from tui_agent.context.templates import fill
from tui_agent.lazy import dataclass
from tui_agent.session.entries import AGENT_PREFIX, FilePart, UserPart


@dataclass(frozen=True, slots=True)
class Named:
    """Something that can be typed after ``@``."""

    name: str
    description: str
    kind: Literal["agent", "resource", "template"]
    """A template's ``{gaps}`` are filled in by whoever types it."""


def subagents_of(ports: AgentPorts) -> dict[str, AgentSpec]:
    """Return the kinds of agents there are now that can be given a task, by name; files may have been added."""
    specs = {spec.name: spec for spec in (*ports.agents, *ports.knowledge.specs)}
    return {spec.name: spec for spec in specs.values() if spec.subagent}


def gives_tasks(ports: AgentPorts) -> bool:
    """Whether there is what starts subagents."""
    return not ports.is_subagent and any(tool.traits.starts_agents for tool in ports.tools)


def all_named(ports: AgentPorts) -> tuple[Named, ...]:
    """Return what can be named now: agents first, then resources of the servers that are ready."""
    specs = subagents_of(ports).values() if gives_tasks(ports) else ()
    agents = tuple(Named(spec.name, spec.description, "agent") for spec in specs)
    resources = (Named(row.mention, row.description or row.name, "resource") for row in ports.mcp.resources())
    templates = (Named(row.mention, row.description or row.name, "template") for row in ports.mcp.templates())
    return (*agents, *resources, *templates)


def load_named(ports: AgentPorts) -> LoadNamed:
    """Return what finds the parts for a name: for an agent, what has the model give it the task."""

    async def load(name: str) -> tuple[UserPart, ...]:
        if gives_tasks(ports) and name in subagents_of(ports):
            text = fill(ports.prompt("agent_mention"), name=name)
            return (FilePart(path=f"{AGENT_PREFIX}{name}", text=text),)
        if ":" not in name:
            return ()
        try:
            return await ports.mcp.resource(name, ports.put_blob)
        except McpError:
            return ()

    return load
