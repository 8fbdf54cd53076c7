"""What a person asks of races: at any frontend, in words."""

import asyncio
import shlex
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.agents import Harness, ports_of
from tests.support.races import RacingClient, racing_agent, runs, writes
from tests.support.scripted_client import Reply
from tui_agent.agent.agent import Agent
from tui_agent.agent.race.copies import Copy
from tui_agent.agent.race.race import Race
from tui_agent.app import race_commands
from tui_agent.app.commands import command_table, find
from tui_agent.app.controller import Controller
from tui_agent.app.frontend import Choice, Frontend
from tui_agent.app.race_commands import read_wish
from tui_agent.app.race_text import RacePrice
from tui_agent.app.race_views import RaceView
from tui_agent.app.services import OpenRequest
from tui_agent.errors import CommandError
from tui_agent.session.entries import ImagePart, RaceEntry, TextPart, UserEntry
from tui_agent.session.session import Session

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000002000000020802000000fdd49a730000001149444154789c63f8cfc0c0"
    "f01f8c8018001df003fdd3d07d260000000049454e44ae426082"
)
"""Two by two pixels."""


@dataclass
class Told(Frontend):
    """A frontend that says yes."""

    words: list[str] = field(default_factory=list)

    def say(self, message: str, severity: str = "information", remedy: object = None) -> None:
        self.words.append(message)

    async def ask(self, question: Choice) -> str:  # type: ignore[override]
        self.words.append(question.details)
        return question.answers[0][0]


async def controller_of(harness: Harness) -> Controller:
    controller = Controller(Told(), lambda _event: None)
    controller.attach(harness.services())
    await controller.open_or_raise(OpenRequest(harness.session.id))
    return controller


async def do(controller: Controller, name: str, argument: str = "") -> bool:
    command = find(name, command_table())
    assert command is not None
    return await controller.run_to_completion(command, argument)


def work(number: int, step: int) -> Reply:
    if step == 0:
        return Reply(calls=(writes("answer.txt", f"from {number}\n"), runs("rm f2.txt")), cost=0.01)
    return Reply("Done.")


def first_waits(number: int, step: int) -> Reply:
    return Reply("I wait.", hang=True) if number == 1 else work(number, step)


async def test_a_file_that_stays_is_named_by_the_page_of_a_race_that_is_over_too(
    tmp_path: Path,
) -> None:
    harness, project = racing_agent(tmp_path, RacingClient(work)), tmp_path / "project"
    controller = await controller_of(harness)
    assert await do(controller, "race", "2 -- Answer it.")
    assert await do(controller, "race", "take 1")
    entry = harness.path()[-1]
    assert isinstance(entry, RaceEntry)
    assert isinstance(controller.frontend, Told)
    assert ", f2.txt deleted, answer.txt written. " in controller.frontend.words[-1]
    assert await do(controller, "undo")
    (project / "f2.txt").write_text("mine\n")
    assert await RaceView(controller, entry).take(2)
    assert harness.session.leaf == entry.runners[1].leaf
    assert (project / "f2.txt").read_text() == "mine\n"
    assert "f2.txt" in controller.frontend.words[-1]
    assert await do(controller, "race", "take 1"), (
        "a number means the newest race that began here, on any branch"
    )
    assert harness.session.leaf == entry.runners[0].leaf
    await controller.close()


async def test_the_diff_of_a_race_says_that_changes_are_not_recorded_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = racing_agent(tmp_path, RacingClient(work))
    controller = await controller_of(harness)
    assert await do(controller, "race", "2 -- Answer it.")
    assert await do(controller, "race", "take 1")
    race = RaceView(controller, harness.path()[-1])  # type: ignore[arg-type]
    monkeypatch.setattr(type(harness.agent.files), "has_snapshots", False)
    with pytest.raises(CommandError, match="not recorded"):
        await race.diff(2, None)
    await controller.close()


async def test_the_price_is_of_where_it_begins_and_a_limit_needs_a_known_one(
    tmp_path: Path,
) -> None:
    harness = racing_agent(tmp_path, RacingClient(work))
    controller = await controller_of(harness)
    first, _long = harness.session.append_many(
        UserEntry(parts=(TextPart(text="word " * n),)) for n in (2, 4_000)
    )
    here = await race_commands.order_of(controller, read_wish("2 --cost 0.5 -- Answer it."))
    earlier = await race_commands.order_of(
        controller, read_wish(f"2 --cost 0.5 --from {first.id} -- Answer it.")
    )
    assert (
        race_commands.price_of(controller, earlier).prefix
        < race_commands.price_of(controller, here).prefix - 3_000
    )
    green = await race_commands.order_of(
        controller, read_wish("2 --pick first-green -- Answer it.")
    )
    with pytest.raises(CommandError, match="needs a check"):
        await race_commands.begin(controller, green)
    harness.agent.ports.meter.has_price = lambda _model: False
    with pytest.raises(CommandError, match="is unknown"):
        await race_commands.begin(controller, earlier)
    assert controller.race is None
    await controller.close()


async def test_a_race_whose_runner_is_continued_ends_once(tmp_path: Path) -> None:
    harness = racing_agent(tmp_path, RacingClient(first_waits))
    controller = await controller_of(harness)
    race = await race_commands.begin(
        controller, await race_commands.order_of(controller, read_wish("2 -- Answer it."))
    )
    await harness.until(
        lambda: sorted(runner.state for runner in race.runners) == ["done", "working"]
    )
    [ended] = [runner for runner in race.runners if runner.state.is_over]
    race_commands.go_on(controller, ended.number)
    race.stop()
    async with asyncio.timeout(60):
        await controller.tasks_done()
    assert isinstance(controller.frontend, Told)
    assert sum(word.startswith("The race is over") for word in controller.frontend.words) == 1
    await controller.close()


@given(
    runners=st.sampled_from(["3", "whole; pruned", "2x same, effort=high"]),
    check=st.sampled_from(["", "make test", "pytest -- -k 'slow'", "it's -- \\"]),
    before=st.sampled_from([" ", "\n"]),
    after=st.sampled_from(["", " ", "\n"]),
    prompt=st.sampled_from(["", "Fix it.", "don't -- or \"do", "--steps\nare -- words"]),
)
def test_the_first_dashes_outside_quotation_marks_end_the_order(
    runners: str, check: str, before: str, after: str, prompt: str
) -> None:
    assume(after or not prompt)
    assume(prompt or runners == "whole; pruned")
    option = f" --check {shlex.quote(check)}" if check else ""
    wish = read_wish(f"{runners}{option}{before}--{after}{prompt}")
    assert (wish.runners, wish.check or "", wish.prompt) == (runners, check, prompt)


def test_an_order_needs_no_runners() -> None:
    assert read_wish("-- Fix it.").runners == "3"


async def test_none_begins_while_the_agent_works(tmp_path: Path) -> None:
    harness = racing_agent(
        tmp_path, RacingClient(lambda _number, _step: Reply("I wait.", hang=True))
    )
    controller = await controller_of(harness)
    order = await race_commands.order_of(controller, read_wish("2 -- Answer it."))
    controller.outbox.submit("go")
    with pytest.raises(CommandError, match="press Escape first"):
        await race_commands.begin(controller, order)
    assert controller.race is None
    await controller.close()


async def test_a_pasted_image_goes_along_with_the_prompt(tmp_path: Path) -> None:
    harness = racing_agent(tmp_path, RacingClient(work))
    controller = await controller_of(harness)
    name = controller.pasted.keep(PNG)
    order = await race_commands.order_of(controller, read_wish(f"2 -- What is @{name}?"))
    assert [type(part) for part in order.parts] == [TextPart, ImagePart]
    await controller.close()


async def test_first_green_is_taken_by_itself(tmp_path: Path) -> None:
    harness = racing_agent(tmp_path, RacingClient(first_waits))
    controller = await controller_of(harness)
    assert await do(
        controller, "race", "2 --check 'test -f answer.txt' --pick first-green -- Answer it."
    )
    last = harness.path()[-1]
    assert isinstance(last, RaceEntry)
    assert last.winner is not None
    assert last.winner.state.value == "passed"
    assert {row.state.value for row in last.runners} == {"passed", "stopped"}
    await controller.close()


async def test_the_changes_are_compared_by_the_small_model(tmp_path: Path) -> None:
    def play(number: int, step: int) -> Reply:
        return Reply("They differ.") if number > 2 else work(number, step)

    client = RacingClient(play)
    harness = racing_agent(tmp_path, client, small_model="test/small")
    controller = await controller_of(harness)
    assert await do(controller, "race", "2 --check '' -- Answer it.")
    assert await do(controller, "race", "compare")
    asked = client.requests[-1]
    assert asked.model == "test/small"
    assert "+from 1" in asked.messages[0].text
    assert "+from 2" in asked.messages[0].text
    assert await do(controller, "race", "drop")
    last = harness.path()[-1]
    assert isinstance(last, RaceEntry)
    assert "They differ." in last.comparison
    await controller.close()


def test_a_wish_is_read() -> None:
    wish = read_wish(
        "2x same, effort=high --check 'make test' --pick first-green --cost 0.5 -- Fix it: now"
    )
    assert (wish.runners, wish.check, wish.pick, wish.cost) == (
        "2x same, effort=high",
        "make test",
        "first-green",
        0.5,
    )
    assert wish.prompt == "Fix it: now"
    with pytest.raises(CommandError):
        read_wish("3")
    for head in ("3 --cost", "3 --steps"):
        with pytest.raises(CommandError, match="needs a value"):
            read_wish(f"{head} -- Fix it.")
    for amount in ("nan", "0", "-1"):
        with pytest.raises(CommandError, match="is not an amount"):
            read_wish(f"3 --cost {amount} -- Fix it.")


def test_the_size_of_large_copies_is_said_before_the_start() -> None:
    price = RacePrice(3, 0.5, 0, None, files=100_026)
    assert price.sentence() == (
        "3 attempts, each in its own copy of the project (100,026 files), at most $0.50 each, $1.50 together."
    )
    assert "copy" not in RacePrice(3, 0.5, 0, None, files=300).sentence()


async def test_the_others_go_on_if_the_runner_to_take_has_done_nothing_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Race.make_runner_copy

    async def slow(race: Race, number: int) -> Copy:
        if number == 2:
            await asyncio.Event().wait()
        return await copy(race, number)

    monkeypatch.setattr(Race, "make_runner_copy", slow)
    harness = racing_agent(tmp_path, RacingClient(first_waits))
    controller = await controller_of(harness)
    race = await race_commands.begin(
        controller, await race_commands.order_of(controller, read_wish("2 -- Answer it."))
    )
    await harness.until(lambda: race.runners[0].record.steps == 1)
    with pytest.raises(CommandError, match="has done nothing yet"):
        await race_commands.take(controller, 2)
    assert [runner.state.value for runner in race.runners] == ["working", "waiting"]
    assert controller.race is race
    await controller.close()


async def test_of_two_races_begun_at_once_one_is_ended(tmp_path: Path) -> None:
    harness = racing_agent(tmp_path, RacingClient(first_waits))
    controller = await controller_of(harness)
    order = await race_commands.order_of(controller, read_wish("2 -- Answer it."))
    done = await asyncio.gather(
        race_commands.begin(controller, order),
        race_commands.begin(controller, order),
        return_exceptions=True,
    )
    [race] = [one for one in done if isinstance(one, Race)]
    [error] = [one for one in done if isinstance(one, CommandError)]
    assert controller.race is race
    assert "was ended" in str(error)
    await controller.close()
    assert not list((tmp_path / "races").iterdir())


class Aside(Told):
    """A frontend that keeps busy sessions going off the screen."""

    keeps_asides = True


async def beside_another(harness: Harness) -> Controller:
    """Return a controller whose session ``harness.session`` is on the screen; ``new`` opens another."""
    project = Path(harness.session.info.cwd)

    def open_session(request: OpenRequest) -> Session:
        if request.session_id is not None:
            return harness.session
        other = harness.store.create_session(project)
        return Session(harness.store, other.id, estimate=lambda _entry: 10)

    def agent_of(session: Session) -> Agent:
        if session is harness.session:
            return harness.agent
        return Agent(session, ports_of(session, harness.client, project), model="test/model")

    controller = Controller(Aside(), lambda _event: None)
    controller.attach(harness.services(open_session=open_session, make_agent=agent_of))
    await controller.open_or_raise(OpenRequest(harness.session.id))
    return controller


async def test_first_green_is_taken_when_its_session_is_back_on_the_screen(tmp_path: Path) -> None:
    harness = racing_agent(tmp_path, RacingClient(work))
    controller = await beside_another(harness)
    wish = read_wish("2 --check 'test -f answer.txt' --pick first-green -- Answer it.")
    race = await race_commands.begin(controller, await race_commands.order_of(controller, wish))
    assert await controller.open(OpenRequest())
    await race.over.wait()
    assert not any(isinstance(entry, RaceEntry) for entry in harness.path())
    assert await controller.open(OpenRequest(harness.session.id))
    await controller.tasks_done()
    last = harness.path()[-1]
    assert isinstance(last, RaceEntry)
    assert last.taken == race.picked
    assert controller.race is None
    await controller.close()


async def test_a_race_that_ends_as_its_session_leaves_the_screen_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = racing_agent(tmp_path, RacingClient(first_waits))
    controller = await beside_another(harness)
    race = await race_commands.begin(
        controller, await race_commands.order_of(controller, read_wish("2 -- Answer it."))
    )
    finish = race.finish
    may_end = asyncio.Event()

    async def slow(taken: int | None) -> RaceEntry:
        await may_end.wait()
        return await finish(taken)

    monkeypatch.setattr(race, "finish", slow)
    dropping = asyncio.ensure_future(race_commands.drop(controller))
    await asyncio.sleep(0)
    assert await controller.open(OpenRequest())
    may_end.set()
    await dropping
    [aside] = controller.asides.values()
    assert aside.race is None
    assert not aside.is_busy
    await controller.close()
