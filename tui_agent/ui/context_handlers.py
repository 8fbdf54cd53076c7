"""What the commands about the context do: look at it, compact it, prune it, bring things back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.ui.abilities import CompactingAgent, DraftingAgent, InspectedAgent

if TYPE_CHECKING:
    from tui_agent.ui.screens.main import MainScreen


async def context(main: MainScreen, _argument: str) -> None:
    """Show the next request block by block."""
    from tui_agent.ui.screens.context import ContextScreen

    agent: object = main.agent
    if isinstance(agent, InspectedAgent):
        main.app.push_screen(ContextScreen(agent, main.services.reread_cost))


async def compact(main: MainScreen, argument: str) -> None:
    """Summarise the history: with a focus at once, otherwise after a look at what goes and what stays."""
    agent: object = main.agent
    if not isinstance(agent, CompactingAgent):
        return
    if argument or not isinstance(agent, DraftingAgent) or agent.running:
        main.run_soon(agent.compact(argument or None))
        return
    from tui_agent.ui.screens.compact import CompactScreen

    main.app.push_screen(CompactScreen(agent))


async def prune(main: MainScreen, _argument: str) -> None:
    """Prune old tool outputs, after a look at which and at what that costs."""
    from tui_agent.ui import plans
    from tui_agent.ui.format import plural
    from tui_agent.ui.screens.choice import ChoiceScreen
    from tui_agent.ui.widgets.context_map.price import Edit, plan_edit

    agent: object = main.agent
    if not isinstance(agent, InspectedAgent):
        return
    if agent.running:
        main.say("The agent is working: press Escape first.", "warning")
        return
    plan = await agent.plan_prune()
    if plan is None:
        main.say("There is no old tool output that is worth pruning.")
        return
    blocks, warm = agent.inspector.map().blocks, agent.inspector.cache_state().warm
    targets = set(plan.targets)
    places = [at for at, block in enumerate(blocks) if block.origin and block.origin[0] in targets]
    planned = plan_edit(blocks, places, "mask")
    edit = planned if isinstance(planned, Edit) else None
    dollars = main.services.reread_cost(agent.model, edit.reread) if warm and edit else None

    async def do_it() -> None:
        if await agent.prune():
            main.say(f"{plural(len(plan.targets), 'output')} pruned; /undo brings them back.")

    def answered(answer: str | None) -> None:
        if answer == "prune":
            main.run_soon(do_it())

    price = plans.prune_price(plan, edit, warm=warm, dollars=dollars)
    question = f"Prune {plural(len(plan.targets), 'old tool output')}?"
    details = f"{plans.prune_text(plan, blocks)}\n\n{price}"
    main.app.push_screen(ChoiceScreen(question, [("prune", "Prune"), ("keep", "Keep")], details), answered)


async def panel(main: MainScreen, _argument: str) -> None:
    """Show or hide the side panel."""
    if main.view is not None:
        main.view.toggle_panel()


async def settings(main: MainScreen, argument: str) -> None:
    """Show every setting as it is in the file, and follow that; with ``reload`` say only what changed."""
    from tui_agent.config import ConfigError
    from tui_agent.ui import following
    from tui_agent.ui.screens.settings import SettingsScreen

    try:
        told = following.told(following.follow(main))
    except ConfigError as error:
        told = str(error)
        main.notify(told, severity="error", markup=False)
    if argument == "reload":
        main.say(told)
    else:
        main.app.push_screen(SettingsScreen(main))


async def jump(main: MainScreen, entry_id: int) -> None:
    """Go to what a marker is about: the entry an edit changed, or the branch a summary tells of."""
    from tui_agent.session.entries import BranchSummaryEntry, ContextEditEntry

    entry = main.agent.session.entry(entry_id) if main.agent is not None else None
    match entry:
        case ContextEditEntry(target=target) if main.view is not None:
            if not main.view.transcript.jump_to(target):
                main.say(f"#{target} is not on this branch.")
        case BranchSummaryEntry(from_id=from_id):
            await main.run_command("tree", f"#{from_id}")
        case _:
            pass


async def restore(main: MainScreen, entry_id: int) -> None:
    """Show the model an entry again; for a prune, everything it took out that is still out."""
    from tui_agent.session.entries import PruneEntry
    from tui_agent.ui.format import plural

    agent: object = main.agent
    if not isinstance(agent, InspectedAgent):
        return
    entry = agent.session.entry(entry_id)
    wanted = set(entry.targets) if isinstance(entry, PruneEntry) else {entry_id}
    hidden = [
        block.origin[0]
        for block in agent.inspector.map().blocks
        if block.origin and block.origin[0] in wanted and block.state not in {"live", "pinned"}
    ]
    if not hidden:
        main.say("Nothing of it is out of the context any more.")
        return
    if agent.session.read_only:
        main.say("This session is open for reading only; /fork goes on in a copy.", "warning")
        return
    for target in hidden:
        agent.edit_context(target, "restore")
    what = f"#{hidden[0]}" if len(hidden) == 1 else plural(len(hidden), "output")
    main.say(f"{what} back in the context from the next request on.")
