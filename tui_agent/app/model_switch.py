"""Changes the model of a session: says how the conversation fits the new one, and asks when it does not."""

import asyncio
from typing import TYPE_CHECKING

from tui_agent.app.format import money, short_model, tokens
from tui_agent.app.frontend import Choice
from tui_agent.app.switch_price import may_reread
from tui_agent.errors import CommandError

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent
    from tui_agent.app.controller import Controller
    from tui_agent.context.budget import ContextSize, SwitchAhead


async def use_model(controller: "Controller", model: str) -> bool:
    """Use a model from the next request on, and at the next start; what does not fit it is asked about first.

    Returns whether the model changed.
    """
    agent = controller.agent
    if agent is None:
        return False
    if model == agent.model or not agent.context_size().history:
        if note := await _switch(controller, model):
            controller.say(note, "warning")
        return True
    ahead = await agent.context.ahead(model)
    if controller.agent is not agent:
        return False
    if ahead.fits or agent.running or agent.session.read_only:
        if may := await may_reread(controller, agent, f"Switch to {short_model(model)}?", model):
            note = await _switch(controller, model)
            controller.say(f"{_told(controller, model, ahead)} {note}".rstrip(), "warning" if note else "information")
        return may
    answer = await _ask(controller, agent, model, ahead)
    if answer == "compact" and controller.agent is agent:
        return await _compact_then_switch(controller, agent, model)
    if answer == "switch" and controller.agent is agent and (note := await _switch(controller, model)):
        controller.say(note, "warning")
    return answer == "switch"


async def _switch(controller: "Controller", model: str) -> str:
    """Use a model, at the next start too unless it has no key: return a sentence that says so."""
    if controller.agent is None:
        return ""
    controller.agent.change_model(model)
    controller.frontend.refresh_facts()
    controller.soon(_learn_of(controller, model))
    rows = await asyncio.to_thread(controller.services.models)
    if any(not row.has_key for row in rows if row.id == model):
        return f"{model} has no key and is used in this session only. /login adds a key."
    controller.services.save_setting("model", model)
    return ""


async def _learn_of(controller: "Controller", model: str) -> None:
    """Ask the server of a model how large its window is, where only that knows, and measure the next request."""
    await controller.services.ask_servers(model)
    if controller.agent is not None:
        await controller.agent.warm()
    controller.frontend.refresh_facts()


async def _ask(controller: "Controller", agent: "Agent", model: str, ahead: "SwitchAhead") -> str | None:
    old, new = short_model(agent.model), short_model(model)
    rest = f", {tokens(ahead.pruned)} with old outputs cleared" if ahead.pruned < ahead.after.total else ""
    details = (
        f"The next request takes {_size(ahead.before)} of {old}'s window.\n"
        f"With {new} it would take {_size(ahead.after)}{rest}: too much to continue as it is."
    )
    answers = [
        ("compact", f"Have {old} compact it for {new} first, then switch"),
        ("switch", "Switch; clear old outputs and compact before the first answer"),
        ("stay", f"Stay with {old}"),
    ]
    return await controller.ask(Choice(f"The conversation does not fit {new}.", answers, details, unasked="switch"))


async def _compact_then_switch(controller: "Controller", agent: "Agent", model: str) -> bool:
    old = short_model(agent.model)
    outcome = await agent.compact(for_model=model)
    if outcome.problem is not None:
        raise CommandError(f"Still with {old}: {outcome.problem}")
    if controller.agent is agent and (note := await _switch(controller, model)):
        controller.say(note, "warning")
    return controller.agent is agent


def _told(controller: "Controller", model: str, ahead: "SwitchAhead") -> str:
    """Return what the next request comes to; all of it is read anew by a model that has not seen it."""
    dollars = controller.services.reread_cost(model, ahead.pruned)
    price = f", about {money(dollars)} more than from a cache" if dollars and dollars >= 0.01 else ""
    pruned = f", {tokens(ahead.pruned)} with old outputs cleared" if ahead.pruned < ahead.after.total else ""
    return (
        f"{short_model(model)}: the next request takes {_size(ahead.after)}{pruned}; "
        f"before it was {_size(ahead.before)}. It is read anew{price}."
    )


def _size(size: "ContextSize") -> str:
    about = "~" if size.estimated else ""
    return f"{about}{tokens(size.total)} of {tokens(size.window)} ({size.percent:.0f}%)"
