"""The model host: the process that has litellm, answers requests given as JSON lines, and does nothing else.

``python -m tui_agent.model.host`` speaks over stdin and stdout and ends with its parent. With ``--socket PATH`` it
serves every program of the user over a private Unix socket and stays for some idle time. Its stderr is a log file.
The lines are described in ``tui_agent.model.lines``. It retries nothing.
"""

import argparse
import asyncio
import contextlib
import gc
import logging
import os
import select
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from tui_agent.model import lines
from tui_agent.model.assembly import Assembly, call_ids
from tui_agent.model.failures import describe
from tui_agent.model.lines import LineReader
from tui_agent.model.outlet import Channel, Outlet
from tui_agent.model.redaction import RedactingFormatter

log = logging.getLogger("tui_agent.host")

_TURN = 0.004
"""Seconds of one request's chunks that may be worked on before other requests and the reader get their turn."""

_GRACE = 2.0
"""Seconds to close connections after the parent is gone."""

_READ = 1 << 18


class _Slow(Exception):
    """The provider took too long; ``cause`` and ``seconds`` as in ``errors.Failure``."""

    def __init__(self, cause: str, seconds: float) -> None:
        super().__init__(cause)
        self.cause = cause
        self.seconds = seconds


# -- litellm ------------------------------------------------------------------------------------------------


def load() -> Any:
    """Import litellm, silent and offline, and return it."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    # Anything else than DEV keeps it from reading .env files.
    os.environ["LITELLM_MODE"] = "PRODUCTION"
    os.environ["LITELLM_LOG"] = "ERROR"
    # Collecting garbage over and over while 200,000 lasting objects are made takes a fifth of the import.
    gc.disable()
    import litellm

    gc.collect()
    gc.freeze()
    gc.enable()
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "openai", "aiohttp", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    litellm.suppress_debug_info = True
    litellm.drop_params = True
    litellm.num_retries = 0
    litellm.disable_token_counter = True
    litellm.disable_streaming_logging = True
    litellm.turn_off_message_logging = True
    # A model may well say the same thing a hundred times: rules of tables, for example.
    litellm.REPEATED_STREAMING_CHUNK_LIMIT = 1 << 30
    # Putting the whole answer together again at its end costs 0.1 ms a chunk and nobody asks for it.
    litellm.stream_chunk_builder = _no_rebuild
    return litellm


def _no_rebuild(*_: object, **__: object) -> None:
    raise RuntimeError("the answer is put together by tui_agent.model.assembly")


class Caller:
    """Calls providers through litellm."""

    def __init__(self, litellm: Any) -> None:
        import httpx

        self._litellm = litellm
        self._timeout = httpx.Timeout

    async def answer(self, call: dict[str, Any], limits: dict[str, float], channel: Channel) -> None:
        """Answer one request into a channel.

        Raises:
            Exception: whatever litellm raises.
        """
        assembly = Assembly(taken=call_ids(call["messages"]))
        first, stall, connect = limits["first_byte"], limits["stall"], limits["connect"]
        call["timeout"] = self._timeout(connect=connect, read=max(first, stall) + 60, write=first, pool=first)
        stream: Any = None
        try:
            async with _within(first, "timeout"):
                stream = await self._litellm.acompletion(
                    **call,
                    stream=True,
                    stream_options={"include_usage": True},
                    num_retries=0,
                    max_retries=0,
                    drop_params=True,
                    # The handler is litellm's proxy's; loading it needs packages that only the proxy has.
                    _skip_mcp_handler=True,
                )
            await self._pump(stream, assembly, channel, limits)
            _check_complete(stream, assembly)
            channel.send([lines.USAGE, _usage_of(stream)])
            for event in assembly.end():
                channel.send(event)
        finally:
            await _close(stream)

    @staticmethod
    async def _pump(stream: Any, assembly: Assembly, channel: Channel, limits: dict[str, float]) -> None:
        chunks = aiter(stream)
        turn_began = time.monotonic()
        wait, cause = limits["first_byte"], "timeout"
        while True:
            try:
                async with _within(wait, cause):
                    chunk = await anext(chunks)
            except StopAsyncIteration:
                return
            except Exception:
                # What goes wrong after the answer is complete (odd usage, mostly) doesn't make it incomplete.
                if assembly.finish is None:
                    raise
                log.exception("after the answer was complete")
                return
            for event in assembly.take(chunk):
                channel.send(event)
            wait, cause = limits["stall"], "stalled"
            await channel.room()
            if time.monotonic() - turn_began > _TURN:
                await asyncio.sleep(0)
                turn_began = time.monotonic()


@contextlib.asynccontextmanager
async def _within(seconds: float, cause: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise _Slow(cause, seconds) from None


async def _close(stream: Any) -> None:
    """Close the connection to the provider, also while the request is being cancelled."""
    close = getattr(stream, "aclose", None)
    if close is None:
        return
    try:
        async with asyncio.timeout(_GRACE):
            await close()
    except Exception:
        log.exception("closing a stream")


def _check_complete(stream: Any, assembly: Assembly) -> None:
    """Tell an answer that ended from one whose connection ended: litellm says "stop" to both.

    Small servers leave the reason out, so a missing one counts only where nothing was said at all.
    """
    if getattr(stream, "received_finish_reason", "unknown") is None and not assembly.has_content:
        raise ConnectionResetError("the answer ended before it began")


def _usage_of(stream: Any) -> dict[str, Any] | None:
    """Return the provider's numbers from the chunks litellm keeps, the last that is not zero of each."""
    numbers: dict[str, Any] = {}
    for chunk in getattr(stream, "chunks", ()):
        usage = getattr(chunk, "usage", None)
        if usage is None:
            continue
        prompt, completion = _field(usage, "prompt_tokens_details"), _field(usage, "completion_tokens_details")
        found = {
            "prompt": _field(usage, "prompt_tokens"),
            "completion": _field(usage, "completion_tokens"),
            "cache_read": _field(usage, "cache_read_input_tokens") or _field(prompt, "cached_tokens"),
            "cache_write": _field(usage, "cache_creation_input_tokens") or _field(prompt, "cache_creation_tokens"),
            "reasoning": _field(completion, "reasoning_tokens"),
        }
        numbers.update({name: value for name, value in found.items() if value})
    return numbers or None


def _field(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, dict) else getattr(thing, name, None)


# -- connections --------------------------------------------------------------------------------------------


class Connection:
    """One program that talks to the host."""

    def __init__(self, caller: Caller, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
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

    async def _answer(self, number: int, call: dict[str, Any], limits: dict[str, float]) -> None:
        channel = self._outlet.open(number)
        channel.send([lines.ACCEPTED])
        try:
            await self._caller.answer(call, limits, channel)
        except asyncio.CancelledError:
            self._outlet.drop(number)
            raise
        except _Slow as slow:
            channel.send([lines.FAILED, {"cause": slow.cause, "seconds": slow.seconds}])
        except Exception as error:  # noqa: BLE001 - whatever a provider's adapter raises is the program's to judge
            failure = describe(error)
            log.warning("request %s failed: %s", number, failure)
            channel.send([lines.FAILED, failure])
        finally:
            self._outlet.close(number)


class SharedHost:
    """Serves many programs over a socket and ends when none came for a while."""

    def __init__(self, caller: Caller, ready: dict[str, Any], keep_warm: float) -> None:
        self._caller = caller
        self._ready = ready
        self._keep_warm = keep_warm
        self._open = 0
        self._ended = asyncio.Event()
        self._alarm: asyncio.TimerHandle | None = None

    async def serve(self, listener: Any) -> None:
        """Serve until nobody was connected for ``keep_warm`` seconds."""
        server = await asyncio.start_unix_server(self._connected, sock=listener)
        self._set_alarm()
        async with server:
            await self._ended.wait()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        if self._alarm is not None:
            self._alarm.cancel()
        try:
            await Connection(self._caller, reader, writer).serve(self._ready)
        finally:
            self._open -= 1
            self._set_alarm()

    def _set_alarm(self) -> None:
        if self._open == 0:
            self._alarm = asyncio.get_running_loop().call_later(self._keep_warm, self._ended.set)


# -- the process --------------------------------------------------------------------------------------------


def _take_standard_streams() -> tuple[int, int]:
    """Return private copies of stdin and stdout, and lead the standard ones where stray output harms nobody."""
    incoming, outgoing = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return incoming, outgoing


def _watch_parent(incoming: int) -> None:
    """End the process when the other end of stdin is closed, even while the event loop is busy or stuck."""

    def watch() -> None:
        poll = select.poll()
        poll.register(incoming, 0)
        poll.poll()
        time.sleep(_GRACE)
        os._exit(0)

    threading.Thread(target=watch, daemon=True, name="parent").start()


async def _serve_streams(caller: Caller, ready: dict[str, Any], incoming: int, outgoing: int) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(incoming, "rb", 0))
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(outgoing, "wb", 0))
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    await Connection(caller, reader, writer).serve(ready)


def _log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(RedactingFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


def main() -> None:
    """Run the host."""
    began = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--socket", type=Path, help="serve over this Unix socket instead of stdin and stdout")
    parser.add_argument("--keep-warm", type=float, default=0.0, help="idle seconds before a socket's host ends")
    options = parser.parse_args()
    _log_to_stderr()
    incoming, outgoing = _take_standard_streams()
    _watch_parent(incoming)
    litellm = load()
    ready = {"pid": os.getpid(), "seconds": round(time.monotonic() - began, 3)}
    caller = Caller(litellm)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve_streams(caller, ready, incoming, outgoing))
    # Threads of libraries must not hold the process.
    os._exit(0)


if __name__ == "__main__":
    main()
