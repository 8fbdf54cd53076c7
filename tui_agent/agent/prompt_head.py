"""Owns a session's request head, that is, the part of every request before the conversation.

The head consists of the system text, the opening (environment, skills, instructions) and the tool
schemas. After a new head, the provider reads the whole next request uncached. So a new head is
rendered only when it is needed or the cache is lost anyway; until then, a notice tells the user
which changes the model does not see yet. A head is stored as a system entry, which `Head.ensure`
appends when `ContextKeeper` calls it before a request. ``mcp.hub`` decides which of the MCP
servers' tools are in a head.
"""

import platform
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from pathlib import Path
from string import Template
from typing import Any

from tui_agent.agent.agent_specs import AgentSpec
from tui_agent.agent.channel import Journal
from tui_agent.agent.mcp.tools import SEARCH_TOOL
from tui_agent.agent.ports import AgentPorts
from tui_agent.context.budget import describe_overhead, overhead, overhead_parts
from tui_agent.context.view import resolve
from tui_agent.files.ignore import walk_files
from tui_agent.files.own_git import branch_of
from tui_agent.safe_text import listed_name
from tui_agent.say_once import SayOnce
from tui_agent.session.entries import AssistantEntry, CompactionEntry, SystemEntry
from tui_agent.session.path_queries import newest
from tui_agent.tools.base import Tool

CHEAP_TO_READ = 30_000
"""Maximum size of the context, in tokens, at which tools of a late MCP server are added at once.

Adding them loses the cache.
"""
_JOINS = "The model can use them from its next step."
_HOW_TO_TELL = (
    "In a long conversation, the model receives the tools only after /mcp reload or a change of model, "
    "to keep the prompt cache."
)
_NAMED_FILES = 40
"""Maximum number of files listed in the request head for a model that is too small to use tools."""


class Head:
    """Renders the request heads of one session, and decides when a new one is needed."""

    def __init__(self, journal: Journal, ports: AgentPorts) -> None:
        self._journal = journal
        self._session = journal.session
        self._ports = ports
        self._channel = journal.channel
        self._said = SayOnce()
        self._opening = True
        self._previewed: SystemEntry | None = None
        self._known_tools: set[str] | None = None
        """Names of the MCP servers' tools that the model knows of; None before the first request
        head."""
        self._has_late_tools = False
        """Whether MCP servers have, since the last request, offered tools that the model doesn't
        know."""
        self.tools_wanted = False
        """Whether the next call of `ensure` appends a new head if the MCP servers' tools have
        changed."""

    def ensure(self, model: str, mode: str, *, cache_cold: bool) -> None:
        """Append a new request head if it is needed, or costs nothing because the cache is lost.

        A new head is needed if there is none on the path, or if the model, the mode or the
        program's own tools have changed (with ``tools_wanted`` also if the MCP servers' tools
        have). After a compaction or with a cold cache, a new head is appended if it differs from
        the newest on the path. Otherwise a notice names the instruction files that have changed
        since the head was made.
        """
        path = self._session.active_path()
        head = newest(path, SystemEntry)
        self._welcome_late_tools(newest(path, AssistantEntry))
        if (
            head is not None
            and (head.model, head.mode) == (model, mode)
            and self._check_tools(head, mode)
        ):
            if not cache_cold and not isinstance(
                newest(path, AssistantEntry, SystemEntry, CompactionEntry), CompactionEntry
            ):
                self._announce_changes(head)
                return
            fresh = self._render(model, mode)
            if (fresh.blocks, fresh.opening, fresh.tools) == (
                head.blocks,
                head.opening,
                head.tools,
            ):
                return
        else:
            fresh = self._render(model, mode)
        self._said.forget()
        self._journal.append(fresh)
        self._warn_of_overhead(fresh)
        traits = self._ports.directory.traits(model)
        if traits.tiny:
            text = (
                f"{model} is too small for tools: it can only ask for a file or write a whole one."
            )
            self._channel.say(text)
        elif not traits.tools:
            text = f"The server of {model} doesn't support tools, so the model writes tool calls as text."
            self._channel.say(text, action="tools")

    def _welcome_late_tools(self, answer: AssistantEntry | None) -> None:
        """Set ``tools_wanted`` if MCP servers have offered new tools and the context is small.

        ``answer`` is the newest answer, whose usage gives the context's size. If no user can reload
        the servers (`McpHub.joins_always`), ``tools_wanted`` is set even if the context is large.
        """
        if not self._has_late_tools:
            return
        self._has_late_tools = False
        used = 0
        if answer is not None and answer.usage is not None:
            used = answer.usage.prompt
        joins = self._ports.mcp.joins_always or used <= CHEAP_TO_READ
        self.tools_wanted = self.tools_wanted or joins

    def servers_tools_came(self, server: str, names: AbstractSet[str]) -> None:
        """Tell the user if a server that became ready offers tools that are new to the model."""
        if self._known_tools is None or names <= self._known_tools:
            return
        self._known_tools |= names
        self._has_late_tools = True
        how = _JOINS if self._ports.mcp.joins_always else f"{_JOINS} {_HOW_TO_TELL}"
        self._channel.say(f"Tools of the MCP server {server} are now available. {how}")

    def _warn_of_overhead(self, head: SystemEntry) -> None:
        """Warn the user if the request head is too large for the context; name its main parts."""
        ports = self._ports
        limits = ports.directory.limits(head.model)
        load = overhead(head, limits, ports.settings, ports.directory.counter(head.model))
        if load.crowded:
            text = describe_overhead(load.tokens, limits.window, overhead_parts(load.parts))
            text += " They are part of every request."
            if load.early is not None:
                text += f" Compaction starts at {load.early:,} tokens (compaction.threshold),"
                text += f" so {load.budget:,} are left for the work."
            self._channel.say(text, "warning", "context")

    async def gather_tools(self, model: str, mode: str) -> None:
        """If a new request head is due, start the MCP servers and wait as `McpHub.settle` does.

        Raises:
            McpError: a required server isn't available.
        """
        head = resolve(self._session.active_path()).system
        if self._opening or head is None or (head.model, head.mode) != (model, mode):
            await self._ports.mcp.settle()
            self._ports.mcp.check_required()

    def tools(self, model: str, mode: str) -> Sequence[Tool[Any]]:
        """Return the tools that a model is offered in a mode. MCP servers' tools come last.

        Returns no tools for a model that is too small to use them.
        """
        directory = self._ports.directory
        if directory.traits(model).tiny:
            return ()
        servers = self._ports.mcp.offered(
            directory.limits(model).window, directory.counter(model).schema
        )
        return (
            *self._own_tools(model, mode),
            *self._choose(mode, self._ports.of_servers(servers)),
        )

    def _own_tools(self, model: str, mode: str) -> Sequence[Tool[Any]]:
        traits = self._ports.directory.traits(model)
        if traits.tiny:
            return ()
        offered = [tool for tool in self._ports.own_tools if tool.offered_to(traits)]
        if traits.small:
            offered = [tool for tool in offered if tool.traits.basic]
        return self._choose(mode, offered)

    def _choose(self, mode: str, tools: Iterable[Tool[Any]]) -> Sequence[Tool[Any]]:
        spec = self._ports.knowledge.primary(mode)
        if spec is None:
            return tuple(tools)
        return spec.choose(tools)

    def _check_tools(self, head: SystemEntry, mode: str) -> bool:
        """Return True if the tools in a request head are those that its model should be offered.

        The MCP servers' tools are compared only if ``tools_wanted`` is set, or when this method is
        called for the first time and no server is still starting. Otherwise, the check is only that
        none of them has the name of one of the program's own tools. Resets ``tools_wanted``.
        """
        all_count = self.tools_wanted or (self._opening and self._ports.mcp.is_settled)
        self.tools_wanted = False
        self._opening = False
        if all_count:
            self._known_tools = self._ports.mcp.ready_names()
            return head.tools == tuple(tool.schema() for tool in self.tools(head.model, mode))
        own = tuple(tool.schema() for tool in self._own_tools(head.model, mode))
        of_servers = {tool.name for tool in head.tools[len(own) :]}
        self._note_announced(of_servers)
        names = {tool.name for tool in self._ports.own_tools}
        return head.tools[: len(own)] == own and of_servers.isdisjoint(names)

    def _note_announced(self, names: set[str]) -> None:
        """Record that the model knows the MCP tools ``names`` from its request head.

        If they include the tool that lists the others, all current tools count as known.
        """
        known = self._known_tools or set()
        if SEARCH_TOOL in names:
            self._known_tools = known | {tool.name for tool in self._ports.mcp.known()}
        else:
            self._known_tools = known | names

    def preview(self, model: str, mode: str) -> SystemEntry:
        """Return the request head that would be sent with a first message.

        Returns the same object as before if its content has not changed.
        """
        fresh = self._made(model, mode)
        known = self._previewed
        if known is None or fresh != known:
            known = self._previewed = fresh
        return known

    def _render(self, model: str, mode: str) -> SystemEntry:
        """Return the request head to append; record that its skills and MCP tools are offered."""
        skills = self._ports.knowledge.skills.values()
        self._ports.knowledge.offers_skills = any(skill.for_model for skill in skills)
        self._known_tools = self._ports.mcp.ready_names()
        return self._made(model, mode)

    def _made(self, model: str, mode: str) -> SystemEntry:
        """Return the request head for a model and mode, as a system entry.

        The system text and the program's own tools don't depend on the project (unless an agent has
        its own prompt or tools), so that sessions share the provider's cache of them. Everything
        else that differs is in the opening: the environment, skills, instructions, and the
        explanation of plan mode.
        """
        ports = self._ports
        knowledge = self._ports.knowledge
        spec = knowledge.primary(mode)
        tools = self.tools(model, mode)
        prompt = ports.prompt if spec is None else with_system_prompt(spec, ports.prompt)
        window = ports.directory.limits(model).window
        counter = ports.directory.counter(model)
        starts_agents = any(tool.traits.starts_agents for tool in tools)
        opening = [self._environment(model, prompt)]
        opening += knowledge.sections(window, counter.text, subagents=starts_agents)
        opening += ports.mcp.sections(window, counter.text)
        if mode == "plan":
            opening.append(prompt("mode_plan"))
        is_tiny = ports.directory.traits(model).tiny
        return SystemEntry(
            blocks=(prompt("system_steps" if is_tiny else "system"),),
            opening="\n\n".join(opening),
            tools=tuple(tool.schema() for tool in tools),
            model=model,
            mode=mode,
        )

    def _environment(self, model: str, prompt: Callable[[str], str]) -> str:
        """Return a description of the model's environment: directory, branch, platform, date."""
        ports = self._ports
        created = self._session.info.created_at or ports.clock()
        started = datetime.fromtimestamp(created / 1000, tz=UTC).astimezone()
        project = ports.model_path(ports.project)
        branch = branch_of(project)
        is_tiny = ports.directory.traits(model).tiny
        template = Template(prompt("environment_steps" if is_tiny else "environment"))
        return template.safe_substitute(
            files=_names_in(ports.cwd) if is_tiny else "",
            cwd=ports.model_path(ports.cwd),
            project=project,
            git=f"branch {branch}" if branch else "not a repository",
            model=model,
            platform=f"{platform.system()} {platform.machine()}",
            date=started.date().isoformat(),
        )

    def _announce_changes(self, head: SystemEntry) -> None:
        text = "\n".join((*head.blocks, head.opening))
        changed = [item for item in self._ports.knowledge.instructions if item.section not in text]
        new = [item.name for item in changed if self._said.remember(item.section)]
        if not new:
            return
        if len(new) < 4:
            news = f"{', '.join(new)} changed"
        else:
            news = f"{len(new)} instruction files changed"
        self._channel.say(
            f"{news}. The model will see the new text after the next /compact, after a switch of model or "
            "mode, or when the prompt cache has expired."
        )


def _names_in(directory: Path) -> str:
    """Return the names of the first files in a directory, joined by commas.

    They are for a model without tools, which can't list the directory.
    """
    files = walk_files(directory, limit=_NAMED_FILES)
    return ", ".join(listed_name(path.relative_to(directory).as_posix()) for path in files)


def with_system_prompt(spec: AgentSpec, prompt: Callable[[str], str]) -> Callable[[str], str]:
    """Return a function like ``prompt`` that returns the agent's own text for all system prompts.

    Returns ``prompt`` itself if the agent has no text of its own.
    """
    own = spec.prompt
    if own is None:
        return prompt

    def find(name: str) -> str:
        return own if name.startswith("system") else prompt(name)

    return find
