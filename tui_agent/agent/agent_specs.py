"""Kinds of agents: the built-in ones, and the user's in Markdown files with front matter.

A primary one takes the place of the main agent (``/agent NAME``); a subagent is given a task and
answers once.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, cast, get_args

from tui_agent.agent.knowledge.documents import Document, DocumentError, FileCache, load_all
from tui_agent.agent.knowledge.folders import Folder, Folders
from tui_agent.agent.permissions import Action, Mode, Rule, RuleError, Source, rules_from_table
from tui_agent.agent.programs.codex import codex_agent
from tui_agent.agent.programs.opencode import by_permission, inline_documents
from tui_agent.agent.programs.tool_rules import ToolList, allowed_tools, denied_tools, split_list
from tui_agent.lazy import frozen
from tui_agent.permission import Permission
from tui_agent.places import Kind
from tui_agent.session.effort import Effort
from tui_agent.tools.base import Tool
from tui_agent.tools.registry import tool_traits
from tui_agent.tools.skill import Skill

FILE_BYTES = 64 * 1024

AgentMode = Literal["primary", "subagent", "all"]

_FIELDS = frozenset(
    [
        "name",
        "description",
        "mode",
        "prompt",
        "model",
        "effort",
        "tools",
        "disallowedTools",
        "permissions",
        "permission",
        "max-steps",
        "steps",
        "maxTurns",
        "disable",
        "color",
        "skills",
        "permissionMode",
    ]
)
"""Fields of an agent's file that act, or that nobody misses."""
_STYLE_FIELDS = frozenset({"name", "description", "keep-coding-instructions"})


@frozen
class AgentSpec:
    """One kind of agent.

    ``prompt`` replaces the agent prompt, None keeps it. ``model`` and ``effort`` None are the
    conversation's. ``tools`` are names or globs, None is every tool; those in ``without`` are never
    had. ``rules`` come after the user's own; a project's agent can only deny. ``max_steps`` None is
    the setting's.
    """

    name: str
    description: str
    mode: AgentMode = "subagent"
    prompt: str | None = None
    model: str | None = None
    effort: Effort | None = None
    tools: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    max_steps: int | None = None
    origin: str = ""
    """Where its file is, "" for a built-in one."""
    file: str = ""
    """Its file, as it is named."""
    plans_only: bool = False
    """Whether it works in plan mode, in which nothing is changed, whatever the session's mode."""
    unused: tuple[str, ...] = ()
    """Fields of its file that have no effect here."""
    is_style: bool = False
    """Whether it is an output style: the main agent, told to answer in another way."""

    @property
    def primary(self) -> bool:
        return self.mode in {"primary", "all"}

    @property
    def subagent(self) -> bool:
        return self.mode in {"subagent", "all"}

    def allows(self, tool: str) -> bool:
        if any(fnmatchcase(tool, pattern) for pattern in self.without):
            return False
        return self.tools is None or any(fnmatchcase(tool, pattern) for pattern in self.tools)

    def choose(self, tools: Iterable[Tool[Any]]) -> tuple[Tool[Any], ...]:
        return tuple(tool for tool in tools if self.allows(tool.name))


def builtin_specs(prompt: Callable[[str], str]) -> tuple[AgentSpec, ...]:
    """Return ``general`` and ``explore``; ``prompt`` gives the texts of ``prompts/``."""
    return (
        AgentSpec(
            "general",
            "does a task of several steps on its own, with every tool",
            prompt=prompt("agent_general"),
        ),
        AgentSpec(
            "explore",
            "finds and reads code and answers questions about it; changes nothing",
            prompt=prompt("agent_explore"),
            tools=tuple(name for name, traits in tool_traits().items() if traits.explores),
        ),
    )


def load_specs(
    folders: Folders,
    prompt: Callable[[str], str],
    files: FileCache | None = None,
    problems: list[str] | None = None,
    *,
    trusted: Callable[[], bool] = lambda: True,
    skills: Mapping[str, Skill] = MappingProxyType({}),
) -> tuple[AgentSpec, ...]:
    """Return the built-in agents and those of the user's and the project's ``agents`` folders, by name.

    A file of the same name replaces a built-in one; of two the user's own wins. The project's are
    left out while it is not ``trusted``. ``skills`` are those that an agent may have in its prompt.
    Unusable files are left out and reported in ``problems``.
    """
    files = files or FileCache(folders.project)
    problems = [] if problems is None else problems
    is_trusted = trusted()
    inline = inline_documents(folders, "agent")
    styles = _found(folders, "output-styles", problems)
    agents = _found(folders, "agents", problems)
    rows = [(path, row.folder) for path, row in inline.items()]
    rows += (*styles.items(), *agents.items())
    acting = [row for row in rows if is_trusted or not row[1].of_project]

    def make(path: Path, folder: Folder) -> AgentSpec | None:
        row = inline.get(path)
        document = _document(path, files) if row is None else row.document
        if document is None:
            return None
        if path in styles:
            spec: AgentSpec | None = _style(path, document, folder, prompt)
        else:
            spec = _spec(path.name if row else path.stem, document, folder, problems)
        if spec is None:
            return None
        spec = replace(spec, file=folder.shown_file(path))
        return _with_skills(spec, document, skills, problems)

    # Of two with one name the last counts: the user's own.
    own = load_all("Agent", make, sorted(acting, key=_is_users), problems)
    return tuple({spec.name: spec for spec in (*builtin_specs(prompt), *own)}.values())


def _is_users(row: tuple[Path, Folder]) -> bool:
    return not row[1].of_project


def _found(folders: Folders, kind: Kind, problems: list[str]) -> dict[Path, Folder]:
    """Return the files of a kind, weak to strong."""
    places = (*folders.of_user(kind), *folders.of_project(kind, problems))
    return {
        path: place
        for place in reversed(places)
        for path in place.files("*.toml" if place.whose == "Codex" else "*.md")
    }


def _document(path: Path, files: FileCache) -> Document | None:
    if path.suffix == ".toml":
        file = files.read(path, FILE_BYTES)
        return None if file is None else codex_agent(file.text)
    found = files.document(path, FILE_BYTES)
    return None if found is None else found[0]


def _style(
    path: Path, document: Document, folder: Folder, prompt: Callable[[str], str]
) -> AgentSpec:
    """Return an output style; its text takes the place of the program's own unless it keeps that."""
    keeps = document.text("keep-coding-instructions").lower() == "true"
    texts = [prompt("system"), document.body] if keeps else [document.body]
    return AgentSpec(
        name=f"{folder.prefix}{_checked((document.text('name') or path.stem).lower())}",
        description=document.text("description") or "an output style",
        mode="primary",
        prompt="\n\n".join(filter(None, texts)) or None,
        origin=folder.origin,
        unused=document.unused(_STYLE_FIELDS),
        is_style=True,
    )


def _checked(name: str) -> str:
    """Return an agent's name, hyphens for its blanks; raises DocumentError where it can't be one."""
    name = "-".join(name.split())
    if not name.replace("-", "").replace("_", "").isalnum() or name in set(Mode):
        raise DocumentError(f"“{name}” cannot be an agent's name")
    return name


def _spec(stem: str, document: Document, folder: Folder, problems: list[str]) -> AgentSpec | None:
    if document.text("disable").lower() == "true":
        return None
    name = _checked(document.text("name") or stem.lower())
    description = document.text("description")
    if not description:
        raise DocumentError("the front matter has no description; it says what the agent is for")
    mode = document.text("mode") or ("all" if folder.whose == "OpenCode" else "subagent")
    if mode not in get_args(AgentMode):
        raise DocumentError(f"mode “{mode}” is none of {', '.join(get_args(AgentMode))}")
    tools = _tools(document, folder)
    problems += (f"Agent {name}: {problem}." for problem in tools.problems)
    text = document.text("effort")
    try:
        effort = None
        if text:
            effort = Effort(text)
    except ValueError:
        raise DocumentError(f"effort “{text}” is none of {', '.join(Effort)}") from None
    steps = document.text("max-steps") or document.text("steps") or document.text("maxTurns")
    if steps and (not steps.isdigit() or int(steps) < 1):
        raise DocumentError(f"max-steps “{steps}” is not a number of steps")
    return AgentSpec(
        name=f"{folder.prefix}{name}",
        description=description,
        mode=cast("AgentMode", mode),
        prompt=document.body or None,
        model=document.model(folder.whose),
        effort=effort,
        tools=None if tools.wanted is None else tools.wanted.names,
        without=tools.without.names,
        rules=(*_rules(document, folder), *tools.rules),
        max_steps=int(steps) if steps else None,
        origin=folder.origin,
        plans_only=document.text("permissionMode") == "plan",
        unused=_unused(document, folder),
    )


def _with_skills(
    spec: AgentSpec, document: Document, skills: Mapping[str, Skill], problems: list[str]
) -> AgentSpec:
    """Return an agent with the skills that its file names at the end of its prompt."""
    named = split_list(document.fields.get("skills") or ())
    problems += (
        f"Agent {spec.name}: there is no skill {name}." for name in named if name not in skills
    )
    texts = [skills[name].text() for name in named if name in skills]
    if texts:
        return replace(spec, prompt="\n\n".join(filter(None, [spec.prompt, *texts])))
    return spec


@frozen
class _Tools:
    """The tools of an agent's file: ``wanted`` None is every tool."""

    wanted: ToolList | None
    without: ToolList

    @property
    def rules(self) -> tuple[Rule, ...]:
        limits = () if self.wanted is None else self.wanted.rules
        return (*limits, *self.without.rules)

    @property
    def problems(self) -> tuple[str, ...]:
        of_wanted = () if self.wanted is None else self.wanted.problems
        return (*of_wanted, *self.without.problems)


def _unused(document: Document, folder: Folder) -> tuple[str, ...]:
    """Return the fields that have no effect: unknown ones, and values that mean nothing here."""
    fields = list(document.unused(_FIELDS))
    model = document.text("model")
    if model not in {"", "inherit"} and document.model(folder.whose) is None:
        fields.append("model")
    if document.text("permissionMode") not in {"", "plan", "default"}:
        fields.append("permissionMode")
    return tuple(fields)


def _tools(document: Document, folder: Folder) -> _Tools:
    """Return the tools an agent may use.

    Other programs' tables of true and false, and denied tools, count.
    """
    source: Source = "project" if folder.of_project else "user"
    value = document.fields.get("tools")
    denied: object = document.fields.get("disallowedTools") or ()
    if isinstance(value, dict):
        denied = [str(name) for name, is_wanted in value.items() if is_wanted is False]
        value = [str(name) for name, is_wanted in value.items() if is_wanted is True] or None
    # An empty list, and one in which nothing is known, allow no tool.
    if value is None:
        wanted = None
    else:
        wanted = allowed_tools(value, source, own=not folder.whose)
    return _Tools(wanted, denied_tools(denied, source))


def _rules(document: Document, folder: Folder) -> tuple[Rule, ...]:
    value = document.fields.get(
        "permissions", document.fields.get("permission") if folder.whose else None
    )
    if value is None:
        return ()
    if not isinstance(value, dict):
        raise DocumentError(
            "permissions must be a table as in the configuration, for example “edit: deny”"
        )
    if folder.whose:
        value = by_permission(value)
    known = set(Permission) if folder.whose else value.keys()
    table: dict[str, str | dict[str, str]] = {
        str(key): {str(pattern): str(action) for pattern, action in item.items()}
        if isinstance(item, dict)
        else str(item)
        for key, item in value.items()
        if key in known
    }
    try:
        rules = rules_from_table(table, "project" if folder.of_project else "user")
    except RuleError as error:
        raise DocumentError(str(error).rstrip(".")) from None
    if folder.whose:
        # Another program's file may only restrict here: its denials hold, its permissions do not.
        return tuple(rule for rule in rules if rule.action is Action.DENY)
    if folder.of_project and any(rule.action is not Action.DENY for rule in rules):
        raise DocumentError("an agent that a project brings along can only deny")
    return rules
