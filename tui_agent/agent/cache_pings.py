"""Keeps the provider's cache of a conversation warm by pings while its user is away.

A ping sends the last request again and asks for the shortest possible answer. It is not an entry,
so it changes no later request; its cost is added to the session. ``app.cold_cache`` calls
`CachePings.ping` shortly before the cache expires; whether a ping pays is decided here.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from tui_agent.agent.events import CostKnown
from tui_agent.context.cache import lifetime
from tui_agent.lazy import frozen
from tui_agent.model.protocol import ModelError, ReasoningDelta, TextDelta, UsageReport
from tui_agent.session.entries import AssistantEntry, Entry, Usage, UserEntry
from tui_agent.session.records import Purpose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_agent.agent.allowance import Allowance
    from tui_agent.agent.channel import Journal
    from tui_agent.agent.context_inspector import ContextInspector
    from tui_agent.agent.context_keeper import ContextKeeper
    from tui_agent.agent.ports import AgentPorts
    from tui_agent.context.request import ModelRequest

MOST_PINGS = 2
"""Maximum number of pings in one pause. In 382 recorded pauses, two pings saved the most."""

USUAL_CHANCE = 0.3
"""Usual chance that a user returns in the time that one ping adds to the cache's life.

The value was measured in recorded pauses.
"""

USUAL_WEIGHT = 4
"""Weight of `USUAL_CHANCE`, as the number of the session's own pauses that count as much."""

LEAST_GAIN = 0.01
"""Minimum amount, in US dollars, by which a ping's expected saving must exceed its price."""

SECONDS = 30.0
"""Number of seconds after which a ping is given up."""

MOST_CHARACTERS = 200
"""Maximum number of characters of a ping's answer. Some providers ignore the token limit."""


@frozen
class Forecast:
    """The expected benefit of a ping; amounts are in US dollars.

    ``chance`` is the probability that the user returns during the time that the ping adds to the
    cache's life; ``saving`` is how much less the next request costs in that case. ``price`` is the
    cost of the ping.
    """

    chance: float
    price: float
    saving: float

    @property
    def pays(self) -> bool:
        """Whether the ping is expected to save at least `LEAST_GAIN` more than it costs."""
        return self.chance * self.saving - self.price >= LEAST_GAIN


class CachePings:
    """Sends one session's pings, which keep the provider's prompt cache warm.

    ``prices`` contains the price of each ping since the last answer, in US dollars.
    """

    def __init__(
        self,
        journal: Journal,
        ports: AgentPorts,
        context: ContextKeeper,
        *,
        inspector: ContextInspector,
        allowance: Allowance,
    ) -> None:
        self._session = journal.session
        self._channel = journal.channel
        self._ports = ports
        self._context = context
        self._inspector = inspector
        self._allowance = allowance
        self._answer = 0
        self._has_failed = False
        self.prices: list[float] = []

    def spent(self) -> float | None:
        """Return the US dollars spent on pings since the last answer; None if there were none."""
        answer = self._context.last_answer()
        if answer is None or answer.id != self._answer or not self.prices:
            return None
        return sum(self.prices)

    def forecast(self) -> Forecast | None:
        """Return the expected benefit of a ping now.

        None if the provider has reported no cache, the next request will not extend the last one,
        or the price is unknown.
        """
        context = self._context
        answer = context.last_answer()
        if answer is None or answer.usage is None or self._inspector.known_cache() is None:
            return None
        if self._request() is None:
            return None
        ttl = context.cache_ttl()
        tokens = answer.usage.prompt
        info = self._ports.directory.info(context.model)
        price = info.cost(Usage(cache_read=tokens, output=1))
        saving = info.cache_miss_cost(tokens, for_hour=ttl == "1h")
        if price is None or saving is None:
            return None
        away = (self._ports.clock() - answer.created_at) / 1_000
        cold = away + context.cache_state().seconds_left
        until = away + lifetime(ttl, context.settings().cache)
        chance = chance_of_return(pauses(self._session.active_path()), away, cold, until)
        return Forecast(chance, price, saving)

    async def ping(self) -> bool:
        """Send a ping if it saves money and is allowed; return True if it is answered.

        The settings and the budgets have to allow it. In one pause, sends at most `MOST_PINGS`, and
        none after a ping that failed or found no cached tokens; a notice reports either.
        """
        answer = self._context.last_answer()
        if answer is None or not self._context.settings().cache.keep_warm:
            return False
        if answer.id != self._answer:
            self._answer = answer.id
            self._has_failed = False
            self.prices = []
        if self._has_failed or len(self.prices) >= MOST_PINGS:
            return False
        forecast = self.forecast()
        request = self._request()
        if forecast is None or request is None or not forecast.pays:
            return False
        if not await self._allowance.covers(forecast.price):
            return False
        try:
            report = await self._send(request)
        except (ModelError, TimeoutError) as error:
            self._has_failed = True
            why = str(error) or f"no answer in {SECONDS:.0f} s"
            self._channel.say(f"Can't keep the prompt cache warm: {why}", "warning")
            return False
        self._book(answer, report, forecast)
        return True

    def _request(self) -> ModelRequest | None:
        """Return the last request as a ping.

        None if there is none, or if the next request will not extend it.
        """
        context = self._context
        sent = context.sent
        if sent is None or sent.request.effort != context.effort.level:
            return None
        if self._inspector.prefix_break() is not None:
            return None
        return replace(sent.request, ping=True)

    async def _send(self, request: ModelRequest) -> UsageReport | None:
        """Send a ping and return its usage report.

        None if the answer ended, or was cut off, before the report came.
        """
        written = 0
        client = self._ports.client
        async with asyncio.timeout(SECONDS), aclosing(client.stream(request)) as events:
            async for event in events:
                if isinstance(event, UsageReport):
                    return event
                if isinstance(event, TextDelta | ReasoningDelta):
                    written += len(event.text)
                if written > MOST_CHARACTERS:
                    return None
        return None

    def _book(self, answer: AssistantEntry, report: UsageReport | None, forecast: Forecast) -> None:
        price = forecast.price
        if report is not None and report.cost is not None:
            price = report.cost
        self.prices.append(price)
        self._session.add_cost(price, Purpose.PINGS)
        self._context.pinged(answer)
        if report is not None and not report.usage.cache_read:
            self._has_failed = True
            text = "The provider's cache of this conversation was gone before the ping"
            self._channel.say(f"{text}; no more pings in this pause.", "warning")
        self._channel.emit(CostKnown())


def pauses(path: Sequence[Entry]) -> list[float]:
    """Return the lengths of the user's pauses, in seconds.

    A pause is the time from a run's last answer to the next message.
    """
    found = []
    ended: int | None = None
    for entry in path:
        if isinstance(entry, AssistantEntry):
            ended = entry.created_at
        elif isinstance(entry, UserEntry) and not entry.synthetic and ended is not None:
            found.append((entry.created_at - ended) / 1_000)
            ended = None
    return found


def chance_of_return(earlier: Sequence[float], away: float, cold: float, until: float) -> float:
    """Return the chance that an absent user returns between ``cold`` and ``until``.

    The user has been away for ``away``. All times are in seconds since the last answer. The chance
    is the fraction of such returns among the ``earlier`` pauses longer than ``away``, mixed with
    `USUAL_CHANCE` (which counts as `USUAL_WEIGHT` more pauses).
    """
    as_long = [pause for pause in earlier if pause > away]
    back = sum(cold < pause <= until for pause in as_long)
    return (back + USUAL_WEIGHT * USUAL_CHANCE) / (len(as_long) + USUAL_WEIGHT)
