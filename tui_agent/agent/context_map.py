"""Computes the map of a request: its blocks with their sizes, ages and context status.

Each block also states the cost of changing it, in tokens that the provider would have to read
again. Also compares two maps. Changes nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tui_agent.context.budget import (
    ContextSize,
    Meter,
    Weights,
    head_parts,
    within,
)
from tui_agent.context.context_status import Standing
from tui_agent.context.context_status_cache import Standings, standings
from tui_agent.context.files import call_path
from tui_agent.context.tokens import TokenCounter
from tui_agent.context.view import ContextView, EntryState, resolve
from tui_agent.lazy import frozen
from tui_agent.session.entries import AssistantEntry, Entry, ToolResultEntry
from tui_agent.session.previews import preview_of

_CACHED_SLACK = 1.02
"""Factor by which cached blocks may exceed the tokens that were read from the cache."""


@frozen
class ContextBlock:
    """One block of a request: an entry, or a part of the head.

    The head consists of the system prompt and the tool definitions. Token counts are estimates for
    the model. ``kind`` is the kind of the entry, or ``system`` or ``tool_schema`` for a part of the
    head. ``origin`` has the entry's id. ``tool`` and ``path`` are the tool and the file of a tool
    result. ``age_entries`` and ``age_steps`` count the entries and answers after the block.
    ``hidden`` is how many more tokens the block would take if its full content were restored.
    ``following`` are the request's tokens from the block's start on, which the provider reads again
    if the block is changed while its cache is warm. ``standing`` is the block's context status.
    """

    label: str
    kind: str
    origin: tuple[int, ...]
    tokens: int = 0
    state: EntryState = EntryState.LIVE
    tool: str | None = None
    path: str | None = None
    age_entries: int = 0
    age_steps: int = 0
    cached: bool = False
    hidden: int = 0
    following: int = 0
    standing: Standing = Standing.SENT
    edited: bool = False
    """Whether the user changed the content of the entry."""

    @property
    def address(self) -> tuple[str, tuple[int, ...], str]:
        """A key that identifies the block in the maps of all requests."""
        return self.kind, self.origin if not self.is_head else (), self.label

    @property
    def is_head(self) -> bool:
        """Whether the block is part of the head, that is, of the system prompt or the tools.

        The user can't edit such a block.
        """
        return self.kind in {"system", "tool_schema"}


@frozen
class ContextMap:
    """All blocks of a request in order, including hidden ones, and the request's measured size."""

    blocks: tuple[ContextBlock, ...]
    size: ContextSize

    @property
    def estimate(self) -> int:
        """The sum of the tokens of all blocks."""
        return sum(block.tokens for block in self.blocks)

    @property
    def shares(self) -> dict[Standing, int]:
        """The tokens of the history's blocks, by the blocks' context status."""
        found: dict[Standing, int] = {}
        for block in self.blocks:
            if not block.is_head:
                found[block.standing] = found.get(block.standing, 0) + block.tokens
        return found


@frozen
class MapChange:
    """The difference between two requests.

    ``came`` are the blocks only in the later request, ``went`` those only in the earlier one.
    ``changed`` are pairs (before, after) of blocks whose state differs, for example because they
    were cleared or pinned.
    """

    came: tuple[ContextBlock, ...] = ()
    went: tuple[ContextBlock, ...] = ()
    changed: tuple[tuple[ContextBlock, ContextBlock], ...] = ()


def change_between(before: ContextMap, after: ContextMap) -> MapChange:
    """Return the difference between the maps of two requests."""
    left = {block.address: block for block in before.blocks}
    came: list[ContextBlock] = []
    changed: list[tuple[ContextBlock, ContextBlock]] = []
    for address, block in {block.address: block for block in after.blocks}.items():
        earlier = left.pop(address, None)
        if earlier is None:
            came.append(block)
        elif earlier.state != block.state:
            changed.append((earlier, block))
    return MapChange(tuple(came), went=tuple(left.values()), changed=tuple(changed))


def with_cached(shown: ContextMap, tokens: int) -> ContextMap:
    """Return the map with the blocks within the request's first ``tokens`` marked as cached."""
    # Block sizes are estimates, so the last cached block may seem to end after the cached part.
    limit = tokens / max(1, shown.size.total) * shown.estimate * _CACHED_SLACK
    passed = 0
    blocks = list[ContextBlock]()
    for block in shown.blocks:
        passed += block.tokens
        blocks.append(replace(block, cached=0 < passed <= limit))
    return replace(shown, blocks=tuple(blocks))


def context_map(
    path: Sequence[Entry],
    meter: Meter,
    *,
    cached: frozenset[int] = frozenset(),
    size: ContextSize | None = None,
) -> ContextMap:
    """Return the map of the request that would follow a session path.

    ``cached`` are the ids of the entries that are probably in the provider's cache
    (``cache.cached_origins``). ``size`` is the request's size; None to measure it.
    """
    view = resolve(path)
    counter = meter.counter
    weights = Weights(view, counter, within(meter.limits, meter.settings).asked)
    measured = size or meter.measure(path)
    rows = list(_head_rows(view, weights, counter))
    rows += _history_rows(view, path, weights, counter, standings(path, view))
    rows = _within(rows, measured)
    # Round the sizes of the blocks so that they add up to the rounded total.
    total = round(sum(tokens for _, tokens in rows))
    blocks: list[ContextBlock] = []
    running = 0.0
    before = 0
    for block, tokens in rows:
        running += tokens
        upto = round(running)
        is_cached = bool(block.origin) and cached.issuperset(block.origin)
        blocks.append(
            replace(block, tokens=upto - before, cached=is_cached, following=total - before)
        )
        before = upto
    return ContextMap(blocks=tuple(blocks), size=measured)


def _within(
    rows: Sequence[tuple[ContextBlock, float]], size: ContextSize
) -> list[tuple[ContextBlock, float]]:
    """Return the blocks, with sizes scaled down if they add up to more than the request's size."""
    estimate = sum(tokens for _, tokens in rows)
    share = 1.0
    if size.is_known and 0 < size.total < estimate:
        share = size.total / estimate
    return [(block, tokens * share) for block, tokens in rows]


def _head_rows(
    view: ContextView, weights: Weights, counter: TokenCounter
) -> Iterator[tuple[ContextBlock, float]]:
    """Yield a block for each part of the head, or one block if its parts have unknown sizes."""
    total = counter.calibration.apply(weights.head())
    system = view.system
    parts = []
    if system is not None:
        parts = head_parts(system, counter)
    counted = sum(part.tokens for part in parts)
    if system is None or not counted:
        yield ContextBlock("request", "system", ()), total
        return
    for part in parts:
        kind = "tool_schema" if part.tool else "system"
        block = ContextBlock(part.label, kind, (system.id,), tool=part.tool)
        yield block, total * part.tokens / counted


def _history_rows(
    view: ContextView,
    path: Sequence[Entry],
    weights: Weights,
    counter: TokenCounter,
    found: Standings,
) -> Iterator[tuple[ContextBlock, float]]:
    ages = _ages(path)
    files = _files_of_calls(view)
    answered = view.answered()
    if view.compaction is None:
        shown = view.entries
    else:
        shown = (view.compaction, *view.entries)
    for entry in shown:
        tokens = weights.of(entry)
        state = view.state(entry.id)
        if not tokens and not (state is EntryState.DROPPED and entry.is_sent):
            continue
        if isinstance(entry, ToolResultEntry) and entry.id not in answered:
            continue
        original = view.originals.get(entry.id)
        hidden = 0
        if original is not None or not view.is_open(entry.id):
            whole = counter.stored(original or entry)
            hidden = max(0, counter.calibrated(whole - tokens))
        tool = None
        file = None
        if isinstance(entry, ToolResultEntry):
            tool = entry.tool
            file = entry.metadata.path or files.get(entry.id)
        age_entries, age_steps = ages.get(entry.id, (0, 0))
        block = ContextBlock(
            label=entry.preview or preview_of(entry),
            kind=entry.kind,
            origin=(entry.id,),
            state=state,
            standing=found.of(entry.id, entry.kind),
            tool=tool,
            path=file,
            age_entries=age_entries,
            age_steps=age_steps,
            hidden=hidden,
            edited=original is not None,
        )
        yield block, counter.calibration.apply(tokens)


def _ages(path: Sequence[Entry]) -> dict[int, tuple[int, int]]:
    ages: dict[int, tuple[int, int]] = {}
    steps = 0
    for after, entry in enumerate(reversed(path)):
        ages[entry.id] = (after, steps)
        steps += isinstance(entry, AssistantEntry)
    return ages


def _files_of_calls(view: ContextView) -> dict[int, str | None]:
    """Map each tool result's id to the file that the tool call names; None if it names no file."""
    files: dict[int, str | None] = {}
    for entry in view.entries:
        if isinstance(entry, AssistantEntry):
            for call, result in zip(entry.tool_calls, view.results.get(entry.id, ()), strict=False):
                if result is not None:
                    files[result.id] = call_path(call.arguments)
    return files
