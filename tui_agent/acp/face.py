"""The desk's face in an editor: sentences and reports become messages, a choice becomes a permission request."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from acp import RequestError, helpers
from acp.schema import AllowedOutcome, PermissionOption, ToolCallUpdate

from tui_agent.app.conversation_search import find_report
from tui_agent.app.face import (
    Choice,
    DiffPage,
    FindingsPage,
    FindPage,
    JobsPage,
    Output,
    Page,
    Pick,
    Question,
    Remedy,
    Report,
    Severity,
    diff_text,
)
from tui_agent.app.status import job_lines

if TYPE_CHECKING:
    from tui_agent.acp.session import EditorSession
    from tui_agent.agent.agent import Agent
    from tui_agent.app.services import OpenRequest, UiSettings

T = TypeVar("T")

MAX_DIFF_CHARS = 100_000
"""Characters of a diff that are told."""
MAX_OFFERED = 12
"""Rows of a long list that are offered as answers: the first ones."""


class EditorFace:
    """Speaks for the desk of one session in an editor."""

    def __init__(self, session: EditorSession) -> None:
        self._session = session
        self._asked = 0

    # -- the three ways to speak ------------------------------------------------------------------------------

    def say(self, message: str, severity: Severity = "information", remedy: Remedy | None = None) -> None:
        """Tell a sentence as a message of the agent's."""
        del severity, remedy
        self._session.tell(helpers.update_agent_message_text(f"{message}\n\n"))

    def announce(self, message: str, severity: Severity = "information") -> None:
        """Tell a sentence as a message of the agent's."""
        self.say(message, severity)

    def warn(self, message: str) -> None:
        """Tell a sentence as a message of the agent's."""
        self.say(message)

    async def ask(self, question: Question[T]) -> T | None:
        """Ask by a permission request, which is the one question editors know; other questions have no answer."""
        match question:
            case Choice():
                return await self._ask(question)  # type: ignore[return-value]  # a choice is answered by a key
            case Pick():
                offered = [(row.key, row.text[:80]) for row in question.rows[:MAX_OFFERED]]
                return await self._ask(Choice(question.question, offered))  # type: ignore[return-value]  # so is this
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

    def show(self, page: Page) -> None:
        """Tell a report or an output as a message; other pages need a screen."""
        match page:
            case Report():
                self.say(f"**{page.title}**\n\n{page.text}")
            case Output():
                self.say(f"```\n{page.text}\n```")
            case DiffPage():
                self.say(f"**{page.title}**\n\n```diff\n{diff_text(page.files)[:MAX_DIFF_CHARS]}\n```")
            case FindingsPage():
                self.say(f"**{page.title}**\n\n{page.text}")
            case FindPage(query=query) if query:
                self._session.desk.soon(self._tell_found(query))
            case JobsPage():
                self.show(Report(page.title, job_lines(self._session.agent.jobs)))
            case _:
                self.say(f"{page.title} needs the full-screen program: run tui-agent in a terminal.")

    async def _tell_found(self, query: str) -> None:
        self.show(await find_report(self._session.desk, query))

    # -- what changes -----------------------------------------------------------------------------------------

    def refresh_facts(self) -> None:
        """What changes is told as it happens."""

    def opening(self) -> None:
        """Nothing is written here that could be lost."""

    def opened(self, agent: Agent, entry: int | None = None) -> None:
        """The editor shows the session by what is told of it."""

    def go_to(self, request: OpenRequest) -> None:
        """Editors open sessions from their own list."""
        del request
        self.say("Open sessions from the editor's own list.")

    def jump_to(self, entry_id: int) -> bool:
        """No entry can be shown."""
        del entry_id
        return False

    def apply_ui_settings(self, settings: UiSettings) -> None:
        """Looks are the editor's."""

    def use_theme(self, name: str) -> bool:
        """Themes are the editor's."""
        del name
        return False

    def toggle_panel(self) -> None:
        """There is no panel."""

    def clear_notice(self) -> None:
        """What was told stays."""

    def warnings_read(self) -> None:
        """Warnings are told as they come."""

    def copy(self, text: str) -> None:
        """Tell the text: the clipboard is the editor's."""
        self.say(text)

    def leave(self) -> None:
        """The editor ends the program."""

    @property
    def keymap(self) -> Mapping[str, str]:
        """No keys are ours."""
        return {}

    def key_lines(self) -> Sequence[str]:
        """No keys are ours."""
        return ()

    # -- what is being written --------------------------------------------------------------------------------

    @property
    def draft(self) -> str:
        """What is written is the editor's."""
        return ""

    def set_draft(self, text: str) -> None:
        """What is written is the editor's."""

    def put_back(self, text: str) -> None:
        """Tell the message, to be sent again."""
        self.say(f"Not sent: {text}")

    def restore_message(self, text: str) -> None:
        """Tell the message of an undone turn, to be sent again."""
        if text:
            self.say(f"The message was: {text}")

    def withdraw_message(self, text: str) -> None:
        """What is written is the editor's."""
