"""The transcript's messages to the app, which owns the clipboard, the viewer and the session."""

from textual.message import Message

from tui_agent.lazy import dataclass


@dataclass
class CopyRequested(Message, namespace="transcript"):
    """The user wants to copy a block's text to the clipboard."""

    text: str
    """Text without gutters, wrapping or control characters."""


@dataclass
class ActionRequested(Message, namespace="transcript"):
    """The user chose an action that a block offers."""

    action: str
    """The name of the action, one of ``blocks.ActionName``."""
    entry_id: int
    """The block's entry; for a card with a result, the result's entry."""
    call_id: str = ""


@dataclass
class LinkClicked(Message, namespace="transcript"):
    """The user clicked a link: an http or https address of printable ASCII characters."""

    href: str


@dataclass
class BlockFocused(Message, namespace="transcript"):
    """The focus moved to another block, or to none."""

    entry_id: int | None
    """The block's entry; None for a block without one, or if the conversation lost the focus."""
