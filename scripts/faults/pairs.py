"""Two programs on one session: one works, the other takes the session over and does something else, for every pair."""

import asyncio
import os
import random
import shutil
import traceback
from collections.abc import Awaitable, Callable, Mapping

from scripts.faults.kills import Outcome, in_process, look_at, never, wrong_in
from scripts.faults.rows import Before, going_back, turn_of
from scripts.faults.scene import Place, an_agent, script, work
from tests.support.scripted_client import ScriptedClient
from tui_agent.agent.agent import Agent
from tui_agent.errors import UserFacingError
from tui_agent.session.errors import StoreError
from tui_agent.session.store import Store

Action = Callable[[Agent, Store], Awaitable[object]]
LATEST = 0.15
"""Seconds the second program waits at most before it takes over."""


async def _delete(agent: Agent, store: Store) -> None:
    """The session is in use: this has to be refused, or deletes what the other one no longer holds."""
    store.delete(agent.session.id)
    store.undelete(agent.session.id)


async def _at_once(change: Callable[[], object]) -> None:
    change()


ACTIONS: Mapping[str, Action] = {
    "turn": lambda agent, _store: work(agent, ["Change the files once more."]),
    "answer": lambda agent, _store: work(agent, ["Thank you."] * 3),
    "compact": lambda agent, _store: agent.compact(),
    "prune": lambda agent, _store: agent.prune(),
    "move": lambda agent, _store: agent.navigator.move(
        agent.navigator.plan(turn_of(agent.session, 3)), focus=""
    ),
    "files": lambda agent, _store: going_back(
        agent, agent.session.entry(turn_of(agent.session, 1)).parent_id
    ),
    "undo move": lambda agent, _store: agent.navigator.undo(),
    "label": lambda agent, _store: _at_once(lambda: agent.session.label(2, "green")),
    "rename": lambda agent, _store: _at_once(lambda: agent.session.set_title("another")),
    "mask": lambda agent, _store: _at_once(
        lambda: agent.edit_context(turn_of(agent.session, 2), "mask")
    ),
    "command": lambda agent, _store: agent.run_shell("echo hello"),
    "fork": lambda agent, store: _at_once(lambda: store.fork(agent.session.id, agent.session.leaf)),
    "delete": _delete,
}


def _program(place: Place, action: Action, tell: Callable[..., None], *, second: bool) -> None:
    async def run() -> None:
        async with an_agent(place, ScriptedClient(script(1)), take_over=second) as agent:
            tell("open", second)
            with place.store() as store:
                await action(agent, store)
            tell("end", second)

    try:
        asyncio.run(run())
    except (UserFacingError, StoreError) as error:
        tell("refused", second, str(error)[:100])
    except BaseException:  # noqa: BLE001 - whatever it is, it is told
        tell("failed", traceback.format_exc()[-1_500:])


def _both(
    place: Place, pair: tuple[Action, Action], delay: float, tell: Callable[..., None]
) -> None:
    first = os.fork()
    if first == 0:
        _program(place, pair[0], tell, second=False)
        os._exit(0)

    async def wait() -> None:
        await asyncio.sleep(delay)

    asyncio.run(wait())
    _program(place, pair[1], tell, second=True)
    os.waitpid(first, 0)


def run_pairs(base: Place, before: Before, times: int, seed: int) -> Outcome:
    """Let every two actions meet so many times. ``finished`` counts the rounds in which both came to their end."""
    chance = random.Random(seed)
    outcome = Outcome("two programs")
    pairs = [(one, other) for one in ACTIONS for other in ACTIONS]
    for one, other in pairs * times:
        place = Place(base.root.with_name("pair"))
        shutil.copytree(base.root, place.root)
        wrong = _meet(place, before, (one, other), chance.uniform(0, LATEST), outcome)
        outcome.wrong += [f"{one} and {other}: {fault}" for fault in wrong]
        shutil.rmtree(place.root)
    return outcome


def _meet(
    place: Place, before: Before, names: tuple[str, str], delay: float, outcome: Outcome
) -> list[str]:
    pair = (ACTIONS[names[0]], ACTIONS[names[1]])
    told = in_process(lambda tell: _both(place, pair, delay, tell), never)
    outcome.kills += 1
    outcome.finished += sum(word == "end" for word, *_rest in told) == 2
    looked = in_process(lambda tell: look_at(place, before, tell), never)
    outcome.new_entries += sum(rest[0] for word, *rest in looked if word == "entries")
    wrong = wrong_in([*told, *looked])
    if ["looked"] not in looked and not wrong:
        wrong.append("looking at it hung")
    # Nobody took it from the second one: what it is refused is something it may not do.
    if ["open", True] not in told and not any(word == "refused" for word, *_rest in told):
        wrong.append("the second program could not open it")
    return wrong
