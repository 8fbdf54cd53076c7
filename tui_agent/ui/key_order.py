"""Delivers keys in order. Each key waits until the previous key has taken effect."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from textual import events
from textual.app import ScreenStackError
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, TextArea

from tui_agent.lazy import dataclass

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from textual.app import App
    from textual.screen import Screen

MAX_CHECKS: Final = 20
"""Maximum number of checks whether a key has been handled. After that, the next key is sent in any
case."""
CHECK_SECONDS: Final = 0.05
"""Seconds between two checks whether a key has been handled, or whether a page can receive keys."""
COMMAND_SECONDS: Final = 1.0
"""Maximum time that keys wait for the last command to open its page or question, in seconds."""
MAX_OPENING_CHECKS: Final = 200
"""Maximum number of checks whether an opening page can receive keys. After that, keys are sent in
any case."""


WORD_KEYS: Final = {
    "alt+f": "ctrl+right",
    "alt+b": "ctrl+left",
    "alt+right": "ctrl+right",
    "alt+left": "ctrl+left",
    "alt+d": "ctrl+f",
}
"""Keys that move by a word or erase the next word (as in a shell, or Alt with an arrow), each with
the key that does the same in Textual's text fields."""


class KeyOrder:
    """Delivers keys and pastes to an application one at a time, in the order typed.

    Textual sends a key to the widget that has the focus when the key arrives. But the previous key
    may still move the focus or open a page, so a burst of keys would all go to the first widget.
    """

    def __init__(self, app: App[Any], shown: Callable[[], Awaitable[None]]) -> None:
        """Create an empty queue for the keys of ``app``.

        ``shown`` is awaited until the last command has opened its page or its question, or has
        ended.
        """
        self._app = app
        self._shown = shown
        self._ready: Screen[Any] | None = None
        self._waiting: deque[events.Event] = deque()
        self._passed: events.Event | None = None
        self._task: asyncio.Task[None] | None = None

    def enqueue(self, event: events.Event) -> bool:
        """Queue an event and return True; return False if the application may handle it now.

        Keys and pastes are queued, except a character for a text field if no key is being
        delivered. While a key is being delivered, changes of the terminal's focus are queued, too.
        """
        if event is self._passed or event.is_forwarded:
            return False
        if isinstance(event, events.AppFocus | events.AppBlur) and self._task is not None:
            # Textual concludes from a key that the terminal has the focus. Therefore, a key pressed
            # before the terminal lost the focus must not arrive after the event that reports the
            # loss.
            self._waiting.append(event)
            return True
        if not isinstance(event, events.Key | events.Paste):
            return False
        writes = self._task is None and isinstance(event, events.Key) and len(event.key) == 1
        if writes and isinstance(self._app.focused, Input | TextArea):
            # Typing a character into a field neither moves the focus nor opens a page, so it needs
            # no queue.
            return False
        self._waiting.extend(self._split_alt(event))
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._deliver())
        return True

    def _split_alt(self, event: events.Key | events.Paste) -> tuple[events.Key | events.Paste, ...]:
        """Return the events to deliver instead of the given event, usually just the event itself.

        Only keys with Alt are changed: they are delivered without their character, which a text
        field would insert. In addition, two kinds of Alt keys are replaced if they have no binding.
        A field in which Escape ends a mode receives Escape, then the character, because terminals
        send the same bytes for both. (In such a field, this also applies to a letter or digit that
        the field itself binds.) Otherwise, a text field receives the replacement in `WORD_KEYS`, if
        any.
        """
        if not (isinstance(event, events.Key) and event.key.startswith("alt+")):
            return (event,)
        field = self._app.focused
        letter = event.character or ""
        bound = self._app.screen.active_bindings.get(event.key)
        is_free = bound is None or (bound.node is field and letter.isalnum())
        if is_free and event.is_printable and getattr(field, "escape_ends_mode", False):
            name = letter if letter.isalnum() else event.key.removeprefix("alt+")
            return (events.Key("escape", "\x1b"), events.Key(name, letter))
        word = WORD_KEYS.get(event.key)
        if bound is None and word is not None and isinstance(field, Input | TextArea):
            return (events.Key(word, None),)
        return (events.Key(event.key, None),)

    async def _deliver(self) -> None:
        try:
            # If the program is ending, the screens may be removed at any time.
            with suppress(ScreenStackError):
                await self._deliver_waiting()
        finally:
            # Reset this even after a failure; otherwise, no further keys would be delivered.
            self._task = None

    async def _deliver_waiting(self) -> None:
        app = self._app
        while self._waiting and app.is_running:
            await self._wait_until_open(app)
            before = app.screen
            self._passed = self._waiting.popleft()
            app.post_message(self._passed)
            # Which widget has the focus is only known after the application has handled the key.
            await self._wait_until_handled(app)
            await self._wait_until_handled(app.focused or app.screen)
            with suppress(TimeoutError):
                async with asyncio.timeout(COMMAND_SECONDS):
                    await self._shown()
            if app.screen is not before:
                await self._wait_until_handled(app.screen)

    async def _wait_until_open(self, app: App[Any]) -> None:
        """Wait until the screen on top has opened and focused its field.

        A key that is delivered earlier would be lost.
        """
        while app.screen is not self._ready:
            self._ready = app.screen
            await self._wait_until_handled(app.screen, MAX_OPENING_CHECKS)

    async def _wait_until_handled(
        self, target: App[Any] | Widget, checks: int = MAX_CHECKS
    ) -> None:
        """Wait until ``target`` and its parents have handled all messages sent before the call.

        Stops waiting when ``target`` is removed, or after ``checks`` checks, `CHECK_SECONDS` apart.
        """
        done = asyncio.Event()
        target.post_message(KeyDone(done))
        for _ in range(checks):
            with suppress(TimeoutError):
                async with asyncio.timeout(CHECK_SECONDS):
                    await done.wait()
            if done.is_set() or not target.is_attached:
                return


@dataclass
class KeyDone(Message):
    """Message that is sent to a widget after a key, to find out when the key has been handled.

    It bubbles from the key's receiver to the application, which sets ``done``.
    """

    done: asyncio.Event
