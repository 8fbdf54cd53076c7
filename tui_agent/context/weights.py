"""How much of the window each entry of a view takes, for plans; measuring a request is the budget's work."""

from collections.abc import Callable, Sequence

from tui_agent.context.arguments import parse_object, strings_in
from tui_agent.context.truncation import utf8_size
from tui_agent.context.view import ContextView, EntryState
from tui_agent.session.entries import AssistantEntry, Entry, ImagePart, ShellEntry, ToolResultEntry, UserEntry

PLACEHOLDER_TOKENS = 40
"""About what a placeholder takes."""
LONG_ARGUMENT_CHARS = 200
"""Texts in arguments longer than this are cut in an answer that was cleared or masked."""
_BYTES_PER_TOKEN = 3
"""On the low side for prose, code and Chinese alike: a plan that frees a little more than it says does no harm."""

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
        if not entry.is_sent or entry.kind == "compaction" or not self.is_paired(entry):
            return 0
        state = self._view.state(entry.id)
        if state is EntryState.DROPPED:
            return 0
        if state in (EntryState.LIVE, EntryState.PINNED):
            return self._count(entry)
        if isinstance(entry, AssistantEntry) and state is EntryState.PRUNED:
            kept = self._view.kept_chars.get(entry.id)
            return round(self._count(entry) * (1 - long_share(entry, kept or LONG_ARGUMENT_CHARS, words=bool(kept))))
        note = len(self._view.notes.get(entry.id, "")) // _BYTES_PER_TOKEN
        return min(self._count(entry), PLACEHOLDER_TOKENS + note + self._left(entry, state))

    def _left(self, entry: Entry, state: EntryState) -> int:
        """Return the tokens of the text that stays beside a placeholder."""
        match entry:
            case UserEntry() if state is EntryState.PRUNED:
                most = self._view.kept_chars.get(entry.id)
                texts = (part.text[:most] for part in entry.parts if not isinstance(part, ImagePart))
                return sum(map(utf8_size, texts)) // _BYTES_PER_TOKEN
            case ToolResultEntry() | ShellEntry():
                kept = min(len(entry.output), self._view.kept_chars.get(entry.id, 0))
                return utf8_size(entry.output[:kept]) // _BYTES_PER_TOKEN
            case _:
                return 0

    def all(self) -> list[int]:
        """Return what each entry of the view takes, in order."""
        return [self.of(entry) for entry in self._view.entries]

    def is_paired(self, entry: Entry) -> bool:
        """Whether the entry is no tool result, or one that answers a call."""
        return not isinstance(entry, ToolResultEntry) or entry.id in self._answered

    def is_live(self, entry: Entry) -> bool:
        """Whether nothing was done to the entry yet."""
        return self._view.state(entry.id) is EntryState.LIVE

    def has_output(self, entry: Entry) -> bool:
        """Whether the model sees output of this tool result, whole or cut, that it may lose."""
        if not isinstance(entry, ToolResultEntry) or entry.id not in self._answered:
            return False
        state = self._view.state(entry.id)
        return state is EntryState.LIVE or (state is EntryState.PRUNED and entry.id in self._view.kept_chars)


def too_large(entries: Sequence[Entry], tokens: Sequence[int], most: int) -> str:
    """Return a sentence that names the largest entry when it alone takes more than ``most`` tokens, else ""."""
    largest = max(range(len(entries)), key=tokens.__getitem__, default=None)
    if largest is None or tokens[largest] <= most:
        return ""
    entry = entries[largest]
    return f"#{entry.id} ({entry.kind.replace('_', ' ')}) alone takes {tokens[largest]:,}: drop or mask it."


def long_share(entry: AssistantEntry, keep_chars: int, *, words: bool = False) -> float:
    """Return the share of an answer that is beyond the first ``keep_chars`` characters of a text in its arguments.

    With ``words`` what the model said counts too. 0 where no text is much longer.
    """
    texts = [text for call in entry.tool_calls for text in strings_in(parse_object(call.arguments))]
    long = [*texts, entry.text] if words else texts
    excess = sum(len(text) - keep_chars for text in long if len(text) > keep_chars * 5 // 4)
    return excess / (sum(map(len, texts)) + len(entry.text)) if excess else 0.0
