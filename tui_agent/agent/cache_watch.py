"""Looks after each answer whether the provider read from its cache what the request before had left there."""

from tui_agent.agent.channel import EventChannel
from tui_agent.agent.events import CacheMissed
from tui_agent.context.cache import BreakCause, CacheMiss, PrefixBreak, ever_cached, missed_tokens, prefix_break
from tui_agent.context.request import ModelRequest
from tui_agent.lazy import dataclass
from tui_agent.session.entries import AssistantEntry, Usage
from tui_agent.session.session import Session


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request as it went out, the leaf it was made for, and whether the provider should have known its beginning.

    ``counted`` are its uncorrected tokens, 0 where they were counted by a rule of thumb.
    """

    request: ModelRequest
    leaf: int | None
    warm: bool = False
    counted: int = 0


class CacheWatch:
    """Compares what was reported of the requests of one session. ``miss`` is that of the last answer."""

    def __init__(self, session: Session, channel: EventChannel) -> None:
        self._session = session
        self._channel = channel
        self._answered: tuple[SentRequest, Usage | None] | None = None
        self.miss: CacheMiss | None = None

    def answered(self, sent: SentRequest, answer: AssistantEntry, *, least: int) -> None:
        """Take in an answer to a request; a miss of at least ``least`` tokens is told, 0 tells of none.

        What the user has brought about or was told before is not told again: a compaction, another model or effort,
        a cache that was cold when the message was sent.
        """
        before, self._answered = self._answered, (sent, answer.usage)
        self.miss = self._miss(before, sent, answer) if before is not None else None
        miss = self.miss
        if miss is None or not least or miss.missed < least or self._is_expected(miss, sent):
            return
        self._channel.emit(CacheMissed(miss.missed, miss.expected, answer.model, miss.cause))

    def _miss(
        self, before: tuple[SentRequest, Usage | None], sent: SentRequest, answer: AssistantEntry
    ) -> CacheMiss | None:
        found = missed_tokens(before[1], answer.usage)
        if found is None or not ever_cached(self._session.active_path(), answer.model):
            return None
        broken = self.prefix_break(before[0], sent.request)
        if not sent.warm and (broken is None or broken.cause is not BreakCause.MODEL):
            return CacheMiss(*found, BreakCause.COLD)
        if broken is None and before[0].request.effort != sent.request.effort:
            return CacheMiss(*found, BreakCause.EFFORT)
        return CacheMiss(*found, broken.cause, broken.entry_id) if broken else CacheMiss(*found, None)

    def _is_expected(self, miss: CacheMiss, sent: SentRequest) -> bool:
        if miss.cause is BreakCause.COLD:
            return not any(message.role == "tool" for message in sent.request.messages[-1:])
        return miss.cause in {BreakCause.COMPACTION, BreakCause.MODEL, BreakCause.EFFORT}

    def prefix_break(self, sent: SentRequest, new: ModelRequest) -> PrefixBreak | None:
        """Return where a request stops extending an earlier one of this session, None when it extends it."""
        path = self._session.active_path()
        on_path = sent.leaf is None or self._session.on_path(sent.leaf)
        since = [entry for entry in path if entry.id > (sent.leaf or 0)]
        return prefix_break(sent.request, new, since, moved=not on_path)
