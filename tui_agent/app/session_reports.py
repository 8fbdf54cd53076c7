"""Text and JSON of ``/tree``, ``/context`` and ``/cost`` for frontends without a screen.

The module also makes the JSON of ``/compact --preview``, whose text is in context_plan_text.py. The
rows of the cost come from spending.py. Only reads the session.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tui_agent.agent.context_inspector import RoomMade
from tui_agent.agent.context_map import ContextBlock, ContextMap
from tui_agent.app.context_text import miss_cause
from tui_agent.app.format import plural
from tui_agent.app.spending import PING_CAUSE, Spending, spending_sections
from tui_agent.app.strip_markdown import plain_preview
from tui_agent.context.budget import WINDOW_ORIGINS, ContextSize
from tui_agent.context.commit_plan import Commit
from tui_agent.context.compaction import CompactionPlan, Refusal
from tui_agent.session.records import EntryHeader, children
from tui_agent.session.session import Session


def tree_json(session: Session) -> str:
    """Return a JSON object for each entry of the session, one per line.

    ``active`` says whether an entry is on the current session path.
    """
    labels = session.labels()
    leaf = session.leaf
    active = set(session.path_outline().ids)
    lines = []
    for header in session.skeleton():
        row = header._asdict() | {
            "label": labels.get(header.id),
            "active": header.id in active,
            "leaf": header.id == leaf,
        }
        lines.append(json.dumps(row, ensure_ascii=False))
    return "\n".join(lines)


def tree_lines(session: Session) -> list[str]:
    """Return the session's tree, one line for each entry; only branches are indented.

    ``•`` marks the entries on the current session path, and ``◀ here`` marks the leaf. The branch
    of a subagent is shown in only one line.
    """
    labels = session.labels()
    active = set(session.path_outline().ids)
    calls = {entry.id: entry.call for entry in session.subagents()}
    by_id: dict[int, EntryHeader] = {}
    for header in session.skeleton():
        parent = calls.get(header.id, header.parent_id)
        by_id[header.id] = header._replace(parent_id=parent)
    below = children(by_id.values())
    lines: list[str] = []
    # Stack of entries to draw: id, prefix of the entry's line, prefix of the lines below.
    stack: list[tuple[int, str, str]] = []
    for root in reversed(below.get(None, [])):
        stack.append((root, "", ""))
    while stack:
        entry_id, first, rest = stack.pop()
        header = by_id[entry_id]
        mark = "•" if entry_id in active else "·"
        line = f"{first}{mark} #{entry_id} {_described(header)}"
        if entry_id in labels:
            line += f" [{labels[entry_id]}]"
        if entry_id == session.leaf:
            line += "  ◀ here"
        if header.kind == "subagent":
            lines.append(f"{line} ({plural(_count(below, entry_id), 'entry')})")
            continue
        lines.append(line)
        subagents: list[int] = []
        offspring: list[int] = []
        for child in below.get(entry_id, []):
            if by_id[child].kind == "subagent":
                subagents.append(child)
            else:
                offspring.append(child)
        stack += reversed(_drawn_below(subagents, offspring, rest))
    return lines


def _described(header: EntryHeader) -> str:
    if header.kind == "checkpoint":
        kind = "files changed"
    else:
        kind = header.kind.replace("_", " ")
    return f"{kind}: {plain_preview(header.kind, header.preview)[:80]}"


def _drawn_below(
    subagents: Sequence[int], offspring: Sequence[int], rest: str
) -> list[tuple[int, str, str]]:
    """Return the children of an entry as (id, prefix of its line, prefix of the lines below).

    Subagents come first, then a single child or branches. All prefixes begin with ``rest``.
    """
    branch = "├─" if offspring else "└─"
    drawn = [(child, f"{rest}{branch}", rest) for child in subagents]
    if len(offspring) == 1:
        drawn.append((offspring[0], rest, rest))
        return drawn
    for child in offspring[:-1]:
        drawn.append((child, f"{rest}├─", f"{rest}│ "))
    for child in offspring[-1:]:
        drawn.append((child, f"{rest}└─", f"{rest}  "))
    return drawn


def _count(below: Mapping[int | None, list[int]], entry_id: int) -> int:
    """Return the number of entries in a subtree, including its root ``entry_id``."""
    found = [entry_id]
    for one in found:
        found += below.get(one, [])
    return len(found)


def cost_lines(found: Spending, names: Mapping[int, str]) -> list[str]:
    """Return a session's cost as lines; ``names`` are previews of other branches' first entries."""
    sections = spending_sections(found, names)
    if not sections:
        return ["Nothing has been sent yet."]
    lines: list[str] = []
    for heading, rows in sections:
        lines.append(heading)
        for row in rows:
            lines += [f"  {line}" for line in row.split("\n")]
        lines.append("")
    return lines[:-1]


def cost_json(found: Spending) -> str:
    """Return a session's cost as a JSON object, with costs in US dollars."""
    missed = {}
    for step, dollars in found.path:
        if step.miss is not None:
            missed[step.answer] = {
                "missed": step.miss.missed,
                "missed_cause": miss_cause(step.miss),
                "missed_cost": dollars,
            }
    branches = {}
    for key, spent in found.branches.items():
        name = f"#{key}" if key else "current"
        branches[name] = asdict(spent)
    value = {
        "total": asdict(found.total),
        "branches": branches,
        "models": _as_dicts(found.models),
        "kinds": _as_dicts(found.purposes),
        "days": {str(day): cost for day, cost in sorted(found.days.items())},
        "cache_misses": _as_dicts(found.misses),
        "pings": [{"at": ping.at, "cost": ping.cost, "cause": PING_CAUSE} for ping in found.pings],
        "all_sessions": {str(day): cost for day, cost in found.all_sessions.items()},
        "requests": [record._asdict() | missed.get(record.id, {}) for record in found.steps],
    }
    return json.dumps(value, ensure_ascii=False)


def _as_dicts(rows: Mapping[Any, Any]) -> dict[str, dict[str, Any]]:
    return {str(name): asdict(row) for name, row in rows.items()}


def compaction_json(plan: CompactionPlan, commit: Commit | Refusal) -> str:
    """Return a compaction's preview as JSON; ``refused`` says why a compaction is impossible."""
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


def context_json(shown: ContextMap, made: RoomMade, model: str) -> str:
    """Return the context map as a JSON object.

    It contains the model, the size, the compactions and prunes so far, and the blocks.
    """
    size = asdict(shown.size) | {
        "percent": round(shown.size.percent, 1),
        "budget": shown.size.budget,
    }
    newest = None
    if made.newest is not None:
        newest = made.newest.id
    room = {
        "compactions": made.compactions,
        "last_compaction": newest,
        "prunes": made.prunes,
        "freed": made.freed,
    }
    blocks = [asdict(block) for block in shown.blocks]
    return json.dumps({"model": model, "size": size, "made_room": room, "blocks": blocks})


def context_lines(shown: ContextMap, made: RoomMade, model: str) -> list[str]:
    """Return the context map as lines.

    They show the model, the size, the compactions and prunes so far, and each block.
    """
    lines = [f"{model or 'no model'}: {_gauge(shown.size)}"]
    if made.sentence:
        lines.append(made.sentence)
    lines.append("")
    for block in shown.blocks:
        lines.append(_block_line(block))
    return lines


def _gauge(size: ContextSize) -> str:
    about = "~" if size.estimated else ""
    assumed = ""
    if size.window_origin != "catalog":
        assumed = f" ({WINDOW_ORIGINS[size.window_origin]})"
    share = f"{about}{size.total:,} of {size.window:,} tokens{assumed} ({size.percent:.0f} %)"
    threshold = "no automatic compaction"
    if size.threshold is not None:
        threshold = f"compacts at {size.threshold:,}"
    return f"{share}: fixed {size.fixed:,}, history {size.history:,}, {threshold}"


def _block_line(block: ContextBlock) -> str:
    address = ""
    if block.origin:
        address = f"#{block.origin[0]}"
    states: list[str] = []
    if block.edited:
        states.append("edited")
    if block.state != "live":
        states.append(block.state)
        if block.hidden:
            states.append(f"{block.hidden:,} hidden")
    kind = " ".join(filter(None, [block.kind.replace("_", " "), block.tool, block.path]))
    label = " ".join(block.label.split())[:60]
    line = f"{block.tokens:>8,}  {address:>6}  {kind:<28}  {label}"
    if states:
        line += f" [{', '.join(states)}]"
    return line
