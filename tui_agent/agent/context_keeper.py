"""Keeps the context within the window: renders the head, builds and measures requests, makes room.

The rules are in ``tui_agent.context`` and pure; this is the thin shell that reads the path, asks them, and appends
what they decide.
"""

import logging
from dataclasses import replace

from tui_agent.agent.channel import EventChannel
from tui_agent.agent.events import EntryAppended
from tui_agent.agent.ports import AgentPorts
from tui_agent.agent.system_prompt import Place, render_head
from tui_agent.context.budget import ContextSize, measure
from tui_agent.context.projection import ModelTraits, project
from tui_agent.context.request import ImageRef, ModelRequest
from tui_agent.context.templates import Templates
from tui_agent.context.view import resolve
from tui_agent.model.protocol import ModelError
from tui_agent.session.entries import AssistantEntry, Entry, SystemEntry
from tui_agent.session.session import Session

log = logging.getLogger(__name__)


class ContextFullError(Exception):
    """The next request does not fit and nothing may be done about it; the message says what the user can do."""


class ContextKeeper:
    """The context of one session. ``model`` and ``mode`` are those of the next request."""

    def __init__(self, session: Session, ports: AgentPorts, channel: EventChannel, *, model: str, mode: str) -> None:
        self._session = session
        self._ports = ports
        self._channel = channel
        self._templates = Templates.load(ports.prompt)
        self.model = model
        self.mode = mode

    def ensure_head(self) -> None:
        """Append a system entry when the path has none, or one for another model, mode or set of tools."""
        head = self._head()
        tools = tuple(tool.schema() for tool in self._ports.tools)
        if head and (head.model, head.mode, head.tools) == (self.model, self.mode, tools):
            return
        ports = self._ports
        place = Place(ports.cwd, ports.project, self._session.info.created_at or ports.clock())
        self._append(render_head(ports.prompt, ports.tools, place, model=self.model, mode=self.mode))

    def size(self) -> ContextSize:
        """Measure the next request."""
        directory = self._ports.directory
        return measure(
            self._session.active_path(),
            directory.limits(self.model),
            self._ports.settings,
            directory.counter(self.model),
        )

    def request(self, *, tools_allowed: bool = True) -> tuple[ModelRequest, int]:
        """Return the next request and its size in tokens as the program counts them."""
        limits = self._ports.directory.limits(self.model)
        traits = ModelTraits(model=self.model, vision=limits.vision)
        request = project(self._session.active_path(), traits, self._templates)
        request = replace(request, tool_choice="auto" if tools_allowed else "none", blobs=self._images(request))
        return request, self.size().total

    async def make_room(self) -> None:
        """See to it that the next request fits.

        Raises:
            ContextFullError: it does not.
        """
        size = self.size()
        if size.total > size.window:
            raise ContextFullError(
                f"The context is full: {size.total:,} of {size.window:,} tokens. "
                "Start a new session (/new), or switch to a model with a larger window (/model)."
            )

    async def after_overflow(self, error: ModelError) -> None:
        """Learn from a provider's overflow error and make room.

        Raises:
            ModelError: there is nothing to gain.
        """
        if error.window:
            self._ports.directory.learn_window(self.model, error.window)
        raise error

    def after_run(self) -> None:
        """Do what can wait until the agent is idle: learn from reported usage."""
        for entry in reversed(self._session.active_path()):
            if isinstance(entry, AssistantEntry):
                if entry.usage and entry.estimate and not entry.error:
                    self._ports.directory.learn(entry.model, estimate=entry.estimate, reported=entry.usage.prompt)
                return

    def _head(self) -> SystemEntry | None:
        return resolve(self._session.active_path()).system

    def _images(self, request: ModelRequest) -> dict[str, bytes]:
        wanted = {part.blob for message in request.messages for part in message.content if isinstance(part, ImageRef)}
        found = {digest: self._ports.blob(digest) for digest in wanted}
        return {digest: data for digest, data in found.items() if data is not None}

    def _append(self, entry: Entry) -> None:
        self._channel.emit(EntryAppended(self._session.append(entry)))
