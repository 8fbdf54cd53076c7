"""The model host: the process that has litellm, answers requests given as JSON lines, and does nothing else.

``python -m tui_agent.model.hosted.host`` speaks over stdin and stdout and ends with its parent. Its stderr is a log
file. The lines are described in ``tui_agent.model.hosted.lines``. It retries nothing.
"""

import asyncio
import contextlib
import json
import logging
import os
import select
import sys
import threading
import time
import warnings
from collections.abc import AsyncIterator
from typing import Any

from tui_agent.model.hosted import lines
from tui_agent.model.hosted.library import load
from tui_agent.model.hosted.serving import Channel, Connection, SlowError
from tui_agent.model.redaction import RedactingFormatter

log = logging.getLogger("tui_agent.host")

_TURN = 0.004
"""Seconds of one request's chunks that may be worked on before other requests and the reader get their turn."""

_CLOSE_GRACE_SECONDS = 2.0
"""Seconds to close connections after the parent is gone."""


# -- answering ----------------------------------------------------------------------------------------------


class Caller:
    """Calls providers through litellm."""

    def __init__(self, litellm: Any) -> None:
        import httpx

        self._litellm = litellm
        self._timeout = httpx.Timeout

    async def answer(self, call: dict[str, Any], limits: dict[str, Any], channel: Channel) -> None:
        """Answer one request into a channel.

        Raises:
            Exception: whatever litellm raises.
        """
        first, stall, connect = limits["first_byte"], limits["stall"], limits["connect"]
        call["timeout"] = self._timeout(connect=connect, read=max(first, stall) + 60, write=first, pool=first)
        stream: Any = None
        try:
            async with _within(first, "timeout"):
                stream = await self._begin(call)
            finish = await self._pump(stream, channel, limits)
            for usage in [
                found for chunk in getattr(stream, "chunks", ()) if (found := _plain(getattr(chunk, "usage", None)))
            ]:
                channel.send([lines.CHUNK, json.dumps({"usage": usage}, default=str)])
            if finish is not None:
                channel.send([lines.CHUNK, json.dumps({"choices": [{"finish_reason": finish}]})])
            channel.send([lines.FINISHED])
        finally:
            await _close(stream)

    async def _begin(self, call: dict[str, Any]) -> Any:
        """Send a request and return its stream; parameters the model doesn't take are left out."""
        call = {
            **call,
            "stream": True,
            "stream_options": {"include_usage": True},
            "num_retries": 0,
            "max_retries": 0,
            # The handler is litellm's proxy's; loading it needs packages that only the proxy has.
            "_skip_mcp_handler": True,
        }
        try:
            return await self._litellm.acompletion(**call)
        except self._litellm.UnsupportedParamsError:
            # Nothing was sent yet. Asked to drop them at once, litellm sends again what a server finds unprocessable.
            return await self._litellm.acompletion(**call, drop_params=True)

    @staticmethod
    async def _pump(stream: Any, channel: Channel, limits: dict[str, Any]) -> str | None:
        """Pass an answer on without its reason to end; returns that, None where the provider said none.

        litellm says "stop" also of an answer whose connection ended.
        """
        chunks = aiter(stream)
        finish: str | None = None
        is_said = False
        turn_began = time.monotonic()
        wait, cause = limits["first_byte"], "timeout"
        while True:
            try:
                async with _within(wait, cause):
                    chunk = await anext(chunks)
            except StopAsyncIteration:
                return finish if is_said or _says_why(stream) else None
            except Exception:
                # What goes wrong after the answer is complete (odd usage, mostly) doesn't make it incomplete.
                if finish is None:
                    raise
                log.exception("after the answer was complete")
                return finish
            is_said = is_said or _says_why(stream)
            delta, reason = _delta_of(chunk)
            finish = reason or finish
            if delta:
                channel.send([lines.CHUNK, json.dumps({"choices": [{"delta": delta}]}, default=str)])
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
        raise SlowError(cause, seconds) from None


async def _close(stream: Any) -> None:
    """Close the connection to the provider, also while the request is being cancelled."""
    close = getattr(stream, "aclose", None)
    if close is None:
        return
    try:
        async with asyncio.timeout(_CLOSE_GRACE_SECONDS):
            await close()
    except Exception:
        log.exception("closing a stream")


def _delta_of(chunk: Any) -> tuple[dict[str, Any], str | None]:
    """Return what a chunk adds to an answer, as chat completions have it, and why the answer ended."""
    choices = getattr(chunk, "choices", None)
    choice = _plain(choices[0]) if choices else {}
    delta = _plain(choice.get("delta"))
    own = _plain(delta.pop("provider_specific_fields", None))
    found = {name: delta.get(name) or own.get(name) for name in _FIELDS}
    found["reasoning_content"] = found["reasoning_content"] or delta.get("reasoning")
    return {name: value for name, value in found.items() if value}, choice.get("finish_reason")


_FIELDS = (
    "content", "refusal", "reasoning_content", "tool_calls", "thinking_blocks", "reasoning_details",
    "thought_signatures",
)  # fmt: skip


def _plain(thing: Any) -> dict[str, Any]:
    if isinstance(thing, dict):
        return dict(thing)
    return thing.model_dump(exclude_none=True) if hasattr(thing, "model_dump") else {}


def _says_why(stream: Any) -> bool:
    """Whether the provider has said by now why its answer ends; Gemini's reason stands with the last piece of content.

    A stream that doesn't keep the reason is believed.
    """
    names = ("received_finish_reason", "intermittent_finish_reason")
    return not hasattr(stream, names[0]) or any(getattr(stream, name, None) is not None for name in names)


# -- the process --------------------------------------------------------------------------------------------


def _take_standard_streams() -> tuple[int, int]:
    """Return private copies of stdin and stdout, and lead the standard ones where stray output harms nobody."""
    incoming, outgoing = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return incoming, outgoing


def _watch_parent(incoming: int, serving: threading.Event) -> None:
    def watch() -> None:
        poll = select.poll()
        poll.register(incoming, 0)
        poll.poll()
        if serving.is_set():
            time.sleep(_CLOSE_GRACE_SECONDS)
        os._exit(0)

    threading.Thread(target=watch, daemon=True, name="parent").start()


async def _serve_parent(caller: Caller, began: float, incoming: int, outgoing: int) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(incoming, "rb", 0))
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(outgoing, "wb", 0))
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    await Connection(caller, reader, writer).serve(
        {"version": lines.VERSION, "pid": os.getpid(), "seconds": round(time.monotonic() - began, 3)}
    )


def main() -> None:
    began = time.monotonic()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(RedactingFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    warnings.simplefilter("ignore")
    incoming, outgoing = _take_standard_streams()
    serving = threading.Event()
    _watch_parent(incoming, serving)
    caller = Caller(load())
    serving.set()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve_parent(caller, began, incoming, outgoing))
    # Threads of libraries must not hold the process.
    os._exit(0)


if __name__ == "__main__":
    main()
