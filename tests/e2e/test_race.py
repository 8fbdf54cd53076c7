"""A race of the real program: what goes over the wire, what comes of it, and what a kill leaves."""

import os
import re

import pytest

from tests.support.model_script import Call, Recorded, Turn
from tests.support.model_server import ModelServer
from tests.support.place import Place
from tests.support.processes import git
from tests.support.races import make_project, state_of
from tests.support.wire_blocks import blocks
from tui_agent.cli.sessions import DATABASE
from tui_agent.sandbox.detection import find_sandbox
from tui_agent.session.entries import RaceEntry
from tui_agent.session.session import Session
from tui_agent.session.store import Store

pytestmark = pytest.mark.skipif(
    find_sandbox().kind != "bubblewrap", reason="elsewhere commands that write are asked about"
)


def work(request: Recorded) -> Turn:
    if any(message["role"] == "tool" for message in request.json["messages"]):
        return Turn(text="Done.")
    return Turn(
        text="I begin.", tool_calls=(Call("bash", {"command": "echo made > made.txt; cat f1.txt"}),)
    )


def test_runners_send_the_same_bytes_up_to_the_fork_and_the_first_green_is_taken(
    place: Place, warm_server: ModelServer
) -> None:
    make_project(place.project)
    assert place.run("-p", "hello").returncode == 0
    warm_server.play_function(work)
    before = state_of(place.project)
    done = place.run(
        "-c", "-p", "make it", "--race", "3", "--check", "test -f made.txt", "--pick", "first-green"
    )
    assert done.returncode == 0, done.stderr
    assert "← taken" in done.stdout

    sent = [blocks(request.json) for request in warm_server.calls]
    first = [request for request in sent if "I begin." not in "\n".join(request)]
    assert len(first) == 3
    assert first[0] == first[1] == first[2]
    later = [request for request in sent if request not in first]
    assert later
    assert all(request[: len(first[0])] == first[0] for request in later)

    after = state_of(place.project)
    assert after.pop("made.txt")[1] == b"made\n"
    assert after == before
    assert git(place.project, "branch").split() == ["*", "main"]
    assert not os.listdir(place.root / "data" / "cache" / "races")  # noqa: PTH208 - names are enough
    with Store(place.root / "data" / DATABASE) as store:
        session = Session(store, store.sessions()[0].id, estimate=lambda _entry: 1, read_only=True)
        entry = session.path()[-1]
    assert isinstance(entry, RaceEntry)
    assert entry.taken is not None
    assert place.run("doctor", "--clean", "--json").stdout.count('"race"') == 0


def test_a_race_that_takes_nobody_is_kept_with_its_branches(
    place: Place, warm_server: ModelServer
) -> None:
    make_project(place.project)
    warm_server.play_function(work)
    done = place.run("-p", "make it", "--race", "2", "--check", "false", "--pick", "first-green")
    assert done.returncode == 1, done.stderr
    assert "Check: false" in done.stderr
    begun = re.search(r"starts with ([\d.]+)k tokens", done.stderr)
    assert begun is not None, done.stderr
    assert float(begun[1]) > 1  # instructions and tools count, though nothing was sent yet
    taken = place.run("-c", "-p", "/race take 1")
    assert taken.returncode == 0, taken.stderr
    assert (place.project / "made.txt").exists()
