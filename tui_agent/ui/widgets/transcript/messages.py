"""The messages that a transcript posts, such as to copy or open a block; it does neither itself.

The app copies and opens links; the page with the transcript handles actions and the focus.
"""

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
    """Id of the entry to act on: the one that the action names, else the one that the block shows.

    A card with a result shows the result's entry.
    """
    call_id: str = ""
    """Id of the tool call whose card it is, "" for other blocks."""


@dataclass
class LinkClicked(Message, namespace="transcript"):
    """The user clicked a link: an http or https address of printable ASCII characters."""

    href: str


@dataclass
class BlockFocused(Message, namespace="transcript"):
    """The focus moved to another block, or to none."""

    entry_id: int | None
    """Id of the block's entry; None if the block shows none, or the conversation lost the focus."""
