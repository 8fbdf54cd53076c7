"""Wires the real parts together: configuration, sessions, models, tools.

The screen and the headless run share it.
"""

import asyncio
import json
import os
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from tui_agent.agent.agent import Agent
from tui_agent.agent.agent_specs import AgentSpec, load_specs
from tui_agent.agent.assembly import (
    Models,
    ModelSources,
    find_tool_files,
    hold,
    make_ports,
    web_tools,
)
from tui_agent.agent.checkpoints.recorder import SnapshotStore
from tui_agent.agent.clients import NO_MODEL
from tui_agent.agent.hooks.hooks import Hooks
from tui_agent.agent.knowledge.folders import Folders
from tui_agent.agent.knowledge.knowledge import Knowledge, Sources
from tui_agent.agent.mcp.hub import McpHub
from tui_agent.agent.mcp.settings import McpServerSettings
from tui_agent.agent.permissions import STORED, Action, Rule, parse_rule, rules_from_table
from tui_agent.agent.ports import Adjustable, AgentPorts
from tui_agent.agent.programs.found import ForeignSettings
from tui_agent.agent.programs.inventory import read_programs
from tui_agent.cli.arguments import MODES, RUN_LIMITS, UsageError
from tui_agent.cli.extensions import (
    Extensions,
    folders_of,
    folders_without_plugins,
    state_of_project,
)
from tui_agent.cli.logs import start_logging
from tui_agent.cli.models import LEARNT, catalog_of, choose_model
from tui_agent.cli.sessions import DATABASE, named_or_last, open_store
from tui_agent.config import (
    ConfigError,
    LoadedConfig,
    config_path,
    load_config,
    read_table,
    set_value,
    split_key,
)
from tui_agent.context.view import resolve
from tui_agent.files.memory import Memory
from tui_agent.files.own_git import find_project
from tui_agent.model.demo import DEMO_MODEL, create_demo_workspace
from tui_agent.model.logins import Logins
from tui_agent.model.protocol import ModelError
from tui_agent.path_checks import is_directory, real_path
from tui_agent.paths import cache_dir, config_dir, data_dir, keep_nothing, log_dir
from tui_agent.processes.environment import SafeEnvironment
from tui_agent.resources import prompt
from tui_agent.sandbox import Sandbox
from tui_agent.sandbox.layer import make_own_directory
from tui_agent.session.effort import Effort
from tui_agent.session.entries import EffortChangeEntry
from tui_agent.session.errors import StoreError
from tui_agent.session.ids import short_id
from tui_agent.session.session import Session
from tui_agent.session.store import Store
from tui_agent.tools.functions.tool_files import FoundFile, ToolFiles
from tui_agent.trust import ProjectState, TrustDecision, TrustStore, project_config


class Wiring:
    """The program's parts for one run of it; `aclose` ends it."""

    def __init__(self, arguments: Namespace) -> None:
        self.arguments = arguments
        self.cwd: Path = real_path(arguments.cwd)
        self.trust = TrustStore(data_dir() / "trust.json")
        self.project_state: ProjectState = self._state_now()
        self.flag_rules = (
            *(parse_rule(text, Action.ALLOW) for text in arguments.allow),
            *(parse_rule(text, Action.DENY) for text in arguments.deny),
        )
        self.headless: bool = arguments.print is not None
        """Nobody can be asked, and nobody looks."""
        if self.headless:
            # Without anybody to ask, a doom loop is refused once and then ends the run.
            self.flag_rules = (Rule("doom_loop", "*", Action.DENY, "default"), *self.flag_rules)
        start_logging(debug=arguments.debug)
        self.extensions = Extensions(self.trusts, headless=self.headless, sandbox=self.sandbox)
        self.logins = Logins()
        self.logins.warm()
        self.configure()
        self.chosen: AgentSpec | None = self._choose_agent()
        """The agent of the user's that was named instead of a mode."""
        if arguments.no_session:
            keep_nothing()
            self.store = Store(make_own_directory(self, Path(tempfile.gettempdir())) / DATABASE)
        else:
            self.store = open_store()

    def _choose_agent(self) -> AgentSpec | None:
        name = self.arguments.mode
        if name is None or name in MODES:
            return None
        specs = load_specs(self._folders(self.cwd), prompt, trusted=self.trusts(self.cwd))
        found = next((spec for spec in specs if spec.name == name), None)
        if found is None or not found.primary:
            own = [spec.name for spec in specs if spec.primary]
            raise UsageError(
                f"There is no mode or primary agent “{name}”. There are: {', '.join([*MODES, *own])}."
            )
        return found

    def read_config(self) -> LoadedConfig:
        """Return the settings as they are in files, environment and arguments now, or raise `ConfigError`."""
        project = None
        if self.project_state.trusted:
            project = project_config(find_project(self.cwd))
        given = {name: getattr(self.arguments, name) for name in ("model", *RUN_LIMITS)}
        flags = {name: value for name, value in given.items() if value not in (None, "")}
        return load_config(flags=flags, project=project)

    def _take(self, loaded: LoadedConfig) -> None:
        self.loaded = loaded
        self.user_rules: tuple[Rule, ...] = (
            *rules_from_table(loaded.config.permissions, "user"),
            *rules_from_table(loaded.project_permissions, "project"),
        )

    def reload(self) -> tuple[str, ...]:
        """Reload the settings; returns those that changed.

        Agents follow when they are given ``adjustable``.

        Raises:
            ConfigError: a value is wrong, or the project is not as the user trusted it; nothing
                changed.
        """
        if self.project_state.trusted and not self._state_now().trusted:
            raise ConfigError(
                "What this project brings along changed since you trusted it: start anew to be asked."
            )
        from tui_agent.setting_rows import changed_keys

        before = self.loaded.config
        loaded = self.read_config()
        self._take(loaded)
        config = loaded.config
        self.router.use(config.models, config.providers)
        self.providers.settings = config.host
        return tuple(changed_keys(before, config))

    def configure(self) -> None:
        """Read the settings that hold and build the parts that depend on them; nothing is started."""
        self._take(self.read_config())
        config = self.loaded.config
        self.notice = ""
        """A sentence for the user once a session is open; empty for none."""
        self.catalog = catalog_of(config)
        if self.arguments.model and (warning := self.catalog.require(self.arguments.model)):
            self.loaded = replace(self.loaded, warnings=(*self.loaded.warnings, warning))
        sources = ModelSources(
            self.catalog,
            os.environ,
            config.models,
            providers=config.providers,
            logins=self.logins,
            learnt=data_dir() / LEARNT,
        )
        self.models = Models(
            sources, prompt, host=config.host, log_path=log_dir() / "model-host.log"
        )
        self.router = self.models.router
        self.directory = self.models.directory
        self.providers = self.models.providers
        self.client = self.models.client

    def _state_now(self) -> ProjectState:
        return state_of_project(self.cwd, self.trust, assume_trust=self.arguments.trust)

    def look_at_project(self) -> None:
        """Take note of what the project brings along now."""
        self.project_state = self._state_now()

    def answer_trust(self, answer: TrustDecision | None) -> bool:
        """Take the answer to whether the project is trusted as it was looked at; True if from now on it is."""
        state = self.project_state
        if not state.is_held_back or answer is None or state.problem:
            return False
        project = find_project(self.cwd)
        self.trust.remember(project, state.digest, answer)
        self.project_state = state_of_project(self.cwd, self.trust)
        return self.project_state.trusted

    def trusts(self, cwd: Path) -> bool:
        """Whether the project of a directory may act, as it is now."""
        return self._trust_of(cwd).trusted

    def _trust_of(self, cwd: Path) -> ProjectState:
        if self.project_state.trusted and find_project(cwd) == find_project(self.cwd):
            return self.project_state
        return state_of_project(cwd, self.trust)

    async def aclose(self) -> None:
        await asyncio.gather(self.client.aclose(), self.extensions.aclose())
        self.store.purge()
        self.store.close()

    # -- sessions

    def create(self, *, demo: bool) -> Session:
        cwd = self.cwd
        if demo:
            name = datetime.fromtimestamp(time.time()).astimezone().strftime("%Y%m%d-%H%M%S")
            parent = data_dir() / "demo"
            parent.mkdir(parents=True, exist_ok=True)
            cwd = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=parent))
            create_demo_workspace(cwd)
        return self.hold(self.open(self.store.create_session(cwd).id, demo=demo))

    def open(self, session_id: str, *, read_only: bool = False, demo: bool = False) -> Session:
        """Open a session without holding it."""
        if demo:
            model = DEMO_MODEL
        else:
            model = self.default_model()
        # The counter of a model may be another one later.
        return Session(
            self.store,
            session_id,
            estimate=lambda entry: self.directory.counter(model).estimate(entry),
            read_only=read_only,
        )

    hold = staticmethod(hold)

    def close(self, session: Session) -> None:
        """Let go of a session; one that was never used leaves nothing behind."""
        session.release()
        if not session.read_only and session.info.entry_count == 0:
            self.store.delete(session.id)

    def last_session(self) -> str:
        """Return the session last used in this directory (with ``--demo``: the last demo), or raise `StoreError`."""
        if not self.arguments.demo:
            return named_or_last(self.store, "", self.cwd).id
        for info in self.store.sessions():
            if info.model == DEMO_MODEL:
                return info.id
        raise StoreError("There is no demo to go on with yet; tui-agent --demo begins one.")

    def way_back(self, session: Session) -> str:
        """Return the command that goes on with a session, "" when nothing of it is kept."""
        info = session.info
        if self.arguments.no_session or session.read_only or not info.entry_count:
            return ""
        if info.model == DEMO_MODEL:
            return "tui-agent --demo -c"
        if info.cwd == str(self.cwd):
            return "tui-agent -c"
        return f"tui-agent -r {short_id(info.id)}"

    def fork(self, text: str) -> str:
        """Copy a session up to an entry, named as ``ID`` or ``ID#N``; returns the copy's id."""
        name, _separator, entry = text.partition("#")
        info = self.store.session(name)
        return self.store.fork(info.id, int(entry) if entry.isdigit() else info.leaf).id

    # -- agents

    def make_agent(
        self, session: Session, servers: Mapping[str, McpServerSettings] | None = None
    ) -> Agent:
        """Return an agent for a session, in the session's own directory if that is still there.

        ``servers`` are MCP servers for this session beside the configured ones.
        """
        config = self.loaded.config
        recorded = Path(session.info.cwd)
        cwd = self.cwd
        if recorded.is_absolute() and is_directory(recorded):
            cwd = recorded
        demo = cwd.is_relative_to(data_dir() / "demo")
        foreign = self.foreign(cwd)
        project = find_project(cwd)
        memory = Memory(data_dir() / "memory", project)
        ports = make_ports(
            self.models,
            self.store,
            cwd,
            prompt,
            knowledge=Knowledge(
                Sources(
                    self._folders(cwd),
                    (*config.instructions, *foreign.instructions),
                    config.memory.tokens,
                    config.instructions_order,
                    memory,
                ),
                prompt=prompt,
                trusted=lambda: self.trusts(cwd),
                news=None if demo or self.headless else self._news(cwd),
            ),
            web=web_tools(
                config.webfetch.reaching(config.sandbox.hosts), config.websearch, os.environ
            ),
            code=config.code,
            environment=SafeEnvironment(
                {**os.environ, **foreign.environment}, config.sandbox.env, config.sandbox.mask
            ),
            titles=not self.headless,
            memory=memory,
            tool_files=ToolFiles() if demo else self.tool_files_of(cwd),
            mcp=McpHub() if demo else self.extensions.hub(cwd, servers),
            hooks=Hooks() if demo else Hooks(partial(self.extensions.load_hooks, cwd)),
            copies=cache_dir() / "races",
            checkpoints=self._keeping(project),
            keep_here=partial(keep_rule, project=project),
        )
        ports.adopt(self.adjustable(ports))
        wanted = self.arguments.mode
        chosen = self.chosen
        model = DEMO_MODEL if demo else self.default_model()
        effort = chosen.effort if chosen else None
        if self.arguments.effort:
            effort = Effort(self.arguments.effort)
        if effort is not None and not session.read_only:
            # The agent names it where the path names none.
            named = resolve(session.active_path()).effort
            if named is not None and named.effort is not effort:
                session.append(EffortChangeEntry(effort=effort))
        agent = Agent(session, ports, model=model, mode=wanted or config.mode, effort=effort)
        if wanted and not session.read_only:
            agent.change_mode(wanted)
            if chosen is not None and chosen.model is not None and not demo:
                agent.change_model(chosen.model)
        if (
            self.arguments.model
            and not demo
            and not session.read_only
            and agent.model != self.arguments.model
        ):
            agent.change_model(self.arguments.model)
        elif (
            not demo
            and not session.read_only
            and (instead := self._usable_model(agent.model)) != agent.model
        ):
            self.notice = f"{agent.model} can't be used here; the session goes on with {instead}."
            agent.change_model(instead)
        return agent

    def _usable_model(self, model: str) -> str:
        """Return the configured model where a session's own can't be asked: its provider is unknown or has no key.

        A session that was imported names a model of its program. It keeps that where the other
        can't be asked either.
        """
        default = self.default_model()
        for one in (model, default) if {DEMO_MODEL, NO_MODEL}.isdisjoint({model, default}) else ():
            with suppress(ModelError):
                self.router.route(one)
                return one
        return model

    def adjustable(self, ports: AgentPorts) -> Adjustable:
        """Return the current settings of the agent with these ports."""
        config = self.loaded.config
        sandbox = ports.sandbox
        project = find_project(ports.cwd)
        here = project == find_project(self.cwd)  # rules of a project hold in that project only
        own = config.projects.get(str(real_path(project)))
        if sandbox is None or sandbox.settings != config.sandbox:
            sandbox = self.sandbox(ports.project)
        return Adjustable(
            settings=config.context,
            retry=config.retry,
            rules=(
                Rule("task", "*", Action.ALLOW),
                *self.foreign(ports.cwd).rules,
                *(rule for rule in self.user_rules if here or rule.source != "project"),
                *(() if own is None else rules_from_table(own.permissions, "here")),
                *self.flag_rules,
            ),
            max_steps=config.max_steps,
            budget=config.run_budget,
            diagnostics=config.diagnostics,
            parallel_calls=config.parallel_calls,
            small_model=config.small_model,
            proposes_memory=config.memory.propose == "always"
            or (config.memory.propose == "attended" and not self.headless),
            fallback_models=config.fallback_models,
            sandbox=sandbox,
            preset_effort=config.preset_effort,
        )

    @staticmethod
    def _news(cwd: Path) -> Callable[[Knowledge], str] | None:
        from tui_agent.cli.adopt import first_news

        return first_news(cwd)

    def foreign(self, cwd: Path) -> ForeignSettings:
        """Return what settings of other programs mean in a directory, read now; nothing in the demo's."""
        if cwd.is_relative_to(data_dir() / "demo"):
            return ForeignSettings()
        return read_programs(
            folders_without_plugins(cwd, self.loaded.config), trusted=self.trusts(cwd)
        )

    def _folders(self, cwd: Path) -> Folders:
        return folders_of(cwd, self.loaded.config)

    def tool_files_of(self, cwd: Path) -> ToolFiles:
        """Return the tool files that hold in a directory; nothing is read yet."""
        folders = folders_without_plugins(cwd, self.loaded.config)

        def find() -> tuple[list[FoundFile], list[str]]:
            state = self._trust_of(cwd)
            found, problems = find_tool_files(folders, trusted=state.trusted)
            if state.is_held_back and len(find_tool_files(folders, trusted=True)[0]) > len(found):
                why = state.problem or "you have not trusted it (--trust, for one run)"
                problems.append(f"Tools of this project are not read: {why}.")
            return found, problems

        return ToolFiles(find)

    def _keeping(self, project: Path) -> SnapshotStore | None:
        """Return where images of a project's changed files go; None when they are not wanted."""
        store = self.store
        if not self.loaded.config.checkpoints.enabled:
            return None
        places = (real_path(path) for path in (data_dir(), log_dir(), cache_dir()))
        # The demo's project is in a directory of the program, and its files are the user's all the
        # same.
        own = tuple(path for path in places if not real_path(project).is_relative_to(path))
        return SnapshotStore(
            store.put_blob,
            store.blob,
            lambda: store.trim_file_images(self.loaded.config.checkpoints.megabytes * 1_000_000),
            own,
        )

    def sandbox(self, project: Path) -> Sandbox:
        """Return the sandbox of a session's commands, kept out of this program's own directories."""
        private = (config_dir(), data_dir(), log_dir())
        return Sandbox(
            self.loaded.config.sandbox, private, cache_dir() / "commands", project=project
        )

    def default_model(self) -> str:
        """Return the model of a new session, "" when there is none."""
        return choose_model(self.loaded.config, self.router.keys.available(), self.catalog.knows)


def keep_rule(rule: Rule, project: Path) -> str | None:
    """Add a rule to the user's file, one of the kind "here" for a project; return why that can't be done."""
    try:
        table, patterns = _kept_rules(rule, project)
        patterns[_written_pattern(rule)] = rule.action.value
        set_value(f'{table}."{rule.permission}"', patterns)
    except (ConfigError, OSError) as error:
        return str(error)
    return None


def forget_rule(rule: Rule, project: Path) -> str | None:
    """Remove a rule from the user's file; return why that can't be done.

    Rules of a session and of the command line are kept nowhere: there is nothing to remove.
    """
    if rule.source == "project":
        return f"It is kept in {STORED['project']}: edit that file, and the project is asked about again."
    if rule.source not in {"user", "here"}:
        return None
    pattern = _written_pattern(rule)
    try:
        table, patterns = _kept_rules(rule, project)
        if pattern not in patterns:
            return f"It is not in {config_path()} (a variable of the environment sets it)."
        del patterns[pattern]
        set_value(f'{table}."{rule.permission}"', patterns or None)
    except (ConfigError, OSError) as error:
        return str(error)
    return None


def _written_pattern(rule: Rule) -> str:
    from tui_agent.shell.families import escaped

    if rule.syntax == "literal":
        return escaped(rule.pattern)
    return rule.pattern


def _kept_rules(rule: Rule, project: Path) -> tuple[str, dict[str, Any]]:
    """Return the table of the user's file that a rule belongs in, and its patterns for the rule's permission."""
    table = "permissions"
    if rule.source == "here":
        table = f"projects.{json.dumps(str(real_path(project)), ensure_ascii=False)}.permissions"
    found: Any = read_table(config_path())
    for key in (*split_key(table), rule.permission):
        found = found.get(key, {}) if isinstance(found, dict) else {}
    # A plain action is one for everything.
    if not isinstance(found, dict):
        return table, {"*": str(found)}
    return table, dict(found)
