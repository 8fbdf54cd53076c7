"""The built-in tools in their fixed order, and how the name in a call becomes a tool."""

import difflib
from collections.abc import Iterable
from typing import Any

from tui_agent.tools.base import Tool
from tui_agent.tools.errors import ToolError
from tui_agent.tools.settings import FetchSettings

_OTHER_NAMES = {
    "read": "readfile openfile viewfile view cat open filereader",
    "edit": "editfile strreplace replace replaceinfile searchreplace searchandreplace multiedit applyedit",
    "write": "writefile writetofile createfile savefile",
    "bash": "shell sh terminal exec execute executebash executecommand run runbash runcommand runinterminal "
    "runshellcommand runterminalcmd runterminalcommand",
    "grep": "search searchfiles searchfilecontent grepsearch ripgrep rg searchcode",
    "glob": "find findfiles globsearch filesearch findfile",
    "ls": "list listdir listdirectory listfiles dir",
    "webfetch": "fetch fetchurl webget browse",
    "todo": "todowrite todos updateplan writetodos",
    "task": "agent subagent dispatchagent",
}
"""What other programs call such tools, without case, hyphens and underscores."""


def builtin_tools(fetch: FetchSettings | None = None) -> tuple[Tool[Any], ...]:
    """Return one of each tool; the order is part of every request's cached prefix."""
    from tui_agent.tools.bash import BashTool
    from tui_agent.tools.edit import EditTool
    from tui_agent.tools.fetching import Web
    from tui_agent.tools.glob import GlobTool
    from tui_agent.tools.grep import GrepTool
    from tui_agent.tools.job import JobTool
    from tui_agent.tools.ls import LsTool
    from tui_agent.tools.read import ReadTool
    from tui_agent.tools.recall import RecallTool
    from tui_agent.tools.todo import TodoTool
    from tui_agent.tools.webfetch import WebFetchTool
    from tui_agent.tools.write import WriteTool

    return (
        ReadTool(),
        EditTool(),
        WriteTool(),
        BashTool(),
        GrepTool(),
        GlobTool(),
        LsTool(),
        RecallTool(),
        WebFetchTool(Web(fetch or FetchSettings())),
        TodoTool(),
        JobTool(),
    )


def find_tool(name: str, tools: Iterable[Tool[Any]]) -> Tool[Any]:
    """Return the tool that a call names.

    Raises:
        ToolError: there is none; the message names those there are.
    """
    by_name = {tool.name: tool for tool in tools}
    plain = name.strip().rsplit(".", 1)[-1].rsplit(":", 1)[-1].lower()
    if name in by_name or plain in by_name:
        return by_name.get(name) or by_name[plain]
    same = _same_elsewhere(plain)
    # A server's tool may be meant that ends like that.
    if same in by_name and not any(known.endswith(plain) for known in by_name):
        return by_name[same]
    near = difflib.get_close_matches(plain, by_name, n=2, cutoff=0.5)
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    raise ToolError(f"There is no tool {name!r}.{meant} Tools: {', '.join(by_name)}.")


def _same_elsewhere(name: str) -> str:
    """Return the built-in tool that other programs call so, "" when there is none."""
    squeezed = name.replace("_", "").replace("-", "")
    return next((known for known, others in _OTHER_NAMES.items() if squeezed in others.split()), "")
