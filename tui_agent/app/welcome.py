"""The questions at the first start: whether to trust the project, and which model to use.

``/trust`` also asks the first question. The screen decides when to ask, the services save the
answer about trust, and commands choose the model.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.app.format import one_line, plural, short_path
from tui_agent.app.frontend import Choice, SessionChoice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_agent.agent.programs.found import ModelOffer
    from tui_agent.app.controller import Controller
    from tui_agent.app.services import AppServices
    from tui_agent.trust import ProjectState, TrustDecision

KEYS_SHOWN = 6
"""Maximum number of API keys that are listed; the others are counted."""

OFFERS_SHOWN = 3
"""Maximum number of other programs' models that are listed; the others are counted."""

_TRUST: dict[str, TrustDecision] = {"y": "trusted", "v": "refused"}
"""The decision that each answer to the question about trust stands for.

An answer that is not listed, such as "not now", decides nothing.
"""


async def ask_for_trust(controller: Controller) -> None:
    """Ask whether to trust the project's own settings, hooks and tools, if that is undecided."""
    if (state := controller.services.trust_question()) is not None:
        await ask_about(controller, state)


async def ask_about(controller: Controller, state: ProjectState) -> TrustDecision | None:
    """List the items of a project that need trust, and ask the user whether to trust them.

    Saves the decision, and returns it; None for "not now".
    """
    services = controller.services
    why = f"{plural(len(state.items), 'item')} of this project would take effect; none does yet."
    if state.problem:
        why = f"This project can't be trusted in its current state: {state.problem}."
    rows = trust_lines(state)
    if state.problem:
        trust = []
    else:
        trust = [("y", "yes, until one of them changes")]
    answers = [*trust, ("n", "not now: work without them"), ("v", "never: don't ask again")]
    asked = Choice(
        f"Do you trust {short_path(services.cwd)}?",
        answers,
        "\n".join(rows),
        why=why,
        at="n",
        wide=True,
        inline=True,
        unasked="n",
    )
    answer = _TRUST.get(await controller.ask(asked) or "")
    services.answer_trust(answer)
    return answer


def trust_lines(state: ProjectState) -> list[str]:
    """Return a line for each item that needs trust: kind, name, text, and its file.

    The file is left out if it is the item's name.
    """
    lines = []
    for row in state.items:
        place = ""
        if row.place not in {"", row.name}:
            place = f"({row.place})"
        parts = (f"{row.kind:<16}", one_line(row.name, 80), one_line(row.text, 160), place)
        lines.append("  ".join(filter(None, parts)))
    return lines


def begin_welcome(controller: Controller, prompt: str = "") -> None:
    """Start a task that asks for a model, and then puts ``prompt`` into the prompt."""

    def put_back(_task: object) -> None:
        if prompt and controller.agent is not None:
            controller.frontend.put_back(prompt)

    controller.choosing = controller.soon(welcome(controller))
    controller.choosing.add_done_callback(put_back)


def begin_with_list(controller: Controller, prompt: str = "") -> None:
    """Start a task that asks for a session, and then puts ``prompt`` into the prompt."""

    async def choose() -> None:
        current = controller.open_agent.session.id
        request = await controller.ask(SessionChoice(current))
        if request is not None and request.session_id != current:
            await controller.open(request)
        if prompt and controller.agent is not None:
            controller.frontend.put_back(prompt)

    if prompt:
        controller.soon(choose())
    else:
        controller.begin("sessions")


async def welcome(controller: Controller) -> None:
    """Ask how to get a model, and start the command that the user chooses.

    If they choose to log in, and the session then still has no model, asks again.
    """
    while True:
        offers = await asyncio.to_thread(_offers, controller.services)
        match await controller.ask(_question(controller.services, offers)):
            case "u":
                await _set_up(controller, offers)
            case "d":
                controller.begin("demo")
            case "m":
                controller.begin("model")
            case "l":
                # If the user logs in, the command also asks for a model; choosing one cancels this
                # task.
                await asyncio.shield(controller.begin("login"))
                if controller.agent is not None and not controller.agent.model:
                    continue
            case _:
                pass
        return


def _own_models(services: AppServices) -> list[str]:
    """Return the ids of the models in the settings that have an address."""
    return [model for model, its in services.config().models.items() if its.base_url]


def _offers(services: AppServices) -> list[ModelOffer]:
    """Return the models that other programs use; empty if the user's settings have models already.

    Reads the other programs' files, so call it in a thread.
    """
    from tui_agent.agent.programs.model_lists import offered_models

    if _own_models(services):
        return []
    return offered_models(Path.home())


async def _set_up(controller: Controller, offers: Sequence[ModelOffer]) -> None:
    """Save the offered models in the settings.

    Then switches to the model if it is the only one, otherwise lets the user choose.
    """
    from tui_agent.app.context_commands import reread_settings

    for offer in offers:
        controller.services.save_setting(offer.key, dict(offer.table))
    reread_settings(controller)
    said = (
        f"Added to {short_path(controller.services.config_path)}: {plural(len(offers), 'model')}."
    )
    if any(offer.leaves_key for offer in offers):
        said += (
            " API keys in other programs' files are not copied. Set api_key_env to the name of the "
            "environment variable that contains the key."
        )
    controller.say(said)
    if len(offers) == 1:
        controller.begin("model", offers[0].model)
    else:
        controller.begin("model")


def _question(services: AppServices, offers: Sequence[ModelOffer]) -> Choice:
    """Return the question that asks how to get a model.

    The question shows ``offers`` or, if there are none, how to set up a key or a server.
    """
    keys = services.provider_keys()
    own = _own_models(services)
    answers = [
        ("m", "choose a model of a provider or a server"),
        ("d", "start the demo: no API key, no network"),
        ("l", "log in: paste a provider's API key, or sign in"),
        ("w", "continue without a model"),
    ]
    state = "No API key is set."
    at = "d"
    if keys:
        state = "These API keys were found."
        at = "m"
    if own:
        state = f"{one_line(services.config_path.name, 30)} has {plural(len(own), 'model')}, but none is chosen."
        at = "m"
    lines = []
    for name, source in list(keys.items())[:KEYS_SHOWN]:
        lines.append(f"✓ {one_line(name, 18):<18}{one_line(source, 60)}")
    if len(keys) > KEYS_SHOWN:
        lines.append(f"  and {plural(len(keys) - KEYS_SHOWN, 'other provider')}")
    if offers:
        programs = ", ".join(dict.fromkeys(offer.program for offer in offers))
        answers.insert(0, ("u", f"add {plural(len(offers), 'model')} that you use in {programs}"))
        lines += _offer_lines(offers)
        at = "u"
    else:
        lines += [
            "To use an API key from the environment: export ANTHROPIC_API_KEY=…",
            f"Set up an OpenAI-compatible server in {short_path(services.config_path)}:",
            'model = "openai/my-model"',
            '[models."openai/my-model"]',
            'base_url = "http://localhost:8080/v1"',
        ]
    return Choice(
        "Welcome. tui-agent needs a model.",
        answers,
        "\n".join(lines),
        why=state,
        at=at,
        inline=True,
        by_tab=True,
    )


def _offer_lines(offers: Sequence[ModelOffer]) -> list[str]:
    """Return a line for each offer, up to `OFFERS_SHOWN`: program, model, address."""
    lines = []
    for offer in offers[:OFFERS_SHOWN]:
        address = one_line(str(offer.table["base_url"]), 60)
        lines.append(f"{offer.program:<10}{one_line(offer.model, 34):<36}{address}")
    if len(offers) > OFFERS_SHOWN:
        lines.append(f"  and {plural(len(offers) - OFFERS_SHOWN, 'other model')}")
    return lines
