"""Sends one message at intervals, except while a run is in progress (``/loop``).

Manual compactions and the user's shell commands don't delay the message. `Agent.interrupt` ends the
repetition of the message. ``loop`` carries out runs; ``calls.repetition`` and ``repeated_text``
detect a model that repeats itself.
"""

import asyncio
from collections.abc import Awaitable, Callable

from tui_agent.errors import report

MAX_ROUNDS = 100
"""Maximum number of times that a message is sent, so that a forgotten loop ends."""


class RepeatedMessage:
    """Sends one session's repeated message, if the user set one.

    ``submit`` sends a message, ``is_running`` returns whether a run is in progress, ``say`` shows
    the user a notice, ``pause`` waits for a number of seconds.
    """

    def __init__(
        self,
        submit: Callable[[str], None],
        is_running: Callable[[], bool],
        say: Callable[[str], None],
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._submit = submit
        self._is_running = is_running
        self._say = say
        self._pause = pause
        self.message = ""
        """The repeated message; "" for none."""
        self.rounds = 0
        """Number of times that the repeated message was sent."""
        self._task: asyncio.Task[None] | None = None

    def begin(self, message: str, seconds: float) -> None:
        """Send a message at once, and again each time ``seconds`` have passed.

        Replaces an earlier repeated message. If a run is in progress when the message is due, it is
        not sent that time.
        """
        self.drop()
        self.message = message
        self.rounds = 0
        self._task = asyncio.get_running_loop().create_task(self._go_on(seconds))

    def drop(self) -> None:
        """Stop sending the repeated message; does nothing if there is none."""
        self.message = ""
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
        self._task = None

    @property
    def words(self) -> str:
        """The text for the status line: "loop, round 2 of 100"; "" if no message is repeated."""
        if not self.message:
            return ""
        return f"loop, round {max(self.rounds, 1)} of {MAX_ROUNDS}"

    async def _go_on(self, seconds: float) -> None:
        while self.rounds < MAX_ROUNDS:
            # A run may take longer than the interval.
            if not self._is_running():
                self.rounds += 1
                try:
                    self._submit(self.message)
                except Exception as error:  # noqa: BLE001 - the edge of a task: shown to the user
                    self._end(f"The loop ended: {report(error).sentence}")
                    return
            await self._pause(seconds)
        self._end(f"The loop ended after {MAX_ROUNDS} rounds. /loop starts it again.")

    def _end(self, why: str) -> None:
        self.drop()
        self._say(why)
