"""Hooks in the format that several programs share: what they are given, and what their answers do."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import Harness, make_agent
from tests.support.scripted_client import Call, Reply, call
from tui_agent.agent.events import PermissionAsked
from tui_agent.agent.hooks.claude_hooks import (
    MAX_TIMEOUT,
    FoundHook,
    UnusableHook,
    claude_hook,
    hooks_in,
    settings_of,
)
from tui_agent.agent.hooks.hooks import CommandHook, Hooks, LoadedHooks
from tui_agent.context.request import request_bytes
from tui_agent.foreign_file import ForeignFile
from tui_agent.model.protocol import ErrorKind, ModelError
from tui_agent.session.entries import ToolStatus

ENVIRONMENT = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def settings_file(**events: Any) -> ForeignFile:
    return ForeignFile(Path("settings.json"), "settings.json", False, {"hooks": events})


def group(command: str, matcher: str = "", **more: Any) -> dict[str, Any]:
    return {"matcher": matcher, "hooks": [{"type": "command", "command": command, **more}]}


def start(tmp_path: Path, script: list[Reply], **events: Any) -> Harness:
    """Return an agent whose hooks are those of a settings file."""
    project = tmp_path / "project"
    project.mkdir(exist_ok=True)
    (project / "a.py").write_text("one = 1\n")
    found = list(hooks_in(settings_file(**events)))
    assert not any(isinstance(hook, UnusableHook) for hook in found)

    def load() -> LoadedHooks:
        rows = [
            (hook, CommandHook(settings_of(hook, sandboxed=False), project, ENVIRONMENT))
            for hook in found
        ]
        return LoadedHooks(tuple(claude_hook(hook, handler) for hook, handler in rows))

    return make_agent(tmp_path, script, hooks=Hooks(load))


def said(value: dict[str, Any]) -> str:
    return f"printf '%s' '{json.dumps(value)}'"


def specific(**fields: Any) -> str:
    return said({"hookSpecificOutput": {"hookEventName": "PreToolUse", **fields}})


async def test_exit_two_refuses_and_the_reason_goes_to_the_model(tmp_path: Path) -> None:
    guard = group("echo 'Not on Fridays.' >&2; exit 2", "Bash")
    harness = start(
        tmp_path, [Reply(calls=(call("bash", command="make"),)), Reply("k")], PreToolUse=[guard]
    )
    await harness.say("go")
    (result,) = harness.results()
    assert result.status is ToolStatus.DENIED
    assert "Not on Fridays." in result.output


async def test_a_hook_reads_the_calls_in_their_words(tmp_path: Path) -> None:
    keep = group("cat >> seen.jsonl", "Edit|Read|Bash")
    edit = call("edit", path="a.py", edits=[{"old": "one", "new": "two"}])
    calls = (call("read", path="a.py", limit=1), edit, call("bash", command="true", timeout=5))
    harness = start(tmp_path, [Reply(calls=calls), Reply("k")], PreToolUse=[keep])
    await harness.say("go")
    rows = (tmp_path / "project/seen.jsonl").read_text().replace("}{", "}\n{").splitlines()
    given = {row["tool_name"]: row["tool_input"] for row in map(json.loads, rows)}
    path = str(tmp_path / "project/a.py")
    assert given["Read"] == {"file_path": path, "limit": 1}
    assert given["Edit"] == {
        "file_path": path,
        "old_string": "one",
        "new_string": "two",
        "replace_all": False,
    }
    assert given["Bash"] == {"command": "true", "timeout": 5_000}
    assert json.loads(rows[0])["hook_event_name"] == "PreToolUse"


async def test_a_hook_changes_the_input_allows_and_has_the_user_asked(tmp_path: Path) -> None:
    change = group(
        specific(permissionDecision="allow", updatedInput={"command": "echo changed"}), "Bash"
    )
    harness = start(
        tmp_path, [Reply(calls=(call("bash", command="rm x"),)), Reply("k")], PreToolUse=[change]
    )
    await harness.say("go")
    assert "changed" in harness.results()[0].output
    assert harness.of(PermissionAsked) == []
    (tmp_path / "two").mkdir()
    ask = group(
        specific(permissionDecision="ask", permissionDecisionReason="is that wise?"), "Read"
    )
    harness = start(
        tmp_path / "two", [Reply(calls=(call("read", path="a.py"),)), Reply("k")], PreToolUse=[ask]
    )
    await harness.say("go")
    (asked,) = harness.of(PermissionAsked)
    assert "is that wise?" in asked.request.reason


async def test_context_for_the_prompt_and_notes_on_results(tmp_path: Path) -> None:
    harness = start(
        tmp_path,
        [
            Reply(calls=(call("read", path="a.py"),)),
            Reply(calls=(call("read", path="gone.py"),)),
            Reply("k"),
        ],
        SessionStart=[group("echo begun")],
        UserPromptSubmit=[group(said({"hookSpecificOutput": {"additionalContext": "ticket 7"}}))],
        PostToolUse=[group(said({"decision": "block", "reason": "format it"}), "Read")],
        PostToolUseFailure=[group("echo failed > failed.txt")],
    )
    await harness.say("go")
    requests = harness.agent.ports.client.requests
    assert "begun" in (first := request_bytes(requests[0]).decode())
    assert "ticket 7" in first
    read, missing = harness.results()
    assert "format it" in read.output
    assert "format it" not in missing.output
    assert (tmp_path / "project/failed.txt").read_text() == "failed\n"


@pytest.mark.parametrize(
    ("condition", "runs"),
    [("Bash(git *)", True), ("Bash(npm *)", False), ("Bash", True), ("Read", False), ("?", False)],
)
async def test_if_is_a_rule_on_the_call(tmp_path: Path, condition: str, runs: bool) -> None:
    hook = group("exit 2", "Bash", **{"if": condition})
    harness = start(
        tmp_path, [Reply(calls=(call("bash", command="git log"),)), Reply("k")], PreToolUse=[hook]
    )
    await harness.say("go")
    assert (harness.results()[0].status is ToolStatus.DENIED) is runs


@pytest.mark.parametrize(
    ("matcher", "tool", "handled"),
    [
        ("", "bash", True), ("*", "read", True), ("Edit|Write", "edit", True), ("MultiEdit", "edit", True),
        ("Bash", "read", False), ("mcp__git__.*", "git_log", True), ("mcp__my_server__do", "my_server_do", True),
        ("mcp__git__.*", "github_log", False), ("Web.*", "webfetch", True),
    ],
)  # fmt: skip
def test_matchers_mean_their_names_of_tools(matcher: str, tool: str, handled: bool) -> None:
    (found,) = hooks_in(settings_file(PreToolUse=[group("true", matcher)]))
    assert not isinstance(found, UnusableHook)
    handler = claude_hook(found, CommandHook(settings_of(found, sandboxed=False), Path(), {}))
    assert handler.handles("before_tool", tool) is handled


def test_what_is_not_run_is_named(tmp_path: Path) -> None:
    odd = settings_file(
        TeammateIdle=[group("x")],
        PreToolUse=[{"hooks": [{"type": "http", "url": "http://x.test"}]}, 3],
        Stop="x",
    )
    assert [(hook.event, hook.why) for hook in hooks_in(odd) if isinstance(hook, UnusableHook)] == [
        ("TeammateIdle", "this event is not supported"),
        ("PreToolUse", "hooks of type http are not supported"),
    ]
    assert len(list(hooks_in(odd))) == 2


def question(text: str, matcher: str = "") -> dict[str, Any]:
    return {"matcher": matcher, "hooks": [{"type": "prompt", "prompt": text}]}


async def test_a_question_to_the_model_refuses_with_its_reason(tmp_path: Path) -> None:
    script = [
        Reply(calls=(call("bash", command="make"),)),
        Reply('No: {"ok": false, "reason": "Not on Fridays."}', cost=0.5),
        Reply("k"),
    ]
    harness = start(tmp_path, script, PreToolUse=[question("May it? $ARGUMENTS Answer.", "Bash")])
    await harness.say("go")
    (result,) = harness.results()
    assert result.status is ToolStatus.DENIED
    assert "Not on Fridays." in result.output
    asked = request_bytes(harness.client.requests[1]).decode()
    assert "May it? {" in asked
    assert "make" in asked
    assert "$ARGUMENTS" not in asked
    assert harness.session.info.side_cost == pytest.approx(0.5)


async def test_a_question_sends_work_back_until_its_answer_is_yes(tmp_path: Path) -> None:
    script = [
        Reply("Done."),
        Reply('{"ok": false, "reason": "No test was run."}'),
        Reply("Now."),
        Reply('{"ok": true}'),
    ]
    harness = start(tmp_path, script, Stop=[question("Were tests run?")])
    assert (await harness.say("fix it")).steps == 2
    assert "No test was run." in request_bytes(harness.client.requests[2]).decode()


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Reply("Perhaps."), "has no “ok”"),
        (Reply(error=ModelError(ErrorKind.NOT_FOUND, "no such model")), "no such model"),
    ],
)
async def test_a_question_without_an_answer_is_said_and_stops_nothing(
    tmp_path: Path, reply: Reply, why: str
) -> None:
    harness = start(tmp_path, [Reply("Done."), reply], Stop=[question("Is it done?")])
    assert (await harness.say("fix it")).reason == "done"
    assert any(why in notice for notice in harness.notices())


async def test_one_in_the_background_holds_nothing_up(tmp_path: Path) -> None:
    slow = group("sleep 600", "Bash", **{"async": True})
    harness = start(
        tmp_path, [Reply(calls=(call("bash", command="echo hi"),)), Reply("k")], PreToolUse=[slow]
    )
    await harness.say("go")
    assert "hi" in harness.results()[0].output


@pytest.mark.parametrize("timeout", [float("nan"), 10**400, -1, "5", True, None])
def test_an_odd_time_is_a_time(timeout: object) -> None:
    [hook] = hooks_in(settings_file(PreToolUse=[group("x", timeout=timeout)]))
    assert isinstance(hook, FoundHook)
    assert 0 < hook.timeout <= MAX_TIMEOUT


@pytest.mark.parametrize(
    "answer",
    [
        said({"decision": {}}),
        said({"decision": ["block"]}),
        specific(permissionDecision=["deny"]),
        specific(permissionDecision={}),
        specific(permissionDecision="allow", updatedInput=3),
    ],
)
async def test_an_odd_answer_decides_nothing(tmp_path: Path, answer: str) -> None:
    script = [Reply(calls=(call("read", path="a.py"),)), Reply("k")]
    harness = start(tmp_path, script, PreToolUse=[group(answer)])
    await harness.say("go")
    assert "one = 1" in harness.results()[0].output


@pytest.mark.parametrize(
    "wrong",
    [
        call("bash", command="true", timeout="soon"),
        call("edit", path="a.py", edits=["x"]),
        call("read", path=["a.py"]),
        call("edit", path=3, edits={}),
    ],
)
async def test_calls_with_odd_arguments_are_told_to_the_hook_or_refused(
    tmp_path: Path, wrong: Call
) -> None:
    harness = start(
        tmp_path,
        [Reply(calls=(wrong,)), Reply("k")],
        PreToolUse=[group("true", **{"if": "Read(*.py)"})],
        PostToolUseFailure=[group("true")],
        PostToolUse=[group("true")],
    )
    await harness.say("go")
    assert harness.results()


@pytest.mark.parametrize(
    ("matcher", "why"),
    [
        (r"(\w+_?)+!", "repeats too much"),
        (".*a" * 20, "repeats too much"),
        ("(a|a)" * 30, "repeats too much"),
        ("mcp__(", "is not a regular expression"),
    ],
)
def test_a_matcher_that_is_wrong_or_never_ends_is_named(matcher: str, why: str) -> None:
    [hook] = hooks_in(settings_file(PreToolUse=[group("x", matcher)]))
    assert isinstance(hook, UnusableHook)
    assert why in hook.why


@pytest.mark.parametrize(
    "matcher", ["mcp__.*__write.*", "^Edit$|^(Multi)?Edit", "|".join(["mcp__a__.*"] * 9), "*", ""]
)
def test_usual_matchers_are_taken(matcher: str) -> None:
    [hook] = hooks_in(settings_file(PreToolUse=[group("x", matcher)]))
    assert isinstance(hook, FoundHook)


async def test_stop_sends_the_model_back_and_knows_that_it_did(tmp_path: Path) -> None:
    once = "grep -q '\"stop_hook_active\": true' || " + said(
        {"decision": "block", "reason": "The tests are red."}
    )
    script = [Reply("Done."), Reply("Now they are green.")]
    harness = start(tmp_path, script, Stop=[group(once)])
    ended = await harness.say("fix it")
    assert (ended.reason, ended.steps) == ("done", 2)
    told = request_bytes(harness.client.requests[-1]).decode()
    assert "The tests are red." in told
    assert "The user's task: fix it" in told


async def test_a_stop_that_never_agrees_ends_all_the_same(tmp_path: Path) -> None:
    harness = start(tmp_path, [Reply("Done.")] * 20, Stop=[group("echo Never. >&2; exit 2")])
    ended = await harness.say("fix it")
    assert ended.reason == "done"
    assert ended.steps == 9


async def test_stop_may_also_let_it_end(tmp_path: Path) -> None:
    over = said({"continue": False, "stopReason": "That is enough."})
    harness = start(tmp_path, [Reply("Done.")], Stop=[group(over)])
    assert (await harness.say("fix it")).steps == 1
    assert harness.notices() == ["That is enough."]


@pytest.mark.parametrize(
    ("behaviour", "status"), [("allow", ToolStatus.COMPLETED), ("deny", ToolStatus.DENIED)]
)
async def test_a_question_is_answered_in_the_users_place(
    tmp_path: Path, behaviour: str, status: ToolStatus
) -> None:
    decision = {"behavior": behaviour, "message": "Not today."}
    output = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}
    script = [Reply(calls=(call("write", path="b.txt", content="x"),)), Reply("k")]
    harness = start(tmp_path, script, PermissionRequest=[group(said(output), "Write")])
    await harness.say("go")
    assert harness.of(PermissionAsked) == []
    assert harness.results()[0].status is status
    if behaviour == "deny":
        assert "Not today." in harness.results()[0].output


async def test_what_is_only_told_is_told(tmp_path: Path) -> None:
    kinds = ("Notification", "SessionEnd")
    hooks = {kind: [group(f"cat > {kind}.json")] for kind in kinds}
    harness = start(tmp_path, [Reply("Hello.")], **hooks)
    await harness.say("hi")
    await harness.agent.aclose()
    project = harness.agent.ports.project
    told = {kind: json.loads((project / f"{kind}.json").read_text()) for kind in kinds}
    assert told["Notification"]["notification_type"] == "idle_prompt"
    assert told["SessionEnd"]["hook_event_name"] == "SessionEnd"
