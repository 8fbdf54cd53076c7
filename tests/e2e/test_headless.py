"""Runs without a screen: the real litellm against a scripted server, and what a script around it relies on."""

import json
import signal

import pytest

from tests.support.model_script import Call, Fault, Turn, status
from tests.support.model_server import ModelServer
from tests.support.place import Place
from tests.support.thoroughness import NIGHTLY
from tui_agent.cli.sessions import DATABASE
from tui_agent.session.ids import short_id
from tui_agent.session.session import Session
from tui_agent.session.store import Store


def test_it_prints_the_answer_and_nothing_else(place: Place) -> None:
    done = place.run("-p", "hello")
    assert (done.returncode, done.stdout, done.stderr) == (0, "You said: hello\n", "")


def test_standard_input_is_added_to_the_prompt(place: Place, warm_server: ModelServer) -> None:
    done = place.run("-p", "Review this", stdin="line of code\n")
    assert done.returncode == 0
    assert warm_server.calls[-1].prompt == "Review this\n\nline of code"


def test_json_is_one_event_per_line_and_tells_the_whole_run(place: Place, warm_server: ModelServer) -> None:
    warm_server.play(Turn(tool_calls=(Call("bash", {"command": "echo from-the-tool"}),)), Turn(text="Done."))
    done = place.run("-p", "run it", "--json", "--allow", "bash")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert [event["type"] for event in events[:2]] == ["session", "run_started"]
    assert events[-1]["type"] == "run_ended"
    entries = [event["entry"] for event in events if event["type"] == "entry_appended"]
    kinds = [entry["kind"] for entry in entries if entry["kind"] != "system"]
    assert kinds == ["user", "assistant", "tool_result", "assistant"]
    assert "from-the-tool" in next(entry["output"] for entry in entries if entry["kind"] == "tool_result")
    assert "".join(event["text"] for event in events if event["type"] == "answer_delta") == "Done."


def test_a_session_that_another_program_has_can_be_taken_over(own_place: Place, server: ModelServer) -> None:
    own_place.configure(server.openai_url)
    assert own_place.run("-p", "the first message").returncode == 0
    with Store(own_place.root / "data" / DATABASE) as store:
        session = Session(store, next(iter(store.sessions())).id, estimate=lambda _entry: 1)
        session.hold()
        refused = own_place.run("-c", "-p", "mine")
        assert refused.returncode == 1
        assert "--take-over" in refused.stderr
        assert f"--fork {short_id(session.id)}" in refused.stderr
        taken = own_place.run("-c", "--take-over", "-p", "mine")
        assert (taken.returncode, taken.stdout) == (0, "You said: mine\n")
        assert session.check_for_take_over()


def test_what_is_not_allowed_is_refused_and_the_exit_code_says_so(place: Place, warm_server: ModelServer) -> None:
    warm_server.play(Turn(tool_calls=(Call("bash", {"command": "touch made"}),)), Turn(text="I could not."))
    done = place.run("-p", "make it")
    assert done.returncode == 3
    assert "--allow" in done.stderr
    assert not (place.project / "made").exists()


def test_a_wrong_key_is_one_sentence(place: Place, warm_server: ModelServer) -> None:
    warm_server.play(status(401, "Incorrect API key provided"))
    done = place.run("-p", "hello")
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stderr
    assert "sk-of-the-test" not in done.stderr


def test_a_broken_configuration_is_one_sentence_and_stays_as_it_is(place: Place) -> None:
    path = place.root / "config" / "config.toml"
    path.write_text("model = [", encoding="utf-8")
    done = place.run("-p", "hello")
    assert done.returncode == 2
    assert str(path) in done.stderr
    assert "Traceback" not in done.stderr
    assert path.read_text(encoding="utf-8") == "model = ["


SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize("number", SIGNALS if NIGHTLY else SIGNALS[:1])
def test_an_interrupt_ends_the_run_and_keeps_what_was_said(
    place: Place, warm_server: ModelServer, number: signal.Signals
) -> None:
    warm_server.play(Turn(text="One two three four.", fault=Fault("stall", after=3)))
    with place.report("-p", "count") as process:
        assert process.stdout
        for line in process.stdout:
            if '"answer_delta"' in line:
                process.send_signal(number)
                break
        rest = process.stdout.read()
        assert process.wait(60) == 130
    ended = json.loads(rest.splitlines()[-1])
    assert ended["reason"] == "interrupted"
    assert warm_server.wait(lambda server: server.calls[0].aborted)
