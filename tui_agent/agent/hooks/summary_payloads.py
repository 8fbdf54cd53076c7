"""Builds payloads for hooks that may write summaries: ``before_compact`` and ``before_tree``."""

from collections.abc import Sequence

from tui_agent.agent.hooks.payloads import About, BeforeCompact, BeforeTree, EntryText, Files
from tui_agent.context.branch_summary import MovePlan
from tui_agent.context.compaction import CompactionPlan
from tui_agent.context.files import file_operations
from tui_agent.context.serialise import blocks_of
from tui_agent.context.settings import CompactionSettings
from tui_agent.context.templates import Templates
from tui_agent.context.view import ContextView, resolve_all
from tui_agent.lazy import frozen
from tui_agent.session.entries import Entry
from tui_agent.tools.registry import tool_traits


@frozen
class _Reader:
    """Converts entries to the text that the model which writes summaries receives."""

    view: ContextView
    settings: CompactionSettings
    templates: Templates

    def text(self, entries: Sequence[Entry]) -> str:
        return "\n\n".join(blocks_of(entries, self.view, self.settings, self.templates))

    def texts(self, entries: Sequence[Entry]) -> tuple[EntryText, ...]:
        found: list[EntryText] = []
        for entry in entries:
            text = self.text((entry,))
            found.append(EntryText(id=entry.id, kind=entry.kind, text=text))
        return tuple(found)


def compaction_payload(
    plan: CompactionPlan, path: Sequence[Entry], about: About, templates: Templates
) -> BeforeCompact:
    """Return the payload of a planned compaction; ``path`` has all entries from root to leaf."""
    settings = plan.settings.compaction
    reader = _Reader(plan.view, settings, templates)
    whole = resolve_all(path)
    return BeforeCompact(
        about=about,
        trigger=plan.trigger,
        focus=plan.instructions,
        entries=reader.texts(plan.history),
        turn_prefix=reader.texts(plan.turn_prefix),
        branch=_Reader(whole, settings, templates).texts(whole.entries),
        conversation=reader.text((*plan.history, *plan.turn_prefix)),
        previous_summary=plan.previous_summary,
        files=Files(read=plan.files.read, modified=plan.files.modified),
        first_kept_id=plan.first_kept_id,
        tokens_before=plan.tokens_before,
        tokens_summarised=plan.tokens_summarised,
        tokens_kept=plan.tokens_kept,
        budget=plan.budget,
        summary_tokens=plan.summary_tokens,
        settings=settings.model_dump(mode="json"),
    )


def move_payload(
    plan: MovePlan,
    left: Sequence[Entry],
    focus: str | None,
    about: About,
    settings: CompactionSettings,
    templates: Templates,
) -> BeforeTree:
    """Return the payload of a planned move to another entry.

    ``left`` are the entries that leave the path. ``focus`` is what the user wants the summary to
    emphasise; None if they want no summary.
    """
    view = resolve_all(left)
    reader = _Reader(view, settings, templates)
    files = file_operations(left, tool_traits())
    return BeforeTree(
        about=about,
        target=plan.target,
        leaf=plan.leaf,
        old_leaf=plan.from_id,
        common_ancestor=plan.ancestor,
        wants_summary=focus is not None,
        focus=focus or "",
        entries=reader.texts(view.entries),
        conversation=reader.text(view.entries),
        files=Files(read=files.read, modified=files.modified),
        settings=settings.model_dump(mode="json"),
    )
