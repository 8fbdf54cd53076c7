"""Reads MCP servers from other programs' settings files, and converts them to this program's form.

The module starts no server; its callers decide which servers to use. Sources: the pages on MCP of
Claude Code, Codex, OpenCode and Pi.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tui_agent.claude_settings import project_settings, user_settings
from tui_agent.foreign_file import ForeignFile, read_foreign, read_of_user
from tui_agent.json_text import as_dict, as_list
from tui_agent.lazy import frozen
from tui_agent.path_checks import at_home
from tui_agent.places import OPENCODE_FILES, OPENCODE_HOME_FILES
from tui_agent.plugins import MANIFEST, Plugin

PROJECT_FILE = ".mcp.json"
"""Name of a project's file with MCP servers that several programs read. Its servers may have all
keys of `Row`."""

_OFF = "disabledMcpjsonServers"
"""Claude Code's key for the names of the servers that are disabled in a project."""

Row = dict[str, Any]
"""The settings of one MCP server, with the same keys as in this program's own file: command, args,
env, cwd, url, headers, enabled, timeout, allow, deny, schemas."""

_CHANGES = frozenset({"enabled", "allow", "deny", "schemas"})
"""The settings that an entry with neither a command nor a URL can change on the user's server of
the same name. Its other settings are ignored."""
_SCHEMAS_OF_PI = {"direct": "always", "deferred": "on_demand"}
"""Values of this program's setting ``schemas`` by the value of Pi's ``exposure``. For any other
value, ``schemas`` stays unset."""
_HIDDEN = "hidden"


@frozen
class ServerFile:
    """Describes one settings file of another program that may contain MCP servers.

    ``path`` is relative to the home directory, or, with ``of_project``, to a directory of the
    project.
    """

    program: str
    path: str
    of_project: bool
    keys: tuple[str, ...]
    """The nested keys in the file that lead to the table of MCP servers."""
    row_of: Callable[[Mapping[str, Any]], Row]
    """Function that converts one server's settings in such a file to a `Row`."""


@frozen
class ForeignServer:
    """One MCP server in a settings file. If the server can't be used, ``problem`` says why.

    In this case, ``row`` is None. ``place`` is ``FILE:LINE``. ``name`` is "" if the whole file
    can't be used. ``directory`` is the home directory, or the directory of the project that has the
    file.
    """

    program: str
    name: str
    place: str
    row: Row | None
    directory: Path
    problem: str = ""

    @property
    def is_change(self) -> bool:
        """Whether ``row`` only changes settings of the user's server of the same name.

        In that case, it defines no server itself.
        """
        return self.row is not None and not (self.row.get("command") or self.row.get("url"))


def servers_of_user(home: Path, project: Path) -> Iterator[ForeignServer]:
    """Yield the MCP servers in the user's settings files of all programs, one file after another.

    Claude Code's file also contains servers for single projects. Of these, only the servers for
    ``project`` are yielded, after the file's general servers.
    """
    for source in _FILES:
        if not source.of_project:
            file = read_of_user(home, source.path)
            if file is not None:
                yield from _servers(source, file, source.keys)
                if source.program == "Claude Code" and not file.problem:
                    yield from _servers(source, file, ("projects", str(project), *source.keys))


def servers_of_project(project: Path, folders: Sequence[Path]) -> Iterator[ForeignServer]:
    """Yield the MCP servers in the project's files, starting with the last of ``folders``.

    If two servers have the same name, the server yielded later counts.
    """
    for folder in reversed(folders):
        for source in _FILES:
            if source.of_project:
                yield from servers_in(project, folder / source.path)


def mark_disabled(
    servers: Iterable[ForeignServer], home: Path, project: Path
) -> Iterator[ForeignServer]:
    """Yield all ``servers`` of a project, with those disabled in Claude Code's settings marked.

    The marked servers have ``enabled`` set to False. The settings name servers of ``.mcp.json``;
    servers from other files are yielded unchanged.
    """
    layers = (*user_settings(home), *project_settings(project, project))
    own = read_of_user(home, ".claude.json")
    names = set()
    for settings in layers:
        names.update(settings.switched_off)
    if own is not None:
        names |= set(map(str, as_list(own.section("projects", str(project)).get(_OFF))))
    for server in servers:
        is_off = server.program == "Claude Code" and server.name in names
        if is_off and server.row is not None:
            yield replace(server, row={**server.row, "enabled": False})
        else:
            yield server


def servers_in(project: Path, path: Path) -> Iterator[ForeignServer]:
    """Yield the MCP servers defined in a project's file.

    Yields nothing if no program keeps servers in a file of that name.
    """
    shown = path.relative_to(project).as_posix()
    sources = []
    for one in _FILES:
        if one.of_project and f"/{shown}".endswith(f"/{one.path}"):
            sources.append(one)
    if sources:
        source = max(sources, key=_length)
        file = read_foreign(path, shown, project)
        if file is not None:
            yield from _servers(source, file, source.keys)


def _length(source: ServerFile) -> int:
    return len(source.path)


def servers_of_plugins(plugins: Iterable[Plugin]) -> Iterator[ForeignServer]:
    """Yield the MCP servers of plugins. Each is renamed to ``PLUGIN_SERVER``."""
    source = _of_user("Claude Code", MANIFEST, "mcpServers", _claude_row)
    for plugin in plugins:
        for file in plugin.servers():
            for server in _servers(source, file, source.keys):
                yield replace(server, name=f"{plugin.name}_{server.name}")


def server_files(project: Path, folder: Path) -> Iterator[Path]:
    """Yield the paths of the files in ``folder`` that define an MCP server or can't be used."""
    for path in (folder / source.path for source in _FILES if source.of_project):
        if any(True for _server in servers_in(project, path)):
            yield path


def _servers(
    source: ServerFile, file: ForeignFile, keys: tuple[str, ...]
) -> Iterator[ForeignServer]:
    directory = file.path.parents[len(Path(source.path).parts) - 1]

    def server(name: str, row: Row | None, problem: str = "") -> ForeignServer:
        place = file.place(name)
        return ForeignServer(source.program, name, place, row, directory=directory, problem=problem)

    if why := _problem_of(source, file):
        yield server("", None, why)
        return
    for name, given in file.section(*keys).items():
        if not isinstance(given, dict):
            yield server(str(name), None, "it is not a table")
            continue
        row = source.row_of(given)
        if problem := _command_as_value(source, row):
            yield server(str(name), None, problem)
        elif row.get("command") or row.get("url"):
            yield server(str(name), row)
        elif changes := {key: value for key, value in row.items() if key in _CHANGES}:
            yield server(str(name), changes)
        else:
            yield server(str(name), None, "it has neither a command nor a url")


def _command_as_value(source: ServerFile, row: Row) -> str:
    """Return why a server from Pi's settings can't be used; "" if it can.

    A server can't be used if a value is a command, which Pi runs to get the value of an environment
    variable or a header.
    """
    if source.program != "Pi":
        return ""
    for table in ("env", "headers"):
        for key, value in as_dict(row.get(table)).items():
            if str(value).startswith("!"):
                return (
                    f"{table}.{key} is a command ({value}), which tui-agent does not run: "
                    f"set a variable and write ${{NAME}} instead"
                )
    return ""


def _problem_of(source: ServerFile, file: ForeignFile) -> str:
    """Return why no server in a file can be used, as a clause; "" if there is no such problem."""
    is_for_servers = file.path.name.endswith("mcp.json")
    if not file.problem and is_for_servers and not isinstance(file.table.get(source.keys[0]), dict):
        return f"has no table “{source.keys[0]}”"
    return file.problem


def _claude_row(given: Mapping[str, Any]) -> Row:
    found = {}
    for key in ("command", "args", "env", "url", "type", "headers"):
        if key in given:
            found[key] = given[key]
    return found


def _pi_row(given: Mapping[str, Any]) -> Row:
    row = _claude_row(given)
    row |= {key: given[key] for key in ("enabled", "timeout", "cwd") if key in given}
    if row.get("type") == "streamable-http":
        row["type"] = "http"
    if isinstance(command := row.get("command"), str):
        row["command"] = _in_home(command)
    if isinstance(words := row.get("args"), list):
        row["args"] = [_in_home(word) for word in words]
    exposure = given.get("exposure")
    if exposure in _SCHEMAS_OF_PI:
        row["schemas"] = _SCHEMAS_OF_PI[exposure]
    of_tools = as_dict(given.get("toolExposure"))
    deny = [str(tool) for tool, one in of_tools.items() if one == _HIDDEN]
    if exposure == _HIDDEN:
        deny = ["*"]
        shown = [str(tool) for tool, one in of_tools.items() if one != _HIDDEN]
        if shown:
            row["allow"] = shown
            deny = []
    if deny:
        row["deny"] = deny
    return row


def _in_home(word: Any) -> Any:
    """Return a word with ``~/`` at its start replaced by the home directory."""
    if isinstance(word, str) and word.startswith("~/"):
        return str(at_home(word))
    return word


def _codex_row(given: Mapping[str, Any]) -> Row:
    keys = ("command", "args", "env", "cwd", "url", "enabled")
    row = {key: given[key] for key in keys if key in given}
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
    *(_of_user("OpenCode", name, "mcp", _opencode_row) for name in OPENCODE_HOME_FILES),
    _of_user("Pi", ".pi/agent/mcp.json", "mcpServers", _pi_row),
    _of_project("Pi", ".pi/mcp.json", "mcpServers", _pi_row),
    _of_project("Codex", ".codex/config.toml", "mcp_servers", _codex_row),
    *(_of_project("OpenCode", name, "mcp", _opencode_row) for name in OPENCODE_FILES),
    _of_project("Claude Code", PROJECT_FILE, "mcpServers", dict),
)
SERVER_FILES = tuple(source.path for source in _FILES if source.of_project)
"""Paths of files that may contain MCP servers, relative to a directory of the project."""
