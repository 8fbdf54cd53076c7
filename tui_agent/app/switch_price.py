"""Asks before a switch that makes the provider read a long conversation anew."""

from typing import TYPE_CHECKING

from tui_agent.app.format import money, tokens
from tui_agent.app.frontend import Choice

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent
    from tui_agent.app.controller import Controller


def reread_price(controller: "Controller", model: str, cached: int) -> str:
    """Return ", about $0.25 more" for tokens that are read anew; "" where that is less than a cent, or unknown."""
    dollars = controller.services.reread_cost(model, cached)
    return f", about {money(dollars)} more" if dollars and dollars >= 0.01 else ""


async def may_reread(controller: "Controller", agent: "Agent", what: str, model: str) -> bool:
    """Whether a switch may go ahead; asked only where it makes ``cache.warn_tokens`` be read anew by ``model``.

    ``what`` is the switch as a question: "Switch to opus?".
    """
    cached = agent.inspector.cached_tokens()
    if not cached:
        return True
    price = reread_price(controller, model, cached)
    details = f"The provider has {tokens(cached)} tokens of this conversation in its cache. They are read anew{price}."
    answers = [("yes", "Switch"), ("compact", "Compact first, then switch"), ("no", "Leave it as it is")]
    answer = await controller.ask(Choice(what, answers, details))
    if answer == "compact" and controller.agent is agent:
        outcome = await agent.compact()
        if outcome.problem is not None:
            controller.say(f"Not compacted: {outcome.problem}", "warning")
            return False
    return answer in {"yes", "compact"} and controller.agent is agent
