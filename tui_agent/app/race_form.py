"""The form of a race: asks for the task, runners, check, limits, and whose work to take at the end.

A race runs several agents, the runners, on one prompt. The form only returns a changed order, which
describes the race; race_commands.py checks the order and begins the race.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from tui_agent.agent.race.specs import COMPACTED, LEAST_RUNNERS, MOST_RUNNERS, PRUNED, WHOLE
from tui_agent.app.format import (
    count_in,
    dollars_in,
    dotted,
    one_line,
    plural,
    short_model,
    visible,
)
from tui_agent.app.frontend import Choice, LongText, TextLine
from tui_agent.session.effort import Effort

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui_agent.agent.race.race import RaceOrder
    from tui_agent.agent.race.specs import Pick, RunnerSpec
    from tui_agent.app.controller import Controller

PICKS: Final[dict[Pick, str]] = {
    "none": "one that I choose",
    "first-green": "the first that passes",
    "best": "the best of all",
}
"""Texts for the ways to choose the runner whose work is taken when the race is over."""
T = TypeVar("T")
AS_HERE: Final = ""
"""Name of the answer that gives a runner the same effort or mode as the conversation."""


async def ask_for_order(
    controller: Controller,
    order: RaceOrder,
    here: RunnerSpec,
    modes: Sequence[str],
    price: Callable[[RaceOrder], str],
    title: str,
) -> RaceOrder | None:
    """Let the user edit the order of a race, until they start the race or cancel.

    Returns the order, which describes the race, or None if the user cancels. ``here`` contains the
    conversation's model, effort and mode; ``modes`` are the modes to choose from. ``price`` returns
    a sentence about the maximum cost of an order.
    """
    at = "start"
    if not order.prompt:
        task = await controller.ask(LongText("What should each attempt do?", "", "next"))
        if task is None:
            return None
        order = replace(order, prompt=task)
    while True:
        at = await controller.ask(Choice(title, _rows(order, here), price(order), at=at)) or ""
        specs = list(order.specs)
        match at.split():
            case ["start"] if order.prompt:
                return order
            case ["start" | "task"]:
                task = await controller.ask(LongText("What should each attempt do?", order.prompt))
                order = replace(order, prompt=task or order.prompt)
            case ["runner", number]:
                place = int(number)
                changed = await _change(controller, order, place, here, modes)
                order = replace(order, specs=(*specs[:place], *changed, *specs[place + 1 :]))
            case ["add"]:
                order = replace(order, specs=(*specs, specs[-1]))
            case [row]:
                order = await _with_option(controller, order, row)
            case _:
                return None


async def _with_option(controller: Controller, order: RaceOrder, row: str) -> RaceOrder:
    """Ask for an option of the race (check, limit, steps or pick); return the changed order."""
    match row:
        case "check":
            question = TextLine("Check: a command, such as make test", order.check)
            check = await controller.ask(question)
            if check is None:
                return order
            return replace(order, check=check)
        case "limit":
            amount = "" if order.cost is None else f"{order.cost:g}"
            question = TextLine("US dollars for each runner; empty: no limit", amount)
            return replace(order, cost=await _number(controller, question, dollars_in, order.cost))
        case "steps":
            label = "Maximum steps of each runner; empty: no limit"
            question = TextLine(label, str(order.steps or ""))
            return replace(order, steps=await _number(controller, question, count_in, order.steps))
        case _:
            picks = Choice(
                "Which runner should be taken at the end?", list(PICKS.items()), at=order.pick
            )
            pick = await controller.ask(picks)
            for one in PICKS:
                if one == pick:
                    return replace(order, pick=one)
            return order


def _rows(order: RaceOrder, here: RunnerSpec) -> list[tuple[str, str]]:
    if order.cost is None:
        limit = "none"
    else:
        limit = f"${order.cost:g} for each runner"
    if order.steps is None:
        end = "when its work is done"
    else:
        end = f"after {plural(order.steps, 'step')}"
    rows = [
        ("start", "Start the race"),
        ("task", f"Task      {one_line(order.prompt, 60) or 'none yet'}"),
    ]
    for place, spec in enumerate(order.specs):
        if spec.effort or here.effort:
            effort = f"effort {spec.effort or here.effort}"
        else:
            effort = ""
        facts = (
            short_model(spec.model or here.model),
            effort,
            visible(spec.mode or here.mode),
            spec.context,
        )
        rows.append((f"runner {place}", f"Runner {place + 1}  {dotted(*facts)}"))
    if len(order.specs) < MOST_RUNNERS:
        rows.append(("add", "Add a runner"))
    rows += [
        ("check", f"Check     {one_line(order.check, 60) or 'none'}"),
        ("limit", f"Limit     {limit}"),
        ("steps", f"Ends      {end}"),
    ]
    return [*rows, ("take", f"Take      {PICKS[order.pick]}")]


async def _number(
    controller: Controller, question: TextLine, read: Callable[[str], T], now: T | None
) -> T | None:
    """Ask for a number until ``read`` can parse the typed text, and return the number.

    Returns None for an empty text, and the current number ``now`` if the user cancels.
    """
    while (text := await controller.ask(question)) is not None:
        if not text:
            return None
        try:
            return read(text)
        except ValueError:
            question = replace(question, text=text, details="That is not a number above 0.")
    return now


async def _change(
    controller: Controller, order: RaceOrder, place: int, here: RunnerSpec, modes: Sequence[str]
) -> list[RunnerSpec]:
    """Ask how to change the runner at the index ``place``; return a list with the changed runner.

    The list contains the unchanged runner if the user cancels, and is empty if they remove the
    runner.
    """
    spec = order.specs[place]
    number = f"runner {place + 1}"
    answers = [
        ("model", "Another model"),
        ("effort", "Another effort"),
        ("mode", "Another mode or agent"),
        ("context", "Another context"),
    ]
    if len(order.specs) > LEAST_RUNNERS:
        answers.append(("remove", "Remove it"))
    part = await controller.ask(Choice(f"Change {number}", answers))
    if part is None:
        return [spec]
    if part == "remove":
        return []
    if part == "model":
        from tui_agent.app.model_commands import ask_for_model

        value = await ask_for_model(controller, spec.model or here.model)
    else:
        value = await controller.ask(_question(part, number, spec, here, modes=modes))
    if value is None:
        return [spec]
    return [_with(spec, part, value, here)]


def _question(
    part: str, number: str, spec: RunnerSpec, here: RunnerSpec, *, modes: Sequence[str]
) -> Choice:
    match part:
        case "effort":
            levels = [(AS_HERE, f"as here: {here.effort or 'default'}")]
            levels += [(level, level) for level in Effort]
            return Choice(f"How much {number} thinks", levels, at=spec.effort or AS_HERE)
        case "mode":
            kinds = [(AS_HERE, f"as here: {here.mode}")]
            kinds += [(mode, one_line(mode, 40)) for mode in modes]
            return Choice(f"The mode or agent of {number}", kinds, at=spec.mode or AS_HERE)
        case _:
            seen = [
                (WHOLE, "all of it"),
                (PRUNED, "all but old outputs"),
                (COMPACTED, "a summary"),
            ]
            if spec.context not in {"", PRUNED, COMPACTED}:
                seen.append((spec.context, spec.context))
            return Choice(f"What {number} sees", seen, at=spec.context or WHOLE)


def _with(spec: RunnerSpec, part: str, value: str, here: RunnerSpec) -> RunnerSpec:
    """Return ``spec`` with its ``part`` (model, effort, mode or context) set to ``value``.

    An empty value stands for the conversation's own value. The conversation's model and its whole
    context are stored as "", too.
    """
    match part:
        case "model":
            return replace(spec, model="" if value == here.model else value)
        case "effort":
            return replace(spec, effort=Effort(value) if value else None)
        case "mode":
            return replace(spec, mode=value)
        case _:
            return replace(spec, context="" if value == WHOLE else value)
