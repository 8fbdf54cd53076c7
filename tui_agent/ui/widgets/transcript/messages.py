"""The transcript's messages to the app.

The app owns clipboard, viewer and every change of the session.
"""

from textual.message import Message

from tui_agent.lazy import dataclass


@dataclass
class CopyRequested(Message, namespace="transcript"):
    """The user wants a block's text on the clipboard."""

    text: str
    """Logical text: no gutters, no hard line breaks, no control characters."""


@dataclass
class ActionRequested(Message, namespace="transcript"):
    """The user wants something done that a block offers."""

    action: str
    """``open`` (the whole output in a viewer), ``retry``, ``undo``, ``restore``, ``jump`` (to its
    subject) or ``enter`` (the session of a subagent)."""
    entry_id: int
    """The entry it is about; for a card with a result that is the result's entry."""
    call_id: str = ""


@dataclass
class LinkClicked(Message, namespace="transcript"):
    """The user clicked a link: an http or https address of printable ASCII characters."""

    href: str


@dataclass
class BlockFocused(Message, namespace="transcript"):
    """Another block has the focus, or none."""

    entry_id: int | None
    """The entry of the block; None for a block without one, and when the conversation has lost the
    focus."""
