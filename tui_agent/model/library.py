"""Loads litellm for the model host: silent, offline, and without what no chat request uses.

A later version of litellm, openai or httpx that hasn't a part that is stood in for here works as well, only slower
and larger.
"""

import gc
import importlib
import json
import logging
import os
import sys
import types
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Any

from tui_agent.model import bursts, reexports

log = logging.getLogger("tui_agent.host")

_ENCODING_MODULE = "litellm.litellm_core_utils.default_encoding"
_VOCABULARY = "anthropic_tokenizer.json"


def load() -> Any:
    """Import litellm and return it."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    # Anything else than DEV keeps it from reading .env files.
    os.environ["LITELLM_MODE"] = "PRODUCTION"
    os.environ["LITELLM_LOG"] = "ERROR"
    # Collecting garbage over and over while 200,000 lasting objects are made takes a fifth of the import.
    gc.disable()
    sys.modules[_ENCODING_MODULE] = _without_tokenizer()
    # httpx's own command line, with the packages it draws with; httpx is made to work without them.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # how a module is said not to be there
    reexports.install("openai")
    with _no_vocabulary():
        import litellm

    # The first request would import it otherwise.
    _replace("openai.resources.chat.completions.completions", "async_maybe_transform", lambda _old: _as_it_is)
    _replace("openai._streaming", "SSEDecoder.aiter_bytes", bursts.joining)
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "openai", "aiohttp", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    litellm.suppress_debug_info = True
    litellm.num_retries = 0
    litellm.disable_token_counter = True
    litellm.disable_streaming_logging = True
    litellm.turn_off_message_logging = True
    # A model may well say the same thing a hundred times: rules of tables, for example.
    litellm.REPEATED_STREAMING_CHUNK_LIMIT = 1 << 30
    # Putting the whole answer together again at its end costs 0.1 ms a chunk and nobody asks for it; nor for prices.
    litellm.stream_chunk_builder = _nothing
    _replace("litellm.litellm_core_utils.streaming_handler", "asyncify", lambda _old: _at_once)
    _replace("litellm.litellm_core_utils.litellm_logging", "Logging.response_cost_calculator", lambda _old: _nothing)
    # It says "stop" to every piece of an answer of Gemini's, so that one that was cut looks whole.
    gemini = "litellm.llms.vertex_ai.gemini.vertex_and_google_ai_studio_gemini"
    _replace(gemini, "VertexGeminiConfig._check_finish_reason", _only_when_said)
    # The catalog shipped with it is the one in use already, and would be read a second time: 10 MB.
    _replace("litellm.utils", "get_bundled_model_cost_map", lambda _old: lambda: litellm.model_cost)
    return litellm


def _replace(module: str, name: str, stand_in: Callable[[Any], Any]) -> None:
    """Put what ``stand_in`` makes of a part of a module in its place; a version without that part is left alone."""
    *owners, last = name.split(".")
    try:
        owner = reduce(getattr, owners, importlib.import_module(module))
        setattr(owner, last, stand_in(getattr(owner, last)))
    except (ImportError, AttributeError):
        log.warning("%s has no %s to stand in for", module, name)


class _Encoding:
    """Stands in for a tokenizer: nothing here counts tokens, and the real one takes 60 MB and 0.1 s to load."""

    name = "cl100k_base"

    def encode(self, text: str, **_: object) -> range:
        """Return something as long as the tokens would about be."""
        return range(len(text) // 4)


def _without_tokenizer() -> types.ModuleType:
    module = types.ModuleType(_ENCODING_MODULE)
    module.__dict__["encoding"] = _Encoding()
    return module


@contextmanager
def _no_vocabulary() -> Iterator[None]:
    """Read the vocabulary of an old tokenizer as an empty one: for counting only, and 17 MB."""
    read = json.load

    def load(file: Any, **options: Any) -> Any:
        return {} if str(getattr(file, "name", "")).endswith(_VOCABULARY) else read(file, **options)

    json.load = load  # type: ignore[assignment]  # called with a file alone
    try:
        yield
    finally:
        json.load = read


async def _as_it_is(data: dict[str, Any], _expected: object) -> dict[str, Any]:
    """Return a request's body without what was not given.

    Stands in for a walk over every value of every message that looks for fields to rename; chat requests have none,
    and 400 messages take 40 ms of it each time.
    """
    import openai

    absent = (openai.NotGiven, openai.Omit)
    return {name: value for name, value in data.items() if not isinstance(value, absent)}


def _nothing(*_: object, **__: object) -> None:
    return None


def _only_when_said(reason_of: Callable[..., object]) -> object:
    """Stands in for what names the reason why an answer ended: None as long as the provider named none."""

    def reason(message: object, said: str | None) -> object:
        return reason_of(message, said) if said else None

    return staticmethod(reason)


def _at_once(function: Callable[..., object]) -> Callable[..., Awaitable[object]]:
    """Stands in for a way through another thread, for ``_nothing`` at the end of each answer."""

    async def call(*arguments: object, **options: object) -> object:
        return function(*arguments, **options)

    return call
