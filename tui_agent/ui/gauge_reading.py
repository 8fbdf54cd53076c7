"""Computes what the gauge shows: size of the next request, cost of the session, prompt cache.

The gauge is a line on the main screen that shows how full the context window is.
"""

from dataclasses import replace

from tui_agent.agent.agent import Agent
from tui_agent.agent.allowance import Allowance
from tui_agent.agent.events import LiveAnswer
from tui_agent.app.format import money
from tui_agent.app.run_state import CHARACTERS_PER_TOKEN
from tui_agent.session.entries import AssistantEntry
from tui_agent.ui.widgets.gauge import GaugeReading


def gauge_reading(agent: Agent, now: float) -> GaugeReading:
    """Return the gauge's values for an agent at the time ``now`` (seconds since the epoch)."""
    path = agent.session.active_path()
    cost = agent.session_cost()
    shares = agent.inspector.shares()
    cache = agent.inspector.known_cache()
    if cache is None:
        warm = None
    elif cache.warm:
        warm = now + cache.seconds_left
    else:
        warm = 0.0
    usages = []
    for entry in path:
        if isinstance(entry, AssistantEntry) and entry.usage is not None:
            usages.append(entry.usage)
    known = [usage for usage in usages if usage.prompt]
    # Until something was read from a cache, the share is unknown, not 0, because many providers
    # have no cache.
    share = None
    if any(usage.cache_read for usage in known):
        share = known[-1].cache_read / known[-1].prompt
    return GaugeReading(
        agent.context_size(),
        share,
        cost,
        warm,
        shares,
        pinged=agent.cache_pings.spent(),
        has_summary=agent.context.has_summary,
        can_compact=True,
    )


def budget_words(allowance: Allowance) -> tuple[str, str]:
    """Return the texts about the session's budget and the day's; "" for a budget that is not set.

    Examples: " of $5.00" and "$3.10 of $20.00 today". The second text is also "" if today's cost is
    unknown.
    """
    session = allowance.limit("session")
    day = allowance.limit("day")
    spent = allowance.today()
    today = ""
    if day is not None and spent is not None:
        today = f"{money(spent)} of {money(day)} today"
    return f" of {money(session)}" if session is not None else "", today


def with_live(reading: GaugeReading, live: LiveAnswer) -> GaugeReading:
    """Return the reading, with its size increased by the estimate for the answer being streamed.

    The estimate is in tokens.
    """
    written = len(live.text) + len(live.reasoning) + sum(len(call.arguments) for call in live.calls)
    size = reading.size
    more = written // CHARACTERS_PER_TOKEN
    grown = replace(size, history=size.history + more, total=size.total + more, estimated=True)
    return replace(reading, size=grown)
