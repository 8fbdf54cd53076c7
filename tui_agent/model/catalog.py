"""The catalog: context windows, prices and abilities of models.

Each fact comes from the first of these sources that has it: the user's settings, the server's
answer (if it was asked), the price list with its corrections, and facts about the model's family. A
gateway is assumed to offer the maker's window and prices. On a server at a private address, a
window of at most ``ASSUMED_WINDOW`` is assumed, except for models whose makers don't publish the
weights. The price list is read when it is first needed.

This module asks no server (``discovery`` does), and doesn't know windows learnt from refused
requests. `CatalogDirectory.with_learnt` adds those.
"""

import difflib
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Literal

from tui_agent.lazy import LazyPattern, frozen
from tui_agent.model.addresses import Addresses, AddressSetting, is_private, plain_url
from tui_agent.model.claude import claude
from tui_agent.model.naming import NameStanding, NameVerdict, UnknownModelError, maker_of, spelled
from tui_agent.model.price_list import PriceList, Row
from tui_agent.model.providers import PROVIDERS, Provider, provider_of
from tui_agent.model.served import ServedModel, ServedModels, ServerAnswer
from tui_agent.model.settings import ModelSettings, ProviderSettings
from tui_agent.session.effort import Effort
from tui_agent.session.entries import Usage
from tui_agent.session.records import Reported

ASSUMED_WINDOW = 32_768
"""Context window assumed for an unknown model, in tokens."""

Origin = Literal["catalog", "config", "server", "assumed", "learnt"]
"""The source of a context window's size. ``assumed`` means that the size is a guess, ``learnt``
that it comes from a refused request."""

HOUR_WRITE = 2.0
"""Anthropic's price for caching a token for an hour, as a multiple of the price of an input
token."""
_TIER = LazyPattern(r"input_cost_per_token_above_(\d+)k_tokens")
_WRITE_COST = "cache_creation_input_token_cost"
_HOUR_COST = f"{_WRITE_COST}_above_1hr"
_COSTS = (
    "input_cost_per_token",
    "output_cost_per_token",
    "cache_read_input_token_cost",
    _WRITE_COST,
    _HOUR_COST,
)
_REGION = LazyPattern(r"^(?:bedrock|azure)/[a-z]+(?:-[a-z]+)*(?:-\d)?/|^ft:|^[a-z]+/ft:")
_THROUGH = {"openrouter", "vercel_ai_gateway", "litellm_proxy", "github_copilot"}
"""Providers that forward requests to the models of other makers, at the makers' prices."""
_LIMITED = {"chatgpt", "github_copilot"}
"""Subscriptions that limit models to smaller windows. Their rows in the price list are not used for
the same models at other providers."""

_OWN_ONLY = frozenset(
    {
        "anthropic",
        "openai",
        "gemini",
        "xai",
        "deepseek",
        "mistral",
        "zai",
        "moonshot",
        "minimax",
        "cohere",
        "xiaomi_mimo",
    }
)
"""Providers that serve only their own models."""
_MARKED_PROVIDERS = {"anthropic", "bedrock", "vertex_ai", "azure_ai", "databricks", *_THROUGH} - {
    "github_copilot"
}
_EFFORT_FLAGS = {
    Effort.OFF: ("supports_none_reasoning_effort",),
    Effort.MINIMAL: ("supports_minimal_reasoning_effort",),
    Effort.XHIGH: ("supports_xhigh_reasoning_effort",),
    Effort.MAX: ("supports_max_reasoning_effort",),
}


@frozen
class Prices:
    """Prices in US dollars per token."""

    input: float
    output: float
    cache_read: float
    cache_write: float
    over: int = 0
    """The prices apply to prompts with more than this many tokens."""
    cache_write_hour: float | None = None
    """Price of tokens that are cached for an hour; None if it is the same as ``cache_write``."""


@frozen
class ModelInfo:
    """The facts about a model. Sizes are in tokens."""

    id: str
    """The id by which the user chooses the model, usually ``provider/name``."""
    provider: str
    context_window: int
    max_output: int | None = None
    """Maximum length of an answer, in tokens. None if it is unknown or limited only by the
    window."""
    prices: tuple[Prices, ...] = ()
    """Prices, in ascending order of the prompt size above which each applies (``over``); empty if
    unknown."""
    vision: bool = False
    tools: bool = True
    reasoning: bool = False
    cache_marks: bool = False
    """Whether the provider accepts Anthropic's cache marks for the model."""
    efforts: tuple[Effort, ...] = tuple(Effort)
    """Effort levels that the model accepts, lowest first. They are empty if the model is known not
    to reason; for an unknown model, they are all levels."""
    max_effort: Literal["xhigh", "max"] = "xhigh"
    """The value that is sent for ``Effort.MAX`` in OpenAI's format. It is "max" only if the model
    is known to accept that value."""
    responses_only: bool = False
    """Whether the model answers only in OpenAI's Responses format, and not in chat completions."""
    without_tools: bool = False
    """Whether the model's server or the settings state that the model can't call tools. The price
    list is not used for this, because its rows are often incomplete."""
    small: bool = False
    """Whether the model has so few parameters that many tools confuse it."""
    tiny: bool = False
    """Whether the model has too few parameters to call tools; if so, ``model.steps`` builds its
    requests."""
    origin: Origin = "catalog"
    """Where the size ``context_window`` comes from."""
    deprecated_on: str | None = None
    """The last day on which the provider offers the model, as announced, as an ISO date; None if
    unknown."""

    @property
    def name(self) -> str:
        return name_of(self.id)

    def cost(self, usage: Reported, *, hour_writes: int = 0) -> float | None:
        """Return the price of a request and its answer in US dollars, None if prices are unknown.

        ``hour_writes`` is how many of the tokens in ``usage.cache_write`` are cached for an hour.
        """
        prices = None
        for row in self.prices:
            if usage.prompt > row.over or not row.over:
                prices = row
        if prices is None:
            return None
        hour = prices.cache_write_hour
        if hour is None:
            hour = prices.cache_write
        return (
            usage.input * prices.input
            + usage.output * prices.output
            + usage.cache_read * prices.cache_read
            + (usage.cache_write - hour_writes) * prices.cache_write
            + hour_writes * hour
        )

    def cache_miss_cost(self, tokens: int, *, for_hour: bool = False) -> float | None:
        """Return how much more a prompt of ``tokens`` tokens costs if it is no longer cached.

        The result is in US dollars and at least 0; None if prices are unknown. ``for_hour`` says
        that the prompt is then cached again for an hour.
        """
        uncached = Usage(cache_write=tokens) if self.cache_marks else Usage(input=tokens)
        price = self.cost(uncached, hour_writes=uncached.cache_write * for_hour)
        read = self.cost(Usage(cache_read=tokens))
        if price is None or read is None:
            return None
        return max(0.0, price - read)


class Catalog:
    """Finds windows, prices and abilities of models, and their providers and addresses.

    ``environ`` are the environment variables, which may set providers' addresses; ``served`` are
    the servers' answers about their models. ``path`` is a price list to read instead of the shipped
    one, for tests.
    """

    def __init__(
        self,
        models: Mapping[str, ModelSettings] | None = None,
        providers: Mapping[str, ProviderSettings] | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        served: ServedModels | None = None,
        path: Path | None = None,
    ) -> None:
        self.settings = dict(models or {})
        """The user's settings for models, by model id. Only ``use`` changes them."""
        self._providers = dict(providers or {})
        self._environ = dict(environ or {})
        self._rows = PriceList(path)
        self._infos: dict[str, ModelInfo] = {}
        self.served = served or ServedModels()
        """What servers reported about their models. After adding an answer, call ``forget``."""
        self.addresses = Addresses(self._environ, self.settings, self._providers)
        """The addresses of the providers' and models' servers."""

    def use(
        self, models: Mapping[str, ModelSettings], providers: Mapping[str, ProviderSettings]
    ) -> None:
        self.settings = dict(models)
        self._providers = dict(providers)
        self.addresses = Addresses(self._environ, self.settings, self._providers)
        self.forget()

    def forget(self) -> None:
        """Clear the cached facts. This is needed, for example, after a server has answered."""
        self._infos.clear()

    def info(self, model: str) -> ModelInfo:
        """Return the facts about a model; an unknown model has the window ``ASSUMED_WINDOW``."""
        known = self._infos.get(model)
        if known is None:
            known = self._infos[model] = self._build(model)
        return known

    def models(self, *, today: date | None = None) -> list[ModelInfo]:
        """Return all known chat models: those in the settings first, the others sorted by id.

        For a provider whose server has answered, the server's list replaces the price list. Models
        of the price list are left out if they are regional or fine-tuned variants, belong to a
        local provider, or had their last day before ``today`` (default: the current UTC date).
        """
        day = (today or datetime.now(UTC).date()).isoformat()
        answered: set[str] = set()
        ids: set[str] = set()
        for provider_id in (*PROVIDERS, *self._providers):
            answer = self._answer_at(self.addresses.of(provider_of(provider_id)).url)
            if answer is None:
                continue
            answered.add(provider_id)
            for name, model in answer.models.items():
                if model.chats and self.can_chat(name):
                    ids.add(f"{provider_id}/{name}")
        for name, row in self._rows.all.items():
            provider = provider_of(str(row["litellm_provider"]))
            is_variant = _REGION.match(name) or "*" in name or "commitment" in name
            if is_variant or provider.local_url is not None or provider.id in answered:
                continue
            if (row.get("deprecation_date") or day) >= day:
                ids.add(name if name.startswith(f"{provider.id}/") else f"{provider.id}/{name}")
        own = [self.info(model) for model in self.settings]
        return own + [self.info(model_id) for model_id in sorted(ids - set(self.settings))]

    def beside_own(self) -> Iterator[tuple[ModelInfo, str]]:
        """Yield the chat models that servers in the settings offer, but the settings don't list.

        Each model is paired with the base URL of its server.
        """
        seen: set[tuple[str, str]] = set()
        for model, settings in self.settings.items():
            url = settings.base_url or ""
            answer = self._answer_at(url)
            for name, served in answer.models.items() if answer is not None else ():
                found = f"{self.provider(model)}/{name}"
                is_known = found in self.settings or (found, url) in seen
                if is_known or not served.chats or not self.can_chat(name):
                    continue
                seen.add((found, url))
                info = self.info(found)
                yield replace(info, context_window=served.window or info.context_window), url

    def _answer_at(self, url: str) -> ServerAnswer | None:
        """Return the latest answer of the server at a URL; None for "" or if it never answered."""
        return self.served.answer(url) if url else None

    def can_chat(self, name: str) -> bool:
        """Return False if the price list has the name only for models that can't chat."""
        return spelled(name) not in self._rows.closed

    def knows(self, model: str) -> bool:
        """Return whether the model is in the settings, in its server's answer or in the price list.

        If the model's provider serves many makers' models, or the user set its address, the price
        list may have the model under another provider.
        """
        if (
            model in self.settings
            or self._served(model) is not None
            or self._exact(model) is not None
        ):
            return True
        # A host or gateway may offer models that the price list has only under other providers.
        provider = self.provider(model)
        is_host = provider in PROVIDERS and provider not in _OWN_ONLY
        return (is_host or bool(self.place(model).source)) and self._related(model) is not None

    def is_new_provider(self, provider: Provider) -> bool:
        """Return whether neither this program nor litellm knows the provider."""
        return provider.id not in PROVIDERS and provider.id not in self._rows.providers

    def place(self, model: str) -> AddressSetting:
        return self.addresses.of(provider_of(self.provider(model)), model)

    def served_name(self, model: str) -> str:
        """Return the key under which facts learnt about a model are stored.

        The key is the model's id or, for a model at an address set by the user, ``id at URL``.
        """
        place = self.place(model)
        if place.source:
            return f"{model} at {plain_url(place.url)}"
        return model

    def is_own_server(self, model: str) -> bool:
        """Return whether the model runs on a model server at a private address.

        The server must be of a local provider such as Ollama, or have listed its models.
        """
        url = self.place(model).url
        is_known = (
            provider_of(self.provider(model)).local_url is not None
            or self._served(model) is not None
        )
        return is_known and is_private(url)

    def similar(self, model: str, limit: int = 3) -> list[str]:
        """Return the ids of at most ``limit`` known models with a similar name, for "did you mean".

        Ids that are similar as a whole come before ids of which only the last part is similar.
        """
        ids = [info.id for info in self.models()]
        tails = {info_id.rpartition("/")[2]: info_id for info_id in reversed(ids)}
        close = difflib.get_close_matches(model, ids, limit, 0.6)
        for tail in difflib.get_close_matches(model.rpartition("/")[2], tails, limit, 0.6):
            close.append(tails[tail])
        return list(dict.fromkeys(close))[:limit]

    def judge(self, model: str) -> NameVerdict:
        """Say whether a model's name can be used and, if it isn't known, which names are similar.

        It may read the whole price list, so don't call it on the UI thread.
        """
        model = model.strip()
        prefix, slash, name = model.partition("/")
        # Only the user's own server knows the names of its models, so any name is accepted.
        is_own_server = provider_of(self.provider(model)).local_url is not None or bool(
            self.place(model).source
        )
        if self.knows(model) or (slash and name and is_own_server):
            return NameVerdict(model, NameStanding.KNOWN)
        exists = (
            bool(slash and name)
            and not set(model) & set(" \t\n")
            and provider_of(prefix).id in PROVIDERS
        )
        return NameVerdict(
            model,
            NameStanding.NEW if exists else NameStanding.IMPOSSIBLE,
            tuple(self.similar(model)),
            only=self._only_named(model),
        )

    def _only_named(self, name: str) -> str:
        """Return the id of the only model with this name, whatever its provider.

        If the settings have models with the name, only those count. Returns "" if there is none or
        more than one.
        """
        if not name or "/" in name:
            return ""
        for ids in (list(self.settings), [info.id for info in self.models()]):
            found = [one for one in ids if one.rpartition("/")[2] == name]
            if found:
                return found[0] if len(found) == 1 else ""
        return ""

    def require(self, model: str) -> str:
        """Return a warning for the user if the catalog doesn't know the model; otherwise "".

        Raises:
            UnknownModelError: the name has no known provider, or contains white space.
        """
        verdict = self.judge(model)
        if verdict.standing is NameStanding.IMPOSSIBLE:
            raise UnknownModelError(verdict.sentence)
        return verdict.sentence

    def provider(self, model: str) -> str:
        """Return the id of a model's provider, from the prefix of ``model``.

        For a name without a prefix, the id is taken from the price list; it is "openai" if the list
        doesn't have the name.
        """
        prefix, slash, _name = model.partition("/")
        if slash:
            return provider_of(prefix).id
        row = self._rows.get(model) or {}
        return provider_of(str(row.get("litellm_provider", "openai"))).id

    # -- rows ---------------------------------------------------------------------------------------------------

    def _exact(self, model: str) -> Row | None:
        """Return the price list's row for exactly this model at its provider; None without one."""
        prefix, slash, name = model.partition("/")
        row = self._rows.get(model)
        if row is not None or not slash:
            return row
        provider = provider_of(prefix).id
        row = self._rows.get(name) or self._rows.get(f"{provider}/{name}")
        if row is not None and provider_of(str(row["litellm_provider"])).id == provider:
            return row
        return None

    def _related(self, model: str) -> Row | None:
        """Return a row for the same model under another spelling or provider.

        The maker's own row is preferred. If only other providers have the model, a row with the
        median window is returned, without prices. Returns None if there is no row.
        """
        spelling = spelled(model)
        found = self._rows.named_like(spelling)
        maker = maker_of(spelling)
        theirs = f"{maker.provider}/" if maker is not None else "/"
        rows: list[Row] = []
        for name in sorted(found, key=lambda name: "/" in name and not name.startswith(theirs)):
            row = self._rows.get(name)
            if row is None or _window(row) is None or row["litellm_provider"] in _LIMITED:
                continue
            if maker is not None and provider_of(row["litellm_provider"]).id == maker.provider:
                return row
            rows.append(row)
        if not rows:
            return None
        window = sorted(_window(row) or 0 for row in rows)[(len(rows) - 1) // 2]
        return _without_prices(next(row for row in rows if _window(row) == window))

    def _row(self, model: str) -> Row | None:
        exact = self._exact(model)
        if exact is not None and _window(exact) is not None:
            return exact
        related = self._related(model)
        if related is None:
            return exact
        provider = self.provider(model)
        maker = provider_of(related["litellm_provider"]).id
        if provider not in {*_THROUGH, maker} and not self.place(model).source:
            related = _without_prices(related)  # other hosts set other prices
        if model.endswith(":free"):
            related = _without_prices(related)
            related |= {"input_cost_per_token": 0.0, "output_cost_per_token": 0.0}
        named = {key: value for key, value in (exact or {}).items() if value is not None}
        return related | named

    def _served(self, model: str) -> ServedModel | None:
        """Return the facts that the model's server reported; None if it reported none.

        If a private server has only one model, its facts are returned, whatever ``model`` says.
        """
        url = self.place(model).url
        answer = self._answer_at(url)
        models = answer.models if answer is not None else {}
        only = None
        if len(models) == 1 and is_private(url):
            only = next(iter(models.values()))
        return models.get(name_of(model), only)

    def _build(self, model: str) -> ModelInfo:
        provider = self.provider(model)
        place = self.place(model)
        row = self._row(model)
        spelling = spelled(model)
        families = self._rows.corrections.get("family", ())
        if row is not None:
            info = _from_row(model, provider, row)
        elif family := next((row for row in families if re.match(row["pattern"], spelling)), None):
            info = replace(_from_row(model, provider, family), tools=True, origin="assumed")
        else:
            info = ModelInfo(model, provider, ASSUMED_WINDOW, origin="assumed")
        maker = maker_of(spelling)
        is_own = maker is None or maker.open or provider_of(provider).local_url is not None
        if is_own and is_private(place.url):
            # The user may have started the server with a smaller window.
            info = replace(
                info, context_window=min(info.context_window, ASSUMED_WINDOW), max_output=None
            )
            info = replace(info, prices=(), origin="assumed")
        info = replace(info, cache_marks=self._takes_marks(model, provider))
        if (served := self._served(model)) is not None:
            info = _overlaid(
                info, served, served.window, "server", _prices_of(served, 1, hour_write=None)
            )
            if served.reasoning is False:
                info = replace(info, efforts=())
        settings = self.settings.get(model)
        if settings is None:
            return info
        hour_write = None if settings.cache_write_price is None else HOUR_WRITE
        prices = _prices_of(settings, 1_000_000, hour_write=hour_write)
        info = _overlaid(info, settings, settings.context_window, "config", prices)
        return replace(
            info,
            efforts=tuple(Effort) if info.reasoning and not info.efforts else info.efforts,
            cache_marks=info.cache_marks if settings.cache_marks is None else settings.cache_marks,
        )

    def _takes_marks(self, model: str, provider: str) -> bool:
        """Return whether Anthropic's cache marks can be sent with requests to the model.

        The result is True for a Claude model that is called in Anthropic's format, or at a provider
        that forwards the marks.
        """
        tables = (self.settings.get(model), self._providers.get(provider))
        chosen = next((table.wire for table in tables if table is not None and table.wire), None)
        wire = chosen or provider_of(provider).wire_of(name_of(model))
        return "claude" in model and (provider in _MARKED_PROVIDERS or wire == "messages")


def name_of(model: str) -> str:
    """Return a model's id without the provider before the first slash."""
    return model.partition("/")[2] or model


def _without_prices(row: Row) -> Row:
    return {key: value for key, value in row.items() if "_cost_" not in key}


def _from_row(model: str, provider: str, row: Row) -> ModelInfo:
    window = _window(row)
    limit = _positive(row.get("max_output_tokens")) or _positive(row.get("max_tokens"))
    return ModelInfo(
        id=model,
        provider=provider,
        context_window=window or ASSUMED_WINDOW,
        # Some hosts that don't limit answers give the window as the limit.
        max_output=None if limit is None or (window is not None and limit >= window) else limit,
        prices=tuple(_prices(row)),
        vision=bool(row.get("supports_vision")),
        tools=bool(row.get("supports_function_calling")),
        reasoning=bool(row.get("supports_reasoning")),
        efforts=_efforts(model, row),
        max_effort="max" if row.get("supports_max_reasoning_effort") else "xhigh",
        responses_only=row.get("mode") == "responses",
        origin="catalog" if window else "assumed",
        deprecated_on=row.get("deprecation_date"),
    )


def _window(row: Row) -> int | None:
    return _positive(row.get("max_input_tokens")) or _positive(row.get("max_tokens"))


def _efforts(model: str, row: Row) -> tuple[Effort, ...]:
    if (known := claude(model)) is not None:
        return known.efforts
    if isinstance(names := row.get("reasoning_effort_levels"), list):
        return _in_order({Effort(name) for name in names if name in {*Effort, "none"}})
    if not row.get("supports_reasoning"):
        return ()
    if all(row.keys().isdisjoint(names) for names in _EFFORT_FLAGS.values()):
        return tuple(Effort)
    found = set()
    for level in Effort:
        flags = _EFFORT_FLAGS.get(level, ("supports_reasoning",))
        if any(row.get(name) for name in flags):
            found.add(level)
    return _in_order(found)


def _in_order(levels: Collection[Effort]) -> tuple[Effort, ...]:
    return tuple(level for level in Effort if level in levels)


def _prices(row: Row) -> Iterator[Prices]:
    if row.get("input_cost_per_token") is None:
        return
    sizes = sorted(int(match[1]) for key in row if (match := _TIER.fullmatch(key)))
    for size in (0, *sizes):
        suffix = ""
        if size:
            suffix = f"_above_{size}k_tokens"
        price: dict[str, float] = {}
        for name in _COSTS:
            value = row.get(f"{name}{suffix}", row.get(name))
            if isinstance(value, int | float):
                price[name] = float(value)
        sent = price.get("input_cost_per_token", 0.0)
        hour = price.get(_HOUR_COST, HOUR_WRITE * sent) if _WRITE_COST in row else None
        yield Prices(
            input=sent,
            output=price.get("output_cost_per_token", 0.0),
            cache_read=price.get("cache_read_input_token_cost", sent),
            cache_write=price.get(_WRITE_COST, sent),
            over=size * 1000,
            cache_write_hour=hour,
        )


def _overlaid(
    info: ModelInfo,
    said: ServedModel | ModelSettings,
    window: int | None,
    origin: Origin,
    prices: tuple[Prices, ...],
) -> ModelInfo:
    """Return ``info`` with its facts overridden by those in ``said`` (an answer or settings).

    If ``window`` is None or ``prices`` are empty, they replace nothing. ``origin`` is the window's
    source.
    """
    names = ("max_output", "vision", "tools", "reasoning", "small", "tiny")
    named = {name: value for name in names if (value := getattr(said, name)) is not None}
    return replace(
        info,
        **named,
        without_tools=info.without_tools if said.tools is None else not said.tools,
        context_window=window or info.context_window,
        prices=prices or info.prices,
        origin=info.origin if window is None else origin,
    )


def _prices_of(
    said: ServedModel | ModelSettings, tokens: int, *, hour_write: float | None
) -> tuple[Prices, ...]:
    """Return the prices in ``said``, which states them in US dollars per ``tokens`` tokens.

    The result is empty if the input or output price is missing; a missing cache price is assumed to
    be the input price. ``hour_write`` is the price of caching for an hour as a multiple of the
    input price, None if unknown.
    """
    if said.input_price is None or said.output_price is None:
        return ()
    sent = said.input_price / tokens
    answered = said.output_price / tokens
    read = sent if said.cache_read_price is None else said.cache_read_price / tokens
    write = sent if said.cache_write_price is None else said.cache_write_price / tokens
    hour = None if hour_write is None else hour_write * sent
    return (Prices(sent, answered, read, cache_write=write, cache_write_hour=hour),)


def _positive(value: Any) -> int | None:
    if isinstance(value, int | float) and value > 0:
        return int(value)
    return None
