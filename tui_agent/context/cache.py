"""Tracks the provider's prompt cache: whether it is warm, what it holds, and why its prefix broke.

While a provider remembers a request, it can reuse the beginning of the next one to the same model,
as far as both are the same byte for byte.
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
"""Lifetimes that a cache mark can ask for, in seconds; each use restarts them."""
_READ = 0.1
_WRITE = 1.25
_HOUR_WRITE = 2.0
"""Prices of a token read from the cache, written to it for five minutes, and written for an hour,
relative to an uncached token (platform.claude.com/docs, "Prompt caching")."""
_SENT = attrgetter("role", "content", "tool_calls", "call_id", "reasoning")
"""Returns the fields of a message that are sent to a provider."""
_REQUESTS = 200
"""Newest requests from which the cheaper lifetime is chosen."""

MISSED_SHARE = 0.5
"""Least share of the cached tokens that have to be read again for a miss to be reported: providers
round, and forget a little."""

MISSED_LEAST = 2_000
"""Least tokens that have to be read again for a miss to be reported: providers don't cache shorter
prefixes."""


class BreakCause(StrEnum):
    """Why a request does not extend the one before it."""

    MODEL = "model"
    """The model changed: another one has no cache of this conversation."""
    EFFORT = "effort"
    """The effort changed: OpenAI and Anthropic keep a cache for each level. The request's text is
    the same, so ``prefix_break`` never gives this cause."""
    TOOLS = "tools"
    """The tools changed, which come before everything else."""
    HEAD = "head"
    """The system message or the opening changed."""
    COMPACTION = "compaction"
    PRUNE = "prune"
    EDIT = "edit"
    """The user cleared, hid, pinned, edited or restored an entry."""
    RESULT = "result"
    """A tool's result replaced its placeholder."""
    MOVED = "moved"
    """The conversation continues from another entry of the tree."""
    COLD = "cold"
    """The provider forgot the prefix: too much time had passed."""
    UNKNOWN = "unknown"
    """Nothing on the path explains the break, which is a defect of this program."""


@frozen
class PrefixBreak:
    """The first place where a request differs from an earlier one.

    ``part`` and ``index`` say which tool or message differs (``index`` is their number if the new
    request ends early). ``origin`` has the entries of that message, ``entry_id`` the entry that
    caused the break, None if it is unknown.
    """

    part: Literal["model", "tool", "message"]
    index: int
    cause: BreakCause
    entry_id: int | None
    origin: tuple[int, ...]


@frozen
class CacheState:
    """Whether the provider still remembers the last request, and for how many more seconds."""

    warm: bool
    seconds_left: int


@frozen
class CacheMiss:
    """A request for which the provider read much less from its cache than it should hold.

    ``expected`` and ``read`` are tokens. ``cause`` is None if the request extended the one before
    and came in time. ``entry_id`` is the entry that broke the prefix, if any.
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
    """Return where and why ``new`` does not extend ``previous``, None if it does.

    ``appended`` are the entries of the new request's path that the earlier path did not have,
    oldest first; ``moved``: the earlier path had entries that the new one lacks.
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
    """Return the ids of the entries whose messages in ``new`` the provider should have cached."""
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

    ``ttl`` is the lifetime that the last request asked for; ``last_used_at`` None: never used.
    """
    if last_used_at is None:
        return CacheState(warm=False, seconds_left=0)
    left = lifetime(ttl, settings) - max(0, now - last_used_at) / 1_000
    return CacheState(warm=left > 0, seconds_left=max(0, round(left)))


def lifetime(ttl: CacheTtl, settings: CacheSettings) -> int:
    """Return how many seconds a provider keeps a prefix for which ``ttl`` was requested."""
    if ttl == "1h":
        return _HOUR
    return settings.ttl_seconds


def cache_ttl(path: Sequence[Entry], settings: CacheSettings, now: int | None = None) -> CacheTtl:
    """Return the lifetime that a request made at ``now`` asks for; None: the path's last request.

    "auto" chooses an hour if that would have been cheaper with the pauses between the path's
    requests. It changes only after a pause of more than five minutes, so that a cached prefix is
    never requested with another lifetime. Times are milliseconds since the epoch.
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
    """An answered request: when it was sent (milliseconds since the epoch), its model and tokens."""

    at: int
    model: str
    tokens: int


def _price(sent: Sequence[_Sent], kept_seconds: int, write: float) -> float:
    """Return the price of the requests, in uncached tokens, if each is cached for ``kept_seconds``."""
    price = write * sent[0].tokens
    for before, after in pairwise(sent):
        is_warm = before.model == after.model and (after.at - before.at) / 1_000 <= kept_seconds
        read = 0
        if is_warm:
            read = min(before.tokens, after.tokens)
        price += _READ * read + write * (after.tokens - read)
    return price


def ever_cached(path: Sequence[Entry], model: str) -> bool:
    """Whether the provider reported tokens read from or written to a cache for any answer of a model."""
    for entry in reversed(path):
        if not isinstance(entry, AssistantEntry) or entry.model != model or entry.usage is None:
            continue
        if entry.usage.cache_read or entry.usage.cache_write:
            return True
    return False


def missed_tokens(before: Reported | None, now: Reported | None) -> tuple[int, int] | None:
    """Return the tokens a request could have read from the cache and those it did; None: no miss.

    ``before`` is the usage reported for the request before it, ``now`` for the request itself.
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
    """Return the cause of a difference, and the newest entry of the kind that explains it."""
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
