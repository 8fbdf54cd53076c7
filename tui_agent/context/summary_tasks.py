"""What a summariser is to do for a compaction, a branch that is left, or a branch that is merged back."""

from collections.abc import Sequence
from typing import Literal

from tui_agent.context.compaction import CompactionPlan
from tui_agent.context.rendering import masked_text
from tui_agent.context.serialise import serialise
from tui_agent.context.settings import CompactionSettings
from tui_agent.context.summariser import InputMode, SummaryTask
from tui_agent.context.templates import Templates
from tui_agent.context.view import ContextView, EntryState
from tui_agent.session.entries import Entry

_PREFIX_SHARE = 0.3
"""Part of a summary's length that the earlier part of a split turn gets, when there is history before it."""


def compaction_tasks(
    plan: CompactionPlan, mode: InputMode, templates: Templates | None = None
) -> tuple[SummaryTask, ...]:
    """Return the tasks of a compaction: the history, and the turn's earlier part when the cut splits a turn.

    A live conversation is summarised in one go, whether or not the turn is split. With a previous summary the task
    is to update it.
    """
    focus = plan.instructions or ""
    previous = plan.previous_summary
    history = blocks_of(plan.history, plan.view, plan.settings.compaction, templates)
    prefix = blocks_of(plan.turn_prefix, plan.view, plan.settings.compaction, templates)
    prompt: Literal["compaction", "compaction_update"] = "compaction_update" if previous else "compaction"
    if mode == "live":
        return (SummaryTask(prompt, (*history, *prefix), previous, focus, live=True),)
    if not prefix:
        return (SummaryTask(prompt, history, previous, focus),)
    note = SummaryTask("turn_prefix", prefix, focus=focus, share=_PREFIX_SHARE if history or previous else 1.0)
    if not history and not previous:
        return (note,)
    return (SummaryTask(prompt, history, previous, focus, share=1 - _PREFIX_SHARE), note)


def blocks_of(
    entries: Sequence[Entry], view: ContextView, settings: CompactionSettings, templates: Templates | None = None
) -> tuple[str, ...]:
    """Return entries as text for a summariser, without what the user took out of the model's view."""
    replaced = {
        entry.id: _stand_in(entry, view.state(entry.id), templates or Templates())
        for entry in entries
        if view.state(entry.id) in {EntryState.DROPPED, EntryState.MASKED}
    }
    return serialise(
        entries,
        result_chars=settings.result_chars,
        argument_chars=settings.argument_chars,
        replaced=replaced,
        hidden_calls=_calls_of_dropped_results(view),
    )


def _calls_of_dropped_results(view: ContextView) -> set[tuple[int, str]]:
    return {
        (entry_id, result.call_id)
        for entry_id, row in view.results.items()
        for result in row
        if result is not None and view.state(result.id) is EntryState.DROPPED
    }


def _stand_in(entry: Entry, state: EntryState, templates: Templates) -> str | None:
    if state is EntryState.DROPPED:
        return None
    return masked_text(entry, templates)
