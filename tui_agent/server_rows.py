"""Describes an MCP server's settings in words, for questions about trust."""

from collections.abc import Mapping
from typing import Any

from tui_agent.json_text import as_list


def effect_of_server(row: Mapping[str, Any]) -> str:
    """Describe what a server does for the user: ``connects to URL``, or ``runs COMMAND`` with its arguments."""
    if url := row.get("url"):
        return f"connects to {url}"
    return f"runs {' '.join(map(str, [row.get('command', ''), *as_list(row.get('args'))]))}"
