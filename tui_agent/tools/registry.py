"""Lists the built-in tools in their fixed order, and finds a tool by the name in a call."""

import difflib
from collections.abc import Callable, Collection, Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from tui_agent.errors import ToolError
from tui_agent.session.tool_traits import TraitsByName
from tui_agent.tools.base import Tool, ToolInput, plain_name

OFFERED = (
    "read",
    "edit",
    "write",
    "bash",
    "grep",
    "glob",
    "ls",
    "recall",
    "webfetch",
    "websearch",
    "todo",
    "job",
    "remember",
    "ask",
)
"""Names of the built-in tools of every session, each of which is in a module of the same name.

The tools have a fixed order, because a change of the order would break the prompt cache.
``websearch`` is offered only if a service is configured or the model's provider can search. A
module ``NAME_tool.py`` in this package adds a tool after these, in alphabetical order.
"""

_MODULES = dict.fromkeys(OFFERED, "") | {
    path.stem.removesuffix("_tool"): "_tool"
    for path in sorted(Path(__file__).parent.glob("*_tool.py"))
}
"""For each tool, what is added to its name to get the name of its module, which is "_tool" or
nothing."""

_CLOSE = 0.7
"""Minimum similarity, from 0 to 1, between an unknown tool name and a name suggested instead of it.
"""

BUILTIN = (*_MODULES, "code", "skill", "task")
"""Names of all built-in tools. The last three tools are created elsewhere, because they need the
project, the skills or the agents."""


@cache
def tool_traits() -> TraitsByName:
    """Return the traits of the built-in tools by name. Imports their modules."""
    return TraitsByName({name: _class_of(name).traits for name in BUILTIN})


def _class_of(name: str) -> type[Tool[Any]]:
    module = import_module(f"tui_agent.tools.{name}{_MODULES.get(name, '')}")
    for thing in vars(module).values():
        if isinstance(thing, type) and issubclass(thing, Tool) and vars(thing).get("name") == name:
            return thing
    raise LookupError(f"{module.__name__} has no tool {name}")


def builtin_inputs() -> tuple[type[ToolInput], ...]:
    """Return the input models of the built-in tools."""
    return tuple(_class_of(name).Input for name in BUILTIN)


def builtin_tools(*set_up: Tool[Any]) -> tuple[Tool[Any], ...]:
    """Return the built-in tools that every session has, in their fixed order.

    A tool in ``set_up`` replaces the tool with the same name, or is ignored if there is none.
    """
    by_name = {tool.name: tool for tool in set_up}
    return tuple(by_name.get(name) or _class_of(name)() for name in _MODULES)


def builtin_named(name: str) -> str:
    """Return the name of the built-in tool that is called ``name`` here or in other programs.

    For example, the result for ``TodoWrite`` is "todo". Case, hyphens and underscores are ignored.
    Returns "" if there is no such tool.
    """
    plain = name.strip().lower()
    squeezed = plain_name(plain)
    for known in (plain, squeezed):
        if known in BUILTIN:
            return known
    for known, traits in tool_traits().items():
        if squeezed in traits.other_names.split():
            return known
    return ""


def find_tool(
    name: str,
    tools: Iterable[Tool[Any]],
    offered: Callable[[], Collection[str]] | None = None,
) -> Tool[Any]:
    """Return the tool that a call names, by its name or another program's name for it.

    A prefix such as ``functions.`` is ignored, and so is the case of letters. ``offered`` returns
    the names of the tools that the model was offered; None means all.

    Raises:
        ToolError: there is no such tool; the message lists the offered tools.
    """
    by_name = {tool.name: tool for tool in tools}
    plain = name.strip().rsplit(".", 1)[-1].rsplit(":", 1)[-1].lower()
    if name in by_name or plain in by_name:
        return by_name.get(name) or by_name[plain]
    same = builtin_named(plain)
    # Another program's name is not used if it could be a short form of an MCP tool's name.
    if same in by_name and not any(known.endswith(plain) for known in by_name):
        return by_name[same]
    shown = list(by_name)
    if offered is not None:
        names = offered()
        shown = [known for known in by_name if known in names]
    near = difflib.get_close_matches(plain, shown, n=2, cutoff=_CLOSE)
    meant = ""
    if near:
        meant = f" Did you mean {' or '.join(near)}?"
    listed = f" Tools: {', '.join(shown)}." if shown else ""
    raise ToolError(f"There is no tool {name!r}.{meant}{listed}")
