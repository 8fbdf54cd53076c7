"""What is known of a server: its state, its tools, prompts and resources. No type of the SDK leaves this package."""

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from tui_agent.errors import UserFacingError
from tui_agent.session.entries import ImagePart

_UNTYPED = re.compile(r"[^\w-]+")
"""What a command cannot be typed with."""


class McpError(UserFacingError):
    """Something a server was asked for could not be had; the message is one sentence for model and person."""


class ServerState(StrEnum):
    """Where a server is in its life."""

    DISABLED = "disabled"
    STARTING = "starting"
    LOGIN = "login"
    """It waits for the user to log in with a browser."""
    READY = "ready"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class ToolInfo:
    """A tool as its server describes it. ``read_only`` is the server's word, good for running calls side by side."""

    name: str
    description: str
    parameters: dict[str, Any]
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """A value that a prompt takes."""

    name: str
    description: str = ""
    required: bool = False


@dataclass(frozen=True, slots=True)
class McpPrompt:
    """A prompt that a server offers; ``command`` is what the user types after the slash."""

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
        return " ".join(row.name.upper() if row.required else f"[{row.name.upper()}]" for row in self.arguments)

    def missing(self, text: str) -> tuple[str, ...]:
        """Return the arguments that are needed and not in a text, as they are written in ``usage``."""
        given = self.values(text)
        return tuple(row.name.upper() for row in self.arguments if row.required and row.name not in given)

    def values(self, text: str) -> dict[str, str]:
        """Return the arguments in a text, word by word; the last takes the rest."""
        words = text.split(maxsplit=len(self.arguments) - 1) if self.arguments else []
        return dict(zip((row.name for row in self.arguments), words, strict=False))


@dataclass(frozen=True, slots=True)
class McpResource:
    """Something a server lets one read; ``mention`` is what the user types after the ``@``. Sizes are bytes."""

    server: str
    uri: str
    name: str = ""
    description: str = ""
    mime: str | None = None
    size: int | None = None

    @property
    def mention(self) -> str:
        """The name of the resource: ``server:uri``."""
        return f"{self.server}:{self.uri}"


@dataclass(frozen=True, slots=True)
class ServerOffer:
    """Everything a server offers at a time."""

    tools: tuple[ToolInfo, ...] = ()
    prompts: tuple[McpPrompt, ...] = ()
    resources: tuple[McpResource, ...] = ()


@dataclass(frozen=True, slots=True)
class Content:
    """What a server answered: text, and images that are in the blob store."""

    text: str
    images: tuple[ImagePart, ...] = ()
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class McpToolRow:
    """A tool for a screen: ``name`` is the model's name for it, ``own`` the server's. ``tokens`` are its schema's."""

    name: str
    own: str
    description: str = ""
    tokens: int = 0
    on: bool = True
    """Whether it is offered."""


class LoginState(StrEnum):
    """Whether the user logged in to a server."""

    NONE = "none"
    """Nothing is known of a login: none was asked for, or the settings bring an authorization."""
    WAITING = "waiting"
    SIGNED_IN = "signed in"


@dataclass(frozen=True, slots=True)
class McpServerStatus:
    """A server for a screen. ``log`` is the file its error output goes to."""

    name: str
    source: Literal["user", "project"]
    transport: Literal["stdio", "http"]
    state: ServerState
    address: str = ""
    """Its command line or its address, as it is configured."""
    detail: str = ""
    """Why it is not ready; while it waits for a login, the address for the browser."""
    advice: str = ""
    """What the user can do about that."""
    tools: tuple[McpToolRow, ...] = ()
    prompts: tuple[McpPrompt, ...] = ()
    resources: tuple[McpResource, ...] = ()
    restarts: int = 0
    login: LoginState = LoginState.NONE
    log: Path | None = None

    @property
    def tokens(self) -> int:
        """Tokens of the schemas of the tools that are offered."""
        return sum(tool.tokens for tool in self.tools if tool.on)
