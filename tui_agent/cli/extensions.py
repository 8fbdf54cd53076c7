"""Finds the MCP servers, hooks and folders that extend an agent in a directory; owns the servers' hubs.

Also decides whether a directory's project is trusted, and holds back hooks and servers that would
run an untrusted project's files. A hub starts and stops its servers itself.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tui_agent.agent.hooks.claude_hooks import UnusableHook, claude_hook, hooks_in, settings_of
from tui_agent.agent.hooks.hooks import CommandHook, LoadedHooks
from tui_agent.agent.hooks.settings import HookSettings
from tui_agent.agent.knowledge.folders import Folders, upward
from tui_agent.agent.knowledge.knowledge import Knowledge, Sources
from tui_agent.agent.mcp.hub import McpHub
from tui_agent.agent.mcp.settings import (
    ConnectionContext,
    FoundServers,
    McpServerSettings,
    ServerSpec,
    Timeouts,
    find_servers,
)
from tui_agent.agent.programs.hooks import foreign_hooks
from tui_agent.config import Config, ConfigError, config_path, load_config, read_table
from tui_agent.files.own_git import find_project
from tui_agent.foreign_servers import (
    ForeignServer,
    mark_disabled,
    server_files,
    servers_of_plugins,
    servers_of_project,
    servers_of_user,
)
from tui_agent.json_text import as_dict, as_list, objects
from tui_agent.paths import cache_dir, config_dir, data_dir, log_dir
from tui_agent.places import LeftOut
from tui_agent.plugins import PLUGINS, ROOT_VARIABLE, PluginStore
from tui_agent.processes.environment import SafeEnvironment, server_environment
from tui_agent.resources import prompt
from tui_agent.sandbox import Sandbox, SandboxState, find_sandbox
from tui_agent.trust import (
    PinnedFiles,
    ProjectState,
    TrustStore,
    named_files,
    project_config,
    project_state,
)


def _commands(settings: Path, *, outside_sandbox: bool) -> list[str]:
    """Return the command lines of the hooks and MCP servers in a settings file; [] if it is invalid.

    With ``outside_sandbox``, only those of hooks and servers that run outside the sandbox.
    """
    try:
        table = read_table(settings)
    except ConfigError:
        return []  # the start of the program reports the error
    rows = objects([*as_list(table.get("hooks")), *as_dict(table.get("mcp")).values()])
    if outside_sandbox:
        rows = [row for row in rows if not row.get("sandboxed")]
    return [_command_of(row) for row in rows]


def _command_of(row: Mapping[str, Any]) -> str:
    """Return the directory, if there is one, and the command line in the settings of a hook or server."""
    words = [row.get("cwd", ""), row.get("command", ""), *as_list(row.get("args"))]
    return " ".join(map(str, words))


def state_of_project(
    cwd: Path,
    store: TrustStore,
    *,
    assume_trust: bool = False,
    find: Callable[[Path], SandboxState] = find_sandbox,
) -> ProjectState:
    """Return whether the project of ``cwd`` is trusted, and the items in it that need trust.

    These include project files that are run outside a sandbox: files named by the user's own hooks
    and servers and, if the sandbox is off or ``find`` finds none, by the project's. With
    ``assume_trust``, the project counts as trusted.
    """
    project = find_project(cwd)
    theirs = _commands(project_config(project), outside_sandbox=False)
    for server in servers_of_project(project, upward(cwd, project)):
        if server.row is not None:
            theirs.append(_command_of(server.row))
    if any(next(named_files(project, cwd, command), None) for command in theirs):
        try:
            chosen = read_table(config_path()).get("sandbox")
        except ConfigError:
            chosen = None
        is_off = "off" in (chosen, as_dict(chosen).get("mode"))
        if not is_off and find(project).kind is not None:
            theirs = []
    commands = [*_commands(config_path(), outside_sandbox=True), *theirs]
    return project_state(project, store, cwd=cwd, assume_trust=assume_trust, commands=commands)


def is_trusted(cwd: Path) -> bool:
    """Return True if the user trusts the project of a directory in its current state."""
    return state_of_project(cwd, TrustStore(data_dir() / "trust.json")).trusted


def folders_of(cwd: Path, config: Config) -> Folders:
    """Return the folders of instructions, skills, commands and agents, including those of plugins."""
    return replace(
        folders_without_plugins(cwd, config),
        plugins=tuple(PluginStore(data_dir() / PLUGINS).plugins()),
    )


def folders_without_plugins(cwd: Path, config: Config) -> Folders:
    """Return `folders_of` without plugins, so that the plugins' files need not be read."""
    left_out = LeftOut(config.other_programs.leave_out)
    return Folders(cwd, find_project(cwd), config_dir(), Path.home(), left_out)


def _config(project: Path, *, trusted: bool) -> Config:
    return load_config(project=project_config(project) if trusted else None).config


def sandbox_of(config: Config, project: Path) -> Sandbox:
    """Return the sandbox for a project's commands, which hides the program's own directories."""
    private = (config_dir(), data_dir(), log_dir())
    return Sandbox(config.sandbox, private, cache_dir() / "commands", project=project)


def knowledge_of(folders: Folders, config: Config, *, trusted: bool) -> Knowledge:
    """Return the knowledge in ``folders``, which is not loaded yet.

    It doesn't include instructions that other programs' settings name.
    """
    sources = Sources(folders, config.instructions, config.memory.tokens, config.instructions_order)
    return Knowledge(sources, prompt=prompt, trusted=lambda: trusted)


def _wanted(servers: Iterable[ForeignServer], left_out: LeftOut) -> Iterator[ForeignServer]:
    return (server for server in servers if not left_out.covers(server.program, "servers"))


class Extensions:
    """Keeps one hub of MCP servers for each directory that configures servers, and finds hooks.

    ``trusts`` returns True if the project of a directory is trusted.
    """

    def __init__(
        self,
        trusts: Callable[[Path], bool],
        *,
        headless: bool = False,
        sandbox: Callable[[Path], Sandbox] | None = None,
    ) -> None:
        self._trusts = trusts
        self._sandbox = sandbox
        self._pinned = PinnedFiles()
        if headless:
            self._patience = Timeouts(settle=None)
        else:
            self._patience = Timeouts()
        self._hubs: dict[Path, McpHub] = {}
        self._own_hubs: list[McpHub] = []

    def hub(self, cwd: Path, more: Mapping[str, McpServerSettings] | None = None) -> McpHub:
        """Return the hub of the MCP servers for ``cwd``, without starting the servers.

        All directories of a project share a hub, except those in or below a folder that configures
        its own servers. ``more`` are additional servers of one session: the session then gets a new
        hub, and its first run waits until the servers have started.
        """
        project = find_project(cwd)
        if more:
            own = []
            for name, row in more.items():
                own.append(ServerSpec(name, row, "user", project, place="the editor's settings"))

            def find() -> FoundServers:
                found = self.servers(cwd)
                # An added server replaces a configured one of the same name.
                others = (spec for spec in found.specs if spec.name not in more)
                return FoundServers((*others, *own), found.problems)

            self._own_hubs.append(self._new_hub(find, Timeouts(settle=None)))
            return self._own_hubs[-1]
        place = project
        for folder in upward(cwd, project):
            if any(True for _ in server_files(project, folder)):
                place = folder
                break
        if place not in self._hubs:
            self._hubs[place] = self._new_hub(lambda: self.servers(cwd))
        return self._hubs[place]

    def add_hub(self, spec: ServerSpec) -> McpHub:
        """Return a new hub with the one server ``spec``, without starting it."""
        self._own_hubs.append(self._new_hub(lambda: FoundServers((spec,)), Timeouts(starts=1)))
        return self._own_hubs[-1]

    def _new_hub(
        self, find: Callable[[], FoundServers], patience: Timeouts | None = None
    ) -> McpHub:
        around = ConnectionContext(
            os.environ,
            server_environment(os.environ),
            log_dir(),
            token_dir=data_dir() / "mcp",
            sandbox=self._sandbox,
            changed=self._pinned.changed,
        )
        return McpHub(find, around, patience or self._patience)

    def servers(self, cwd: Path) -> FoundServers:
        """Return the MCP servers that are configured for a directory and may run there, and problems.

        The problems are those of settings and plugins, and the reasons why servers are held back.
        Reads the settings again.
        """
        project = find_project(cwd)
        trusted = self._trusts(cwd)
        try:
            config = _config(project, trusted=trusted)
        except ConfigError as error:
            return FoundServers(problems=(str(error),))
        left_out = LeftOut(config.other_programs.leave_out)
        theirs: Iterable[ForeignServer] = ()
        if trusted:
            found_there = servers_of_project(project, upward(cwd, project))
            theirs = mark_disabled(found_there, Path.home(), project)
        plugin_problems: list[str] = []
        plugins = PluginStore(data_dir() / PLUGINS).plugins(plugin_problems)
        found = find_servers(
            config.mcp,
            project,
            others=(
                *_wanted(servers_of_user(Path.home(), project), left_out),
                *servers_of_plugins(plugins),
            ),
            of_project=_wanted(theirs, left_out),
        )
        held = {
            spec.name: self._held_back(cwd, spec.command_line, spec.settings.sandboxed)
            for spec in found.specs
        }
        return FoundServers(
            tuple(spec for spec in found.specs if not held[spec.name]),
            (
                *found.problems,
                *plugin_problems,
                *(f"The server {name} is not started: {why}" for name, why in held.items() if why),
            ),
        )

    def _held_back(self, cwd: Path, command: str, sandboxed: bool) -> str:  # noqa: FBT001 - of the settings
        """Return why the command of a hook or server must not run in ``cwd``; "" if it may.

        A command outside the sandbox must not run a file of an untrusted project. If the command may
        run, the digests of the project files that it names are recorded, so that a later change is
        noticed before the next start.
        """
        project = find_project(cwd)
        if not (named := next(named_files(project, cwd, command), None)):
            return ""
        if not sandboxed and not self._trusts(cwd):
            return f"it runs {named.relative_to(project)}, and you have not trusted this project in its current state."
        self._pinned.changed(cwd, command)
        return ""

    def load_hooks(self, cwd: Path) -> LoadedHooks:
        """Return the hooks for a directory: those of the settings, of other programs and of plugins.

        For hooks that must not run, the problems have the reason. Reads the settings again.
        """
        trusted = self._trusts(cwd)
        try:
            config = _config(find_project(cwd), trusted=trusted)
        except ConfigError as error:
            return LoadedHooks(problems=(str(error),))
        environment = SafeEnvironment(os.environ, config.sandbox.env, config.sandbox.mask)
        problems: list[str] = []
        handlers: list[CommandHook] = []
        for row in config.hooks:
            handlers += self._hook(row, cwd, environment, problems)
        left_out = LeftOut(config.other_programs.leave_out)
        for found, of_project in foreign_hooks(cwd, Path.home(), left_out, trusted=trusted):
            row = settings_of(found, sandboxed=of_project)
            if found.is_question:
                made: Iterable[CommandHook] = [CommandHook(row, cwd, environment)]
            else:
                made = self._hook(row, cwd, environment, problems)
            handlers += (claude_hook(found, hook) for hook in made)
        for plugin in PluginStore(data_dir() / PLUGINS).plugins():
            given = SafeEnvironment(
                {**os.environ, ROOT_VARIABLE: str(plugin.root)},
                config.sandbox.env,
                config.sandbox.mask,
            )
            for file in plugin.hooks():
                usable = [hook for hook in hooks_in(file) if not isinstance(hook, UnusableHook)]
                handlers += (
                    claude_hook(hook, CommandHook(settings_of(hook, sandboxed=False), cwd, given))
                    for hook in usable
                )
        return LoadedHooks(tuple(handlers), tuple(problems))

    def _hook(
        self, row: HookSettings, cwd: Path, environment: Mapping[str, str], problems: list[str]
    ) -> Iterator[CommandHook]:
        """Yield the hook that ``row`` describes; if it would run an untrusted file, add a problem instead."""
        if why := self._held_back(cwd, row.command, row.sandboxed):
            problems.append(f"The hook “{row.command}” is left out: {why}")
        else:
            yield CommandHook(row, cwd, environment, changed=self._pinned.changed)

    def config(self, cwd: Path) -> Config:
        """Read the settings for a directory, including those of its project if that is trusted.

        Raises:
            ConfigError: a settings file can't be read, or has an invalid value.
        """
        return _config(find_project(cwd), trusted=self._trusts(cwd))

    async def aclose(self) -> None:
        await asyncio.gather(*(hub.aclose() for hub in (*self._hubs.values(), *self._own_hubs)))
