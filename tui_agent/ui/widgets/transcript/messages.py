"""What the transcript tells the app. The app owns clipboard, viewer and every change of the session."""

from textual.message import Message
from textual.widget import Widget


class TranscriptMessage(Message):
    """Base of the messages of a transcript."""

    def __init__(self, transcript: Widget) -> None:
        self.transcript = transcript
        """The transcript that sent it."""

        super().__init__()

    @property
    def control(self) -> Widget:
        return self.transcript


class CopyRequested(TranscriptMessage, namespace="transcript"):
    """The user wants a block's text on the clipboard."""

    def __init__(self, transcript: Widget, text: str) -> None:
        super().__init__(transcript)
        self.text = text
        """Logical text: no gutters, no hard line breaks, no control characters."""


class ActionRequested(TranscriptMessage, namespace="transcript"):
    """The user wants something done that a block offers."""

    def __init__(self, transcript: Widget, action: str, entry_id: int, call_id: str = "") -> None:
        super().__init__(transcript)
        self.action = action
        """``open`` (the whole output in a viewer), ``retry``, ``undo``, ``restore``, ``jump`` (to what it
        is about) or ``enter`` (the session of a subagent)."""

        self.entry_id = entry_id
        """The entry it is about; for a card with a result that is the result's entry."""

        self.call_id = call_id
        """The call, when the block is a tool card."""


class LinkClicked(TranscriptMessage, namespace="transcript"):
    """The user clicked a link."""

    def __init__(self, transcript: Widget, href: str) -> None:
        super().__init__(transcript)
        self.href = href
        """An http or https address of printable ASCII characters."""


class NewBelow(TranscriptMessage, namespace="transcript"):
    """Whether there is something new below what the user looks at has changed."""

    def __init__(self, transcript: Widget, has_new: bool) -> None:  # noqa: FBT001 - the message's one fact
        super().__init__(transcript)
        self.has_new = has_new
        """True when something arrived while the user had scrolled up."""


class BlockFocused(TranscriptMessage, namespace="transcript"):
    """Another block has the focus, or none."""

    def __init__(self, transcript: Widget, entry_id: int | None) -> None:
        super().__init__(transcript)
        self.entry_id = entry_id
        """The entry it tells of; None for what is no entry, and when the conversation has lost the focus."""
