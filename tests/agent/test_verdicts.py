"""One verdict on every answer, and one rule for each: no answer costs more than two requests."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.agent.test_subagents import is_child, task, with_subagents
from tests.support.agents import make_agent
from tests.support.request_validator import validate
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tests.support.thoroughness import thorough
from tui_agent.agent.permissions import Action, Rule
from tui_agent.agent.repeated_text import find_repeated_calls
from tui_agent.context.request import ModelRequest
from tui_agent.context.verdict import Verdict, judge
from tui_agent.model.text_calls import read_text_calls
from tui_agent.session.entries import AssistantEntry, ToolStatus, UserEntry
from tui_agent.tools.registry import builtin_tools

ALLOW = (Rule("*", "*", Action.ALLOW, "flag"),)
WRITE = Call("write", json.dumps({"path": "big.md", "content": "line one\nline tw"}))
READ = Call("read", json.dumps({"path": "a.txt"}))
THINKING = Reply("", reasoning="Now I must edit app.py.")


@pytest.mark.parametrize(
    ("finish", "text", "calls", "thinks", "unread", "verdict"),
    [
        ("stop", "Done.", 0, True, "", Verdict.WHOLE),
        ("tool_calls", "All done.", 0, False, "", Verdict.WHOLE),
        ("tool_calls", "I'll read the file:", 0, False, "", Verdict.PROMISED),
        ("stop", "Here is why:", 0, False, "", Verdict.WHOLE),
        ("stop", '{"name": "read"', 0, False, "It isn't JSON.", Verdict.PROMISED),
        ("stop", "", 1, False, "", Verdict.CALLS),
        ("pause", "", 1, False, "", Verdict.CALLS),
        ("pause", "", 0, False, "", Verdict.PAUSED),
        ("length", "", 1, False, "", Verdict.CUT),
        ("length", "half", 0, False, "", Verdict.CUT),
        ("unmarked", "half", 0, False, "", Verdict.UNMARKED),
        ("unmarked", "half", 1, False, "", Verdict.CALLS),
        ("stop", " \n", 0, False, "", Verdict.SILENT),
        ("tool_calls", "", 0, False, "", Verdict.SILENT),
        ("stop", "", 0, True, "", Verdict.THINKING),
        ("content_filter", "", 1, True, "", Verdict.REFUSED),
        ("interrupted", "half", 0, False, "", Verdict.BROKEN),
    ],
)
def test_the_verdict(
    finish: str, text: str, calls: int, thinks: bool, unread: str, verdict: Verdict
) -> None:
    assert judge(finish, text, calls=calls, is_thinking=thinks, unread=unread) is verdict


answers = st.builds(
    Reply,
    text=st.sampled_from(
        [
            "",
            " \n",
            "All done.",
            "I'll read it:",
            '{"name": "read", "arguments": {',
            "<tool_call>\n{}\n</tool_call>",
        ]
    ),
    reasoning=st.sampled_from(["", "hm", "Now I must edit app.py."]),
    calls=st.lists(
        st.sampled_from([READ, WRITE, Call("write", '{"path": "b'), Call("none", "{}")]), max_size=3
    ).map(tuple),
    finish=st.sampled_from(["stop", "tool_calls", "length", "content_filter"]),
    note=st.sampled_from(["", "policy"]),
)


@thorough
@given(answer=answers)
async def test_no_answer_costs_more_than_two_requests(
    tmp_path_factory: pytest.TempPathFactory, answer: Reply
) -> None:
    def script(request: ModelRequest) -> Reply:
        has_results = any(message.role == "tool" for message in request.messages)
        return Reply("Done.") if has_results else answer

    client = ScriptedClient(script)
    harness = make_agent(tmp_path_factory.mktemp("answers"), client, rules=ALLOW)
    ended = await harness.say("mend app.py")
    assert len(client.requests) <= 2, ended
    for request in client.requests:
        validate(request)
    asked = [call.call_id for entry in harness.entries(AssistantEntry) for call in entry.tool_calls]
    assert sorted(result.call_id for result in harness.results()) == sorted(asked)
    if ended.reason not in {"done", "length"}:
        assert ended.error, "nothing fails silently"
    await harness.say("go on")
    validate(client.requests[-1])
    harness.store.close()


async def test_a_write_that_was_cut_off_is_not_run_and_calls_before_it_are(tmp_path: Path) -> None:
    cut = Reply("", calls=(READ, WRITE), finish="length")
    harness = make_agent(tmp_path, [cut, Reply("Done.")], rules=ALLOW)
    (tmp_path / "project/a.txt").write_text("hello\n")
    assert (await harness.say("write it")).reason == "done"
    read, write = harness.results()
    assert "hello" in read.output
    assert write.status is ToolStatus.ERROR
    assert "cut off" in write.output
    assert not (tmp_path / "project/big.md").exists()


@pytest.mark.parametrize("silent", [THINKING, Reply(""), Reply(" \n ")])
async def test_an_answer_that_says_nothing_is_asked_for_once_with_the_users_task(
    tmp_path: Path, silent: Reply
) -> None:
    harness = make_agent(
        tmp_path, [Reply("", calls=(READ,)), silent, Reply("Finished.")], rules=ALLOW
    )
    assert (await harness.say("mend app.py")).reason == "done"
    (asked,) = [entry for entry in harness.entries(UserEntry) if entry.synthetic == "says_nothing"]
    assert "mend app.py" in asked.text

    (tmp_path / "again").mkdir()
    harness = make_agent(tmp_path / "again", [Reply("", calls=(READ,)), silent], rules=ALLOW)
    ended = await harness.say("mend app.py")
    assert ended.reason == "stopped"
    assert "even after a reminder" in (ended.error or "")
    assert len(harness.client.requests) == 3


async def test_a_subagent_that_says_nothing_is_asked_once_and_reported(tmp_path: Path) -> None:
    def script(request: ModelRequest) -> Reply:
        if is_child(request):
            return THINKING
        if any(message.role == "tool" for message in request.messages):
            return Reply("End.")
        return Reply("", calls=(task("explore", "look around"),))

    harness = with_subagents(tmp_path, ScriptedClient(script))
    assert (await harness.say("go")).reason == "done"
    (result,) = harness.results()
    assert "gave no answer" in result.output
    assert len(harness.client.requests) == 4


def test_rows_that_call_a_tool_are_no_data() -> None:
    row = '{"name": "read", "arguments": {"path": "calc.py", "offset": 21}}\n'
    found = find_repeated_calls(row * 3, {"read", "recall"})
    assert found is not None
    assert found.rounds == 3
    assert (row * 3)[: -found.extra] == row * 2
    assert find_repeated_calls(row * 3, {"grep"}) is None
    assert find_repeated_calls(row * 2, {"read"}) is None
    assert (
        find_repeated_calls(
            "".join(f'{{"id": {number}, "name": "Ada"}}\n' for number in range(60)), {"read"}
        )
        is None
    )
    counted = [
        f'{{"name": "recall", "arguments": {{"what": "#{number}"}}}}\n' for number in range(46)
    ]
    assert find_repeated_calls("".join(counted), {"recall"}) is not None
    assert find_repeated_calls("".join(counted[:5]), {"recall"}) is None


ROW = '{"name": "read", "arguments": {"path": "calc.py"}}\n'


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        (f"I read it.\n{ROW * 3}", True),
        (f'{ROW * 3}{{"name": "re', True),
        (f"<tool_call>\n{ROW}</tool_call>\n\n" * 3, True),
        (f"{ROW}Now once more:\n" * 3, False),
        (f"{ROW * 3}That is how a call looks.\n", False),
        (f"{ROW * 3}That is how a", False),
        (f"```json\n{ROW * 5}", False),
        (f"```json\n{ROW * 12}", True),
        (f"```json\n{ROW}```\n" * 12, True),
    ],
)
def test_only_consecutive_calls_at_the_end_are_a_repetition(text: str, *, is_found: bool) -> None:
    found = find_repeated_calls(text, {"read"})
    assert (found is not None) is is_found
    if found is not None:
        assert text[: -found.extra].count(ROW) == 2
        assert text[: -found.extra].endswith(ROW)


async def test_equal_calls_written_as_text_end_the_answer(tmp_path: Path) -> None:
    row = '{"name": "read", "arguments": {"path": "calc.py", "offset": 21}}\n'
    rules = (Rule("doom_loop", "*", Action.DENY, "default"),)
    harness = make_agent(tmp_path, [Reply(row * 68), Reply("Done.")], rules=rules)
    assert (await harness.say("read calc.py")).reason == "done"
    answer = harness.entries(AssistantEntry)[0]
    assert answer.text.count("offset") <= 4


TEXTS = [*sorted(Path("prompts").glob("*.md")), *builtin_tools()]


@pytest.mark.parametrize("source", TEXTS, ids=lambda source: source.name)
def test_no_text_of_ours_can_come_back_as_a_call(source: object) -> None:
    """A small model repeats what it reads: whatever of it would be run must not stand in prompts and schemas."""
    tools = {tool.name: tool.schema() for tool in builtin_tools()}
    text = (
        source.read_text()
        if isinstance(source, Path)
        else json.dumps(source.schema().parameters, indent=1)
    )
    if not isinstance(source, Path):
        text += f"\n\n{source.description}"
    pieces = [text, *text.split("\n\n"), *text.split("\n"), *re.findall(r"[{\[].*?[}\]]+", text)]
    for piece in pieces:
        found = read_text_calls(piece, tools, lambda _tool, _arguments: "")
        assert found is None or not found.calls, piece
    assert not find_repeated_calls(f"{text}\n" * 4, tools), (
        "no row of it names a tool as a call does"
    )


@pytest.mark.parametrize("lacking", [1, 2])
def test_a_written_call_without_its_last_brackets_is_put_right(lacking: int) -> None:
    """As a model of half a billion parameters wrote it; the server said that it stopped, not that it was cut."""
    edits = [{"old": 'a \\ - "b"', "new": "a + b", "all": True}]
    whole = json.dumps({"name": "edit", "arguments": {"path": "calc.py", "edits": edits}})
    tools = {tool.name: tool.schema() for tool in builtin_tools()}
    found = read_text_calls(whole[:-lacking], tools, lambda _tool, _arguments: "")
    assert found is not None
    assert [json.loads(call.arguments) for call in found.calls] == [
        {"path": "calc.py", "edits": edits}
    ]
    for cut in (whole[:-8], whole[:40], whole[:-2] + "]"):
        broken = read_text_calls(cut, tools, lambda _tool, _arguments: "")
        assert broken is None or not broken.calls
