from copy import deepcopy

import pytest

from tests.support.session_paths import PathBuilder
from tui_agent.agent.doom_loop import (
    CHECKED_CHARS,
    MAX_CALLS_EXAMINED,
    LoopRules,
    call_key,
    detect,
    find_repetition,
    was_refused,
)
from tui_agent.session.entries import ToolMetadata, ToolStatus


def pending(build: PathBuilder, tool="bash", arguments=None):
    """Append a call without a result and say what the detector thinks of it."""
    asked = build.call((tool, {"command": "make"} if arguments is None else arguments))
    return detect(build.path, asked.tool_calls[0].call_id)


def started(*results: str) -> PathBuilder:
    """Return a path on which ``make`` gave these results."""
    build = PathBuilder()
    build.user("build it")
    for result in results:
        build.run("bash", {"command": "make"}, result)
    return build


def test_calls_that_are_no_circle_are_not_looked_into():
    build, asked = started(), list[str]()
    for number in range(MAX_CALLS_EXAMINED):
        build.run("bash", {"command": f"make step{number}"}, "done")
    pending = build.call(("bash", {"command": "make"})).tool_calls[0]
    rules = LoopRules(problem_of=lambda tool, _text: asked.append(tool) or "")
    assert detect(build.path, pending.call_id, rules) is None
    assert asked == ["bash"], "each look at a call and its result takes time while the screen waits"


def test_arguments_are_compared_as_canonical_json():
    build = started()
    build.run("grep", '{"pattern": "x", "path": "src"}', "none")
    build.run("grep", '{"path":"src","pattern":"x"}', "none")
    assert pending(build, "grep", '{ "path" : "src", "pattern" : "x" }') is not None


def test_a_read_that_is_answered_with_known_lines_brings_nothing_new():
    build, whole = started(), "1\ttext\n" * 100
    first = build.run("read", {"path": "a.py"}, whole)
    known = ToolMetadata(path="a.py", known_from=first.id, is_known=True)
    assert pending(deepcopy(build), "read", {"path": "a.py"}) is None
    build.run("read", {"path": "a.py"}, f"[Unchanged: as in #{first.id}]", metadata=known)
    assert pending(build, "read", {"path": "a.py"}) is not None


@pytest.mark.parametrize(
    ("results", "asked"),
    [
        (["same"] * 4, [3, 4]),
        ([f"{number} of 60 jobs" for number in range(59)], [20, 40]),
        (["created", "exists", "exists", "exists"], [4]),
        ([f"1 failed in 0.{number} s at 12:0{number}:11" for number in range(3)], [3]),
        ([f"copied {number} files in 2 s" for number in range(5)], []),
    ],
)
def test_a_call_asks_the_third_time_it_gives_the_same_and_now_and_then_when_it_does_not(results, asked):
    build, found = started(), []
    for number, result in enumerate(results, 1):
        if pending(deepcopy(build)) is not None:
            found.append(number)
        build.run("bash", {"command": "make"}, result)
    assert found == asked


@pytest.mark.parametrize("length", [2, 3])
def test_a_cycle_asks_in_its_third_round(length):
    build = started()
    *before, last = ["a", "b", "c"][:length] * 3
    for command in before:
        assert pending(deepcopy(build), arguments={"command": command}) is None
        build.run("bash", {"command": command}, f"result of {command}")
    assert pending(build, arguments={"command": last}).reason == f"the same {length} calls in round 3"


def test_three_unreadable_calls_of_one_tool_ask_unless_one_between_can_be_read():
    build = started()
    build.run("edit", '{"path": ', "invalid JSON", status=ToolStatus.ERROR)
    build.run("read", {"path": "a"}, "text")
    build.run("edit", "{'path': 1}", "invalid JSON", status=ToolStatus.ERROR)
    assert "arguments that cannot be read" in pending(deepcopy(build), "edit", "[]").reason
    build.run("edit", {"path": "a"}, "ok")
    assert pending(build, "edit", "{") is None


def test_a_word_from_the_user_starts_over_and_a_synthetic_message_does_not():
    build = started("same", "same")
    build.user("Continue if you have next steps", synthetic="compaction")
    assert pending(deepcopy(build)) is not None
    build.user("do it once more")
    assert pending(build) is None


@pytest.mark.parametrize(("allowed", "asks"), [("make", False), ("ls", True)])
def test_allowed_for_the_session_is_silent_about_those_calls_only(allowed, asks):
    build = started("same", "same")
    asked = build.call(("bash", {"command": "make"}))
    rules = LoopRules(allowed=frozenset({call_key("bash", f'{{"command":"{allowed}"}}')}))
    assert (detect(build.path, asked.tool_calls[0].call_id, rules) is not None) is asks


@pytest.mark.parametrize("denied", ["make", "rm -rf /"])
def test_a_refused_loop_is_a_strike_and_another_refusal_is_none(denied):
    build = started("same", "same")
    first = build.call(("bash", {"command": denied})).tool_calls[0].call_id
    assert not was_refused(build.path, first)
    build.result(first, "denied", status=ToolStatus.DENIED)
    second = build.call(("bash", {"command": "make"})).tool_calls[0].call_id
    assert was_refused(build.path, second) is (denied == "make")


@pytest.mark.parametrize(
    ("statuses", "path", "reason"),
    [
        ([ToolStatus.ERROR] * 4, "a.py", "attempt 5 to edit a.py, all of them failed"),
        ([ToolStatus.ERROR] * 3, "a.py", None),
        ([ToolStatus.ERROR] * 4, "b.py", None),
        ([ToolStatus.ERROR, ToolStatus.ERROR, ToolStatus.COMPLETED, ToolStatus.ERROR, ToolStatus.ERROR], "a.py", None),
    ],
    ids=["all failed", "few", "another file", "one succeeded"],
)
def test_the_fifth_change_of_a_file_asks_when_all_before_failed(statuses, path, reason):
    build = started()
    for number, status in enumerate(statuses):
        build.run("edit", {"path": "a.py", "old": f"text {number}", "new": "x"}, f"no match {number}", status=status)
        build.run("read", {"path": "a.py", "offset": number + 1}, f"lines {number}")
    asked = build.call(("edit", {"path": path, "old": "another", "new": "x"}))
    loop = detect(build.path, asked.tool_calls[0].call_id, LoopRules(changes=lambda tool: tool == "edit"))
    assert (loop and loop.reason) == reason


SENTENCE = "Wait, let me look at the function again. It takes a path and returns the lines, so the caller must split. "


@pytest.mark.parametrize("unit", [SENTENCE * 3 + "\n\n", "\n", "She loves to wear a collar. ", "- Check the file.\n"])
def test_a_text_that_repeats_itself_is_stopped_soon(unit):
    text = "Here is what I found. " + unit * 5_000
    ends = range(CHECKED_CHARS, 20_000, CHECKED_CHARS)
    end, found = next((end, found) for end in ends if (found := find_repetition(text[:end])))
    assert found.rounds >= 4
    assert end - 22 <= max(1_500, 20 * len(unit))
    assert len(text[:end]) - found.extra >= 22 + 2 * len(found.unit)


@pytest.mark.parametrize(
    "text",
    [
        SENTENCE * 3,
        "".join(f"{row * 16:08x}: 0000 0000 0000 0000 0000 0000 0000 0000  ................\n" for row in range(200)),
        "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00\n" * 64,
        "```\n" + "[0, 0, 0, 0, 0, 0, 0, 0],\n" * 100,
        "+" + "-" * 78 + "+\n" + ("|" + " " * 78 + "|\n") * 24,
        "Row, row, row your boat,\nGently down the stream,\n" * 8,
        "".join(f"Step {n}: I will check the file once more. " for n in range(340)),
        '{"name": "item", "state": "ok", "values": [0, 0, 0], "is new": false},\n' * 80,
        "la la la " * 20,
        "",
    ],
)
def test_a_text_that_says_something_new_is_left_alone(text):
    assert not any(find_repetition(text[:end]) for end in range(CHECKED_CHARS, len(text) + 1, CHECKED_CHARS))
    assert find_repetition(text) is None
