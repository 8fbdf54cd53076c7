"""Defines kinds of agents: built-in ones, and those loaded from the user's and the project's files.

A primary agent replaces the main agent (``/agent NAME``); a subagent is given one task. Nothing is
run or switched here: `Agent.choose_agent` and ``subagents`` do that.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, cast, get_args

from tui_agent.agent.knowledge.documents import Document, DocumentError, FileCache, load_all
from tui_agent.agent.knowledge.folders import Folder, Folders, TrustGate
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
from tui_agent.whole_numbers import whole_number

FILE_BYTES = 64 * 1024
"""Maximum number of bytes to read from an agent's file."""

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
"""Fields of an agent's file that cause no warning: they are used or deliberately ignored."""
_STYLE_FIELDS = frozenset({"name", "description", "keep-coding-instructions"})


@frozen
class AgentSpec:
    """One kind of agent.

    ``mode`` says whether it is a primary agent, a subagent, or both. ``prompt`` replaces the
    program's system prompt; None keeps it. If ``model`` or ``effort`` is None, that of the
    conversation is used. ``tools`` are names or globs of the tools that the agent may use, None for
    all; ``without`` are tools that it must not use. ``rules`` are permission rules added after the
    user's rules; a project's agent has only rules that deny. ``max_steps`` is the maximum number of
    steps in a run, None for the default.
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
    """Folder of the agent's file, as shown to the user; "" for a built-in kind."""
    program: str = ""
    """The other program that the folder belongs to; "" for this program and built-in kinds."""
    file: str = ""
    """Path of the agent's file, as shown to the user; "" for a built-in kind."""
    plans_only: bool = False
    """Whether the agent always works in plan mode, in which nothing is changed."""
    unused: tuple[str, ...] = ()
    """Fields of the agent's file that have no effect in this program."""
    is_style: bool = False
    """Whether this is an output style, that is, the main agent with other instructions."""

    @property
    def primary(self) -> bool:
        """Whether an agent of this kind can replace the main agent."""
        return self.mode in {"primary", "all"}

    @property
    def subagent(self) -> bool:
        """Whether an agent of this kind can be given a task as a subagent."""
        return self.mode in {"subagent", "all"}

    def allows(self, tool: str) -> bool:
        if _is_named(tool, self.without):
            return False
        return self.tools is None or _is_named(tool, self.tools)

    def choose(self, tools: Iterable[Tool[Any]]) -> tuple[Tool[Any], ...]:
        return tuple(tool for tool in tools if self.allows(tool.name))


def builtin_specs(prompt: Callable[[str], str]) -> tuple[AgentSpec, ...]:
    """Return the built-in kinds of subagents: ``general`` and ``explore``.

    ``prompt`` returns the text of a prompt by its name.
    """
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
    gate: TrustGate | None = None,
    skills: Mapping[str, Skill] = MappingProxyType({}),
) -> tuple[AgentSpec, ...]:
    """Return the built-in kinds of agents, and the agents and output styles defined in files.

    If several have the same name, the user's agent is used, else the project's, else the built-in
    one. ``gate`` decides whether the project's files are used; without a gate, they are. ``skills``
    are the skills, by name, whose texts an agent's file can add to the agent's prompt. Unusable
    files are left out; sentences about them are added to ``problems``.
    """
    files = files or FileCache(folders.project)
    problems = [] if problems is None else problems
    inline = inline_documents(folders, "agent")
    styles = _found(folders, "output-styles", problems)
    rows = [(path, row.folder) for path, row in inline.items()]
    rows += styles.items()
    rows += _found(folders, "agents", problems).items()
    if gate is not None:
        rows = gate.admitted(rows)

    def make(path: Path, folder: Folder) -> AgentSpec | None:
        name = path.stem
        if path in inline:
            name = path.name
            document: Document | None = inline[path].document
        else:
            document = _document(path, files)
        if document is None:
            return None
        if path in styles:
            spec = _style(name, document, folder, prompt)
        elif document.is_true("disable"):
            return None
        else:
            spec = _spec(name, document, folder, problems)
        spec = replace(spec, file=folder.shown_file(path))
        return _with_skills(spec, document, skills, problems)

    # Of two agents with the same name the last is used, so the user's come last.
    own = load_all("Agent", make, sorted(rows, key=_is_users), problems)
    return tuple({spec.name: spec for spec in (*builtin_specs(prompt), *own)}.values())


def _is_users(row: tuple[Path, Folder]) -> bool:
    return not row[1].of_project


def _found(folders: Folders, kind: Kind, problems: list[str]) -> dict[Path, Folder]:
    """Return the files of the given kind, such as "agents", each with its folder.

    Files later in the result take precedence.
    """
    places = (*folders.user_folders(kind), *folders.project_folders(kind, problems))
    found: dict[Path, Folder] = {}
    for place in reversed(places):
        pattern = "*.toml" if place.whose == "Codex" else "*.md"
        found |= dict.fromkeys(place.files(pattern), place)
    return found


def _document(path: Path, files: FileCache) -> Document | None:
    if path.suffix == ".toml":
        file = files.read(path, FILE_BYTES)
        return None if file is None else codex_agent(file.text)
    found = files.document(path, FILE_BYTES)
    return None if found is None else found[0]


def _style(
    stem: str, document: Document, folder: Folder, prompt: Callable[[str], str]
) -> AgentSpec:
    """Return the agent that represents an output style.

    The style's text replaces the program's system prompt or, with the field
    ``keep-coding-instructions``, is added to it.
    """
    text = document.body
    if document.is_true("keep-coding-instructions"):
        text = f"{prompt('system')}\n\n{text}".strip()
    return AgentSpec(
        name=f"{folder.prefix}{_checked((document.text('name') or stem).lower())}",
        description=document.text("description") or "an output style",
        mode="primary",
        prompt=text or None,
        origin=folder.origin,
        program=folder.whose,
        unused=document.unused(_STYLE_FIELDS),
        is_style=True,
    )


def _checked(name: str) -> str:
    """Return an agent's name with hyphens for spaces.

    Raises DocumentError if the name contains anything but letters, digits, hyphens and underscores,
    or is the name of a mode.
    """
    name = "-".join(name.split())
    if not name.replace("-", "").replace("_", "").isalnum() or name in set(Mode):
        raise DocumentError(
            f"“{name}” cannot be an agent's name: use letters, digits, hyphens and underscores, "
            "but not the name of a mode"
        )
    return name


def _spec(stem: str, document: Document, folder: Folder, problems: list[str]) -> AgentSpec:
    name = _checked(document.text("name") or stem.lower())
    description = document.text("description")
    if not description:
        raise DocumentError("the front matter needs a description of what the agent is for")
    mode = _mode(document, folder)
    wanted, without = _tools(document, folder)
    # Without a list of allowed tools, the agent may use every tool.
    lists = [without] if wanted is None else [wanted, without]
    rules = _rules(document, folder)
    for tools in lists:
        problems += [f"Agent {name}: {problem}." for problem in tools.problems]
        rules += tools.rules
    return AgentSpec(
        name=f"{folder.prefix}{name}",
        description=description,
        mode=mode,
        prompt=document.body or None,
        model=document.model(folder.whose),
        effort=_effort(document),
        tools=None if wanted is None else wanted.names,
        without=without.names,
        rules=rules,
        max_steps=_max_steps(document),
        origin=folder.origin,
        program=folder.whose,
        plans_only=document.text("permissionMode") == "plan",
        unused=_unused(document, folder),
    )


def _mode(document: Document, folder: Folder) -> AgentMode:
    usual = "all" if folder.whose == "OpenCode" else "subagent"
    mode = document.text("mode") or usual
    known = get_args(AgentMode)
    if mode not in known:
        raise DocumentError(f"mode “{mode}” is not one of {', '.join(known)}")
    return cast("AgentMode", mode)


def _effort(document: Document) -> Effort | None:
    text = document.text("effort")
    if not text:
        return None
    try:
        return Effort(text)
    except ValueError:
        raise DocumentError(f"effort “{text}” is not one of {', '.join(Effort)}") from None


def _max_steps(document: Document) -> int | None:
    text = document.text("max-steps") or document.text("steps") or document.text("maxTurns")
    if not text:
        return None
    steps = whole_number(text)
    if not steps:
        raise DocumentError(f"max-steps “{text}” is not a number of steps")
    return steps


def _with_skills(
    spec: AgentSpec, document: Document, skills: Mapping[str, Skill], problems: list[str]
) -> AgentSpec:
    """Return the agent with a prompt that ends with the texts of the skills that its file lists.

    Unknown names are added to ``problems``.
    """
    texts: list[str] = []
    for name in split_list(document.fields.get("skills") or ()):
        if name in skills:
            texts.append(skills[name].text())
        else:
            problems.append(f"Agent {spec.name}: there is no skill {name}.")
    if not texts:
        return spec
    if spec.prompt:
        texts.insert(0, spec.prompt)
    return replace(spec, prompt="\n\n".join(texts))


def _unused(document: Document, folder: Folder) -> tuple[str, ...]:
    """Return the fields without effect, which are unknown or have an unsupported value."""
    fields = list(document.unused(_FIELDS))
    model = document.text("model")
    if model not in {"", "inherit"} and document.model(folder.whose) is None:
        fields.append("model")
    if document.text("permissionMode") not in {"", "plan", "default"}:
        fields.append("permissionMode")
    return tuple(fields)


def _tools(document: Document, folder: Folder) -> tuple[ToolList | None, ToolList]:
    """Return the tools that an agent may use (None for all) and the tools that it must not use.

    Another program's file may have one table for both: a tool is true if allowed, false if not.
    """
    source = _source(folder)
    value = document.fields.get("tools")
    denied: object = document.fields.get("disallowedTools") or ()
    if isinstance(value, dict):
        denied = [str(name) for name, is_wanted in value.items() if is_wanted is False]
        value = [str(name) for name, is_wanted in value.items() if is_wanted is True] or None
    without = denied_tools(denied, source)
    if value is None:
        return None, without
    # A list that is empty or has only unknown names allows no tool.
    return allowed_tools(value, source, own=not folder.whose), without


def _source(folder: Folder) -> Source:
    return "project" if folder.of_project else "user"


def _is_named(tool: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(tool, pattern) for pattern in patterns)


def _rules(document: Document, folder: Folder) -> tuple[Rule, ...]:
    value = document.fields.get("permissions")
    if value is None and folder.whose:
        value = document.fields.get("permission")
    if value is None:
        return ()
    if not isinstance(value, dict):
        raise DocumentError(
            "permissions must be a table as in the configuration, for example “edit: deny”"
        )
    if folder.whose:
        value = by_permission(value)
        value = {name: value[name] for name in Permission if name in value}
    table: dict[str, str | dict[str, str]] = {}
    for key, item in value.items():
        if isinstance(item, dict):
            table[str(key)] = {str(pattern): str(action) for pattern, action in item.items()}
        else:
            table[str(key)] = str(item)
    try:
        rules = rules_from_table(table, _source(folder))
    except RuleError as error:
        raise DocumentError(str(error).rstrip(".")) from None
    if folder.whose:
        # From another program's file, use only the rules that deny, not those that allow.
        return tuple(rule for rule in rules if rule.action is Action.DENY)
    if folder.of_project and any(rule.action is not Action.DENY for rule in rules):
        raise DocumentError("the rules of a project's agent may only deny")
    return rules
