"""The plan that an agent in plan mode has made and nobody has decided on yet."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent

_HEADING = re.compile(r"^#{1,3} +plan\b", re.IGNORECASE | re.MULTILINE)


def plan_of(agent: Agent, *, headed: bool = False) -> str:
    """Return the plan that waits for a decision: the last answer in plan mode, from its heading on; "" when none does.

    ``headed`` asks for the heading that plans begin with: without one it may be talk.
    """
    from tui_agent.agent.permissions import Mode
    from tui_agent.session.path_queries import newest_message

    answer = newest_message(agent.session.active_path()) if agent.mode == Mode.PLAN else None
    if answer is None or answer.kind != "assistant" or answer.tool_calls or answer.finish != "stop":
        return ""
    heading = _HEADING.search(answer.text)
    if heading is None:
        return "" if headed else answer.text.strip()
    return answer.text[heading.start() :].strip()
