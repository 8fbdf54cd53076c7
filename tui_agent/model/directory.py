"""The facts known of models: the catalog's, the settings', and those learnt by use."""

import time
from collections.abc import Callable
from dataclasses import replace

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
"""Formats with a place for a PDF."""
_ASKED_AGAIN = 60.0
"""Seconds after which a server is asked again when a message is sent: it may have been restarted
with another size."""


class CatalogDirectory:
    """The facts known of models.

    ``learnt`` are the facts learnt by using models. ``wire_of`` says which format a model is spoken
    to in, ``keys`` returns the keys of the servers to ask.
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
        """The limits of plans, as the last answers named them."""

    async def refresh(self, model: str) -> None:
        """Ask a server on this machine or its network for its facts of a model; at most once in ``_ASKED_AGAIN``.

        Not where the settings say how large the window is.
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
        """Return a model's facts, with the window learnt from an overflow if that is smaller."""
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
        """Whether a model takes PDFs as they are: models with vision, at providers that say so."""
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
        self._learnt.token_sizes[self._spoken(model)] = sizes
        self._facts.save()

    def learn_window(self, model: str, window: int, *, named: bool = True) -> None:
        """Remember a window: for good if the provider named it, else until the program ends."""
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
        """Return what is sent otherwise because the server of a model refused it, a line each."""
        return self._form(model).lines()

    def forget_refusals(self, model: str) -> bool:
        """Forget what the server of a model refused; returns whether anything was known."""
        return self._facts.forget_form(self._catalog.served_name(model))

    def _form(self, model: str) -> ServerForm:
        return self._facts.form(self._catalog.served_name(model))

    def _spoken(self, model: str) -> str:
        """Return the key of token counts: the model, where it is served, and its format."""
        wire = self._wire_of(model)
        if wire:
            return f"{self._catalog.served_name(model)} as {wire}"
        return self._catalog.served_name(model)


def _plain_name(model: str) -> str:
    return model.rpartition("/")[2].lower()
