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


def test_json_is_one_event_per_line_and_tells_the_whole_run(
    place: Place, warm_server: ModelServer
) -> None:
    warm_server.play(
        Turn(tool_calls=(Call("bash", {"command": "echo from-the-tool"}),)), Turn(text="Done.")
    )
    done = place.run("-p", "run it", "--json", "--allow", "bash")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert [event["type"] for event in events[:3]] == ["session", "inventory", "run_started"]
    assert events[-1]["type"] == "run_ended"
    entries = [event["entry"] for event in events if event["type"] == "entry_appended"]
    kinds = [entry["kind"] for entry in entries if entry["kind"] != "system"]
    assert kinds == ["user", "assistant", "tool_result", "assistant"]
    assert "from-the-tool" in next(
        entry["output"] for entry in entries if entry["kind"] == "tool_result"
    )
    assert "".join(event["text"] for event in events if event["type"] == "answer_delta") == "Done."


def test_what_is_not_allowed_is_refused_and_the_exit_code_says_so(
    place: Place, warm_server: ModelServer
) -> None:
    warm_server.play(
        Turn(tool_calls=(Call("bash", {"command": "touch made"}),)), Turn(text="I could not.")
    )
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


def test_a_first_message_that_failed_leaves_a_session_to_go_on_with(
    place: Place, warm_server: ModelServer
) -> None:
    warm_server.play(status(401, "Incorrect API key provided"), Turn(text="Here you are."))
    assert place.run("-p", "write the poem").returncode == 1
    done = place.run("-c", "-p", "try again")
    assert done.stdout == "Here you are.\n"
    assert "write the poem" in str(warm_server.calls[-1].body)


def test_a_small_model_is_given_only_the_tools_that_read_change_and_run_files(
    place: Place, warm_server: ModelServer
) -> None:
    path = place.root / "config" / "config.toml"
    settings = path.read_text(encoding="utf-8")
    path.write_text(settings.replace("context_window", "small = true\ncontext_window"))
    done = place.run("-p", "hello")
    assert done.returncode == 0
    tools = [tool["function"]["name"] for tool in warm_server.calls[-1].json["tools"]]
    assert tools == ["read", "edit", "write", "bash", "grep", "glob"]


def test_a_tiny_model_names_a_file_to_read_and_writes_a_whole_one(
    place: Place, warm_server: ModelServer
) -> None:
    path = place.root / "config" / "config.toml"
    settings = path.read_text(encoding="utf-8")
    path.write_text(settings.replace("context_window", "tiny = true\ncontext_window"))
    calc = place.project / "calc.py"
    calc.write_text("def add(a, b):\n    return a - b\n")
    warm_server.play(
        Turn(text="READ calc.py"),
        Turn(text="Like this:\n```python\ndef add(a, b):\n    return a + b\n```"),
        Turn(text="It adds now."),
    )
    done = place.run("-p", "mend add", "--mode", "auto-edit")
    assert (done.returncode, done.stdout) == (0, "It adds now.\n")
    assert calc.read_text() == "def add(a, b):\n    return a + b\n"
    first, second, _ = (str(call.json["messages"]) for call in warm_server.calls)
    assert "The project has these files: calc.py" in first
    assert "def add" not in first
    assert "return a - b" in second
    assert not any("tools" in call.json for call in warm_server.calls)
    assert {call.json["temperature"] for call in warm_server.calls} == {0.2}


def test_a_broken_configuration_is_one_sentence_and_stays_as_it_is(place: Place) -> None:
    path = place.root / "config" / "config.toml"
    path.write_text("model = [", encoding="utf-8")
    done = place.run("-p", "hello")
    assert done.returncode == 2
    assert str(path) in done.stderr
    assert "Traceback" not in done.stderr
    assert path.read_text(encoding="utf-8") == "model = ["


def test_a_command_of_the_users_own_comes_before_a_built_in_one_that_yields(
    place: Place, warm_server: ModelServer
) -> None:
    folder = place.root / "config" / "commands"
    folder.mkdir()
    for name in ("diff", "undo"):
        (folder / f"{name}.md").write_text(f"My own {name}.\n")
    warm_server.play(Turn(text="One."), Turn(text="Two."))
    assert place.run("-p", "/diff").stdout == "One.\n"
    assert "My own diff." in str(warm_server.calls[0].json["messages"])
    assert place.run("-p", "/undo").stderr == "There is nothing to undo.\n", "it does not yield"
    assert len(warm_server.calls) == 1


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


def entries(stdout: str) -> list[dict[str, object]]:
    events = [json.loads(line) for line in stdout.splitlines()]
    return [event["entry"] for event in events if event["type"] == "entry_appended"]


def test_a_killed_run_goes_on_by_its_id_and_without_it(
    place: Place, warm_server: ModelServer
) -> None:
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


def test_a_run_whose_budget_is_used_up_goes_on_with_a_new_one(
    place: Place, warm_server: ModelServer
) -> None:
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
    assert "Stopped: the time limit of 1.5 s for this run is reached." in stopped.stderr
    assert place.run("-c", "-p", "continue").stdout == "Four.\n"


WRITE = Call("write", {"path": "made.txt", "content": "x\n"})


def bring_settings(place: Place) -> None:
    folder = place.project / ".tui-agent"
    folder.mkdir()
    (folder / "config.toml").write_text('[permissions]\nedit = "allow"\n')


def test_a_projects_rules_hold_only_when_it_is_trusted(
    place: Place, warm_server: ModelServer
) -> None:
    bring_settings(place)
    warm_server.play(
        Turn(tool_calls=(WRITE,)), Turn(text="No."), Turn(tool_calls=(WRITE,)), Turn(text="Done.")
    )
    assert place.run("-p", "write").returncode == 3
    assert not (place.project / "made.txt").exists()
    assert place.run("-p", "write", "--trust").returncode == 0
    assert (place.project / "made.txt").exists()


def test_an_answer_in_the_full_screen_is_remembered_for_what_it_was_given_for(
    place: Place, warm_server: ModelServer
) -> None:
    bring_settings(place)
    screen = place.start()
    screen.wait_for("Do you trust")
    screen.wait_for("permissions.edit")
    screen.wait_for("y  yes, until one of them changes")
    screen.press("y")
    screen.wait_gone("Do you trust")
    screen.press("ctrl+q")
    screen.wait_exit()
    warm_server.play(
        Turn(tool_calls=(WRITE,)), Turn(text="Done."), Turn(tool_calls=(WRITE,)), Turn(text="No.")
    )
    assert place.run("-p", "write").returncode == 0
    (place.project / "made.txt").unlink()
    (place.project / ".tui-agent" / "config.toml").write_text('[permissions]\n"*" = "allow"\n')
    assert place.run("-p", "write").returncode == 3
    assert not (place.project / "made.txt").exists()


def test_plan_mode_changes_nothing_whatever_is_allowed(
    place: Place, warm_server: ModelServer
) -> None:
    warm_server.play(Turn(tool_calls=(WRITE,)), Turn(text="A plan."))
    done = place.run("-p", "write", "--mode", "plan", "--allow", "edit", "--allow", "bash")
    assert done.returncode == 3
    assert "plan mode" in str(warm_server.calls[-1].json["messages"])
    assert not (place.project / "made.txt").exists()


def test_what_only_reads_runs_without_a_rule_and_a_denial_ends_with_its_own_code(
    place: Place, warm_server: ModelServer
) -> None:
    (place.project / "seen.txt").write_text("to be seen\n")
    warm_server.play(
        Turn(tool_calls=(Call("bash", {"command": "cat seen.txt | wc -l"}),)),
        Turn(text="One line."),
    )
    assert place.run("-p", "count").returncode == 0
    warm_server.play(
        Turn(tool_calls=(Call("bash", {"command": "cat seen.txt"}),)), Turn(text="I may not.")
    )
    done = place.run("-p", "count", "--deny", "bash:cat *")
    assert done.returncode == 3
    assert "deny bash: cat *" in str(warm_server.calls[-1].json["messages"])


def test_a_session_that_another_program_has_can_be_taken_over(
    own_place: Place, server: ModelServer
) -> None:
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
