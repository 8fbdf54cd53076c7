"""The permission question: what it shows, when it takes keys, and what each answer sends."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from textual.widgets import Input

from tests.support.thoroughness import NIGHTLY
from tests.support.transcript import HeldTimers
from tests.support.ui_app import (
    STILL,
    Stage,
    emit,
    make_stage,
    press,
    press_at_once,
    run_command,
    screen_text,
    send,
    until,
    write,
)
from tests.support.ui_scenes import question_bash, question_edit
from tui_agent.agent.events import (
    Decision,
    PermissionAnswer,
    PermissionAsked,
    PermissionRequest,
    PermissionSettled,
    RunStarted,
)
from tui_agent.agent.permissions import in_words
from tui_agent.app import server_questions
from tui_agent.app.frontend import DiffPage
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.tools.questions import FormField, ModelQuestions
from tui_agent.ui.screens.diff import DiffScreen
from tui_agent.ui.widgets.prompt_lines import QuestionChip
from tui_agent.ui.widgets.question_prompt import QuestionChoices
from tui_agent.ui.widgets.waiting_questions import ToolCallQuestion

MIDDLE = ((80, 28), (120, 35))
SENTENCES = 500 if NIGHTLY else 20
COMMAND = "rm -rf build && make [all]\necho \x1b]0;owned\x07 \u202edone"


def bash(call_id: str = "c1", command: str = COMMAND) -> PermissionRequest:
    return PermissionRequest(
        call_id=call_id,
        tool="bash",
        title="rm -rf build",
        needs=(PermissionNeed(Permission.BASH, command, command, "command"),),
        reason="it runs a command",
        rules=("allow bash: rm -rf build && make [all]",),
    )


def edit() -> PermissionRequest:
    diff = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-old [bold]\n+new [/bold]"
    needs = (PermissionNeed(Permission.EDIT, "x.py", diff, "diff"),)
    return replace(
        bash("c2"),
        tool="edit",
        title="x.py",
        needs=needs,
        reason="it changes a file",
        rules=("allow edit: *",),
    )


@asynccontextmanager
async def asked(
    tmp_path: Path,
    request: PermissionRequest,
    *,
    size: tuple[int, int] = (80, 24),
    grace: float = 0.0,
    **given: Any,
) -> AsyncIterator[tuple[Stage, Any]]:
    settings = STILL.model_copy(update={"permission_grace": grace} if grace else {})
    stage = make_stage(tmp_path, settings=settings, **given)
    async with stage.run(size) as pilot:
        await emit(stage, pilot, RunStarted(), PermissionAsked(request))
        yield stage, pilot


@pytest.mark.parametrize(
    ("key", "decision"),
    [
        ("1", Decision.ONCE),
        ("y", Decision.ONCE),
        ("2", Decision.SESSION),
        ("n", Decision.DENY),
        ("s", None),  # only of a loop
    ],
)
async def test_a_key_answers(tmp_path: Path, key: str, decision: Decision | None) -> None:
    async with asked(tmp_path, bash()) as (stage, pilot):
        await press(pilot, key)
        assert stage.agent.answers == ([("c1", PermissionAnswer(decision))] if decision else [])
        assert stage.view.question.display is (decision is None)
        assert stage.main.prompt.has_focus
        assert stage.main.prompt.text == ("" if decision else key), "what answers nothing is text"


async def test_it_shows_the_whole_command_harmless_the_reason_and_the_exact_rule(
    tmp_path: Path,
) -> None:
    async with asked(tmp_path, bash(), size=(100, 30)) as (stage, _):
        text = screen_text(stage)
        assert "rm -rf build && make [all]" in text
        assert "echo ␛]0;owned␇ ⟨U+202E⟩done" in text
        assert "\x1b" not in text
        assert "it runs a command" in text
        assert "always in this session: the command “rm -rf build && make [all]”" in text


async def test_keys_are_not_taken_during_the_grace_period(tmp_path: Path) -> None:
    async with asked(tmp_path, bash(), grace=3600.0) as (stage, pilot):
        await pilot.press("y", "1")
        assert stage.agent.answers == []
        assert stage.main.prompt.text == "y1"
        assert stage.view.question.display


async def test_words_in_the_prompt_keep_the_keys_until_tab(tmp_path: Path) -> None:
    now = 1_000.0
    stage = make_stage(
        tmp_path, settings=STILL.model_copy(update={"typing_pause": 0.4}), clock=lambda: now
    )
    async with stage.run() as pilot:
        await pilot.press("u", "space")
        await emit(stage, pilot, RunStarted(), PermissionAsked(bash()))
        now += 3600
        await pilot.press("2", "y", "1")
        assert stage.main.prompt.text == "u 2y1"
        assert stage.agent.answers == []
        assert "tab: answer with a key" in screen_text(stage)
        await press(pilot, "tab", "1")
        assert stage.agent.answers == [("c1", PermissionAnswer(Decision.ONCE))]
        assert stage.main.prompt.text == "u 2y1"
        assert stage.main.prompt.has_focus


async def test_an_emptied_prompt_gives_the_keys_back_after_a_pause(tmp_path: Path) -> None:
    now = 1_000.0
    stage = make_stage(
        tmp_path, settings=STILL.model_copy(update={"typing_pause": 0.4}), clock=lambda: now
    )
    async with stage.run() as pilot:
        await pilot.press("h")
        stage.agent.emit(RunStarted(), PermissionAsked(bash()))
        await pilot.press("backspace")
        assert not stage.view.question.armed
        now += 0.5
        await until(lambda: stage.view.question.armed, pilot)
        await press(pilot, "1")
        assert stage.agent.answers == [("c1", PermissionAnswer(Decision.ONCE))]


async def test_sentences_with_digits_and_pauses_answer_nothing(tmp_path: Path) -> None:
    """The questions come at any letter; pauses are longer than anything the question waits for."""
    now = 1_000.0
    stage = make_stage(tmp_path, clock=lambda: now)
    chance = Random(29)
    words = [
        "use",
        "2",
        "always",
        "5",
        "yes",
        "1",
        "no",
        "and",
        "3",
        "run",
        "a",
        "y",
        "stop",
        "4",
        "project",
        "6",
    ]
    async with stage.run() as pilot:
        for number in range(SENTENCES):
            text = " ".join(["it", *chance.choices(words, k=3)])
            at = chance.randrange(1, len(text))
            stage.main.prompt.set_draft(text[:at])
            now += chance.choice((0.1, 2.0, 60.0))
            await emit(stage, pilot, PermissionAsked(bash(f"q{number}")))
            press_at_once(stage.app, *text[at:])
            now += 5
            await until(lambda text=text: stage.main.prompt.text == text, pilot)
            assert stage.agent.answers == []
            stage.agent.emit(PermissionSettled(f"q{number}", Decision.DENY))


@pytest.mark.parametrize("text", ["why do you need this?", "yes please", "/cost", "hello", "nope"])
async def test_prose_never_answers(tmp_path: Path, text: str) -> None:
    """What was typed in a burst or with a first letter that is no answer belongs into the prompt."""
    now = 1_000.0
    async with asked(tmp_path, bash(), grace=0.01, clock=lambda: now) as (stage, pilot):
        now += 1
        await until(lambda: stage.view.question.armed, pilot)
        stage.view.question.query_one(QuestionChoices).hold = 30  # a loaded machine types slowly
        await write(pilot, text)
        await until(lambda: len(stage.main.prompt.text) == len(text), pilot)
        assert stage.agent.answers == []
        assert stage.main.prompt.text == text


async def test_enter_says_yes_once_the_question_has_stood_a_while(tmp_path: Path) -> None:
    now = 1_000.0
    async with asked(tmp_path, bash(), grace=0.5, clock=lambda: now) as (stage, pilot):
        now += 0.9
        await until(lambda: stage.view.question.armed, pilot)
        await press(pilot, "enter")
        assert stage.agent.answers == [], "it may have been meant for a message"
        now += 0.2
        await press(pilot, "enter")
        assert stage.agent.answers == [("c1", PermissionAnswer(Decision.ONCE))]


async def test_enter_says_no_where_a_yes_may_harm(tmp_path: Path) -> None:
    async with asked(tmp_path, replace(bash(), rules=())) as (stage, pilot):
        await press(pilot, "enter")
        assert stage.agent.answers == [("c1", PermissionAnswer(Decision.DENY))]


async def test_a_search_gives_the_keys_back_to_the_question(tmp_path: Path) -> None:
    async with asked(tmp_path, bash()) as (stage, pilot):
        await press(pilot, "ctrl+f", "x", "escape")
        assert stage.agent.calls == [], "the nearest thing first"
        await until(lambda: stage.view.question.armed, pilot)
        await press(pilot, "y")
        assert stage.agent.answers == [("c1", PermissionAnswer(Decision.ONCE))]


async def test_keys_that_went_elsewhere_answer_nothing(tmp_path: Path) -> None:
    async with asked(tmp_path, bash()) as (stage, pilot):
        await pilot.click("Prompt")
        await pilot.press("y")
        assert stage.agent.answers == []
        assert stage.main.prompt.text == "y"
        assert "tab: answer with a key" in screen_text(stage)
        await press(pilot, "tab", "y")
        assert stage.agent.answers == [("c1", PermissionAnswer(Decision.ONCE))]


async def test_escape_leaves_the_note_first_then_stops_the_run(tmp_path: Path) -> None:
    async with asked(tmp_path, bash()) as (stage, pilot):
        await press(pilot, "e", "x", "escape")
        assert stage.agent.calls == []
        assert stage.view.question.display
        await press(pilot, "escape")
        assert stage.agent.calls == ["interrupt"]
        assert not stage.view.question.display
        assert stage.main.prompt.has_focus


async def test_questions_queue(tmp_path: Path) -> None:
    async with asked(tmp_path, bash(), size=(100, 30)) as (stage, pilot):
        await emit(stage, pilot, PermissionAsked(edit()))
        assert "(1 more)" in screen_text(stage)
        await press(pilot, "y")
        assert "Change x.py" in screen_text(stage)
        await press(pilot, "n")
        assert [call_id for call_id, _answer in stage.agent.answers] == ["c1", "c2"]
        await emit(stage, pilot, PermissionAsked(bash("c3")))
        assert stage.view.question.display
        await emit(stage, pilot, PermissionSettled("c3", Decision.DENY))
        assert not stage.view.question.display, "it was settled elsewhere"
        assert stage.main.prompt.has_focus


async def test_without_a_rule_there_is_no_always(tmp_path: Path) -> None:
    async with asked(tmp_path, replace(bash(), rules=())) as (stage, pilot):
        await press(pilot, "a")
        assert stage.agent.answers == []
        assert "y  yes, once" in screen_text(stage)
        assert "a  always" not in screen_text(stage)


async def test_words_sent_while_a_question_waits_say_no_and_what_instead(tmp_path: Path) -> None:
    async with asked(tmp_path, bash()) as (stage, pilot):
        await pilot.click("Prompt")
        await send(pilot, "why 2")
        assert stage.agent.answers == [("c1", PermissionAnswer(Decision.DENY, "why 2"))]
        assert stage.agent.sent == []
        assert stage.main.prompt.text == ""


@pytest.mark.parametrize("size", [(40, 12), (60, 18), (60, 20)])
async def test_a_question_on_a_small_screen_shows_what_changes_and_every_answer(
    stage: Stage, size: tuple[int, int]
) -> None:
    context = "".join(f" before {number}\n" for number in range(9))
    diff = f"--- a/x.py\n+++ b/x.py\n@@ -1,10 +1,10 @@\n{context}-old line\n+new line\n"
    request = replace(edit(), needs=(PermissionNeed(Permission.EDIT, "x.py", diff, "diff"),))
    async with stage.run(size) as pilot:
        stage.agent.emit(RunStarted(), PermissionAsked(request))
        await until(lambda: "old line" in screen_text(stage), pilot)
        for answer in ("y  yes, once", "a  always", "n  no"):
            await until(lambda answer=answer: answer in screen_text(stage), pilot)
            await pilot.press("down")
        await pilot.press("enter")
        for answer in ("e  no, but …", "p  always", "r  edit"):
            await until(lambda answer=answer: answer in screen_text(stage), pilot)
            await pilot.press("down")


@pytest.mark.parametrize("make", [question_edit, question_bash])
async def test_a_question_on_a_tiny_screen_offers_the_other_answers_without_scrolling(
    stage: Stage, make: Callable[[], PermissionRequest]
) -> None:
    async with stage.run((40, 12)) as pilot:
        stage.agent.emit(RunStarted(), PermissionAsked(make()))
        await until(lambda: "m  more…" in screen_text(stage), pilot)
        assert "y  yes, once" in screen_text(stage)


async def test_a_line_that_just_fits_is_not_wrapped_after_a_question_with_a_scrollbar(
    tmp_path: Path,
) -> None:
    diff = "@@ -0,0 +1,30 @@\n" + "\n".join(f"+line {number}" for number in range(30))
    first = replace(edit(), needs=(PermissionNeed(Permission.EDIT, "x.py", diff, "diff"),))
    async with asked(tmp_path, first) as (stage, pilot):
        assert "more lines" in screen_text(stage)
        await press(pilot, "y")
        command = "x" * 73
        await emit(
            stage,
            pilot,
            PermissionSettled("c2", Decision.ONCE),
            PermissionAsked(bash(command=command)),
        )
        assert command in screen_text(stage)
        assert "more line" not in screen_text(stage)


@pytest.mark.parametrize(
    "size",
    [(80, 24), *(pytest.param(size, marks=pytest.mark.nightly) for size in MIDDLE), (200, 50)],
)
async def test_a_long_diff_scrolls_and_leaves_the_answers_in_sight(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    diff = "@@ -0,0 +1,3000 @@\n" + "\n".join(f"+line {number}" for number in range(3000))
    request = replace(edit(), needs=(PermissionNeed(Permission.EDIT, "x.py", diff, "diff"),))
    async with asked(tmp_path, request, size=size) as (stage, pilot):
        assert "y  yes, once" in screen_text(stage)
        assert "m  more…" in screen_text(stage)
        assert stage.view.transcript.size.height > 1
        assert "line 0" in screen_text(stage)
        await press(pilot, "pagedown", "pagedown")
        assert "line 0 " not in screen_text(stage)
        assert "y  yes, once" in screen_text(stage)
        assert "more lines · PgDn · o opens" in screen_text(stage)
        assert " 2,9" in screen_text(stage)
        await press(pilot, "e")
        assert "more lines · PgDn" not in screen_text(stage)
        await press(pilot, "escape")
        await pilot.press("o")
        await until(lambda: isinstance(stage.app.screen, DiffScreen), pilot)
        stage.app.screen.pane.scroll_end(animate=False)
        await until(lambda: "line 2999" in screen_text(stage), pilot)


async def test_a_command_is_shown_whole_with_what_of_it_asks(tmp_path: Path) -> None:
    whole = "git status && rm -rf build && cat ../x"
    needs = (
        PermissionNeed(Permission.BASH, "rm -rf build", "rm -rf build", "command"),
        PermissionNeed(Permission.EXTERNAL_DIRECTORY, "/srv", "/srv/x"),
    )
    rules = ("allow bash: rm -rf build", "allow external_directory: /srv/*")
    request = replace(bash(), needs=needs, rules=rules, command=whole)
    async with asked(tmp_path, request, size=(140, 30)) as (stage, _):
        text = screen_text(stage)
        assert "git status && rm -rf build && cat ../x" in text
        assert "asks for  rm -rf build" in text
        assert "asks for  going to /srv" in text
        assert (
            "always in this session: the command “rm -rf build” · /srv and everything in it" in text
        )


async def test_a_command_that_loses_data_is_shown_once_and_its_reasons_are_whole(
    tmp_path: Path,
) -> None:
    command = "rm -rf logs"
    needs = [PermissionNeed(Permission.BASH, command, command, "command", changes=("sources",))]
    reasons = ["changes files of the project (rm)"]
    for number in range(8):
        path = f"logs/of-the-week-{number}.db"
        needs.append(PermissionNeed(Permission.EDIT, path, command, changes=("data",)))
        reasons.append(f"it changes {path}, which /undo can't bring back")
    request = replace(
        bash(command=command), needs=tuple(needs), reason=", and ".join(reasons), again=True
    )
    request = replace(request, command=command)
    async with asked(tmp_path, request, size=(100, 40)) as (stage, _pilot):
        text = " ".join(screen_text(stage).replace("▌", " ").split())
    assert text.count(command) == 1
    assert "which /undo can't bring back, and 6 more reasons" in text
    assert "…" not in text.partition("Run it again")[2].partition("yes, once")[0]


async def test_a_loop_shows_the_call_its_results_and_a_way_to_stop(tmp_path: Path) -> None:
    request = replace(
        bash("c4"),
        title="pytest -q",
        needs=(PermissionNeed(Permission.DOOM_LOOP, 'bash {"command":"pytest -q"}'),),
        reason="the same bash call 3 times in a row, with the same result",
        rules=("allow doom_loop: pytest",),
        loop=("1 failed\n\x1b[31mred\x1b[0m\nthree\nfour\nfive", "1 failed again"),
    )
    async with asked(tmp_path, request, size=(100, 30)) as (stage, pilot):
        text = screen_text(stage)
        for shown in (
            "The agent repeats itself. Run it again?",
            "3 times in a row", "bash pytest -q", "result 1 of 2  … 2 more lines",
            "␛[31mred", "result 2 of 2", "1 failed again", "y  run it once more", "s  stop the run",
        ):  # fmt: skip
            assert shown in text
        assert "five" not in text
        highlighted = stage.view.question.query_one(QuestionChoices).highlighted_option
        assert highlighted is not None
        assert highlighted.id == "deny", "whoever presses Enter without reading does not go on"
        await press(pilot, "5")
        assert stage.agent.answers == [("c4", PermissionAnswer(Decision.STOP))]


def test_rules_are_told_in_words() -> None:
    assert in_words("allow edit: *") == "all edits in this project"
    assert in_words("allow bash: git commit *") == "commands that begin with “git commit”"
    assert in_words("allow bash: make") == "the command “make”"
    assert in_words("allow webfetch: https://docs.python.org/*") == "all pages of docs.python.org"
    assert in_words("allow external_directory: /srv/*") == "/srv and everything in it"
    assert in_words("allow doom_loop: pytest → ls") == "this repetition"
    assert in_words("deny bash: rm *") == "deny bash: rm *"
    assert in_words("allow my_tool: *") == "allow my_tool: *"


async def test_an_answer_for_the_project_and_a_rule_that_was_changed_first(tmp_path: Path) -> None:
    async with asked(tmp_path, bash()) as (stage, pilot):
        await press(pilot, "6", "x", "escape")
        assert "matches anything" not in screen_text(stage)
        await press(pilot, "r")
        offered = "rm -rf build && make [all]"
        assert stage.view.question.query(Input).last().value == offered
        hint = "allow bash:  * matches anything. Enter accepts, Escape goes back"
        assert hint in screen_text(stage)
        await press(pilot, *["backspace"] * len(" && make [all]"), "space", "asterisk", "enter")
        assert "always in this session: commands that begin with “rm -rf build”" in screen_text(
            stage
        )
        await press(pilot, "p")
        assert stage.agent.answers == [
            ("c1", PermissionAnswer(Decision.PROJECT, patterns=("rm -rf build *",)))
        ]


@pytest.mark.parametrize(
    ("moves", "decision", "asked_for"),
    [
        ((), Decision.ONCE, "Yes, and …"),
        (("down",), Decision.SESSION, "Yes, and …"),
        (("down", "down"), Decision.DENY, "What should the agent do instead?"),
    ],
)
async def test_tab_adds_a_note_to_the_answer_at_the_cursor(
    tmp_path: Path, moves: tuple[str, ...], decision: Decision, asked_for: str
) -> None:
    async with asked(tmp_path, edit()) as (stage, pilot):
        await press(pilot, *moves, "tab")
        assert asked_for in screen_text(stage)
        await press(pilot, *"use y.py 2", "enter")
        assert stage.agent.answers == [("c2", PermissionAnswer(decision, "use y.py 2"))]
        assert stage.main.prompt.text == ""


async def test_tab_twice_leaves_a_question_for_the_prompt(tmp_path: Path) -> None:
    async with asked(tmp_path, edit()) as (stage, pilot):
        assert "tab add a note" in screen_text(stage)
        await press(pilot, "tab", "tab")
        assert stage.main.prompt.has_focus
        await press(pilot, "tab", "y")
        assert stage.agent.answers == [("c2", PermissionAnswer(Decision.ONCE))]


def chips(stage: Stage) -> list[str]:
    return [
        str(chip.render())
        for screen in stage.app.screen_stack
        for chip in screen.query(QuestionChip)
    ]


async def ask(stage: Stage, pilot: Any) -> None:
    await emit(stage, pilot, RunStarted(), PermissionAsked(question_bash()))


@pytest.mark.parametrize("name", ["settings", "sessions", "help", "theme"])
async def test_the_screen_on_top_says_that_the_agent_asks(stage: Stage, name: str) -> None:
    async with stage.run() as pilot:
        await run_command(stage, pilot, name, "")
        await ask(stage, pilot)
        (chip,) = chips(stage)
        assert chip.startswith("▲ The agent asks about bash (esc shows the question): rm -rf")
        await press(pilot, "escape")
        assert stage.app.screen is stage.main
        assert chips(stage) == []
        await pilot.press("y")
        assert [answer.decision.value for _, answer in stage.agent.answers] == ["once"]


async def test_a_screen_opened_over_a_question_says_so_too_until_it_is_settled(
    stage: Stage,
) -> None:
    async with stage.run() as pilot:
        await ask(stage, pilot)
        assert chips(stage) == []
        await run_command(stage, pilot, "settings", "")
        assert len(chips(stage)) == 1
        await emit(stage, pilot, PermissionAsked(question_edit()))
        assert "about bash" in chips(stage)[0]
        stage.agent.interrupt()
        await pilot.pause()
        assert chips(stage) == []


async def test_a_click_goes_to_the_question(stage: Stage) -> None:
    async with stage.run() as pilot:
        await stage.main.controller.run("settings", "")
        await run_command(stage, pilot, "help", "")
        await ask(stage, pilot)
        await pilot.click(QuestionChip)
        await pilot.pause()
        assert stage.app.screen is stage.main


async def test_who_comes_back_is_given_time_before_keys_answer(tmp_path: Path) -> None:
    now = [1000.0]
    stage = make_stage(tmp_path, clock=lambda: now[0])
    async with stage.run() as pilot:
        await run_command(stage, pilot, "settings", "")
        await ask(stage, pilot)
        stage.view.question.set_delays(grace=600.0, typing_pause=0.0)
        assert stage.view.question.armed
        await press(pilot, "escape")
        assert not stage.view.question.armed
        await pilot.press("y")
        assert stage.agent.answers == []


PARTS = ModelQuestions(
    (
        FormField(
            "1",
            "Which parts?",
            kind="choices",
            options=(("api", "API"), ("page", "page"), ("tests", "tests")),
        ),
    )
)


@pytest.mark.parametrize(
    ("keys", "values"),
    [
        (["space", "down", "down", "space", "down", "enter"], ["api", "tests"]),
        (["2", "3", "enter"], ["page", "tests"]),
        (["2", "2", "1", "enter"], ["api"]),
        (["1", "up", "up", "space", "4"], ["api", "page"]),
    ],
)
async def test_space_and_digits_tick_and_enter_then_sends(
    tmp_path: Path, keys: list[str], values: list[str]
) -> None:
    now = [1000.0]
    stage = make_stage(tmp_path, clock=lambda: now[0])
    async with stage.run() as pilot:
        stage.view.question.set_delays(grace=60.0, typing_pause=0.0)
        asking = asyncio.create_task(server_questions.ask(stage.main.controller, PARTS))
        await until(lambda: stage.view.question.asked is not None, pilot)
        now[0] += 1000
        await press(pilot, "tab")
        for key in keys:
            await press(pilot, key)
        async with asyncio.timeout(30):
            answer = await asking
        assert answer.values == {"1": values}
        assert stage.main.prompt.text == ""


def test_the_page_of_a_question_marks_a_new_file_as_added() -> None:
    request = edit()
    new = "--- /dev/null\n+++ b/y.py\n@@ -0,0 +1 @@\n+new"
    needs = (*request.needs, PermissionNeed(Permission.EDIT, "y.py", new, "diff"))
    page = ToolCallQuestion(replace(request, needs=needs), lambda _answer: None).page()
    assert isinstance(page, DiffPage)
    assert [(file.mark, file.path) for file in page.files] == [("M", "x.py"), ("A", "y.py")]


async def test_a_key_for_a_question_that_is_gone_does_not_answer_the_next(tmp_path: Path) -> None:
    now = 1_000.0
    settings = STILL.model_copy(update={"permission_grace": 0.5})
    stage = make_stage(tmp_path, settings=settings, clock=lambda: now)
    async with stage.run() as pilot:
        question = stage.view.question
        timers = HeldTimers(question.query_one(QuestionChoices))
        await emit(stage, pilot, RunStarted(), PermissionAsked(bash()))
        question.arm()
        await pilot.press("y")
        settled = PermissionSettled("c1", PermissionAnswer(Decision.ONCE))
        await emit(stage, pilot, settled, PermissionAsked(bash("c2")))
        question.arm()
        timers.go_off()
        await pilot.pause()
        assert stage.agent.answers == []


def test_one_line_left_out_is_one_line() -> None:
    request = replace(bash(), loop=("one\ntwo\nthree\nfour",))
    shown = [line.text for line in ToolCallQuestion(request, lambda _answer: None).lines(80)]
    assert any(line.endswith("… 1 more line") for line in shown)
