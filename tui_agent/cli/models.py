"""The model catalog under the user's settings, the default model, and ``tui-agent models``."""

import asyncio
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Any

from tui_agent.agent.clients import NO_MODEL
from tui_agent.app.format import plural
from tui_agent.app.logins import keys_of
from tui_agent.cli.output import say, say_json
from tui_agent.config import Config, load_config
from tui_agent.model.catalog import Catalog, ModelInfo
from tui_agent.model.demo import DEMO_MODEL, DemoCatalog
from tui_agent.model.directory import CatalogDirectory
from tui_agent.model.learnt import LearntFacts
from tui_agent.model.logins import Logins
from tui_agent.model.served import ServedModels
from tui_agent.paths import cache_dir, data_dir

if TYPE_CHECKING:
    # Importing it imports httpx, which a model without a network does not need.
    from tui_agent.model.discovery import ServerReply


LEARNT = "learnt.json"
"""Name of the file, in the data directory, with facts learnt about models from refused requests."""
DEFAULT_MODELS = (
    "anthropic/claude-sonnet-5",
    "openai/gpt-5.6",
    "gemini/gemini-3.1-pro-preview",
    "mistral/mistral-medium-latest",
    "deepseek/deepseek-flash",
    "xai/grok-4.20",
    "openrouter/anthropic/claude-sonnet-5",
)
"""Models to choose from if none is configured: the first whose provider has a key is used."""


def catalog_of(config: Config) -> DemoCatalog:
    served = ServedModels(cache_dir() / "servers.json")
    return DemoCatalog(config.models, config.providers, environ=os.environ, served=served)


def directory_of(catalog: Catalog) -> CatalogDirectory:
    """Return the catalog's models together with the facts learnt from refused requests."""
    return CatalogDirectory(catalog, LearntFacts(data_dir() / LEARNT))


def own_models(config: Config) -> tuple[str, ...]:
    """Return the configured models with a ``base_url``; other settings only adjust the catalog."""
    return tuple(name for name, settings in config.models.items() if settings.base_url)


def choose_model(config: Config, providers: Container[str], knows: Callable[[str], bool]) -> str:
    """Return the ``model`` setting, else the user's only own model, else a default with a key.

    ``providers`` are those with a key; ``knows`` returns True for a model of the catalog. A setting
    that names the demo's model does not count. Returns `NO_MODEL` if there is none of these.
    """
    # The demo's model edits files according to a script: it must not work in a real project.
    if config.model and config.model != DEMO_MODEL:
        return config.model
    own = own_models(config)
    if len(own) == 1:
        return own[0]
    for model in DEFAULT_MODELS:
        if model.partition("/")[0] in providers and knows(model):
            return model
    return NO_MODEL


def run_models(arguments: Namespace) -> int:
    """Print the usable models, or with ``--all`` every known one; first queries the servers.

    With ``--forget NAME``, only delete the refusals that are known of this model's server. Returns
    the exit code.
    """
    from tui_agent.model.discovery import refresh, servers

    config = load_config().config
    logins = Logins()
    catalog = catalog_of(config)
    directory = directory_of(catalog)
    if arguments.forget:
        return _forget(directory, arguments.forget)
    keys = keys_of(config, logins)
    asked = servers(catalog.addresses, keys, [*config.models, config.model or ""])
    outcomes = asyncio.run(refresh(asked, catalog.served))
    for outcome in outcomes:
        say(describe_reply(outcome, catalog), file=sys.stderr)
    catalog.forget()
    available = keys.available()
    shown = 0
    listed = catalog.models()
    if (
        config.model
        and catalog.place(config.model).is_own
        and config.model not in {info.id for info in listed}
    ):
        # A server may accept model names that it does not list.
        listed.insert(0, catalog.info(config.model))
    for info in map(directory.with_learnt, listed):
        usable = is_usable(info, available, catalog)
        if (not usable and not arguments.all) or arguments.filter.lower() not in info.id.lower():
            continue
        shown += 1
        refused = directory.adaptations(info.id)
        if arguments.json:
            say_json({**_as_json(info, usable=usable), "sent_otherwise": refused})
            continue
        say(_as_line(info, usable=usable))
        if refused:
            say(f"    sent in another form: {'; '.join(refused)} (--forget {info.id})")
    if shown or arguments.json:
        return 0
    if available:
        say("No model matches; --all lists those without a key too.")
    else:
        say("No key was found; see: tui-agent doctor")
    return 0


def _forget(directory: CatalogDirectory, model: str) -> int:
    if not directory.forget_refusals(model):
        say(
            f"There is nothing to forget: no refusal of {model}'s server is known.", file=sys.stderr
        )
        return 1
    say(f"Forgot the refusals: the next request to {model} is sent whole again.")
    return 0


def describe_reply(outcome: "ServerReply", catalog: Catalog) -> str:
    """Return one line on a server: how many models it listed, or why it failed.

    After a failure, the line also has the age of the list that is used instead, if there is one.
    """
    server = outcome.server
    if server.place.source:
        place = f"{server.host} ({server.place.source})"
    else:
        place = server.host
    if outcome.problem:
        text = f"{place}: {outcome.problem}"
        if age := catalog.served.age(server.place.url):
            text += f"; showing its list from {age}"
        return text
    answer = catalog.served.answer(server.place.url)
    count = 0
    if answer is not None:
        count = len(answer.models)
    return f"{place}: {plural(count, 'model')}, listed just now"


def is_usable(info: ModelInfo, available: dict[str, str], catalog: Catalog) -> bool:
    """Return True if requests to a model can be authorized, as far as is known without sending one.

    ``available`` are the providers with a key, with the key's source.
    """
    return (
        info.provider in available or info.id in catalog.settings or catalog.place(info.id).is_own
    )


def prices_per_million(info: ModelInfo) -> tuple[float, float] | None:
    """Return the prices per million input and output tokens, in US dollars; None if unknown."""
    if not info.prices:
        return None
    return info.prices[0].input * 1_000_000, info.prices[0].output * 1_000_000


def abilities(info: ModelInfo) -> tuple[str, ...]:
    known = (("tools", info.tools), ("vision", info.vision), ("reasoning", info.reasoning))
    return tuple(name for name, has in known if has)


def _as_json(info: ModelInfo, *, usable: bool) -> dict[str, Any]:
    prices = prices_per_million(info)
    return {
        "id": info.id,
        "provider": info.provider,
        "context_window": info.context_window,
        "window_origin": info.origin,
        "max_output": info.max_output,
        "input_price": prices and prices[0],
        "output_price": prices and prices[1],
        "vision": info.vision,
        "tools": info.tools,
        "reasoning": info.reasoning,
        "efforts": list(info.efforts),
        "usable": usable,
    }


def _as_line(info: ModelInfo, *, usable: bool) -> str:
    prices = prices_per_million(info)
    cost = ""
    if prices:
        cost = f"${prices[0]:g} / ${prices[1]:g}"
    window = f"{info.context_window:,}"
    if info.origin in {"assumed", "learnt"}:
        window += f" {info.origin}"
    mark = "●" if usable else "○"
    able = ", ".join(abilities(info))
    return f"{mark} {info.id:<52} {window:>12}  {cost:<16} {able}".rstrip()
