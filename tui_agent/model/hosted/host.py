"""The model host: the process that runs litellm and answers requests sent as JSON lines.

``python -m tui_agent.model.hosted.host`` reads stdin, writes stdout, logs to stderr, and exits when
its parent does. The lines are described in ``tui_agent.model.hosted.lines``. A request is retried
only once, without the parameters that the model doesn't support, and only before the answer begins.

litellm is loaded without its own output, without network access, and without the parts that chat
requests don't use. A later version of litellm without the replaced parts also works, but takes more
memory.
"""

import asyncio
import contextlib
import gc
import importlib
import json
import logging
import os
import select
import sys
import threading
import time
import types
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

from tui_agent.model.error_facts import failure_facts
from tui_agent.model.hosted import lines
from tui_agent.model.hosted.lines import LineReader, encode
from tui_agent.model.redaction import LOG_LINE, RedactingFormatter

log = logging.getLogger("tui_agent.host")

_READ = 1 << 18
_SECRETS = ("api_key", "aws_access_key_id", "aws_secret_access_key", "aws_session_token")

Send = Callable[..., Awaitable[None]]
"""Sends an event of one request. It is called with the event's name, then the event's fields."""

_ENCODING_MODULE = "litellm.litellm_core_utils.default_encoding"

_TURN = 0.004
"""Number of seconds for which the chunks of one request are processed before other requests get
their turn."""

_CLOSE_GRACE_SECONDS = 2.0
"""Seconds allowed for closing connections after the parent process has ended."""

_FIELDS = (
    "content",
    "refusal",
    "reasoning_content",
    "tool_calls",
    "thinking_blocks",
    "reasoning_details",
    "thought_signatures",
)


class SlowError(Exception):
    """Raised if the provider exceeded a time limit.

    ``cause`` and ``seconds`` have the same meaning as in ``errors.Failure``.
    """

    def __init__(self, cause: str, seconds: float) -> None:
        super().__init__(cause)
        self.cause = cause
        self.seconds = seconds


class Connection:
    """Serves the program that started the host: reads its requests and answers them."""

    def __init__(
        self, caller: "Caller", reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._caller = caller
        self._reader = reader
        self._writer = writer
        self._tasks: dict[int, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        await self._send(lines.HOST, lines.READY)
        try:
            await self._read()
        finally:
            tasks = list(self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._writer.close()

    async def _send(self, number: int, *event: Any) -> None:
        """Send an event of a request to the program; wait while the pipe is full."""
        self._writer.write(encode([number, event]))
        await self._writer.drain()

    async def _read(self) -> None:
        incoming = LineReader()
        while data := await self._reader.read(_READ):
            for line in incoming.feed(data):
                match line:
                    case {"op": "shutdown"}:
                        return
                    case {"op": "stream", "id": number}:
                        answering = self._answer(number, line["call"], line["limits"])
                        task = self._tasks[number] = asyncio.create_task(answering)
                        task.add_done_callback(partial(self._tasks.pop, number))
                    case {"op": "cancel", "id": number}:
                        if number in self._tasks:
                            self._tasks[number].cancel()

    async def _answer(self, number: int, call: dict[str, Any], limits: dict[str, Any]) -> None:
        send = partial(self._send, number)
        try:
            await send(lines.ACCEPTED)
            await self._caller.answer(call, limits, send)
        except SlowError as slow:
            await send(lines.FAILED, {"cause": slow.cause, "seconds": slow.seconds})
        except Exception as error:  # noqa: BLE001 - providers' adapters raise any error
            failure = failure_facts(error, [call[name] for name in _SECRETS if call.get(name)])
            log.warning("request %s failed: %s", number, failure)
            await send(lines.FAILED, failure)


def load() -> Any:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    # Any value other than DEV keeps litellm from reading .env files.
    os.environ["LITELLM_MODE"] = "PRODUCTION"
    os.environ["LITELLM_LOG"] = "ERROR"
    module = types.ModuleType(_ENCODING_MODULE)
    # This replaces the tokenizer, which takes 60 MB and 0.1 s to load and isn't needed here. The
    # result has about as many items as there would be tokens.
    tokenizer = types.SimpleNamespace(
        name="cl100k_base", encode=lambda text, **_: range(len(text) // 4)
    )
    module.__dict__["encoding"] = tokenizer
    sys.modules[_ENCODING_MODULE] = module
    # The import creates 200,000 permanent objects; collecting garbage meanwhile takes a fifth of
    # its time.
    gc.disable()
    import litellm

    gc.freeze()
    gc.enable()
    for name in (
        "LiteLLM",
        "LiteLLM Router",
        "LiteLLM Proxy",
        "httpx",
        "openai",
        "aiohttp",
        "asyncio",
    ):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    litellm.suppress_debug_info = True
    litellm.num_retries = 0
    litellm.disable_token_counter = True
    litellm.disable_streaming_logging = True
    litellm.turn_off_message_logging = True
    # A model may repeat the same chunk a hundred times, for example in a table's ruled lines.
    litellm.REPEATED_STREAMING_CHUNK_LIMIT = 1 << 30
    # litellm assembles the whole answer at its end only for its logs, which are off.
    litellm.stream_chunk_builder = lambda *_, **__: None
    # litellm reports "stop" for every piece of Gemini's answers, so a cut-off answer looks
    # complete.
    try:
        gemini = importlib.import_module(
            "litellm.llms.vertex_ai.gemini.vertex_and_google_ai_studio_gemini"
        )
        name = "_check_finish_reason"
        config = gemini.VertexGeminiConfig
        reason_of = getattr(config, name)
        setattr(
            config,
            name,
            staticmethod(lambda message, said: reason_of(message, said) if said else None),
        )
    except (ImportError, AttributeError):
        log.warning("litellm has changed how it reads Gemini's finish reasons")
    return litellm


# -- answering ----------------------------------------------------------------------------------------------


class Caller:
    """Makes the calls to providers with litellm."""

    def __init__(self, litellm: Any) -> None:
        import httpx

        self._litellm = litellm
        self._timeout = httpx.Timeout

    async def answer(self, call: dict[str, Any], limits: dict[str, Any], send: Send) -> None:
        """Call litellm with the arguments ``call`` and send the answer's events.

        ``limits`` are time limits in seconds: ``connect``, ``first_byte`` and ``stall``.

        Raises:
            SlowError: the provider exceeded a time limit.
            Exception: any error that litellm raises.
        """
        first = limits["first_byte"]
        stall = limits["stall"]
        connect = limits["connect"]
        call["timeout"] = self._timeout(
            connect=connect, read=max(first, stall) + 60, write=first, pool=first
        )
        stream: Any = None
        try:
            async with _within(first, "timeout"):
                stream = await self._begin(call)
            finish = await self._pump(stream, send, limits)
            for chunk in getattr(stream, "chunks", ()):
                if usage := _plain(getattr(chunk, "usage", None)):
                    await send(lines.CHUNK, json.dumps({"usage": usage}, default=str))
            if finish is not None:
                await send(lines.CHUNK, json.dumps({"choices": [{"finish_reason": finish}]}))
            await send(lines.FINISHED)
        finally:
            await _close(stream)

    async def _begin(self, call: dict[str, Any]) -> Any:
        """Send a request, and return the stream of litellm's chunks.

        If litellm rejects parameters that the model doesn't support, the request is sent without
        them.
        """
        call = {
            **call,
            "stream": True,
            "stream_options": {"include_usage": True},
            "num_retries": 0,
            "max_retries": 0,
            # The handler belongs to litellm's proxy, and loading it needs the proxy's packages.
            "_skip_mcp_handler": True,
        }
        try:
            return await self._litellm.acompletion(**call)
        except self._litellm.UnsupportedParamsError:
            # Nothing has been sent yet. With drop_params from the start, litellm would repeat requests
            # that the server refuses with status 422.
            return await self._litellm.acompletion(**call, drop_params=True)

    @staticmethod
    async def _pump(stream: Any, send: Send, limits: dict[str, Any]) -> str | None:
        """Send an answer's chunks, and return the provider's finish reason.

        litellm reports "stop" even if the connection broke; in that case, and if the provider sent
        no finish reason, None is returned.
        """
        chunks = aiter(stream)
        finish: str | None = None
        is_said = False
        turn_began = time.monotonic()
        wait = limits["first_byte"]
        cause = "timeout"
        while True:
            try:
                async with _within(wait, cause):
                    chunk = await anext(chunks)
            except StopAsyncIteration:
                return finish if is_said or _says_why(stream) else None
            except Exception:
                # An error after the finish reason, which is mostly about usage, doesn't matter.
                if finish is None:
                    raise
                log.exception("error after the answer was complete")
                return finish
            is_said = is_said or _says_why(stream)
            delta, reason = _delta_of(chunk)
            finish = reason or finish
            # Empty chunks are sent, too, because they show the program that the host isn't hanging.
            await send(lines.CHUNK, json.dumps({"choices": [{"delta": delta}]}, default=str))
            wait = limits["stall"]
            cause = "stalled"
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
    """Close litellm's stream and its connection to the provider; errors are only logged."""
    close = getattr(stream, "aclose", None)
    if close is None:
        return
    try:
        async with asyncio.timeout(_CLOSE_GRACE_SECONDS):
            await close()
    except Exception:
        log.exception("closing a stream")


def _delta_of(chunk: Any) -> tuple[dict[str, Any], str | None]:
    """Return the delta of litellm's chunk (only fields in ``_FIELDS``) and its finish reason."""
    choices = getattr(chunk, "choices", None)
    choice = {}
    if choices:
        choice = _plain(choices[0])
    delta = _plain(choice.get("delta"))
    own = _plain(delta.pop("provider_specific_fields", None))
    found = {name: delta.get(name) or own.get(name) for name in _FIELDS}
    found["reasoning_content"] = found["reasoning_content"] or delta.get("reasoning")
    return {name: value for name, value in found.items() if value}, choice.get("finish_reason")


def _plain(thing: Any) -> dict[str, Any]:
    if isinstance(thing, dict):
        return dict(thing)
    return thing.model_dump(exclude_none=True) if hasattr(thing, "model_dump") else {}


def _says_why(stream: Any) -> bool:
    """Return whether litellm's stream has received a finish reason from the provider.

    The result is also True for a stream that doesn't store the reason. A reason that comes together
    with content, like Gemini's, is stored as ``intermittent_finish_reason``.
    """
    names = ("received_finish_reason", "intermittent_finish_reason")
    return not hasattr(stream, names[0]) or any(
        getattr(stream, name, None) is not None for name in names
    )


# -- the process --------------------------------------------------------------------------------------------


def _watch_parent(incoming: int, serving: threading.Event) -> None:
    """Wait until the parent closes the pipe ``incoming``, then end this process.

    If ``serving`` is set, connections are given time to close first.
    """
    poll = select.poll()
    poll.register(incoming, 0)
    poll.poll()
    if serving.is_set():
        time.sleep(_CLOSE_GRACE_SECONDS)
    os._exit(0)


async def _serve_parent(caller: Caller, incoming: int, outgoing: int) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(incoming, "rb", 0)
    )
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(outgoing, "wb", 0)
    )
    await Connection(caller, reader, asyncio.StreamWriter(transport, protocol, None, loop)).serve()


def main() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(RedactingFormatter(LOG_LINE))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    warnings.simplefilter("ignore")
    # The protocol uses private copies of stdin and stdout, so that other output can't interfere.
    incoming = os.dup(0)
    outgoing = os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    serving = threading.Event()
    threading.Thread(
        target=_watch_parent, args=(incoming, serving), daemon=True, name="parent"
    ).start()
    caller = Caller(load())
    serving.set()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve_parent(caller, incoming, outgoing))
    # Libraries' threads must not keep the process alive.
    os._exit(0)


if __name__ == "__main__":
    main()
