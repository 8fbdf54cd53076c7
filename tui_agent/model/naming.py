"""Judges a model's name before it is used or saved: known, new but possible, or surely a slip."""

from enum import StrEnum

from tui_agent.lazy import dataclass
from tui_agent.model.catalog import Catalog
from tui_agent.model.providers import PROVIDERS, provider_of


class UnknownModelError(ValueError):
    """A name that can be no model's; the message is a sentence for a person."""


class NameStanding(StrEnum):
    """What can be said of a name without asking its provider."""

    KNOWN = "known"
    """In the catalog, set up by the user, or on a server of theirs."""
    NEW = "new"
    """A provider that exists, and a name the catalog doesn't have: newer than it, or misspelt."""
    IMPOSSIBLE = "impossible"
    """Nobody would know where to send the request."""


@dataclass(frozen=True, slots=True)
class NameVerdict:
    """What is thought of a name. ``similar`` are models that may have been meant."""

    model: str
    standing: NameStanding
    similar: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """What to tell the user; "" of a known model."""
        meant = f" Did you mean {' or '.join(self.similar)}?" if self.similar else ""
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
                name = "" if "/" in self.model else " Names are written provider/name."
                return f"There is no model “{self.model}”.{meant or f'{name}{how}'}"


def judge(model: str, catalog: Catalog) -> NameVerdict:
    """Return what can be said of a name. It may read the catalog: call it in a thread when somebody is typing."""
    model = model.strip()
    prefix, slash, name = model.partition("/")
    if catalog.knows(model) or (slash and name and catalog.is_own_server(model)):
        return NameVerdict(model, NameStanding.KNOWN)
    exists = bool(slash and name) and not set(model) & set(" \t\n") and provider_of(prefix).id in PROVIDERS
    return NameVerdict(model, NameStanding.NEW if exists else NameStanding.IMPOSSIBLE, tuple(catalog.similar(model)))


def require(model: str, catalog: Catalog) -> str:
    """Return what to warn of when a model is used, "" when there is nothing.

    Raises:
        UnknownModelError: it can't be used.
    """
    verdict = judge(model, catalog)
    if verdict.standing is NameStanding.IMPOSSIBLE:
        raise UnknownModelError(verdict.sentence)
    return verdict.sentence
