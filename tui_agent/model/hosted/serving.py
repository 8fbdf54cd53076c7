"""How the model host serves its program: requests side by side."""

import asyncio
import logging
from typing import Any, Protocol

from tui_agent.model.failures import describe
from tui_agent.model.hosted import lines
from tui_agent.model.hosted.flow_control import Channel, Outlet
from tui_agent.model.hosted.lines import LineReader

log = logging.getLogger("tui_agent.host")

_READ = 1 << 18
_SECRETS = ("api_key", "aws_access_key_id", "aws_secret_access_key", "aws_session_token")


class SlowError(Exception):
    """The provider took too long; ``cause`` and ``seconds`` as in ``errors.Failure``."""

    def __init__(self, cause: str, seconds: float) -> None:
        super().__init__(cause)
        self.cause = cause
        self.seconds = seconds


class Answerer(Protocol):
    """What answers requests."""

    async def answer(self, call: dict[str, Any], limits: dict[str, Any], channel: Channel) -> None:
        """Answer one request into a channel, or raise."""
        ...


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

    def _host_says(self, event: lines.Event) -> None:
        self._writer.write(lines.encode([lines.HOST, [event]]))

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
