"""Finds model servers, when asked to.

Those are Ollama, LM Studio, llama.cpp and vLLM on their usual ports of this machine, and the ones of the settings.
"""

import asyncio
import http.client
import json
import re
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tui_agent.model.catalog import ASSUMED_WINDOW
from tui_agent.model.settings import ModelSettings

TIMEOUT = 0.7
"""Seconds a server gets for each answer."""

_LARGEST_ANSWER = 4 << 20


@dataclass(frozen=True, slots=True)
class Place:
    """Where a kind of server usually listens, on this machine."""

    name: str
    port: int


PLACES = (Place("Ollama", 11434), Place("LM Studio", 1234), Place("llama.cpp", 8080), Place("vLLM", 8000))


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model a local server has. ``settings`` are what the configuration needs to use it under ``id``."""

    id: str
    server: str
    settings: ModelSettings


async def discover(
    places: Sequence[Place] = PLACES, *, own: Mapping[str, ModelSettings] | None = None, seconds: float = TIMEOUT
) -> list[LocalModel]:
    """Return the models of the servers that answer within ``seconds``, those set up by the user first.

    ``own`` are the models of the settings; those with a ``base_url`` are asked for there.
    """
    urls = dict.fromkeys(settings.base_url for settings in (own or {}).values() if settings.base_url)
    asked = [asyncio.to_thread(_ask_own, url, own or {}, seconds) for url in urls]
    found = await asyncio.gather(*asked, *(asyncio.to_thread(_ask, place, seconds) for place in places))
    set_up = [model for models in found[: len(asked)] for model in models]
    known = {model.id for model in set_up}
    return [*set_up, *(model for models in found[len(asked) :] for model in models if model.id not in known)]


def _ask_own(url: str, own: Mapping[str, ModelSettings], timeout: float) -> list[LocalModel]:
    """Return the models set up for an address if anybody answers there; a refusal for want of a key is an answer."""
    try:
        _get(f"{url.rstrip('/')}/models", timeout)
    except urllib.error.HTTPError:
        pass
    except (OSError, ValueError, http.client.HTTPException):
        return []
    name = urlsplit(url).netloc
    return [LocalModel(model, name, settings) for model, settings in own.items() if settings.base_url == url]


def _ask(place: Place, timeout: float) -> list[LocalModel]:
    url = f"http://127.0.0.1:{place.port}"
    try:
        if place.name == "Ollama":
            return _ollama(url, timeout)
        rows = _get(f"{url}/v1/models", timeout)["data"]
        windows = _lm_studio_windows(url, timeout) if place.name == "LM Studio" else {}
        return [_openai_model(place, url, row, windows) for row in rows if "embed" not in str(row["id"]).lower()]
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        # Nobody there, or somebody else.
        return []


def _openai_model(place: Place, url: str, row: dict[str, Any], windows: dict[str, int]) -> LocalModel:
    meta = row.get("meta") or {}
    window = windows.get(row["id"]) or row.get("max_model_len") or meta.get("n_ctx") or meta.get("n_ctx_train")
    settings = ModelSettings(base_url=f"{url}/v1", context_window=_window(window))
    return LocalModel(f"openai/{row['id']}", place.name, settings)


def _lm_studio_windows(url: str, timeout: float) -> dict[str, int]:
    """Return the windows LM Studio names in its own API, the loaded one before the largest possible."""
    try:
        rows = _get(f"{url}/api/v0/models", timeout)["data"]
        return {row["id"]: row.get("loaded_context_length") or row.get("max_context_length") or 0 for row in rows}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def _ollama(url: str, timeout: float) -> list[LocalModel]:
    names = [row["name"] for row in _get(f"{url}/api/tags", timeout)["models"]]
    models = []
    for name in names:
        shown = _get(f"{url}/api/show", timeout, {"model": name})
        abilities = shown.get("capabilities") or ["completion", "tools"]
        if "embedding" in abilities and "completion" not in abilities:
            continue
        settings = ModelSettings(
            base_url=url,
            context_window=_ollama_window(shown),
            tools="tools" in abilities,
            vision="vision" in abilities,
        )
        models.append(LocalModel(f"ollama/{name}", "Ollama", settings))
    return models


def _ollama_window(shown: dict[str, Any]) -> int | None:
    """Return the size a model file sets, else what the model can do, kept small: memory grows with it."""
    if match := re.search(r"^num_ctx\s+(\d+)", str(shown.get("parameters") or ""), re.MULTILINE):
        return _window(int(match[1]))
    info = shown.get("model_info") or {}
    length = next((value for key, value in info.items() if key.endswith(".context_length")), None)
    window = _window(length)
    return min(window, ASSUMED_WINDOW) if window is not None else None


def _window(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and value >= 1024 else None


def _get(url: str, timeout: float, body: dict[str, Any] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})  # noqa: S310 - the loopback, or what the user set up
    # No proxy stands between this machine and itself.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=timeout) as answer:
        return json.loads(answer.read(_LARGEST_ANSWER))
