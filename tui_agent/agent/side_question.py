"""Asks the model side questions, which it answers with the whole context, but without tools.

Questions and answers become part of the conversation only if the user wants that;
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
from tui_agent.lazy import frozen
from tui_agent.session.entries import AssistantEntry, Entry, TextPart, UserEntry
from tui_agent.session.records import Purpose

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent

REASON = "btw"
"""Value of ``UserEntry.synthetic`` in the message with side questions and their answers that the
user put into the context."""


@frozen
class Exchange:
    """A side question and its answer."""

    question: str
    answer: str


class SideQuestion:
    """A side question and its follow-up questions.

    `keep_beside`, `put_into_context` and `drop` end the question and record its cost. Call `close`
    at the end, even if one of these was called before.
    """

    def __init__(self, agent: Agent) -> None:
        self.exchanges: list[Exchange] = []
        """The answered questions that the user has not yet kept or dropped, oldest first."""
        self._agent = agent
        self._leaf = agent.session.leaf
        self._model = agent.model
        self._spent = CallCost()

    async def ask(self, question: str) -> bool:
        """Ask another question; return False if the model gave no answer.

        The request begins like the session's next request, so most of it is cached.

        Raises:
            ModelError: the request failed.
        """
        ports = self._agent.ports
        request = self._agent.context.next_request(tools_allowed=False)
        messages = list(request.messages)
        for earlier in self.exchanges:
            messages.append(self._question(earlier.question))
            messages.append(Message("assistant", (ContentText(earlier.answer),)))
        messages.append(self._question(question))
        request = replace(request, messages=tuple(messages))
        answer = (await complete(ports.client, request, self._spent)).text.strip()
        if answer:
            self.exchanges.append(Exchange(question, answer))
        return bool(answer)

    def _question(self, question: str) -> Message:
        text = fill(self._agent.ports.prompt("btw"), question=question)
        return Message("user", (ContentText(text),))

    def keep_beside(self) -> None:
        """Store questions and answers as a branch.

        The branch begins below the entry that was the session's leaf (its current entry) before the
        first question. The session's leaf doesn't change. The last answer is stored with the usage
        and cost of all answers.

        Raises:
            StoreError: the questions and answers can't be stored; nothing is changed.
        """
        entries: list[Entry] = []
        for exchange in self.exchanges:
            entries.append(UserEntry(parts=(TextPart(text=exchange.question),)))
            entries.append(
                AssistantEntry(model=self._model, parts=(TextPart(text=exchange.answer),))
            )
        spent = {"usage": self._spent.usage, "cost": self._spent.cost}
        entries[-1] = entries[-1].model_copy(update=spent)
        self._agent.session.beside(self._leaf).append_many(entries)
        self.exchanges.clear()
        self._spent = CallCost()
        self._agent.channel.emit(CostKnown())

    def put_into_context(self) -> None:
        """Append questions and answers as one message for the model.

        During a run the message is appended before its next step. The cost is added to the
        session's cost.

        Raises:
            StoreError: the cost or the message can't be stored; no message is appended.
        """
        questions = "\n\n".join(exchange.question for exchange in self.exchanges)
        answers = "\n\n".join(exchange.answer for exchange in self.exchanges)
        template = self._agent.ports.prompt("btw_kept")
        text = fill(template, question=questions, answer=answers)
        self._record_cost()
        self._agent.keep(UserEntry(parts=(TextPart(text=text),), synthetic=REASON))
        self.exchanges.clear()

    def drop(self) -> None:
        """Forget questions and answers; add their cost to the session's cost. Raises StoreError."""
        self.exchanges.clear()
        self._record_cost()

    def close(self) -> None:
        """Store the answers as a branch if the user hasn't decided about them, and record the cost.

        Does nothing if another method has already ended the question. Raises StoreError.
        """
        if self.exchanges:
            self.keep_beside()
        else:
            self._record_cost()

    def _record_cost(self) -> None:
        if self._spent.cost:
            journal = Journal(self._agent.session, self._agent.channel)
            journal.add_cost(self._spent.cost, Purpose.SIDE_QUESTIONS)
            self._spent.cost = 0.0
