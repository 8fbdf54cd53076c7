"""Data types for MCP servers: state, tools, prompts, resources and answers.

The rest of the program uses these types, not the SDK's. Also creates the names under which models
see servers' tools, shortens servers' texts, and removes fields that only cost tokens from tool
schemas.
"""

import hashlib
from collections.abc import Collection
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from tui_agent.errors import UserFacingError
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.session.entries import ImagePart

MAX_LENGTH = 64
"""Maximum length, in characters, that every provider accepts for a tool's name."""
_REST = LazyPattern(r"[^A-Za-z0-9_-]+")
"""Matches characters that not every provider accepts in a tool's name."""
_DIGEST = 6
"""Number of hexadecimal digits in the digest that replaces the end of a taken or too long name."""

SERVER_PREFIX = "mcp__"
"""Prefix of the names that Claude Code gives to tools of MCP servers."""

_UNTYPED = LazyPattern(r"[^\w-]+")
"""Matches characters that the name of a command can't have."""

LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
"""Severity of a server's message, from the lowest to the highest."""

Remedy = Literal["restart", "reload", "login", "allow"]
"""An action that the user can choose to make a failed server run again."""


def portable_name(server: str, tool: str, taken: Collection[str] = ()) -> str:
    """Return ``SERVER_TOOL`` as a name that every provider accepts and that is not in ``taken``.

    If ``SERVER_TOOL`` is too long or already taken, the returned name ends with a digest.
    """
    name = _REST.sub("_", f"{server}_{tool}")
    if not name[0].isalpha() and name[0] != "_":
        name = f"_{name}"
    if len(name) <= MAX_LENGTH and name not in taken:
        return name
    number = 0
    while True:
        digest = hashlib.sha256(f"{server}\0{tool}\0{number}".encode()).hexdigest()[:_DIGEST]
        unlike = f"{name[: MAX_LENGTH - _DIGEST - 1]}_{digest}"
        if unlike not in taken:
            return unlike
        number += 1


def pattern_of_tools(named: str) -> str:
    """Return this program's name for the tool that Claude Code calls ``mcp__SERVER__TOOL``.

    If the tool's name is missing or contains a star, the result is a glob. Raises ValueError if the
    server's name is missing or contains a star.
    """
    server, _separator, tool = named.removeprefix(SERVER_PREFIX).partition("__")
    if not server:
        raise ValueError(f"“{named}” names no server")
    if "*" in server:
        raise ValueError(f"“{named}”: the server's name can't contain a star")
    if not tool:
        return f"{portable_name(server, '')}*"
    # A portable name can't contain stars, so the parts between them are converted one by one.
    parts = [_REST.sub("_", part) for part in tool.split("*")]
    if len(parts) == 1:
        return portable_name(server, tool)
    return portable_name(server, "") + "*".join(parts)


def tidy_schema(schema: object) -> object:
    """Return a copy of a JSON schema without ``title``, ``$schema`` and ``$id``, which only cost tokens."""
    if isinstance(schema, list):
        return [tidy_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    tidy: dict[str, object] = {}
    for key, value in schema.items():
        if key in {"properties", "$defs", "definitions"} and isinstance(value, dict):
            tidy[key] = {name: tidy_schema(field) for name, field in value.items()}
        elif key not in {"title", "$schema", "$id"}:
            tidy[key] = tidy_schema(value)
    return tidy


def shortened(text: str, most: int) -> str:
    """Strip a text, and cut it between lines or words to at most ``most`` characters.

    If the text was cut, a note after it says how many characters were left out. The note is not
    counted in ``most``.
    """
    text = text.strip()
    if len(text) <= most:
        return text
    if "\n" in text[most * 3 // 4 : most]:
        kept = text[:most].rpartition("\n")[0]
    else:
        kept = text[:most].rpartition(" ")[0]
    kept = (kept or text[:most]).rstrip()
    return f"{kept}\n[… {len(text) - len(kept):,} more characters were left out]"


class McpError(UserFacingError):
    """Raised if a request to an MCP server fails; the message is for the model and the user."""


class ServerState(StrEnum):
    """The state of an MCP server's process or connection."""

    DISABLED = "disabled"
    STARTING = "starting"
    LOGIN = "login"
    """The server waits for the user to log in with a browser."""
    READY = "ready"
    FAILED = "failed"
    STOPPED = "stopped"


@frozen
class ToolInfo:
    """A tool as its server describes it. Tools with ``read_only`` may run in parallel.

    ``parameters`` is the JSON schema of its arguments.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    read_only: bool = False
    omitted: int = 0
    """Number of characters that were cut from the tool's description because it was too long."""


@frozen
class ServerMessage:
    """A log message from a server, for the user."""

    level: LogLevel
    text: str


@frozen
class PromptArgument:
    """An argument of a server's prompt."""

    name: str
    description: str = ""
    required: bool = False

    @property
    def usage(self) -> str:
        """The argument as a usage line shows it: ``NAME``, or ``[NAME]`` if it is optional."""
        return self.name.upper() if self.required else f"[{self.name.upper()}]"


@frozen
class McpPrompt:
    """A prompt that a server offers, used as a command."""

    server: str
    name: str
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()

    @property
    def command(self) -> str:
        """Name of the command that stands for the prompt, without its slash: ``server:prompt``."""
        return ":".join(_UNTYPED.sub("_", name.lower()) for name in (self.server, self.name))

    @property
    def usage(self) -> str:
        """The arguments as a usage line shows them: ``SUBJECT [STYLE]``."""
        return " ".join([row.usage for row in self.arguments])

    def missing(self, text: str) -> tuple[str, ...]:
        """Return the required arguments that are missing from ``text``, written as in ``usage``."""
        given = self.values(text)
        needed = [row for row in self.arguments if row.required]
        return tuple(row.usage for row in needed if row.name not in given)

    def values(self, text: str) -> dict[str, str]:
        """Return the arguments in a typed text by name.

        The last argument takes all remaining words.
        """
        if not self.arguments:
            return {}
        names = [row.name for row in self.arguments]
        words = text.split(maxsplit=len(names) - 1)
        return dict(zip(names, words, strict=False))


@frozen
class McpResource:
    """A resource that a server offers, or a template with ``{names}`` in its ``uri``.

    ``size`` is in bytes; ``mime`` and ``size`` are None if the server does not state them.
    """

    server: str
    uri: str
    name: str = ""
    description: str = ""
    mime: str | None = None
    size: int | None = None

    @property
    def mention(self) -> str:
        """The resource's name after an ``@`` in a message: ``server:uri``."""
        return f"{self.server}:{self.uri}"


@frozen
class ServerOffer:
    """Everything that a server offers.

    ``instructions`` is the server's text that tells models how to use it.
    """

    instructions: str = ""
    tools: tuple[ToolInfo, ...] = ()
    prompts: tuple[McpPrompt, ...] = ()
    resources: tuple[McpResource, ...] = ()
    templates: tuple[McpResource, ...] = ()
    problems: tuple[str, ...] = ()
    """Sentences for the user about tools that can't be offered, or a server that offers nothing."""


@frozen
class Content:
    """The content of a server's answer: text, and images, which are stored as blobs."""

    text: str
    images: tuple[ImagePart, ...] = ()
    is_error: bool = False


@frozen
class McpToolRow:
    """A tool for display. ``name`` is its name for the model, ``own`` its name on the server.

    ``tokens`` is the size of its schema.
    """

    name: str
    own: str
    description: str = ""
    tokens: int = 0
    on: bool = True
    """True if the user's settings offer the tool to the model."""
    omitted: int = 0
    """Number of characters that were cut from the description that the model sees."""


class LoginState(StrEnum):
    """Whether the user has logged in to an MCP server."""

    NONE = "none"
    """The user is not logged in, or no login is needed (a local program, or credentials in the
    settings)."""
    WAITING = "waiting"
    SIGNED_IN = "signed in"


@frozen
class McpServerStatus:
    """The state of a server for display. ``log`` is the file with its error output and messages."""

    name: str
    source: Literal["user", "project"]
    transport: Literal["stdio", "http", "sse"]
    state: ServerState
    address: str = ""
    """The server's command line or URL, as configured."""
    detail: str = ""
    """Why the server is not ready, as a clause. In the state ``LOGIN``, the address to open."""
    advice: str = ""
    """Advice for the user on how to fix a failure; "" if there is none."""
    remedy: Remedy = "restart"
    hidden: tuple[Path, ...] = ()
    """Paths that the server could not read because the sandbox hides them."""
    tools: tuple[McpToolRow, ...] = ()
    prompts: tuple[McpPrompt, ...] = ()
    resources: tuple[McpResource, ...] = ()
    templates: tuple[McpResource, ...] = ()
    instructions: str = ""
    """The server's instructions for the model as they appear in the request head, perhaps
    shortened."""
    instruction_tokens: int = 0
    on_demand: bool = False
    """Whether the model must load the parameters of the server's tools before it can call them."""
    messages: tuple[ServerMessage, ...] = ()
    """The server's newest messages, oldest first."""
    log_level: LogLevel = "warning"
    """The lowest severity of the messages that the program requests from the server."""
    restarts: int = 0
    login: LoginState = LoginState.NONE
    log: Path | None = None
    place: str = ""
    """The file with the server's settings, with the line if known; "" if unknown."""

    @property
    def tokens(self) -> int:
        """Total size, in tokens, of the schemas of those tools of the server that are turned on."""
        return sum(tool.tokens for tool in self.tools if tool.on)
