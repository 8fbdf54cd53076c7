"""Builds the agent of a session, and the settings that a running agent adopts after a change.

Decides which model, effort, mode, rules, tools and servers a session has, from the arguments, the
settings, other programs' files and trust. `Wiring` owns what several sessions share.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from tui_agent.agent.agent import Agent
from tui_agent.agent.assembly import find_tool_files, make_ports, web_tools
from tui_agent.agent.checkpoints.recorder import SnapshotStore
from tui_agent.agent.clients import NO_MODEL
from tui_agent.agent.hooks.hooks import Hooks
from tui_agent.agent.knowledge.knowledge import Knowledge, Sources
from tui_agent.agent.mcp.hub import McpHub
from tui_agent.agent.permissions import Action, Rule, rules_from_table
from tui_agent.agent.ports import Adjustable, AgentPorts
from tui_agent.agent.programs.found import ForeignSettings
from tui_agent.agent.programs.settings import read_programs
from tui_agent.cli.extensions import folders_of, folders_without_plugins
from tui_agent.cli.kept_rules import keep_rule
from tui_agent.context.view import resolve
from tui_agent.files.memory import Memory
from tui_agent.files.own_git import find_project
from tui_agent.model.demo import DEMO_MODEL
from tui_agent.model.protocol import ModelError
from tui_agent.path_checks import is_directory, real_path
from tui_agent.paths import cache_dir, data_dir, log_dir
from tui_agent.places import SKILL_FILE
from tui_agent.processes.environment import SafeEnvironment
from tui_agent.resources import prompt
from tui_agent.safe_text import one_line
from tui_agent.session.effort import Effort
from tui_agent.session.entries import EffortChangeEntry
from tui_agent.tools.functions.add_ons import AddOns
from tui_agent.tools.functions.tool_files import FoundFile, ToolFiles, installed_add_ons
from tui_agent.trust import TrustItem
from tui_agent.whole_numbers import plural

if TYPE_CHECKING:
    from tui_agent.agent.mcp.settings import McpServerSettings
    from tui_agent.cli.wiring import Wiring
    from tui_agent.session.session import Session

MAX_NAMES = 5
"""Maximum number of names of each kind in the notice about a project that is not trusted."""
MAX_NAME_CHARS = 60
"""Maximum length, in characters, of each of these names."""


def make_agent(
    wiring: "Wiring", session: "Session", servers: "Mapping[str, McpServerSettings] | None" = None
) -> Agent:
    """Return an agent for a session. Its model, effort and mode are those that the arguments name.

    Without an argument, the agent uses the session's own value or, if that has none, the one in the
    settings. The agent works in the session's directory if that still exists, otherwise in the
    program's. If the session recorded another model, effort or mode, appends the change to the
    session, unless that is read-only. ``servers`` are MCP servers for this session in addition to
    the configured ones.
    """
    cwd = wiring.cwd
    recorded = Path(session.info.cwd)
    if recorded.is_absolute() and is_directory(recorded):
        cwd = recorded
    foreign = _foreign(wiring, cwd)
    ports = _ports(wiring, cwd, foreign, servers)
    ports.adopt(_adjustable(wiring, ports, foreign))
    mode = wiring.arguments.mode or wiring.loaded.config.mode
    effort = _wanted_effort(wiring)
    if session.read_only:
        return Agent(session, ports, model=_first_model(wiring, cwd), mode=mode, effort=effort)
    if effort is not None:
        # The agent appends the effort itself if the session path has none yet.
        named = resolve(session.active_path()).effort
        if named is not None and named.effort is not effort:
            session.append(EffortChangeEntry(effort=effort))
    agent = Agent(session, ports, model=_first_model(wiring, cwd), mode=mode, effort=effort)
    if wiring.arguments.mode:
        agent.change_mode(wiring.arguments.mode)
    if not _is_demo(cwd):
        _choose_model(wiring, agent)
    return agent


def adjustable(wiring: "Wiring", ports: AgentPorts) -> Adjustable:
    """Return the current settings, rules and sandbox for the agent that has these ``ports``."""
    return _adjustable(wiring, ports, _foreign(wiring, ports.cwd))


def _adjustable(wiring: "Wiring", ports: AgentPorts, foreign: ForeignSettings) -> Adjustable:
    config = wiring.loaded.config
    sandbox = ports.sandbox
    if sandbox is None or sandbox.settings != config.sandbox:
        sandbox = wiring.sandbox(ports.project)
    proposes_memory = config.memory.propose == "always"
    if config.memory.propose == "attended":
        proposes_memory = not wiring.headless
    return Adjustable(
        settings=config.context,
        retry=config.retry,
        rules=_rules(wiring, ports.cwd, foreign),
        max_steps=config.max_steps,
        budget=config.run_budget,
        diagnostics=config.diagnostics,
        parallel_calls=config.parallel_calls,
        small_model=config.small_model,
        proposes_memory=proposes_memory,
        fallback_models=config.fallback_models,
        sandbox=sandbox,
        preset_effort=config.preset_effort,
    )


# -- model and effort


def _first_model(wiring: "Wiring", cwd: Path) -> str:
    """Return the model for a session that has not used one yet."""
    if _is_demo(cwd):
        return DEMO_MODEL
    return wiring.default_model()


def _wanted_effort(wiring: "Wiring") -> Effort | None:
    if wiring.arguments.effort:
        return Effort(wiring.arguments.effort)
    if wiring.chosen is not None:
        return wiring.chosen.effort
    return None


def _choose_model(wiring: "Wiring", agent: Agent) -> None:
    """Switch the agent to the model in the arguments or, if its own can't be used, to another one.

    In the second case, sets ``wiring.notice``.
    """
    if wiring.chosen is not None and wiring.chosen.model is not None:
        agent.change_model(wiring.chosen.model)
    wanted = wiring.arguments.model
    if wanted and agent.model != wanted:
        agent.change_model(wanted)
        return
    usable = _usable_model(wiring, agent.model)
    if usable != agent.model:
        wiring.notice = f"{agent.model} can't be used here; the session continues with {usable}."
        agent.change_model(usable)


def _usable_model(wiring: "Wiring", model: str) -> str:
    """Return ``model``, or the default model if only that can be used.

    A model can't be used if its provider is unknown or has no API key, for example in a
    session imported from another program.
    """
    candidates = (model, wiring.default_model())
    if DEMO_MODEL in candidates or NO_MODEL in candidates:
        return model
    for one in candidates:
        with suppress(ModelError):
            wiring.router.route(one)
            return one
    return model


# -- the parts


def _is_demo(cwd: Path) -> bool:
    return cwd.is_relative_to(data_dir() / "demo")


def _ports(
    wiring: "Wiring",
    cwd: Path,
    foreign: ForeignSettings,
    servers: "Mapping[str, McpServerSettings] | None",
) -> AgentPorts:
    config = wiring.loaded.config
    extensions = wiring.extensions
    project = find_project(cwd)
    memory = Memory(data_dir() / "memory", project)
    if _is_demo(cwd):
        tool_files = ToolFiles()
        hub = McpHub()
        hooks = Hooks()
        news = None
    else:
        tool_files = _tool_files(wiring, cwd)
        hub = extensions.hub(cwd, servers)
        hooks = Hooks(partial(extensions.load_hooks, cwd))
        news = partial(_held_back_news, wiring, cwd) if wiring.headless else _news(cwd)
    sources = Sources(
        folders_of(cwd, config),
        (*config.instructions, *foreign.instructions),
        config.memory.tokens,
        config.instructions_order,
        memory,
    )
    return make_ports(
        wiring.models,
        wiring.store,
        cwd,
        prompt,
        knowledge=Knowledge(sources, prompt=prompt, trusted=partial(wiring.trusts, cwd), news=news),
        web=web_tools(config.webfetch.reaching(config.sandbox.hosts), config.websearch, os.environ),
        code=config.code,
        environment=SafeEnvironment(
            {**os.environ, **foreign.environment}, config.sandbox.env, config.sandbox.mask
        ),
        titles=not wiring.headless,
        memory=memory,
        tool_files=tool_files,
        mcp=hub,
        hooks=hooks,
        copies=cache_dir() / "races",
        checkpoints=_snapshot_store(wiring, project),
        keep_here=partial(keep_rule, project=project),
    )


def _rules(wiring: "Wiring", cwd: Path, foreign: ForeignSettings) -> tuple[Rule, ...]:
    """Return the permission rules for the directory ``cwd``, lowest precedence first.

    If ``cwd`` is in a different project from the program's, the rules of the program's project are
    left out.
    """
    project = find_project(cwd)
    is_here = project == find_project(wiring.cwd)
    rules = [Rule("task", "*", Action.ALLOW), *foreign.rules]
    rules += [rule for rule in wiring.user_rules if is_here or rule.source != "project"]
    own = wiring.loaded.config.projects.get(str(real_path(project)))
    if own is not None:
        rules += rules_from_table(own.permissions, "here")
    return (*rules, *wiring.flag_rules)


def _news(cwd: Path) -> Callable[[Knowledge], str] | None:
    from tui_agent.cli.adopt import notice_maker

    return notice_maker(cwd)


def _held_back_news(wiring: "Wiring", cwd: Path, _knowledge: Knowledge) -> str:
    """Return a notice about everything that an untrusted project can't use; "" if nothing."""
    state = wiring.project_state
    if find_project(cwd) != find_project(wiring.cwd):
        state = wiring.trust_of(cwd)
    if not state.is_held_back:
        return ""
    why = state.problem or "you have not trusted the project (--trust does so for one run)"
    return f"Not used, because {why}: {', '.join(_counted(state.items))}."


def _counted(items: Iterable[TrustItem]) -> Iterator[str]:
    """Yield the number and names of a project's items, for one kind of item after another."""
    kinds: dict[str, list[str]] = {}
    for item in items:
        kinds.setdefault(item.kind, []).append(one_line(_short_name(item), MAX_NAME_CHARS))
    for kind, names in kinds.items():
        noun, space, rest = kind.partition(" from ")
        more = ", …" if len(names) > MAX_NAMES else ""
        yield f"{plural(len(names), noun)}{space}{rest} ({', '.join(names[:MAX_NAMES])}{more})"


def _short_name(item: TrustItem) -> str:
    """Return the name by which the user knows an item of a project."""
    match item.kind:
        case "hook" if item.name == "hooks":
            return item.text
        case "import from outside":
            return item.text
        case "permission rule":
            return item.name.removeprefix("permissions.")
        case "command" | "agent" | "skill" | "tool":
            path = PurePath(item.name)
            return path.parent.name if path.name == SKILL_FILE else path.stem
        case _:
            return item.name


def _foreign(wiring: "Wiring", cwd: Path) -> ForeignSettings:
    """Return other programs' settings that apply in a directory; empty for the demo's directory."""
    if _is_demo(cwd):
        return ForeignSettings()
    folders = folders_without_plugins(cwd, wiring.loaded.config)
    return read_programs(folders, trusted=wiring.trusts(cwd))


def _tool_files(wiring: "Wiring", cwd: Path) -> ToolFiles:
    """Return the tools of a directory's tool files and of add-ons; they are read on first use.

    Until the project is trusted, its tools are left out, and the list of problems says why.
    """
    folders = folders_without_plugins(cwd, wiring.loaded.config)

    def find() -> tuple[list[FoundFile], list[str]]:
        users, problems = find_tool_files(folders, trusted=False)
        found = find_tool_files(folders, trusted=True)
        if found == (users, problems):
            return found
        state = wiring.trust_of(cwd)
        if state.trusted:
            return found
        if state.is_held_back and len(found[0]) > len(users):
            why = state.problem or "you have not trusted the project (--trust does so for one run)"
            problems.append(f"This project's tools are not loaded: {why}.")
        return users, problems

    def find_add_ons() -> AddOns:
        return installed_add_ons(wiring.loaded.config.add_ons.leave_out)

    return ToolFiles(find, find_add_ons)


def _snapshot_store(wiring: "Wiring", project: Path) -> SnapshotStore | None:
    """Return the store for snapshots of files; None if checkpoints are switched off."""
    store = wiring.store
    if not wiring.loaded.config.checkpoints.enabled:
        return None
    # Take no snapshots of the program's own directories, except one that contains the demo's
    # project.
    own = []
    for place in map(real_path, (data_dir(), log_dir(), cache_dir())):
        if not real_path(project).is_relative_to(place):
            own.append(place)
    return SnapshotStore(
        store.put_blob,
        store.blob,
        lambda: store.trim_file_images(wiring.loaded.config.checkpoints.megabytes * 1_000_000),
        tuple(own),
    )
