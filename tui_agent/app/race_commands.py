"""``/race`` runs a prompt in several agents at once; ``/check`` sets a command that checks work.

Each of these agents, the runners, has its own branch and its own copy of the project. The commands
also control a race, and take a runner's work into the conversation. This module sets and clears
``Controller.race``; `Race` owns the runners and their copies.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from tui_agent.app.commands import Command, key_of
from tui_agent.app.format import count_in, dollars_in, money, one_line
from tui_agent.app.frontend import Choice, RacePage, Report
from tui_agent.app.moves import make_move
from tui_agent.app.race_text import RacePrice, entry_lines, race_lines
from tui_agent.errors import CommandError
from tui_agent.lazy import frozen
from tui_agent.whole_numbers import whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tui_agent.agent.agent import Agent
    from tui_agent.agent.race.race import Race, RaceOrder
    from tui_agent.agent.race.specs import RunnerSpec
    from tui_agent.app.controller import Controller
    from tui_agent.session.entries import RaceEntry, RaceRunner, UserPart
    from tui_agent.session.session import Session

T = TypeVar("T")

USAGE = (
    "/race RUNNERS [--check COMMAND] [--pick first-green] [--cost USD] [--steps N] -- PROMPT, for "
    "example: /race 3 -- Fix the test"
)
OPTIONS = frozenset({"check", "pick", "cost", "from", "steps"})
_ORDER = re.compile(r"""((?:"[^"]*"|'[^']*'|[^"'])*?)(?<!\S)--(?!\S)(.*)""", re.DOTALL)
"""Matches the argument of ``/race``: runners and options, an unquoted ``--``, and the prompt."""
GO_ON = "Go on with the work."
"""Title of a race without a prompt, in which the runners continue the unfinished work."""
NO_RACE = "There is no race. Begin one with " + USAGE
START = "y"
LEAVE = "n"

FORM_RUNNERS = 3
"""Number of runners in the race form when it opens."""


@frozen
class RaceWish:
    """A race as the user typed it, before its names of models and modes are looked up.

    ``start`` is the entry at which the race begins, None for the leaf. ``check`` is None for the
    project's saved check, "" for no check. ``cost`` (US dollars) and ``steps`` limit each runner.
    Without a ``prompt``, the runners continue the unfinished work.
    """

    prompt: str
    runners: str
    check: str | None = None
    pick: str = "none"
    cost: float | None = None
    start: int | None = None
    steps: int | None = None


# -- before it starts


def read_wish(text: str) -> RaceWish:
    """Parse the argument of ``/race``: ``RUNNERS [OPTIONS] -- PROMPT``.

    Without ``--``, the prompt is on the lines after the first. Without runners, there are three.
    Raises `CommandError` if a part is invalid, or if there is no prompt and not every runner names
    a context.
    """
    from tui_agent.agent.race.specs import all_name_contexts

    order = _ORDER.fullmatch(text)
    if order is not None:
        head, prompt = order.groups()
    else:
        head, _, prompt = text.partition("\n")
    runners, options = _options(head)
    if not prompt.strip() and not all_name_contexts(runners):
        raise CommandError(f"There is no prompt. Write: {USAGE}")
    start = None
    if "from" in options:
        start = whole_number(options["from"].lstrip("#"))
        if start is None:
            raise CommandError(
                f"“{options['from']}” is not an entry's number. Write, for example, --from 412."
            )
    return RaceWish(
        prompt.strip(),
        runners or "3",
        options.get("check"),
        pick=options.get("pick", "none"),
        cost=_read(dollars_in, options.get("cost"), "an amount of US dollars above 0"),
        start=start,
        steps=_read(count_in, options.get("steps"), "a number of steps above 0"),
    )


def _options(head: str) -> tuple[str, dict[str, str]]:
    """Split the text before the prompt into the runners and a dictionary of options.

    Raises `CommandError` for an unknown option or one without a value.
    """
    try:
        words = shlex.split(head)
    except ValueError:
        raise CommandError("A quotation mark is not closed.") from None
    options: dict[str, str] = {}
    runners: list[str] = []
    while words:
        word = words.pop(0)
        if not word.startswith("--"):
            runners.append(word)
            continue
        name, given, value = word[2:].partition("=")
        if name not in OPTIONS:
            raise CommandError(f"“{word}” is not an option. Use {USAGE}")
        if given:
            options[name] = value
        elif words:
            options[name] = words.pop(0)
        else:
            raise CommandError(f"“{word}” needs a value. Use {USAGE}")
    return " ".join(runners), options


def _read(read: Callable[[str], T], text: str | None, what: str) -> T | None:
    """Parse an option's value; None if there is none.

    Raises `CommandError` if the value is invalid; ``what`` says what the value should be.
    """
    if text is None:
        return None
    try:
        return read(text)
    except ValueError:
        raise CommandError(f"“{text}” is not {what}.") from None


async def order_of(controller: Controller, wish: RaceWish) -> RaceOrder:
    """Return the order for a race that the user typed: its runners, message parts and check.

    Raises `UserFacingError` if one of these is invalid.
    """
    from tui_agent.agent.race.race import RaceOrder
    from tui_agent.agent.race.specs import PICKS
    from tui_agent.files.ripgrep import shared_files

    agent = controller.open_agent
    if wish.pick not in PICKS:
        raise CommandError(f"“{wish.pick}” is not a value of --pick. Use {', '.join(PICKS)}.")
    session = agent.session
    start = wish.start
    if start is None:
        start = session.leaf
    else:
        session.entry(start)
    if wish.prompt:
        parts = await load_parts(controller, wish.prompt)
    else:
        parts = ()
    if wish.check is not None:
        check = wish.check
    else:
        check = controller.services.check_command(agent.ports.project)
    specs = await asyncio.to_thread(runner_specs, controller, wish.runners)
    await agent.warm()  # to show the context size before the start
    return RaceOrder(
        wish.prompt or GO_ON,
        parts,
        specs,
        start,
        check=check.strip(),
        pick=wish.pick,
        cost=wish.cost,
        steps=wish.steps,
        files=len(await shared_files(agent.ports.project)),
    )


async def load_parts(controller: Controller, text: str) -> tuple[UserPart, ...]:
    """Return the parts of a message, with everything that it mentions attached.

    Warns the user about mentions that can't be attached.
    """
    loaded = await controller.outbox.load(text)
    if loaded.problem is not None:
        controller.frontend.warn(loaded.problem)
    return loaded.parts


def runner_specs(controller: Controller, text: str) -> tuple[RunnerSpec, ...]:
    """Parse the runners of a race, such as ``3`` or ``opus, haiku``; raises `RunnersError`.

    A part of a model's name is enough. Reads the model catalog, so call it in a thread.
    """
    from tui_agent.agent.race.specs import parse_runners

    agent = controller.open_agent
    rows: list[Any] = []

    def find_model(name: str) -> str | None:
        if not rows:
            rows.extend(controller.services.models())
        if name == agent.model or any(row.id == name for row in rows):
            return name
        provider = agent.model.partition("/")[0]
        named = []
        for row in rows:
            if row.has_key and name.lower() in row.id.lower():
                named.append(row.id)
        # Of the models that fit, prefer those of the conversation's provider, then the highest
        # version, then the shortest name.
        best = max(
            named,
            key=lambda model: (
                model.partition("/")[0] == provider,
                [int(number) for number in re.findall(r"(?<![\d.])\d{1,2}(?!\d)", model)],
                -len(model),
            ),
            default=None,
        )
        return best or (name if "/" in name else None)

    return parse_runners(text, modes_of(agent), find_model)


def modes_of(agent: Agent) -> tuple[str, ...]:
    """Return the names of the modes, and of the agents that a user can switch to."""
    from tui_agent.agent.permissions import Mode

    return (*Mode, *agent.ports.knowledge.primaries)


def price_of(controller: Controller, order: RaceOrder) -> RacePrice:
    """Return what a race may cost: reading the conversation, and at most each runner's limits."""
    from tui_agent.session.entries import Usage

    agent = controller.open_agent
    prefix = agent.context_size(None if order.start == agent.session.leaf else order.start).total
    models = [spec.model or agent.model for spec in order.specs]
    costs: list[float | None] = []
    for at, model in enumerate(models):
        known = model in models[:at] or (model == agent.model and agent.session.leaf is not None)
        if known:
            usage = Usage(cache_read=prefix)
        else:
            usage = Usage(cache_write=prefix)
        costs.append(controller.services.price(model, usage))
    total = None
    if None not in costs:
        total = sum(filter(None, costs))
    each = order.cost
    if each is None:
        each = agent.ports.budget.cost
    alike = not any(spec.context for spec in order.specs)
    return RacePrice(
        len(order.specs),
        each,
        prefix,
        total,
        alike=alike,
        files=order.files,
        steps=order.steps,
    )


# -- the running race


def require_possible(controller: Controller, order: RaceOrder) -> None:
    """Raise `CommandError` if a race or the agent is running, or ``order`` can't be run."""
    from tui_agent.agent.intake import nothing_left
    from tui_agent.agent.race.specs import left_out
    from tui_agent.context.view import resolve

    if order.pick == "first-green" and not order.check:
        raise CommandError("first-green needs a check: add --check COMMAND.")
    if controller.race is not None:
        raise CommandError(
            "A race is running in this session: take a runner with /race take N, or end it with /race drop."
        )
    agent = controller.idle_agent
    if not order.parts and nothing_left(agent.session.beside(order.start).active_path()):
        raise CommandError(
            "There is no work to continue, because the last answer is complete. Add a prompt after --."
        )
    dropped: set[int] = set()
    for spec in order.specs:
        dropped.update(left_out(spec.context))
    if dropped:
        view = resolve(agent.session.beside(order.start).active_path())
        sent = set()
        for entry in (view.compaction, *view.entries):
            if entry is not None and entry.is_sent:
                sent.add(entry.id)
        if unknown := sorted(dropped - sent):
            raise CommandError(
                f"#{unknown[0]} is not in the context where the race begins, so it can't be left out."
            )
    if price_of(controller, order).each is None:
        return
    for spec in order.specs:
        model = spec.model or agent.model
        if not agent.ports.meter.has_price(model):
            raise CommandError(
                f"The price of {model} is unknown, so its cost can't be limited. Remove the cost limit."
            )


async def begin(controller: Controller, order: RaceOrder) -> Race:
    """Begin a race, which runs in the background, and return it.

    Saves the race's check as the check of the project. Raises `UserFacingError` or OSError if the
    race can't begin, or if another race was begun or another session was opened while it was
    prepared.
    """
    from tui_agent.agent.race.race import Race
    from tui_agent.model.demo import DEMO_MODEL

    require_possible(controller, order)
    agent = controller.idle_agent
    is_real = agent.model != DEMO_MODEL
    if (
        is_real
        and order.check
        and order.check != controller.services.check_command(agent.ports.project)
    ):
        controller.services.keep_check(agent.ports.project, order.check)
    race = await Race.begin(agent, order, price_of(controller, order).most)
    if controller.race is not None or controller.agent is not agent:
        await race.aclose()
        raise CommandError(
            "The race was ended: another race or session was opened in the meantime."
        )
    controller.race = race
    controller.soon(look_after(controller, race))
    return race


async def look_after(controller: Controller, race: Race) -> None:
    """Wait until all runners have ended; then take the work of the runner that ``pick`` selects.

    If no runner is selected, only tells the user that the race is over.

    If the race's session is off the screen, first waits until the session is back. Does nothing if
    the race was ended in another way meanwhile, or if the agent is running when a runner would be
    taken.
    """
    await race.over.wait()
    while aside := next((one for one in controller.asides.values() if one.race is race), None):
        await aside.shown.wait()
    if controller.race is not race:
        return
    if race.picked is None:
        controller.say("The race is over. /race shows the results.")
    elif controller.agent is not None and not controller.agent.running:
        await take(controller, race.picked)


async def take(controller: Controller, number: int, over: RaceEntry | None = None) -> None:
    """Continue with a runner's conversation and files; the other runners stay as branches.

    ``number`` counts from 1. The runner is one of the finished race ``over`` if that is given,
    otherwise of the running race, which then ends. If no race is running, the runner is one of the
    newest finished race that began on the current session path.
    """
    from tui_agent.agent.intake import nothing_left

    agent = controller.idle_agent
    race = None
    if over is None:
        race = controller.race
    if race is not None:
        _branch(controller, number)  # raises an error if the runner has done nothing yet
        await race.end_runners()
    name, leaf = _branch(controller, number, over)
    move = agent.navigator.plan(leaf, continue_from_here=True)
    # The files get the contents that the runner gave them in its own copy of the project.
    written = await make_move(agent, move, await agent.files.plan(leaf), verb="written")
    if race is not None:
        await race.finish(number)
        _forget(controller, race)
    if race is not None and race.saved:
        saved = f" Stopping the others early saved about {money(race.saved)}."
    else:
        saved = ""
    took = name
    if written:
        took = f"{name}, {written}"
    sentences = f"Took {took}.{saved} /undo reverses this; the others are branches in /tree."
    if not nothing_left(agent.session.active_path()):
        key = key_of("retry", controller.frontend.keymap)
        sentences += f" Its work is not done: {key} continues it."
    controller.say(sentences)
    controller.frontend.refresh_facts()


async def drop(controller: Controller) -> None:
    """End the race without taking any runner's work into the conversation.

    The branches are kept; the copies of the project are deleted.
    """
    race = _race(controller)
    await race.finish(None)
    _forget(controller, race)
    controller.say(
        "The race is over; no runner was taken. The runners' work stays as branches in /tree."
    )
    controller.frontend.refresh_facts()


def _forget(controller: Controller, race: Race) -> None:
    """Clear the controller's race, which is over.

    If the user has opened another session meanwhile, clears the race of the background session
    instead.
    """
    if controller.race is race:
        controller.race = None
    for aside in controller.asides.values():
        if aside.race is race:
            aside.race = None


async def merge(controller: Controller, number: int) -> None:
    """Add a summary of a runner's findings to the conversation, without taking its files."""
    agent = controller.idle_agent
    name, leaf = _branch(controller, number)
    controller.say(f"Summarising what {name} found …")
    await agent.navigator.merge(leaf)
    controller.say(f"A summary of what {name} found is in the conversation now.")


async def compare(controller: Controller) -> None:
    """Let the small model describe how the runners' changes differ, and show the description.

    The text is stored with the race when the race ends. Raises `CommandError` if there is no race,
    a runner is working, or fewer than two runners changed any files.
    """
    from tui_agent.agent.race.race import compare as ask

    race = _race(controller)
    if not race.over.is_set():
        raise CommandError(
            "Runners are still at work. Compare them when they are done, or stop them with /race stop."
        )
    controller.say("Comparing the changes …")
    text = await ask(race)
    if not text:
        raise CommandError(
            "There is nothing to compare, because fewer than two runners changed any files."
        )
    controller.show(Report("How the changes differ", text.splitlines()))


async def steer(controller: Controller, number: int, text: str) -> None:
    """Send a message to a runner; a runner that has ended starts working again."""
    race = _race(controller)
    if not text.strip():
        raise CommandError("Write the message after the number: /race steer 2 Use the other file.")
    parts = await load_parts(controller, text)
    with _looked_after(controller, race):
        race.steer(number, parts)


def show(controller: Controller) -> None:
    """Show the running race or, if there is none, a finished one.

    The finished race is the newest one that began on the current session path. Raises
    `CommandError` if there is none.
    """
    race = controller.race
    if race is not None:
        controller.show(RacePage(race, race_lines([runner.figures for runner in race.runners])))
        return
    entry = last_race(controller)
    if entry is None:
        raise CommandError(NO_RACE)
    controller.show(RacePage(entry, entry_lines(entry)))


def answer_of(session: Session, row: RaceRunner) -> str:
    """Return the text of a runner's last answer on its own branch; "" if there is none."""
    from tui_agent.session.entries import AssistantEntry

    if row.leaf is None or row.root is None:
        return ""
    for entry in reversed(session.beside(row.leaf).active_path()):
        if entry.id < row.root:
            break
        if isinstance(entry, AssistantEntry) and entry.text:
            return entry.text
    return ""


def last_race(controller: Controller) -> RaceEntry | None:
    """Return the newest finished race that belongs to the current session path; None if none does.

    This is the newest race that began at an entry of the path, or before the first entry.
    """
    from tui_agent.session.entries import RaceEntry

    session = controller.open_agent.session
    tree = session.skeleton()
    path = {None, *session.path_outline().ids}
    races = session.entries(tree.ids[at] for at in reversed(tree.of_kinds(["race"])))
    for race in races:
        if isinstance(race, RaceEntry) and race.start in path:
            return race
    return None


def _branch(controller: Controller, number: int, over: RaceEntry | None = None) -> tuple[str, int]:
    """Return the name of a runner, and the number of the last entry of its branch.

    The race is chosen as in ``take``. Raises `CommandError` if there is no race or the branch is
    empty.
    """
    from tui_agent.agent.race.race import numbered

    if controller.race is not None and over is None:
        row = controller.race.runner(number).record
    else:
        entry = over or last_race(controller)
        if entry is None:
            raise CommandError(NO_RACE)
        row = numbered(entry.runners, number)
    if row.leaf is None:
        raise CommandError(f"{row.name} has done nothing yet.")
    return row.name, row.leaf


# -- the check


@Command(
    "check",
    "run a command when the work is done, and send failures back to the model",
    argument="[COMMAND|off]",
    place=166,
    is_replaceable=True,
    words="test, verify, lint, ci",
)
async def check(controller: Controller, argument: str) -> None:
    from tui_agent.agent.ports import RunCheck

    agent = controller.open_agent
    known = controller.services.check_command(agent.ports.project)
    command = argument.strip() or known
    if command == "off":
        agent.ports.check = None
        controller.say("The check is off. /check turns it on.")
    elif not command:
        raise CommandError("Name the command that checks the work, for example: /check make test")
    elif not argument.strip() and agent.ports.check is not None:
        controller.say(
            f"The check runs when work is done: {one_line(agent.ports.check.command, 100)}. /check off stops it."
        )
    else:
        if command != known:
            controller.services.keep_check(agent.ports.project, command)
        agent.ports.check = RunCheck(command)
        times = agent.ports.check.rounds
        controller.say(
            f"Check on: {one_line(command, 100)}. A failure goes back to the model up to {times} times."
        )


# -- the command


@Command(
    "race",
    "run one prompt several times at once and take the best",
    key="f7",
    argument="[PROMPT|RUNNERS -- PROMPT|CONTEXTS|take N|stop|drop]",
    changes_files=True,
    place=165,
    is_replaceable=True,
    words="parallel, compare models, best of, attempts",
)
async def race(controller: Controller, argument: str) -> None:
    word, _, rest = argument.strip().partition(" ")
    can_ask = controller.race is None and controller.frontend.has_screen
    match "--" if _is_order(argument) else word:
        case "" if can_ask:
            await ask_for_race(controller, controller.frontend.draft.strip())
        case "" | "show":
            show(controller)
        case "take":
            await take(controller, _chosen(rest))
        case "merge":
            await merge(controller, _chosen(rest))
        case "drop":
            await drop(controller)
        case "compare":
            await compare(controller)
        case "stop":
            _race(controller).stop(_chosen(rest) if rest else None)
        case "continue":
            go_on(controller, _chosen(rest))
        case "steer":
            number, _, text = rest.strip().partition(" ")
            await steer(controller, _chosen(number), text)
        case other if can_ask and other != "--" and "\n" not in argument:
            await ask_for_race(controller, argument.strip())
        case _:
            await _ask_and_begin(controller, read_wish(argument))


def _is_order(argument: str) -> bool:
    """Return True if ``argument`` describes a race's runners, not an action or only a prompt."""
    from tui_agent.agent.race.specs import all_name_contexts

    return _ORDER.fullmatch(argument) is not None or all_name_contexts(argument.partition(" --")[0])


async def _ask_and_begin(controller: Controller, wish: RaceWish) -> None:
    """Tell the user what a race may cost, and start it if they agree.

    Afterwards, shows the race.
    """
    order = await order_of(controller, wish)
    require_possible(controller, order)
    details = price_of(controller, order).sentence()
    if order.check:
        details += f"\nCheck: {one_line(order.check, 100)}"
    question = Choice(
        "Start the race?",
        [(START, "yes, start"), (LEAVE, "no")],
        details,
        unasked=START,
        inline=True,
    )
    if await controller.ask(question) == START:
        begun = await begin(controller, order)
        if controller.frontend.has_screen:
            show(controller)
        else:
            controller.say(f"{len(begun.runners)} runners are at work. /race shows their progress.")


def go_on(controller: Controller, number: int) -> None:
    """Restart a runner that has ended, for example because it was stopped or had an error."""
    race = _race(controller)
    with _looked_after(controller, race):
        race.resume(number)


@contextmanager
def _looked_after(controller: Controller, race: Race) -> Iterator[None]:
    """Start `look_after` again if the ``with`` block restarts a runner after the race was over."""
    was_over = race.over.is_set()
    yield
    if was_over and not race.over.is_set():
        controller.soon(look_after(controller, race))


def _chosen(text: str) -> int:
    """Parse the number of a runner; raises `CommandError` if the text is not a number."""
    number = whole_number(text.strip())
    if number is None:
        raise CommandError("Name a runner by its number: /race take 2.")
    return number


def _race(controller: Controller) -> Race:
    """Return the running race; raises `CommandError` if there is none."""
    if controller.race is None:
        raise CommandError(NO_RACE)
    return controller.race


async def ask_for_race(
    controller: Controller,
    prompt: str = "",
    start: int | None = None,
    *,
    leaving_out: Sequence[int] = (),
) -> bool:
    """Let the user fill in the form of a race, then begin the race and show it.

    ``start`` is the entry where the race begins, None for the leaf. If the race is impossible as
    the user wants it, says why and asks again. Returns False if the user cancels. If
    ``leaving_out`` contains entries, the form starts with two runners, one with the whole
    conversation and one without these entries.
    """
    from tui_agent.agent.race.race import RaceOrder
    from tui_agent.agent.race.specs import RunnerSpec, without
    from tui_agent.app.race_form import ask_for_order

    agent = controller.idle_agent
    controller.require_writable()
    session = agent.session
    if start is None:
        at = session.leaf
    else:
        at = start
    specs = (RunnerSpec(),) * FORM_RUNNERS
    if leaving_out:
        specs = (RunnerSpec(), RunnerSpec(context=without(leaving_out)))
    order = RaceOrder(prompt, (), specs, at, controller.services.check_command(agent.ports.project))
    here = RunnerSpec(agent.model, agent.effort.level, agent.mode)
    if start is None:
        where = "Race"
    else:
        where = f"Race from #{start}"
    while True:
        chosen = await ask_for_order(
            controller,
            order,
            here,
            modes=modes_of(agent),
            price=lambda wanted: price_of(controller, wanted).sentence(),
            title=where,
        )
        if chosen is None or controller.agent is not agent:
            return False
        wanted = replace(chosen, parts=await load_parts(controller, chosen.prompt))
        try:
            require_possible(controller, wanted)
        except CommandError as error:
            # Open the form again, so that nothing that the user typed is lost.
            controller.frontend.warn(str(error))
            order = chosen
            continue
        break
    await begin(controller, wanted)
    if prompt and controller.frontend.draft.strip() == prompt:
        controller.frontend.set_draft("")
    show(controller)
    return True
