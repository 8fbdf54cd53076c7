"""Sends single questions, outside the conversation, to the small model.

If no small model is configured, another model is asked. The cost is added to the costs of the run
and the session. No budget is checked before a question.
"""

from tui_agent.agent.channel import Journal
from tui_agent.agent.clients import Completion, complete_in_time
from tui_agent.agent.ports import AgentPorts
from tui_agent.context.request import ContentText, Message, ModelRequest
from tui_agent.session.records import Purpose

MAX_TOKENS = 300


async def ask_small_model(  # noqa: PLR0913 - a question, and who pays for it
    text: str,
    prompt: str,
    journal: Journal,
    ports: AgentPorts,
    *,
    model: str,
    seconds: float,
    purpose: Purpose = Purpose.OTHER,
) -> Completion:
    """Return the small model's answer to ``text``, with the system prompt named ``prompt``.

    If no small model is configured, ``model`` is asked instead. The cost is added to the session's
    cost, under ``purpose``.

    Raises:
        ModelError: the model gave no answer.
        TimeoutError: the answer took longer than ``seconds``.
    """
    request = ModelRequest(
        model=ports.small_model or model,
        messages=(
            Message("system", (ContentText(ports.prompt(prompt)),)),
            Message("user", (ContentText(text),)),
        ),
        max_output_tokens=MAX_TOKENS,
        tool_choice="none",
    )
    return await complete_in_time(ports, request, journal, seconds, purpose)
