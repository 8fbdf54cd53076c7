"""Finds the plan that an agent in plan mode proposed with its last answer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent

_HEADING = re.compile(r"^#{1,3} +plan\b", re.IGNORECASE | re.MULTILINE)


def proposed_plan(agent: Agent, *, headed: bool = False) -> str:
    """Return the last answer in plan mode, only from the heading "Plan" on if it has one.

    Returns "" if the last message is not a complete answer, or the agent is not in plan mode. With
    ``headed``, also returns "" if the answer has no such heading.
    """
    from tui_agent.agent.permissions import Mode
    from tui_agent.session.path_queries import newest_message

    answer = None
    if agent.mode == Mode.PLAN:
        answer = newest_message(agent.session.active_path())
    if answer is None or answer.kind != "assistant" or answer.tool_calls or answer.finish != "stop":
        return ""
    heading = _HEADING.search(answer.text)
    if heading is not None:
        return answer.text[heading.start() :].strip()
    if headed:
        return ""
    return answer.text.strip()
