"""A server's records: its state, its tools, prompts and resources.

No type of the SDK leaves this package.
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
_REST = LazyPattern(r"[^A-Za-z0-9_-]+")
_DIGEST = 6

_UNTYPED = LazyPattern(r"[^\w-]+")
"""Characters that a command cannot be typed with."""

LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
"""How important a server's message is, from the least to the most."""

Remedy = Literal["restart", "reload", "login"]
"""What brings back a server that failed."""


def portable_name(server: str, tool: str, taken: Collection[str] = ()) -> str:
    """Return ``server_tool`` made portable.

    A digest tells it from names that are taken or were cut alike.
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


def tidy_schema(schema: object) -> object:
    """Return a JSON schema without parts that cost tokens and say nothing: titles, the name of its dialect."""
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
    """Return a text of about ``most`` characters at most, ended between words and with a note on the rest."""
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
    """Something a server was asked for could not be had.

    The message is one sentence for model and person.
    """


class ServerState(StrEnum):
    """Where a server is in its life."""

    DISABLED = "disabled"
    STARTING = "starting"
    LOGIN = "login"
    """It waits for the user to log in with a browser."""
    READY = "ready"
    FAILED = "failed"
    STOPPED = "stopped"


@frozen
class ToolInfo:
    """A tool as its server describes it.

    ``read_only`` is the server's word, good for running calls side by side.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    read_only: bool = False
    omitted: int = 0
    """Characters of the description that are left out because it is too long."""


@frozen
class ServerMessage:
    """A message a server sent for people to read."""

    level: LogLevel
    text: str


@frozen
class PromptArgument:
    """A value that a prompt takes."""

    name: str
    description: str = ""
    required: bool = False

    @property
    def usage(self) -> str:
        return self.name.upper() if self.required else f"[{self.name.upper()}]"


@frozen
class McpPrompt:
    """A prompt that a server offers; ``command`` is typed after the slash."""

    server: str
    name: str
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()

    @property
    def command(self) -> str:
        """The name of the command: ``server:prompt``, of characters a command can be typed with."""
        return ":".join(_UNTYPED.sub("_", name.lower()) for name in (self.server, self.name))

    @property
    def usage(self) -> str:
        """How its arguments are written: ``SUBJECT [STYLE]``."""
        return " ".join([row.usage for row in self.arguments])

    def missing(self, text: str) -> tuple[str, ...]:
        """Return the arguments that are needed and not in a text, as they are written in ``usage``."""
        given = self.values(text)
        needed = [row for row in self.arguments if row.required]
        return tuple(row.usage for row in needed if row.name not in given)

    def values(self, text: str) -> dict[str, str]:
        """Return the arguments in a text, word by word; the last takes the rest."""
        if not self.arguments:
            return {}
        names = [row.name for row in self.arguments]
        words = text.split(maxsplit=len(names) - 1)
        return dict(zip(names, words, strict=False))


@frozen
class McpResource:
    """Something a server lets one read; ``mention`` is typed after the ``@``. Sizes are bytes.

    A template has ``{names}`` in its address that whoever asks fills in.
    """

    server: str
    uri: str
    name: str = ""
    description: str = ""
    mime: str | None = None
    size: int | None = None

    @property
    def mention(self) -> str:
        return f"{self.server}:{self.uri}"


@frozen
class ServerOffer:
    """Everything a server offers at a time. ``instructions`` is its text for models."""

    instructions: str = ""
    tools: tuple[ToolInfo, ...] = ()
    prompts: tuple[McpPrompt, ...] = ()
    resources: tuple[McpResource, ...] = ()
    templates: tuple[McpResource, ...] = ()
    problems: tuple[str, ...] = ()
    """A sentence for each tool that can't be offered."""


@frozen
class Content:
    """A server's answer: text, and images that are in the blob store."""

    text: str
    images: tuple[ImagePart, ...] = ()
    is_error: bool = False


@frozen
class McpToolRow:
    """A tool for a screen: ``name`` is the model's name for it, ``own`` the server's.

    ``tokens`` are its schema's.
    """

    name: str
    own: str
    description: str = ""
    tokens: int = 0
    on: bool = True
    """Whether it is offered."""
    omitted: int = 0
    """Characters of its description that are left out for the model."""


class LoginState(StrEnum):
    """Whether the user logged in to a server."""

    NONE = "none"
    """Nothing is known of a login: none was asked for, or the settings bring an authorization."""
    WAITING = "waiting"
    SIGNED_IN = "signed in"


@frozen
class McpServerStatus:
    """A server for a screen. ``log`` is the file its error output and its messages go to."""

    name: str
    source: Literal["user", "project"]
    transport: Literal["stdio", "http", "sse"]
    state: ServerState
    address: str = ""
    """Its command line or its address, as it is configured."""
    detail: str = ""
    """Why it is not ready; while it waits for a login, the address for the browser."""
    advice: str = ""
    """How the user can fix that."""
    remedy: Remedy = "restart"
    tools: tuple[McpToolRow, ...] = ()
    prompts: tuple[McpPrompt, ...] = ()
    resources: tuple[McpResource, ...] = ()
    templates: tuple[McpResource, ...] = ()
    instructions: str = ""
    """The server's own text for the model, shortened if need be."""
    instruction_tokens: int = 0
    on_demand: bool = False
    """Whether the model loads the parameters of its tools when it needs them."""
    messages: tuple[ServerMessage, ...] = ()
    """The newest messages it sent, oldest first."""
    log_level: LogLevel = "warning"
    """The least important messages that it is asked for."""
    restarts: int = 0
    login: LoginState = LoginState.NONE
    log: Path | None = None

    @property
    def tokens(self) -> int:
        return sum(tool.tokens for tool in self.tools if tool.on)
