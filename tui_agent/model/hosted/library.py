"""Loads litellm for the model host: silent, offline, and without what no chat request uses.

A later version of litellm that hasn't a part that is stood in for here works as well, only larger.
"""

import gc
import importlib
import logging
import os
import sys
import types
from collections.abc import Callable
from functools import reduce
from typing import Any

log = logging.getLogger("tui_agent.host")

_ENCODING_MODULE = "litellm.litellm_core_utils.default_encoding"


def load() -> Any:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    # Anything else than DEV keeps it from reading .env files.
    os.environ["LITELLM_MODE"] = "PRODUCTION"
    os.environ["LITELLM_LOG"] = "ERROR"
    module = types.ModuleType(_ENCODING_MODULE)
    module.__dict__["encoding"] = _Encoding()
    sys.modules[_ENCODING_MODULE] = module
    # Collecting garbage over and over while 200,000 lasting objects are made takes a fifth of the import.
    gc.disable()
    import litellm

    gc.freeze()
    gc.enable()
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "openai", "aiohttp", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    litellm.suppress_debug_info = True
    litellm.num_retries = 0
    litellm.disable_token_counter = True
    litellm.disable_streaming_logging = True
    litellm.turn_off_message_logging = True
    # A model may well say the same thing a hundred times: rules of tables, for example.
    litellm.REPEATED_STREAMING_CHUNK_LIMIT = 1 << 30
    # Putting the whole answer together again at its end is for logs nobody writes.
    litellm.stream_chunk_builder = _nothing
    # It says "stop" to every piece of an answer of Gemini's, so that one that was cut looks whole.
    gemini = "litellm.llms.vertex_ai.gemini.vertex_and_google_ai_studio_gemini"
    _replace(gemini, "VertexGeminiConfig._check_finish_reason", _only_on_request)
    return litellm


def _nothing(*_: object, **__: object) -> None:
    return None


def _replace(module: str, name: str, stand_in: Callable[[Any], Any]) -> None:
    """Put what ``stand_in`` makes of a part of a module in its place; a version without that part is left alone."""
    *owners, last = name.split(".")
    try:
        owner = reduce(getattr, owners, importlib.import_module(module))
        setattr(owner, last, stand_in(getattr(owner, last)))
    except (ImportError, AttributeError):
        log.warning("%s has no %s to stand in for", module, name)


def _only_on_request(reason_of: Callable[..., object]) -> object:
    """Stands in for what names the reason why an answer ended: None as long as the provider named none."""

    def reason(message: object, said: str | None) -> object:
        return reason_of(message, said) if said else None

    return staticmethod(reason)


class _Encoding:
    """Stands in for a tokenizer: nothing here counts tokens, and the real one takes 60 MB and 0.1 s to load."""

    name = "cl100k_base"

    def encode(self, text: str, **_: object) -> range:
        """Return something as long as the tokens would about be."""
        return range(len(text) // 4)
