"""Builds and owns the parts that all ways to run the program share.

The parts are the settings, trust, models, the store, and the hubs of MCP servers. Creates, opens,
forks and closes sessions; agent_making.py builds their agents.
"""

import asyncio
import os
import tempfile
import time
from argparse import Namespace
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

from tui_agent.agent.agent_specs import AgentSpec, load_specs
from tui_agent.agent.assembly import Models, ModelSources, hold_and_recover
from tui_agent.agent.knowledge.folders import TrustGate
from tui_agent.agent.permissions import (
    Action,
    Rule,
    RuleError,
    Source,
    parse_rule,
    rules_from_table,
)
from tui_agent.cli.arguments import MODES, RUN_LIMITS, UsageError
from tui_agent.cli.extensions import Extensions, folders_of, sandbox_of, state_of_project
from tui_agent.cli.logs import start_logging
from tui_agent.cli.models import LEARNT, catalog_of, choose_model
from tui_agent.cli.sessions import DATABASE, named_or_last, open_store
from tui_agent.config import ConfigError, LoadedConfig, load_config
from tui_agent.files.own_git import find_project
from tui_agent.model.demo import DEMO_MODEL, create_demo_workspace
from tui_agent.model.logins import Logins
from tui_agent.path_checks import real_path
from tui_agent.paths import data_dir, log_dir, provide_data_dir
from tui_agent.resources import prompt
from tui_agent.sandbox import Sandbox
from tui_agent.sandbox.layer import make_own_directory
from tui_agent.session.errors import StoreError
from tui_agent.session.ids import short_id
from tui_agent.session.session import Session
from tui_agent.session.store import Store
from tui_agent.trust import ProjectState, TrustDecision, TrustStore, project_config
from tui_agent.whole_numbers import whole_number


class Wiring:
    """The parts of the program that one process shares; `aclose` closes them."""

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
        """Whether the program runs without a screen (``-p``), so that no user can be asked."""
        if self.headless:
            # As no user can be asked, a call that the model keeps repeating is denied once; then
            # the run ends.
            self.flag_rules = (Rule("doom_loop", "*", Action.DENY, "default"), *self.flag_rules)
        start_logging(debug=arguments.debug)
        self.extensions = Extensions(
            self.trusts, headless=self.headless, sandbox=self.sandbox, runs_files=self._runs_files
        )
        self.logins = Logins()
        self.logins.warm()
        self.configure()
        self.chosen: AgentSpec | None = self._choose_agent()
        """The primary agent that ``--mode`` names; None if it names a mode or is not given."""
        if arguments.no_session:
            provide_data_dir()
            self.store = Store(make_own_directory(self, Path(tempfile.gettempdir())) / DATABASE)
        else:
            self.store = open_store()

    def _choose_agent(self) -> AgentSpec | None:
        name = self.arguments.mode
        if name is None or name in MODES:
            return None
        folders = folders_of(self.cwd, self.loaded.config)
        specs = load_specs(folders, prompt, gate=TrustGate(partial(self.trusts, self.cwd)))
        found = next((spec for spec in specs if spec.name == name), None)
        if found is None or not found.primary:
            own = [spec.name for spec in specs if spec.primary]
            raise UsageError(
                f"There is no mode or primary agent “{name}”. Choose one of: {', '.join([*MODES, *own])}."
            )
        return found

    def _settle_model(self, model: str) -> str:
        """Check the model of the arguments; if the name matches only one known model, use that.

        Returns a sentence for the user; "" if there is nothing to say. Raises UnknownModelError if
        no provider could have such a model.
        """
        verdict = self.catalog.judge(model)
        if not verdict.only:
            return self.catalog.require(model)
        self.arguments.model = verdict.only
        self._use(self.read_config())
        return verdict.taken

    def read_config(self) -> LoadedConfig:
        """Read the settings from files, environment and arguments.

        The project's file is read only if the project is trusted.

        Raises:
            ConfigError: a file can't be read, or a value is invalid (`_use` checks permissions).
        """
        project = None
        if self.project_state.trusted:
            project = project_config(find_project(self.cwd))
        given = {name: getattr(self.arguments, name) for name in ("model", *RUN_LIMITS)}
        flags = {name: value for name, value in given.items() if value not in (None, "")}
        return load_config(flags=flags, project=project)

    def _use(self, loaded: LoadedConfig) -> None:
        """Apply the settings; raises ConfigError and changes nothing if a permission is invalid."""
        own = _rules_of(loaded.path, loaded.config.permissions, "user")
        for settings in loaded.config.projects.values():
            _rules_of(loaded.path, settings.permissions, "here")
        shared: tuple[Rule, ...] = ()
        if loaded.project_permissions:
            path = project_config(find_project(self.cwd))
            shared = _rules_of(path, loaded.project_permissions, "project")
        self.loaded = loaded
        self.user_rules: tuple[Rule, ...] = (*own, *shared)

    def reload(self) -> tuple[str, ...]:
        """Read the settings again, and return the keys of the settings that changed.

        Running agents keep their settings until they are given the result of `adjustable`.

        Raises:
            ConfigError: a file can't be read, a value is invalid, or the project has changed since
                the user trusted it. In that case, the settings in use are kept.
        """
        if self.project_state.trusted and not self._state_now().trusted:
            raise ConfigError(
                "This project has changed since you trusted it. Restart the program to be asked again."
            )
        from tui_agent.setting_rows import changed_keys

        before = self.loaded.config
        loaded = self.read_config()
        self._use(loaded)
        config = loaded.config
        self.router.use(config.models, config.providers)
        self.providers.settings = config.host
        return tuple(changed_keys(before, config))

    def configure(self) -> None:
        """Read the settings, and build the parts that depend on them; starts none of them."""
        self._use(self.read_config())
        config = self.loaded.config
        self.notice = ""
        """A notice for the user, to show once a session is open; "" if there is none."""
        self.catalog = catalog_of(config)
        if self.arguments.model and (warning := self._settle_model(self.arguments.model)):
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

    def reread_project(self) -> None:
        """Read the project's files again, and update ``project_state`` from them."""
        self.project_state = self._state_now()

    def answer_trust(self, answer: TrustDecision | None) -> bool:
        """Record the user's answer about trust; return True if the project is trusted now.

        The answer applies to the files from which ``project_state`` was read. Returns False, and
        records nothing, without an answer, or if the project needs no trust or can't be trusted.
        """
        state = self.project_state
        if not state.is_held_back or answer is None or state.problem:
            return False
        project = find_project(self.cwd)
        self.trust.remember(project, state.digest, answer)
        self.project_state = state_of_project(self.cwd, self.trust)
        return self.project_state.trusted

    def trusts(self, cwd: Path) -> bool:
        """Return True if the project of a directory is trusted (see `trust_of`)."""
        return self.trust_of(cwd).trusted

    def trust_of(self, cwd: Path) -> ProjectState:
        """Return the trust state of a directory's project.

        For the project in which the program was started, returns `project_state` if that is
        trusted. Otherwise, reads the state from the project's current files.
        """
        if self.project_state.trusted and find_project(cwd) == find_project(self.cwd):
            return self.project_state
        return state_of_project(cwd, self.trust)

    def _runs_files(self, cwd: Path) -> bool:
        """Return True if commands outside the sandbox may run files of a directory's project.

        With ``--trust``, they may, even if nothing in the project itself needs trust, because the
        commands may be an editor's MCP servers.
        """
        state = self.trust_of(cwd)
        is_here = find_project(cwd) == find_project(self.cwd)
        return state.trusted or (self.arguments.trust and is_here and not state.problem)

    async def aclose(self) -> None:
        await asyncio.gather(self.client.aclose(), self.extensions.aclose())
        try:
            self.store.purge()
        finally:
            self.store.close()

    # -- sessions

    def create(self, *, demo: bool) -> Session:
        """Create and hold a session in `cwd` or, for the demo, in a new scratch directory.

        While a session is held, no other program can write to it.
        """
        cwd = self.cwd
        if demo:
            name = datetime.fromtimestamp(time.time()).astimezone().strftime("%Y%m%d-%H%M%S")
            parent = data_dir() / "demo"
            parent.mkdir(parents=True, exist_ok=True)
            cwd = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=parent))
            create_demo_workspace(cwd)
        return self.hold(self.open(self.store.create_session(cwd).id, demo=demo))

    def open(self, session_id: str, *, read_only: bool = False, demo: bool = False) -> Session:
        """Open a session without reserving it for this program.

        Another program may have it open and write to it.
        """
        if demo:
            model = DEMO_MODEL
        else:
            model = self.default_model()
        # Look the token counter up for each estimate, because it can change.
        return Session(
            self.store,
            session_id,
            estimate=lambda entry: self.directory.counter(model).estimate(entry),
            read_only=read_only,
        )

    hold = staticmethod(hold_and_recover)

    def close(self, session: Session) -> None:
        """Release a session for other programs; delete it if it is empty and not read-only."""
        session.release()
        if not session.read_only and session.info.entry_count == 0:
            self.store.delete(session.id)

    def last_session(self) -> str:
        """Return the id of the session last used in `cwd`; with ``--demo``, of the last demo.

        If `cwd` has no session, uses the nearest directory above it that has one, up to the
        project's root.

        Raises:
            StoreError: there is no such session.
        """
        if not self.arguments.demo:
            return named_or_last(self.store, "", self.cwd).id
        for info in self.store.sessions():
            if info.model == DEMO_MODEL:
                return info.id
        raise StoreError("There is no demo to continue yet; tui-agent --demo starts one.")

    def resume_command(self, session: Session) -> str:
        """Return the shell command that continues a session.

        Returns "" if the session is empty, not stored or read-only.
        """
        info = session.info
        if self.arguments.no_session or session.read_only or not info.entry_count:
            return ""
        if info.model == DEMO_MODEL:
            return "tui-agent --demo -c"
        if info.cwd == str(self.cwd):
            return "tui-agent -c"
        return f"tui-agent -r {short_id(info.id)}"

    def fork(self, text: str) -> str:
        """Copy a session, named by ``ID`` or ``ID#N`` (up to entry N); return the copy's id.

        Raises UsageError if N is not a number.
        """
        name, separator, entry = text.partition("#")
        info = self.store.session(name)
        if not separator:
            return self.store.fork(info.id, info.leaf).id
        number = whole_number(entry)
        if number is None:
            raise UsageError(f"--fork {name}#N needs the number of an entry, not “{entry}”.")
        return self.store.fork(info.id, number).id

    def sandbox(self, project: Path) -> Sandbox:
        """Return the sandbox for a project's commands."""
        return sandbox_of(self.loaded.config, project)

    def default_model(self) -> str:
        """Return the model for a new session (see `choose_model`); "" if the user has to choose."""
        return choose_model(self.loaded.config, self.router.keys.available(), self.catalog.knows)


def _rules_of(
    path: Path, permissions: dict[str, str | dict[str, str]], source: Source
) -> tuple[Rule, ...]:
    """Return the rules in a file's permissions; raises ConfigError if a rule is invalid."""
    try:
        return rules_from_table(permissions, source)
    except RuleError as error:
        raise ConfigError(f"{path}: {error}") from None
