"""How a server is configured: ``[mcp.NAME]`` in the user's file, ``.mcp.json`` in a trusted project."""

import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tui_agent.agent.mcp.records import LogLevel, portable_name
from tui_agent.foreign_servers import ForeignServer
from tui_agent.lazy import LazyPattern, frozen

if TYPE_CHECKING:
    from tui_agent.sandbox import Sandbox

_VARIABLE = LazyPattern(r"\$\{(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?\}")


class McpConfigError(ValueError):
    """A server is configured wrongly; the message says where and what."""


class McpServerSettings(BaseModel):
    """One server: a command that speaks over its standard input and output, or the address of one over HTTP.

    ``${NAME}`` and ``${NAME:-default}`` in command, arguments, variables, address and headers come
    from the environment when the server is started.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    command: str | None = Field(default=None, description="The program to start.")
    args: tuple[str, ...] = Field(default=(), description="Its arguments.")
    env: dict[str, str] = Field(
        default_factory=dict, description="Variables it gets in addition to the usual ones."
    )
    url: str | None = Field(
        default=None, description="The address of a server that speaks streamable HTTP or SSE."
    )
    type: str | None = Field(
        default=None, description="“sse” for a server that speaks only that; else it is found out."
    )
    headers: dict[str, str] = Field(
        default_factory=dict, description="Sent with every request to the address."
    )
    sandboxed: bool = Field(
        default=False, description="Start it in the sandbox, as a project's servers are."
    )
    enabled: bool = Field(default=True, description="Whether it is started.")
    allow: tuple[str, ...] | None = Field(
        default=None, description="Names or globs of the tools to offer; unset: all."
    )
    deny: tuple[str, ...] = Field(
        default=(), description="Names or globs of tools that are not offered."
    )
    schemas: Literal["auto", "always", "on_demand"] = Field(
        default="auto",
        description="Whether every request holds its tools' parameters or the model loads them; auto: by their size.",
    )
    timeout: float = Field(default=60, gt=0, le=3_600, description="Seconds one call may take.")
    start: float = Field(
        default=30,
        gt=0,
        le=600,
        description="Seconds a run without a screen waits for it; after four times that it failed.",
    )
    required: bool = Field(
        default=False, description="Whether the work ends with an error where it isn't there."
    )
    log_level: LogLevel = Field(
        default="warning", description="The least important messages it is asked to send."
    )

    @model_validator(mode="after")
    def _one_way_in(self) -> "McpServerSettings":
        if bool(self.command) == bool(self.url):
            raise ValueError("a server has either a command or a url")
        if self.url and not self.url.startswith(("http://", "https://")):
            raise ValueError("the url must begin with http:// or https://")
        return self

    @property
    def is_authorized(self) -> bool:
        return any(name.lower() == "authorization" for name in self.headers)

    def offers(self, tool: str) -> bool:
        if _fits(tool, self.deny):
            return False
        return self.allow is None or _fits(tool, self.allow)

    def switched(self, tool: str, *, on: bool) -> "McpServerSettings":
        """Return the settings with one tool switched.

        Raises McpConfigError where a glob in ``deny`` keeps it off.
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
                f"{tool} is kept off by a pattern in “deny”; change that in the settings."
            )
        changed = self.model_copy(update={"deny": deny})
        if changed.offers(tool):
            return changed
        return changed.model_copy(update={"allow": (*(allow or ()), tool)})


def _fits(tool: str, globs: Iterable[str]) -> bool:
    return any(fnmatchcase(tool, glob) for glob in globs)


@frozen
class ServerSpec:
    """A server to run: its name, where it was configured, and the directory its command starts in."""

    name: str
    settings: McpServerSettings
    source: Literal["user", "project"]
    cwd: Path

    @property
    def command_line(self) -> str:
        return " ".join([self.settings.command or "", *self.settings.args])

    @property
    def transport(self) -> Literal["stdio", "http"]:
        return "stdio" if self.settings.command else "http"

    def runs_on(self, other: "ServerSpec") -> bool:
        """Return True if a running server serves another spec too: only what is offered of it, and how, differs."""
        offered = {"allow", "deny", "log_level", "schemas", "start", "required"}
        mine = self.settings.model_dump(exclude=offered)
        theirs = other.settings.model_dump(exclude=offered)
        return (self.source, self.cwd, mine) == (other.source, other.cwd, theirs)


@frozen
class FoundServers:
    """The servers of a session and what is wrong with the configuration of others."""

    specs: tuple[ServerSpec, ...] = ()
    problems: tuple[str, ...] = ()


def find_servers(
    user: Mapping[str, McpServerSettings],
    project: Path,
    *,
    others: Iterable[ForeignServer] = (),
    of_project: Iterable[ForeignServer] = (),
) -> FoundServers:
    """Return the user's servers and those of a trusted project.

    Of two with one name the user's counts.

    ``others`` are the user's in other programs' files, after our own.
    """
    problems: list[str] = []
    specs = {name: ServerSpec(name, settings, "user", project) for name, settings in user.items()}
    for spec in _checked(others, problems, "user", project):
        specs.setdefault(spec.name, spec)
    for spec in _checked(of_project, problems, "project", project):
        specs.setdefault(spec.name, spec)
    return FoundServers(tuple(specs.values()), tuple(problems))


def _checked(
    servers: Iterable[ForeignServer],
    problems: list[str],
    whose: Literal["user", "project"],
    project: Path,
) -> Iterable[ServerSpec]:
    """Return the servers of other programs' files that can be used, the last of a name.

    Name the others.
    """
    found: dict[str, ServerSpec] = {}
    is_projects = whose == "project"
    for server in servers:
        if server.row is None:
            said = [server.place, server.name, server.problem]
            problems.append(": ".join([part for part in said if part]))
            continue
        try:
            settings = McpServerSettings.model_validate({**server.row, "sandboxed": is_projects})
        except ValidationError as error:
            problems.append(f"{server.place}: {server.name}: {_first_mistake(error)}.")
            continue
        cwd = server.directory if is_projects else project
        found[server.name] = ServerSpec(server.name, settings, whose, cwd)
    return found.values()


def _first_mistake(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"]))
    said = first["msg"].removeprefix("Value error, ")
    if where:
        return f"{where}: {said}"
    return said


def expanded(settings: McpServerSettings, environ: Mapping[str, str]) -> McpServerSettings:
    """Return the settings with ``${NAME}`` replaced.

    Raises McpConfigError for one that has no value.
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


@frozen
class ConnectionContext:
    """Where servers live.

    ``environ`` fills in ``${NAME}`` in their settings; ``environment`` is what their processes get,
    secrets taken out. Logs of their error output and their login tokens are kept in the two
    directories.
    """

    environ: Mapping[str, str]
    environment: Mapping[str, str]
    log_dir: Path
    token_dir: Path
    sandbox: "Callable[[Path], Sandbox] | None" = None
    """Returns what servers of a project run in."""
    changed: Callable[[Path, str], str] = lambda _project, _command: ""
    """Names a file of a project that a command runs and that is not as it was trusted."""

    def log_path(self, server: str) -> Path:
        return self.log_dir / f"mcp-{portable_name('', server).strip('_')}.log"


@frozen
class Timeouts:
    """How long things may take, in seconds.

    ``pauses`` come before each new start of a server that died.

    The first request waits ``settle`` for servers, None: as long as each one's setting ``start``
    says. A server has failed after ``starts`` times that. One that was up for ``healthy`` seconds
    has all its starts back.
    """

    settle: float | None = 2
    starts: float = 4
    pauses: tuple[float, ...] = (0.5, 4, 20)
    healthy: float = 60
