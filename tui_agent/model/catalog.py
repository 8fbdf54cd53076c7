"""The catalog: windows, prices and abilities of models, from litellm's package file and the user's settings.

The file is read without importing litellm, when it is first asked for.
"""

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tui_agent.model.price_list import PriceList, Row
from tui_agent.model.providers import provider_of
from tui_agent.model.settings import ModelSettings, ProviderSettings
from tui_agent.session.effort import Effort
from tui_agent.session.entries import Usage

ASSUMED_WINDOW = 32_768
"""Tokens of the window of a model nothing is known of."""

HOUR_WRITE = 2.0
"""What a token written to the cache for an hour costs, in those that aren't cached (Anthropic, "Prompt caching")."""

_SLIP = 0.85
"""How much a name resembles one that was mistyped: 0 not at all, 1 the same."""
_TIER = re.compile(r"input_cost_per_token_above_(\d+)k_tokens")
_REGION = re.compile(r"^(?:bedrock|azure)/[a-z]+(?:-[a-z]+)*(?:-\d)?/|^ft:|^[a-z]+/ft:")
_THROUGH = {"openrouter", "vercel_ai_gateway", "litellm_proxy", "github_copilot"}
"""Providers that pass requests on to others' models: window and abilities are those of the model's maker."""

_MARKED_PROVIDERS = {"anthropic", "bedrock", "vertex_ai", "azure_ai", "databricks", *_THROUGH} - {"github_copilot"}


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars per token. ``over`` is the prompt size in tokens from which these prices hold."""

    input: float
    output: float
    cache_read: float
    cache_write: float
    over: int = 0
    cache_write_hour: float | None = None
    """For what the cache keeps for an hour; None where it costs the same."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What is known of a model. ``prices`` are in ascending order of ``over``, empty when unknown.

    ``origin`` says where the window comes from. ``cache_marks``: the provider takes Anthropic's cache marks.
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
    """The levels of thinking it can be told to use; of a model nothing is known of all there are."""
    origin: Literal["catalog", "config", "assumed"] = "catalog"
    deprecated_on: str | None = None
    """ISO date from which the provider doesn't serve it any more, when announced."""

    @property
    def name(self) -> str:
        """The id without the provider."""
        return self.id.partition("/")[2] or self.id

    def cost(self, usage: Usage, *, hour_writes: int = 0) -> float | None:
        """Return the price of an answer in US dollars, None when prices are unknown.

        ``hour_writes`` are the tokens, of those written to the cache, that it keeps for an hour.
        """
        prices = next((row for row in reversed(self.prices) if usage.prompt > row.over or not row.over), None)
        if prices is None:
            return None
        return (
            usage.input * prices.input
            + usage.output * prices.output
            + usage.cache_read * prices.cache_read
            + (usage.cache_write - hour_writes) * prices.cache_write
            + hour_writes * (prices.cache_write if prices.cache_write_hour is None else prices.cache_write_hour)
        )


class Catalog:
    """Everything known of models. ``path`` is the file to read instead of litellm's, for tests."""

    def __init__(
        self,
        models: Mapping[str, ModelSettings] | None = None,
        providers: Mapping[str, ProviderSettings] | None = None,
        *,
        path: Path | None = None,
    ) -> None:
        self._settings = dict(models or {})
        self._providers = dict(providers or {})
        self._rows = PriceList(path)
        self._infos: dict[str, ModelInfo] = {}

    def use(self, models: Mapping[str, ModelSettings], providers: Mapping[str, ProviderSettings]) -> None:
        """Know models and providers from now on as the user set them up."""
        self._settings, self._providers = dict(models), dict(providers)
        self._infos.clear()

    def add(self, model: str, settings: ModelSettings) -> None:
        """Know a model from now on as the user set it up."""
        self._settings[model] = settings
        self._infos.pop(model, None)

    def info(self, model: str) -> ModelInfo:
        """Return what is known of a model; one that nothing is known of gets an assumed window."""
        known = self._infos.get(model)
        if known is None:
            known = self._infos[model] = self._build(model)
        return known

    def models(self) -> list[ModelInfo]:
        """Return the models one can chat with, the user's own first, then by name."""
        own = [self.info(model) for model in self._settings]
        ids = {model_id for name, row in self._rows.all.items() if (model_id := _listed_id(name, row))}
        return own + [self.info(model_id) for model_id in sorted(ids - set(self._settings))]

    def knows(self, model: str) -> bool:
        """Tell whether anything is known of a model."""
        return model in self._settings or self._row(model) is not None

    def is_own_server(self, model: str) -> bool:
        """Tell whether a model runs on a server of the user's, which alone knows its names."""
        provider, settings = self.provider(model), self._settings.get(model)
        return (
            provider_of(provider).local_url is not None
            or (settings is not None and settings.base_url is not None)
            or (provider in self._providers and self._providers[provider].base_url is not None)
        )

    def similar(self, model: str, limit: int = 3) -> list[str]:
        """Return ids that may have been meant: those set up for the provider first, unless it is a slip of another."""
        prefix = f"{model.partition('/')[0]}/"
        own = [name for name in self._settings if name.startswith(prefix)] if "/" in model else []
        ids = [info.id for info in self.models()]
        tails = {info_id.rpartition("/")[2]: info_id for info_id in reversed(ids)}
        close = difflib.get_close_matches(model, ids, limit, 0.6)
        close += [tails[tail] for tail in difflib.get_close_matches(model.rpartition("/")[2], tails, limit, 0.6)]
        if not difflib.get_close_matches(model, ids, 1, _SLIP):
            close = [*own, *close]
        return list(dict.fromkeys(close))[:limit]

    def provider(self, model: str) -> str:
        """Return the id of a model's provider: its prefix, or what the catalog says of a bare name."""
        prefix, slash, _name = model.partition("/")
        row = None if slash else self._rows.get(model)
        if row is not None:
            return provider_of(str(row["litellm_provider"])).id
        return provider_of(prefix if slash else "openai").id

    def _row(self, model: str) -> Row | None:
        prefix, slash, name = model.partition("/")
        if (row := self._rows.get(model)) is not None or not slash:
            return row
        provider = provider_of(prefix).id
        row = self._rows.get(name) or self._rows.get(f"{provider}/{name}")
        if row is not None and provider_of(str(row["litellm_provider"])).id == provider:
            return row
        if provider in _THROUGH:
            return _without_prices(self._row_of_maker(name))
        return None

    def _row_of_maker(self, name: str) -> Row | None:
        maker, _slash, tail = name.partition("/")
        plain = tail.partition(":")[0]
        names = (name, tail, plain, plain.replace(".", "-"))
        candidates = (self._rows.get(candidate) for candidate in (*names, f"{provider_of(maker).id}/{tail}"))
        return next((row for row in candidates if row is not None), None)

    def _build(self, model: str) -> ModelInfo:
        provider = self.provider(model)
        settings = self._settings.get(model)
        # A name on one's own server says little: the same model runs there with another window.
        row = None if self.is_own_server(model) else self._row(model)
        info = (
            _from_row(model, provider, row)
            if row is not None
            else ModelInfo(model, provider, ASSUMED_WINDOW, origin="assumed", cache_marks=_marked(model, provider))
        )
        return info if settings is None else _with_settings(info, settings)


def _listed_id(name: str, row: Row) -> str | None:
    """Return the id a row is listed under, None for variants of others."""
    if _REGION.match(name) or "*" in name or "commitment" in name:
        return None
    provider = provider_of(str(row["litellm_provider"])).id
    if provider_of(provider).local_url is not None:
        return None
    return name if name.startswith(f"{provider}/") else f"{provider}/{name}"


def _without_prices(row: Row | None) -> Row | None:
    return None if row is None else {key: value for key, value in row.items() if "_cost_" not in key}


def _from_row(model: str, provider: str, row: Row) -> ModelInfo:
    window = _positive(row.get("max_input_tokens")) or _positive(row.get("max_tokens"))
    return ModelInfo(
        id=model,
        provider=provider,
        context_window=window or ASSUMED_WINDOW,
        max_output=_positive(row.get("max_output_tokens")) or _positive(row.get("max_tokens")),
        prices=tuple(_prices(row)),
        vision=bool(row.get("supports_vision")),
        tools=bool(row.get("supports_function_calling")),
        reasoning=bool(row.get("supports_reasoning")),
        cache_marks=_marked(model, provider),
        origin="catalog" if window else "assumed",
        deprecated_on=row.get("deprecation_date"),
    )


def _marked(model: str, provider: str) -> bool:
    return provider in _MARKED_PROVIDERS and "claude" in model


def _prices(row: Row) -> Iterator[Prices]:
    if row.get("input_cost_per_token") is None:
        return
    sizes = sorted(int(match[1]) for key in row if (match := _TIER.fullmatch(key)))
    written = "cache_creation_input_token_cost"
    for size in (0, *sizes):
        suffix = f"_above_{size}k_tokens" if size else ""

        def price(name: str, fallback: float, suffix: str = suffix) -> float:
            value = row.get(f"{name}{suffix}", row.get(name))
            return float(value) if isinstance(value, int | float) else fallback

        sent = price("input_cost_per_token", 0.0)
        yield Prices(
            input=sent,
            output=price("output_cost_per_token", 0.0),
            cache_read=price("cache_read_input_token_cost", sent),
            cache_write=price(written, sent),
            over=size * 1000,
            cache_write_hour=price(f"{written}_above_1hr", HOUR_WRITE * sent) if written in row else None,
        )


def _with_settings(info: ModelInfo, settings: ModelSettings) -> ModelInfo:
    def chosen(value: Any, otherwise: Any) -> Any:
        return otherwise if value is None else value

    return ModelInfo(
        id=info.id,
        provider=info.provider,
        context_window=chosen(settings.context_window, info.context_window),
        max_output=chosen(settings.max_output, info.max_output),
        prices=_own_prices(info.prices, settings),
        vision=chosen(settings.vision, info.vision),
        tools=chosen(settings.tools, info.tools),
        reasoning=chosen(settings.reasoning, info.reasoning),
        cache_marks=chosen(settings.cache_marks, info.cache_marks),
        origin=info.origin if settings.context_window is None else "config",
        deprecated_on=info.deprecated_on,
    )


def _own_prices(known: tuple[Prices, ...], settings: ModelSettings) -> tuple[Prices, ...]:
    if settings.input_price is None or settings.output_price is None:
        return known
    million = 1_000_000

    def price(value: float | None) -> float:
        return (settings.input_price or 0.0) / million if value is None else value / million

    return (
        Prices(
            input=settings.input_price / million,
            output=settings.output_price / million,
            cache_read=price(settings.cache_read_price),
            cache_write=price(settings.cache_write_price),
            cache_write_hour=None if settings.cache_write_price is None else HOUR_WRITE * settings.input_price / million,
        ),
    )


def _positive(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and value > 0 else None
