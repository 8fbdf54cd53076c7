"""Payloads of hooks about summaries, made of the plan of a compaction or of a move."""

from collections.abc import Sequence
from typing import Any

from tui_agent.agent.hooks.payloads import About, BeforeCompact, BeforeTree, EntryText, Files
from tui_agent.context.branch_summary import MovePlan
from tui_agent.context.compaction import CompactionPlan
from tui_agent.context.files import FileOperations, file_operations
from tui_agent.context.serialise import blocks_of
from tui_agent.context.settings import CompactionSettings
from tui_agent.context.templates import Templates
from tui_agent.context.view import ContextView, resolve
from tui_agent.session.entries import Entry
from tui_agent.tools.registry import tool_traits


def compaction_payload(
    plan: CompactionPlan, path: Sequence[Entry], about: About, templates: Templates
) -> BeforeCompact:
    """Return the payload of a planned compaction; ``path`` is the whole branch."""
    summarised = (*plan.history, *plan.turn_prefix)
    settings = plan.settings.compaction
    common = _common_fields(summarised, plan.view, settings, templates, plan.files)
    texts = common.pop("entries")
    same = (
        "trigger",
        "previous_summary",
        "first_kept_id",
        "tokens_before",
        "tokens_summarised",
        "tokens_kept",
    )
    return BeforeCompact(
        about=about,
        focus=plan.instructions,
        entries=texts[: len(plan.history)],
        turn_prefix=texts[len(plan.history) :],
        branch=_texts(path, plan.view, settings, templates),
        budget=plan.budget,
        summary_tokens=plan.summary_tokens,
        **{name: getattr(plan, name) for name in same},
        **common,
    )


def move_payload(
    plan: MovePlan,
    left: Sequence[Entry],
    focus: str | None,
    about: About,
    settings: CompactionSettings,
    templates: Templates,
) -> BeforeTree:
    """Return the payload of a planned move that leaves the entries ``left``; ``focus`` None makes no summary."""
    return BeforeTree(
        about=about,
        target=plan.target,
        leaf=plan.leaf,
        old_leaf=plan.from_id,
        common_ancestor=plan.ancestor,
        wants_summary=focus is not None,
        focus=focus or "",
        **_common_fields(
            left, resolve(left), settings, templates, file_operations(left, tool_traits())
        ),
    )


def _common_fields(
    entries: Sequence[Entry],
    view: ContextView,
    settings: CompactionSettings,
    templates: Templates,
    files: FileOperations,
) -> dict[str, Any]:
    return {
        "entries": _texts(entries, view, settings, templates),
        "conversation": "\n\n".join(blocks_of(entries, view, settings, templates)),
        "files": Files(read=files.read, modified=files.modified),
        "settings": settings.model_dump(mode="json"),
    }


def _texts(
    entries: Sequence[Entry], view: ContextView, settings: CompactionSettings, templates: Templates
) -> tuple[EntryText, ...]:
    return tuple(
        EntryText(
            id=entry.id,
            kind=entry.kind,
            text="\n\n".join(blocks_of((entry,), view, settings, templates)),
        )
        for entry in entries
    )
