"""Predicts whether the provider has a request cached, what it has cached, and why a cache broke.

This module also decides which cache lifetime a request asks for (`cache_ttl`), and whether a
request missed the cache (`missed_tokens`). ``agent.context_keeper`` remembers sent requests and
reports a miss.

While a provider has a request cached, it can reuse the beginning of the next request to the same
model, as far as both are the same byte for byte. This beginning is called a prefix.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import islice, pairwise
from operator import attrgetter
from typing import Literal

from tui_agent.context.request import CacheTtl, ContentText, ModelRequest
from tui_agent.context.settings import CacheSettings
from tui_agent.lazy import frozen
from tui_agent.session.entries import INTERRUPTED_OUTPUT, AssistantEntry, Entry
from tui_agent.session.records import Reported

_FIVE_MINUTES = 300
_HOUR = 3_600
"""The cache lifetimes that a request can ask for, in seconds. A lifetime begins again each time the
cache is used."""
_READ = 0.1
_WRITE = 1.25
_HOUR_WRITE = 2.0
"""Prices of a token that is read from the cache, cached for five minutes, or cached for an hour,
relative to the price of an uncached token (platform.claude.com/docs, "Prompt caching")."""
_SENT = attrgetter("role", "content", "tool_calls", "call_id", "reasoning")
"""Returns the fields of a message that are sent to a provider."""
_REQUESTS = 200
"""Number of newest requests that are compared to find the cheaper cache lifetime."""

MISSED_SHARE = 0.5
"""A request counts as a cache miss only if at least this share of the cached tokens was not read
from the cache, because providers round numbers and drop a few tokens."""

MISSED_LEAST = 2_000
"""A request counts as a cache miss only if at least this many tokens were not read from the cache,
because providers don't cache shorter prefixes."""


class BreakCause(StrEnum):
    """The reason why a request did not continue the request that the provider had cached."""

    MODEL = "model"
    """The model changed, and the new model has no cache of this conversation."""
    EFFORT = "effort"
    """The effort changed. OpenAI and Anthropic have a separate cache for each level. The request's
    text is the same, so ``prefix_break`` never returns this cause."""
    TOOLS = "tools"
    """The tool definitions changed. They precede everything else in a request."""
    HEAD = "head"
    """The system message or the opening message changed. Every request begins with these."""
    COMPACTION = "compaction"
    PRUNE = "prune"
    EDIT = "edit"
    """The user cleared, hid, pinned, edited or restored an entry."""
    RESULT = "result"
    """The result of a tool call replaced its placeholder."""
    MOVED = "moved"
    """The user moved to another entry of the session tree and continued from there."""
    COLD = "cold"
    """The earlier request was no longer cached, because its lifetime had expired."""
    UNKNOWN = "unknown"
    """No entry on the path explains the break. This means that the program has a defect."""


@frozen
class PrefixBreak:
    """The first place at which a request differs from an earlier request.

    ``part`` and ``index`` say which tool or message differs; with the part "model", ``index`` is 0.
    If the new request only lacks the earlier request's last tools or messages, ``index`` is the
    number of tools or messages that it has. ``origin`` contains the ids of the entries that the new
    request's message was made from; it is empty if there is no such message. ``entry_id`` is the id
    of the entry that caused the break, None if unknown.
    """

    part: Literal["model", "tool", "message"]
    index: int
    cause: BreakCause
    entry_id: int | None
    origin: tuple[int, ...]


@frozen
class CacheState:
    """Whether the provider still has the last request cached, and for how many seconds more."""

    warm: bool
    seconds_left: int


@frozen
class CacheMiss:
    """A request for which the provider read much less from its cache than expected.

    ``expected`` and ``read`` are tokens. ``cause`` is None if the miss is the provider's fault,
    that is, if the request continued the previous request and the cache had not expired.
    ``entry_id`` is the id of the entry that broke the prefix, None if unknown or if no entry did.
    """

    expected: int
    read: int
    cause: BreakCause | None
    entry_id: int | None = None

    @property
    def missed(self) -> int:
        """Number of tokens that should have been read from the cache, but were not."""
        return self.expected - self.read


CAUSE_OF_KIND = {
    "compaction": BreakCause.COMPACTION,
    "prune": BreakCause.PRUNE,
    "context_edit": BreakCause.EDIT,
}
"""The cause of a cache break for each kind of entry that changes earlier entries."""


def prefix_break(
    previous: ModelRequest,
    new: ModelRequest,
    appended: Sequence[Entry] = (),
    *,
    moved: bool = False,
) -> PrefixBreak | None:
    """Return where and why ``new`` stops continuing ``previous``; None if it continues to the end.

    ``appended`` are the entries of the new request's path that the earlier path did not have,
    oldest first. ``moved`` says that the earlier path contained entries that the new one does not
    contain.
    """
    found = _first_difference(previous, new)
    if found is None:
        return None
    part, index = found
    newest: dict[str, int] = {entry.kind: entry.id for entry in appended}
    cause, entry_id = _cause(previous, new, found, newest)
    if moved and part == "message" and cause is not BreakCause.HEAD:
        cause = BreakCause.MOVED
        entry_id = None
    origin: tuple[int, ...] = ()
    if part == "message" and index < len(new.messages):
        origin = new.messages[index].origin
    return PrefixBreak(part=part, index=index, cause=cause, entry_id=entry_id, origin=origin)


def cached_origins(
    previous: ModelRequest | None, new: ModelRequest, state: CacheState
) -> frozenset[int]:
    """Return the ids of the entries that the provider should have cached when it receives ``new``.

    ``previous`` is the request that was sent before, None if there is none.
    """
    if previous is None or not state.warm:
        return frozenset()
    found = _first_difference(previous, new)
    if found is not None and found[0] != "message":
        return frozenset()
    end = len(previous.messages) if found is None else found[1]
    origins: set[int] = set()
    for message in new.messages[:end]:
        origins.update(message.origin)
    return frozenset(origins)


def cache_state(
    last_used_at: int | None, now: int, settings: CacheSettings, *, ttl: CacheTtl = "5m"
) -> CacheState:
    """Return the state, at ``now``, of the cache of a request sent at ``last_used_at``.

    Both are in milliseconds since the epoch; ``last_used_at`` is None if no request was sent.
    ``ttl`` is the lifetime that the request asked for.
    """
    if last_used_at is None:
        return CacheState(warm=False, seconds_left=0)
    left = lifetime(ttl, settings) - max(0, now - last_used_at) / 1_000
    return CacheState(warm=left > 0, seconds_left=max(0, round(left)))


def lifetime(ttl: CacheTtl, settings: CacheSettings) -> int:
    """Return how many seconds a provider caches a request that asked for ``ttl``."""
    if ttl == "1h":
        return _HOUR
    return settings.ttl_seconds


def cache_ttl(path: Sequence[Entry], settings: CacheSettings, now: int | None = None) -> CacheTtl:
    """Return the cache lifetime that a request sent at ``now`` asks for.

    This is the lifetime in the settings. With "auto", it is an hour if, given the pauses between
    the path's requests, an hour would have cost less than five minutes; otherwise it is five
    minutes. Only the newest `_REQUESTS` requests are compared. The choice changes after a pause of
    more than five minutes, so that a prefix is not requested with another lifetime while it is
    cached; it also changes when the last such pause is too old to be compared. ``now`` is in
    milliseconds since the epoch; None means the time of the path's last request.
    """
    if settings.ttl != "auto":
        return settings.ttl
    answers = (entry for entry in reversed(path) if isinstance(entry, AssistantEntry))
    sent: list[_Sent] = []
    for entry in islice(answers, _REQUESTS):
        tokens = entry.usage.prompt if entry.usage else entry.estimate
        sent.insert(0, _Sent(entry.started_at or entry.created_at, entry.model, tokens))
    if now is not None and sent:
        sent.append(replace(sent[-1], at=now))
    while len(sent) > 1 and sent[-1].at - sent[-2].at <= _FIVE_MINUTES * 1_000:
        sent.pop()
    if len(sent) < 2:
        return "5m"
    if _price(sent, _HOUR, _HOUR_WRITE) < _price(sent, _FIVE_MINUTES, _WRITE):
        return "1h"
    return "5m"


@frozen
class _Sent:
    """A sent request: the time in milliseconds since the epoch, the model and the tokens."""

    at: int
    model: str
    tokens: int


def _price(sent: Sequence[_Sent], kept_seconds: int, write: float) -> float:
    """Return what the requests would have cost if each had been cached for ``kept_seconds``.

    The unit is the price of an uncached token; ``write`` is the price of writing one token to the
    cache.
    """
    price = write * sent[0].tokens
    for before, after in pairwise(sent):
        is_warm = before.model == after.model and (after.at - before.at) / 1_000 <= kept_seconds
        read = 0
        if is_warm:
            read = min(before.tokens, after.tokens)
        price += _READ * read + write * (after.tokens - read)
    return price


def ever_cached(path: Sequence[Entry], model: str) -> bool:
    """Return True if the provider reported tokens read from or written to a cache for a model.

    All answers of the model on the path are examined.
    """
    for entry in reversed(path):
        if not isinstance(entry, AssistantEntry) or entry.model != model or entry.usage is None:
            continue
        if entry.usage.cache_read or entry.usage.cache_write:
            return True
    return False


def missed_tokens(before: Reported | None, now: Reported | None) -> tuple[int, int] | None:
    """Return how many tokens of a request should have come from the cache, and how many did.

    ``before`` is the usage reported for the previous request, ``now`` for the request itself; each
    is None if the provider didn't report it. Returns None if one of them is missing, or if the
    request did not miss the cache.
    """
    if before is None or now is None:
        return None
    expected = min(before.prompt, now.prompt)
    missed = expected - now.cache_read
    if missed >= max(MISSED_LEAST, MISSED_SHARE * expected):
        return (expected, now.cache_read)
    return None


def _first_difference(
    previous: ModelRequest, new: ModelRequest
) -> tuple[Literal["model", "tool", "message"], int] | None:
    if previous.model != new.model:
        return "model", 0
    if previous.tools != new.tools:
        pairs = zip(previous.tools, new.tools, strict=False)
        return "tool", next(
            (at for at, (old, now) in enumerate(pairs) if old != now), len(new.tools)
        )
    for at, old in enumerate(previous.messages):
        if at >= len(new.messages) or _SENT(old) != _SENT(new.messages[at]):
            return "message", at
    return None


def _cause(
    previous: ModelRequest, new: ModelRequest, found: tuple[str, int], newest: Mapping[str, int]
) -> tuple[BreakCause, int | None]:
    """Return the cause of a difference, and the id of the entry that caused it (None if unknown).

    ``newest`` contains the id of the newest appended entry of each kind.
    """
    part, index = found
    if part == "model":
        return BreakCause.MODEL, newest.get("model_change")
    if part == "tool":
        return BreakCause.TOOLS, newest.get("system")
    pair = (previous.messages[index], *new.messages[index : index + 1])
    if any(message.role == "system" for message in pair) or (index == 1 and "system" in newest):
        return BreakCause.HEAD, newest.get("system")
    is_stand_in = pair[0].role == "tool" and pair[0].content == (ContentText(INTERRUPTED_OUTPUT),)
    if is_stand_in and pair[-1].role == "tool":
        return BreakCause.RESULT, newest.get("tool_result")
    for kind, cause in CAUSE_OF_KIND.items():
        if kind in newest:
            return cause, newest[kind]
    return BreakCause.UNKNOWN, None
