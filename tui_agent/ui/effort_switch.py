"""Changes how much the models of a session think: offers the levels the model has, and says what a change costs."""

from typing import TYPE_CHECKING, Final

from tui_agent.session.effort import DEFAULT_EFFORT, Effort
from tui_agent.ui.abilities import InspectedAgent
from tui_agent.ui.format import money, short_model, tokens

if TYPE_CHECKING:
    from tui_agent.context.effort import EffortInForce
    from tui_agent.ui.screens.main import MainScreen
    from tui_agent.ui.services import AgentPort

_HELP: Final = {
    Effort.OFF: "no thinking before the answer",
    Effort.MINIMAL: "hardly any",
    Effort.LOW: "a little: quick and cheap",
    Effort.MEDIUM: "for most work",
    Effort.HIGH: "for hard problems",
    Effort.MAX: "all it can: slow and dear",
}


def choose_effort(main: "MainScreen", agent: "AgentPort") -> None:
    """Show the levels the model has, the one that holds marked; what is picked is used."""
    from tui_agent.ui.screens.choice import ChoiceScreen

    effort = agent.effort
    if not effort.levels:
        main.say(f"{short_model(agent.model)} can't be told how much to think.")
        return
    chosen = effort.chosen.nearest(effort.levels) if effort.chosen is not None else None
    at = chosen or DEFAULT_EFFORT
    rows = [(DEFAULT_EFFORT, _preset(effort)), *((level, _HELP[level]) for level in Effort if level in effort.levels)]
    answers = [(key, f"{'●' if key == at else ' '} {key:<8}  {text}") for key, text in rows]
    details = "From the next request on, in this branch of the session."

    def picked(key: str | None) -> None:
        if key is not None and main.agent is agent:
            use_effort(main, agent, None if key == DEFAULT_EFFORT else Effort(key))

    main.app.push_screen(
        ChoiceScreen(f"How much {short_model(agent.model)} thinks", answers, details, at=str(at)), picked
    )


def use_effort(main: "MainScreen", agent: "AgentPort", effort: Effort | None) -> None:
    """Have models think so much from the next request on; None: as the settings say."""
    before = agent.effort.level
    agent.change_effort(effort)
    main.show_facts()
    now = agent.effort
    if now.shortfall is not None or now.level == before:
        return
    # The conversation shows the change itself, during a run only when the step has ended.
    told = f"Effort {now.level or DEFAULT_EFFORT} from the next step on." if agent.running else ""
    if said := f"{told} {_reread(main, agent)}".strip():
        main.say(said)


def _preset(effort: "EffortInForce") -> str:
    return f"{effort.preset}, from the settings" if effort.preset is not None else "as the model's maker has it"


def _reread(main: "MainScreen", agent: object) -> str:
    """Return what the next request may read anew. OpenAI's and Anthropic's caches are kept apart for each level."""
    if not isinstance(agent, InspectedAgent) or not (cached := agent.inspector.cached_tokens()):
        return ""
    dollars = main.services.reread_cost(agent.model, cached)
    about = f", about {money(dollars)} more" if dollars and dollars >= 0.01 else ""
    return f"The provider may read {tokens(cached)} tokens anew{about}: most keep a cache for each level."
