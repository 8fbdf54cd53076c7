"""Asks model servers for their models, with windows, abilities and prices, and tests API keys.

When the user lists or chooses models, the user's own servers are asked, and so are gateways whose
lists state windows and prices. The page for choosing a model also tries the usual ports of this
machine. When a session uses a model on this machine or its network, the model's server is asked,
too. An API key is sent only to the host that it belongs to.
"""

import asyncio
import math
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, Literal, TypeVar

import httpx
from pydantic import SecretStr

from tui_agent.json_text import as_dict, as_list, loads, objects, table_in
from tui_agent.lazy import frozen
from tui_agent.model.addresses import Addresses, AddressSetting, is_private, split
from tui_agent.model.catalog import ASSUMED_WINDOW
from tui_agent.model.error_facts import failure_facts
from tui_agent.model.errors import Failure, Target, classify
from tui_agent.model.keys import Key, Keys
from tui_agent.model.protocol import ErrorKind
from tui_agent.model.providers import PROVIDERS, Provider, provider_of
from tui_agent.model.redaction import redact
from tui_agent.model.served import ServedModel, ServedModels
from tui_agent.model.wires.http import Http
from tui_agent.model.wires.wire import WireFailure

TIMEOUT = 0.7
"""Time limit, in seconds, for each answer of a server on this machine or on a private network."""
REMOTE_TIMEOUT = 5.0
"""Time limit for each answer of a server on the internet, in seconds."""

_MAX_ANSWER_BYTES = 16 << 20
_MAX_MODELS_ASKED = 40
"""Maximum number of models of an Ollama server whose facts are read. It is limited because each
model needs a request."""
_SMALLEST_WINDOW = 1024
_LARGEST_WINDOW = 1e9
_SMALL = 4e9
"""A model with fewer parameters than this number counts as small."""
_TINY = 1e9
"""Number of parameters below which a model counts as tiny. Tiny models are used without tool calls
(see ``model.steps``)."""
_ANTHROPIC_VERSION = "2023-06-01"


_Found = TypeVar("_Found", int, float)

_VISION_WORDS = {"vision", "image"}
_CALLS = {"tool-use", "tool_use", "tool_calls", "function_calling"}
_THINKS = {"reasoning", "thinking"}

_KINDS = {"language", "llm", "vlm", "chat", "model", "base", "text", "moderated", "completion"}
"""Types in servers' lists that stand for models that answer in text. Anthropic's list has only the
type "model"."""

# -- trying keys --------------------------------------------------------------------------------------------------
_TRIAL_TIMEOUT = 15.0
"""Time limit of each of the two requests that test a key, in seconds."""

_NO_SUCH_PATH = {404, 405, 501}
_LATER = "The first message will show whether it works."


class SilentServerError(Exception):
    """Raised if a server gave no usable answer. The message is a phrase like "not reachable"."""


@frozen
class Server:
    """A model server to ask. ``headers`` include its key, if there is one."""

    provider: Provider
    place: AddressSetting
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def host(self) -> str:
        return self.place.host


@frozen
class ServerReply:
    """The result of asking a server for its models. ``problem`` is "" if the server answered."""

    server: Server
    problem: str = ""


# -- which servers to ask -----------------------------------------------------------------------------------------


def servers(addresses: Addresses, keys: Keys, models: Iterable[str]) -> list[Server]:
    """Return the servers that are worth asking for their list of models, one for each address.

    First come the servers of ``models`` (model ids) at addresses that the user set or that are
    private, then all providers whose address the user set, then gateways such as OpenRouter that
    the user has a key for.
    """
    found: dict[str, Server] = {}

    def ask(provider: Provider, place: AddressSetting, key: Key | None) -> None:
        if place.url and place.url not in found:
            found[place.url] = Server(provider, place, request_headers(provider, key))

    for model in filter(None, models):
        provider = provider_of(model.partition("/")[0])
        place = addresses.of(provider, model)
        if place.is_own:
            ask(provider, place, keys.find(provider, model))
    for provider, place in addresses.overridden():
        ask(provider, place, keys.find(provider))
    for provider in map(provider_of, keys.available()):
        if provider.lists_models:
            ask(provider, addresses.of(provider), keys.find(provider))
    return list(found.values())


def request_headers(provider: Provider, key: Key | None) -> dict[str, str]:
    versioned = {}
    if provider.wire == "messages":
        versioned = {"anthropic-version": _ANTHROPIC_VERSION}
    if key is None:
        return versioned
    bearer = key.source in provider.bearer_keys
    return {**versioned, **provider.key_header(key.secret.get_secret_value(), bearer=bearer)}


# -- asking -------------------------------------------------------------------------------------------------------


async def refresh(
    asked: Iterable[Server], served: ServedModels, *, seconds: float | None = None
) -> list[ServerReply]:
    """Ask servers in parallel, store their answers in ``served``, and return a reply for each.

    If a server gives no usable answer, its earlier answer is kept. ``seconds`` has the same meaning
    as for ``ask``.
    """

    async def one(server: Server) -> ServerReply:
        try:
            models = await ask(server, seconds=seconds)
        except SilentServerError as error:
            return ServerReply(server, str(error))
        served.keep(server.place.url, models)
        return ServerReply(server)

    return list(await asyncio.gather(*(one(server) for server in asked)))


async def ask(server: Server, *, seconds: float | None = None) -> dict[str, ServedModel]:
    """Ask a server for its models and return them by name.

    ``seconds`` is the time limit of each request; None means ``TIMEOUT`` for a server at a private
    address, otherwise ``REMOTE_TIMEOUT``. All requests together may take three times as long.

    Raises:
        SilentServerError: the server can't be reached, refuses the request, or doesn't answer with
            a list of models.
    """
    private = is_private(server.place.url)
    patience = seconds or (TIMEOUT if private else REMOTE_TIMEOUT)
    connections = Http(os.environ)
    try:
        async with asyncio.timeout(patience * 3):
            asker = _Asker(connections, server.headers, patience)
            return await _models_of(asker, server, private=private)
    except (httpx.TimeoutException, TimeoutError):
        raise SilentServerError(f"no answer within {patience:g} s") from None
    except httpx.HTTPStatusError as error:
        raise SilentServerError(_refusal(error.response.status_code)) from None
    except (httpx.HTTPError, httpx.InvalidURL):
        raise SilentServerError("not reachable") from None
    except WireFailure:
        raise SilentServerError("the CA certificates can't be read") from None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        raise SilentServerError("sends something other than a list of models") from None
    finally:
        await connections.aclose()


def _refusal(status: int) -> str:
    return {401: "needs a key", 403: "refuses the key", 404: "has no list of models"}.get(
        status, f"answers with status {status}"
    )


class _Asker:
    """Fetches JSON from one server, without following redirects, which might leak the key."""

    def __init__(self, connections: Http, headers: Mapping[str, str], timeout: float) -> None:
        self._connections = connections
        self._options = {"headers": dict(headers), "timeout": timeout}

    async def get(self, url: str, body: object = None) -> Any:
        method = "GET" if body is None else "POST"
        response, data = await self._connections.fetch(
            method, url, _MAX_ANSWER_BYTES, json=body, **self._options
        )
        response.raise_for_status()
        if len(data) > _MAX_ANSWER_BYTES:
            raise ValueError("the answer is too long")
        return loads(data)

    async def maybe(self, url: str, body: object = None) -> Any:
        try:
            return await self.get(url, body)
        except (httpx.HTTPError, ValueError):
            return {}


async def _models_of(asker: _Asker, server: Server, *, private: bool) -> dict[str, ServedModel]:
    url = server.place.url.rstrip("/")
    root = re.sub(r"/v\d+\w*$", "", url)
    if server.provider.id == "ollama":
        return await _ollama(asker, root)
    try:
        rows = _rows(await asker.get(f"{url}/models"))
    except (httpx.HTTPStatusError, ValueError):
        if root != url:
            raise
        rows = _rows(await asker.get(f"{url}/v1/models"))
    models = _by_name(rows)
    is_llama = len(rows) == 1 and rows[0].get("owned_by") == "llamacpp"
    if not private or not (is_llama or any(model.window is None for model in models.values())):
        return models
    # llama.cpp, LM Studio and Ollama report more facts at paths of their own.
    props, studio, tags = await asyncio.gather(
        asker.maybe(f"{root}/props"),
        asker.maybe(f"{root}/api/v0/models"),
        asker.maybe(f"{root}/api/tags"),
    )
    if isinstance(tags, dict) and tags.get("models"):
        return {**models, **await _ollama(asker, root)}
    models |= _by_name(objects(as_dict(studio).get("data")))
    said = _of_llama(as_dict(props))
    return {name: model.model_copy(update=said) for name, model in models.items()}


def _rows(answer: Any) -> list[dict[str, Any]]:
    rows = answer if isinstance(answer, list) else answer["data"]
    return [row for row in rows if isinstance(row, dict)]


def _by_name(rows: Iterable[dict[str, Any]]) -> dict[str, ServedModel]:
    models = {}
    for row in rows:
        model = _listed(row)
        if model is not None:
            models[model.name] = model
    return models


async def _ollama(asker: _Asker, root: str) -> dict[str, ServedModel]:
    tags = await asker.get(f"{root}/api/tags")
    names = []
    for row in objects(tags["models"]):
        if isinstance(name := row.get("name"), str):
            names.append(name)
    names = names[:_MAX_MODELS_ASKED]
    asked = [asker.maybe(f"{root}/api/show", {"model": name}) for name in names]
    shown = await asyncio.gather(*asked)
    return {name: _of_ollama(name, as_dict(row)) for name, row in zip(names, shown, strict=True)}


# -- their answers -----------------------------------------------------------------------------------------------


def _listed(row: dict[str, Any]) -> ServedModel | None:
    name = row.get("id") or row.get("name")
    if not isinstance(name, str):
        return None
    window = _first(_windows(row), _count)
    longest = _first(_longest_answers(row), lambda size: _count(size, 1))
    if longest is not None and window is not None and longest >= window:
        longest = None
    return ServedModel(
        name=name,
        window=window,
        max_output=longest,
        chats=_chats(row),
        **_abilities(row),
        **_sizes(table_in(row, "meta").get("n_params")),
        **_prices(table_in(row, "pricing")),
    )


def _limits(row: dict[str, Any]) -> dict[str, Any]:
    return (
        table_in(row, "top_provider")
        | table_in(row, "limits")
        | table_in(row, "capabilities", "limits")
    )


def _windows(row: dict[str, Any]) -> Iterator[Any]:
    """Yield the values of all fields that may state the context window, the most exact field first.

    The value of a missing field is None.
    """
    yield row.get("loaded_context_length")  # LM Studio: the size it runs with
    yield row.get("max_model_len")  # vLLM
    yield _limits(row).get("context_length")  # OpenRouter: the window at its best host
    yield row.get("context_length")  # OpenRouter, Together, Fireworks
    yield row.get("context_window")  # Vercel, Groq
    yield row.get("max_context_length")  # LM Studio, Mistral
    yield row.get("max_input_tokens")  # LiteLLM, Anthropic
    yield _limits(row).get("max_context_window_tokens")  # GitHub Copilot
    yield table_in(row, "meta").get("n_ctx")
    yield table_in(row, "meta").get("n_ctx_train")  # llama.cpp


def _longest_answers(row: dict[str, Any]) -> Iterator[Any]:
    limits = _limits(row)
    yield limits.get("max_completion_tokens") or limits.get("max_output_tokens")
    yield row.get("max_completion_tokens")
    yield row.get("max_output_tokens")
    yield row.get("max_tokens")


def _abilities(row: dict[str, Any]) -> dict[str, bool]:
    """Return ``tools``, ``reasoning`` and ``vision``, as far as a server's row states them.

    An ability is False only if the row has a complete list of supported parameters or input types,
    and the list lacks the ability.
    """
    words = _words(row.get("supported_parameters")) | _words(row.get("tags"))
    for flags in (table_in(row, "capabilities"), table_in(row, "capabilities", "supports")):
        words |= {name for name, value in flags.items() if value is True}
    said = {}
    if words & _CALLS:
        said["tools"] = True
    if words & _THINKS:
        said["reasoning"] = True
    if isinstance(row.get("supported_parameters"), list):
        said |= {name: name in words for name in ("tools", "reasoning")}
    if words & _VISION_WORDS or row.get("type") == "vlm":
        said["vision"] = True
    if takes := _words(table_in(row, "architecture").get("input_modalities")):
        said["vision"] = "image" in takes
    return said


def _chats(row: dict[str, Any]) -> bool:
    answers = _words(table_in(row, "architecture").get("output_modalities"))
    abilities = table_in(row, "capabilities")
    kind = row.get("type") or row.get("mode") or row.get("task") or abilities.get("type")
    if isinstance(kind, str) and kind.lower() not in _KINDS:
        return False
    return (not answers or "text" in answers) and abilities.get("completion_chat") is not False


def _prices(pricing: Mapping[str, Any]) -> dict[str, float]:
    """Return the prices of a row of OpenRouter or Vercel, in US dollars per token.

    Keys are fields of `ServedModel`; prices that are missing or not valid are left out.
    """
    names = {
        "input_price": ("prompt", "input"),
        "output_price": ("completion", "output"),
        "cache_read_price": ("input_cache_read",),
        "cache_write_price": ("input_cache_write",),
    }
    found = {}
    for key, given in names.items():
        price = _first(map(pricing.get, given), _price)
        if price is not None:
            found[key] = price
    return found


def _of_llama(props: dict[str, Any]) -> dict[str, Any]:
    """Return the facts that llama.cpp reports at ``/props``, as fields of `ServedModel`.

    Missing facts are left out. The window is that of one request slot.
    """
    size = _count(table_in(props, "default_generation_settings").get("n_ctx")) or _count(
        props.get("n_ctx")
    )
    flags = {
        "vision": table_in(props, "modalities").get("vision"),
        "tools": table_in(props, "chat_template_caps").get("supports_tools"),
    }
    said: dict[str, Any] = {name: flag for name, flag in flags.items() if isinstance(flag, bool)}
    if size is not None:
        said["window"] = size
    return said


def _of_ollama(name: str, shown: dict[str, Any]) -> ServedModel:
    """Return a model from Ollama's answer to ``/api/show``.

    The window is ``num_ctx`` of the model file. Without it, the window is the model's own, but at
    most ``ASSUMED_WINDOW``, because a larger window takes much memory. Old versions of Ollama don't
    send ``capabilities``.
    """
    set_size = re.search(r"^num_ctx\s+(\d+)", str(shown.get("parameters") or ""), re.MULTILINE)
    info = table_in(shown, "model_info")
    sizes = [value for key, value in info.items() if key.endswith(".context_length")]
    window = _first(sizes, _count)
    if set_size:
        window = _count(int(set_size[1]))
    elif window:
        window = min(window, ASSUMED_WINDOW)
    abilities = _words(shown.get("capabilities"))
    said = {}
    if abilities:
        names = {"vision": "vision", "tools": "tools", "reasoning": "thinking"}
        said = {key: name in abilities for key, name in names.items()}
    return ServedModel(
        name=name,
        window=window,
        **said,
        **_sizes(info.get("general.parameter_count")),
        chats="completion" in abilities or "embedding" not in abilities,
    )


def _words(value: object) -> set[str]:
    return {word for word in as_list(value) if isinstance(word, str)}


def _first(values: Iterable[Any], read: Callable[[Any], _Found | None]) -> _Found | None:
    for value in values:
        found = read(value)
        if found is not None:
            return found
    return None


def _sizes(parameters: object) -> dict[str, bool]:
    """Return ``small`` and ``tiny`` for a number of parameters; {} if it isn't positive."""
    count = _count(parameters, 1, most=math.inf)
    if count is None:
        return {}
    return {"small": count < _SMALL, "tiny": count < _TINY}


def _count(
    value: object, least: int = _SMALLEST_WINDOW, *, most: float = _LARGEST_WINDOW
) -> int | None:
    """Return a number as an int; None if it is no number, below ``least`` or not below ``most``."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if least <= value < most:
        return int(value)
    return None


def _price(value: object) -> float | None:
    """Return a price per token; None if the value isn't a number from 0 up to 1 US dollar.

    OpenRouter writes -1 if the price depends on the model that it chooses.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        price = float(value)
    except (ValueError, OverflowError):
        return None
    return price if 0 <= price < 1 else None


@frozen
class Trial:
    """The result of testing a key. ``sentence`` is the message for the user.

    ``unknown`` means that the provider's answer, or the lack of one, says nothing about the key.
    """

    verdict: Literal["accepted", "refused", "unknown"]
    sentence: str


async def try_key(provider: Provider, place: AddressSetting, secret: str) -> Trial:
    """Test a key with a free request to the provider's ``key_path``, usually its list of models.

    Some providers also answer this request without a key. So if the request succeeds, it is
    repeated without the key. The key counts as accepted only if the second request is refused.
    """
    name = provider.name
    secret = secret.strip()
    if not (secret.isascii() and secret.isprintable()) or not secret or " " in secret:
        return Trial(
            "refused",
            "This can't be a key: it is empty or contains a space or another invalid character.",
        )
    if not place.url:
        return Trial("unknown", f"A key for {name} can't be tested without using a model. {_LATER}")
    failure = await _refusal_of(provider, place, secret)
    if failure is None:
        public = await _refusal_of(provider, place, "") is None
        untried = f"{name} also answers without a key, so the key couldn't be tested. {_LATER}"
        if public:
            return Trial("unknown", untried)
        return Trial("accepted", f"{name} accepts the key.")
    if failure.status in _NO_SUCH_PATH:
        return Trial("unknown", f"{name} has no list of models to test the key with. {_LATER}")
    target = Target(
        "",
        name,
        place.host,
        "it may be incomplete or belong to another provider",
    )
    error = classify(failure, target, now=time.time())
    return Trial("refused" if error.kind is ErrorKind.AUTH else "unknown", error.message)


async def _refusal_of(provider: Provider, place: AddressSetting, secret: str) -> Failure | None:
    """Test a key ("" for none) with a request to the provider's ``key_path``.

    Return the failure, None on success. A redirect is a failure, because it might leak the key.
    """
    http = Http(os.environ)
    url = f"{place.url.rstrip('/')}{provider.key_path}"
    headers = request_headers(provider, Key(SecretStr(secret), "") if secret else None)
    try:
        response, body = await http.fetch("GET", url, headers=headers, timeout=_TRIAL_TIMEOUT)
    except WireFailure as failed:
        return failed.failure
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        return Failure(**failure_facts(error, [secret]))
    finally:
        await http.aclose()
    if response.is_success:
        return None
    if response.is_redirect:
        return Failure("it redirects: set base_url to the new address", response.status_code)
    return Failure(redact(body.decode("utf-8", "replace"), [secret]), response.status_code)


# -- servers on this machine ----------------------------------------------------------------------------------------


def usual_servers(addresses: Addresses, known: Iterable[str] = ()) -> list[Server]:
    """Return the local model servers, such as Ollama, at their usual ports, whether running or not.

    Leaves out providers whose address the user has set, and ports that a URL in ``known`` has.
    """
    taken = {_port_here(url) for url in known}
    found = []
    for provider in PROVIDERS.values():
        place = addresses.of(provider)
        if provider.local_url and not place.source and _port_here(place.url) not in taken:
            found.append(Server(provider, place))
    return found


def _port_here(url: str) -> str:
    """Return a URL's host and port in lower case. All names of this machine become 127.0.0.1."""
    here = r"^(localhost|\[::1\]|0\.0\.0\.0)(?=:|$)"
    return re.sub(here, "127.0.0.1", split(url).netloc.lower())
