"""Asks a side question: one answer with the whole context and no tools.

It is on no path unless the user keeps it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tui_agent.agent.clients import CallCost, complete
from tui_agent.agent.events import CostKnown
from tui_agent.context.request import ContentText, Message
from tui_agent.context.templates import fill
from tui_agent.session.entries import AssistantEntry, TextPart, UserEntry
from tui_agent.session.records import Purpose

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent

REASON = "btw"
"""``UserEntry.synthetic`` of a side question that the user put into the context."""


class SideQuestion:
    """One side question and its answer.

    One of `keep_beside`, `put_into_context` and `drop` has to end it: that records its cost.
    """

    def __init__(self, agent: Agent, question: str) -> None:
        self.question = question
        self.answer = ""
        self._agent = agent
        self._leaf = agent.session.leaf
        self._model = agent.model
        self._spent = CallCost()

    async def ask(self) -> None:
        """Get the answer. The request begins like the session's next one, so most of it is cached.

        Raises:
            ModelError: the request failed.
        """
        ports = self._agent.ports
        request = self._agent.context.next_request(tools_allowed=False)
        text = fill(ports.prompt("btw"), question=self.question)
        asked = Message("user", (ContentText(text),))
        request = replace(request, messages=(*request.messages, asked))
        try:
            self.answer = (await complete(ports.client, request, self._spent)).text.strip()
        except BaseException:
            self.drop()
            raise

    def keep_beside(self) -> None:
        """Store question and answer as a branch of the tree; the leaf stays."""
        answer = AssistantEntry(
            model=self._model,
            parts=(TextPart(text=self.answer),),
            usage=self._spent.usage,
            cost=self._spent.cost,
        )
        question = UserEntry(parts=(TextPart(text=self.question),))
        self._agent.session.beside(self._leaf).append_many([question, answer])
        self._agent.channel.emit(CostKnown())

    def put_into_context(self) -> None:
        """Append question and answer as one note to the model, now or before the next step of a run."""
        template = self._agent.ports.prompt("btw_kept")
        text = fill(template, question=self.question, answer=self.answer)
        self._agent.keep(UserEntry(parts=(TextPart(text=text),), synthetic=REASON))
        self.drop()

    def drop(self) -> None:
        """Record the cost and forget the answer."""
        if self._spent.cost:
            self._agent.session.add_cost(self._spent.cost, Purpose.SIDE_QUESTIONS)
            self._agent.channel.emit(CostKnown())
