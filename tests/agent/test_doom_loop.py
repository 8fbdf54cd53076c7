from copy import deepcopy
from pathlib import Path

import pytest

from tests.support.agents import make_agent
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tests.support.session_paths import PathBuilder
from tui_agent.agent.doom_loop import LoopRules, detect, was_refused
from tui_agent.agent.events import (
    AnswerDelta,
    Decision,
    Notice,
    PermissionAnswer,
    PermissionAsked,
    ReasoningProgress,
)
from tui_agent.agent.news import MAX_CALLS_EXAMINED, call_key
from tui_agent.agent.permissions import Action, Rule
from tui_agent.agent.repeated_text import CHECKED_CHARS, Repetition, find_repetition
from tui_agent.app.permission_text import question
from tui_agent.session.entries import AssistantEntry, ToolMetadata, ToolStatus, UserEntry


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
def test_a_call_asks_the_third_time_it_gives_the_same_and_now_and_then_when_it_does_not(
    results, asked
):
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
    assert (
        pending(build, arguments={"command": last}).reason
        == f"the same {length} calls 3 times in a row"
    )


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
        ([ToolStatus.ERROR] * 4, "a.py", "attempt 5 to edit a.py, after all others failed"),
        ([ToolStatus.ERROR] * 3, "a.py", None),
        ([ToolStatus.ERROR] * 4, "b.py", None),
        (
            [
                ToolStatus.ERROR,
                ToolStatus.ERROR,
                ToolStatus.COMPLETED,
                ToolStatus.ERROR,
                ToolStatus.ERROR,
            ],
            "a.py",
            None,
        ),
    ],
    ids=["all failed", "few", "another file", "one succeeded"],
)
def test_the_fifth_change_of_a_file_asks_when_all_before_failed(statuses, path, reason):
    build = started()
    for number, status in enumerate(statuses):
        build.run(
            "edit",
            {"path": "a.py", "old": f"text {number}", "new": "x"},
            f"no match {number}",
            status=status,
        )
        build.run("read", {"path": "a.py", "offset": number + 1}, f"lines {number}")
    asked = build.call(("edit", {"path": path, "old": "another", "new": "x"}))
    loop = detect(build.path, asked.tool_calls[0].call_id)
    assert (loop and loop.reason) == reason


SENTENCE = "Wait, let me look at the function again. It takes a path and returns the lines, so the caller must split. "


@pytest.mark.parametrize(
    "unit", [SENTENCE * 3 + "\n\n", "\n", "She loves to wear a collar. ", "- Check the file.\n"]
)
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
        "".join(
            f"{row * 16:08x}: 0000 0000 0000 0000 0000 0000 0000 0000  ................\n"
            for row in range(200)
        ),
        "```\n" + "[0, 0, 0, 0, 0, 0, 0, 0],\n" * 100,
        "+" + "-" * 78 + "+\n" + ("|" + " " * 78 + "|\n") * 24,
        '{"name": "item", "state": "ok", "values": [0, 0, 0], "is new": false},\n' * 80,
        "The result:\n"
        + "".join(
            f"- Test number {n} ran in {3 * n} ms and passed with {n} warnings on this machine.\n"
            for n in range(1, 70)
        ),
        "",
    ],
)
def test_a_text_that_says_something_new_is_left_alone(text):
    assert not any(
        find_repetition(text[:end]) for end in range(CHECKED_CHARS, len(text) + 1, CHECKED_CHARS)
    )
    assert find_repetition(text) is None


ONCE_MORE = "I will look at the file once more, because the error may come from there. "
BEGINNING = "The test fails in line 12. "


def replies(times: int = 1) -> ScriptedClient:
    return ScriptedClient(
        [*([Reply(BEGINNING + ONCE_MORE * 400)] * times), Reply("It was the cache.")]
    )


@pytest.mark.parametrize("part", ["text", "reasoning"])
async def test_it_is_stopped_cut_and_asked_about(tmp_path: Path, part: str) -> None:
    said = {part: BEGINNING + ONCE_MORE * 400}
    note = PermissionAnswer(Decision.DENY, note="Look at the cache.")
    harness = make_agent(
        tmp_path, [Reply(**said), Reply("It was the cache.")], answer=note, rules=()
    )

    ended = await harness.say("why does it fail?")

    asked = next(event.request for event in harness.events if isinstance(event, PermissionAsked))
    path = harness.agent.session.active_path()
    stopped, answer = (entry for entry in path if isinstance(entry, AssistantEntry))
    told = next(
        entry for entry in path if isinstance(entry, UserEntry) and entry.synthetic == "repeating"
    )
    assert ended.reason == "done"
    assert question(asked) == "The model is repeating itself. Let it continue?"
    assert asked.reason.startswith("the same 74 characters")
    assert ONCE_MORE.strip() in asked.loop[0] * 2
    assert (stopped.interrupted, stopped.finish) == (True, "repetition")
    assert sum(len(getattr(p, "text", "")) for p in stopped.parts) < 7_000
    streamed = (
        event.text for event in harness.events if isinstance(event, AnswerDelta | ReasoningProgress)
    )
    assert len("".join(streamed).partition(answer.text)[0]) < len(BEGINNING) + 1_500
    assert "Look at the cache." in told.text
    assert answer.text == "It was the cache."


async def test_a_yes_lets_it_go_on_and_always_stops_asking(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, replies(2), answer=PermissionAnswer(Decision.SESSION), rules=())
    await harness.say("go")
    assert len([event for event in harness.events if isinstance(event, PermissionAsked)]) == 1
    answers = [
        entry for entry in harness.agent.session.active_path() if isinstance(entry, AssistantEntry)
    ]
    assert answers[1].text.count(ONCE_MORE.strip()) == 400


async def test_stop_ends_the_run(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, replies(), answer=PermissionAnswer(Decision.STOP), rules=())
    ended = await harness.say("go")
    assert ended.reason == "stopped"
    assert "the model is repeating itself: the same 74 characters" in (ended.error or "")


async def test_without_anybody_to_ask_the_second_time_ends_the_run(tmp_path: Path) -> None:
    rules = (Rule("doom_loop", "*", Action.DENY, "default"),)
    harness = make_agent(tmp_path, replies(3), rules=rules)
    ended = await harness.say("go")
    assert ended.reason == "stopped"
    assert any(
        "repeating itself" in event.message for event in harness.events if isinstance(event, Notice)
    )


async def test_whoever_answers_each_time_gets_no_run_without_end(tmp_path: Path) -> None:
    client = replies(60)
    harness = make_agent(tmp_path, client, answer=PermissionAnswer(Decision.DENY), rules=())
    ended = await harness.say("go")
    assert ended.reason == "stopped"
    assert len(client.requests) == 5
    assert (await harness.say("go on all the same")).reason == "stopped"
    assert len(client.requests) == 10, "a word of the user's begins anew"


async def test_an_answer_that_repeats_itself_is_a_step(tmp_path: Path) -> None:
    client = replies(60)
    harness = make_agent(
        tmp_path, client, answer=PermissionAnswer(Decision.DENY), rules=(), max_steps=2
    )
    ended = await harness.say("go")
    assert (ended.reason, ended.steps, len(client.requests)) == ("step_limit", 2, 2)


async def test_a_yes_is_for_the_whole_run_and_not_for_the_next(tmp_path: Path) -> None:
    read = Call("read", '{"path": "a.txt"}')
    again = Reply(BEGINNING + ONCE_MORE * 400, calls=(read,))
    client = ScriptedClient([again, again, again, Reply("Done."), again, Reply("Done.")])
    harness = make_agent(tmp_path, client, answer=PermissionAnswer(Decision.ONCE), rules=())

    await harness.say("go")
    assert len([event for event in harness.events if isinstance(event, PermissionAsked)]) == 1
    await harness.say("go on")
    assert len([event for event in harness.events if isinstance(event, PermissionAsked)]) == 2


COUNTING = "I will now look at file number {} once more because it may matter here. "


def first_found(text: str) -> tuple[int, Repetition]:
    """Return the first checked length of a text with a repetition, and the repetition."""
    for end in range(CHECKED_CHARS, len(text) + 1, CHECKED_CHARS):
        if found := find_repetition(text[:end]):
            return end, found
    raise AssertionError


def test_sentences_that_differ_in_numbers_are_not_called_the_same_characters() -> None:
    rows = [COUNTING.format(number) for number in range(100)]
    same = find_repetition(rows[0] * 40)
    other = find_repetition("".join(rows))

    assert same is not None
    assert same.amount.startswith("the same 7")
    assert other is not None
    assert other.amount == (
        f"the same text {other.rounds} times in a row, except for numbers and the order of words"
    )


@pytest.mark.parametrize("between", ["", "1 2 3 4 5 6 7 8 9. "])
def test_a_loop_that_only_counts_is_stopped_at_the_length_of_data(between: str) -> None:
    text = "Start. " + "".join(COUNTING.format(number) + between for number in range(200))
    end, found = first_found(text)
    assert 6_000 < end < 8_000
    assert text[:end][: -found.extra] == (
        f"Start. {COUNTING.format(0)}{between}{COUNTING.format(1)}"
    ), "two rounds are left"


def test_a_loop_of_sentences_is_cut_at_the_end_of_one() -> None:
    order = ["so I look at the whole file again", "because the error may come from there"]
    rows = [", ".join(order[::way]) + ".\n" for way in (1, -1, 1)]
    text = "Start.\n" + "".join(rows) * 10 + "Because"
    found = find_repetition(text)
    assert found is not None
    assert not found.is_exact
    assert text[: -found.extra] == "Start.\n" + "".join(rows[:2])
