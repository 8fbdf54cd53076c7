"""Answers the agent's questions about models, and stores what the agent learns about them.

The answers come from the catalog, which includes the settings, and from learnt facts. When a session
begins to use a model on a private server, the server is asked first (`CatalogDirectory.refresh`).
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import isclose

from tui_agent.context.budget import ModelLimits
from tui_agent.context.calibration import first_calibration
from tui_agent.context.projection import ModelTraits
from tui_agent.context.templates import Templates
from tui_agent.context.tokens import TokenCounter
from tui_agent.model.addresses import is_private
from tui_agent.model.catalog import Catalog, ModelInfo
from tui_agent.model.claude import claude
from tui_agent.model.forms import ServerForm
from tui_agent.model.keys import Keys
from tui_agent.model.learnt import LearntFacts
from tui_agent.model.plan_limits import PlanUse
from tui_agent.model.providers import WireName, provider_of

_WITH_DOCUMENTS = frozenset({"messages", "responses", "gemini"})
"""Formats in which a PDF can be sent."""
_ASKED_AGAIN = 60.0
"""Minimum seconds between two requests for a server's facts. They are repeated, because a server
may be restarted with another window."""
_STORED = 0.01
"""Change of a learnt token size that is worth writing to disk, as a share of it. Each answer
corrects the sizes a little, and writing the file would delay what the user sees."""


class CatalogDirectory:
    """Windows, limits, abilities and token counters of models, including learnt facts.

    ``learnt`` are the facts learnt by using models. ``wire_of`` returns a model's format, None for
    litellm. ``keys`` returns the keys for the servers to ask; without it no server is asked.
    """

    def __init__(
        self,
        catalog: Catalog,
        learnt: LearntFacts,
        templates: Templates | None = None,
        *,
        wire_of: Callable[[str], WireName | None] = lambda _model: None,
        keys: Callable[[], Keys] | None = None,
    ) -> None:
        self._templates = templates or Templates()
        self._catalog = catalog
        self._wire_of = wire_of
        self._keys = keys
        self._asked: dict[str, float] = {}
        self._facts = learnt
        self._learnt = learnt.models
        self._counters: dict[str, TokenCounter] = {}
        self._bounds: dict[str, int] = {}
        self.plan = PlanUse()
        """Usage limits of subscriptions, from the headers of the last answers."""

    async def refresh(self, model: str) -> None:
        """Ask the model's server for its facts, if it is on this machine or a private network.

        Does nothing if the settings state the window, or within ``_ASKED_AGAIN`` seconds after the
        last request to the server.
        """
        url = self._catalog.place(model).url
        now = time.monotonic()
        if (
            self._keys is None
            or not is_private(url)
            or self._catalog.info(model).origin == "config"
        ):
            return
        if now - self._asked.get(url, -_ASKED_AGAIN) < _ASKED_AGAIN:
            return
        self._asked[url] = now
        from tui_agent.model.discovery import refresh, servers

        known = servers(self._catalog.addresses, self._keys(), [model])
        asked = [server for server in known if server.place.url == url]
        await refresh(asked, self._catalog.served)
        self._catalog.forget()

    def info(self, model: str) -> ModelInfo:
        return self.with_learnt(self._catalog.info(model))

    def with_learnt(self, info: ModelInfo) -> ModelInfo:
        """Return a model's facts with the window learnt from a refused request, if it is smaller.

        A window named by a provider is ignored once the catalog or the server states a different
        window than when it was learnt.
        """
        served = self._catalog.served_name(info.id)
        known: list[int] = []
        for windows in (self._learnt.windows, self._bounds):
            if served in windows:
                known.append(windows[served])
        if self._learnt.contradicted.get(served, info.context_window) != info.context_window:
            known = []
        learnt = min(known, default=info.context_window)
        if learnt >= info.context_window:
            return info
        return replace(info, context_window=learnt, origin="learnt")

    def limits(self, model: str) -> ModelLimits:
        info = self.info(model)
        tier = next((prices.over for prices in info.prices if prices.over), None)
        tier = None if info.origin == "learnt" else tier
        return ModelLimits(
            model,
            info.context_window,
            info.max_output,
            info.origin,
            info.vision,
            documents=self._takes_documents(info),
            price_tier=tier,
        )

    def _takes_documents(self, info: ModelInfo) -> bool:
        """Return whether a model accepts unchanged PDFs.

        It must have vision and be at its provider's own address; provider and format must accept
        PDFs.
        """
        is_spoken_to = self._wire_of(info.id) in _WITH_DOCUMENTS
        is_theirs = is_spoken_to and not self._catalog.place(info.id).is_own
        sees = info.vision and self._form(info.id).pictures
        return sees and is_theirs and provider_of(info.provider).documents

    def traits(self, model: str) -> ModelTraits:
        info = self._catalog.info(model)
        wire = self._wire_of(model)
        provider = provider_of(info.provider)
        responses = provider.responses
        known = claude(info.name)
        return ModelTraits(
            model,
            vision=info.vision and self._form(model).pictures,
            documents=self._takes_documents(info),
            tools=not info.without_tools,
            small=info.small,
            tiny=info.tiny,
            images_in_results=wire == "messages"
            or (wire == "responses" and responses.images_in_results),
            bound_reasoning=wire == "messages" and known is not None and known.bound,
            hour_cache=wire == "messages" and info.cache_marks,
            searches=not self._catalog.place(model).is_own
            and (
                (wire == "messages" and provider.messages.searches)
                or (wire == "responses" and responses.searches)
            ),
            efforts=info.efforts,
        )

    def counter(self, model: str) -> TokenCounter:
        counter = self._counters.get(model)
        if counter is None:
            first = first_calibration(model)
            learnt = self._learnt.token_sizes
            name = _plain_name(model)
            elsewhere = next(
                (key for key in learnt if _plain_name(key.partition(" ")[0]) == name), ""
            )
            known = replace(
                first, learnt=learnt.get(self._spoken(model)) or learnt.get(elsewhere, {})
            )
            counter = self._counters[model] = TokenCounter(model, known, self._templates)
        return counter

    def learn(self, model: str, counted: int, reported: int) -> None:
        before = self.counter(model)
        after = before.learn(counted, reported)
        if after == before:
            return
        self._counters[model] = after
        sizes = {name: round(size, 5) for name, size in after.calibration.learnt.items()}
        stored = self._learnt.token_sizes.get(self._spoken(model), {})
        if _is_news(sizes, stored):
            self._learnt.token_sizes[self._spoken(model)] = sizes
            self._facts.save()

    def learn_window(self, model: str, window: int, *, named: bool = True) -> None:
        """Store a model's window, in tokens, learnt from a refused request.

        It is stored on disk if the provider named it, else (``named`` False) kept only in memory.
        """
        served = self._catalog.served_name(model)
        known = self._catalog.info(model).context_window
        if not named:
            self._bounds[served] = window
        elif window > 0 and (window, known) != (
            self._learnt.windows.get(served),
            self._learnt.contradicted.get(served),
        ):
            self._learnt.windows[served] = window
            self._learnt.contradicted[served] = known
            self._facts.save()

    def adaptations(self, model: str) -> list[str]:
        """Return a phrase for each change to requests that the model's server made necessary."""
        return self._form(model).lines()

    def forget_refusals(self, model: str) -> bool:
        """Forget what the model's server refused. Return False if nothing was stored."""
        return self._facts.forget_form(self._catalog.served_name(model))

    def _form(self, model: str) -> ServerForm:
        return self._facts.form(self._catalog.served_name(model))

    def _spoken(self, model: str) -> str:
        """Return the key for learnt token sizes: the served name; with a wire, ``NAME as WIRE``."""
        wire = self._wire_of(model)
        if wire:
            return f"{self._catalog.served_name(model)} as {wire}"
        return self._catalog.served_name(model)


def _is_news(sizes: Mapping[str, float], stored: Mapping[str, float]) -> bool:
    """Return True if a size is not stored, or differs from the stored one by more than `_STORED`."""
    return any(
        not isclose(size, stored.get(name, 0.0), rel_tol=_STORED) for name, size in sizes.items()
    )


def _plain_name(model: str) -> str:
    return model.rpartition("/")[2].lower()
