"""The host's way out: events of many requests to one reader, joined while the reader is slow, bounded in memory."""

import asyncio
from typing import Protocol

from tui_agent.model.hosted.lines import CALL_DELTA, TEXT, THINKING, WINDOW, Event, encode, size_of

_JOINED = {TEXT: 1, THINKING: 1, CALL_DELTA: 4}
"""Events whose last field is a piece of text, and how many fields must agree for two to become one."""

_MAX_WAITING_CHARS = 256 * 1024
"""Characters of one request that wait for the reader before its provider has to wait too."""


class Writer(Protocol):
    """The part of ``asyncio.StreamWriter`` that is used."""

    def write(self, data: bytes) -> None:
        """Send bytes."""

    async def drain(self) -> None:
        """Wait until there is room for more."""


class Channel:
    """The events of one request on their way out."""

    def __init__(self, outlet: "Outlet", number: int) -> None:
        self._outlet = outlet
        self.number = number
        self._waiting: list[Event] = []
        self._pieces: list[str] = []
        self._held = 0
        self._unseen = 0
        self._room = asyncio.Event()
        self._room.set()

    def send(self, event: Event) -> None:
        """Hand over an event; text joins what still waits."""
        self._held += size_of(event)
        last = self._waiting[-1] if self._waiting else None
        agree = _JOINED.get(event[0])
        if last is not None and agree is not None and last[:agree] == event[:agree]:
            self._pieces.append(event[-1])
        else:
            self._join()
            self._waiting.append(event)
        if self._held > _MAX_WAITING_CHARS:
            self._room.clear()
        self._outlet.wake()

    async def room(self) -> None:
        """Wait until the reader has taken enough of what was sent."""
        await self._room.wait()

    def acknowledge(self, size: int) -> None:
        """Note that the reader took events of that size."""
        self._unseen = max(0, self._unseen - size)
        self._outlet.wake()

    def pull(self) -> list[Event]:
        """Return what may be written now and forget it."""
        if not self._waiting or self._unseen >= WINDOW:
            return []
        self._join()
        events, self._waiting = self._waiting, []
        self._unseen += sum(size_of(event) for event in events)
        self._held = 0
        self._room.set()
        return events

    def _join(self) -> None:
        if self._pieces:
            self._waiting[-1][-1] += "".join(self._pieces)
            self._pieces.clear()

    @property
    def empty(self) -> bool:
        """Whether everything was written."""
        return not self._waiting


class Outlet:
    """Writes what the channels hold as soon as the reader takes it."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._channels: dict[int, Channel] = {}
        self._closing: set[int] = set()
        self._woken = asyncio.Event()

    def open(self, number: int) -> Channel:
        """Start the events of a request."""
        channel = self._channels[number] = Channel(self, number)
        return channel

    def close(self, number: int) -> None:
        """End the events of a request once they are written."""
        self._closing.add(number)
        self.wake()

    def drop(self, number: int) -> None:
        """End the events of a request at once; nobody wants what still waits."""
        self._channels.pop(number, None)

    def acknowledge(self, number: int, size: int) -> None:
        """Note that the reader took events of a request."""
        if channel := self._channels.get(number):
            channel.acknowledge(size)

    def wake(self) -> None:
        """Have the writer look for something to write."""
        self._woken.set()

    async def run(self) -> None:
        """Write until cancelled.

        Raises:
            OSError: the reader is gone.
        """
        while True:
            await self._woken.wait()
            self._woken.clear()
            for channel in list(self._channels.values()):
                if events := channel.pull():
                    self._writer.write(encode([channel.number, events]))
                    await self._writer.drain()
                if channel.number in self._closing and channel.empty:
                    self._closing.discard(channel.number)
                    self._channels.pop(channel.number, None)
