"""``tui-agent models``: which models can be used, what they cost, and whether their provider has a key."""

import asyncio
import json
import sys
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from tui_agent.cli.model_choice import catalog_of, directory_of, keys_of
from tui_agent.config import load_config
from tui_agent.model.catalog import Catalog, ModelInfo

if TYPE_CHECKING:
    # It brings in httpx, which a run on a model that needs no network does without.
    from tui_agent.model.discovery import ServerReply


def run_models(arguments: Namespace) -> int:
    """List models: those one can use now, or with ``--all`` every one known. Servers of the user's are asked first."""
    from tui_agent.model.discovery import refresh, servers

    config = load_config().config
    catalog = catalog_of(config)
    keys = keys_of(config)
    asked = servers(catalog.addresses, keys, [*config.models, config.model or ""])
    outcomes = asyncio.run(refresh(asked, catalog.served))
    for outcome in outcomes:
        print(told(outcome, catalog), file=sys.stderr)
    catalog.forget()
    available = keys.available()
    shown = 0
    for info in map(directory_of(catalog).with_learnt, catalog.models()):
        usable = is_usable(info, available, catalog)
        if (not usable and not arguments.all) or arguments.filter.lower() not in info.id.lower():
            continue
        shown += 1
        print(json.dumps(_as_json(info, usable=usable)) if arguments.json else _as_line(info, usable=usable))
    if not shown and not arguments.json:
        print(
            "No model matches; --all lists those without a key too."
            if available
            else "No key was found; see: tui-agent doctor"
        )
    return 0


def told(outcome: "ServerReply", catalog: Catalog) -> str:
    """Return in a line whether a server told its models, and how old what is known of it is."""
    server = outcome.server
    place = f"{server.host} ({server.place.source})" if server.place.source else server.host
    if not outcome.problem:
        answer = catalog.served.answer(server.place.url)
        count = len(answer.models) if answer is not None else 0
        return f"{place}: {count} model{'' if count == 1 else 's'}, asked just now"
    age = catalog.served.age(server.place.url)
    return f"{place}: {outcome.problem}{f'; what it said {age} is shown' if age else ''}"


def is_usable(info: ModelInfo, available: dict[str, str], catalog: Catalog) -> bool:
    """Whether requests to a model can be authorised, as far as can be told without sending one."""
    return info.provider in available or catalog.is_set_up(info.id) or catalog.place(info.id).is_own


def price(info: ModelInfo) -> tuple[float, float] | None:
    """Return US dollars per million tokens sent and answered, None when unknown."""
    if not info.prices:
        return None
    return info.prices[0].input * 1_000_000, info.prices[0].output * 1_000_000


def _as_json(info: ModelInfo, *, usable: bool) -> dict[str, Any]:
    prices = price(info)
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
    prices = price(info)
    cost = f"${prices[0]:g} / ${prices[1]:g}" if prices else ""
    abilities = ", ".join(
        name for name, has in (("tools", info.tools), ("vision", info.vision), ("reasoning", info.reasoning)) if has
    )
    window = f"{info.context_window:,}{f' {info.origin}' if info.origin in {'assumed', 'learnt'} else ''}"
    return f"{'●' if usable else '○'} {info.id:<52} {window:>12}  {cost:<16} {abilities}".rstrip()
