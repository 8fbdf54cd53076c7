"""Asks the model a side question: it answers once, with the whole context and without tools.

Question and answer don't become part of the conversation unless the user wants that, which
``app.side_commands`` asks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tui_agent.agent.channel import Journal
from tui_agent.agent.clients import CallCost, complete
from tui_agent.agent.events import CostKnown
from tui_agent.context.request import ContentText, Message
from tui_agent.context.templates import fill
from tui_agent.session.entries import AssistantEntry, TextPart, UserEntry
from tui_agent.session.records import Purpose

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent

REASON = "btw"
"""``UserEntry.synthetic`` of a side question and its answer that the user put into the context."""


class SideQuestion:
    """One side question and its answer.

    After `ask` has returned, one of `keep_beside`, `put_into_context` and `drop` has to be called, to
    record the cost. If `ask` raises, it has called `drop`.
    """

    def __init__(self, agent: Agent, question: str) -> None:
        self.question = question
        self.answer = ""
        self._agent = agent
        self._leaf = agent.session.leaf
        self._model = agent.model
        self._spent = CallCost()

    async def ask(self) -> None:
        """Send the question and set ``answer``; after an error `drop` is called.

        The request begins like the session's next one, so most of it is cached.

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
        """Store question and answer as a branch below the leaf at the time of asking.

        The leaf stays.
        """
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
        """Append question and answer as one message for the model.

        During a run that is done before its next step.
        """
        template = self._agent.ports.prompt("btw_kept")
        text = fill(template, question=self.question, answer=self.answer)
        self._agent.keep(UserEntry(parts=(TextPart(text=text),), synthetic=REASON))
        self.drop()

    def drop(self) -> None:
        """Add the cost to the session's, and store nothing else."""
        if self._spent.cost:
            journal = Journal(self._agent.session, self._agent.channel)
            journal.add_cost(self._spent.cost, Purpose.SIDE_QUESTIONS)
