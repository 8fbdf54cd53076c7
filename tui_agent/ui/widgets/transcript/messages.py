"""The messages that a transcript posts when the user acts on a block.

The transcript doesn't handle these messages itself. The app copies texts and opens links. The
screen that contains the transcript runs actions and shows facts about the focused block.
"""

from textual.message import Message

from tui_agent.lazy import dataclass


@dataclass
class CopyRequested(Message, namespace="transcript"):
    """Posted when the user wants to copy a block's text to the clipboard."""

    text: str
    """The block's text without line numbers, decoration, wrapping or control characters."""


@dataclass
class ActionRequested(Message, namespace="transcript"):
    """Posted when the user has chosen an action of a block."""

    action: str
    """Name of the action, which is one of ``blocks.ActionName``."""
    entry_id: int
    """Id of the entry to act on.

    This is the entry that the action names or, if it names none, the entry that the block shows.
    For a tool call that has a result, it is the tool result.
    """
    call_id: str = ""
    """Id of the tool call if the block shows one. Otherwise empty."""


@dataclass
class LinkClicked(Message, namespace="transcript"):
    """Posted when the user clicks a link."""

    href: str
    """The link's http or https address, which consists of printable ASCII characters."""


@dataclass
class BlockFocused(Message, namespace="transcript"):
    """Posted when the focus moves to another block, or leaves the conversation."""

    entry_id: int | None
    """Id of the entry that the block shows.

    None if the block shows no entry, or if the conversation has lost the focus.
    """
