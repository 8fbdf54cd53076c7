"""The provider's prompt cache: whether it is warm, how much of a request it holds, and why its prefix broke.

A provider can reuse the part of a request that is the same, byte for byte, as the start of an
earlier one to the same model, while it remembers it.
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
"""Seconds a cache mark can ask for; each use restarts them."""
_READ = 0.1
_WRITE = 1.25
_HOUR_WRITE = 2.0
"""Price of a token read from the cache, and written to it for each of these times, in tokens that
aren't cached (platform.claude.com/docs, "Prompt caching")."""
_SENT = attrgetter("role", "content", "tool_calls", "call_id", "reasoning")
"""The fields of a message that a provider is sent."""
_REQUESTS = 200
"""Newest requests that are looked at to choose between them."""

MISSED_SHARE = 0.5
"""Share of the cached tokens that has to be missed to be reported: providers round and forget a
little on their own."""

MISSED_LEAST = 2_000
"""Tokens that have to be missed to be reported; below a provider's smallest cacheable prefix
nothing is cached."""


class BreakCause(StrEnum):
    """Why a request does not extend the one before it."""

    MODEL = "model"
    """Another model has no cache of this conversation."""
    EFFORT = "effort"
    """OpenAI and Anthropic keep a cache for each level of thinking; others don't, so this alone
    breaks no prefix."""
    TOOLS = "tools"
    """The tools changed; they stand before everything else."""
    HEAD = "head"
    """The system message or the opening changed."""
    COMPACTION = "compaction"
    PRUNE = "prune"
    EDIT = "edit"
    """The user masked, dropped, pinned or restored something."""
    RESULT = "result"
    """A tool's result took the place of its stand-in."""
    MOVED = "moved"
    """The conversation goes on from another place in the tree."""
    COLD = "cold"
    """The provider forgot it: too much time had passed."""
    UNKNOWN = "unknown"
    """Nothing on the path explains it: a defect."""


@frozen
class PrefixBreak:
    """Where a request stopped extending an earlier one.

    ``part`` and ``index`` name the first piece that differs (``index`` equals their number when the
    new request just ends early), ``origin`` the entries it came from, ``entry_id`` the entry that
    caused it.
    """

    part: Literal["model", "tool", "message"]
    index: int
    cause: BreakCause
    entry_id: int | None
    origin: tuple[int, ...]


@frozen
class CacheState:
    """Whether the provider still remembers the last request.

    ``seconds_left`` is 0 when it does not.
    """

    warm: bool
    seconds_left: int


@frozen
class CacheMiss:
    """The provider read much less from its cache than the request before had left there.

    ``expected`` and ``read`` are tokens, ``cause`` is the known reason: None when the request did
    extend the one before and came in time. ``entry_id`` is the entry that broke the prefix.
    """

    expected: int
    read: int
    cause: BreakCause | None
    entry_id: int | None = None

    @property
    def missed(self) -> int:
        """Tokens read again that could have come from the cache."""
        return self.expected - self.read


CAUSE_OF_KIND = {
    "compaction": BreakCause.COMPACTION,
    "prune": BreakCause.PRUNE,
    "context_edit": BreakCause.EDIT,
}
"""Why an entry that changes the model's view of others breaks the prefix."""


def prefix_break(
    previous: ModelRequest,
    new: ModelRequest,
    appended: Sequence[Entry] = (),
    *,
    moved: bool = False,
) -> PrefixBreak | None:
    """Return where and why ``new`` does not extend ``previous``, None when it does.

    ``appended`` are the entries on the new request's path that were not on the earlier one's,
    oldest first; ``moved`` says that the earlier path had entries the new one has not.
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
    """Return the entries whose messages in ``new`` the provider can be expected to remember."""
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
    """Return whether a prefix used at ``last_used_at`` is still cached at ``now`` (milliseconds since the epoch).

    ``ttl`` is the time the last request asked for.
    """
    if last_used_at is None:
        return CacheState(warm=False, seconds_left=0)
    left = lifetime(ttl, settings) - max(0, now - last_used_at) / 1_000
    return CacheState(warm=left > 0, seconds_left=max(0, round(left)))


def lifetime(ttl: CacheTtl, settings: CacheSettings) -> int:
    """Return the seconds a provider keeps a prefix that was asked to be kept so long."""
    if ttl == "1h":
        return _HOUR
    return settings.ttl_seconds


def cache_ttl(path: Sequence[Entry], settings: CacheSettings, now: int | None = None) -> CacheTtl:
    """Return how long the request made at ``now`` asks the provider to keep it.

    Without it, the last one.

    ``auto`` takes the hour where the gaps between the requests of the path would have made it
    cheaper, and changes its mind only after a gap that was too long for five minutes: a prefix
    still cached is never asked for in another way. Times are milliseconds since the epoch.
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
    """A request that was answered: when it was sent, to which model, and how many tokens it had."""

    at: int
    model: str
    tokens: int


def _price(sent: Sequence[_Sent], kept_seconds: int, write: float) -> float:
    """Return the price of the requests, in tokens that aren't cached, if each left all of it in the cache so long."""
    price = write * sent[0].tokens
    for before, after in pairwise(sent):
        is_warm = before.model == after.model and (after.at - before.at) / 1_000 <= kept_seconds
        read = 0
        if is_warm:
            read = min(before.tokens, after.tokens)
        price += _READ * read + write * (after.tokens - read)
    return price


def ever_cached(path: Sequence[Entry], model: str) -> bool:
    """Whether the provider has reported for an answer of this model that it keeps or read a prefix."""
    for entry in reversed(path):
        if not isinstance(entry, AssistantEntry) or entry.model != model or entry.usage is None:
            continue
        if entry.usage.cache_read or entry.usage.cache_write:
            return True
    return False


def missed_tokens(before: Reported | None, now: Reported | None) -> tuple[int, int] | None:
    """Return the tokens a request could have read from the cache and those it did, None when that is no miss.

    ``before`` is the report on the last request answered, ``now`` of the one after it.
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
    """Return the cause of a difference, and the entry that brought it: the newest of its kind."""
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
