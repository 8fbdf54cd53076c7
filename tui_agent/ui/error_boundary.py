"""The error boundary of the full-screen program: closes a page that fails, and keeps running.

Textual ends the program if any widget raises an error, such as while it is created or painted, or
in a timer. The boundary reports the error and closes the widget's page instead. After a failed
action of the user (a key, a click) or failed background work, the page stays open. A page's workers
and handlers are cancelled before Textual removes its widgets.

Importing this module replaces Textual's dispatch of messages, for every widget of the process.
"""

import asyncio
import logging
from collections.abc import Callable
from time import monotonic
from typing import Any, TypeVar

from textual import events, messages
from textual._callback import invoke
from textual._context import active_message_pump
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.css.query import NoMatches
from textual.geometry import Offset
from textual.message import Message
from textual.message_pump import MessagePump
from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.widget import Widget
from textual.worker import NoActiveWorker, WorkerFailed, get_current_worker

from tui_agent.errors import UserFacingError, report

Result = TypeVar("Result")

log = logging.getLogger(__name__)

_BUILDING = (events.Load, events.Compose, events.Mount)
"""Events that are handled while a widget is built. If handling one fails, the widget's page is
incomplete."""
_INPUT = (events.InputEvent, events.Paste)
"""Types of the events that come from the user: keys, mouse events and pastes."""

_dispatch = MessagePump._dispatch_message  # noqa: SLF001 - no other place sees the messages of every widget


class ErrorBoundary(App[Result]):
    """Application that reports failures in its pages, timers and workers instead of ending."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.is_started = False
        """Whether the program has started completely. Until then, errors of the first screen end
        the program."""
        self.handlers: dict[asyncio.Task[Any], MessagePump] = {}
        """Tasks that are handling a message, each with the widget or screen that received the
        message."""
        self.ended: set[asyncio.Task[Any]] = set()
        """Tasks in ``handlers`` that were cancelled because their page has been closed."""
        self._last_said = ("", 0.0)
        """Text and time of the last toast about an error. The same text is not shown again while
        that toast is visible."""

    def bounded(self, pump: MessagePump, message: messages.InvokeLater) -> Callable[[], Any]:
        """Return a function that runs the message's callback and passes any error to `fail`."""
        callback = message.callback

        async def call() -> None:
            try:
                await invoke(callback)
            except Exception as error:  # noqa: BLE001 - the boundary
                self.fail(pump, error, message)

        return call

    def _handle_exception(self, error: Exception) -> None:
        """Handle an error raised outside message handlers: in workers, timers, layout and painting.

        Before the start is complete, an error of the first screen ends the program.
        """
        node = active_message_pump.get(self)
        if isinstance(error, WorkerFailed):
            self._say(get_current_worker().node, error.error)
        elif self.is_running and self.can_continue_without(node):
            self.fail(node, error)
        else:
            super()._handle_exception(error)

    def can_continue_without(self, node: MessagePump) -> bool:
        """Return True if the program can continue after ``node`` (a widget, screen or app) failed.

        Before the start is complete, it can't continue without its first screen.
        """
        return self.is_started or _page_of(node) not in {None, *self.screen_stack[:1]}

    def fail(self, node: MessagePump, error: Exception, message: Message | None = None) -> None:
        """Report an error at ``node``, and close its page; the first screen always stays open.

        ``message`` is the message being handled, if any. The page stays open if the message is an
        action of the user or the error is a `UserFacingError`, unless the message builds a widget.
        If a widget was not found because the page is still being built, the error is only logged;
        the page is then closed only if the message is the key Escape.
        """
        page = _page_of(node)
        building = isinstance(message, _BUILDING)
        # The application itself runs the actions of keys, but they concern the page on top.
        about = self.screen if node is self else page
        parts = []
        if about is not None and isinstance(error, NoMatches):
            parts = [about, *about.walk_children()]
        if about is not None and not building and not all(part.is_running for part in parts):
            log.info("Ignored an error, because the page is still being built: %s", error)
            if (
                isinstance(message, events.Key)
                and message.key == "escape"
                and about is not self.screen_stack[0]
            ):
                self.call_later(_close, about)
            return
        if not self._say(node, error) or page is None or page is self.screen_stack[0]:
            return
        if building or not (_is_user_action(message) or isinstance(error, UserFacingError)):
            self.call_later(_close, page)

    def _say(self, node: object, error: BaseException) -> bool:
        """Log an error and show it as a toast, unless the same error was shown a moment ago.

        Returns True. If the page or widget was removed, or the application is exiting, only logs
        the error and returns False.
        """
        is_there = _page_of(node) in self.screen_stack and not getattr(node, "_pruning", False)
        is_ending = self.return_code is not None or not self.is_running
        if is_ending or (node is not self and not is_there):
            log.info("Error after the page was closed: %s: %s", type(error).__name__, error)
            return False
        problem = report(error)
        before = self._last_said
        self._last_said = (problem.sentence, monotonic())
        if problem.sentence != before[0] or monotonic() - before[1] > self.NOTIFICATION_TIMEOUT:
            self.notify(problem.sentence, severity="warning" if problem.expected else "error")
        return True

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Show a toast. ``markup`` is ignored, because messages contain text from outside."""
        del markup
        super().notify(message, title=title, severity=severity, timeout=timeout, markup=False)

    # -- ending a page's work

    def pop_screen(self) -> AwaitComplete:
        if len(self.screen_stack) > 1:
            self.end_work(self.screen)
        return super().pop_screen()

    def end_work(self, page: Screen[Any]) -> None:
        """Cancel workers and message handlers of a page, and call its `when_left` callbacks.

        The calling worker or handler is not cancelled.
        """
        try:
            current = get_current_worker()
        except NoActiveWorker:
            current = None
        for worker in list(self.workers):
            if worker is not current and page in worker.node.ancestors_with_self:
                worker.cancel()
        for task, pump in list(self.handlers.items()):
            if task is not asyncio.current_task() and _page_of(pump) is page:
                self.ended.add(task)
                task.cancel()
        if isinstance(page, PageScreen):
            page.end()

    async def _close_all(self) -> None:
        for page in self.screen_stack:
            self.end_work(page)
        await super()._close_all()


class BoundedScreen(Screen[Result]):
    """A screen that ignores clicks on widgets that were removed since the last layout."""

    def get_widget_and_offset_at(self, x: int, y: int) -> tuple[Widget | None, Offset | None]:
        """Return the widget at a cell, and the offset of the cell in that widget.

        Returns (None, None) if the widget was removed; Textual itself would fail.
        """
        widget, offset = super().get_widget_and_offset_at(x, y)
        if widget is not None and widget is not self and widget.parent is None:
            return (None, None)
        return (widget, offset)


class PageScreen(BoundedScreen[Result]):
    """A screen that opens over the main screen. Leaving it also closes the pages over it.

    Textual's ``dismiss`` removes the top screen, whichever screen calls it, so a burst of keys or
    clicks could close the wrong screen.
    """

    takes_every_key = False
    """Whether the page receives every key while it is on top, even keys that run the program's
    actions on other pages."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._endings: list[Callable[[], object]] = []
        self._is_left = False

    def when_left(self, end: Callable[[], object]) -> None:
        """Arrange that ``end`` is called when the page is left, while its widgets still exist.

        If the page was left already, calls ``end`` at once.
        """
        if self._is_left:
            end()
        else:
            self._endings.append(end)

    def end(self) -> None:
        """Mark the page as left, and call the callbacks of `when_left`."""
        self._is_left = True
        while self._endings:
            self._endings.pop()()

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """Close this page with a result; first close the pages that are open over it.

        Does nothing if it is closed already.
        """
        if self not in self.app.screen_stack:
            return AwaitComplete()
        while self.app.screen is not self:
            self.app.screen.dismiss()
        return super().dismiss(result)

    def leave(self) -> None:
        """Close this page without a result, if it is the current screen."""
        if self.is_current:
            self.dismiss(None)

    def action_back(self) -> None:
        self.dismiss(None)


def _close(page: Screen[Any]) -> None:
    page.dismiss()


def _page_of(node: object) -> Screen[Any] | None:
    """Return the screen that contains a node.

    Returns None for the application itself and for nodes that were removed.
    """
    while node is not None and not isinstance(node, Screen):
        node = getattr(node, "_parent", None)
    return node


def _is_user_action(message: Message | None) -> bool:
    """Return True for input and messages of widgets; False for Textual's own messages and None."""
    if isinstance(message, events.Event):
        return isinstance(message, _INPUT)
    return message is not None and type(message).__module__ != messages.__name__


async def _dispatch_within(pump: MessagePump, message: Message) -> None:
    """Handle a message. If the application is an `ErrorBoundary`, its `fail` handles all errors.

    An error that prevents the first screen from being built is raised.
    """
    app = pump.app
    if not isinstance(app, ErrorBoundary):
        await _dispatch(pump, message)
        return
    if isinstance(message, messages.InvokeLater):
        message.callback = app.bounded(pump, message)
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - messages are handled in tasks
    outer = app.handlers.get(task)
    app.handlers[task] = pump
    try:
        await _dispatch(pump, message)
    except asyncio.CancelledError:
        if task not in app.ended:
            raise
        task.uncancel()
    except Exception as error:
        if isinstance(message, _BUILDING) and not app.can_continue_without(pump):
            raise
        app.fail(pump, error, message)
    finally:
        app.ended.discard(task)
        app.handlers.pop(task)
        if outer is not None:
            app.handlers[task] = outer


MessagePump._dispatch_message = _dispatch_within  # type: ignore[assignment, method-assign]  # noqa: SLF001
