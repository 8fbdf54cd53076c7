"""Runs in scripts: budgets of the real program, and going on after one was stopped or killed."""

import json

from tests.support.model_script import Call, Fault, Turn
from tests.support.model_server import ModelServer
from tests.support.place import Place


def entries(stdout: str) -> list[dict[str, object]]:
    events = [json.loads(line) for line in stdout.splitlines()]
    return [event["entry"] for event in events if event["type"] == "entry_appended"]


def test_a_killed_run_goes_on_by_its_id_and_without_it(place: Place, warm_server: ModelServer) -> None:
    warm_server.play(
        Turn(tool_calls=(Call("ls", {"path": "."}),)),
        Turn(text="One two three.", fault=Fault("stall", after=2)),
        Turn(text="Four."),
        Turn(text="Five."),
    )
    session = place.killed("answer_delta", "-p", "count")
    done = place.run("-r", session, "-p", "continue", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout.splitlines()[0])["id"] == session
    sent = json.dumps(warm_server.calls[-1].json["messages"])
    assert all(text in sent for text in ("count", "continue", '"tool"'))
    assert place.run("-c", "-p", "and on").stdout == "Five.\n", "the last session of this directory"
    assert "count" in json.dumps(warm_server.calls[-1].json["messages"])


def test_a_run_whose_budget_is_used_up_goes_on_with_a_new_one(place: Place, warm_server: ModelServer) -> None:
    look = Turn(tool_calls=(Call("ls", {"path": "."}),), usage={"input": 39_000, "output": 10})
    warm_server.play(look, Turn(text="Done."))
    stopped = place.run("-p", "look", "--max-tokens", "40000", "--json")
    assert stopped.returncode == 4
    ended = json.loads(stopped.stdout.splitlines()[-1])
    assert (ended["reason"], ended["budget"]) == ("budget", "tokens")
    assert stopped.stderr.startswith("Stopped: 39,010 of 40,000 tokens are used")
    assert entries(stopped.stdout)[-1]["kind"] == "tool_result"
    assert place.run("-c", "-p", "continue", "--max-tokens", "80000").stdout == "Done.\n"


def test_time_ends_an_answer_that_never_comes(place: Place, warm_server: ModelServer) -> None:
    warm_server.play(Turn(text="One two three.", fault=Fault("stall", after=2)), Turn(text="Four."))
    stopped = place.run("-p", "count", "--timeout", "1.5")
    assert stopped.returncode == 5
    assert "Stopped: the 1.5 s for this run are over." in stopped.stderr
    assert place.run("-c", "-p", "continue").stdout == "Four.\n"
