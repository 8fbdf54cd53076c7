"""Changes the model of a session: says how the conversation fits the new one, and asks when it does not."""

from typing import TYPE_CHECKING

from tui_agent.ui.abilities import SwitchingAgent
from tui_agent.ui.format import money, short_model, tokens

if TYPE_CHECKING:
    from tui_agent.context.budget import ContextSize, SwitchAhead
    from tui_agent.ui.screens.main import MainScreen


async def use_model(main: "MainScreen", model: str) -> bool:
    """Use a model from the next request on, and at the next start; what does not fit it is asked about first.

    To be run in a worker. Returns whether the model changed.
    """
    agent: object = main.agent
    if main.agent is None:
        return False
    if not isinstance(agent, SwitchingAgent) or model == main.agent.model or not agent.context_size().history:
        _switch(main, model)
        return True
    ahead = await agent.inspector.ahead(model)
    if main.agent is not agent:
        return False
    if ahead.fits or agent.running or agent.session.read_only:
        _switch(main, model)
        main.say(_told(main, model, ahead))
        return True
    answer = await _ask(main, agent, model, ahead)
    if answer == "compact" and main.agent is agent:
        return await _compact_then_switch(main, agent, model)
    if answer == "switch" and main.agent is agent:
        _switch(main, model)
    return answer == "switch"


def _switch(main: "MainScreen", model: str) -> None:
    if main.agent is not None:
        main.agent.change_model(model)
        main.services.save_setting("model", model)
        main.show_facts()
        main.run_soon(_learn_of(main, model))


async def _learn_of(main: "MainScreen", model: str) -> None:
    """Ask the server of a model how large its window is, where only that knows; nothing waits for it."""
    if await main.services.ask_servers(model):
        main.show_facts()


async def _ask(main: "MainScreen", agent: SwitchingAgent, model: str, ahead: "SwitchAhead") -> str | None:
    from tui_agent.ui.screens.choice import ChoiceScreen

    old, new = short_model(agent.model), short_model(model)
    rest = f", {tokens(ahead.pruned)} with old outputs pruned" if ahead.pruned < ahead.after.total else ""
    details = (
        f"The next request takes {_size(ahead.before)} of {old}'s window.\n"
        f"With {new} it would take {_size(ahead.after)}{rest}: too much to go on as it is."
    )
    answers = [
        ("compact", f"Have {old} compact it for {new} first, then switch"),
        ("switch", f"Switch; {new} prunes and compacts before its first answer"),
        ("stay", f"Stay with {old}"),
    ]
    return await main.app.push_screen_wait(ChoiceScreen(f"The conversation does not fit {new}", answers, details))


async def _compact_then_switch(main: "MainScreen", agent: SwitchingAgent, model: str) -> bool:
    old = short_model(agent.model)
    outcome = await agent.compact(for_model=model)
    if outcome.problem is not None:
        main.say(f"Still with {old}: {outcome.problem}", "warning")
        return False
    if main.agent is agent:
        _switch(main, model)
    return main.agent is agent


def _told(main: "MainScreen", model: str, ahead: "SwitchAhead") -> str:
    """Return what the next request comes to; all of it is read anew by a model that has not seen it."""
    dollars = main.services.reread_cost(model, ahead.pruned)
    price = f", about {money(dollars)} more than from a cache" if dollars and dollars >= 0.01 else ""
    pruned = f", pruned to {tokens(ahead.pruned)}" if ahead.pruned < ahead.after.total else ""
    return (
        f"{short_model(model)}: the next request takes {_size(ahead.after)}{pruned}; "
        f"before it was {_size(ahead.before)}. It is read anew{price}."
    )


def _size(size: "ContextSize") -> str:
    about = "~" if size.estimated else ""
    return f"{about}{tokens(size.total)} of {tokens(size.window)} ({size.percent:.0f}%)"
