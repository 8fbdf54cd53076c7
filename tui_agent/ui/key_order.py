"""Keys in order: each reaches the focused widget after the effects of the key before it, however fast they come."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from textual import events
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, TextArea

from tui_agent.lazy import dataclass

if TYPE_CHECKING:
    from textual.app import App

LOOKS: Final = 20
LOOK_SECONDS: Final = 0.05
"""How often it is looked whether a part that was sent a key is still there, before the next key
goes on anyway."""


WORD_KEYS: Final = {
    "alt+f": "ctrl+right",
    "alt+b": "ctrl+left",
    "alt+right": "ctrl+right",
    "alt+left": "ctrl+left",
}
"""Keys that go a word on in a field that has text: terminals send either for Alt with an arrow."""


class KeyOrder:
    """Hands keys and pastes to an application one by one.

    Textual hands a key to the widget that has the focus when the key arrives, and the key's effect
    there can move the focus or open a page later. The keys of one burst would all go to the first
    widget.
    """

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._waiting: deque[events.Event] = deque()
        self._passed: events.Event | None = None
        self._task: asyncio.Task[None] | None = None

    def holds(self, event: events.Event) -> bool:
        """Take a key or a paste, to hand it on in its turn; False for one whose turn it is, and for other events."""
        if event is self._passed or event.is_forwarded:
            return False
        if isinstance(event, events.AppFocus | events.AppBlur) and self._task is not None:
            # A key tells Textual that the terminal has the focus: it must not come after the focus
            # has gone.
            self._waiting.append(event)
            return True
        if not isinstance(event, events.Key | events.Paste):
            return False
        writes = self._task is None and isinstance(event, events.Key) and len(event.key) == 1
        if writes and isinstance(self._app.focused, Input | TextArea):
            # A character in a field moves no focus and opens no page; the field keeps its own
            # order.
            return False
        self._waiting.extend(self._parted(event))
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._hand_on())
        return True

    def _parted(self, event: events.Key | events.Paste) -> tuple[events.Key | events.Paste, ...]:
        """Return Escape and a letter in place of Alt with a letter that does nothing: terminals send the same."""
        if not (isinstance(event, events.Key) and event.key.startswith("alt+")):
            return (event,)
        if event.key in self._app.screen.active_bindings:
            return (event,)
        field = self._app.focused
        if isinstance(field, Input):
            text = field.value
        elif isinstance(field, TextArea):
            text = field.text
        else:
            text = ""
        if text and (word := WORD_KEYS.get(event.key)) is not None:
            return (events.Key(word, None),)
        if not event.is_printable:
            return (event,)
        letter = event.character or ""
        if letter.isalnum():
            name = letter
        else:
            name = event.key.removeprefix("alt+")
        return (events.Key("escape", "\x1b"), events.Key(name, letter))

    async def _hand_on(self) -> None:
        app = self._app
        while self._waiting and app.is_running:
            before = app.screen
            self._passed = self._waiting.popleft()
            app.post_message(self._passed)
            # The application knows the focus only when it has come to the key.
            await self._done(app)
            await self._done(app.focused or app.screen)
            if app.screen is not before:
                await self._done(app.screen)
        self._task = None

    async def _done(self, target: App[Any] | Widget) -> None:
        """Wait until a part of the screen, and all around it, has handled the messages sent up to now."""
        done = asyncio.Event()
        target.post_message(KeyDone(done))
        for _ in range(LOOKS):
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await done.wait()
            if done.is_set() or not target.is_attached:
                return


@dataclass
class KeyDone(Message):
    """Goes the way a key goes, behind it, up to the application."""

    done: asyncio.Event
