"""How the model host serves its program: requests side by side, answers bounded in memory."""

import asyncio
import logging
from typing import Any, Protocol

from tui_agent.model.failures import describe
from tui_agent.model.hosted import lines
from tui_agent.model.hosted.lines import WINDOW, Event, LineReader, encode, size_of

log = logging.getLogger("tui_agent.host")

_READ = 1 << 18
_SECRETS = ("api_key", "aws_access_key_id", "aws_secret_access_key", "aws_session_token")


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
        self._held = 0
        self._unseen = 0
        self._room = asyncio.Event()
        self._room.set()

    def send(self, event: Event) -> None:
        self._held += size_of(event)
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
        events, self._waiting = self._waiting, []
        self._unseen += sum(size_of(event) for event in events)
        self._held = 0
        self._room.set()
        return events

    @property
    def empty(self) -> bool:
        return not self._waiting


class Outlet:
    """Writes what the channels hold as soon as the reader takes it."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._channels: dict[int, Channel] = {}
        self._closing: set[int] = set()
        self._woken = asyncio.Event()

    def open(self, number: int) -> Channel:
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


class SlowError(Exception):
    """The provider took too long; ``cause`` and ``seconds`` as in ``errors.Failure``."""

    def __init__(self, cause: str, seconds: float) -> None:
        super().__init__(cause)
        self.cause = cause
        self.seconds = seconds


class Answerer(Protocol):
    """What answers requests."""

    async def answer(self, call: dict[str, Any], limits: dict[str, Any], channel: Channel) -> None: ...


class Connection:
    """The program that talks to the host."""

    def __init__(self, caller: Answerer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._caller = caller
        self._reader = reader
        self._writer = writer
        self._outlet = Outlet(writer)
        self._tasks: dict[int, asyncio.Task[None]] = {}

    async def serve(self, ready: dict[str, Any]) -> None:
        """Serve until the program is gone or says so."""
        self._host_says([lines.READY, ready])
        writing = asyncio.create_task(self._outlet.run())
        reading = asyncio.create_task(self._read())
        try:
            await asyncio.wait({writing, reading}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            tasks = [writing, reading, *self._tasks.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._writer.close()

    async def _read(self) -> None:
        incoming = LineReader()
        while data := await self._reader.read(_READ):
            for line in incoming.feed(data):
                if line["op"] == "shutdown":
                    return
                self._take(line)

    def _take(self, line: dict[str, Any]) -> None:
        number = line["id"]
        match line["op"]:
            case "stream":
                task = asyncio.create_task(self._answer(number, line["call"], line["limits"]))
                self._tasks[number] = task
                task.add_done_callback(lambda _task: self._tasks.pop(number, None))
            case "cancel":
                self._outlet.drop(number)
                if task_of := self._tasks.get(number):
                    task_of.cancel()
            case "ack":
                self._outlet.acknowledge(number, line["size"])
            case "ping":
                self._host_says([lines.PONG, number])

    def _host_says(self, event: Event) -> None:
        self._writer.write(encode([lines.HOST, [event]]))

    async def _answer(self, number: int, call: dict[str, Any], limits: dict[str, Any]) -> None:
        channel = self._outlet.open(number)
        channel.send([lines.ACCEPTED])
        try:
            await self._caller.answer(call, limits, channel)
        except asyncio.CancelledError:
            self._outlet.drop(number)
            raise
        except SlowError as slow:
            channel.send([lines.FAILED, {"cause": slow.cause, "seconds": slow.seconds}])
        except Exception as error:  # noqa: BLE001 - whatever a provider's adapter raises is the program's to judge
            failure = describe(error, [call[name] for name in _SECRETS if call.get(name)])
            log.warning("request %s failed: %s", number, failure)
            channel.send([lines.FAILED, failure])
        finally:
            self._outlet.close(number)
