"""Whatever runners and the user do meanwhile: the project is the user's until one is taken, then both are there."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.processes import git
from tests.support.races import RacingClient, begin, racing_agent, runs, state_of, writes
from tests.support.scripted_client import Reply
from tests.support.thoroughness import NIGHTLY
from tui_agent.app.moves import make_move
from tui_agent.session.entries import RunnerState

PATHS = ("f0.txt", "f1.txt", "f2.txt", "new.txt", "sub/deep.txt", "other.txt")
EDITS = st.dictionaries(
    st.sampled_from(PATHS), st.none() | st.sampled_from(["one\n", "two\n", "ü\n", ""]), max_size=4
)
"""What a path becomes; None is deleted."""

Edits = dict[str, str | None]


def calls_for(edits: Edits, *, shell: bool) -> Reply:
    made = []
    for path, text in edits.items():
        if text is None:
            made.append(runs(f"rm -f {path}"))
        elif shell:
            made.append(runs(f"mkdir -p sub; printf '%s' '{text}' > {path}"))
        else:
            made.append(writes(path, text))
    return Reply(calls=tuple(made)) if made else Reply("Nothing to do.")


def apply(project: Path, edits: Edits) -> None:
    for path, text in edits.items():
        place = project / path
        if text is None:
            place.unlink(missing_ok=True)
        else:
            place.parent.mkdir(exist_ok=True)
            place.write_text(text)


def contents(project: Path) -> Edits:
    return {
        path: (project / path).read_text() if (project / path).is_file() else None for path in PATHS
    }


def repository(project: Path) -> object:
    return {name: data for name, data in state_of(project).items() if name.startswith(".git/")}


async def race_once(
    root: Path, runners: list[Edits], meanwhile: Edits, winner: int, stopped: int, *, shell: bool
) -> None:
    def play(number: int, step: int) -> Reply:
        return calls_for(runners[number - 1], shell=shell) if step == 0 else Reply("Done.")

    client = RacingClient(play)
    harness = racing_agent(root, client)
    project = root / "project"
    at_start, kept = contents(project), repository(project)
    race = await begin(harness, 3)
    await harness.until(lambda: all(runner.copy is not None for runner in race.runners))
    apply(project, meanwhile)
    if stopped:
        race.stop(stopped)
    await race.over.wait()
    of_user = at_start | meanwhile
    assert contents(project) == of_user
    assert repository(project) == kept

    await race.end_runners()
    runner = race.runners[winner]
    assert runner.copy is not None
    reached = contents(runner.copy.root)
    leaf = runner.record.leaf
    if leaf is not None:
        agent = harness.agent
        move = agent.navigator.plan(leaf, continue_from_here=True)
        await make_move(agent, move, await agent.files.plan(leaf))
    await race.finish(winner + 1)
    for path, now in contents(project).items():
        theirs, ours = reached[path], of_user[path]
        if theirs == at_start[path] or (ours != at_start[path] and ours != theirs):
            assert now == ours, (path, "the user's own is kept")
        else:
            assert now == theirs, (path, "the winner's comes in")
    assert repository(project) == kept
    assert git(project, "branch") == "* main\n"
    assert all(runner.state in {RunnerState.DONE, RunnerState.STOPPED} for runner in race.runners)
    await harness.agent.aclose()
    harness.store.close()


@settings(
    max_examples=12 if NIGHTLY else 6, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
@given(
    runners=st.lists(EDITS, min_size=3, max_size=3),
    meanwhile=EDITS,
    winner=st.integers(0, 2),
    stopped=st.integers(0, 3),
    shell=st.booleans(),
)
def test_only_the_winners_changes_and_the_users_are_there(
    runners: list[Edits], meanwhile: Edits, winner: int, stopped: int, shell: bool
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(race_once(Path(directory), runners, meanwhile, winner, stopped, shell=shell))
