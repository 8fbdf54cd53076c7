"""Builds an agent's access to models and its other ports, for the program and for the library.

Also builds the web tools, finds tool files, and claims a session (`hold_and_recover`). ``cli``
reads the settings and chooses what goes in; nothing is started here.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tui_agent.agent.agent_specs import builtin_specs
from tui_agent.agent.clients import RoutedClient
from tui_agent.agent.knowledge.folders import Folders, TrustGate
from tui_agent.agent.knowledge.knowledge import Knowledge
from tui_agent.agent.ports import AgentPorts
from tui_agent.agent.run_budget import BudgetMeter
from tui_agent.context.templates import Templates
from tui_agent.files.own_git import find_project
from tui_agent.lazy import frozen
from tui_agent.model.client import ProviderClient
from tui_agent.model.demo import DEMO_MODEL, DemoCatalog, DemoClient
from tui_agent.model.directory import CatalogDirectory
from tui_agent.model.learnt import LearntFacts
from tui_agent.model.logins import Logins
from tui_agent.model.route import Router
from tui_agent.model.settings import HostSettings, ModelSettings, ProviderSettings
from tui_agent.session.session import Session
from tui_agent.session.store import Store
from tui_agent.tools.base import Tool
from tui_agent.tools.code import CodeTool
from tui_agent.tools.functions.tool_files import FoundFile
from tui_agent.tools.language_servers.settings import CodeSettings
from tui_agent.tools.registry import builtin_tools
from tui_agent.tools.skill import SkillTool
from tui_agent.tools.task import TaskTool
from tui_agent.tools.webfetch import WebFetchTool
from tui_agent.tools.websearch import WebSearchTool
from tui_agent.web.fetching import WebClient
from tui_agent.web.searching import BY_MODEL, advice, find_service
from tui_agent.web.settings import FetchSettings, SearchSettings


@frozen
class ModelSources:
    """Where facts about models, and the models' addresses and API keys, come from.

    ``environ`` is the environment, whose variables may hold API keys. ``models`` and ``providers``
    are the settings of models and providers, by name. ``learnt`` is the file of facts learnt about
    models; None to keep these facts in memory only.
    """

    catalog: DemoCatalog
    environ: Mapping[str, str]
    models: Mapping[str, ModelSettings]
    providers: Mapping[str, ProviderSettings]
    logins: Logins | None = None
    learnt: Path | None = None


class Models:
    """The program's access to models: facts about them, addresses, API keys, and the client."""

    def __init__(
        self,
        sources: ModelSources,
        prompt: Callable[[str], str],
        *,
        host: HostSettings | None = None,
        log_path: Path | None = None,
        demo: DemoClient | None = None,
    ) -> None:
        self.catalog = sources.catalog
        self.router = Router(
            self.catalog,
            sources.environ,
            models=sources.models,
            providers=sources.providers,
            logins=sources.logins,
        )
        learnt = LearntFacts(sources.learnt)
        self.directory = CatalogDirectory(
            self.catalog,
            learnt,
            Templates.load(prompt),
            wire_of=self.router.wire,
            keys=lambda: self.router.keys,
        )
        self.providers = ProviderClient(
            self.router,
            learnt,
            host=host,
            log_path=log_path,
            prompt=prompt,
        )
        self.client = RoutedClient(self.providers, demo or DemoClient())

    def has_price(self, model: str) -> bool:
        return model == DEMO_MODEL or bool(self.catalog.info(model).prices)


def make_ports(  # noqa: PLR0913 - what an agent is made of
    models: Models,
    store: Store,
    cwd: Path,
    prompt: Callable[[str], str],
    *,
    knowledge: Knowledge | None = None,
    web: Sequence[Tool[Any]] = (),
    code: CodeSettings | None = None,
    **more: Any,
) -> AgentPorts:
    """Return the ports, that is, everything besides the session that an agent in ``cwd`` needs.

    ``prompt`` returns the text of a prompt by its name. ``web`` are web tools to add to the
    built-in ones; ``more`` are further fields of `AgentPorts`.
    """
    knowledge = knowledge or Knowledge()
    project = find_project(cwd)

    def has_sandbox() -> bool:
        return ports.sandbox is not None and ports.sandbox.active

    ports = AgentPorts(
        client=models.client,
        tools=(
            *builtin_tools(*web),
            CodeTool(project, code or CodeSettings.model_construct(), has_sandbox),
            TaskTool(),
            SkillTool(lambda: knowledge.skills, lambda: bool(knowledge.offers_skills)),
        ),
        directory=models.directory,
        prompt=prompt,
        cwd=cwd,
        project=project,
        put_blob=store.put_blob,
        blob=store.blob,
        knowledge=knowledge,
        agents=builtin_specs(prompt),
        meter=BudgetMeter(models.has_price),
        **more,
    )
    return ports


def web_tools(
    fetch: FetchSettings, search: SearchSettings, environ: Mapping[str, str]
) -> tuple[Tool[Any], ...]:
    """Return the tools webfetch and websearch; ``environ`` may hold a search service's API key."""
    return (
        WebFetchTool(WebClient(fetch)),
        WebSearchTool(
            find_service(search, environ, fetch),
            advice(search),
            by_model=search.service in BY_MODEL,
        ),
    )


def find_tool_files(folders: Folders, *, trusted: bool) -> tuple[list[FoundFile], list[str]]:
    """Return the user's tool files, then those of the project if it is ``trusted``.

    The second value has a sentence for each problem with the project's folders.
    """
    problems: list[str] = []
    places = (*folders.user_folders("tools"), *folders.project_folders("tools", problems))
    rows = [(path, place) for place in places for path in sorted(place.path.glob("[!_]*.py"))]
    found: list[FoundFile] = []
    for path, place in TrustGate(lambda: trusted).admitted(rows):
        inside = folders.project if place.of_project else None
        found.append(FoundFile(path, folders.name(path), inside))
    return found, problems


def hold_and_recover(session: Session, *, take_over: bool = False) -> Session:
    """Claim a session for this program and return it; drafts left by a crash are stored as answers.

    Raises SessionHeld if another program has it open and ``take_over`` is not set.
    """
    session.hold(take_over=take_over)
    session.recover()
    return session
