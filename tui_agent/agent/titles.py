"""Sets a session's title: first the first line of its first message, then one that a model writes.

The small model, or the conversation's model if there is none, is asked once, in the background,
after the first completed run. Failures are only logged. A title that the user gave is never
changed. The title is stored with the session; `TitleChanged` is emitted only for a title from a
model.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from tui_agent.agent.channel import Journal
from tui_agent.agent.clients import NO_MODEL
from tui_agent.agent.events import AgentEvent, RunEnded, TitleChanged
from tui_agent.agent.ports import AgentPorts
from tui_agent.agent.small_questions import ask_small_model
from tui_agent.model.demo import DEMO_MODEL
from tui_agent.model.protocol import ModelError
from tui_agent.safe_text import one_line
from tui_agent.session.entries import TextPart, UserPart, typed_text
from tui_agent.session.errors import StoreError

log = logging.getLogger(__name__)

TITLE_LENGTH = 60
"""Maximum characters of a title made from a message; a model's title may have twice as many."""
MESSAGE_CHARS = 2_000
"""Maximum number of characters of the first message that are sent to the model for a title."""
SECONDS = 20.0
"""Timeout of the request to the model for a title, in seconds."""


class Titles:
    """Sets the title of one session. ``model`` returns the conversation's model."""

    def __init__(self, journal: Journal, ports: AgentPorts, model: Callable[[], str]) -> None:
        self._journal = journal
        self._session = journal.session
        self._channel = journal.channel
        self._ports = ports
        self._model = model
        self._message = ""
        self._given = ""
        self._task: asyncio.Task[None] | None = None
        self._channel.subscribe(self._on_event)

    def begin(self, parts: Sequence[UserPart]) -> None:
        """Make the first line of a message the title, unless the session has one."""
        text = " ".join(part.text for part in parts if isinstance(part, TextPart)).strip()
        if not text or self._session.info.title:
            return
        first_line = typed_text(parts).strip().partition("\n")[0]
        self._message = text
        self._given = one_line(first_line, TITLE_LENGTH)
        self._session.set_title(self._given)

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _on_event(self, event: AgentEvent) -> None:
        if not isinstance(event, RunEnded) or event.reason != "done" or not self._message:
            return
        message = self._message
        self._message = ""
        model = self._ports.small_model or self._model()
        is_demo = DEMO_MODEL in {model, self._model()}
        if self._ports.titles and model != NO_MODEL and not is_demo:
            self._task = asyncio.get_running_loop().create_task(self._improve(message, model))

    async def _improve(self, message: str, model: str) -> None:
        shown = f"<message>\n{message[:MESSAGE_CHARS]}\n</message>"
        try:
            answer = await ask_small_model(
                shown, "title", self._journal, self._ports, model=model, seconds=SECONDS
            )
            title = clean_title(answer.text) if answer.finish == "stop" else ""
            if title and self._session.info.title == self._given:
                self._session.set_title(title)
                self._channel.emit(TitleChanged(title))
        except (ModelError, StoreError, TimeoutError) as error:
            log.info("no title from %s: %s", model, error)


def clean_title(answer: str) -> str:
    """Return a model's answer as a title, without quotes and full stop.

    Returns "" if the answer is empty, too long or not printable, or if it has more than one line.
    """
    lines = [line.strip() for line in answer.strip().splitlines() if line.strip()]
    if len(lines) != 1:
        return ""
    title = lines[0].removeprefix("Title:").strip().strip("\"'“”«»*#` ").removesuffix(".")
    if 0 < len(title) <= TITLE_LENGTH * 2 and title.isprintable():
        return title
    return ""
