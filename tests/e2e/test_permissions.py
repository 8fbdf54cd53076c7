"""What may run in the real program: trust in a project, modes and rules from the command line."""

from tests.support.model_script import Call, Turn
from tests.support.model_server import ModelServer
from tests.support.place import Place

WRITE = Call("write", {"path": "made.txt", "content": "x\n"})


def bring_settings(place: Place) -> None:
    folder = place.project / ".tui-agent"
    folder.mkdir()
    (folder / "config.toml").write_text('[permissions]\nedit = "allow"\n')


def test_a_projects_rules_hold_only_when_it_is_trusted(place: Place, warm_server: ModelServer) -> None:
    bring_settings(place)
    warm_server.play(Turn(tool_calls=(WRITE,)), Turn(text="No."), Turn(tool_calls=(WRITE,)), Turn(text="Done."))
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
    screen.press("down", "enter")
    screen.wait_gone("Do you trust")
    screen.press("ctrl+q")
    screen.wait_exit()
    warm_server.play(Turn(tool_calls=(WRITE,)), Turn(text="Done."), Turn(tool_calls=(WRITE,)), Turn(text="No."))
    assert place.run("-p", "write").returncode == 0
    (place.project / "made.txt").unlink()
    (place.project / ".tui-agent" / "config.toml").write_text('[permissions]\n"*" = "allow"\n')
    assert place.run("-p", "write").returncode == 3
    assert not (place.project / "made.txt").exists()


def test_plan_mode_changes_nothing_whatever_is_allowed(place: Place, warm_server: ModelServer) -> None:
    warm_server.play(Turn(tool_calls=(WRITE,)), Turn(text="A plan."))
    done = place.run("-p", "write", "--mode", "plan", "--allow", "edit", "--allow", "bash")
    assert done.returncode == 3
    assert "plan mode" in str(warm_server.calls[-1].json["messages"])
    assert not (place.project / "made.txt").exists()


def test_what_only_reads_runs_without_a_rule_and_a_denial_ends_with_its_own_code(
    place: Place, warm_server: ModelServer
) -> None:
    (place.project / "seen.txt").write_text("to be seen\n")
    warm_server.play(Turn(tool_calls=(Call("bash", {"command": "cat seen.txt | wc -l"}),)), Turn(text="One line."))
    assert place.run("-p", "count").returncode == 0
    warm_server.play(Turn(tool_calls=(Call("bash", {"command": "cat seen.txt"}),)), Turn(text="I may not."))
    done = place.run("-p", "count", "--deny", "bash:cat *")
    assert done.returncode == 3
    assert "deny bash: cat *" in str(warm_server.calls[-1].json["messages"])
