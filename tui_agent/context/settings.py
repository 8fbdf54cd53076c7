"""The settings of compaction, pruning, truncation, images and prompt cache, with their defaults.

Shares are fractions of the window or of the history budget *H* (threshold minus fixed overhead). If
a limit is given both in tokens and as a share, the smaller result applies. So one set of defaults
serves both a 16k local model and a 1M hosted one. ``tui_agent.config`` reads the settings from
files and environment variables.
"""

from fnmatch import fnmatchcase
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from tui_agent.lazy import LazyPattern

_PERCENT = LazyPattern(r"(-?\d{1,3}(?:\.\d+)?)\s*%")
_NUMBER = LazyPattern(r"-?\d[\d_]*")

MIN_THRESHOLD = 1_024
"""Smallest threshold in tokens, because the system prompt alone takes more than this."""
_THRESHOLDS = (
    'a threshold is a share like "80%", tokens used like 120000 (at least 1,024), tokens left like -20000, '
    "or 0 for never"
)

Share = Annotated[float, Field(ge=0, le=1)]
"""A fraction, 0 to 1."""

Tokens = Annotated[int, Field(ge=0)]
"""A number of tokens."""

FIXED: Final = object()
"""Marks a field that users can't set: a constant that benchmarks and tests vary."""

ONLY_USER: Final[dict[str, Any]] = {"only_user": True}
"""Marks a setting that the user's own file may set but a project's file may not: its value is run
as a command, costs money, or affects other projects."""

FixedShare = Annotated[float, Field(ge=0, le=1), FIXED]
"""Type of a setting that is a fraction from 0 to 1 and that users can't change."""

FixedNumber = Annotated[int, Field(ge=0), FIXED]
"""Type of a setting that is a whole number (of tokens, characters, turns …) and that users can't
change."""


def _check_threshold(value: object) -> object:
    """Return a threshold as ``"80%"``, an integer or None; raises ValueError for anything else."""
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
"""Size of the next request above which automatic compaction starts: ``"80%"`` of the window,
``120000`` tokens used, or ``-20000`` tokens left (or ``"-20%"``). ``0`` means never, None the
default."""


class _Settings(BaseModel):
    """Base of all settings classes: frozen, and strict about unknown names."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class CompactionSettings(_Settings):
    """Settings of compaction: when history is summarised, and what is kept."""

    style: Literal["summary", "native"] = "summary"
    """What replaces the history: "summary", written by a model; "native", the provider's own
    compaction (OpenAI, Azure OpenAI, xAI and Anthropic), which only the same model can read. For
    other providers, a summary is written."""
    auto: bool | Literal["ask"] = True
    """Compact when the next request would exceed the threshold. "ask": show the summary a few steps
    earlier, so that you can edit it; without an answer, it is used unchanged. Off: stop at the
    limit and offer choices."""
    threshold: Threshold = None
    """Size of the next request above which compaction starts: "80%" of the window, 120000 tokens
    used, -20000 tokens left, 0 for never. Empty: the window less the reserve, or less than that in
    a large window (see ``effective_window``)."""
    effective_window: Tokens = 400_000
    """If no threshold is set and the window is larger than this number of tokens, compaction starts
    at this size, or at a smaller size above which the price per token rises. 0: use the whole
    window."""
    reserved: Tokens | None = None
    """Tokens kept free for the answer. Empty: the smallest of 20,000, the model's longest answer
    and a fifth of the window, but at least 1,024."""
    reserve_tokens: FixedNumber = 20_000
    """Maximum tokens kept free for the answer if ``reserved`` is None."""
    reserve_share: FixedShare = 0.20
    """Largest share of the window kept free for the answer if ``reserved`` is None."""
    reserve_minimum: FixedNumber = 1_024
    """Minimum tokens kept free for the answer."""
    keep_recent: Tokens = 60_000
    """Tokens of the newest messages that stay verbatim when the rest is summarised."""
    keep_recent_share: FixedShare = 0.25
    """Largest share of the history budget that the kept messages may take."""
    keep_turns: int = Field(default=0, ge=0)
    """Maximum number of turns that stay verbatim, within ``keep_recent``. 0: any number."""
    resume: bool = True
    """After a compaction in the middle of a run, continue the run. Off: the run stops there."""
    branch_summaries: Literal["ask", "never"] = "ask"
    """Ask whether to summarise the branch that a move leaves."""
    branch_summary_share: FixedShare = 0.10
    """Largest share of the history budget that a branch summary may take."""
    model: str | None = None
    """Model that writes summaries. Empty: the conversation's own."""
    input: Literal["auto", "live", "serialised"] = "auto"
    """What the summariser reads. "live": the live conversation, which is cheap while the provider's
    cache is warm; "serialised": the conversation written out as text; "auto": whichever costs
    less."""
    result_chars: FixedNumber = 2_000
    """Maximum characters of a tool result in the text that a summariser reads, and of a kept result
    that had to be cut."""
    argument_chars: FixedNumber = 1_000
    """Maximum characters of a call's arguments in the text that a summariser reads, and of a kept
    argument that had to be cut."""
    summary_share: FixedShare = 0.10
    """Largest share of the history budget that the model's summary may take."""
    anchors_share: FixedShare = 0.25
    """Largest share of the history budget for anchor lines: lines with names still in use, and
    errors, carried verbatim."""
    user_messages_share: FixedShare = 0.10
    """Largest share of the history budget for the user's own messages, carried verbatim."""
    files_share: FixedShare = 0.10
    """Largest share of the history budget for the files read or edited last, which are read again
    from disk after a compaction."""
    files_budget: FixedNumber = 24_000
    """Smallest history budget, in tokens, for which files are read again after a compaction."""
    target_of_before: FixedShare = 0.90
    """Goal: history after a compaction is at most this share of the history before it."""
    target_of_budget: FixedShare = 0.60
    """Goal: history after a compaction is at most this share of the history budget."""
    enough_of_budget: FixedShare = 0.85
    """Share of the history budget that is accepted after a compaction if the goal can only be
    reached by cutting the newest entries."""
    failures_before_pause: FixedNumber = 2
    """Failures in a row after which automatic compaction pauses until the next user message."""
    minimum_budget: FixedNumber = 4_000
    """The user is warned at the start if the history budget has fewer tokens than this. The warning
    names the largest parts of the fixed overhead."""
    overhead_share: FixedShare = 0.25
    """The user is warned if the prompt and tools take more than this share of the window. The
    warning names the largest parts."""

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
        """Return the tokens above which automatic compaction starts, None if it never does.

        ``price_tier`` is the size of a request above which the model costs more per token. The
        result is at most the window minus the reserve, because a larger request leaves no room for
        an answer. If the threshold is a number of tokens left, at most half the window is left, so
        that a number meant for a large model doesn't make a small one unusable.
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
    """Settings of pruning: old tool outputs are replaced by placeholders.

    ``prune = false`` means ``prune.when = "off"``.
    """

    when: Literal["auto", "run_end", "off"] = "auto"
    """When to prune. "auto": under pressure, while the provider's cache is cold, and at a model
    switch; "run_end": after every run; "off": only on request."""
    protect_tokens: Tokens = 15_000
    """This many tokens of the newest tool output are never pruned."""
    protect_share: FixedShare = 0.15
    """Largest share of the history budget that ``protect_tokens`` may protect."""
    protect_turns: FixedNumber = 2
    """Number of newest turns whose tool outputs are protected while the context is not under
    pressure."""
    protect_steps: FixedNumber = 4
    """Number of newest steps whose tool outputs are protected even under pressure."""
    step_budget: FixedNumber = 2_500
    """Tokens of history budget needed for each protected step; a smaller budget protects fewer
    steps, but at least one."""
    protected_tools: tuple[str, ...] | None = None
    """Tools whose results are never pruned. Not set: skill, todo, recall and ask."""
    minimum_tokens: Tokens = 25_000
    """Minimum tokens a prune must free to be worth breaking the provider's cache."""
    minimum_share: FixedShare = 0.25
    """Share of the history budget that a prune must free, if that is less than
    ``minimum_tokens``."""
    room_tokens: FixedNumber = 12_000
    """Tokens of the history budget that a prune under pressure leaves free, so that the next prune
    is many steps away."""
    room_least: FixedShare = 0.30
    """Smallest share of the history budget that a prune under pressure leaves free."""
    room_large: FixedShare = 0.40
    """Replaces ``room_least`` for a history budget of at least ``large_budget`` tokens, because
    reading a long request uncached after each prune is expensive."""
    large_budget: FixedNumber = 90_000
    """Smallest history budget, in tokens, that counts as large."""
    room_most: FixedShare = 0.50
    """Largest share of the history budget that ``room_tokens`` may keep free."""
    notes_share: FixedShare = 0.10
    """Largest share of the history budget for the notes of one prune. Notes are lines of the
    cleared outputs that contain names still in use; they are added to the placeholders."""
    notes_of_freed: FixedShare = 0.30
    """Largest share of the tokens freed by a prune that its notes may take."""
    notes_of_freed_large: FixedShare = 0.15
    """Replaces ``notes_of_freed`` for a history budget of at least ``large_budget`` tokens, because
    notes stay until the next compaction."""
    names_in_use: FixedNumber = 3_000
    """Maximum number of names that are used to rank outputs and to choose the lines for notes."""
    pressure: FixedShare = 0.95
    """Share of the request's size limit (``ContextSize.limit``) above which the context is under
    pressure."""

    @model_validator(mode="before")
    @classmethod
    def _switch(cls, data: Any) -> Any:
        """Accept ``prune = false`` and ``prune = true``."""
        if isinstance(data, bool):
            return {"when": "auto" if data else "off"}
        return data

    def notes_tokens(self, freed: int, budget: int) -> int:
        """Return the maximum number of tokens that the notes of a prune may take.

        ``freed`` is how many tokens the prune frees, ``budget`` the history budget.
        """
        of_freed = self.notes_of_freed
        if self._is_large(budget):
            of_freed = self.notes_of_freed_large
        return min(round(budget * self.notes_share), round(freed * of_freed))

    def worthwhile_tokens(self, budget: int) -> int:
        """Return the minimum tokens that a prune must free with a history budget of ``budget``."""
        return min(self.minimum_tokens, round(budget * self.minimum_share))

    def wanted_tokens(self, history: int, budget: int) -> int:
        """Return how many tokens a prune under pressure should free, 0 if none.

        ``history`` is the size of the history, ``budget`` the history budget, in tokens.
        """
        if self._is_large(budget):
            least = self.room_large
        else:
            least = self.room_least
        room = max(round(budget * least), min(self.room_tokens, round(budget * self.room_most)))
        return max(0, history - budget + room)

    def _is_large(self, budget: int) -> bool:
        return budget >= self.large_budget


class TruncationSettings(_Settings):
    """Settings of truncation: the limits of one tool output. The smallest limit applies."""

    lines: int = Field(default=2_000, ge=10)
    """Maximum lines of one output."""
    bytes: int = Field(default=50 * 1024, ge=1_024)
    """Maximum bytes of one output, as UTF-8."""
    line_chars: int = Field(default=2_000, ge=80)
    """Maximum characters of one line."""
    window_share: Share = 0.10
    """Share of the window that one output may take when the window is nearly full."""
    roomy_share: FixedShare = 0.30
    """Share of the window that one output may take while much of the window is free."""
    free_share: FixedShare = 0.40
    """Share of the window's free tokens that one output may take: at least ``window_share`` and
    at most ``roomy_share`` of the window."""
    roomy_window: FixedNumber = 24_000
    """In a window of fewer tokens than this, an output always takes at most ``window_share``: a
    larger output would push out everything else."""
    error_lines: FixedNumber = 20
    """Maximum number of error-looking lines shown from the omitted part of an output."""
    short_rereads: bool = True
    """Answer a repeated read with one line if the same lines are already in context, or with a diff
    if they changed and the diff is shorter. Repeating the read once more returns all lines."""

    def tokens(self, window: int, free: int) -> int:
        """Return the tokens, at least 256, that one output may take.

        ``window`` is the size of the window, ``free`` the unused part, in tokens.
        """
        roomy = (
            min(free * self.free_share, window * self.roomy_share)
            if window >= self.roomy_window
            else 0
        )
        return max(256, round(window * self.window_share), round(roomy))


class ImageSettings(_Settings):
    """Limits on the images in a request; if they are exceeded, older images are pruned."""

    max_count: int = Field(default=20, ge=0)
    """Maximum number of images in one request. With more than 20, Anthropic's API accepts only
    small ones (platform.claude.com/docs, "Vision")."""
    max_tokens_share: FixedShare = 0.25
    """Largest share of the history budget that images may take together."""


class CacheSettings(_Settings):
    """Settings of the provider's prompt cache: its lifetime, and when the user is warned."""

    ttl: Literal["auto", "5m", "1h"] = "auto"
    """How long Anthropic caches a prompt prefix. An hour costs more to write, so "auto" requests it
    only if the pauses in the conversation make it cheaper."""
    ttl_seconds: int = Field(default=300, ge=0)
    """Seconds a prompt prefix stays cached after its last use, unless an hour was requested."""
    keep_warm: bool = Field(default=False, json_schema_extra=ONLY_USER)
    """While you are away, ping the provider a minute before its cache of the conversation expires,
    at most twice in a pause and only if that is expected to save more than it costs. `/cost` lists
    each ping."""
    warn_tokens: Tokens = 50_000
    """You are warned if at least this many tokens of the conversation are no longer cached. You are
    asked before you switch the model, effort or agent if that leaves at least as many uncached. 0:
    never."""


class ModelContextSettings(_Settings):
    """Settings that replace the general ones for one model, or for all that fit a name pattern."""

    window: int | None = Field(default=None, ge=1_024)
    """Size of the context window in tokens. Set it if the catalog doesn't know the window, or if
    the server is configured for a smaller one."""
    threshold: Threshold = None
    """Replaces ``compaction.threshold``."""
    reserved: Tokens | None = None
    """Replaces ``compaction.reserved``."""
    keep_recent: Tokens | None = None
    """Replaces ``compaction.keep_recent``."""


class ContextSettings(_Settings):
    """All settings of the context engine."""

    compaction: CompactionSettings = CompactionSettings.model_construct()
    """Settings of summaries."""
    prune: PruneSettings = PruneSettings.model_construct()
    """Settings for old tool outputs."""
    truncation: TruncationSettings = TruncationSettings.model_construct()
    """Settings for new tool outputs."""
    images: ImageSettings = ImageSettings.model_construct()
    """Settings for images."""
    cache: CacheSettings = CacheSettings.model_construct()
    """Settings of the provider's prompt cache."""
    window: int | None = Field(default=None, ge=1_024)
    """Maximum tokens to use, however large a model's window is."""
    unknown_window: int = Field(default=32_768, ge=1_024)
    """Window in tokens assumed for a model that the catalog doesn't know."""
    models: dict[str, ModelContextSettings] = Field(default_factory=dict)
    """Settings per model; a name may contain ``*``, and the longest matching name applies."""

    def for_model(self, model: str) -> "ContextSettings":
        """Return these settings for a model, overridden by the best match in ``models``.

        The best match is the model's own name or, without it, the longest matching pattern. Of two
        windows, the smaller one applies. The result has no ``models``; if nothing matches, it is
        this object unchanged.
        """
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
