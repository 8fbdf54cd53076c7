"""The effect of an MCP server's settings in words."""

from collections.abc import Mapping
from typing import Any

from tui_agent.json_text import as_list


def effect_of_server(row: Mapping[str, Any]) -> str:
    """Return what a server connects to or runs, for a question to the user: ``runs npx …``."""
    if url := row.get("url"):
        return f"connects to {url}"
    return f"runs {' '.join(map(str, [row.get('command', ''), *as_list(row.get('args'))]))}"
