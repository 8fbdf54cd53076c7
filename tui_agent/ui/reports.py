"""The texts of the report pages. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.content import Content

from tui_agent.session.entries import (
    SKILL_PREFIX,
    AssistantEntry,
    BranchSummaryEntry,
    CompactionEntry,
    Entry,
    Usage,
)
from tui_agent.ui.abilities import CompactingAgent, InspectedAgent
from tui_agent.ui.format import money, plural, tokens, visible
from tui_agent.ui.keymap import MAIN, Rebindable, rebindable
from tui_agent.ui.services import AgentPort
from tui_agent.ui.widgets.gauge import GaugeReading

if TYPE_CHECKING:
    from tui_agent.agent.knowledge.knowledge import CommandRow
    from tui_agent.ui.commands import Command

PROMPT_KEYS: tuple[tuple[str, str], ...] = (
    ("enter", "send; while the agent works: steer it after its current step"),
    ("alt+enter", "while the agent works: send when it is done"),
    ("alt+up", "take back the last message that waits"),
    ("shift+enter ctrl+j", "new line"),
    ("up down", "earlier messages, from the first or last line"),
    ("pageup pagedown", "scroll the conversation; ctrl+home and ctrl+end go to its ends"),
    ("tab", "go into the conversation: j k next block, space folds, y copies, e enters a subagent's session"),
    (
        "any other letter",
        "in the conversation: begins a message in the prompt, as long as it does nothing to the block",
    ),
    ("ctrl+e", "write in $VISUAL or $EDITOR"),
    ("/name @file #12", "commands, files, entries of this session; tab completes"),
    ("!command", "run a command yourself; !!command keeps it from the model"),
    ("escape", "stop the agent"),
    ("ctrl+c", "copy what is selected, or clear the prompt; twice quits"),
    ("ctrl+p", "all commands"),
    ("ctrl+q ctrl+d", "quit; ctrl+d only in an empty prompt"),
)
"""Keys that are not commands."""


TODO_MARKS: Mapping[str, str] = {"pending": "○", "in_progress": "◐", "done": "●", "cancelled": "–"}
"""Marks of the states of a to-do."""
_STATES: Mapping[str, str] = {"in_progress": "  (now)", "cancelled": "  (cancelled)"}


def help_text(commands: "Iterable[Command]", keymap: Mapping[str, str] | None = None) -> Content:
    """Return the help page: commands with their keys, the prompt's keys, and those that can be changed."""
    own = keymap or {}
    lines = [Content("Commands").stylize("bold")]
    for command in commands:
        name = f"/{command.name} {command.argument}".strip()
        keys = own.get(command.name, command.key)
        lines.append(Content(f"  {name:<19} {command.help}{f'  ({keys})' if keys else ''}"))
    return Content("\n").join([*lines, Content(""), *_keys(own)])


def keys_text(commands: "Iterable[Command]", keymap: Mapping[str, str] | None = None) -> Content:
    """Return the page of keys: the prompt's, those of commands, and the names to change them by."""
    own = keymap or {}
    keyed = [(own.get(command.name, command.key), command.help) for command in commands if command.key]
    lines = [Content(f"  {keys:<19} {text}") for keys, text in keyed]
    return Content("\n").join([Content("Commands").stylize("bold"), *lines, Content(""), *_keys(own)])


def todo_text(todos: Sequence[tuple[str, str]]) -> Content:
    """Return the page of the to-do list, a row for each with its state in words."""
    if not todos:
        return Content("The model has made no list here. It makes one for work of several steps.")
    done = sum(status == "done" for status, _text in todos)
    rows = [
        Content(f"{TODO_MARKS.get(status, '○')} {visible(text)}{_STATES.get(status, '')}") for status, text in todos
    ]
    return Content("\n").join([Content(f"{done} of {len(todos)} done").stylize("bold"), Content(""), *rows])


def _keys(own: Mapping[str, str]) -> list[Content]:
    lines = [Content("Keys").stylize("bold")]
    lines += [Content(f"  {keys:<19} {text}") for keys, text in PROMPT_KEYS]
    lines += [Content(""), Content("Keys by name").stylize("bold")]
    lines.append(Content('  Change one in config.toml:  [keys]  compact = "f8"'))
    for action in rebindable_actions():
        shown = own.get(action.id, action.keys)
        lines.append(Content(f"  {action.id:<26} {shown:<18} {action.help}".rstrip()))
    return lines


def writing_keys() -> frozenset[str]:
    """Return the keys that the prompt needs."""
    from textual.binding import BindingsMap
    from textual.widgets import TextArea

    from tui_agent.ui.widgets.prompt import Prompt

    return frozenset(BindingsMap([*TextArea.BINDINGS, *Prompt.BINDINGS]).key_to_bindings)


def rebindable_actions() -> list[Rebindable]:
    """Return every action that can have another key."""
    from tui_agent.ui.screens.context import ContextScreen
    from tui_agent.ui.screens.main import MainScreen
    from tui_agent.ui.widgets.transcript.pane import BlockPane

    return [
        *rebindable(MAIN, MainScreen.BINDINGS),
        *rebindable("conversation", BlockPane.BINDINGS),
        *rebindable("context map", ContextScreen.BINDINGS),
    ]


def skills_text(rows: "Iterable[CommandRow]") -> Content:
    """Return the page of skills: what each is for, and how to have one used."""
    skills = [row for row in rows if row.name.startswith(SKILL_PREFIX)]
    if not skills:
        return Content("There are no skills. A skill is a folder with a SKILL.md in .agents/skills of the project.")
    lines = [Content("The agent loads one when it fits; /skill:NAME TASK has it used.")]
    for row in skills:
        lines.append(Content(f"\n{visible(row.name.removeprefix(SKILL_PREFIX))}").stylize("bold"))
        lines.append(Content(f"  {visible(row.description)}"))
    return Content("\n").join(lines)


@dataclass(slots=True)
class _Spent:
    requests: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    cost: float = 0.0
    priced: bool = False


COSTING = ("assistant", "compaction", "branch_summary")
"""Kinds of entries that cost something."""


def cost_text(entries: Sequence[Entry]) -> Content:
    """Return what each model was sent, answered and cost, by the entries of the current path that cost something."""
    by_model: defaultdict[str, _Spent] = defaultdict(_Spent)
    for entry in entries:
        if isinstance(entry, AssistantEntry | CompactionEntry | BranchSummaryEntry) and entry.usage is not None:
            _add(by_model[entry.model or "unknown"], entry.usage, entry.cost)
    if not by_model:
        return Content("Nothing was sent yet.")
    lines = []
    for model, spent in by_model.items():
        share = spent.cached / spent.input if spent.input else 0.0
        lines.append(Content(visible(model)).stylize("bold"))
        lines.append(Content(f"  {plural(spent.requests, 'request')}"))
        lines.append(Content(f"  sent       {tokens(spent.input):>8}   of it from the cache {share:.0%}"))
        lines.append(Content(f"  answered   {tokens(spent.output):>8}"))
        lines.append(Content(f"  cost       {money(spent.cost) if spent.priced else 'unknown':>8}"))
    return Content("\n").join(lines)


def _add(spent: _Spent, usage: Usage, cost: float | None) -> None:
    spent.requests += 1
    spent.input += usage.prompt
    spent.output += usage.output
    spent.cached += usage.cache_read
    if cost is not None:
        spent.cost += cost
        spent.priced = True


def cache_share(path: Sequence[Entry]) -> float | None:
    """Return which part of the last request was read from the provider's cache.

    None when that is unknown, and as long as nothing was: many providers have no cache.
    """
    usages = [entry.usage for entry in path if isinstance(entry, AssistantEntry) and entry.usage is not None]
    known = [usage for usage in usages if usage.prompt]
    if not any(usage.cache_read for usage in known):
        return None
    return known[-1].cache_read / known[-1].prompt


def warm_until(agent: object, now: float) -> float | None:
    """Return when the provider forgets the last request, in seconds since the epoch; None when nothing was answered."""
    if not isinstance(agent, InspectedAgent):
        return None
    answered = any(isinstance(entry, AssistantEntry) for entry in reversed(agent.session.active_path()))
    state = agent.inspector.cache_state()
    return (now + state.seconds_left if state.warm else 0.0) if answered else None


def gauge_reading(agent: AgentPort, now: float) -> GaugeReading:
    """Return what the gauge shows of an agent's next request at ``now``, in seconds since the epoch."""
    return GaugeReading(
        agent.context_size(),
        cache_share(agent.session.active_path()),
        agent.session_cost(),
        isinstance(agent, CompactingAgent),
        warm_until(agent, now),
    )
