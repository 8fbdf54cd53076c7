"""The messages that a transcript posts when the user acts on a block.

The transcript doesn't act on them itself: the app copies texts and opens links, and the page around
the transcript runs actions and shows facts about the focused block.
"""

from textual.message import Message

from tui_agent.lazy import dataclass


@dataclass
class CopyRequested(Message, namespace="transcript"):
    """The user wants to copy a block's text to the clipboard."""

    text: str
    """The text without line numbers, decoration, wrapping or control characters."""


@dataclass
class ActionRequested(Message, namespace="transcript"):
    """The user chose an action of a block."""

    action: str
    """The name of the action, one of ``blocks.ActionName``."""
    entry_id: int
    """Id of the entry to act on: the entry that the action names, or else the block's entry.

    The entry of a card with a result is the tool result.
    """
    call_id: str = ""
    """Id of the tool call if the block is a card; otherwise ""."""


@dataclass
class LinkClicked(Message, namespace="transcript"):
    """The user clicked a link."""

    href: str
    """An http or https address of printable ASCII characters."""


@dataclass
class BlockFocused(Message, namespace="transcript"):
    """Another block was focused, or the conversation lost the focus."""

    entry_id: int | None
    """Id of the entry that the block shows; None if it shows no entry or the focus was lost."""
