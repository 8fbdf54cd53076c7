"""Sends one message again and again, at an interval, while its session is idle."""

import asyncio
from collections.abc import Awaitable, Callable

from tui_agent.errors import report

MAX_ROUNDS = 100
"""Messages after which the repetition ends, so that one that was forgotten can't cost without end."""


class Repeats:
    """The repetition of one session, if it has one.

    ``submit`` sends a message, ``is_running`` says whether the session works, ``say`` tells the
    user; ``pause`` waits for seconds.
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
        """What is sent, "" for no repetition."""
        self.rounds = 0
        """Messages that were sent."""
        self._task: asyncio.Task[None] | None = None

    def begin(self, message: str, seconds: float) -> None:
        """Send a message now and then every so many seconds, in place of an earlier repetition."""
        self.drop()
        self.message = message
        self.rounds = 0
        self._task = asyncio.get_running_loop().create_task(self._go_on(seconds))

    def drop(self) -> None:
        """Send nothing any more."""
        self.message = ""
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
        self._task = None

    @property
    def words(self) -> str:
        """How far it is, in a few words for the status line; "" without a repetition."""
        if not self.message:
            return ""
        return f"loop, round {max(self.rounds, 1)} of {MAX_ROUNDS}"

    async def _go_on(self, seconds: float) -> None:
        while self.rounds < MAX_ROUNDS:
            # A round that takes longer than the interval is let finish.
            if not self._is_running():
                self.rounds += 1
                try:
                    self._submit(self.message)
                except Exception as error:  # noqa: BLE001 - the edge of a task: told, and ended
                    self._end(f"The loop ended: {report(error).sentence}")
                    return
            await self._pause(seconds)
        self._end(f"The loop ended after {MAX_ROUNDS} rounds. /loop begins it again.")

    def _end(self, why: str) -> None:
        self.drop()
        self._say(why)
