"""Recognises a model and its maker, however gateways, clouds and hosts spell the name.

A name is matched as a whole: ``gpt-5-mini`` is never taken for ``gpt-5``. This module also has the
possible verdicts on a name that the user enters, with their messages; `Catalog.judge` decides.
"""

import re
from collections.abc import Iterator
from enum import StrEnum

from tui_agent.lazy import LazyPattern, frozen

_REVISION_OF_CLOUD = LazyPattern(r"(?:-v?\d)?:\d+$")
"""Matches Bedrock's revision at the end of a name: ``-v1:0``."""
_MANNER = LazyPattern(r":[^:\d]*$")
"""Matches a suffix that says how a model is served, such as ``:free``, ``:nitro`` or ``:thinking``.
A suffix that contains a digit is a size and doesn't match."""
_MAKER = LazyPattern(r"^(?:[a-z][a-z-]*\.)+(?=[a-z])")
"""Matches a region and a maker before the model's name, as in ``us.anthropic.``, but not a
version."""
_POINT = LazyPattern(r"(?<=\d)p(?=\d)")
"""Matches the "p" that Fireworks writes for a decimal point: ``4p6`` means 4.6."""
_SEPARATOR = LazyPattern(r"[._ @:]+")
_LETTER_DIGIT = LazyPattern(r"(?<=[a-z])-(?=\d{1,3}(?!\d))")
"""Matches the hyphen before a number, which is removed because qwen-3 and qwen3 are the same model.
Four digits are a date and don't match."""
_CLAUDE = LazyPattern(r"^claude-?(\d+(?:-\d{1,2})?)-(opus|sonnet|haiku)(?=-|$)")
"""Matches a Claude name that has its version before the family, because names of both orders
occur."""
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
    """Return the canonical spelling of a model's name: lower case, without maker and gateway.

    ``us.anthropic.claude-4.5-sonnet-v1:0`` becomes ``claude-sonnet4-5``. Dates are kept.
    """
    name = name.strip().lower().rpartition("/")[2]
    name = _MANNER.sub("", _REVISION_OF_CLOUD.sub("", name))
    name = _POINT.sub("-", _MAKER.sub("", name))
    name = _SEPARATOR.sub("-", name)
    name = _CLAUDE.sub(r"claude-\2-\1", name)
    return _LETTER_DIGIT.sub("", name)


def broader(spelling: str) -> Iterator[str]:
    """Yield a spelling and then shorter ones, each without one more date, "latest" or "preview"."""
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
    """The maker of a family of models; ``names`` is a pattern for the start of their spellings.

    ``open`` says that the weights are open, so that other providers may serve the models with other
    context windows. ``provider`` is the id of the maker's own provider.
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
    """Raised if a name has no known provider or can't be a name. The message is for the user."""


class NameStanding(StrEnum):
    """Whether a model's name can be used, as far as this is known without asking the provider."""

    KNOWN = "known"
    """The catalog or the settings contain the model, or its server is the user's own."""
    NEW = "new"
    """The provider is known, but the catalog lacks the name. The model may be newer than the
    catalog, or the name a typo."""
    IMPOSSIBLE = "impossible"
    """The name has no known provider to which a request could be sent, or contains white space."""


@frozen
class NameVerdict:
    """The result of checking a model's name.

    ``similar`` are ids that the user may have meant.
    """

    model: str
    standing: NameStanding
    similar: tuple[str, ...] = ()
    only: str = ""
    """The id of the only model whose last part is exactly the given name; "" if there is none or
    more than one."""

    @property
    def taken(self) -> str:
        """The message that the only model with this name is used; "" if there isn't exactly one."""
        if self.only:
            return f"“{self.model}” is {self.only}, the only model with this name."
        return ""

    @property
    def sentence(self) -> str:
        """The message for the user about the name; "" for a known model."""
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
                    f" tui-agent models --all lists the known models. For a server of your own, add "
                    f'[models."{self.model}"] with its base_url to config.toml.'
                )
                name = " Model names have the form provider/name."
                if "/" in self.model:
                    name = ""
                return f"There is no model “{self.model}”.{meant or f'{name}{how}'}"
