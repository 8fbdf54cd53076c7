"""The desk's face in an editor: sentences and reports become messages, a choice becomes a permission request."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, TypeVar

from acp import RequestError, helpers
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    ElicitationFormSessionMode,
    ElicitationSchema,
    ElicitationStringPropertySchema,
    PermissionOption,
    ToolCallUpdate,
)

from tui_agent.app.face import (
    Choice,
    FindPage,
    JobsPage,
    Page,
    Pick,
    Question,
    Remedy,
    Report,
    Severity,
    TextLine,
    WordsFace,
)
from tui_agent.app.find_commands import find_report
from tui_agent.app.status_commands import job_lines

if TYPE_CHECKING:
    from tui_agent.acp.session import EditorSession
    from tui_agent.app.services import OpenRequest

T = TypeVar("T")

MAX_OFFERED = 12
"""Rows of a long list that are offered as answers: the first ones."""


class EditorFace(WordsFace):
    """Speaks for the desk of one session in an editor."""

    def __init__(self, session: EditorSession) -> None:
        self._session = session
        self._asked = 0

    def say(self, message: str, severity: Severity = "information", remedy: Remedy | None = None) -> None:
        """Tell a sentence as a message of the agent's."""
        del severity, remedy
        self._session.tell(helpers.update_agent_message_text(f"{message}\n\n"))

    async def ask(self, question: Question[T]) -> T | None:
        """Ask for a choice by a permission request, for a text by a form if there are any; nothing else is asked."""
        match question:
            case Choice():
                return await self._ask(question)  # type: ignore[return-value]  # a choice is answered by a key
            case Pick():
                offered = [(row.key, row.text[:80]) for row in question.rows[:MAX_OFFERED]]
                return await self._ask(Choice(question.question, offered))  # type: ignore[return-value]  # so is this
            case TextLine():
                return await self._ask_text(question)  # type: ignore[return-value]  # a line is answered by a text
            case _:
                return None

    async def _ask(self, question: Choice) -> str | None:
        self._asked += 1
        options = [PermissionOption(option_id=key, name=text, kind="allow_once") for key, text in question.answers]
        content = [helpers.tool_content(helpers.text_block(question.details))] if question.details else None
        call = ToolCallUpdate(tool_call_id=f"question-{self._asked}", title=question.question, content=content)
        await self._session.settle()
        with contextlib.suppress(RequestError, ConnectionError):
            response = await self._session.client.request_permission(self._session.agent.session.id, call, options)
            offered = {option.option_id for option in options}
            if isinstance(response.outcome, AllowedOutcome) and response.outcome.option_id in offered:
                return response.outcome.option_id
        return None

    async def _ask_text(self, question: TextLine) -> str | None:
        able = self._session.able.elicitation
        if able is None or able.form is None:
            return None
        field = ElicitationStringPropertySchema(type="string", title="Answer", default=question.text or None)
        form = ElicitationFormSessionMode(
            session_id=self._session.agent.session.id, requested_schema=ElicitationSchema(properties={"answer": field})
        )
        await self._session.settle()
        with contextlib.suppress(RequestError, ConnectionError):
            response = await self._session.client.create_elicitation(message=question.question, mode=form)
            if isinstance(response, AcceptElicitationResponse):
                return str((response.content or {}).get("answer") or "")
        return None

    def show(self, page: Page) -> None:
        """Tell what was found and the jobs too."""
        match page:
            case FindPage(query=query) if query:
                self._session.desk.soon(self._tell_found(query))
            case JobsPage():
                self.show(Report(page.title, job_lines(self._session.agent.jobs)))
            case _:
                super().show(page)

    async def _tell_found(self, query: str) -> None:
        self.show(await find_report(self._session.desk, query))

    def go_to(self, request: OpenRequest) -> None:
        """Editors open sessions from their own list."""
        del request
        self.say("Open sessions from the editor's own list.")
