"""Prepares what every first turn needs, while nobody waits for it.

Patterns are compiled and schemas built on first use (see `tui_agent.lazy`), which would otherwise
happen between Enter and the answer.
"""

from tui_agent.agent.mentions import has_mention
from tui_agent.model.error_body import is_error
from tui_agent.model.learnt import LearntModels
from tui_agent.model.plan_limits import read_plan
from tui_agent.model.text_calls import read_text_calls
from tui_agent.session.entries import TextPart, UserEntry
from tui_agent.session.search import index_text
from tui_agent.tools.todo import current_todos
from tui_agent.ui.prompting.completion import token_at
from tui_agent.ui.widgets.transcript.markdown import parse_blocks

__all__ = ["prepare_first_turn"]

_TEXT = "A fewWords."


def prepare_first_turn() -> None:
    """Use each lazily built part of a turn once, without effect. Takes 30 ms: call it in a thread."""
    parse_blocks("")
    token_at([_TEXT], 0, len(_TEXT))
    has_mention(_TEXT)
    index_text(UserEntry(parts=(TextPart(text=_TEXT),)))
    read_plan({"date": ""}, now=0)
    is_error({})
    read_text_calls(_TEXT, {}, _takes_all)
    current_todos([])
    LearntModels.model_rebuild()


def _takes_all(_name: str, _arguments: str) -> str:
    return ""
