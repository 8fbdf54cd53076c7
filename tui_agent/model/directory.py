"""Answers the agent's questions about models, and stores what the agent learns about them.

The answers come from the catalog, which includes the settings, and from learnt facts. When a session
begins to use a model on a private server, the server is asked first (`CatalogDirectory.refresh`).
Learnt facts are token sizes and windows; ``client`` learns the forms of requests.
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
from tui_agent.lazy import frozen
from tui_agent.model.addresses import is_private
from tui_agent.model.catalog import Catalog, ModelInfo
from tui_agent.model.claude import claude
from tui_agent.model.forms import ServerForm
from tui_agent.model.keys import Keys
from tui_agent.model.learnt import LearntFacts
from tui_agent.model.plan_limits import PlanUse
from tui_agent.model.providers import WireName, provider_of

_WITH_DOCUMENTS = frozenset({"messages", "responses", "gemini"})
"""Provider formats in which a PDF can be sent."""
_ASKED_AGAIN = 60.0
"""Minimum seconds between two requests for a server's facts. The requests are repeated because a
server may be restarted with another window."""
_STORED = 0.01
"""A learnt token size is written to disk only if it has changed by more than this share. Each answer
corrects the sizes a little, and writing the file every time would delay what the user sees."""


@frozen
class _AssumedWindow:
    """A window assumed after a refusal, and the catalog's window at that time, in tokens."""

    window: int
    contradicted: int


class CatalogDirectory:
    """Windows, limits, abilities and token counters of models, including learnt facts.

    ``learnt`` are the facts learnt by using models. The directory adds to them and saves them; the
    program's ``ProviderClient`` shares the object. ``wire_of`` returns a model's format, None for
    litellm. ``keys`` returns the API keys for the servers to ask; without it no server is asked.
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
        self._asked_at: dict[str, float] = {}
        """When each server was last asked for its facts, in seconds of the monotonic clock. The
        keys are URLs."""
        self._facts = learnt
        self._learnt = learnt.models
        self._counters: dict[str, TokenCounter] = {}
        self._assumed: dict[str, _AssumedWindow] = {}
        """Windows that were assumed after a refusal named no window. The keys are served names."""
        self.plan = PlanUse()
        """Usage limits of the user's subscriptions, as reported in the headers of the last
        answers."""

    async def refresh(self, model: str) -> None:
        """Ask the model's server for its facts, if it is on this machine or a private network.

        The catalog keeps the answer (``served``), on disk if the program stores such answers. The
        method does nothing if the settings state the window, or within ``_ASKED_AGAIN`` seconds
        after the last request to the server.
        """
        url = self._catalog.place(model).url
        now = time.monotonic()
        if (
            self._keys is None
            or not is_private(url)
            or self._catalog.info(model).origin == "config"
        ):
            return
        if now - self._asked_at.get(url, -_ASKED_AGAIN) < _ASKED_AGAIN:
            return
        self._asked_at[url] = now
        from tui_agent.model.discovery import refresh, servers

        known = servers(self._catalog.addresses, self._keys(), [model])
        asked = [server for server in known if server.place.url == url]
        await refresh(asked, self._catalog.served)
        self._catalog.forget()

    def info(self, model: str) -> ModelInfo:
        return self.with_learnt(self._catalog.info(model))

    def with_learnt(self, info: ModelInfo) -> ModelInfo:
        """Return a model's facts with the window learnt from a refused request, if it is smaller.

        A learnt window is ignored if the window that the catalog or the server states has changed
        since then.
        """
        served = self._catalog.served_name(info.id)
        stated = info.context_window
        known = [stated]
        named = self._learnt.windows.get(served)
        if named is not None and self._learnt.contradicted.get(served, stated) == stated:
            known.append(named)
        assumed = self._assumed.get(served)
        if assumed is not None and assumed.contradicted == stated:
            known.append(assumed.window)
        learnt = min(known)
        if learnt == stated:
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
        """Return whether a model accepts PDF files unchanged.

        The model must have vision and be at its provider's own address, and both the provider and
        the format must accept PDFs.
        """
        has_documents = self._wire_of(info.id) in _WITH_DOCUMENTS
        is_at_provider = not self._catalog.place(info.id).is_own
        sees = info.vision and self._form(info.id).pictures
        accepted = provider_of(info.provider).documents
        return has_documents and is_at_provider and sees and accepted

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
                first, learnt=learnt.get(self._sizes_key(model)) or learnt.get(elsewhere, {})
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
        stored = self._learnt.token_sizes.get(self._sizes_key(model), {})
        if _is_news(sizes, stored):
            self._learnt.token_sizes[self._sizes_key(model)] = sizes
            self._facts.save()

    def learn_window(self, model: str, window: int, *, named: bool = True) -> None:
        """Store a model's window, in tokens, learnt from a refused request.

        If the provider named the window, it is stored on disk; otherwise (``named`` is False), it
        is kept only in memory. A named window replaces one that was not named.
        """
        served = self._catalog.served_name(model)
        stated = self._catalog.info(model).context_window
        if not named:
            self._assumed[served] = _AssumedWindow(window, stated)
            return
        if window <= 0:
            return
        self._assumed.pop(served, None)
        stored = (self._learnt.windows.get(served), self._learnt.contradicted.get(served))
        if (window, stated) != stored:
            self._learnt.windows[served] = window
            self._learnt.contradicted[served] = stated
            self._facts.save()

    def adaptations(self, model: str) -> list[str]:
        """Return a phrase for each way in which requests are adapted to the model's server."""
        return self._form(model).lines()

    def forget_refusals(self, model: str) -> bool:
        """Forget what the model's server has refused. Return False if nothing was stored."""
        return self._facts.forget_form(self._catalog.served_name(model))

    def _form(self, model: str) -> ServerForm:
        return self._facts.form(self._catalog.served_name(model))

    def _sizes_key(self, model: str) -> str:
        """Return the key under which a model's learnt token sizes are stored.

        The key is the model's served name or, with a wire (a provider format), ``NAME as WIRE``.
        """
        wire = self._wire_of(model)
        if wire:
            return f"{self._catalog.served_name(model)} as {wire}"
        return self._catalog.served_name(model)


def _is_news(sizes: Mapping[str, float], stored: Mapping[str, float]) -> bool:
    """Return True if any size is new, or differs from its stored value by over 1 % (`_STORED`)."""
    return any(
        not isclose(size, stored.get(name, 0.0), rel_tol=_STORED) for name, size in sizes.items()
    )


def _plain_name(model: str) -> str:
    return model.rpartition("/")[2].lower()
