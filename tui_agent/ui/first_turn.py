"""Warms up the code that the first turn needs, in the background after the start.

Regular expressions are compiled and schemas built on first use (see `tui_agent.lazy`). Without this
module, that would delay the first answer.
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
    """Run the code that is compiled or built on its first use, and discard the results.

    This takes 30 ms, so call it in a thread.
    """
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
