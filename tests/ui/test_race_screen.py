"""The page of a race: what it shows while runners work and when they are over, and what each key does."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.ui_app import Stage, make_stage, screen_text, until
from tui_agent.agent.race.race import RaceOrder
from tui_agent.agent.race.specs import RunnerSpec
from tui_agent.app.race_form import ask_for_order
from tui_agent.errors import CommandError
from tui_agent.session.effort import Effort
from tui_agent.session.entries import CheckResult, RaceRunner, RunnerState
from tui_agent.ui.screens.dialogs import ChoiceScreen
from tui_agent.ui.screens.race import MIN_WIDTH_FOR_COLUMNS, RaceScreen

RED = CheckResult(
    exit_code=1,
    seconds=0.4,
    last_lines=("FAIL: test_ten_pieces_are_cheaper", "FAILED (failures=1)"),
)
GREEN = CheckResult(exit_code=0, seconds=0.3, last_lines=("Ran 2 tests in 0.000s", "OK"))


def runner(name: str, state: RunnerState, **facts: Any) -> RaceRunner:
    given = {
        "model": "anthropic/claude-sonnet-4-5",
        "mode": "auto-edit",
        "steps": 3,
        "tokens": 8_123,
        "seconds": 14.0,
    }
    return RaceRunner(name=name, state=state, **{**given, **facts})


WORKING = [
    runner("same 1", RunnerState.WORKING, steps=2, cost=0.01),
    runner("same 2", RunnerState.CHECKING, cost=0.03, files=1, additions=6),
    runner("gpt-5-mini high", RunnerState.WAITING, steps=0, tokens=0, seconds=0),
]
OVER = [
    runner("same 1", RunnerState.FAILED, cost=0.02, files=1, additions=4, check=RED),
    runner("same 2", RunnerState.PASSED, cost=0.03, files=1, additions=6, deletions=1, check=GREEN),
    runner(
        "gpt-5-mini high", RunnerState.CUT_OFF, cost=0.01, steps=1, problem="The program ended."
    ),
]


@dataclass
class FakeRace:
    """A race that does nothing by itself, and notes what it is asked for."""

    runners: list[RaceRunner]
    taken: int | None = None
    prompt: str = "give a discount: ten pieces or more are a tenth cheaper"
    check: str = "python3 -m unittest tests.discount"
    asked: list[tuple[Any, ...]] = field(default_factory=list)
    listeners: list[Callable[[], None]] = field(default_factory=list)

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        self.listeners.append(callback)
        return lambda: self.listeners.remove(callback)

    def change(self, number: int, runner: RaceRunner) -> None:
        self.runners[number - 1] = runner
        for listener in self.listeners:
            listener()

    is_past: bool = False

    def now(self) -> "FakeRace":
        return self

    asking: int = 0

    def is_asking(self, number: int) -> bool:
        return number == self.asking

    texts: dict[int, str] = field(default_factory=dict)

    def streamed(self, number: int) -> str:
        return self.texts.get(number, "")

    written = streamed

    def agent_of(self, _number: int) -> None:
        return None

    def __post_init__(self) -> None:
        for name in ("watch", "stop", "go_on"):
            setattr(self, name, lambda *given, name=name: self.asked.append((name, *given)))
        for name in ("diff", "compare", "take", "merge", "steer"):
            setattr(self, name, partial(self.noted, name))

    async def noted(self, *asked: Any) -> bool:
        self.asked.append(asked)
        return True

    async def end(self) -> bool:
        raise CommandError("It can't be ended now.")


async def open_race(stage: Stage, pilot: Any, race: FakeRace) -> RaceScreen:
    screen = RaceScreen(stage.main.controller, race)
    assert screen.number is None  # as when a key comes before it is drawn
    stage.app.push_screen(screen)
    await until(
        lambda: (
            screen.is_mounted and screen.table.count and race.runners[0].name in screen_text(stage)
        ),
        pilot,
    )
    return screen


@pytest.mark.parametrize("size", [(40, 12), (80, 24), (200, 50)])
async def test_it_follows_the_runners_and_puts_the_best_first_at_the_end(
    stage: Stage, size: tuple[int, int]
) -> None:
    async with stage.run(size) as pilot:
        race = FakeRace(list(WORKING))
        screen = await open_race(stage, pilot, race)
        assert "x stop" in screen_text(stage)
        for number, state in enumerate(OVER, 1):
            race.change(number, state)
        await until(lambda: "t take" in screen_text(stage), pilot)
        table = [screen.table.row(at, 80) for at in range(3)]
        assert ["".join(part for part, _ in row).split()[0] for row in table] == ["2", "1", "3"]
        assert screen.number == 2  # the best has the cursor
        await until(lambda: "Ran 2 tests" in screen_text(stage), pilot)


KEYS = {
    "enter": ("watch", 2),
    "t": ("take", 2),
    "d": ("diff", 2, None),
    "C": ("compare",),
    "M": ("merge", 2),
    "x": ("stop", 2),
    "c": ("go_on", 2),
}


@pytest.mark.parametrize("key", KEYS)
async def test_each_key_asks_the_race(stage: Stage, key: str) -> None:
    async with stage.run((80, 24)) as pilot:
        race = FakeRace(list(OVER))
        await open_race(stage, pilot, race)
        await pilot.press(key)
        await until(lambda: race.asked, pilot)
        assert race.asked == [KEYS[key]]
        if key != "t":  # the page is left when one was taken
            await pilot.press("escape")
        await until(lambda: stage.app.screen is stage.main, pilot)
        assert not race.listeners


async def test_a_failed_one_is_taken_only_after_a_question(stage: Stage) -> None:
    async with stage.run((80, 24)) as pilot:
        race = FakeRace(list(OVER))
        await open_race(stage, pilot, race)
        await pilot.press("down", "t")
        await until(lambda: "Take it anyway?" in screen_text(stage), pilot)
        await pilot.press("enter")
        await until(
            lambda: stage.app.screen is not stage.main and "t take" in screen_text(stage), pilot
        )
        assert race.asked == []
        await pilot.press("t")
        await until(lambda: "Take it anyway?" in screen_text(stage), pilot)
        await pilot.press("down", "enter")
        await until(lambda: stage.app.screen is stage.main, pilot)
        assert race.asked == [("take", 1)]


@pytest.mark.parametrize("size", [(40, 12), (80, 24), (120, 35)])
async def test_answers_of_runners_with_other_contexts_stand_beside_each_other(
    stage: Stage, size: tuple[int, int]
) -> None:
    async with stage.run(size) as pilot:
        names = ("whole", "without #2")
        rows = [
            runner(
                name,
                RunnerState.PAUSED,
                context=name.removeprefix("whole"),
                next_request=21_500,
            )
            for name in names
        ]
        race = FakeRace(rows, is_past=True, texts={1: "I see the word.", 2: "I see no word."})
        await open_race(stage, pilot, race)
        await until(
            lambda: (
                "I see the word." in screen_text(stage) and "I see no word." in screen_text(stage)
            ),
            pilot,
        )
        assert "next request 21.5k" in screen_text(stage)
        is_wide = any(
            "I see the word." in line and "no word" in line
            for line in screen_text(stage).splitlines()
        )
        assert is_wide == (size[0] >= MIN_WIDTH_FOR_COLUMNS)


async def test_enter_watches_one_that_works_and_w_writes_to_it(stage: Stage) -> None:
    async with stage.run((80, 24)) as pilot:
        race = FakeRace(list(WORKING))
        await open_race(stage, pilot, race)
        await pilot.press("down", "enter", "w")
        await until(lambda: "Message to same 2" in screen_text(stage), pilot)
        await pilot.press("h", "i", "enter")
        await until(lambda: len(race.asked) == 2, pilot)
        assert race.asked == [("watch", 2), ("steer", 2, "hi")]


async def test_what_can_not_be_done_is_said_there(stage: Stage) -> None:
    async with stage.run((80, 24)) as pilot:
        race = FakeRace(list(OVER))
        await open_race(stage, pilot, race)
        await pilot.press("X")
        await until(lambda: "End the race without taking a runner?" in screen_text(stage), pilot)
        await pilot.press("enter")
        await until(lambda: "It can't be ended now." in screen_text(stage), pilot)


async def test_a_diff_compares_the_marked_one_with_another(stage: Stage) -> None:
    async with stage.run((80, 24)) as pilot:
        race = FakeRace(list(OVER))
        await open_race(stage, pilot, race)
        await pilot.press("space", "down", "d")
        await until(lambda: race.asked, pilot)
        assert race.asked == [("diff", 1, 2)]


@pytest.mark.parametrize("size", [(40, 12), (80, 24)])
def test_the_form(snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
    stage = make_stage(tmp_path)
    runners = (
        RunnerSpec(),
        RunnerSpec("openai/gpt-5-mini", Effort.HIGH),
        RunnerSpec(mode="auto-edit"),
    )
    order = RaceOrder(
        "give a discount: a tenth off from ten pieces on", (), runners, None, "make test"
    )

    async def act(pilot: Any) -> None:
        await until(lambda: stage.main.view is not None and stage.main.agent is not None, pilot)
        here, controller = (
            RunnerSpec("anthropic/claude-sonnet-4-5", None, "build"),
            stage.main.controller,
        )
        controller.soon(
            ask_for_order(
                controller, order, here, (), lambda _order: "3 runners, at most $1.20.", "Race"
            )
        )
        await until(lambda: isinstance(stage.app.screen, ChoiceScreen), pilot)

    assert snap_compare(stage.app, terminal_size=size, run_before=act)


@pytest.mark.parametrize("size", [(80, 24), (120, 35)])
@pytest.mark.parametrize("over", [False, True], ids=["working", "over"])
def test_the_table(snap_compare: Any, tmp_path: Path, size: tuple[int, int], over: bool) -> None:
    stage = make_stage(tmp_path)

    async def act(pilot: Any) -> None:
        await until(lambda: stage.main.view is not None and stage.main.agent is not None, pilot)
        screen = await open_race(
            stage, pilot, FakeRace(list(OVER if over else WORKING), asking=0 if over else 1)
        )
        await pilot.press("home", *(["space", "down"] if over else []))
        await until(lambda: len(screen.details.content) > 30, pilot)

    assert snap_compare(stage.app, terminal_size=size, run_before=act)
