"""Implements the services of a controller, for the screen, a run without a screen, or an editor.

Most methods only call `Wiring`, which all controllers of the process share, or a module of this
package. Decides which session and screen are opened first, and applies changed settings to this
controller's agents (`cli.acp` does so for an editor's agents).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.agent.agent import Agent
from tui_agent.agent.clients import NO_MODEL
from tui_agent.agent.events import Decision, PermissionAnswer, PermissionRequest
from tui_agent.agent.mcp.settings import McpServerSettings
from tui_agent.app.logins import LoginController
from tui_agent.app.services import (
    AppServices,
    FirstView,
    ModelRow,
    OpenHow,
    OpenRequest,
)
from tui_agent.cli.agent_making import adjustable, make_agent
from tui_agent.cli.kept_rules import forget_rule, keep_rule
from tui_agent.cli.models import abilities, describe_reply, is_usable, prices_per_million
from tui_agent.cli.wiring import Wiring
from tui_agent.config import set_value
from tui_agent.files.own_git import branch_of, find_project, is_modified
from tui_agent.files.ripgrep import NoRipgrepError, list_files
from tui_agent.model.demo import DEMO_MODEL
from tui_agent.model.providers import PROVIDERS
from tui_agent.path_checks import real_path
from tui_agent.paths import cache_dir, data_dir, log_dir
from tui_agent.session.errors import StoreError
from tui_agent.session.session import Session
from tui_agent.trust import ProjectState, TrustDecision

if TYPE_CHECKING:
    from tui_agent.agent.permissions import Rule
    from tui_agent.config import Config
    from tui_agent.model.naming import NameVerdict
    from tui_agent.session.records import Reported
    from tui_agent.setting_rows import SettingRow


GO_ON = "continue"
"""Message with which an interrupted run is continued."""
NOBODY_IS_ASKED = (
    "No user can be asked in this run. Continue without this permission, or say which you need."
)
"""Text for the model about a permission that is refused because of ``--on-question``."""
MAX_FILES = 50_000
"""Maximum number of the project's files that are listed for completion."""
BRANCH_SECONDS = 3.0
"""Time limit for Git's check for changed files, in seconds."""

TYPING_PAUSE = 0.7
"""Seconds without a key press after which the user won't notice a short freeze of the screen."""


class ControllerWiring(AppServices):
    """The services that one controller uses to reach the rest of the program.

    ``cwd`` is the directory of the controller's new sessions, by default the program's directory;
    ``servers`` are MCP servers that an editor adds to the configured ones.
    """

    def __init__(
        self,
        wiring: Wiring,
        cwd: Path | None = None,
        servers: Mapping[str, McpServerSettings] | None = None,
    ) -> None:
        self._wiring = wiring
        self._cwd = cwd
        self.store = wiring.store
        self.cwd = cwd or wiring.cwd
        self.config_path = wiring.loaded.path
        self.state_dir = data_dir()
        self.own_places = (data_dir(), cache_dir(), log_dir())
        self.warnings = wiring.loaded.warnings
        self.logins = LoginController(wiring.logins, self.config, wiring.default_model)

        self._servers = dict(servers or {})
        self._agent: Agent | None = None
        """The agent of the session on the screen."""
        self._agents: list[Agent] = []
        """The agents whose sessions are open."""
        self.last_typed: Callable[[], float] = lambda: 0.0
        """Returns the time of the last key press, in seconds since the epoch; 0.0 if no screen."""
        self._background: set[asyncio.Task[None]] = set()
        self._warmed_agent: Agent | None = None
        """The agent for which `on_ready` last started to load the slow parts."""
        self.resume_command = ""
        """Shell command that continues the session that was closed last; "" if there is none."""
        self.detached_as = ""
        """Name of this detached run; "" if the program isn't a detached run."""
        self.detached_arguments: tuple[str, ...] = ()
        """Arguments of the detached run to start when this program ends; () to start none."""

    @property
    def _project(self) -> Path:
        """The directory of the project to which saved permission rules apply.

        This is the project of the agent on the screen or, without an agent, the project of ``cwd``.
        """
        if self._agent is not None:
            return self._agent.ports.project
        return find_project(self.cwd)

    def clock(self) -> float:
        return time.time()

    def config(self) -> Config:
        return self._wiring.loaded.config

    def doctor(self) -> Sequence[str]:
        from tui_agent.cli.doctor import findings, lines_of

        found = []
        for finding in findings():
            found.extend(lines_of(finding))
        return found

    def judge_model(self, name: str) -> NameVerdict:
        return self._wiring.catalog.judge(name)

    def price(self, model: str, usage: Reported) -> float | None:
        return self._wiring.catalog.info(model).cost(usage)

    def save_setting(self, key: str, value: object) -> object:
        return set_value(key, value)

    def settings_rows(self) -> Sequence[SettingRow]:
        from tui_agent.setting_rows import setting_rows

        return setting_rows(self._wiring.read_config())

    def keep_rule(self, rule: Rule) -> str | None:
        return keep_rule(rule, self._project)

    def forget_rule(self, rule: Rule) -> str | None:
        return forget_rule(rule, self._project)

    def check_command(self, project: Path) -> str:
        own = self._wiring.loaded.config.projects.get(str(real_path(project)))
        return "" if own is None else own.check

    def keep_check(self, project: Path, command: str) -> None:
        set_value(
            f"projects.{json.dumps(str(real_path(project)), ensure_ascii=False)}.check", command
        )
        self._wiring.reload()

    def reread_settings(self) -> tuple[str, ...]:
        changed = self._wiring.reload()
        for agent in self._agents:
            agent.adopt(adjustable(self._wiring, agent.ports))
        return changed

    def start(self) -> FirstView:
        """Return the session and screen to open first, as the arguments say.

        By default, opens a new session, or the welcome screen if there is neither an API key nor a
        default model.

        With ``--fork``, makes the copy now. Raises `StoreError` if a session to open doesn't exist.
        """
        arguments = self._wiring.arguments
        wiring = self._wiring
        how = OpenHow.OPEN
        if arguments.read_only:
            how = OpenHow.READ_ONLY
        elif arguments.take_over:
            how = OpenHow.TAKE_OVER
        if arguments.continue_:
            return FirstView(OpenRequest(wiring.last_session(), how), prompt=arguments.prompt or "")
        if arguments.fork:
            return FirstView(
                OpenRequest(wiring.fork(arguments.fork)), prompt=arguments.prompt or ""
            )
        if arguments.resume:
            return FirstView(
                OpenRequest(wiring.store.session(arguments.resume).id, how),
                prompt=arguments.prompt or "",
            )
        if arguments.resume is not None:
            return FirstView(screen="sessions", prompt=arguments.prompt or "")
        if arguments.demo or wiring.router.keys.available() or wiring.default_model() != NO_MODEL:
            return FirstView(OpenRequest(demo=arguments.demo), prompt=arguments.prompt or "")
        return FirstView(screen="welcome", prompt=arguments.prompt or "")

    def trust_question(self) -> ProjectState | None:
        state = self._wiring.project_state
        return state if state.is_held_back and not state.refused else None

    def project_state(self) -> ProjectState:
        self._wiring.reread_project()
        return self._wiring.project_state

    def problem_of_command(self, cwd: Path, command: str) -> str:
        return self._wiring.extensions.problem_of(cwd, command)

    def answer_trust(self, answer: TrustDecision | None) -> None:
        is_new = self._wiring.answer_trust(answer)
        if is_new and self._agents:
            self.reread_settings()
        elif is_new:
            self._wiring.configure()

    def open_session(self, request: OpenRequest) -> Session:
        wiring = self._wiring
        if request.session_id is None and self._cwd is not None and not request.demo:
            return wiring.hold(wiring.open(wiring.store.create_session(self._cwd).id))
        if request.session_id is None:
            return wiring.create(demo=request.demo)
        match request.how:
            case OpenHow.READ_ONLY:
                return wiring.open(request.session_id, read_only=True)
            case OpenHow.FORK:
                return wiring.hold(wiring.open(wiring.fork(request.session_id)))
            case how:
                return wiring.hold(
                    wiring.open(request.session_id), take_over=how is OpenHow.TAKE_OVER
                )

    def make_agent(self, session: Session) -> Agent:
        agent = make_agent(self._wiring, session, self._servers)
        self._agents.append(agent)
        if self._wiring.arguments.on_question != "wait":
            agent.questions.relay(partial(self._refuse, agent))
        self.show_agent(agent)
        self.on_ready()
        return agent

    async def _refuse(self, agent: Agent, request: PermissionRequest) -> PermissionAnswer:
        """Deny a permission that the agent asked for, without asking the user.

        With ``--on-question stop``, also interrupt the agent.
        """
        del request
        if self._wiring.arguments.on_question == "stop":
            agent.interrupt()
        return PermissionAnswer(Decision.DENY, note=NOBODY_IS_ASKED)

    def show_agent(self, agent: Agent) -> None:
        self._agent = agent
        if self.detached_as:
            from tui_agent.cli.detached.runs import note_session

            note_session(self.detached_as, agent.session.id)

    def detach_terminals(self) -> bool:
        if not self.detached_as:
            return False
        from tui_agent.cli.detached.commands import detach_terminals

        detach_terminals(self.detached_as)
        return True

    def detached_run(self, session_id: str) -> str:
        from tui_agent.cli.detached.runs import run_of

        return run_of(session_id)

    def go_on_detached(self, session: Session, is_running: bool) -> None:  # noqa: FBT001 - as declared
        given = self._wiring.arguments
        flags = ["--trust"] if given.trust else []
        for rule in given.allow:
            flags.extend(("--allow", rule))
        for rule in given.deny:
            flags.extend(("--deny", rule))
        if is_running:
            flags.append(GO_ON)
        self.detached_arguments = ("-r", session.id, *flags)

    def close_session(self, session: Session) -> None:
        self._agents = [agent for agent in self._agents if agent.session is not session]
        self.resume_command = self._wiring.resume_command(session)
        self._wiring.close(session)

    def on_ready(self) -> None:
        """Start loading the slow parts that the agent on the screen needs, once for each agent.

        Called for each new agent, and when the screen is ready.
        """
        if self._agent is None or self._agent is self._warmed_agent:
            return
        self._warmed_agent = self._agent
        if self._wiring.headless and self._agent.session.read_only:
            return
        self._wiring.client.warm(self._agent.model)
        if self._wiring.headless:
            return
        task = asyncio.get_running_loop().create_task(self._get_ready(self._agent))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _get_ready(self, agent: Agent) -> None:
        """Load what the agent's first request needs, so that it doesn't have to wait for that.

        The tokenizer is loaded when the user pauses typing, because it blocks the screen for a
        moment.
        """
        opened = time.time()
        await asyncio.to_thread(lambda: [tool.schema() for tool in agent.ports.own_tools])
        while time.time() - max(opened, self.last_typed()) < TYPING_PAUSE:  # noqa: ASYNC110 - a pause has no event
            await asyncio.sleep(TYPING_PAUSE / 2)
        # The session may be closed or unreadable by now; using it will show the error.
        with suppress(StoreError):
            await agent.warm()

    def models(self) -> Sequence[ModelRow]:
        """Return a row for each known model, usable models first.

        Both groups are sorted by provider, in the order of /login, and then by id.
        """
        available = self._wiring.router.keys.available()
        catalog = self._wiring.catalog
        rows: list[ModelRow] = []
        for info in map(self._wiring.directory.with_learnt, catalog.models()):
            sent, answered = prices_per_million(info) or (None, None)
            place = catalog.place(info.id)
            row = ModelRow(
                info.id,
                info.provider,
                info.context_window,
                input_price=sent,
                output_price=answered,
                abilities=abilities(info),
                has_key=is_usable(info, available, catalog),
                own_host=place.host if place.source else "",
            )
            rows.append(row)
        for info, url in catalog.beside_own():
            row = ModelRow(
                info.id,
                info.provider,
                info.context_window,
                abilities=abilities(info),
                has_key=True,
                server=url,
            )
            rows.append(row)
        window = catalog.info(DEMO_MODEL).context_window
        rows.append(ModelRow(DEMO_MODEL, "demo", window, has_key=True))
        places = {name: place for place, name in enumerate(PROVIDERS)}
        return sorted(
            rows, key=lambda row: (not row.has_key, places.get(row.provider, len(places)), row.id)
        )

    async def ask_servers(self, model: str | None) -> Sequence[str]:
        from tui_agent.model.discovery import refresh, servers

        wiring = self._wiring
        in_use = self._agent.model if self._agent is not None else ""
        catalog = wiring.catalog
        if model is None:
            names = [*wiring.loaded.config.models, in_use]
        else:
            names = [model]
        asked = servers(catalog.addresses, wiring.router.keys, names)
        if model is not None:
            url = catalog.place(model).url
            if catalog.served.is_fresh(url):
                asked = []
            else:
                asked = [server for server in asked if server.place.url == url]
        outcomes = await refresh(asked, catalog.served)
        catalog.forget()
        return [describe_reply(outcome, catalog) for outcome in outcomes]

    def cache_miss_cost(self, model: str, tokens: int) -> float | None:
        return self._wiring.catalog.info(model).cache_miss_cost(tokens)

    def provider_keys(self) -> Mapping[str, str]:
        found = self._wiring.router.keys.available()
        sources: dict[str, str] = {}
        for name, source in found.items():
            shown = PROVIDERS[name].name if name in PROVIDERS else name
            sources[shown] = source
        return sources

    async def find_servers(self) -> Sequence[str]:
        from tui_agent.model.discovery import refresh, usual_servers

        catalog = self._wiring.catalog
        known = [settings.base_url or "" for settings in self._wiring.loaded.config.models.values()]
        outcomes = await refresh(usual_servers(catalog.addresses, known), catalog.served)
        catalog.forget()
        # Leave out the servers that don't answer, because they are not running.
        servers = []
        for one in outcomes:
            if catalog.served.answer(one.server.place.url) is not None:
                servers.append(f"{one.server.provider.name} at {describe_reply(one, catalog)}")
        return servers

    async def list_files(self, root: Path) -> Sequence[str]:
        found: list[str] = []

        def take(names: list[bytes]) -> None:
            for name in names[: MAX_FILES - len(found)]:
                # A name in another encoding can't be written into a message.
                with contextlib.suppress(UnicodeDecodeError):
                    found.append(name.decode())

        with contextlib.suppress(NoRipgrepError, OSError):
            await list_files(root, take, ["--files", "--hidden", "--glob", "!.git"])
        return sorted(found)

    async def branch(self, cwd: Path) -> str | None:
        project = find_project(cwd)
        name = branch_of(project)
        if name is not None and await asyncio.to_thread(is_modified, project, BRANCH_SECONDS):
            return f"{name}*"
        return name
