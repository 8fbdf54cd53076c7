"""What the commands about the context do: look at it, compact it, prune it, bring things back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.ui.services import InspectedAgent

if TYPE_CHECKING:
    from tui_agent.ui.screens.main import MainScreen


async def context(main: MainScreen, _argument: str) -> None:
    """Show the next request block by block."""
    from tui_agent.ui.screens.context import ContextScreen

    agent: object = main.agent
    if isinstance(agent, InspectedAgent):
        main.app.push_screen(ContextScreen(agent, main.services.reread_cost))


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
        for block in agent.context_map().blocks
        if block.origin and block.origin[0] in wanted and block.state not in {"live", "pinned"}
    ]
    if not hidden:
        main.say("Nothing of it is out of the context any more.")
        return
    for target in hidden:
        agent.edit_context(target, "restore")
    what = f"#{hidden[0]}" if len(hidden) == 1 else plural(len(hidden), "output")
    main.say(f"{what} back in the context from the next request on.")
