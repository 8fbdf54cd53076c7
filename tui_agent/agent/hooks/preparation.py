"""What hooks are given before a summary is made: the plan of a compaction or of a move, as text and ids."""

from collections.abc import Sequence

from tui_agent.agent.hooks.payloads import About, AfterCompact, BeforeCompact, BeforeTree, EntryText, Files
from tui_agent.context.branch_summary import MovePlan
from tui_agent.context.compaction import CompactionPlan
from tui_agent.context.files import FileOperations, file_operations
from tui_agent.context.settings import CompactionSettings, ContextSettings
from tui_agent.context.summary_tasks import blocks_of
from tui_agent.context.templates import Templates
from tui_agent.context.view import ContextView, resolve
from tui_agent.session.entries import CompactionEntry, Entry
from tui_agent.tools.registry import tool_traits


def of_compaction(plan: CompactionPlan, about: About, templates: Templates) -> BeforeCompact:
    """Return what a hook is given of a planned compaction."""
    settings = plan.settings.compaction
    return BeforeCompact(
        about=about,
        trigger=plan.trigger,
        focus=plan.instructions,
        entries=_texts(plan.history, plan.view, settings, templates),
        turn_prefix=_texts(plan.turn_prefix, plan.view, settings, templates),
        conversation=_conversation((*plan.history, *plan.turn_prefix), plan.view, settings, templates),
        previous_summary=plan.previous_summary,
        files=_files(plan.files),
        first_kept_id=plan.first_kept_id,
        tokens_before=plan.tokens_before,
        tokens_summarised=plan.tokens_summarised,
        tokens_kept=plan.tokens_kept,
        budget=plan.budget,
        summary_tokens=plan.summary_tokens,
        settings=settings.model_dump(mode="json"),
    )


def of_move(
    plan: MovePlan,
    entries: Sequence[Entry],
    focus: str | None,
    about: About,
    settings: ContextSettings,
    templates: Templates,
) -> BeforeTree:
    """Return what a hook is given of a planned move that abandons ``entries``; ``focus`` None makes no summary."""
    view = resolve(entries)
    return BeforeTree(
        about=about,
        leaf=plan.leaf,
        old_leaf=plan.from_id,
        common_ancestor=plan.ancestor,
        wants_summary=focus is not None,
        focus=focus or "",
        entries=_texts(entries, view, settings.compaction, templates),
        conversation=_conversation(entries, view, settings.compaction, templates),
        files=_files(file_operations(entries, tool_traits())),
        settings=settings.compaction.model_dump(mode="json"),
    )


def _texts(
    entries: Sequence[Entry], view: ContextView, settings: CompactionSettings, templates: Templates
) -> tuple[EntryText, ...]:
    return tuple(
        EntryText(id=entry.id, kind=entry.kind, text=_conversation([entry], view, settings, templates))
        for entry in entries
    )


def _conversation(
    entries: Sequence[Entry], view: ContextView, settings: CompactionSettings, templates: Templates
) -> str:
    return "\n\n".join(blocks_of(entries, view, settings, templates))


def _files(files: FileOperations) -> Files:
    return Files(read=files.read, modified=files.modified)


def after_compaction(entry: CompactionEntry, about: About) -> AfterCompact:
    """Return what a hook is told of a compaction that was committed."""
    return AfterCompact(
        about=about,
        entry=entry.id,
        trigger=entry.trigger,
        summary=entry.summary,
        first_kept_id=entry.first_kept_id,
        tokens_before=entry.tokens_before,
        tokens_after=entry.tokens_after,
        model=entry.model,
    )
