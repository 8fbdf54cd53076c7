"""Says when the provider has forgotten a long conversation, before it is paid for again, and when its cache missed."""

from typing import TYPE_CHECKING

from tui_agent.app.commands import remedy_of
from tui_agent.app.format import money, tokens
from tui_agent.session.entries import AssistantEntry
from tui_agent.session.path_queries import newest

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent
    from tui_agent.agent.events import CacheMissed
    from tui_agent.app.controller import Controller


class ColdCache:
    """Reports a cold cache, once for each time it cools."""

    def __init__(self, controller: "Controller") -> None:
        self._controller = controller
        self.told: int | None = None
        """The answer after which it was reported; None in another session."""

    def look(self) -> None:
        """Report the tokens to be read again if the provider has forgotten the last request; cheap if it has not."""
        agent = self._controller.agent
        if agent is None or agent.running or agent.session.read_only:
            return
        answer = newest(agent.session.active_path(), AssistantEntry)
        if answer is None or answer.id == self.told:
            return
        if agent.context.cache_state().warm:
            return
        self.told = answer.id
        self._controller.frontend.refresh_facts()
        self._controller.soon(self._tell(agent))

    async def _tell(self, agent: "Agent") -> None:
        forgotten = await agent.inspector.forgotten_tokens()
        if not forgotten or agent.running or self._controller.agent is not agent:
            return
        dollars = self._controller.services.reread_cost(agent.model, forgotten)
        about = ""
        if dollars:
            about = f", about {money(dollars)} more"
        self._controller.say(
            f"The provider has forgotten this conversation: the next request reads {tokens(forgotten)} tokens anew"
            f"{about}.",
            remedy=remedy_of("compact", self._controller.frontend.keymap, "compact first"),
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
