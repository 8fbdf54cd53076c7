"""Says when the provider has forgotten a long conversation, before it is paid for again, and when its cache missed."""

from typing import TYPE_CHECKING

from tui_agent.app.commands import command_table, find
from tui_agent.app.format import money, tokens
from tui_agent.session.entries import AssistantEntry
from tui_agent.session.path_queries import newest

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent
    from tui_agent.agent.events import CacheMissed
    from tui_agent.app.controller import Controller


IDLE_SECONDS = 75
"""Seconds before a cache's end at which something is done about it: the gauge's clock moves once a minute."""


class ColdCache:
    """Tells of a cold cache, once for each time it cools; before that does what ``cache.idle`` says."""

    def __init__(self, controller: "Controller") -> None:
        self._controller = controller
        self._told: int | None = None
        self._saved: int | None = None

    def forget(self) -> None:
        """Another session is shown."""
        self._told = self._saved = None

    def look(self) -> None:
        """Say what the next request reads anew when the provider has forgotten the last one; cheap when it has not."""
        agent = self._controller.agent
        if agent is None or agent.running or agent.session.read_only:
            return
        answer = newest(agent.session.active_path(), AssistantEntry)
        if answer is None or answer.id == self._told:
            return
        if (state := agent.context.cache_state()).warm:
            if state.seconds_left <= IDLE_SECONDS and answer.id != self._saved:
                self._saved = answer.id
                self._save(agent, state.seconds_left)
            return
        self._told = answer.id
        self._controller.frontend.refresh_facts()
        self._controller.soon(self._tell(agent))

    def _save(self, agent: "Agent", seconds: float) -> None:
        """Offer or begin a compaction while the conversation is still read from the cache."""
        idle, size = agent.ports.settings.cache.idle, agent.inspector.cached_tokens()
        if idle == "off" or not size:
            return
        dollars = self._controller.services.reread_cost(agent.model, size)
        about = (
            f" ({tokens(size)} tokens, about {money(dollars)} to read anew)" if dollars else f" ({tokens(size)} tokens)"
        )
        told = f"The provider forgets this conversation in {max(1, round(seconds))} s{about}."
        if idle == "offer":
            self._controller.say(f"{told} Compacting it costs least now.", remedy=_compact_first(self._controller))
        else:
            self._controller.say(f"{told} It is compacted now; /undo takes that back.")
            self._controller.soon(self._compact(agent))

    async def _compact(self, agent: "Agent") -> None:
        outcome = await agent.compact(idle=True)
        if outcome.problem and self._controller.agent is agent:
            self._controller.say(f"Not compacted: {outcome.problem}", "warning")

    async def _tell(self, agent: "Agent") -> None:
        forgotten = await agent.inspector.forgotten_tokens()
        if not forgotten or agent.running or self._controller.agent is not agent:
            return
        dollars = self._controller.services.reread_cost(agent.model, forgotten)
        about = f", about {money(dollars)} more" if dollars else ""
        self._controller.say(
            f"The provider has forgotten this conversation: the next request reads {tokens(forgotten)} tokens anew"
            f"{about}.",
            remedy=_compact_first(self._controller),
        )


def _compact_first(controller: "Controller") -> tuple[str, str, str] | None:
    command = find("compact", command_table())
    key = controller.frontend.keymap.get("compact", command.key if command is not None else "")
    return (key or "/compact", "compact first", "screen.command('compact')")


def warn_of_missed_cache(controller: "Controller", event: "CacheMissed") -> None:
    from tui_agent.app.context_text import miss_words
    from tui_agent.context.cache import BreakCause, CacheMiss

    cause = BreakCause(event.cause) if event.cause else None
    miss = CacheMiss(event.expected, event.expected - event.tokens, cause)
    controller.say(miss_words(miss, controller.services.reread_cost(event.model, event.tokens)))
