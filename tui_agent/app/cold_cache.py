"""Warns before the prompt cache of a long conversation goes cold, when it has, and when it missed.

Shortly before, a ping keeps the cache warm where that pays; otherwise compacting is offered.
"""

from typing import TYPE_CHECKING

from tui_agent.app.commands import remedy_of
from tui_agent.app.format import about_cost, tokens
from tui_agent.session.entries import AssistantEntry
from tui_agent.session.path_queries import newest

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent
    from tui_agent.agent.events import CacheMissed
    from tui_agent.app.controller import Controller


Answer = tuple[str, int]
"""An answer of a model: session id and entry number (numbers alone repeat in other sessions)."""

OFFER_SECONDS = 60
"""Seconds before the cache goes cold at which compacting is offered."""


class ColdCache:
    """Warns once per answer that the prompt cache is about to go cold, and once that it has."""

    def __init__(self, controller: "Controller") -> None:
        self._controller = controller
        self._reported: Answer | None = None
        """The last answer after which a cold cache was reported."""
        self._offered: Answer | None = None
        """The last answer after which compacting was offered."""
        self._is_pinging = False

    def look(self) -> None:
        """Warn if the cache is cold, or about to be; cheap to call often while it is warm."""
        agent = self._controller.agent
        if agent is None or agent.running or agent.session.read_only:
            return
        entry = newest(agent.session.active_path(), AssistantEntry)
        if entry is None:
            return
        answer = (agent.session.id, entry.id)
        if answer == self._reported:
            return
        state = agent.context.cache_state()
        if not state.warm:
            self._reported = answer
            self._controller.frontend.refresh_facts()
            self._controller.soon(self._tell(agent))
        elif (
            state.seconds_left <= OFFER_SECONDS and answer != self._offered and not self._is_pinging
        ):
            self._is_pinging = True
            self._controller.soon(self._ping_or_offer(agent, answer))

    async def _ping_or_offer(self, agent: "Agent", answer: Answer) -> None:
        try:
            was_kept = await agent.cache_pings.ping()
        finally:
            self._is_pinging = False
        if was_kept:
            self._controller.frontend.refresh_facts()
            return
        self._offered = answer
        await self._offer(agent)

    async def _tell(self, agent: "Agent") -> None:
        forgotten = await agent.inspector.forgotten_tokens()
        if not forgotten or agent.running or self._controller.agent is not agent:
            return
        self._say(
            agent,
            f"The provider has forgotten this conversation: the next request reads {tokens(forgotten)} tokens anew",
            forgotten,
            " more",
        )

    async def _offer(self, agent: "Agent") -> None:
        """Say what compacting now saves of the next request, if it saves enough."""
        from tui_agent.context.compaction import CompactionPlan

        if not agent.inspector.cached_tokens():
            return
        plan = await agent.context.compactor.plan(agent.context.order("manual", None, None))
        if agent.running or self._controller.agent is not agent:
            return
        if not isinstance(plan, CompactionPlan):
            return
        saved = plan.tokens_summarised - plan.summary_tokens
        if saved < agent.context.settings().cache.warn_tokens // 2:
            return
        self._say(
            agent,
            "The provider forgets this conversation within a minute: compacted now, the next request"
            f" reads {tokens(saved)} tokens fewer",
            saved,
            " less",
        )

    def _say(self, agent: "Agent", text: str, count: int, difference: str) -> None:
        """Report ``text`` with the price of ``count`` tokens, and offer /compact."""
        dollars = self._controller.services.reread_cost(agent.model, count)
        about = about_cost(dollars, difference)
        label = "compact first"
        self._controller.say(
            f"{text}{about}.", remedy=remedy_of("compact", self._controller.frontend.keymap, label)
        )


def warn_of_missed_cache(controller: "Controller", event: "CacheMissed") -> None:
    from tui_agent.app.context_text import miss_words
    from tui_agent.context.cache import BreakCause, CacheMiss

    if event.cause:
        cause = BreakCause(event.cause)
    else:
        cause = None
    miss = CacheMiss(event.expected, event.expected - event.tokens, cause)
    controller.say(miss_words(miss, controller.services.reread_cost(event.model, event.tokens)))
