"""Makes the model catalog from the user's settings, and chooses the default model.

The module also contains ``tui-agent models``, which lists models and asks the user's servers for
theirs.
"""

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
    # Only for annotations: it imports httpx, which a model without a network doesn't need.
    from tui_agent.model.discovery import ServerReply


LEARNT = "learnt.json"
"""Name of the file in the data directory in which facts learnt from refused requests are kept."""
DEFAULT_MODELS = (
    "anthropic/claude-sonnet-5",
    "openai/gpt-5.6",
    "gemini/gemini-3.1-pro-preview",
    "mistral/mistral-medium-latest",
    "deepseek/deepseek-flash",
    "xai/grok-4.20",
    "openrouter/anthropic/claude-sonnet-5",
)
"""Models to use if no model is configured; the first one whose provider has a key is used."""


def catalog_of(config: Config) -> DemoCatalog:
    """Return the catalog of models, changed as the settings say and including the demo's model."""
    served = ServedModels(cache_dir() / "servers.json")
    return DemoCatalog(config.models, config.providers, environ=os.environ, served=served)


def directory_of(catalog: Catalog) -> CatalogDirectory:
    """Return a directory in which to look up a model's data, based on the catalog.

    It includes facts learnt from refused requests.
    """
    return CatalogDirectory(catalog, LearntFacts(data_dir() / LEARNT))


def own_models(config: Config) -> tuple[str, ...]:
    """Return the ids of the configured models that have a ``base_url``.

    Settings without a ``base_url`` only adjust a model of the catalog.
    """
    return tuple(name for name, settings in config.models.items() if settings.base_url)


def choose_model(config: Config, providers: Container[str], knows: Callable[[str], bool]) -> str:
    """Return the id of the default model for new sessions; `NO_MODEL` if there is none.

    That is the model in the settings, unless it is the demo's; otherwise the user's own model, if
    there is exactly one; otherwise the first of `DEFAULT_MODELS` that the catalog knows and whose
    provider has a key. ``providers`` are the ids of providers with a key.
    """
    # Skip the demo's model: it edits files by its script, so it must not work in a real project.
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
    """Ask the servers for their models, and print the usable models (``--all``: every known model).

    With ``--forget NAME``, only deletes the recorded refusals of this model's server. Returns the
    exit code.
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
        # Add the configured model even if its server doesn't list it, as it may accept other names.
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
            say(f"    sent in another form: {'; '.join(refused)} (--forget {info.id} undoes this)")
    if shown or arguments.json:
        return 0
    if available:
        say("No model matches. --all also lists models that you have no API key for.")
    else:
        say("No API key was found. See: tui-agent doctor")
    return 0


def _forget(directory: CatalogDirectory, model: str) -> int:
    if not directory.forget_refusals(model):
        say(
            f"There is nothing to forget, because {model}'s server has refused nothing.",
            file=sys.stderr,
        )
        return 1
    say(f"Forgot the refusals. The next request to {model} is sent with all its parts again.")
    return 0


def describe_reply(outcome: "ServerReply", catalog: Catalog) -> str:
    """Return one line about a model server's reply: how many models it listed, or why that failed.

    After a failure, the server's last list stays in use, if there is one; the line says how old it
    is.
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
    """Return True if requests to a model can probably be authorized.

    That is the case if its provider has a key, or if the settings contain the model or its address.
    ``available`` maps the ids of providers with a key to the key's source.
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
    """Return what a model can do, in short words: tools, vision, reasoning."""
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
