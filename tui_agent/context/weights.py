"""How much of the window each entry of a view takes, for plans; measuring a request is the budget's work."""

from collections.abc import Callable

from tui_agent.context.view import ContextView, EntryState, is_message
from tui_agent.session.entries import AssistantEntry, Entry, ToolResultEntry

PLACEHOLDER_TOKENS = 40
"""About what a placeholder takes."""
_CHARS_PER_TOKEN = 3
"""On the low side: a plan that frees a little more than it says does no harm."""

CountEntry = Callable[[Entry], int]
"""Counts an entry as it was appended, in tokens."""


def stored_tokens(entry: Entry) -> int:
    """Return the estimate the entry was stored with."""
    return entry.tokens


class ViewWeights:
    """Weighs the entries of one view."""

    def __init__(self, view: ContextView, count: CountEntry = stored_tokens) -> None:
        self._view = view
        self._count = count
        self._answered = view.answered()

    def of(self, entry: Entry) -> int:
        """Return the tokens the entry takes as the model sees it; 0 when it is not shown at all."""
        if not is_message(entry) or entry.kind == "compaction" or not self.is_paired(entry):
            return 0
        state = self._view.state(entry.id)
        if state is EntryState.DROPPED:
            return 0
        if state in (EntryState.LIVE, EntryState.PINNED):
            return self._count(entry)
        if isinstance(entry, AssistantEntry) and state is EntryState.PRUNED:
            return self._count(entry)
        chars = self._view.kept_chars.get(entry.id, 0) + len(self._view.notes.get(entry.id, ""))
        return min(self._count(entry), PLACEHOLDER_TOKENS + chars // _CHARS_PER_TOKEN)

    def all(self) -> list[int]:
        """Return what each entry of the view takes, in order."""
        return [self.of(entry) for entry in self._view.entries]

    def is_paired(self, entry: Entry) -> bool:
        """Whether the entry is no tool result, or one that answers a call."""
        return not isinstance(entry, ToolResultEntry) or entry.id in self._answered

    def has_output(self, entry: Entry) -> bool:
        """Whether the model sees output of this tool result, whole or cut, that it may lose."""
        if not isinstance(entry, ToolResultEntry) or entry.id not in self._answered:
            return False
        state = self._view.state(entry.id)
        return state is EntryState.LIVE or (state is EntryState.PRUNED and entry.id in self._view.kept_chars)
