"""Servers of the Model Context Protocol in other programs' files, as rows of our own form.

Sources: the programs' pages on MCP (Claude Code, Codex, OpenCode).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tui_agent.foreign_file import ForeignFile, read_foreign
from tui_agent.json_text import as_dict
from tui_agent.lazy import dataclass
from tui_agent.plugins import MANIFEST, Plugin

Row = dict[str, Any]
"""A server in our words: command, args, env, url, headers, enabled, timeout, allow, deny."""


@dataclass(frozen=True, slots=True)
class ServerFile:
    """A file that may name servers, relative to the user's home or to a directory of the project."""

    program: str
    path: str
    of_project: bool
    keys: tuple[str, ...]
    """The way to the table of servers."""
    row_of: Callable[[Mapping[str, Any]], Row]


@dataclass(frozen=True, slots=True)
class ForeignServer:
    """One server; ``row`` is None where ``problem`` says why it can't be used."""

    program: str
    name: str
    place: str
    row: Row | None
    problem: str = ""


def servers_of_user(home: Path, project: Path) -> Iterator[ForeignServer]:
    """Yield the servers of the user's own files; those that Claude Code keeps for one project come last."""
    for source in _FILES:
        if not source.of_project:
            file = read_foreign(home / source.path, f"~/{source.path}")
            if file is not None:
                yield from _servers(source, file, source.keys)
                if source.program == "Claude Code":
                    yield from _servers(source, file, ("projects", str(project), *source.keys))


def servers_of_project(project: Path, folder: Path) -> Iterator[ForeignServer]:
    """Yield the servers of a directory of the project, but for those of ``.mcp.json``."""
    for source, path in _project_files(folder):
        file = read_foreign(path, path.relative_to(project).as_posix(), project)
        if file is not None:
            yield from _servers(source, file, source.keys)


def servers_of_plugins(plugins: Iterable[Plugin]) -> Iterator[ForeignServer]:
    """Yield the servers of plugins, named ``PLUGIN_SERVER``."""
    source = _of_user("Claude Code", MANIFEST, "mcpServers", _claude_row)
    for plugin in plugins:
        for file in plugin.servers():
            for server in _servers(source, file, source.keys):
                yield replace(server, name=f"{plugin.name}_{server.name}")


def server_files(project: Path, folder: Path) -> Iterator[Path]:
    """Yield the files of a directory of the project that name a server."""
    for source, path in _project_files(folder):
        file = read_foreign(path, path.name, project)
        if file is not None and file.section(*source.keys):
            yield path


def _project_files(folder: Path) -> Iterator[tuple[ServerFile, Path]]:
    return ((source, folder / source.path) for source in _FILES if source.of_project)


def _servers(
    source: ServerFile, file: ForeignFile, keys: tuple[str, ...]
) -> Iterator[ForeignServer]:
    for name, given in file.section(*keys).items():
        place = file.place(str(name))
        if not isinstance(given, dict):
            yield ForeignServer(source.program, str(name), place, None, "it is not a table")
            continue
        row = source.row_of(given)
        problem = "it has neither a command nor a url"
        if row.get("command") or row.get("url"):
            problem = ""
        yield ForeignServer(source.program, str(name), place, None if problem else row, problem)


def _claude_row(given: Mapping[str, Any]) -> Row:
    return {
        key: given[key]
        for key in ("command", "args", "env", "url", "type", "headers")
        if key in given
    }


def _codex_row(given: Mapping[str, Any]) -> Row:
    row = {key: given[key] for key in ("command", "args", "env", "url", "enabled") if key in given}
    headers = dict(as_dict(given.get("http_headers")))
    headers |= {
        name: f"${{{variable}}}"
        for name, variable in as_dict(given.get("env_http_headers")).items()
    }
    if variable := given.get("bearer_token_env_var"):
        headers["Authorization"] = f"Bearer ${{{variable}}}"
    if headers:
        row["headers"] = headers
    for theirs, ours in (
        ("tool_timeout_sec", "timeout"),
        ("enabled_tools", "allow"),
        ("disabled_tools", "deny"),
    ):
        if theirs in given:
            row[ours] = given[theirs]
    return row


def _opencode_row(given: Mapping[str, Any]) -> Row:
    row = {key: given[key] for key in ("url", "headers", "enabled") if key in given}
    command = given.get("command")
    if isinstance(command, list) and command:
        row |= {"command": str(command[0]), "args": [str(word) for word in command[1:]]}
    if isinstance(given.get("environment"), dict):
        row["env"] = given["environment"]
    return row


def _of_user(
    program: str, path: str, key: str, row_of: Callable[[Mapping[str, Any]], Row]
) -> ServerFile:
    return ServerFile(program=program, path=path, of_project=False, keys=(key,), row_of=row_of)


def _of_project(
    program: str, path: str, key: str, row_of: Callable[[Mapping[str, Any]], Row]
) -> ServerFile:
    return ServerFile(program=program, path=path, of_project=True, keys=(key,), row_of=row_of)


_FILES = (
    _of_user("Claude Code", ".claude.json", "mcpServers", _claude_row),
    _of_user("Codex", ".codex/config.toml", "mcp_servers", _codex_row),
    _of_user("OpenCode", ".config/opencode/opencode.json", "mcp", _opencode_row),
    _of_user("OpenCode", ".config/opencode/opencode.jsonc", "mcp", _opencode_row),
    _of_project("Codex", ".codex/config.toml", "mcp_servers", _codex_row),
    _of_project("OpenCode", "opencode.json", "mcp", _opencode_row),
    _of_project("OpenCode", "opencode.jsonc", "mcp", _opencode_row),
    _of_project("OpenCode", ".opencode/opencode.json", "mcp", _opencode_row),
    _of_project("OpenCode", ".opencode/opencode.jsonc", "mcp", _opencode_row),
)
