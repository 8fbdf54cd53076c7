"""Servers in the settings of other programs, in the terms of ours.

Every program writes the same few facts: a command with arguments and variables, or an address with headers. The keys
are those of Claude Code, Codex, OpenCode, Gemini CLI, VS Code and Cursor, as their documentation has them.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tui_agent.agent.mcp.settings import McpServerSettings
from tui_agent.lazy import dataclass
from tui_agent.safe_text import one_line

__all__ = ["ForeignServer", "find_foreign"]

_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', re.DOTALL)
_INPUT = re.compile(r"\$\{(?:input|prompt):([\w-]+)\}")
_VARIABLE = re.compile(r"\$\{env:([A-Za-z_]\w*)\}|\$([A-Za-z_]\w*)|\{env:([A-Za-z_]\w*)\}")
_MOST_BYTES = 20_000_000


@dataclass(frozen=True, slots=True)
class _Place:
    """A file of a program: below the home directory or the project, with the table of servers at a path of keys."""

    program: str
    base: str
    file: str
    keys: tuple[str, ...]


_PLACES = (
    _Place("Claude Code", "home", ".claude.json", ("mcpServers",)),
    _Place("Claude Code", "home", ".claude.json", ("projects", "{project}", "mcpServers")),
    _Place("Codex", "home", ".codex/config.toml", ("mcp_servers",)),
    _Place("Codex", "project", ".codex/config.toml", ("mcp_servers",)),
    _Place("OpenCode", "home", ".config/opencode/opencode.json", ("mcp",)),
    _Place("OpenCode", "home", ".config/opencode/opencode.jsonc", ("mcp",)),
    _Place("OpenCode", "project", "opencode.json", ("mcp",)),
    _Place("OpenCode", "project", "opencode.jsonc", ("mcp",)),
    _Place("Gemini CLI", "home", ".gemini/settings.json", ("mcpServers",)),
    _Place("Gemini CLI", "project", ".gemini/settings.json", ("mcpServers",)),
    _Place("VS Code", "home", ".config/Code/User/mcp.json", ("servers",)),
    _Place("VS Code", "home", "Library/Application Support/Code/User/mcp.json", ("servers",)),
    _Place("VS Code", "project", ".vscode/mcp.json", ("servers",)),
    _Place("Cursor", "home", ".cursor/mcp.json", ("mcpServers",)),
    _Place("Cursor", "project", ".cursor/mcp.json", ("mcpServers",)),
)
"""Where servers are looked for. A project's ``.mcp.json`` is not among them: it is used as it is."""


@dataclass(frozen=True, slots=True)
class ForeignServer:
    """A server another program is set up with. ``problem`` is why it can't be used here, or what is to be done yet."""

    name: str
    program: str
    path: Path
    settings: McpServerSettings | None
    problem: str = ""


def find_foreign(home: Path, project: Path) -> list[ForeignServer]:
    """Return the servers in other programs' settings, program by program; files that can't be read have none."""
    found: list[ForeignServer] = []
    for place in _PLACES:
        path = (home if place.base == "home" else project) / place.file
        table: Any = _read(path)
        for key in place.keys:
            table = table.get(key.format(project=project)) if isinstance(table, dict) else None
        if isinstance(table, dict):
            found += (_server(str(name), row, place.program, path, project) for name, row in table.items())
    return found


def _read(path: Path) -> object:
    try:
        if path.stat().st_size > _MOST_BYTES:
            return None
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix == ".toml":
            return tomllib.loads(text)
        plain = _COMMENT.sub(lambda match: match[1] or "", text)
        return json.loads(_TRAILING_COMMA.sub(lambda match: match[1] or "", plain))
    except (OSError, ValueError, RecursionError):
        return None


def _server(name: str, row: object, program: str, path: Path, project: Path) -> ForeignServer:
    def refused(why: str) -> ForeignServer:
        return ForeignServer(name, program, path, None, why)

    if not isinstance(row, dict):
        return refused("it is not a table of settings")
    settings, asked = _ours(row), set[str]()
    try:
        value = {key: _filled(item, project, asked) for key, item in settings.items() if item not in (None, [], {})}
        read = McpServerSettings.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        return refused(one_line(f"{'.'.join(map(str, first['loc']))} {first['msg']}".strip(), 200))
    told = f"set {', '.join(sorted(asked))} in the environment: {program} asks for it" if asked else ""
    return ForeignServer(name, program, path, read, told)


def _ours(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a program's settings of a server under our names."""
    command = row.get("command")
    words = list(command) if isinstance(command, list) else [command] if command else []
    url = row.get("url") or row.get("httpUrl") or row.get("serverUrl")
    kind = row.get("type")
    # Gemini CLI has SSE under url and streamable HTTP under httpUrl; all are found out anyway.
    seconds = row.get("tool_timeout_sec") or _milliseconds(row.get("timeout"))
    return {
        "command": words[0] if words else None,
        "args": [*words[1:], *_list(row.get("args"))],
        "env": {**_named(row.get("env_vars")), **_table(row.get("env") or row.get("environment"))},
        "url": None if words else url,
        "headers": _headers(row),
        "type": "sse" if kind == "sse" else None,
        "timeout": seconds,
        "enabled": row.get("enabled", True) is not False and row.get("disabled") is not True,
        "allow": row.get("enabled_tools") or row.get("includeTools"),
        "deny": row.get("disabled_tools") or row.get("excludeTools"),
    }


def _headers(row: Mapping[str, Any]) -> dict[str, Any]:
    headers = _table(row.get("headers") or row.get("http_headers"))
    of_environment = _table(row.get("env_http_headers"))
    headers |= {name: f"${{{variable}}}" for name, variable in of_environment.items()}
    if isinstance(variable := row.get("bearer_token_env_var"), str):
        headers["Authorization"] = f"Bearer ${{{variable}}}"
    return headers


def _milliseconds(value: object) -> float | None:
    return value / 1000 if isinstance(value, int | float) and not isinstance(value, bool) and value >= 1000 else None


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _table(value: object) -> dict[str, Any]:
    """Return a table whose values are texts; numbers and switches are written as one would type them."""
    rows = value.items() if isinstance(value, dict) else ()
    return {str(key): item if isinstance(item, str) else json.dumps(item) for key, item in rows}


def _named(value: object) -> dict[str, str]:
    return {name: f"${{{name}}}" for name in _list(value) if isinstance(name, str)}


def _filled(value: Any, project: Path, asked: set[str]) -> Any:
    """Return a value with other programs' variables in our spelling; ``asked`` gets those the program asks for."""
    if isinstance(value, dict):
        return {key: _filled(item, project, asked) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, project, asked) for item in value]
    if not isinstance(value, str):
        return value

    def wanted(match: re.Match[str]) -> str:
        variable = re.sub(r"\W", "_", match[1]).upper()
        asked.add(variable)
        return f"${{{variable}}}"

    text = _INPUT.sub(wanted, value.replace("${workspaceFolder}", str(project)))
    return _VARIABLE.sub(lambda match: f"${{{match[1] or match[2] or match[3]}}}", text)
