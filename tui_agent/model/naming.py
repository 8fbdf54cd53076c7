"""Names of models: the spellings of one model at gateways, clouds and hosts, and likely typos.

A name is matched as a whole: ``gpt-5-mini`` is never taken for ``gpt-5``.
"""

import re
from collections.abc import Iterator
from enum import StrEnum

from tui_agent.lazy import LazyPattern, frozen

_REVISION_OF_CLOUD = LazyPattern(r"(?:-v?\d)?:\d+$")
"""Bedrock's revision: ``-v1:0``."""
_MANNER = LazyPattern(r":[^:\d]*$")
"""A suffix for how a model is served: ``:free``, ``:nitro``, ``:thinking``. One with a digit is a
size."""
_MAKER = LazyPattern(r"^(?:[a-z][a-z-]*\.)+(?=[a-z])")
"""A maker in front of the name, as in ``us.anthropic.``; dots in versions are between digits."""
_POINT = LazyPattern(r"(?<=\d)p(?=\d)")
"""Fireworks's decimal point: 4p6 for 4.6."""
_SEPARATOR = LazyPattern(r"[._ @:]+")
_LETTER_DIGIT = LazyPattern(r"(?<=[a-z])-(?=\d{1,3}(?!\d))")
"""A hyphen before a number, as qwen-3 is qwen3; four digits are a date."""
_CLAUDE = LazyPattern(r"^claude-?(\d+(?:-\d{1,2})?)-(opus|sonnet|haiku)(?=-|$)")
"""Claude's number before its family; both orders occur."""
_QUALIFIERS = tuple(
    LazyPattern(pattern)
    for pattern in (
        r"-(?:latest|default)$",
        r"-20\d\d-?[01]\d-?[0-3]\d$",  # a date
        r"-\d{4}$",  # a short one: 0731, 2512
        r"-preview$",
    )
)


def spelled(name: str) -> str:
    """Return the canonical spelling of a model's name, without maker and gateway."""
    name = name.strip().lower().rpartition("/")[2]
    name = _MANNER.sub("", _REVISION_OF_CLOUD.sub("", name))
    name = _POINT.sub("-", _MAKER.sub("", name))
    name = _SEPARATOR.sub("-", name)
    name = _CLAUDE.sub(r"claude-\2-\1", name)
    return _LETTER_DIGIT.sub("", name)


def broader(spelling: str) -> Iterator[str]:
    """Yield a spelling, then broader ones: without its date, "latest", "preview"."""
    yield spelling
    found = True
    while found:
        found = False
        for qualifier in _QUALIFIERS:
            shorter = qualifier.sub("", spelling)
            if shorter != spelling:
                spelling = shorter
                found = True
                yield spelling


@frozen
class Maker:
    """The maker of a line of models; ``names`` is a pattern for their spellings.

    ``open``: the weights are open, so that others may serve them, with other windows.
    """

    provider: str
    names: re.Pattern[str]
    open: bool


_MAKERS = tuple(
    Maker(provider, LazyPattern(names), is_open)
    for provider, names, is_open in (
        ("anthropic", r"claude", False),
        ("openai", r"gpt-oss", True),
        ("openai", r"(?:chat)?gpt|o\d|codex|computer-use", False),
        ("gemini", r"gemma", True),
        ("gemini", r"gemini|learnlm", False),
        ("xai", r"grok", False),
        ("deepseek", r"deepseek", True),
        (
            "mistral",
            r"(?:open-)?(?:mistral|mixtral|ministral|magistral|codestral|devstral|pixtral|voxtral)",
            True,
        ),
        ("zai", r"glm", True),
        ("moonshot", r"kimi|moonshot", True),
        ("minimax", r"minimax", True),
        ("dashscope", r"q(?:wen|wq|vq)", True),
        ("cohere", r"command|c4ai|aya", True),
        ("meta_llama", r"(?:meta-)?llama", True),
        ("amazon_nova", r"nova", False),
        ("perplexity", r"sonar", False),
        ("xiaomi_mimo", r"mimo", True),
    )
)


def maker_of(spelling: str) -> Maker | None:
    return next((maker for maker in _MAKERS if maker.names.match(spelling)), None)


class UnknownModelError(ValueError):
    """A name that can't be a model's; the message is for a person."""


class NameStanding(StrEnum):
    """What is known about a name without asking its provider."""

    KNOWN = "known"
    """In the catalog, set up by the user, or on a server of theirs."""
    NEW = "new"
    """A known provider with a name that isn't in the catalog: a newer model, or a typo."""
    IMPOSSIBLE = "impossible"
    """There is no provider to send the request to."""


@frozen
class NameVerdict:
    """The verdict on a name. ``similar`` are models that may have been meant."""

    model: str
    standing: NameStanding
    similar: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The message for the user; "" for a known model."""
        meant = ""
        if self.similar:
            meant = f" Did you mean {' or '.join(self.similar)}?"
        match self.standing:
            case NameStanding.KNOWN:
                return ""
            case NameStanding.NEW:
                return f"The catalog has no model “{self.model}”.{meant}"
            case NameStanding.IMPOSSIBLE:
                how = (
                    f" tui-agent models --all lists those that are known. For a server of your own write "
                    f'[models."{self.model}"] with its base_url into config.toml.'
                )
                name = " Names are written provider/name."
                if "/" in self.model:
                    name = ""
                return f"There is no model “{self.model}”.{meant or f'{name}{how}'}"
