"""The catalog: windows, prices and abilities of models.

Sources are, in this order: the user's settings, the server's answer when it was asked, the list of
prices with its corrections, and the facts known of the model's family. A model keeps its facts
behind any gateway; only a server of one's own that runs a model others may run as well is expected
to have a window of its own. The list is read when it is first needed.
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
from tui_agent.model.providers import PROVIDERS, provider_of
from tui_agent.model.served import ServedModel, ServedModels, ServerAnswer
from tui_agent.model.settings import ModelSettings, ProviderSettings
from tui_agent.session.effort import Effort
from tui_agent.session.entries import Usage
from tui_agent.session.records import Reported

ASSUMED_WINDOW = 32_768
"""Context window assumed for an unknown model, in tokens."""

Origin = Literal["catalog", "config", "server", "assumed", "learnt"]
"""Where the number of a window comes from; "learnt": from a request that was refused."""

HOUR_WRITE = 2.0
"""Anthropic's price for caching input for an hour, as a multiple of the input price."""
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
"""Providers that pass requests on to others' models, at their makers' prices."""
_LIMITED = {"chatgpt", "github_copilot"}
"""Subscriptions that cut windows: their facts of a model hold nowhere else."""

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
"""Providers that serve their own models and nothing else."""
_MARKED_PROVIDERS = {"anthropic", "bedrock", "vertex_ai", "azure_ai", "databricks", *_THROUGH} - {
    "github_copilot"
}
_EFFORT_FLAGS = {
    Effort.OFF: ("supports_none_reasoning_effort",),
    Effort.MINIMAL: ("supports_minimal_reasoning_effort",),
    Effort.MAX: ("supports_xhigh_reasoning_effort", "supports_max_reasoning_effort"),
}


@frozen
class Prices:
    """US dollars per token. ``over`` is the prompt size in tokens from which these prices hold."""

    input: float
    output: float
    cache_read: float
    cache_write: float
    over: int = 0
    cache_write_hour: float | None = None
    """For tokens the cache keeps for an hour; None where it costs the same."""


@frozen
class ModelInfo:
    """The facts known of a model.

    ``prices`` are in ascending order of ``over``, empty when unknown.

    ``origin`` says where the window comes from. ``cache_marks``: the provider takes Anthropic's
    cache marks.
    """

    id: str
    provider: str
    context_window: int
    max_output: int | None = None
    prices: tuple[Prices, ...] = ()
    vision: bool = False
    tools: bool = True
    reasoning: bool = False
    cache_marks: bool = False
    efforts: tuple[Effort, ...] = tuple(Effort)
    """The levels of thinking it can be asked for; of an unknown model all there are."""
    max_effort: Literal["xhigh", "max"] = "xhigh"
    """Name of the model's highest effort level in OpenAI's format."""
    responses_only: bool = False
    """Answers OpenAI's Responses only, not chat completions."""
    without_tools: bool = False
    """Its server or the settings say that it can't call tools; nobody else's word counts for
    that."""
    small: bool = False
    """Its server counts few parameters: many tools confuse it."""
    tiny: bool = False
    """Its server counts too few parameters for tools: it goes in steps."""
    origin: Origin = "catalog"
    deprecated_on: str | None = None
    """ISO date from which the provider doesn't serve it any more, when announced."""

    @property
    def name(self) -> str:
        return name_of(self.id)

    def cost(self, usage: Reported, *, hour_writes: int = 0) -> float | None:
        """Return the price of an answer in US dollars, None when prices are unknown.

        ``hour_writes`` are those of ``usage.cache_write`` that were cached for an hour.
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

    def reread_cost(self, tokens: int, *, for_hour: bool = False) -> float | None:
        """Return what it costs more to read a prompt without the cache, in US dollars.

        None when prices are unknown. ``for_hour``: it is cached for an hour again.
        """
        uncached = Usage(cache_write=tokens) if self.cache_marks else Usage(input=tokens)
        price = self.cost(uncached, hour_writes=uncached.cache_write * for_hour)
        read = self.cost(Usage(cache_read=tokens))
        if price is None or read is None:
            return None
        return max(0.0, price - read)


class Catalog:
    """Everything known of models.

    ``environ`` may name other addresses than the providers' own, ``served`` are servers' answers.
    ``path`` is the file to read instead of the list that is shipped, for tests.
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
        """Models of the settings; changed by ``use`` only."""
        self._providers = dict(providers or {})
        self._environ = dict(environ or {})
        self._rows = PriceList(path)
        self._infos: dict[str, ModelInfo] = {}
        self.served = served or ServedModels()
        """Servers' answers about their models; whoever adds to it calls ``forget``."""
        self.addresses = Addresses(self._environ, self.settings, self._providers)
        """Where requests go."""

    def use(
        self, models: Mapping[str, ModelSettings], providers: Mapping[str, ProviderSettings]
    ) -> None:
        self.settings = dict(models)
        self._providers = dict(providers)
        self.addresses = Addresses(self._environ, self.settings, self._providers)
        self.forget()

    def forget(self) -> None:
        """Clear the cached facts, for example after a server has answered."""
        self._infos.clear()

    def info(self, model: str) -> ModelInfo:
        """Return the facts known of a model; an unknown one gets an assumed window."""
        known = self._infos.get(model)
        if known is None:
            known = self._infos[model] = self._build(model)
        return known

    def models(self, *, today: date | None = None) -> list[ModelInfo]:
        """Return the models one can chat with, the user's own first, then by name.

        Of a provider whose server was asked those are the ones it named. Models out of service are
        left out.
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
        """Yield other models that the servers of the user's models name, each with its base URL."""
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
        """Return the last answer of the server at an address; None for "" or an unasked server."""
        return self.served.answer(url) if url else None

    def can_chat(self, name: str) -> bool:
        """Return False for a model that is known not to chat, such as one for embeddings."""
        return spelled(name) not in self._rows.closed

    def knows(self, model: str) -> bool:
        """Return whether a model of exactly this name is known at its provider."""
        if (
            model in self.settings
            or self._served(model) is not None
            or self._exact(model) is not None
        ):
            return True
        # At a host of many, or behind a gateway, a model may be another's than its provider's.
        provider = self.provider(model)
        is_host = provider in PROVIDERS and provider not in _OWN_ONLY
        return (is_host or bool(self.place(model).source)) and self._related(model) is not None

    def place(self, model: str) -> AddressSetting:
        return self.addresses.of(provider_of(self.provider(model)), model)

    def served_name(self, model: str) -> str:
        """Return the key for facts learnt of a model; with a user's address they hold only there."""
        place = self.place(model)
        if place.source:
            return f"{model} at {plain_url(place.url)}"
        return model

    def is_own_server(self, model: str) -> bool:
        """Return whether the user's own model server answers: a known one at a private address."""
        url = self.place(model).url
        is_known = (
            provider_of(self.provider(model)).local_url is not None
            or self._served(model) is not None
        )
        return is_known and is_private(url)

    def similar(self, model: str, limit: int = 3) -> list[str]:
        """Return ids that may have been meant: by the whole id, then by the name alone."""
        ids = [info.id for info in self.models()]
        tails = {info_id.rpartition("/")[2]: info_id for info_id in reversed(ids)}
        close = difflib.get_close_matches(model, ids, limit, 0.6)
        for tail in difflib.get_close_matches(model.rpartition("/")[2], tails, limit, 0.6):
            close.append(tails[tail])
        return list(dict.fromkeys(close))[:limit]

    def judge(self, model: str) -> NameVerdict:
        """Return the verdict on a name. It may read the price list: not while the user types."""
        model = model.strip()
        prefix, slash, name = model.partition("/")
        # A server of the user's alone knows its names.
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
        )

    def require(self, model: str) -> str:
        """Return a warning for the use of a model, "" when there is none.

        Raises:
            UnknownModelError: it can't be used.
        """
        verdict = self.judge(model)
        if verdict.standing is NameStanding.IMPOSSIBLE:
            raise UnknownModelError(verdict.sentence)
        return verdict.sentence

    def provider(self, model: str) -> str:
        """Return the id of a model's provider: its prefix, or the catalog's of a bare name."""
        prefix, slash, _name = model.partition("/")
        if slash:
            return provider_of(prefix).id
        row = self._rows.get(model) or {}
        return provider_of(str(row.get("litellm_provider", "openai"))).id

    # -- rows ---------------------------------------------------------------------------------------------------

    def _exact(self, model: str) -> Row | None:
        """Return the row that a model has at its provider under this very name."""
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
        """Return the row of the same model by another spelling or at another place, its maker's before all others.

        Where only others have it, the window is the one that at least half of them give.
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
            related = _without_prices(related)  # a host has prices of its own
        if model.endswith(":free"):
            related = _without_prices(related)
            related |= {"input_cost_per_token": 0.0, "output_cost_per_token": 0.0}
        named = {key: value for key, value in (exact or {}).items() if value is not None}
        return related | named

    def _served(self, model: str) -> ServedModel | None:
        """Return the server's facts of a model; a private server's only model goes by any name."""
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
            # It runs with whatever window it was started with.
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
        """Return whether a model takes Anthropic's cache marks, by its provider or format."""
        tables = (self.settings.get(model), self._providers.get(provider))
        chosen = next((table.wire for table in tables if table is not None and table.wire), None)
        wire = chosen or provider_of(provider).wire_of(name_of(model))
        return "claude" in model and (provider in _MARKED_PROVIDERS or wire == "messages")


def name_of(model: str) -> str:
    """Return a model's name without its provider."""
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
        # As much as the window is no limit of answers; hosts write it so.
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
        return _in_order({Effort(name) for name in names if name in {*Effort, "none", "xhigh"}})
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
    """Return the facts known of a model with those its server or the settings name."""
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
    """Return prices from a server or the settings, given per ``tokens``; none if one is missing."""
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
