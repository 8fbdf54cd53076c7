"""Settings of MCP servers: their fields, and which settings apply to a session's servers.

The settings come from the user's ``[mcp.NAME]`` tables, other programs and trusted projects. This
module reads no files: the caller (``cli.extensions``) passes the tables, and leaves out those of a
project that isn't trusted. If several servers have the same name, `find_servers` chooses one. Also
defines the environment, directories, sandbox and timeouts of servers.
"""

import hashlib
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tui_agent.agent.mcp.records import LogLevel, portable_name
from tui_agent.foreign_servers import ForeignServer
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.path_checks import at_home

if TYPE_CHECKING:
    from tui_agent.sandbox import Sandbox

_VARIABLE = LazyPattern(r"\$\{(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?\}")


OWN_PLACE = "config.toml"
"""Value of `ServerSpec.place` for a server in the program's own settings."""


def is_web_address(text: str) -> bool:
    """Return True for an ``http`` or ``https`` URL with a host and no invalid port.

    Variables such as ``${PORT}`` count as valid.
    """
    try:
        parts = urlsplit(_VARIABLE.sub("1", text))
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


class McpConfigError(ValueError):
    """Raised if a server's settings are wrong; the message says which setting and why."""


class McpServerSettings(BaseModel):
    """Settings of one server: a command that uses standard input and output, or an HTTP server's URL.

    When the server starts, ``${NAME}`` and ``${NAME:-default}`` in the command, arguments,
    environment, URL and headers are replaced with values from the environment.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    command: str | None = Field(default=None, description="The program to start.")
    args: tuple[str, ...] = Field(default=(), description="Its arguments.")
    env: dict[str, str] = Field(
        default_factory=dict, description="Additional environment variables."
    )
    cwd: str | None = Field(
        default=None,
        description="Working directory of the program, relative to the project. If unset, the project itself.",
    )
    url: str | None = Field(
        default=None, description="The URL of a server that uses streamable HTTP or SSE."
    )
    type: str | None = Field(
        default=None,
        description="“sse” for a server that supports only SSE. If unset, the transport is detected.",
    )
    headers: dict[str, str] = Field(
        default_factory=dict, description="HTTP headers sent with every request."
    )
    sandboxed: bool = Field(
        default=False,
        description="Run the server in the sandbox if there is one. A project's servers always run in it.",
    )
    enabled: bool = Field(default=True, description="Whether the server is started.")
    allow: tuple[str, ...] | None = Field(
        default=None, description="Names or globs of the tools to offer. If unset, all tools."
    )
    deny: tuple[str, ...] = Field(default=(), description="Names or globs of tools not to offer.")
    schemas: Literal["auto", "always", "on_demand"] = Field(
        default="auto",
        description="Send the tools' parameters with every request, or let the model load them; auto: depends on size.",
    )
    timeout: float = Field(
        default=60, gt=0, le=3_600, description="Timeout of one request to the server, in seconds."
    )
    start: float = Field(
        default=30,
        gt=0,
        le=600,
        description="Seconds that a run without a screen waits for the server. Its start fails after four times that.",
    )
    required: bool = Field(
        default=False, description="Whether a run fails if the server is not available."
    )
    log_level: LogLevel = Field(
        default="warning", description="Lowest severity of log messages to request from the server."
    )

    @model_validator(mode="after")
    def _has_one_address(self) -> "McpServerSettings":
        if bool(self.command) == bool(self.url):
            raise ValueError("a server has either a command or a url")
        if self.url and not self.url.startswith(("http://", "https://")):
            raise ValueError("the url must begin with http:// or https://")
        return self

    @property
    def is_authorized(self) -> bool:
        """Whether the headers contain an authorization, in which case no login is needed."""
        return any(name.lower() == "authorization" for name in self.headers)

    def offers(self, tool: str) -> bool:
        """Return True if ``allow`` and ``deny`` permit offering the server's tool to the model."""
        if _fits(tool, self.deny):
            return False
        return self.allow is None or _fits(tool, self.allow)

    def switched(self, tool: str, *, on: bool) -> "McpServerSettings":
        """Return a copy of the settings with one tool turned on or off in ``allow`` and ``deny``.

        Raises McpConfigError if the tool can't be turned on because a glob in ``deny`` matches it.
        """
        allow = self.allow
        if not on:
            if allow is not None and tool in allow:
                allow = tuple(name for name in allow if name != tool)
            changed = self.model_copy(update={"allow": allow})
            if changed.offers(tool):
                return changed.model_copy(update={"deny": (*self.deny, tool)})
            return changed
        deny = tuple(name for name in self.deny if name != tool)
        if _fits(tool, deny):
            raise McpConfigError(
                f"{tool} is turned off by a pattern in “deny”; change it in the settings."
            )
        changed = self.model_copy(update={"deny": deny})
        if changed.offers(tool):
            return changed
        return changed.model_copy(update={"allow": (*(allow or ()), tool)})


def _fits(tool: str, globs: Iterable[str]) -> bool:
    return any(fnmatchcase(tool, glob) for glob in globs)


@frozen
class ServerSpec:
    """A server to run. ``source`` says whose settings define it, ``cwd`` is its project's directory.

    ``place`` names the file with these settings, with the line if known, for messages.
    """

    name: str
    settings: McpServerSettings
    source: Literal["user", "project"]
    cwd: Path
    place: str = OWN_PLACE
    reads: frozenset[Path] = frozenset()
    """Paths outside the project that the user has allowed this server to read until the program
    ends."""

    @property
    def directory(self) -> Path:
        """The directory in which the server's program runs."""
        return self.cwd / at_home(self.settings.cwd or "")

    @property
    def command_line(self) -> str:
        """The configured directory, the program and its arguments, quoted for a shell."""
        return command_line(self.settings)

    @property
    def transport(self) -> Literal["stdio", "http"]:
        return "stdio" if self.settings.command else "http"

    def keeps_running_as(self, other: "ServerSpec") -> bool:
        """Return True if a server that was started with this spec can keep running with ``other``.

        This is the case if the settings of both differ only in which tools are offered and how, the
        log level and the settings ``start`` and ``required``.
        """
        offered = {"allow", "deny", "log_level", "schemas", "start", "required"}
        mine = self.settings.model_dump(exclude=offered)
        theirs = other.settings.model_dump(exclude=offered)
        return (self.source, self.cwd, mine) == (other.source, other.cwd, theirs)


@frozen
class FoundServers:
    """The servers of a session, and a message about each server whose settings are wrong."""

    specs: tuple[ServerSpec, ...] = ()
    problems: tuple[str, ...] = ()


def find_servers(
    user: Mapping[str, McpServerSettings],
    project: Path,
    *,
    others: Iterable[ForeignServer] = (),
    of_project: Iterable[ForeignServer] = (),
) -> FoundServers:
    """Return the user's servers and the project's servers.

    ``user`` is the ``[mcp]`` table of the user's settings, ``others`` are the user's servers in
    other programs' files, ``of_project`` those in the project's files. If several have the same
    name, the first of these three sources is used, and within ``others`` and ``of_project``, the
    last server of that name.
    """
    problems: list[str] = []
    specs = {name: ServerSpec(name, settings, "user", project) for name, settings in user.items()}
    changes: list[ForeignServer] = []
    for spec in _checked(others, problems, changes, "user", project):
        specs.setdefault(spec.name, spec)
    for spec in _checked(of_project, problems, changes, "project", project):
        specs.setdefault(spec.name, spec)
    for change in changes:
        row = dict(change.row or {})
        if change.name not in specs:
            problems.append(
                f"{change.place}: {change.name}: there is no server with this name to change"
            )
            continue
        if change.name in user:
            # Another program's file can disable a server from the user's own settings, but not
            # change it in another way.
            row = {"enabled": False} if row.get("enabled") is False else {}
        try:
            specs[change.name] = _changed(specs[change.name], row)
        except ValidationError as error:
            problems.append(f"{change.place}: {change.name}: {first_mistake(error)}.")
    return FoundServers(tuple(specs.values()), tuple(problems))


def _changed(spec: ServerSpec, row: Mapping[str, Any]) -> ServerSpec:
    """Return a server with some settings changed. Raises ValidationError if they are invalid."""
    valid = McpServerSettings.model_validate({"command": "-", **row})
    update = {key: getattr(valid, key) for key in row}
    return replace(spec, settings=spec.settings.model_copy(update=update))


def _checked(
    servers: Iterable[ForeignServer],
    problems: list[str],
    changes: list[ForeignServer],
    whose: Literal["user", "project"],
    project: Path,
) -> Iterable[ServerSpec]:
    """Return the usable servers from other programs' files; the last one of each name.

    Adds a message on each unusable server to ``problems``, and each row that only changes a server
    to ``changes``.
    """
    found: dict[str, ServerSpec] = {}
    is_projects = whose == "project"
    for server in servers:
        if server.row is None:
            said = [server.place, server.name, server.problem]
            problems.append(": ".join([part for part in said if part]))
            continue
        if server.is_change:
            changes.append(server)
            continue
        try:
            settings = McpServerSettings.model_validate({**server.row, "sandboxed": is_projects})
        except ValidationError as error:
            problems.append(f"{server.place}: {server.name}: {first_mistake(error)}.")
            continue
        cwd = server.directory if is_projects else project
        found[server.name] = ServerSpec(server.name, settings, whose, cwd, server.place)
    return found.values()


def first_mistake(error: ValidationError) -> str:
    """Return a text that says where the first invalid value is, and what is wrong with it."""
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"]))
    said = first["msg"].removeprefix("Value error, ")
    if where:
        return f"{where}: {said}"
    return said


def expanded(settings: McpServerSettings, environ: Mapping[str, str]) -> McpServerSettings:
    """Return the settings with every ``${NAME}`` replaced with its value in ``environ`` or its default.

    Raises McpConfigError if a variable has neither.
    """

    def value_of(match: re.Match[str]) -> str:
        value = environ.get(match["name"], match["default"])
        if value is None:
            raise McpConfigError(f"the variable {match['name']} is not set")
        return value

    one = partial(_VARIABLE.sub, value_of)
    return settings.model_copy(
        update={
            "command": one(settings.command) if settings.command else None,
            "args": tuple(one(text) for text in settings.args),
            "env": {name: one(text) for name, text in settings.env.items()},
            "url": one(settings.url) if settings.url else None,
            "headers": {name: one(text) for name, text in settings.headers.items()},
        }
    )


def command_line(settings: McpServerSettings) -> str:
    """Return the directory, the program and the arguments of a server, quoted for a shell."""
    words = (settings.cwd or "", settings.command or "", *settings.args)
    return shlex.join([word for word in words if word])


@frozen
class ConnectionContext:
    """The environment, directories and sandbox for a session's servers.

    ``environ`` gives the values for ``${NAME}`` in settings; ``environment`` is the environment of
    the processes, without secrets. Logs are written to ``log_dir``, login tokens to ``token_dir``.
    """

    environ: Mapping[str, str]
    environment: Mapping[str, str]
    log_dir: Path
    token_dir: Path
    sandbox: "Callable[[Path], Sandbox] | None" = None
    """Function that returns the sandbox for a project's servers; None if there is no sandbox."""
    problem_of: Callable[[Path, str], str] = lambda _cwd, _command: ""
    """Function that takes a project and a command line, and returns a clause that says why the
    command must not run there outside the sandbox; "" if it may."""

    def log_path(self, server: str) -> Path:
        """Return the path of a server's log file, given the server's name.

        If the server's name has to be changed to be used in the file's name, the path also contains
        a digest of the server's name.
        """
        name = portable_name("", server).strip("_")
        if name != server:
            name += f"-{hashlib.sha256(server.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
        return self.log_dir / f"mcp-{name}.log"


@frozen
class Timeouts:
    """Timeouts for starting and restarting servers.

    ``settle`` is the maximum time, in seconds, that the first request waits for servers; if it is
    None, the limit for each server is its setting ``start``. A server that doesn't answer within
    ``starts`` times its setting ``start`` has failed. A server that ends after it was ready is
    restarted after the first of the ``pauses`` (in seconds), next time after the second, and so on;
    after the last, it has failed. A server whose first start fails is not restarted. After a run of
    more than ``healthy`` seconds, all pauses are available again.
    """

    settle: float | None = 2
    starts: float = 4
    pauses: tuple[float, ...] = (0.5, 4, 20)
    healthy: float = 60
