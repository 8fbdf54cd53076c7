"""The conversation pane: one line-rendered widget over the entries of a session. Start with :class:`Transcript`."""

from tui_agent.ui.widgets.transcript.source import EntrySource
from tui_agent.ui.widgets.transcript.transcript import Transcript

__all__ = ["EntrySource", "Transcript"]
