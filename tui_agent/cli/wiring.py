"""Wires the real parts together: configuration, sessions, models, tools. The screen and the headless run share it."""

import asyncio
import logging
import os
import tempfile
import time
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tui_agent.agent.agent import Agent
from tui_agent.agent.agent_specs import AgentSpec, builtin_specs, find_spec, load_specs
from tui_agent.agent.checkpoints.recorder import Keeping
from tui_agent.agent.clients import NO_MODEL, RoutedClient
from tui_agent.agent.hooks.hooks import Hooks
from tui_agent.agent.knowledge.folders import Folders
from tui_agent.agent.knowledge.knowledge import Knowledge, Sources
from tui_agent.agent.mcp.hub import McpHub
from tui_agent.agent.mcp.settings import McpServerSettings
from tui_agent.agent.model_directory import CatalogDirectory
from tui_agent.agent.permissions import Action, Rule, parse_rule, rules_from_table
from tui_agent.agent.ports import AgentPorts
from tui_agent.agent.system_prompt import find_project
from tui_agent.agent.trust import Answer, ProjectState, TrustStore, Untrusted, project_config, project_state
from tui_agent.cli.arguments import MODES, UsageError
from tui_agent.cli.extensions import Extensions
from tui_agent.cli.sessions import DATABASE, open_store
from tui_agent.config import LoadedConfig, load_config
from tui_agent.context.templates import Templates
from tui_agent.model.catalog import Catalog, ModelInfo
from tui_agent.model.client import HostClient
from tui_agent.model.demo import DEMO_MAX_OUTPUT, DEMO_MODEL, DEMO_WINDOW, DemoClient, create_demo_workspace
from tui_agent.model.naming import require
from tui_agent.model.retry import RetryPolicy
from tui_agent.model.route import Router
from tui_agent.paths import cache_dir, config_dir, data_dir, log_dir, runtime_dir
from tui_agent.resources import prompt
from tui_agent.session.entries import Entry
from tui_agent.session.errors import StoreError
from tui_agent.session.ids import short_id
from tui_agent.session.session import Session
from tui_agent.session.store import Store
from tui_agent.tools.environment import safe_environment
from tui_agent.tools.registry import builtin_tools
from tui_agent.tools.sandbox import Sandbox
from tui_agent.tools.skill import SkillTool
from tui_agent.tools.task import TaskTool

log = logging.getLogger(__name__)

DEFAULT_MODELS = (
    "anthropic/claude-sonnet-5",
    "openai/gpt-5.6",
    "gemini/gemini-3.1-pro-preview",
    "mistral/mistral-medium-latest",
    "deepseek/deepseek-chat",
    "xai/grok-4.20",
    "openrouter/anthropic/claude-sonnet-5",
)
"""What is used when no model is configured: the first whose provider has a key."""


class DemoCatalog(Catalog):
    """The catalog with the demo model in it."""

    def info(self, model: str) -> ModelInfo:
        """Return what is known of a model."""
        if model == DEMO_MODEL:
            return ModelInfo(DEMO_MODEL, "demo", DEMO_WINDOW, DEMO_MAX_OUTPUT)
        return super().info(model)

    def knows(self, model: str) -> bool:
        """Tell whether anything is known of a model."""
        return model == DEMO_MODEL or super().knows(model)


class Wiring:
    """The program's parts for one run of it. Use as an asynchronous context manager."""

    def __init__(self, arguments: Namespace) -> None:
        self.arguments = arguments
        self.cwd: Path = arguments.cwd.resolve()
        self.trust = TrustStore(data_dir() / "trust.json")
        self.project_state: ProjectState = project_state(
            find_project(self.cwd), self.trust, cwd=self.cwd, assume_trust=bool(getattr(arguments, "trust", False))
        )
        self.flag_rules = (
            *(parse_rule(text, Action.ALLOW) for text in arguments.allow),
            *(parse_rule(text, Action.DENY) for text in arguments.deny),
        )
        if getattr(arguments, "print", None) is not None:
            # Without anybody to ask, a doom loop is refused once and then ends the run.
            self.flag_rules = (Rule("doom_loop", "*", Action.DENY, "default"), *self.flag_rules)
        start_logging(debug=arguments.debug)
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self.extensions = Extensions(self.trusts, headless=getattr(arguments, "print", None) is not None)
        self._configure()
        self.chosen: AgentSpec | None = self._choose_agent()
        """The agent of the user's that was named instead of a mode."""
        self.store: Store = self._open_store()

    def _choose_agent(self) -> AgentSpec | None:
        name = getattr(self.arguments, "mode", None)
        if name is None or name in MODES:
            return None
        folders = Folders(self.cwd, find_project(self.cwd), config_dir(), Path.home())
        specs = load_specs(folders, prompt, trusted=lambda: self.trusts(self.cwd))
        found = find_spec(name, specs)
        if found is None or not found.primary:
            own = [spec.name for spec in specs if spec.primary]
            raise UsageError(f"There is no mode or primary agent “{name}”. There are: {', '.join([*MODES, *own])}.")
        return found

    def _configure(self) -> None:
        """Read the settings that hold and build what depends on them; nothing is started."""
        project = project_config(find_project(self.cwd)) if self.project_state.trusted else None
        self.loaded: LoadedConfig = load_config(flags=_flags(self.arguments), project=project)
        config = self.loaded.config
        self.user_rules: tuple[Rule, ...] = (
            *rules_from_table(config.permissions, "user"),
            *rules_from_table(self.loaded.project_permissions, "project"),
        )
        self.catalog = DemoCatalog(config.models, config.providers)
        if self.arguments.model and (warning := require(self.arguments.model, self.catalog)):
            self.loaded = replace(self.loaded, warnings=(*self.loaded.warnings, warning))
        router = Router(self.catalog, os.environ, models=config.models, providers=config.providers)
        self.router = router
        self.directory = CatalogDirectory(self.catalog, data_dir() / "learnt.json", Templates.load(prompt))
        host = HostClient(router, host=config.host, log_path=log_dir() / "model-host.log", runtime_dir=runtime_dir())
        self.client = RoutedClient(host, DemoClient())

    def answer_trust(self, answer: Answer | None) -> None:
        """Take the answer to whether the project is trusted, None for not now. Call it before anything is opened."""
        state = self.project_state
        if not isinstance(state, Untrusted) or answer is None or state.problem:
            return
        project = find_project(self.cwd)
        self.trust.remember(project, state.digest, answer)
        self.project_state = project_state(project, self.trust, cwd=self.cwd)
        if self.project_state.trusted:
            self._configure()

    def trusts(self, cwd: Path) -> bool:
        """Whether what the project of a directory brings along may act, as it is now."""
        if self.project_state.trusted and find_project(cwd) == find_project(self.cwd):
            return True
        return project_state(find_project(cwd), self.trust, cwd=cwd).trusted

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the model host and the servers, and close the sessions."""
        await asyncio.gather(self.client.aclose(), self.extensions.aclose())
        self.store.purge()
        self.store.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    # -- sessions -------------------------------------------------------------------------------------------

    def create(self, *, demo: bool) -> Session:
        """Make a new session here; the demo's is in a scratch directory of its own."""
        cwd = self._demo_directory() if demo else self.cwd
        return self.hold(self.open(self.store.create_session(cwd).id, demo=demo))

    def open(self, session_id: str, *, read_only: bool = False, demo: bool = False) -> Session:
        """Open a session without holding it."""
        model = DEMO_MODEL if demo else self.default_model()

        def estimate(entry: Entry) -> int:
            return self.directory.counter(model).estimate(entry)

        return Session(self.store, session_id, estimate=estimate, read_only=read_only)

    @staticmethod
    def hold(session: Session, *, take_over: bool = False) -> Session:
        """Take hold of a session and bring what a crash left into order.

        Raises:
            SessionHeld: another live program has it.
        """
        if take_over:
            session.take_over()
        else:
            session.hold()
        session.recover()
        return session

    def close(self, session: Session) -> None:
        """Let go of a session; one that was never used leaves nothing behind."""
        session.release()
        if not session.read_only and session.info.entry_count == 0:
            self.store.delete(session.id)

    def open_from_arguments(self) -> Session:
        """Open the session the arguments name, or a new one."""
        arguments = self.arguments
        if arguments.continue_:
            return self.hold(self.open(self.last_session()))
        if arguments.resume:
            return self.hold(self.open(self.store.session(arguments.resume).id))
        if arguments.fork:
            return self.hold(self.open(self.fork(arguments.fork)))
        return self.create(demo=arguments.demo)

    def last_session(self) -> str:
        """Return the session last used in this directory (with ``--demo``: the last demo).

        Raises:
            StoreError: there is none.
        """
        for info in self.store.sessions(cwd=None if self.arguments.demo else self.cwd):
            if not self.arguments.demo or info.model == DEMO_MODEL:
                return info.id
        if self.arguments.demo:
            raise StoreError("There is no demo to go on with yet; tui-agent --demo begins one.")
        newest = next(iter(self.store.sessions(limit=1)), None)
        demo = " tui-agent --demo -c goes on with the last demo;" if newest and newest.model == DEMO_MODEL else ""
        raise StoreError(f"There is no session of this directory yet.{demo} tui-agent -r lists all sessions.")

    def way_back(self, session: Session) -> str:
        """Return the command that goes on with a session, "" when nothing of it is kept."""
        info = session.info
        if self.arguments.no_session or session.read_only or not info.entry_count:
            return ""
        if info.model == DEMO_MODEL:
            return "tui-agent --demo -c"
        return "tui-agent -c" if info.cwd == str(self.cwd) else f"tui-agent -r {short_id(info.id)}"

    def fork(self, text: str) -> str:
        """Copy a session up to an entry, named as ``ID`` or ``ID#N``; returns the copy's id."""
        name, _separator, entry = text.partition("#")
        info = self.store.session(name)
        return self.store.fork(info.id, int(entry) if entry.isdigit() else info.leaf).id

    # -- agents ---------------------------------------------------------------------------------------------

    def make_agent(self, session: Session, servers: Mapping[str, McpServerSettings] | None = None) -> Agent:
        """Return an agent for a session, in the session's own directory if that is still there.

        ``servers`` are MCP servers for this session beside the configured ones.
        """
        config = self.loaded.config
        recorded = Path(session.info.cwd)
        cwd = recorded if recorded.is_dir() else self.cwd
        demo = cwd.is_relative_to(data_dir() / "demo")

        def open_child(title: str, entry: int | None, kind: str) -> Session:
            info = self.store.create_session(cwd, title=title, parent=(session.id, entry), agent=kind)
            return self.hold(self.open(info.id, demo=demo))

        knowledge = self.knowledge_of(cwd)
        ports = AgentPorts(
            client=self.client,
            tools=(
                *builtin_tools(config.webfetch),
                TaskTool(),
                SkillTool(lambda: knowledge.skills, lambda: knowledge.offers_skills),
            ),
            directory=self.directory,
            prompt=prompt,
            cwd=cwd,
            project=find_project(cwd),
            put_blob=self.store.put_blob,
            blob=self.store.blob,
            environment=safe_environment(os.environ),
            sandbox=self.sandbox(),
            settings=config.context,
            retry=RetryPolicy.of(config.retry),
            rules=(Rule("task", "*", Action.ALLOW), *self._rules_in(cwd), *self.flag_rules),
            max_steps=config.max_steps,
            parallel_calls=config.parallel_calls,
            knowledge=knowledge,
            small_model=config.small_model,
            titles=getattr(self.arguments, "print", None) is None,
            agents=builtin_specs(prompt),
            open_child=open_child,
            mcp=McpHub() if demo else self.extensions.hub(cwd, servers),
            hooks=Hooks() if demo else self.extensions.hooks(cwd),
            checkpoints=self._keeping(),
        )
        wanted, chosen = getattr(self.arguments, "mode", None), self.chosen
        model = DEMO_MODEL if demo else self.default_model()
        agent = Agent(session, ports, model=model, mode=wanted or config.mode)
        if wanted and not session.read_only:
            agent.change_mode(wanted)
            if chosen is not None and chosen.model is not None and not demo:
                agent.change_model(chosen.model)
        if self.arguments.model and not demo and agent.model != self.arguments.model:
            agent.change_model(self.arguments.model)
        return agent

    def _rules_in(self, cwd: Path) -> tuple[Rule, ...]:
        """Return the rules of the settings; those of a project hold in that project only."""
        here = find_project(cwd) == find_project(self.cwd)
        return tuple(rule for rule in self.user_rules if here or rule.source != "project")

    def knowledge_of(self, cwd: Path) -> Knowledge:
        """Return what files tell an agent that works in a directory; nothing is read yet."""
        folders = Folders(cwd, find_project(cwd), config_dir(), Path.home())
        sources = Sources(folders, self.loaded.config.instructions, data_dir() / "instructions")
        return Knowledge(sources, prompt=prompt, trusted=lambda: self.trusts(cwd))

    def _keeping(self) -> Keeping | None:
        """Return where images of changed files go; None when they are not wanted."""
        settings, store = self.loaded.config.checkpoints, self.store
        if not settings.enabled:
            return None
        limit = settings.megabytes * 1_000_000
        own = tuple(path.resolve() for path in (data_dir(), log_dir(), runtime_dir(), cache_dir()))
        return Keeping(store.put_blob, store.blob, lambda: store.trim_file_images(limit), own)

    def sandbox(self) -> Sandbox:
        """Return what the commands of a session run in; this program's own directories are no business of theirs."""
        private = (config_dir(), data_dir(), log_dir(), runtime_dir())
        return Sandbox(self.loaded.config.sandbox, private, cache_dir() / "commands")

    def default_model(self) -> str:
        """Return the model of a new session: configured, or the first default with a key; "" when there is none."""
        if configured := self.loaded.config.model:
            return configured
        available = self.router.keys.available()
        for model in DEFAULT_MODELS:
            if model.partition("/")[0] in available and self.catalog.knows(model):
                return model
        return NO_MODEL

    def has_model(self) -> bool:
        """Whether a new session could do something."""
        return bool(self.loaded.config.model) or bool(self.router.keys.available())

    def _open_store(self) -> Store:
        if not self.arguments.no_session:
            return open_store()
        self._temporary = tempfile.TemporaryDirectory(prefix="tui-agent-")
        return Store(Path(self._temporary.name) / DATABASE)

    @staticmethod
    def _demo_directory() -> Path:
        name = datetime.fromtimestamp(time.time()).astimezone().strftime("%Y%m%d-%H%M%S")
        parent = data_dir() / "demo"
        parent.mkdir(parents=True, exist_ok=True)
        directory = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=parent))
        create_demo_workspace(directory)
        return directory


def start_logging(*, debug: bool) -> None:
    """Log to a file, never to the screen; secrets are taken out."""
    from logging.handlers import RotatingFileHandler

    from tui_agent.model.redaction import RedactingFormatter

    directory = log_dir()
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        handler: logging.Handler = RotatingFileHandler(
            directory / "tui-agent.log", maxBytes=2_000_000, backupCount=2, encoding="utf-8", delay=True
        )
    except OSError:
        handler = logging.NullHandler()
    handler.setFormatter(RedactingFormatter())
    logging.basicConfig(level=logging.DEBUG if debug else logging.INFO, handlers=[handler], force=True)


def _flags(arguments: Namespace) -> dict[str, Any]:
    flags: dict[str, Any] = {}
    if arguments.model:
        flags["model"] = arguments.model
    if arguments.max_steps:
        flags["max_steps"] = arguments.max_steps
    return flags
