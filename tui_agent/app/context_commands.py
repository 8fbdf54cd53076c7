"""What the commands about the context do: look at it, compact it, prune it, bring things back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.face import CompactPage, ContextPage, LongText, SettingsPage
from tui_agent.app.format import plural

if TYPE_CHECKING:
    from tui_agent.app.desk import Desk


async def context(desk: Desk, _argument: str) -> None:
    """Show the next request block by block."""
    if desk.agent is not None:
        desk.show(ContextPage())


async def compact(desk: Desk, argument: str) -> None:
    """Summarise the history: with a focus at once, otherwise after a look at what goes and what stays.

    ``#412`` before the focus is the entry to end before.
    """
    from tui_agent.context.compaction_history import room_made
    from tui_agent.errors import CommandError

    agent = desk.agent
    if agent is None or not desk.may_change():
        return
    named = re.match(r"#(\d+)(?:\s+|$)", argument)
    boundary, focus = (int(named[1]), argument[named.end() :]) if named else (None, argument)
    if boundary is not None and desk.face.has_screen:
        await compact_up_to(desk, boundary, focus)
        return
    if boundary is not None and not agent.session.on_path(boundary):
        raise CommandError(f"#{boundary} is not on this branch.")
    if desk.face.has_screen and not focus and not agent.running:
        desk.show(CompactPage())
        return
    outcome = await agent.compact(focus or None, boundary=boundary)
    if not desk.face.has_screen and not agent.running:
        # A screen shows the compaction itself, and hears why there is none.
        if outcome.problem:
            raise CommandError(outcome.problem)
        desk.say(room_made(agent.session.active_path()).sentence)


async def compact_up_to(desk: Desk, entry_id: int, focus: str = "") -> None:
    """Summarise what is before an entry of the conversation; without a focus after a look at it."""
    if (agent := desk.idle_agent) is None or not desk.may_change():
        return
    if not agent.session.on_path(entry_id):
        desk.say(f"#{entry_id} is not on this branch.")
    elif focus:
        if problem := (await agent.compact(focus, boundary=entry_id)).problem:
            desk.say(problem)
    else:
        desk.show(CompactPage(entry_id))


async def prune(desk: Desk, _argument: str) -> None:
    """Prune old tool outputs, and say what that costs; nothing is lost, and nothing spent before the next request."""
    from tui_agent.app import plans
    from tui_agent.app.edit_price import Edit, plan_edit

    if (agent := desk.idle_agent) is None or not desk.may_change():
        return
    plan = await agent.plan_prune()
    if plan is None:
        desk.say("There is no old tool output that is worth pruning.")
        return
    blocks, warm = agent.inspector.map().blocks, agent.inspector.cache_state().warm
    targets = set(plan.targets)
    places = [at for at, block in enumerate(blocks) if block.origin and block.origin[0] in targets]
    planned = plan_edit(blocks, places, "mask")
    edit = planned if isinstance(planned, Edit) else None
    dollars = desk.services.reread_cost(agent.model, edit.reread) if warm and edit else None
    price = plans.prune_price(plan, edit, warm=warm, dollars=dollars)
    if await agent.prune():
        desk.say(f"{plural(len(plan.targets), 'old tool output')} pruned. {price} /undo brings them back.")


async def edit_summary(desk: Desk, entry_id: int) -> None:
    """Change the summary in force; the former one stays in the tree and /undo brings it back."""
    from tui_agent.session.entries import CompactionEntry

    if (agent := desk.idle_agent) is None or not desk.may_change():
        return
    entry = agent.session.entry(entry_id)
    if not isinstance(entry, CompactionEntry) or entry_id != agent.inspector.standings().compaction:
        desk.say("Only the summary in force can be edited: this one was summarised again.")
        return
    text = await desk.ask(LongText("What the model is told of the history before", entry.summary))
    if text and text != entry.summary and desk.idle_agent is agent:
        agent.replace_summary(text)
        desk.say("The summary was changed; /undo brings the former one back.")


async def panel(desk: Desk, _argument: str) -> None:
    """Show or hide the side panel."""
    desk.face.toggle_panel()


async def view(desk: Desk, _argument: str) -> None:
    """Show only what the model sees of the conversation, or all of it again."""
    if desk.agent is None:
        return
    if desk.face.toggle_view():
        desk.say("Only what the model sees is shown; /view shows the whole conversation.")
    else:
        desk.face.clear_notice()


async def settings(desk: Desk, argument: str) -> None:
    """Show every setting as it is in the file, and follow that; with ``reload`` say only what changed."""
    from tui_agent.app import settings_reload
    from tui_agent.config import ConfigError

    try:
        told = settings_reload.describe_changes(settings_reload.reload(desk))
    except ConfigError as error:
        told = str(error)
        desk.face.announce(told, "error")
    if argument == "reload":
        desk.say(told)
    else:
        desk.show(SettingsPage(argument))


async def jump(desk: Desk, entry_id: int) -> None:
    """Go to what a marker is about: the entry an edit changed, or the branch a summary tells of."""
    from tui_agent.session.entries import BranchSummaryEntry, CompactionEntry, ContextEditEntry

    entry = desk.agent.session.entry(entry_id) if desk.agent is not None else None
    match entry:
        case ContextEditEntry(target=target):
            if not desk.face.jump_to(target):
                desk.say(f"#{target} is not on this branch.")
        case CompactionEntry():
            desk.face.jump_to(entry_id)
        case BranchSummaryEntry(from_id=from_id):
            desk.begin("tree", f"#{from_id}")
        case _:
            pass


async def restore(desk: Desk, entry_id: int) -> None:
    """Show the model an entry again; for a prune, everything it took out that is still out."""
    from tui_agent.session.entries import PruneEntry

    if (agent := desk.agent) is None:
        return
    entry = agent.session.entry(entry_id)
    wanted = set(entry.targets) if isinstance(entry, PruneEntry) else {entry_id}
    hidden = [
        block.origin[0]
        for block in agent.inspector.map().blocks
        if block.origin and block.origin[0] in wanted and block.state not in {"live", "pinned"}
    ]
    if not hidden:
        desk.say("It is already back in the context.")
        return
    if not desk.may_change():
        return
    for target in hidden:
        agent.edit_context(target, "restore")
    if len(hidden) == 1:
        desk.say(f"#{hidden[0]} will be in the context again from the next request.")
    else:
        desk.say(f"{plural(len(hidden), 'output')} will be in the context again from the next request.")


COMMANDS = (
    Command(
        "compact",
        "summarise the history, or what is before #N",
        compact,
        "Compact",
        key="f4",
        argument="[#N] [FOCUS]",
        place=220,
    ),
    Command("prune", "replace old tool outputs by placeholders", prune, "Prune", place=230),
    Command(
        "context",
        "show what fills the context window",
        context,
        "Context window",
        key="ctrl+g",
        needs_screen=True,
        place=240,
    ),
    Command(
        "panel",
        "show or hide tree, to-dos, files and jobs",
        panel,
        "Side panel",
        key="ctrl+b",
        needs_screen=True,
        place=290,
    ),
    Command(
        "view",
        "switch between the whole conversation and what the model sees of it",
        view,
        "What the model sees",
        key="ctrl+o",
        needs_screen=True,
        place=295,
    ),
    Command(
        "settings",
        "show and change every setting",
        settings,
        "Settings",
        argument="[reload]",
        needs_screen=True,
        place=380,
    ),
)
