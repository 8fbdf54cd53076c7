"""Computes what screens show about requests: blocks, text, timeline, cached part, cache breaks.

Nothing here changes a session. Requests are built by `ContextKeeper`; here they are measured,
explained and cached for screens. ``cache_pings`` and ``app.cold_cache`` use some of it, too.
"""

import asyncio
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace

from tui_agent.agent.context_keeper import ContextKeeper
from tui_agent.agent.context_map import ContextBlock, ContextMap, context_map, with_cached
from tui_agent.agent.ports import AgentPorts
from tui_agent.agent.timeline import (
    CHANGING_KINDS,
    ModelScale,
    PathShape,
    Step,
    marks_after,
    steps_of,
)
from tui_agent.context.budget import Weights, within
from tui_agent.context.cache import (
    CacheState,
    PrefixBreak,
    cached_origins,
    ever_cached,
    lifetime,
)
from tui_agent.context.context_status import Standing
from tui_agent.context.context_status_cache import Standings, shares
from tui_agent.context.projection import project
from tui_agent.context.pruning import Moment
from tui_agent.context.request import ModelRequest
from tui_agent.context.templates import Templates
from tui_agent.context.view import resolve
from tui_agent.lazy import frozen
from tui_agent.session.entries import AssistantEntry, CompactionEntry, Entry, PruneEntry, kinds
from tui_agent.session.path_queries import place_of_newest
from tui_agent.session.records import Outlines
from tui_agent.session.session import Session

ROOM_KINDS = kinds(lambda kind: kind.frees_room)
"""Kinds of entries that make the next request smaller."""


@frozen
class RoomMade:
    """How often a session path was compacted and pruned, and the tokens that pruning freed.

    ``newest`` is the last compaction; None if there is none.
    """

    compactions: int = 0
    prunes: int = 0
    freed: int = 0
    newest: CompactionEntry | None = None

    @property
    def sentence(self) -> str:
        """A sentence for the user about the compactions and prunes so far; "" without any."""
        parts = []
        if self.newest is not None:
            times = _times(self.compactions)
            sizes = (
                f"{self.newest.tokens_before:,} → {self.newest.tokens_after:,} tokens of history"
            )
            parts.append(f"compacted {times}, last at #{self.newest.id} ({sizes})")
        if self.prunes:
            times = _times(self.prunes)
            parts.append(f"cleared old outputs {times} ({self.freed:,} tokens)")
        if parts:
            return f"So far {', '.join(parts)}."
        return ""


def room_made(path: Iterable[Entry]) -> RoomMade:
    """Return how often a path was compacted and pruned, and the tokens that pruning freed."""
    made = RoomMade()
    for entry in path:
        if isinstance(entry, CompactionEntry):
            made = replace(made, compactions=made.compactions + 1, newest=entry)
        elif isinstance(entry, PruneEntry):
            freed = made.freed + entry.tokens_freed
            made = replace(made, prunes=made.prunes + 1, freed=freed)
    return made


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


class ContextInspector:
    """Computes what screens show about the context of one session.

    Caches results while they are valid.
    """

    def __init__(self, session: Session, ports: AgentPorts, context: ContextKeeper) -> None:
        self._session = session
        self._ports = ports
        self._context = context
        self._templates = Templates.load(ports.prompt)
        self._standings = Standings()
        self._blocks: tuple[tuple[object, ...], dict[int, ContextBlock]] | None = None
        self._shares: tuple[tuple[object, ...], Mapping[Standing, int]] | None = None
        self._made: tuple[tuple[object, ...], ModelRequest] | None = None

    def map(self) -> ContextMap:
        """Return the map of the next request, that is, its blocks with sizes and context status."""
        meter = self._ports.context_meter(self._context.model)
        state = self._context.cache_state()
        cached: frozenset[int] = frozenset()
        if state.warm:
            cached = cached_origins(self._remembered(), self.next_request(), state)
        return context_map(self._context.path(), meter, cached=cached, size=self._context.size())

    async def timeline(self) -> list[Step]:
        """Return the requests of the session path, oldest first. The last one is the next request.

        Requests of unknown size, as in imported sessions, are left out.
        """
        session = self._session
        outline = self._session.path_outline()
        returns = session.returns()
        now = self._context.size()
        wanted = _of_kinds(outline, CHANGING_KINDS)
        next_one = Step(
            None,
            session.leaf,
            0,
            model=self._context.model,
            head=now.fixed,
            total=now.total,
            window=now.window,
            exact=not now.estimated,
        )

        def look() -> list[Step]:
            shape = PathShape(
                outline.ids, session.reader.requests(), session.reader.load(wanted), returns
            )
            steps = self._steps_of(shape)
            marks = marks_after(shape, steps[-1].answer if steps else None)
            return [*steps, next_one._replace(marks=marks)]

        return await asyncio.to_thread(look)

    async def left_steps(self) -> list[Step]:
        """Return the answered requests of all other branches, including subagents and race runners.

        Requests are grouped by branch: the branch with the newest answer comes first. Within a
        branch, the oldest request comes first.
        """
        return await asyncio.to_thread(self._left_steps, set(self._session.path_outline().ids))

    def _left_steps(self, seen: set[int]) -> list[Step]:
        reader = self._session.reader
        spine = reader.spine()
        requests = {request.id: request for request in reader.requests()}
        found: list[Step] = []
        for leaf in sorted(requests, reverse=True):
            # Begin with the request before the branch, because the branch's first request is
            # compared with it.
            ids: list[int] = []
            at: int | None = leaf
            while at is not None and not (at in seen and at in requests):
                ids.append(at)
                at = spine.parent(at)
            if not ids or leaf in seen:
                continue
            before = [] if at is None else [at]
            ids = [*before, *reversed(ids)]
            seen.update(ids)
            changing = [one for one in ids if spine.kind(one) in CHANGING_KINDS]
            sent = [requests[one] for one in ids if one in requests]
            shape = PathShape(ids, sent, reader.load(changing), ())
            found += [step for step in self._steps_of(shape) if step.answer != at]
        return found

    def _steps_of(self, shape: PathShape) -> list[Step]:
        directory = self._ports.directory
        settings = self._ports.settings

        def scale_of(model: str) -> ModelScale:
            window = within(directory.limits(model), settings).window
            return ModelScale(window, directory.counter(model).calibrated)

        cold_seconds = lifetime(self._context.cache_ttl(), self._context.settings().cache)
        return steps_of(shape, scale_of, cold_seconds)

    async def map_of(self, step: Step) -> ContextMap:
        """Return the context map of the request at one step of the timeline."""
        if step.answer is None:
            return self.map()
        meter = self._ports.context_meter(step.model)

        def look() -> ContextMap:
            path = self._session.reader.load_active(step.leaf)
            size = replace(
                meter.measure(path),
                fixed=step.head,
                history=step.history,
                total=step.total,
                estimated=not step.exact,
            )
            return with_cached(context_map(path, meter, size=size), step.cached)

        return await asyncio.to_thread(look)

    def map_at(self, leaf: int) -> tuple[str, ContextMap]:
        """Return the model at the entry ``leaf``, and the map of the request that would follow it.

        May be called in any thread.

        Raises:
            EntryNotFound: there is no such entry.
        """
        path = self._session.reader.load_active(leaf)
        model = resolve(path).model or self._context.model
        return model, context_map(path, self._ports.context_meter(model))

    def request_of(self, step: Step) -> ModelRequest:
        """Rebuild a request of the timeline from the session path, up to its last entry."""
        return project(
            self._session.reader.load_active(step.leaf),
            self._ports.directory.traits(step.model),
            self._templates,
        )

    def block_of(self, entry_id: int) -> ContextBlock | None:
        """Return the block of an entry in the next request; None if the request lacks the entry."""
        asked = self._session.leaf, self._context.model
        if self._blocks is None or self._blocks[0] != asked:
            blocks: dict[int, ContextBlock] = {}
            for block in self.map().blocks:
                if block.origin and not block.is_head:
                    blocks[block.origin[0]] = block
            self._blocks = (asked, blocks)
        return self._blocks[1].get(entry_id)

    def standings(self) -> Standings:
        """Return the context status of the entries on the session path."""
        self._standings = self._standings.grown(self._session.active_path())
        return self._standings

    def shares(self) -> Mapping[Standing, int]:
        """Return the number of tokens of the history's blocks for each context status.

        Blocks that are sent unchanged don't count.
        """
        found = self.standings()
        model = self._context.model
        counter = self._ports.directory.counter(model)
        known = (found.compaction, found.newest_edit, model, counter.calibration)
        if self._shares is None or self._shares[0] != known:
            taken: dict[Standing, int] = {}
            if found.compaction or found.edited:
                view = resolve(self._session.active_path())
                asked = self._ports.directory.limits(model).asked
                taken = shares(view, found, Weights(view, counter, asked))
            shown = {standing: counter.calibrated(tokens) for standing, tokens in taken.items()}
            self._shares = known, shown
        return self._shares[1]

    def room_made(self) -> RoomMade:
        """Return how many compactions and prunes there are on the current session path."""
        outline = self._session.path_outline()
        return room_made(self._session.entries(_of_kinds(outline, ROOM_KINDS)))

    def next_request(self) -> ModelRequest:
        """Return the next request, which is the same object as before if nothing has changed."""
        asked = (
            self._session.leaf,
            self._context.model,
            self._context.effort.level,
            self._context.preview(),
        )
        if self._made is None or self._made[0] != asked:
            self._made = asked, self._context.next_request()
        return self._made[1]

    def known_cache(self) -> CacheState | None:
        """Return the state of the provider's cache; None if the provider has never reported one."""
        reported = ever_cached(self._session.active_path(), self._context.model)
        if reported:
            return self._context.cache_state()
        return None

    async def forgotten_tokens(self) -> int:
        """Return the tokens that the provider has to read again because its cache is cold.

        0 if the cache is warm, if the provider never reported a cache, if the setting
        ``cache.warn_tokens`` is 0, or if there are fewer tokens than this setting. Tool outputs
        that will be pruned before the request don't count.
        """
        total = self.cached_tokens(warm=False)
        least = self._context.settings().cache.warn_tokens
        plan = None
        if total:
            plan = await self._context.plan_prune(Moment(cache_cold=True))
        left = total - (plan.tokens_freed if plan is not None else 0)
        return left if left >= least else 0

    def cached_tokens(self, *, warm: bool = True) -> int:
        """Return the tokens of the whole next request if the provider's cache is warm, else 0.

        With ``warm`` False, return them if the cache is cold, else 0. Also 0 if the provider never
        reported a cache, if the setting ``cache.warn_tokens`` is 0, or if there are fewer tokens
        than this setting.
        """
        state = self.known_cache()
        least = self._context.settings().cache.warn_tokens
        if not least or state is None or state.warm is not warm:
            return 0
        total = self._context.size().total
        return total if total >= least else 0

    def prefix_break(self) -> PrefixBreak | None:
        """Return where and why the next request does not extend the last one sent.

        None if it does, or if none was sent since the program started.
        """
        sent = self._context.sent
        if sent is None:
            return None
        return self._context.watch.prefix_break(sent, self.next_request())

    def _remembered(self) -> ModelRequest | None:
        """Return the last request; rebuilt from the path if an earlier run of the program sent it.

        None if there is no answer yet, or if an entry after the last answer may have changed what
        an earlier run of the program sent.
        """
        if self._context.sent is not None:
            return self._context.sent.request
        path = self._session.active_path()
        # Entries after the last answer may have changed how earlier ones are sent.
        place = place_of_newest(path, AssistantEntry)
        if place is None or any(entry.breaks_prefix for entry in path[place:]):
            return None
        return project(
            path[:place], self._ports.directory.traits(self._context.model), self._templates
        )


def _of_kinds(outline: Outlines, kinds: Container[str]) -> list[int]:
    rows = zip(outline.ids, outline.kinds, strict=True)
    return [entry_id for entry_id, kind in rows if kind in kinds]
