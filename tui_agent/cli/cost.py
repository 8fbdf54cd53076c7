"""``tui-agent cost``: what a session has cost, all branches, by branch, model, kind and day."""

import json
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tui_agent.app.spending import Spending, Spent, day_series, look_up, spending_sections, step_series
from tui_agent.cli.models import catalog_of
from tui_agent.cli.output import say
from tui_agent.cli.sessions import named_or_last, open_store
from tui_agent.config import load_config
from tui_agent.plot import picture
from tui_agent.session.session import Session

_WIDTH, _HEIGHT = 72, 6
"""Of a plot, in cells."""


def run_cost(arguments: Namespace) -> int:
    catalog = catalog_of(load_config().config)
    with open_store() as store:
        name = named_or_last(store, arguments.id, Path.cwd()).id
        session = Session(store, name, estimate=lambda _entry: 0, read_only=True)
        records = session.requests()
        departures = session.departures(record.id for record in records)
        found, names = look_up(
            session, store, records, departures, lambda model, usage: catalog.info(model).cost(usage)
        )
    if arguments.json:
        say(json.dumps(_as_json(found), ensure_ascii=False))
        return 0
    for line in _lines(found, names):
        say(line)
    return 0


def _lines(found: Spending, names: Mapping[int, str]) -> list[str]:
    sections = spending_sections(found, names)
    if not sections:
        return ["Nothing was sent yet."]
    lines: list[str] = []
    for heading, rows in sections:
        lines += [heading, *(f"  {line}" for row in rows for line in row.split("\n")), ""]
    if not found.can_plot:
        return lines[:-1]
    lines += ["By request", *(f"  {line}" for line in picture(step_series(found), _WIDTH, _HEIGHT))]
    if len(found.days) > 1:
        first, last = min(found.days), max(found.days)
        lines += ["", f"By day, {first} to {last}"]
        lines += [f"  {line}" for line in picture(day_series(found), _WIDTH, _HEIGHT)]
    return lines


def _as_json(found: Spending) -> dict[str, Any]:
    def all_of(sums: Mapping[Any, Spent]) -> dict[str, Any]:
        return {str(name): asdict(spent) for name, spent in sums.items()}

    return {
        "total": asdict(found.total),
        "branches": {("current" if not key else f"#{key}"): asdict(spent) for key, spent in found.branches.items()},
        "models": all_of(found.models),
        "kinds": all_of(found.purposes),
        "days": {day.isoformat(): cost for day, cost in sorted(found.days.items())},
        "requests": [record._asdict() for record in found.steps],
    }
