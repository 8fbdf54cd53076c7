"""Changes how much the models of a session think: offers the levels the model has, and says what a change costs."""

from typing import TYPE_CHECKING, Final

from tui_agent.app.commands import Command
from tui_agent.app.format import one_line, short_model, tokens
from tui_agent.app.frontend import Choice
from tui_agent.app.switch_price import may_reread, reread_price
from tui_agent.errors import CommandError
from tui_agent.session.effort import DEFAULT_EFFORT, Effort

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent
    from tui_agent.app.controller import Controller
    from tui_agent.session.effort import EffortInForce

_HELP: Final = {
    Effort.OFF: "no thinking before the answer",
    Effort.MINIMAL: "hardly any",
    Effort.LOW: "a little: quick and cheap",
    Effort.MEDIUM: "for most work",
    Effort.HIGH: "for hard problems",
    Effort.MAX: "all it can: slow and expensive",
}


async def effort(controller: "Controller", argument: str) -> None:
    """Have the model think more or less; without a level show those it has."""
    if (agent := controller.agent) is None:
        return
    level = argument or await _choose(controller, agent)
    if not level or controller.agent is not agent:
        return
    try:
        chosen = None if level == DEFAULT_EFFORT else Effort(level)
    except ValueError:
        known = ", ".join((DEFAULT_EFFORT, *Effort))
        raise CommandError(f"There is no effort “{one_line(level, 40)}”; there are {known}.") from None
    if chosen != agent.effort.chosen and not await may_reread(controller, agent, f"Effort {level}?", agent.model):
        return
    use_effort(controller, agent, chosen)


async def _choose(controller: "Controller", agent: "Agent") -> str | None:
    """Show the levels the model has, the one that holds marked; return the one that is picked."""
    effort = agent.effort
    if not effort.levels:
        controller.say(f"{short_model(agent.model)} can't be told how much to think.")
        return None
    chosen = effort.chosen.nearest(effort.levels) if effort.chosen is not None else None
    at = str(chosen or DEFAULT_EFFORT)
    rows = [(DEFAULT_EFFORT, _preset(effort)), *((level, _HELP[level]) for level in Effort if level in effort.levels)]
    answers = [(key, f"{'●' if key == at else ' '} {key:<8}  {text}") for key, text in rows]
    details = "From the next request on, in this branch of the session."
    return await controller.ask(Choice(f"How much {short_model(agent.model)} thinks", answers, details, at))


def use_effort(controller: "Controller", agent: "Agent", effort: Effort | None) -> None:
    """Have models think so much from the next request on; None: as the settings say."""
    before = agent.effort.level
    agent.change_effort(effort)
    controller.frontend.refresh_facts()
    now = agent.effort
    if now.shortfall is not None or now.level == before:
        return
    when = "step" if agent.running else "request"
    controller.say(
        f"Effort {now.level or DEFAULT_EFFORT} from the next {when} on. {_reread(controller, agent)}".rstrip()
    )


def _preset(effort: "EffortInForce") -> str:
    return f"{effort.preset}, from the settings" if effort.preset is not None else "as the model's maker has it"


def _reread(controller: "Controller", agent: "Agent") -> str:
    """Return what the next request may read anew. OpenAI's and Anthropic's caches are kept apart for each level."""
    if not (cached := agent.inspector.cached_tokens()):
        return ""
    price = reread_price(controller, agent.model, cached)
    return f"The provider may read {tokens(cached)} tokens anew{price}: most keep a cache for each level."


COMMANDS = (
    Command("effort", "choose how much the model thinks", effort, "Effort", key="f9", argument="[LEVEL]", place=140),
)
