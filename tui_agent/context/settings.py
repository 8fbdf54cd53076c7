"""The settings of the context rules: every constant with its default, and how each scales to a model's window.

Shares are fractions of the window or of the history budget *H* (threshold minus fixed overhead);
wherever a number of tokens and a share are both given, the smaller result counts, so that one set
of defaults serves a 16k local model and a 1M hosted one. Reading files and environment variables is
the configuration module's work.
"""

from fnmatch import fnmatchcase
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from tui_agent.lazy import LazyPattern

_PERCENT = LazyPattern(r"(-?\d{1,3}(?:\.\d+)?)\s*%")
_NUMBER = LazyPattern(r"-?\d[\d_]*")

MIN_THRESHOLD = 1_024
"""Tokens used below which no threshold makes sense: the prompt alone takes more."""
_THRESHOLDS = (
    'a threshold is a share like "80%", tokens used like 120000 (at least 1,024), tokens left like -20000, '
    "or 0 for never"
)

Share = Annotated[float, Field(ge=0, le=1)]
"""A fraction, 0 to 1."""

Tokens = Annotated[int, Field(ge=0)]
"""A number of tokens."""

FIXED: Final = object()
"""Marks a field that is no setting: a constant of the rules that benchmarks and tests vary."""

ONLY_USER: Final[dict[str, Any]] = {"only_user": True}
"""Marks a setting that a project's own file can't make: what it says would be run or paid for, or
is about other projects."""

FixedShare = Annotated[float, Field(ge=0, le=1), FIXED]
"""A fraction that no user sets, 0 to 1."""

FixedNumber = Annotated[int, Field(ge=0), FIXED]
"""A number of tokens, characters or times that no user sets."""


def _check_threshold(value: object) -> object:
    """Normalise a threshold to ``"80%"`` or an integer; anything else is a ``ValueError``."""
    if isinstance(value, str):
        text = value.strip()
        if percent := _PERCENT.fullmatch(text):
            share = float(percent[1])
            if -100 < share <= 100:
                if share:
                    return f"{share:g}%"
                return 0
        elif _NUMBER.fullmatch(text):
            value = int(text)
    makes_sense = (
        isinstance(value, int) and not isinstance(value, bool) and not 0 < value < MIN_THRESHOLD
    )
    if value is None or makes_sense:
        return value
    raise ValueError(_THRESHOLDS)


Threshold = Annotated[int | str | None, BeforeValidator(_check_threshold)]
"""When automatic compaction acts: ``"80%"`` of the window, ``120000`` tokens used, ``-20000``
tokens left (``"-20%"`` as well), ``0`` never, None when the window less the reserve is used."""


class _Settings(BaseModel):
    """Base of all settings: frozen, documented per field, strict about unknown names."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class CompactionSettings(_Settings):
    """Third defence: when history is summarised, what is kept and what a summary may cost."""

    style: Literal["summary", "native"] = "summary"
    """What replaces the history: "summary", written by a model; "native", the provider's own
    compaction (OpenAI, Azure OpenAI, xAI and Anthropic), which only the same model can read. Other
    providers get a summary."""
    auto: bool | Literal["ask"] = True
    """Compact when the next request would pass the threshold. "ask": say so when the summary is
    ready, a few steps before, to be looked at and edited; no answer is a yes. Off: stop at the
    limit and offer choices."""
    threshold: Threshold = None
    """Size of the next request at which compaction acts: "80%" of the window, 120000 tokens used,
    -20000 tokens left, 0 never. Empty: the window less the reserve."""
    effective_window: Tokens = 400_000
    """Without a threshold, compaction of a larger window acts at this size, or where the price per
    token rises. 0: use all of the window."""
    reserved: Tokens | None = None
    """Tokens kept free for the answer. Empty: the smallest of 20,000, the model's longest answer
    and a fifth of the window."""
    reserve_tokens: FixedNumber = 20_000
    """Most tokens kept free for the answer when ``reserved`` is empty."""
    reserve_share: FixedShare = 0.20
    """Largest share of the window kept free for the answer."""
    reserve_minimum: FixedNumber = 1_024
    """Least tokens kept free for the answer."""
    keep_recent: Tokens = 60_000
    """Tokens of the newest messages that stay verbatim when the rest is summarised."""
    keep_recent_share: FixedShare = 0.25
    """Largest share of the history budget that ``keep_recent`` may take."""
    keep_turns: int = Field(default=0, ge=0)
    """Most turns that stay verbatim, within ``keep_recent``. 0: any number."""
    resume: bool = True
    """Continue the work after a compaction in the middle of it. Off: the run stops there."""
    branch_summaries: Literal["ask", "never"] = "ask"
    """Ask for a summary of the branch that a move leaves."""
    branch_summary_share: FixedShare = 0.10
    """Share of the history budget a branch's summary may take."""
    model: str | None = None
    """Model that writes summaries. Empty: the conversation's own."""
    input: Literal["auto", "live", "serialised"] = "auto"
    """What the summariser reads: the live conversation (cheap while the provider's cache is warm),
    the conversation written out as text, or whichever costs less."""
    result_chars: FixedNumber = 2_000
    """Characters of a tool result in the written-out conversation, and of a kept result that had to
    be cut."""
    argument_chars: FixedNumber = 1_000
    """Characters of a tool argument in the written-out conversation."""
    summary_share: FixedShare = 0.10
    """Share of the history budget the model's summary may take."""
    anchors_share: FixedShare = 0.25
    """Share of the history budget for lines carried verbatim: those that names still in use stand
    in, and errors."""
    user_messages_share: FixedShare = 0.10
    """Share of the history budget for the user's own messages, carried verbatim."""
    files_share: FixedShare = 0.10
    """Share of the history budget for the files read or edited last, which come back from disk
    after a compaction."""
    files_budget: FixedNumber = 24_000
    """Least history budget in which they do."""
    target_of_before: FixedShare = 0.90
    """History after compaction is at most this share of history before it."""
    target_of_budget: FixedShare = 0.60
    """History after compaction is at most this share of the history budget."""
    enough_of_budget: FixedShare = 0.85
    """What will do where that can't be reached without taking away what is newest."""
    failures_before_pause: FixedNumber = 2
    """Failures in a row after which automatic compaction pauses until the next user message."""
    minimum_budget: FixedNumber = 4_000
    """A history budget below this is reported at the start, with the largest parts of the fixed
    overhead."""
    overhead_share: FixedShare = 0.25
    """Share of the window that prompt and tools may take before that is reported, with the largest
    parts."""

    def reserve(self, window: int, max_output: int | None = None) -> int:
        """Return the tokens kept free for the answer, never more than half the window."""
        if self.reserved is not None:
            room = self.reserved
        else:
            room = min(self.reserve_tokens, round(window * self.reserve_share))
            if max_output:
                room = min(room, max_output)
        return max(1, min(max(room, self.reserve_minimum), window // 2))

    def threshold_at(
        self, window: int, reserve: int, *, price_tier: int | None = None
    ) -> int | None:
        """Return the tokens at which automatic compaction acts, None when it never does.

        ``price_tier`` is the size of a request, in tokens, above which the model costs more. A
        threshold never exceeds the window less the reserve: past it there is no room for an answer.
        "Tokens left" is at most half the window, so that a number meant for a large model leaves a
        small one usable.
        """
        if not self.auto:
            return None
        highest = max(1, window - reserve)
        if self.threshold is None:
            most = self.effective_window
            if most and window > most:
                return min(price_tier or most, most, window - reserve)
            return highest
        if isinstance(self.threshold, str):
            share = float(self.threshold.rstrip("%")) / 100
            tokens = round(window * share)
        else:
            tokens = self.threshold
        if tokens == 0:
            return None
        if tokens < 0:
            tokens = window - min(-tokens, window // 2)
        return min(tokens, highest)

    def keep_recent_tokens(self, budget: int) -> int:
        return min(self.keep_recent, round(budget * self.keep_recent_share))

    def summary_tokens(self, budget: int) -> int:
        return round(budget * self.summary_share)

    def branch_summary_tokens(self, budget: int) -> int:
        return max(64, round(budget * self.branch_summary_share))


class PruneSettings(_Settings):
    """Second defence: old tool outputs become placeholders.

    ``false`` is short for ``when = "off"``.
    """

    when: Literal["auto", "run_end", "off"] = "auto"
    """"auto": under pressure, while the provider's cache is cold and at a model switch; "run_end":
    after every run; "off": only on request."""
    protect_tokens: Tokens = 15_000
    """Tokens of the newest tool output that are never pruned."""
    protect_share: FixedShare = 0.15
    """Largest share of the history budget that ``protect_tokens`` may take."""
    protect_turns: FixedNumber = 2
    """Newest user turns whose tool output is protected while there is no pressure."""
    protect_steps: FixedNumber = 4
    """Newest steps whose tool output is protected always."""
    step_budget: FixedNumber = 2_500
    """Tokens of the history budget there have to be for each of these steps; one is protected in
    any case."""
    protected_tools: tuple[str, ...] | None = None
    """Tools whose results are never pruned; not set: those that say so themselves, skill, todo and
    recall."""
    minimum_tokens: Tokens = 25_000
    """Least tokens a prune must free to be worth breaking the provider's cache."""
    minimum_share: FixedShare = 0.25
    """Share of the history budget that is enough, if it is less than ``minimum_tokens``."""
    room_tokens: FixedNumber = 12_000
    """Tokens that are free after a prune that has to be, so that the next is many steps away."""
    room_least: FixedShare = 0.30
    """Least share of the history budget that is free then."""
    room_large: FixedShare = 0.40
    """The same where the history budget has ``large_budget`` tokens: what is read anew after each
    prune is dear."""
    large_budget: FixedNumber = 90_000
    """Tokens of a large history budget."""
    room_most: FixedShare = 0.50
    """Largest share of the history budget that ``room_tokens`` may take."""
    notes_share: FixedShare = 0.10
    """Share of the history budget that the notes of one prune may take: the lines of what is
    cleared that are still in use, told in its placeholders."""
    notes_of_freed: FixedShare = 0.30
    """Largest share of what a prune frees that its notes may take back."""
    notes_of_freed_large: FixedShare = 0.15
    """The same where the history budget has ``large_budget`` tokens: notes stay until a summary."""
    names_in_use: FixedNumber = 3_000
    """Names by which outputs are weighed and lines for notes are chosen; the best are mostly in
    view."""
    pressure: FixedShare = 0.95
    """Share of the threshold above which the context is under pressure."""

    @model_validator(mode="before")
    @classmethod
    def _switch(cls, data: Any) -> Any:
        """Accept ``prune = false`` and ``prune = true``."""
        if isinstance(data, bool):
            return {"when": "auto" if data else "off"}
        return data

    def notes_tokens(self, freed: int, budget: int) -> int:
        """Return the most tokens the notes of a prune may take that frees so many."""
        of_freed = self.notes_of_freed
        if self._is_large(budget):
            of_freed = self.notes_of_freed_large
        return min(round(budget * self.notes_share), round(freed * of_freed))

    def worthwhile_tokens(self, budget: int) -> int:
        """Return the least tokens a prune must free, for a history budget."""
        return min(self.minimum_tokens, round(budget * self.minimum_share))

    def wanted_tokens(self, history: int, budget: int) -> int:
        """Return the tokens a prune of so much history clears, for a history budget."""
        if self._is_large(budget):
            least = self.room_large
        else:
            least = self.room_least
        room = max(round(budget * least), min(self.room_tokens, round(budget * self.room_most)))
        return max(0, history - budget + room)

    def _is_large(self, budget: int) -> bool:
        return budget >= self.large_budget


class TruncationSettings(_Settings):
    """First defence: the most one tool output may show the model. The smallest limit counts."""

    lines: int = Field(default=2_000, ge=10)
    """Lines of one output."""
    bytes: int = Field(default=50 * 1024, ge=1_024)
    """Bytes of one output, as UTF-8."""
    line_chars: int = Field(default=2_000, ge=80)
    """Characters of one line."""
    window_share: Share = 0.10
    """Share of the window one output may take when the window is nearly full."""
    roomy_share: FixedShare = 0.30
    """Share of the window one output may take while there is much free room."""
    free_share: FixedShare = 0.40
    """Share of the free room one output may take, between ``window_share`` and ``roomy_share`` of
    the window."""
    roomy_window: FixedNumber = 24_000
    """Window below which an output takes ``window_share`` at most: one more would push out
    everything else."""
    error_lines: FixedNumber = 20
    """Error-looking lines shown from the part of an output that was left out."""
    short_rereads: bool = True
    """Answer a repeated read of unchanged lines that are in context with one line, of changed ones
    with the difference if it is shorter. Reading once more shows all of them."""

    def tokens(self, window: int, free: int) -> int:
        """Return the tokens one output may take of a window with so many tokens free."""
        roomy = (
            min(free * self.free_share, window * self.roomy_share)
            if window >= self.roomy_window
            else 0
        )
        return max(256, round(window * self.window_share), round(roomy))


class ImageSettings(_Settings):
    """How many images a request may hold before the oldest are pruned."""

    max_count: int = Field(default=20, ge=0)
    """Images in one request. With more than 20, Anthropic's interface takes only small ones
    (platform.claude.com/docs, "Vision")."""
    max_tokens_share: FixedShare = 0.25
    """Largest share of the history budget that images may take together."""


class CacheSettings(_Settings):
    """What is assumed of the provider's prompt cache."""

    ttl: Literal["auto", "5m", "1h"] = "auto"
    """How long Anthropic keeps a prompt prefix. An hour costs more to write: "auto" requests it if
    the pauses of the conversation make it cheaper."""
    ttl_seconds: int = Field(default=300, ge=0)
    """Seconds a prompt prefix stays cached after its last use, unless an hour was requested."""
    keep_warm: bool = Field(default=False, json_schema_extra=ONLY_USER)
    """While you are away, ping the provider a minute before it forgets the conversation, at most
    twice in a pause and only if that is expected to save more than it costs. `/cost` lists each
    ping."""
    warn_tokens: Tokens = 50_000
    """Uncached tokens from which on you are warned, and asked before switching the model, effort or
    agent. 0: never."""


class ModelContextSettings(_Settings):
    """What one model, or all models of a pattern, has otherwise."""

    window: int | None = Field(default=None, ge=1_024)
    """Context window in tokens, when the catalog does not know it or the server is set up
    smaller."""
    threshold: Threshold = None
    """As ``compaction.threshold``."""
    reserved: Tokens | None = None
    """As ``compaction.reserved``."""
    keep_recent: Tokens | None = None
    """As ``compaction.keep_recent``."""


class ContextSettings(_Settings):
    """All settings of the context rules."""

    compaction: CompactionSettings = CompactionSettings.model_construct()
    """Summaries."""
    prune: PruneSettings = PruneSettings.model_construct()
    """Old tool outputs."""
    truncation: TruncationSettings = TruncationSettings.model_construct()
    """New tool outputs."""
    images: ImageSettings = ImageSettings.model_construct()
    """Images."""
    cache: CacheSettings = CacheSettings.model_construct()
    """The provider's prompt cache."""
    window: int | None = Field(default=None, ge=1_024)
    """Most tokens of any model's window that are used."""
    unknown_window: int = Field(default=32_768, ge=1_024)
    """Window assumed for a model nobody knows."""
    models: dict[str, ModelContextSettings] = Field(default_factory=dict)
    """Settings per model; a name may hold ``*``, the longest matching one counts."""

    def for_model(self, model: str) -> "ContextSettings":
        """Return the settings with everything that ``models`` says of this model put in place."""
        names = [name for name in self.models if name == model or fnmatchcase(model, name)]
        if not names:
            return self
        own = self.models[max(names, key=lambda name: (name == model, len(name)))]
        given = own.model_dump(exclude_none=True, exclude={"window"})
        windows = [size for size in (self.window, own.window) if size is not None]
        return self.model_copy(
            update={
                "compaction": self.compaction.model_copy(update=given),
                "window": min(windows, default=None),
                "models": {},
            }
        )
