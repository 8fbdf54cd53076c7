"""Describes in words what an MCP server's settings do, for questions about trust."""

from collections.abc import Mapping
from typing import Any

from tui_agent.json_text import as_list


def effect_of_server(row: Mapping[str, Any]) -> str:
    """Return a phrase that tells the user what an MCP server does.

    The phrase is ``connects to URL``, or ``runs COMMAND`` with arguments. For an entry with neither
    a URL nor a command, it says which settings the entry changes on the user's server of the same
    name.
    """
    if url := row.get("url"):
        return f"connects to {url}"
    if not row.get("command"):
        return f"sets {', '.join(map(str, row))} of your server with this name"
    where = f" in {row['cwd']}" if row.get("cwd") else ""
    return f"runs {' '.join(map(str, [row['command'], *as_list(row.get('args'))]))}{where}"
