"""Answers what a person may ask about the next request: its blocks, its text, what is cached, what broke the prefix.

Nothing here changes a session.
"""

from collections.abc import Sequence

from tui_agent.agent.context_keeper import ContextKeeper
from tui_agent.agent.ports import AgentPorts
from tui_agent.context.cache import CacheState, PrefixBreak, cached_origins, prefix_break
from tui_agent.context.context_map import ContextMap, context_map
from tui_agent.context.projection import project
from tui_agent.context.request import ModelRequest
from tui_agent.context.templates import Templates
from tui_agent.session.entries import AssistantEntry, Entry
from tui_agent.session.session import Session

_CHANGES_THE_PAST = frozenset({"compaction", "prune", "context_edit", "model_change", "system"})


class ContextInspector:
    """Looks at the context of one session."""

    def __init__(self, session: Session, ports: AgentPorts, context: ContextKeeper) -> None:
        self._session = session
        self._ports = ports
        self._context = context
        self._templates = Templates.load(ports.prompt)
        self._made: tuple[tuple[int | None, str], ModelRequest] | None = None

    def map(self) -> ContextMap:
        """Return the next request block by block."""
        model, directory = self._context.model, self._ports.directory
        state = self.cache_state()
        cached: frozenset[int] = frozenset()
        if state.warm:
            cached = cached_origins(self._remembered(), self.next_request(), state)
        return context_map(
            self._session.active_path(),
            directory.limits(model),
            self._context.settings(),
            directory.counter(model),
            cached=cached,
            size=self._context.size(),
        )

    def next_request(self) -> ModelRequest:
        """Return the next request as it would be sent now."""
        asked = self._session.leaf, self._context.model
        if self._made is None or self._made[0] != asked:
            self._made = asked, self._context.next_request()
        return self._made[1]

    @property
    def last_request(self) -> ModelRequest | None:
        """The last request that went out since the session was opened."""
        return None if self._context.sent is None else self._context.sent.request

    def cache_state(self) -> CacheState:
        """Return whether the provider can be expected to remember the last request."""
        return self._context.cache_state()

    def prefix_break(self) -> PrefixBreak | None:
        """Return where the next request stops extending the last one sent, None when it extends it or is the first."""
        sent = self._context.sent
        if sent is None:
            return None
        path = self._session.active_path()
        on_path = sent.leaf is None or any(entry.id == sent.leaf for entry in reversed(path)) or self._passed(sent.leaf)
        since = [entry for entry in path if entry.id > (sent.leaf or 0)]
        return prefix_break(sent.request, self.next_request(), since, moved=not on_path)

    def _passed(self, leaf: int) -> bool:
        """Whether an entry that a request no longer depends on is still on the way from the root to the leaf."""
        return any(header.id == leaf for header in self._session.path_headers())

    def _remembered(self) -> ModelRequest | None:
        """Return the last request, or what it must have been when another program's run sent it."""
        if self._context.sent is not None:
            return self._context.sent.request
        path = self._session.active_path()
        before = _before_last_answer(path)
        return (
            None
            if before is None
            else project(before, self._ports.directory.traits(self._context.model), self._templates)
        )


def _before_last_answer(path: Sequence[Entry]) -> Sequence[Entry] | None:
    """Return the path the last answer was made from; None when what came after it changed the past."""
    for place in range(len(path) - 1, -1, -1):
        if path[place].kind in _CHANGES_THE_PAST:
            return None
        if isinstance(path[place], AssistantEntry):
            return path[:place]
    return None
