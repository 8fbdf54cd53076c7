"""Warns when the prompt cache is about to expire or has expired, and after a cache miss.

Before the cache expires, a ping (a small request) keeps it warm if that is expected to save money
(`CachePings` decides that and sends the ping); otherwise, the user is offered /compact if that
saves enough tokens. The frontend calls `ColdCache.check` on a timer, and `warn_of_missed_cache`
when the agent reports a miss.
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
"""Identifies an answer of a model by the session id, and the number of the answer's entry."""

OFFER_SECONDS = 60
"""Number of seconds before the cache expires at which a ping is sent or /compact is offered."""


class ColdCache:
    """Warns that the prompt cache is about to expire, and that it has expired.

    Gives each of these warnings at most once for each answer of the model.
    """

    def __init__(self, controller: "Controller") -> None:
        self._controller = controller
        self._reported: Answer | None = None
        """The last answer for which `check` handled the expired cache, with or without a
        warning."""
        self._offered: Answer | None = None
        """The last answer after which the cache was left to expire, because no ping was sent.

        If it saved enough tokens, /compact was offered instead.
        """
        self._is_pinging = False

    def check(self) -> None:
        """Warn if the prompt cache has expired; ping or offer /compact if it is about to expire.

        Starts a task for this. The task shows nothing if too few tokens are affected (setting
        ``cache.warn_tokens``). Does nothing while the agent runs, in a read-only session, or if the
        expired cache was handled before. The method is cheap enough to be called by a timer.
        """
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
            self._controller.soon(self._warn_of_expiry(agent))
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

    async def _warn_of_expiry(self, agent: "Agent") -> None:
        forgotten = await agent.inspector.forgotten_tokens()
        if not forgotten or agent.running or self._controller.agent is not agent:
            return
        self._say(
            agent,
            "The prompt cache has expired:"
            f" the next request reads {tokens(forgotten)} tokens again",
            forgotten,
            " more",
        )

    async def _offer(self, agent: "Agent") -> None:
        """Offer /compact if compacting would make the next request clearly smaller.

        The request has to shrink by at least half of ``cache.warn_tokens``.
        """
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
            "The prompt cache expires within a minute: compacting now makes the next request"
            f" {tokens(saved)} tokens smaller",
            saved,
            " cheaper",
        )

    def _say(self, agent: "Agent", text: str, count: int, difference: str) -> None:
        """Show ``text`` and the extra cost of ``count`` uncached tokens, and offer /compact.

        ``difference`` is the word after the price, either `` more`` or `` cheaper``.
        """
        dollars = self._controller.services.cache_miss_cost(agent.model, count)
        about = about_cost(dollars, difference)
        label = "compact first"
        self._controller.say(
            f"{text}{about}.", remedy=remedy_of("compact", self._controller.frontend.keymap, label)
        )


def warn_of_missed_cache(controller: "Controller", event: "CacheMissed") -> None:
    """Tell the user about a prompt cache miss that the agent reported."""
    from tui_agent.app.context_text import miss_words
    from tui_agent.context.cache import BreakCause, CacheMiss

    if event.cause:
        cause = BreakCause(event.cause)
    else:
        cause = None
    miss = CacheMiss(event.expected, event.expected - event.tokens, cause)
    controller.say(miss_words(miss, controller.services.cache_miss_cost(event.model, event.tokens)))
