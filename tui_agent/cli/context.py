"""``tui-agent context``, ``compact``, ``tree``, ``cost``: what the model would see of a session, and what it cost."""

import asyncio
import json
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tui_agent.agent.agent import Agent
from tui_agent.agent.checkpoints.recorder import SnapshotStore
from tui_agent.agent.context_inspector import RoomMade, room_made
from tui_agent.agent.context_map import ContextMap, context_map
from tui_agent.agent.events import CompactionProgress
from tui_agent.app.plain_text import plain_preview
from tui_agent.app.results import BRANCH, ResultError, SessionResult, pull_request_command
from tui_agent.app.spending import Spending, Spent, day_series, look_up, spending_sections, step_series
from tui_agent.cli.arguments import UsageError
from tui_agent.cli.models import catalog_of
from tui_agent.cli.output import say, say_json
from tui_agent.cli.sessions import named_or_last, open_store
from tui_agent.cli.wiring import Wiring
from tui_agent.config import load_config
from tui_agent.context.budget import ContextSize, ModelLimits
from tui_agent.context.commit_plan import Commit
from tui_agent.context.compaction import CompactionPlan, Refusal
from tui_agent.context.projection import project
from tui_agent.context.request import request_bytes
from tui_agent.context.templates import Templates
from tui_agent.plot import picture
from tui_agent.resources import prompt
from tui_agent.session.entries import CompactionEntry, PruneEntry
from tui_agent.session.records import EntryHeader, children
from tui_agent.session.session import Session


def run_result(arguments: Namespace) -> int:
    """Print the patch, write it to a file, or commit the changes to a branch."""
    name, _, number = arguments.id.partition("#")
    if number and not number.isdigit():
        raise UsageError(f"“{arguments.id}” is not a session: write ID, or ID#N for the branch that leads to entry N.")
    if arguments.pr and not arguments.branch:
        raise UsageError("--pr goes with --branch.")
    with open_store() as store:
        info = named_or_last(store, name, Path.cwd())
        session = Session(store, info.id, estimate=lambda _entry: 0, read_only=True)
        snapshots = SnapshotStore(store.put_blob, store.blob)
        found = SessionResult.of(session, snapshots, int(number) if number else None)
        if arguments.json:
            say_json(found.as_json())
            return 0
        if not arguments.branch and not arguments.output:
            if not found:
                raise ResultError(f"This session changed no file of {found.project}.{found.remarks()}")
            sys.stdout.buffer.write(found.patch())
            sys.stdout.flush()
            if remarks := found.remarks().strip():
                say(remarks, file=sys.stderr)
            return 0
        target = f"{BRANCH}{arguments.branch}" if arguments.branch else str(arguments.output)
        say(found.write(target), file=sys.stderr)
        if arguments.pr:
            say(pull_request_command(arguments.branch, found.message()))
    return 0


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


def run_context(arguments: Namespace) -> int:
    """Print the blocks of a session's next request, or the very bytes that would be sent."""

    async def work() -> int:
        async with Wiring(arguments) as wiring:
            session = wiring.open(named_or_last(wiring.store, arguments.id, wiring.cwd).id, read_only=True)
            path = session.path() if arguments.at is None else session.path(arguments.at)
            agent = wiring.make_agent(session)
            model = arguments.model or agent.model
            if not path and (head := await agent.inspector.first_head()) is not None:
                path = [head]
            if arguments.request:
                traits = wiring.directory.traits(model)
                sys.stdout.buffer.write(request_bytes(project(path, traits, Templates.load(prompt))))
                return 0
            limits = wiring.directory.limits(model)
            if arguments.window:
                limits = ModelLimits(model, arguments.window, limits.max_output, "config", limits.vision)
            settings = wiring.loaded.config.context
            shown = context_map(path, limits, settings, wiring.directory.counter(model))
            made = room_made(path)
            print(_map_json(shown, made, model) if arguments.json else _map_text(shown, made, model))
            return 0

    return asyncio.run(work())


def run_compact(arguments: Namespace) -> int:
    async def work() -> int:
        async with Wiring(arguments) as wiring:
            session = wiring.hold(wiring.open(named_or_last(wiring.store, arguments.id, wiring.cwd).id))
            agent = wiring.make_agent(session)
            try:
                if arguments.preview:
                    return await _preview(agent, arguments)
                return await compact(agent, focus=arguments.focus, up_to=arguments.up_to)
            finally:
                await agent.aclose()
                session.release()

    return asyncio.run(work())


def run_tree(arguments: Namespace) -> int:
    """Print a session's tree: straight runs flat, only branch points indented."""
    with open_store() as store:
        session = Session(
            store, named_or_last(store, arguments.id, Path.cwd()).id, estimate=lambda _entry: 0, read_only=True
        )
        headers, labels, leaf = session.skeleton(), session.labels(), session.leaf
        active = set(session.path_outline().ids)
        if arguments.json:
            for header in headers:
                row = {**header._asdict(), "label": labels.get(header.id), "active": header.id in active}
                say_json({**row, "leaf": header.id == leaf})
            return 0
        calls = {entry.id: entry.call for entry in session.subagents()}
        hung = [header._replace(parent_id=calls.get(header.id, header.parent_id)) for header in headers]
        for line in tree_lines(hung, labels, active, leaf):
            say(line)
    return 0


def tree_lines(headers: Sequence[EntryHeader], labels: dict[int, str], active: set[int], leaf: int | None) -> list[str]:
    """Return the tree as lines; ``•`` marks the current path, ``◀ here`` its leaf. A subagent's branch is one line."""
    below = children(headers)
    by_id = {header.id: header for header in headers}
    lines: list[str] = []
    stack: list[tuple[int, str, str]] = [(root, "", "") for root in reversed(below.get(None, []))]
    while stack:
        entry_id, first, rest = stack.pop()
        header = by_id[entry_id]
        label = f" [{labels[entry_id]}]" if entry_id in labels else ""
        here = "  ◀ here" if entry_id == leaf else ""
        mark = "•" if entry_id in active else "·"
        kind = "files changed" if header.kind == "checkpoint" else header.kind.replace("_", " ")
        text = f"{kind}: {plain_preview(header.kind, header.preview)[:80]}"
        lines.append(f"{first}{mark} #{entry_id} {text}{label}{here}")
        subagents = [child for child in below.get(entry_id, []) if by_id[child].kind == "subagent"]
        if header.kind == "subagent":
            lines[-1] += f" ({_count(below, entry_id)} entries)"
            continue
        offspring = [child for child in below.get(entry_id, []) if child not in subagents]
        if len(offspring) == 1:
            stack.append((offspring[0], rest, rest))
        else:
            for child in reversed(offspring):
                last = child == offspring[-1]
                stack.append((child, f"{rest}{'└─' if last else '├─'}", f"{rest}{'  ' if last else '│ '}"))
        stack += [(child, f"{rest}{'├─' if offspring else '└─'}", rest) for child in reversed(subagents)]
    return lines


def _count(below: dict[int | None, list[int]], entry_id: int) -> int:
    found = [entry_id]
    for one in found:
        found += below.get(one, [])
    return len(found)


async def compact(agent: Agent, *, focus: str | None = None, up_to: int | None = None) -> int:
    """Compact an agent's session and print what that did; returns the exit code.

    ``focus`` says what the summary is to keep, ``up_to`` is the entry before which it ends.
    """
    session = agent.session
    before = session.leaf

    def on_event(event: object) -> None:
        if isinstance(event, CompactionProgress) and sys.stderr.isatty():
            say(event.text, end="", file=sys.stderr)

    agent.subscribe(on_event)
    outcome = await agent.compact(focus, boundary=up_to)
    if outcome.problem:
        print(outcome.problem, file=sys.stderr)
        return 1
    print(f"\n{_told(session)} Undo: move back to #{before} in /tree.")
    return 0


def _told(session: Session) -> str:
    entry = session.entry(session.leaf) if session.leaf is not None else None
    match entry:
        case CompactionEntry(tokens_before=before, tokens_after=after):
            return f"{before:,} → {after:,} tokens of history."
        case PruneEntry(targets=targets, tokens_freed=freed):
            return f"There was nothing to summarise; {len(targets)} tool outputs were cut, {freed:,} tokens freed."
        case _:
            return "Done."


async def _preview(agent: Agent, arguments: Namespace) -> int:
    """Say what a compaction would do; no model is asked, so the summary is a room that it may take."""
    order = agent.context.order("manual", arguments.focus, arguments.up_to)
    plan = await agent.compactor.plan(order)
    if isinstance(plan, Refusal):
        say(plan.message, file=sys.stderr)
        return 1
    commit = await agent.compactor.forecast(plan, order)
    print(_preview_json(plan, commit) if arguments.json else _preview_text(plan, commit))
    return 0 if isinstance(commit, Commit) else 1


def _preview_text(plan: CompactionPlan, commit: Commit | Refusal) -> str:
    result = (
        f"{commit.tokens_before:,} → {commit.tokens_after:,} tokens of history, and a summary of at most "
        f"{plan.summary_tokens:,}"
        if isinstance(commit, Commit)
        else f"would be refused: {commit.message}"
    )
    first = f"#{plan.kept[0].id}" if plan.kept else "nothing"
    goes = len(plan.history) + len(plan.turn_prefix)
    return "\n".join(
        [
            f"Summarised: {goes} entries, {plan.tokens_summarised:,} tokens",
            f"Kept as is: from {first} on, {len(plan.kept)} entries, {plan.tokens_kept:,} tokens",
            f"History:    {result}",
        ]
    )


def _preview_json(plan: CompactionPlan, commit: Commit | Refusal) -> str:
    value: dict[str, Any] = {
        "summarised": [entry.id for entry in (*plan.history, *plan.turn_prefix)],
        "kept": [entry.id for entry in plan.kept],
        "first_kept_id": plan.first_kept_id,
        "tokens_summarised": plan.tokens_summarised,
        "tokens_kept": plan.tokens_kept,
        "summary_tokens": plan.summary_tokens,
    }
    if isinstance(commit, Commit):
        value |= {"tokens_before": commit.tokens_before, "tokens_after": commit.tokens_after}
    else:
        value["refused"] = commit.message
    return json.dumps(value, ensure_ascii=False)


def _map_json(shown: ContextMap, made: RoomMade, model: str) -> str:
    size = asdict(shown.size) | {"percent": round(shown.size.percent, 1), "budget": shown.size.budget}
    newest = made.newest.id if made.newest is not None else None
    room = {"compactions": made.compactions, "last_compaction": newest, "prunes": made.prunes, "freed": made.freed}
    blocks = [asdict(block) for block in shown.blocks]
    return json.dumps({"model": model, "size": size, "made_room": room, "blocks": blocks})


def _map_text(shown: ContextMap, made: RoomMade, model: str) -> str:
    size = shown.size
    lines = [f"{model or 'no model'}: {_gauge(size)}", *filter(None, [made.sentence]), ""]
    for block in shown.blocks:
        address = f"#{block.origin[0]}" if block.origin else ""
        hidden = f", {block.hidden:,} hidden" if block.hidden else ""
        state = "" if block.state == "live" else f" [{block.state}{hidden}]"
        what = " ".join(filter(None, [block.kind.replace("_", " "), block.tool, block.path]))
        lines.append(f"{block.tokens:>8,}  {address:>6}  {what:<28}  {' '.join(block.label.split())[:60]}{state}")
    return "\n".join(lines)


def _gauge(size: ContextSize) -> str:
    about = "~" if size.estimated else ""
    threshold = f", compacts at {size.threshold:,}" if size.threshold is not None else ", never compacts by itself"
    assumed = f" ({size.window_origin})" if size.window_origin != "catalog" else ""
    return (
        f"{about}{size.total:,} of {size.window:,} tokens{assumed} ({size.percent:.0f} %): "
        f"fixed {size.fixed:,}, history {size.history:,}{threshold}"
    )
