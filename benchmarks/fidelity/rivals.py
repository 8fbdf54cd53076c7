"""Other ways to manage a context, written after their programs' and papers' descriptions; none has a recall.

OpenCode's and Pi's constants were made for windows of 128k and more, and are used as they are there. Below, where the
real programs compact without end, each is taken for its share of a 128k window. All rivals are told the exact size of
each request, which their programs estimate at four characters a token.
"""

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.fidelity.policies import FIXED, Policy, Summaries
from tui_agent.context.budget import ViewWeights
from tui_agent.context.compaction import find_cut
from tui_agent.context.files import file_operations
from tui_agent.context.truncation import OutputLimits, truncate
from tui_agent.context.view import EntryState, resolve
from tui_agent.session.entries import (
    AssistantEntry,
    CompactionEntry,
    Entry,
    PruneEntry,
    SummaryDetails,
    ToolResultEntry,
    UserEntry,
)
from tui_agent.tools.registry import tool_traits

MADE_FOR = 131_072
"""Window that the rivals' constants suit."""
_CHARS_PER_TOKEN = 4
"""How OpenCode estimates what a prune frees."""


class AppendOnly(Policy):
    """Nothing is ever taken out: the ceiling of recall, over the window sooner or later."""

    name = "append-only"

    def before_request(self) -> None:
        """Do nothing."""


class Rival(Policy):
    """Outputs of over 2,000 lines or 50 KiB are cut when they are born, as OpenCode and Pi both do."""

    reserve_tokens = 20_000

    def __init__(self, window: int, summaries: Summaries = "extractive") -> None:
        super().__init__(window, summaries)
        self._limits = OutputLimits(tokens=window)

    def admit(self, entry: Entry) -> Entry:
        """Cut a huge output."""
        if not isinstance(entry, ToolResultEntry):
            return entry
        born = truncate(entry.output, "ends" if entry.tool == "bash" else "head", self._limits)
        return (
            entry
            if born.truncation is None
            else self._counted(entry.model_copy(update={"output": born.text}))
        )

    def scaled(self, tokens: int) -> int:
        """Return a constant for this window."""
        return round(tokens * min(1.0, self.window / MADE_FOR))

    @property
    def kept(self) -> int:
        """Tokens that Pi leaves as they are; its 20,000 are no choice for a window of 16k."""
        return min(20_000, self.window // 4)

    @property
    def is_full(self) -> bool:
        """Whether the next request is over the limit."""
        return self.history + FIXED > self.window - self.scaled(self.reserve_tokens)

    def compact_before(self, keep: int) -> None:
        """Summarise all but the newest ``keep`` tokens; files are listed."""
        view = resolve(self.path)
        shown = ViewWeights(view).all()
        cut, _ = find_cut(view, shown, keep)
        if any(shown[:cut]):
            earlier = view.compaction.details if view.compaction else None
            files = file_operations(view.entries[:cut], tool_traits(), earlier)
            details = SummaryDetails(read_files=files.read, modified_files=files.modified)
            entry = self.summary(view.entries[:cut], view.entries[cut].id)
            self.change([entry.model_copy(update={"details": details})])

    def clear(self, targets: Sequence[int], freed: int) -> None:
        """Turn outputs into placeholders that say nothing."""
        self.change([PruneEntry(targets=tuple(targets), tokens_freed=freed, reason="old")])


class SlidingWindow(Rival):
    """Over the limit, the older half is forgotten without a word."""

    name = "sliding window"

    def before_request(self) -> None:
        """Forget."""
        if self.is_full:
            view = resolve(self.path)
            cut, _ = find_cut(view, ViewWeights(view).all(), self.budget // 2)
            if cut:
                nothing = CompactionEntry(
                    summary="",
                    first_kept_id=view.entries[cut].id,
                    tokens_before=self.history,
                    tokens_after=0,
                    trigger="threshold",
                )
                self.change([nothing])


class Masking(Rival):
    """Outputs older than the newest ten steps are masked, ten steps at a time; over the limit a summary, as Pi's.

    After "The Complexity Trap" (https://arxiv.org/abs/2508.21433), whose hybrid this is.
    """

    name = "masking, then a summary"
    templates = replace(Policy.templates, placeholder_pruned="[Old tool result content cleared]")
    newest = 10

    def before_request(self) -> None:
        """Mask every ten steps, compact over the limit."""
        if self.health.requests and self.health.requests % self.newest == 0:
            self._mask()
        if self.is_full:
            self.compact_before(self.kept)

    def _mask(self) -> None:
        view = resolve(self.path)
        steps, targets, freed = 0, [], 0
        for entry in reversed(view.entries):
            steps += isinstance(entry, AssistantEntry)
            if (
                steps >= self.newest
                and isinstance(entry, ToolResultEntry)
                and view.is_open(entry.id)
            ):
                targets.append(entry.id)
                freed += entry.tokens
        if targets:
            self.clear(targets, freed)


class OpenCodeLike(Rival):
    """After a run, outputs beyond the newest 40k are cleared; over the limit a summary, and the newest turns stay.

    The tail is that of version 1.18: the last two turns, or what of them fits into a quarter of the room, at least
    2,000 and at most 15,000 tokens. It is kinder than the program: the size is known before a request and not only
    after it.
    """

    name = "OpenCode-like"
    templates = replace(Policy.templates, placeholder_pruned="[Old tool result content cleared]")
    protect, minimum = 40_000, 20_000
    least_tail, most_tail, tail_turns = 2_000, 15_000, 2

    def before_request(self) -> None:
        """Prune when the user has just written, which is when a run has ended; compact over the limit."""
        if self.path and isinstance(self.path[-1], UserEntry):
            self._prune()
        if self.is_full:
            self.compact_before(self._tail())

    def _tail(self) -> int:
        usable = self.window - self.scaled(self.reserve_tokens)
        room = min(self.most_tail, max(self.scaled(self.least_tail), usable // 4))
        view, turns, tokens = resolve(self.path), 0, 0
        weights = ViewWeights(view)
        for entry in reversed(view.entries):
            tokens += weights.of(entry)
            turns += isinstance(entry, UserEntry)
            if turns == self.tail_turns:
                break
        return min(room, tokens)

    def _prune(self) -> None:
        view = resolve(self.path)
        # The program prunes before the new message is there.
        turns, seen, freed = -1, 0, 0
        targets: list[int] = []
        for entry in reversed(view.entries):
            turns += isinstance(entry, UserEntry)
            if turns < 2 or not isinstance(entry, ToolResultEntry) or entry.tool == "skill":
                continue
            if view.state(entry.id) is EntryState.PRUNED:
                break
            tokens = len(entry.output) // _CHARS_PER_TOKEN
            seen += tokens
            if seen > self.scaled(self.protect):
                freed += tokens
                targets.append(entry.id)
        if freed > self.scaled(self.minimum):
            self.clear(targets, freed)


class PiLike(Rival):
    """Over the limit, everything but the newest 20k, or a quarter of a small window, is summarised."""

    name = "Pi-like"
    reserve_tokens = 16_384

    def before_request(self) -> None:
        """Compact over the limit."""
        if self.is_full:
            self.compact_before(self.kept)


RIVALS: tuple[type[Rival], ...] = (SlidingWindow, Masking, OpenCodeLike, PiLike)
"""What this product is compared with."""
