"""Finds the MCP servers, hooks and folders that extend an agent in a directory.

The module also owns the hubs of MCP servers. A hub starts and stops its servers itself. The module
decides whether a directory's project is trusted, and makes a project's settings, sandbox and
knowledge accordingly. Every command of a hook or server, whoever configured it, passes one check,
which says that it must not run an untrusted project's files outside the sandbox
(`Extensions.problem_of`). The same commands are collected for the question about trust
(`state_of_project`).
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from tui_agent.agent.hooks.claude_hooks import (
    FoundHook,
    UnusableHook,
    claude_hook,
    hooks_in,
    settings_of,
)
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
from tui_agent.config import Config, ConfigError, LoadedConfig, load_config
from tui_agent.files.own_git import find_project
from tui_agent.foreign_servers import (
    ForeignServer,
    mark_disabled,
    server_files,
    servers_of_plugins,
    servers_of_project,
    servers_of_user,
)
from tui_agent.lazy import frozen
from tui_agent.paths import cache_dir, config_dir, data_dir, log_dir
from tui_agent.places import FOLDER, LeftOut, shown_in_home
from tui_agent.plugins import PLUGINS, ROOT_VARIABLE, PluginStore
from tui_agent.processes.environment import SafeEnvironment, server_environment
from tui_agent.resources import prompt
from tui_agent.sandbox import Sandbox, SandboxState, find_sandbox
from tui_agent.trust import (
    CONFIG,
    PinnedFiles,
    ProjectState,
    TrustStore,
    named_files,
    project_config,
    project_state,
)

FindSandbox = Callable[[Path], SandboxState]
"""Finds the machine's sandbox, without using programs inside the given project."""


@frozen
class _Hook:
    """A hook from any source, before the check of whether it may run.

    ``found`` is the hook as another program's file defines it, None for a hook from the settings.
    ``place`` is the file that defines it, perhaps with the line. ``plugin`` is the folder of the
    plugin that it belongs to, None if there is none.
    """

    settings: HookSettings
    place: str
    found: FoundHook | None = None
    plugin: Path | None = None

    @property
    def command_line(self) -> str:
        """The shell command that the hook runs; "" if it asks the small model instead."""
        if self.found is not None and self.found.is_question:
            return ""
        return self.settings.command


def _hooks(cwd: Path, loaded: LoadedConfig, *, trusted: bool) -> Iterator[_Hook]:
    """Yield the usable hooks for a directory, from the settings, other programs and plugins.

    With ``trusted``, includes hooks in the project's files for other programs.
    """
    config = loaded.config
    own = len(config.hooks) - loaded.project_hooks
    for row in config.hooks[:own]:
        yield _Hook(row, shown_in_home(Path.home(), loaded.path))
    for row in config.hooks[own:]:
        yield _Hook(row, f"{FOLDER}/{CONFIG}")
    left_out = LeftOut(config.other_programs.leave_out)
    for found, of_project in foreign_hooks(cwd, Path.home(), left_out, trusted=trusted):
        yield _Hook(settings_of(found, sandboxed=of_project), found.place, found)
    for plugin in PluginStore(data_dir() / PLUGINS).plugins():
        for file in plugin.hooks():
            for hook in hooks_in(file):
                if not isinstance(hook, UnusableHook):
                    yield _Hook(settings_of(hook, sandboxed=False), hook.place, hook, plugin.root)


def _servers(cwd: Path, config: Config, *, trusted: bool) -> FoundServers:
    """Return the MCP servers for a directory, from the settings, other programs and plugins.

    With ``trusted``, includes servers in the project's files for other programs.
    """
    project = find_project(cwd)
    left_out = LeftOut(config.other_programs.leave_out)
    of_project: Iterable[ForeignServer] = ()
    if trusted:
        found_there = servers_of_project(project, upward(cwd, project))
        of_project = mark_disabled(found_there, Path.home(), project)
    plugin_problems: list[str] = []
    plugins = PluginStore(data_dir() / PLUGINS).plugins(plugin_problems)
    found = find_servers(
        config.mcp,
        project,
        others=(
            *_wanted(servers_of_user(Path.home(), project), left_out),
            *servers_of_plugins(plugins),
        ),
        of_project=_wanted(of_project, left_out),
    )
    return FoundServers(found.specs, (*found.problems, *plugin_problems))


def _wanted(servers: Iterable[ForeignServer], left_out: LeftOut) -> Iterator[ForeignServer]:
    return (server for server in servers if not left_out.covers(server.program, "servers"))


def _command_lines(cwd: Path) -> Iterator[tuple[str, bool]]:
    """Yield each command line that would run in ``cwd`` if its project were trusted.

    The second value says whether the command should run in the sandbox. If the project's settings
    are invalid, only the user's settings count; if those are invalid, too, yields nothing. The
    program reports invalid settings at its start.
    """
    project = find_project(cwd)
    try:
        loaded = _loaded_config(project, trusted=True)
    except ConfigError:
        try:
            loaded = _loaded_config(project, trusted=False)
        except ConfigError:
            return
    for hook in _hooks(cwd, loaded, trusted=True):
        yield hook.command_line, hook.settings.sandboxed
    for spec in _servers(cwd, loaded.config, trusted=True).specs:
        yield spec.command_line, spec.settings.sandboxed
    for command in (loaded.config.ui.status_line, loaded.config.ui.notify_command):
        yield command or "", False


def _is_contained(project: Path, find: FindSandbox) -> bool:
    """Return True if the commands that should run in a sandbox really run in one.

    Returns False if the user's settings or environment turn the sandbox off, or the machine has no
    sandbox. To find out, ``find`` may start trial processes.
    """
    try:
        is_off = _config(project, trusted=False).sandbox.mode == "off"
    except ConfigError:
        is_off = False
    return not is_off and find(project).kind is not None


def _names_files(project: Path, cwd: Path, command: str) -> bool:
    return next(named_files(project, cwd, command), None) is not None


def state_of_project(
    cwd: Path,
    store: TrustStore,
    *,
    assume_trust: bool = False,
    find: FindSandbox = find_sandbox,
) -> ProjectState:
    """Return whether the project of ``cwd`` is trusted, and the items in it that need trust.

    These include project files that would run outside a sandbox: files named by hooks, servers and
    other commands in the user's settings, in the user's files for other programs and in plugins. If
    there is no sandbox (because it is off, or ``find`` finds none), they also include files named
    by commands that should run in the sandbox, such as the project's own commands. With
    ``assume_trust``, a project with such items counts as trusted.
    """
    project = find_project(cwd)
    outside: list[str] = []
    inside: list[str] = []
    for command, sandboxed in _command_lines(cwd):
        if _names_files(project, cwd, command):
            (inside if sandboxed else outside).append(command)
    if inside and not _is_contained(project, find):
        outside += inside
    return project_state(project, store, cwd=cwd, assume_trust=assume_trust, commands=outside)


def is_trusted(cwd: Path) -> bool:
    """Return True if the user trusts the project of a directory in its current state.

    Returns False for a project in which nothing needs trust.
    """
    return state_of_project(cwd, TrustStore(data_dir() / "trust.json")).trusted


def folders_of(cwd: Path, config: Config) -> Folders:
    """Return the folders of instructions, skills, commands and agents, also those of plugins."""
    return replace(
        folders_without_plugins(cwd, config),
        plugins=tuple(PluginStore(data_dir() / PLUGINS).plugins()),
    )


def folders_without_plugins(cwd: Path, config: Config) -> Folders:
    """Return the result of `folders_of` without plugins, so that no plugin's files are read."""
    left_out = LeftOut(config.other_programs.leave_out)
    return Folders(cwd, find_project(cwd), config_dir(), Path.home(), left_out)


def _config(project: Path, *, trusted: bool) -> Config:
    return _loaded_config(project, trusted=trusted).config


def _loaded_config(project: Path, *, trusted: bool) -> LoadedConfig:
    return load_config(project=project_config(project) if trusted else None)


def sandbox_of(config: Config, project: Path) -> Sandbox:
    """Return the sandbox for a project's commands, which hides the program's own directories."""
    private = (config_dir(), data_dir(), log_dir())
    return Sandbox(config.sandbox, private, cache_dir() / "commands", project=project)


def knowledge_of(folders: Folders, config: Config, *, trusted: bool) -> Knowledge:
    """Return the instructions, skills, commands and agents in ``folders``, to be loaded later.

    Instructions that other programs' settings name are not included.
    """
    sources = Sources(folders, config.instructions, config.memory.tokens, config.instructions_order)
    return Knowledge(sources, prompt=prompt, trusted=lambda: trusted)


class Extensions:
    """Finds hooks, and keeps the hubs of MCP servers.

    If possible, the sessions of a project share one hub. ``trusts`` returns True if the project of
    a directory is trusted. ``runs_files`` returns True if commands outside the sandbox may run the
    project's files (by default, if the project is trusted). ``sandbox`` returns the sandbox for a
    project's servers.
    """

    def __init__(
        self,
        trusts: Callable[[Path], bool],
        *,
        headless: bool = False,
        sandbox: Callable[[Path], Sandbox] | None = None,
        runs_files: Callable[[Path], bool] | None = None,
        find: FindSandbox = find_sandbox,
    ) -> None:
        self._trusts = trusts
        self._runs_files = runs_files or trusts
        self._sandbox = sandbox
        self._find = find
        self._pinned = PinnedFiles()
        if headless:
            self._patience = Timeouts(settle=None)
        else:
            self._patience = Timeouts()
        self._shared_hubs: dict[Path, list[tuple[Path, McpHub]]] = {}
        """Hubs of MCP servers, by the project or folder that configures the servers.

        Each hub is stored with the directory for which it was made.
        """
        self._own_hubs: list[McpHub] = []

    def hub(self, cwd: Path, more: Mapping[str, McpServerSettings] | None = None) -> McpHub:
        """Return the hub of the MCP servers for ``cwd``, without starting the servers.

        All directories of a project share a hub, but trusted and untrusted directories don't share
        one. Directories in or below a folder that configures its own servers share that folder's
        hub. ``more`` are additional servers of one session. In that case, the session receives a
        new hub, which its agent closes, and its first run waits until the servers have started.
        """
        if more:
            own = self._new_hub(lambda: self.servers(cwd, more), cwd, Timeouts(settle=None))
            own.is_of_one_session = True
            self._own_hubs.append(own)
            return own
        project = find_project(cwd)
        place = project
        for folder in upward(cwd, project):
            if any(True for _ in server_files(project, folder)):
                place = folder
                break
        shared = self._shared_hubs.setdefault(place, [])
        for first, hub in shared:
            if first == cwd or self._trusts(first) == self._trusts(cwd):
                return hub
        shared.append((cwd, self._new_hub(lambda: self.servers(cwd), cwd)))
        return shared[-1][1]

    def add_hub(self, spec: ServerSpec, cwd: Path) -> McpHub:
        """Return a new hub for ``cwd`` with only the server ``spec``, which is not started yet."""
        self._own_hubs.append(self._new_hub(lambda: FoundServers((spec,)), cwd, Timeouts(starts=1)))
        return self._own_hubs[-1]

    def _new_hub(
        self, find: Callable[[], FoundServers], cwd: Path, patience: Timeouts | None = None
    ) -> McpHub:
        def problem_of(directory: Path, command: str) -> str:
            return self.problem_of(directory, command, session=cwd)

        around = ConnectionContext(
            os.environ,
            server_environment(os.environ),
            log_dir(),
            token_dir=data_dir() / "mcp",
            sandbox=self._sandbox,
            problem_of=problem_of,
        )
        return McpHub(find, around, patience or self._patience)

    def servers(
        self, cwd: Path, more: Mapping[str, McpServerSettings] | None = None
    ) -> FoundServers:
        """Return the MCP servers that are configured for a directory and may run, and problems.

        ``more`` are servers of an editor, which replace configured servers of the same name. The
        problems say what is wrong in settings and plugins, and why servers are held back. An
        untrusted project's own servers are left out silently. Reads the settings again.
        """
        project = find_project(cwd)
        trusted = self._trusts(cwd)
        try:
            config = _config(project, trusted=trusted)
        except ConfigError as error:
            return FoundServers(problems=(str(error),))
        found = _servers(cwd, config, trusted=trusted)
        specs = {spec.name: spec for spec in found.specs}
        for name, row in (more or {}).items():
            specs.pop(name, None)
            specs[name] = ServerSpec(name, row, "user", project, place="the editor's settings")
        usable: list[ServerSpec] = []
        problems = list(found.problems)
        for name, spec in specs.items():
            if why := self._held_back(cwd, spec.command_line, sandboxed=spec.settings.sandboxed):
                problems.append(f"The server {name} is not started: {why}.")
            else:
                usable.append(spec)
        return FoundServers(tuple(usable), tuple(problems))

    def load_hooks(self, cwd: Path) -> LoadedHooks:
        """Return the hooks for a directory, from the settings, other programs and plugins.

        The problems say why hooks are held back, or why the settings are invalid. Unusable hooks,
        and hooks of an untrusted project, are left out silently. Reads the settings again.
        """
        trusted = self._trusts(cwd)
        try:
            loaded = _loaded_config(find_project(cwd), trusted=trusted)
        except ConfigError as error:
            return LoadedHooks(problems=(str(error),))
        problems: list[str] = []
        handlers: list[CommandHook] = []
        for hook in _hooks(cwd, loaded, trusted=trusted):
            if why := self._held_back(cwd, hook.command_line, sandboxed=hook.settings.sandboxed):
                problems.append(
                    f"The hook “{hook.settings.command}” ({hook.place}) is left out: {why}."
                )
            else:
                handlers.append(self._handler(hook, cwd, loaded.config))
        return LoadedHooks(tuple(handlers), tuple(problems))

    def _handler(self, hook: _Hook, cwd: Path, config: Config) -> CommandHook:
        variables = dict(os.environ)
        if hook.plugin is not None:
            variables[ROOT_VARIABLE] = str(hook.plugin)
        environment = SafeEnvironment(variables, config.sandbox.env, config.sandbox.mask)
        handler = CommandHook(
            hook.settings, cwd, environment, problem_of=self.problem_of, place=hook.place
        )
        if hook.found is None:
            return handler
        return claude_hook(hook.found, handler)

    def _held_back(self, cwd: Path, command: str, *, sandboxed: bool) -> str:
        """Return a clause that says why the command of a hook or server must not run; "" if it may.

        The command would run in ``cwd``. If it may, records the digests of the project files that
        it names, so that `problem_of` notices a later change.
        """
        project = find_project(cwd)
        if not _names_files(project, cwd, command):
            return ""
        if sandboxed and _is_contained(project, self._find):
            return self._pinned.pin(cwd, command)
        return self._untrusted(cwd, command, session=cwd) or self._pinned.pin(cwd, command)

    def problem_of(self, cwd: Path, command: str, *, session: Path | None = None) -> str:
        """Return a clause that says why a command must not run outside the sandbox; "" if it may.

        The command would run in ``cwd``. The command must not run a file of an untrusted project,
        nor a file that can't be read or that has changed since its digest was recorded. ``session``
        is the directory whose trust counts, by default ``cwd``. Reads the disk; call it in a
        thread.
        """
        return self._untrusted(cwd, command, session=session or cwd) or self._pinned.problem(
            cwd, command
        )

    def _untrusted(self, cwd: Path, command: str, *, session: Path) -> str:
        """Return a clause that says which untrusted file a command runs; "" if there is none.

        The file belongs to an untrusted project.
        """
        project = find_project(cwd)
        named = next(named_files(project, cwd, command), None)
        if named is None or self._runs_files(session):
            return ""
        shown = named.relative_to(project)
        return (
            f"it runs {shown}, and you have not trusted this project in its current state "
            "(/trust asks you, --trust does so for one run)"
        )

    def config(self, cwd: Path) -> Config:
        """Read the settings for a directory, including those of its project if that is trusted.

        Raises:
            ConfigError: a settings file can't be read, or has an invalid value.
        """
        return _config(find_project(cwd), trusted=self._trusts(cwd))

    async def aclose(self) -> None:
        shared = [hub for hubs in self._shared_hubs.values() for _first, hub in hubs]
        await asyncio.gather(*(hub.aclose() for hub in (*shared, *self._own_hubs)))
