"""The sandbox as a user meets it: told once when there is none, in the question when there is one."""

import json
from pathlib import Path

from tests.support.agents import make_agent
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.agent.events import Decision, Notice, PermissionAnswer, PermissionAsked, ToolStarted
from tui_agent.session.entries import ToolResultEntry, ToolStatus
from tui_agent.tools.permission import Permission
from tui_agent.tools.sandbox import Sandbox, SandboxState
from tui_agent.tools.settings import SandboxSettings

NO = PermissionAnswer(Decision.DENY)


def sandbox(state: SandboxState, mode: str = "auto") -> Sandbox:
    return Sandbox(SandboxSettings.model_validate(mode), find=lambda: state)


def command(text: str, **arguments: object) -> Reply:
    return Reply(calls=(Call("bash", json.dumps({"command": text, **arguments})),))


async def test_what_is_not_protected_is_told_once_in_a_session(tmp_path: Path) -> None:
    client = ScriptedClient([command("echo one"), command("echo two"), Reply("Done."), command("true"), Reply("Done.")])
    harness = make_agent(tmp_path, client, sandbox=sandbox(SandboxState(None, reason="bubblewrap is not installed")))
    await harness.say("go")
    await harness.say("again")
    (notice,) = harness.of(Notice)
    assert notice.severity == "warning"
    assert "without a sandbox: bubblewrap is not installed" in notice.message


async def test_the_question_says_that_the_command_is_held_and_wants_the_network(tmp_path: Path) -> None:
    client = ScriptedClient([command("make it", network=True), Reply("Ok.")])
    harness = make_agent(tmp_path, client, answer=NO, sandbox=sandbox(SandboxState("bubblewrap", "bwrap")))
    await harness.say("go")
    (asked,) = harness.of(PermissionAsked)
    needs = {need.permission: need for need in asked.request.needs}
    assert needs[Permission.BASH].sandboxed
    assert needs[Permission.NETWORK].pattern == "make it"
    assert "network" in asked.request.reason


async def test_a_required_sandbox_that_is_missing_is_told_to_the_model(tmp_path: Path) -> None:
    client = ScriptedClient([command("echo one"), Reply("I can't.")])
    harness = make_agent(tmp_path, client, sandbox=sandbox(SandboxState(None, reason="it is broken"), "required"))
    await harness.say("go")
    (result,) = [entry for entry in harness.path() if isinstance(entry, ToolResultEntry)]
    assert result.status is ToolStatus.ERROR
    assert "it is broken" in result.output
    assert not harness.of(PermissionAsked)


async def test_a_command_that_became_another_meanwhile_does_not_run(tmp_path: Path) -> None:
    """A file that is an option was put where the pattern finds it, after the command was judged to only read."""
    (tmp_path / "project" / "src").mkdir(parents=True)
    (tmp_path / "project" / "src" / "a.py").write_text("x = 1\n")
    client = ScriptedClient([command("cd src && rg x *"), Reply("Ok.")])
    harness = make_agent(tmp_path, client, sandbox=sandbox(SandboxState("bubblewrap", "bwrap")))

    def swap(event: object) -> None:
        if isinstance(event, ToolStarted):
            (tmp_path / "project" / "src" / "--pre=evil").write_text("")

    harness.agent.subscribe(swap)
    await harness.say("go")
    assert not harness.of(PermissionAsked)
    (result,) = [entry for entry in harness.path() if isinstance(entry, ToolResultEntry)]
    assert result.status is ToolStatus.ERROR
    assert "something else by now" in result.output
