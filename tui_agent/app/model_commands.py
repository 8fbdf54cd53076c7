"""``/model``, ``/next-model`` and ``/effort`` choose the model and its reasoning effort.

They show what the change costs, and ask first if cached tokens would be read again or if the
conversation doesn't fit the model's window. A model is also saved in the settings, unless it was
chosen for this session only; an effort is not.
"""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tui_agent.app.commands import Command
from tui_agent.app.format import about_cost, money, one_line, short_model, tokens
from tui_agent.app.frontend import Choice, ModelChoice, ModelPick, Severity
from tui_agent.app.services import OpenRequest
from tui_agent.errors import CommandError, UserFacingError, problem_of
from tui_agent.session.effort import DEFAULT_EFFORT, Effort, EffortInForce

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent
    from tui_agent.app.controller import Controller
    from tui_agent.context.budget import ContextSize, SwitchAhead

_HELP: Final = {
    Effort.OFF: "no thinking before the answer",
    Effort.MINIMAL: "very little",
    Effort.LOW: "a little: quick and cheap",
    Effort.MEDIUM: "for most work",
    Effort.HIGH: "for hard problems",
    Effort.XHIGH: "for the hardest problems: slow",
    Effort.MAX: "as much as possible: slow and expensive",
}


USED_SESSIONS: Final = 40
"""Number of sessions, newest first, in which to look for recently used models."""
MAX_MODELS_USED: Final = 5
"""Maximum number of models that count as recently used."""
_NO_KEY: Final = "has no API key"
"""Words by which a message about a model is recognised as a warning."""


@Command(
    "model",
    "use another model",
    key="f2",
    argument="[ID]",
    place=110,
    words="switch, change, provider, server, llm",
)
async def model(controller: "Controller", argument: str) -> None:
    """Read the settings again, and switch to a model or let the user choose one.

    Models that were added to the settings file since the program started can then be chosen, too.
    """
    from tui_agent.app.context_commands import follow_settings

    problem = follow_settings(controller)
    if not argument:
        await _pick_model(controller)
        return
    if await _is_part_of_name(controller, argument):
        await _pick_model(controller, search=argument)
        return
    try:
        await choose_model(controller, argument)
    except CommandError as error:
        # Only one message is visible at a time, and invalid settings may be the reason why the
        # model is unknown.
        raise CommandError(f"{problem} {error}".strip()) from None


async def _is_part_of_name(controller: "Controller", text: str) -> bool:
    """Return True if ``text`` isn't the name of a model, but may be a part of one, such as "opus".

    Always False without a screen, because the user can't choose from a list of models there.
    """
    from tui_agent.model.naming import NameStanding

    if "/" in text or not controller.frontend.has_screen or controller.agent is None:
        return False
    verdict = await asyncio.to_thread(controller.services.judge_model, text)
    return verdict.standing is NameStanding.IMPOSSIBLE and not verdict.only


async def _pick_model(controller: "Controller", search: str = "") -> None:
    """Let the user pick a model from the list (first filtered by ``search``), and switch to it."""
    choice = ModelChoice(controller.open_agent.model, switches=True, search=search)
    pick = await controller.ask(choice)
    if pick is not None:
        save_server(controller, pick)
        await choose_model(controller, pick.model, only_here=pick.only_here)


@Command(
    "next-model",
    "switch to the next recently used model, in this session",
    key="shift+f2",
    place=298,
    words="cycle, switch, change, rotate",
)
async def next_model(controller: "Controller", _argument: str) -> None:
    current = controller.open_agent.model
    models = await _models_used(controller)
    later = [model for model in models if model > current]
    others = later or [model for model in models if model != current]
    if not others:
        controller.say("No other model was used recently. /model lists all.")
        return
    await use_model(controller, others[0], only_here=True)


async def _models_used(controller: "Controller") -> list[str]:
    """Return the ids of at most `MAX_MODELS_USED` recently used models that can be used now.

    Models of the open session are preferred, then the model in the settings, then the last model of
    each other session. The result is sorted by id, because a switch changes the order of use.
    """
    from tui_agent.model.demo import DEMO_MODEL

    services = controller.services
    rows = await asyncio.to_thread(services.models)
    without_key = {row.id for row in rows if not row.has_key}
    candidates = [
        *_models_of(controller.open_agent),
        services.config().model or "",
        *(info.model for info in services.store.sessions(limit=USED_SESSIONS)),
    ]
    used: list[str] = []
    for model in candidates:
        is_usable = model not in {"", DEMO_MODEL, *without_key}
        if is_usable and model not in used:
            used.append(model)
    return sorted(used[:MAX_MODELS_USED])


def _models_of(agent: "Agent") -> list[str]:
    """Return the ids of the models used on the session path, newest first, with repetitions."""
    from tui_agent.session.entries import AssistantEntry, ModelChangeEntry, SystemEntry

    models = [agent.model]
    for entry in reversed(agent.session.active_path()):
        if isinstance(entry, SystemEntry | AssistantEntry | ModelChangeEntry):
            models.append(entry.model)
    return models


async def ask_for_model(controller: "Controller", current: str) -> str | None:
    """Ask the user for a model, save its server's address if needed, and return the model's id.

    Returns None if the user cancels.
    """
    pick = await controller.ask(ModelChoice(current))
    if pick is None:
        return None
    save_server(controller, pick)
    return pick.model


def save_server(controller: "Controller", pick: ModelPick) -> None:
    """Save the base URL of the server on which the model was found, if ``pick.server`` has one.

    If another model of that server has an ``api_key_env`` in the settings, saves the same for this
    model.
    """
    from tui_agent.agent.programs.found import quoted_key
    from tui_agent.app.context_commands import reread_settings

    if not pick.server:
        return
    variables = [
        settings.api_key_env
        for settings in controller.services.config().models.values()
        if settings.base_url == pick.server and settings.api_key_env
    ]
    table = f"models.{quoted_key(pick.model)}"
    controller.services.save_setting(f"{table}.base_url", pick.server)
    if variables:
        controller.services.save_setting(f"{table}.api_key_env", variables[0])
    reread_settings(controller)


async def choose_model(controller: "Controller", name: str, *, only_here: bool = False) -> bool:
    """Switch to a model, after asking if the name is unknown; return whether the model is used now.

    If only one known model fits the name, switches to that one without asking. For the demo's
    model, opens a demo session instead and returns False. Raises `CommandError` if no known
    provider could have such a model, if the name is unknown and no session is open, or if the demo
    needs a screen or is already open.
    """
    from tui_agent.model.demo import DEMO_MODEL
    from tui_agent.model.naming import NameStanding

    if name == DEMO_MODEL:
        if not controller.frontend.has_screen:
            raise CommandError("Run the demo as a separate program: tui-agent --demo.")
        if controller.agent is not None and controller.agent.model == DEMO_MODEL:
            raise CommandError("This session is the demo already. /new begins another one.")
        await controller.open(OpenRequest(demo=True))
        return False
    verdict = await asyncio.to_thread(controller.services.judge_model, name)
    if verdict.standing is NameStanding.KNOWN:
        return await use_model(controller, name, only_here=only_here)
    if verdict.only:
        used = await use_model(controller, verdict.only, only_here=only_here)
        if used:
            controller.say(verdict.taken)
        return used
    if verdict.standing is NameStanding.IMPOSSIBLE or controller.agent is None:
        raise CommandError(f"{verdict.sentence} The model was not changed.")
    answers = [(known, f"Use {known}") for known in verdict.similar]
    answers += [
        (name, f"Use {one_line(name, 60)} as typed, because its provider may know it"),
        ("", f"Keep {controller.agent.model}"),
    ]
    question = f"The catalog has no model “{one_line(name, 60)}”."
    details = "Until you set it up in config.toml, its window is assumed and its price is unknown."
    chosen = await controller.ask(Choice(question, answers, details))
    if chosen:
        return await use_model(controller, chosen, only_here=only_here)
    return False


def reread_price(controller: "Controller", model: str, cached: int) -> str:
    """Return the extra cost of reading ``cached`` tokens again, as ", about $0.25 more".

    Returns "" if it is below a cent or unknown.
    """
    dollars = controller.services.cache_miss_cost(model, cached)
    if dollars and dollars >= 0.01:
        return about_cost(dollars, " more")
    return ""


async def may_reread(controller: "Controller", agent: "Agent", what: str, model: str) -> bool:
    """Ask whether to make a change if ``model`` must then read cached tokens again.

    Returns the user's decision. ``what`` is the question, such as "Switch to opus?". Returns True
    without asking if nothing is cached. Compacts the history first if the user chooses that.
    Returns False if that fails, or if another session was opened meanwhile.
    """
    cached = agent.inspector.cached_tokens()
    if not cached:
        return True
    price = reread_price(controller, model, cached)
    details = f"{tokens(cached)} tokens of this conversation are cached. All are read again{price}."
    answers = [
        ("yes", "Yes"),
        ("compact", "Yes, but compact first"),
        ("no", "No, leave it as it is"),
    ]
    answer = await controller.ask(Choice(what, answers, details))
    if answer == "compact" and controller.agent is agent:
        outcome = await agent.compact()
        if outcome.problem is not None:
            controller.say(f"Not compacted: {outcome.problem}", "warning")
            return False
    return answer in {"yes", "compact"} and controller.agent is agent


async def use_model(controller: "Controller", model: str, *, only_here: bool = False) -> bool:
    """Use a model from the next request on and, unless ``only_here``, also after a restart.

    A model without a key is used in this session only. Asks first if the conversation doesn't fit
    the model's window, or if cached tokens would have to be read again. Returns whether the model
    is used now. Raises `CommandError` if the user wants to compact the conversation first and that
    fails, or if the model can't be saved and so is used in this session only.
    """
    agent = controller.open_agent
    if model == agent.model or not agent.context_size().history:
        note = await _switch(controller, model, only_here=only_here)
        controller.say(note, "warning" if _NO_KEY in note else "information")
        return True
    ahead = await agent.context.ahead(model)
    if controller.agent is not agent:
        return False
    if ahead.fits or agent.running or agent.session.read_only:
        if may := await may_reread(controller, agent, f"Switch to {short_model(model)}?", model):
            note = await _switch(controller, model, only_here=only_here)
            severity: Severity = "warning" if _NO_KEY in note else "information"
            controller.say(f"{_size_sentence(controller, model, ahead)} {note}", severity)
        return may
    answer = await _ask_how_to_fit(controller, agent, model, ahead)
    if answer == "compact" and controller.agent is agent:
        outcome = await agent.compact(for_model=model)
        if outcome.problem is not None:
            raise CommandError(f"Still using {short_model(agent.model)}: {outcome.problem}")
    if answer in {"compact", "switch"} and controller.agent is agent:
        note = await _switch(controller, model, only_here=only_here)
        controller.say(note, "warning" if _NO_KEY in note else "information")
        return True
    return False


async def _switch(controller: "Controller", model: str, *, only_here: bool) -> str:
    """Switch to a model, and save it in the settings unless ``only_here`` or it has no API key.

    Returns a sentence for the user that says where the model is used. Raises `CommandError` if the
    model is used, but can't be saved.
    """
    controller.open_agent.change_model(model)
    controller.frontend.refresh_facts()
    controller.soon(_learn_of(controller, model))
    rows = await asyncio.to_thread(controller.services.models)
    if any(not row.has_key for row in rows if row.id == model):
        return f"{model} {_NO_KEY} and is used in this session only. /login adds a key."
    if only_here:
        return f"{model} is used in this session only."
    try:
        controller.services.save_setting("model", model)
    except (UserFacingError, OSError) as error:
        raise CommandError(
            f"{model} is used in this session only. {problem_of(error).sentence}"
        ) from None
    return f"{model} is used here and from the next start on."


async def _learn_of(controller: "Controller", model: str) -> None:
    """Ask the model's server about the model if needed, and prepare the agent's next request."""
    await controller.services.ask_servers(model)
    if controller.agent is not None:
        await controller.agent.warm()
    controller.frontend.refresh_facts()


async def _ask_how_to_fit(
    controller: "Controller", agent: "Agent", model: str, ahead: "SwitchAhead"
) -> str | None:
    """Ask how to continue with a conversation that is too long for the model's context window.

    The user can compact it, switch to the model anyway, or stay with the current model. Returns
    None if the user cancels.
    """
    old = short_model(agent.model)
    new = short_model(model)
    rest = ""
    if ahead.pruned < ahead.after.total:
        rest = f", {tokens(ahead.pruned)} with old outputs cleared"
    details = (
        f"The next request takes {_size(ahead.before)} of {old}'s window.\n"
        f"With {new} it would take {_size(ahead.after)}{rest}, which is too much."
    )
    answers = [
        ("compact", f"Have {old} compact it for {new} first, then switch"),
        ("switch", "Switch; clear old outputs and compact before the first answer"),
        ("stay", f"Stay with {old}"),
    ]
    return await controller.ask(
        Choice(f"The conversation does not fit {new}.", answers, details, unasked="switch")
    )


def _size_sentence(controller: "Controller", model: str, ahead: "SwitchAhead") -> str:
    """Return sentences about the next request: its size now and before, and the extra cost."""
    dollars = controller.services.cache_miss_cost(model, ahead.pruned)
    price = ""
    if dollars and dollars >= 0.01:
        price = f", about {money(dollars)} more than from a cache"
    if ahead.pruned < ahead.after.total:
        pruned = f", {tokens(ahead.pruned)} with old outputs cleared"
    else:
        pruned = ""
    return (
        f"{short_model(model)}: the next request takes {_size(ahead.after)}{pruned}; "
        f"before, it was {_size(ahead.before)}. The request is read uncached{price}."
    )


def _size(size: "ContextSize") -> str:
    about = "~" if size.estimated else ""
    return f"{about}{tokens(size.total)} of {tokens(size.window)} ({size.percent:.0f}%)"


@Command(
    "effort",
    "choose how much the model thinks",
    key="f9",
    argument="[LEVEL]",
    place=140,
    aliases=("thinking",),
    words="reasoning, level",
)
async def effort(controller: "Controller", argument: str) -> None:
    agent = controller.open_agent
    level = argument or await _choose(controller, agent)
    if not level or controller.agent is not agent:
        return
    try:
        if level == DEFAULT_EFFORT:
            chosen = None
        else:
            chosen = Effort(level)
    except ValueError:
        known = ", ".join((DEFAULT_EFFORT, *Effort))
        raise CommandError(
            f"There is no effort “{one_line(level, 40)}”. The levels are {known}."
        ) from None
    if chosen != agent.effort.chosen and not await may_reread(
        controller, agent, f"Use effort {level}?", agent.model
    ):
        return
    use_effort(controller, agent, chosen, level)


@Command(
    "next-effort",
    "switch to the model's next effort level; after the highest, to its default",
    key="alt+t",
    place=299,
    words="thinking, reasoning, level, cycle, rotate",
)
async def next_effort(controller: "Controller", _argument: str) -> None:
    """Switch to the model's next effort level, without asking the user.

    The message to the user says what the change may cost.
    """
    agent = controller.open_agent
    if not agent.effort.levels:
        controller.say(_without_levels(agent))
        return
    for level in _next_levels(agent.effort):
        if replace(agent.effort, chosen=level).level != agent.effort.level:
            use_effort(controller, agent, level)
            return
    controller.say(f"{short_model(agent.model)} has no other effort level.")


def _next_levels(effort: EffortInForce) -> list[Effort | None]:
    """Return the model's effort levels after the chosen one, and then those before it.

    The levels are to be tried in this order. None stands for the model's default level.
    """
    levels = [None, *(level for level in Effort if level in effort.levels)]
    at = 0
    if effort.chosen is not None:
        at = levels.index(effort.chosen.nearest(effort.levels))
    return [*levels[at + 1 :], *levels[:at]]


def _without_levels(agent: "Agent") -> str:
    return f"{short_model(agent.model)} has no effort levels."


async def _choose(controller: "Controller", agent: "Agent") -> str | None:
    effort = agent.effort
    if not effort.levels:
        controller.say(_without_levels(agent))
        return None
    if effort.chosen is not None:
        chosen = effort.chosen.nearest(effort.levels)
    else:
        chosen = None
    at = str(chosen or DEFAULT_EFFORT)
    if effort.preset is None:
        preset = "the model's default"
    else:
        preset = f"{effort.preset}, from the settings"
    rows = {DEFAULT_EFFORT: preset}
    for level in Effort:
        if level in effort.levels:
            rows[level] = _HELP[level]
    answers: list[tuple[str, str]] = []
    for key, text in rows.items():
        mark = "●" if key == at else " "
        answers.append((key, f"{mark} {key:<8}  {text}"))
    details = "From the next request on, in this branch of the session."
    return await controller.ask(
        Choice(f"How much {short_model(agent.model)} thinks", answers, details, at)
    )


def use_effort(
    controller: "Controller", agent: "Agent", effort: Effort | None, named: str = ""
) -> None:
    """Set the reasoning effort from the next request on; tell the user if that changes the level.

    None stands for the default of the settings or the model. ``named`` is the name that the user
    typed. If that is another program's name for the level, tells the user what the level is called
    here.
    """
    before = agent.effort.level
    agent.change_effort(effort)
    controller.frontend.refresh_facts()
    now = agent.effort
    if now.shortfall is not None:
        return
    said: list[str] = []
    if effort is not None and named not in {"", effort}:
        said.append(f"The level {named} is called {effort} here.")
    if now.level != before:
        said.append(_change_of_effort(controller, agent))
    if said:
        controller.say(" ".join(said))


def _change_of_effort(controller: "Controller", agent: "Agent") -> str:
    """Return sentences about the effort that is now in use, and what the change may cost."""
    when = "step" if agent.running else "request"
    sentence = f"Effort {agent.effort.level or DEFAULT_EFFORT} from the next {when} on."
    if cached := agent.inspector.cached_tokens():
        # OpenAI and Anthropic keep a separate cache for each effort level.
        price = reread_price(controller, agent.model, cached)
        sentence += (
            f" The provider may read {tokens(cached)} tokens again{price}, because most "
            "providers have a separate cache for each level."
        )
    return sentence
