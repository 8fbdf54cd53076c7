"""The thinking parameters that each Claude model accepts in Anthropic's Messages format.

Sources: platform.claude.com/docs, "Thinking", "Effort", "Preserved thinking" and the "What's new"
page of each model; docs.aws.amazon.com, "Adaptive thinking". A model is found by the family and
version in its name, however it is spelled. A version newer than the table is treated like the
newest one of its family.
"""

from functools import lru_cache
from typing import Literal

from tui_agent.lazy import LazyPattern, frozen
from tui_agent.session.effort import Effort

_ALL_LEVELS = tuple(Effort)
_ADAPTIVE_LEVELS = (Effort.LOW, Effort.MEDIUM, Effort.HIGH, Effort.XHIGH, Effort.MAX)
_FIRST_ADAPTIVE_LEVELS = (Effort.LOW, Effort.MEDIUM, Effort.HIGH, Effort.MAX)

_Version = tuple[int, int]

_NEWEST: _Version = (999, 0)
_FAMILY = LazyPattern(
    # claude-opus-4-6, claude-opus-4.6, claude-4.5-sonnet, claude-3-7-sonnet,
    # anthropic.claude-haiku-4-5-20251001-v1:0
    r"claude(?:[-.](?P<before>\d+(?:[-.]\d+)?))?-(?P<family>opus|sonnet|haiku|fable|mythos)"
    r"(?:[-.](?P<after>\d{1,2}(?:[-.]\d{1,2})?)(?!\d)|(?P<preview>-preview))?"
)

_FIRST = LazyPattern(r"claude-(?:v?[12]\b|instant)")

BUDGETS = {
    Effort.MINIMAL: 1_024,
    Effort.LOW: 4_096,
    Effort.MEDIUM: 10_000,
    Effort.HIGH: 16_384,
    Effort.XHIGH: 24_576,
    Effort.MAX: 32_000,
}
"""Thinking budgets in tokens, by effort. Anthropic accepts no less than 1,024, and reports little
benefit above 32,000."""

MIN_BUDGET = BUDGETS[Effort.MINIMAL]


@frozen
class Claude:
    """The thinking parameters of one generation of Claude models."""

    style: Literal["adaptive", "budget", "none"]
    """How the model thinks. With ``adaptive``, the request names an effort, and the model decides
    how much to think. With ``budget``, the request limits thinking to a number of tokens. With
    ``none``, the model doesn't think."""
    off: Literal["", "disabled", "between_tools"] | None = ""
    """The type of thinking to request for effort off; "" to leave out the field, None if thinking
    can't be turned off."""
    thinks: bool = False
    """Whether the model thinks even if the request doesn't mention thinking."""
    bound: bool = False
    """Whether the model accepts its earlier thinking only if the conversation before it is
    unchanged."""
    interleaved: bool = False
    """Whether the model needs a beta header to think between tool calls; adaptive models don't."""
    levels: tuple[Effort, ...] = _ADAPTIVE_LEVELS
    """The effort levels, except ``off``, that a model with adaptive thinking accepts."""

    @property
    def efforts(self) -> tuple[Effort, ...]:
        match self.style:
            case "none":
                return ()
            case "budget":
                return _ALL_LEVELS
            case _:
                if self.off is None:
                    return self.levels
                return (Effort.OFF, *self.levels)


_NONE = Claude("none")
_BUDGET = Claude("budget", interleaved=True)
_ON_REQUEST_FIRST = Claude("adaptive", levels=_FIRST_ADAPTIVE_LEVELS)
_ON_REQUEST = Claude("adaptive")
_BY_DEFAULT = Claude("adaptive", off="disabled", thinks=True)
_ALWAYS = Claude("adaptive", off=None, thinks=True)
_ALWAYS_BOUND = Claude("adaptive", off=None, thinks=True, bound=True)

_TABLE: dict[str, tuple[tuple[_Version, Claude], ...]] = {
    "opus": (
        ((5, 5), _ALWAYS_BOUND),
        ((5, 0), _BY_DEFAULT),
        ((4, 7), _ON_REQUEST),
        ((4, 6), _ON_REQUEST_FIRST),
        ((4, 0), _BUDGET),
        ((0, 0), _NONE),
    ),
    "sonnet": (
        ((5, 5), Claude("adaptive", off="between_tools", thinks=True, bound=True)),
        ((5, 0), _BY_DEFAULT),
        ((4, 6), _ON_REQUEST_FIRST),
        ((4, 0), _BUDGET),
        ((3, 7), Claude("budget")),
        ((0, 0), _NONE),
    ),
    "haiku": (
        ((5, 5), Claude("adaptive", off="disabled", thinks=True, bound=True)),
        ((4, 5), _BUDGET),
        ((0, 0), _NONE),
    ),
    "fable": (((5, 1), _ALWAYS_BOUND), ((0, 0), _ALWAYS)),
    "mythos": (((5, 1), _ALWAYS_BOUND), ((0, 0), _ALWAYS)),
}
"""The generations of each family of Claude models, newest first, each with its first version
(major, minor)."""


@lru_cache(maxsize=256)
def claude(name: str) -> Claude | None:
    """Return the thinking parameters of a Claude model; None for any other model.

    ``name`` may be spelled in any way. For a Claude model of an unknown family, the parameters of
    the newest models are returned.
    """
    name = name.lower()
    if "claude" not in name:
        return None
    match = _FAMILY.search(name)
    if match is None:
        # The name belongs to a first-generation model, or to a model of a future family.
        return _NONE if _FIRST.search(name) else _ALWAYS_BOUND
    version = _NEWEST
    if match["preview"]:
        version = (5, 0)
    if number := match["after"] or match["before"]:
        major, _dot, minor = number.replace("-", ".").partition(".")
        version = int(major), int(minor or 0)
    return next(row for since, row in _TABLE[match["family"]] if version >= since)
