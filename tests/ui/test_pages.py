"""Pages of text and what /copy copies."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from textual.content import Content
from textual.widgets import Static

from tests.support.ui_app import STILL, Stage, make_stage, run_command, screen_text, until
from tui_agent.app.copy_commands import last_code
from tui_agent.app.frontend import (
    Choice,
    HelpPage,
    JobsPage,
    LongText,
    Output,
    Page,
    PermissionsPage,
    SettingsPage,
    SubagentPage,
    TextLine,
)
from tui_agent.app.report_commands import todo_lines
from tui_agent.session.entries import (
    AssistantEntry,
    ShellEntry,
    TextPart,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.ui.screens.branch import BranchScreen
from tui_agent.ui.screens.dialogs import ChoiceScreen, LineScreen, LongTextScreen, ReportScreen
from tui_agent.ui.screens.viewer import ViewerScreen

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent

ANSWER = "First:\n\n```python\nold = 1\n```\n\nthen\n\n~~~sh\nmake test\n\nmake\n~~~\n\nDone."


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ([ANSWER], "make test\n\nmake"),
        (["no code", ANSWER], "make test\n\nmake"),
        (["````md\n```\ninner\n```\n````"], "```\ninner\n```"),
        (["```\ncut off"], "cut off"),
        (["a `b` c"], None),
        ([], None),
    ],
)
def test_the_last_code(answers: list[str], code: str | None) -> None:
    assert last_code(answers) == code


async def test_copying(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"):
        monkeypatch.delenv(name, raising=False)
    async with stage.run(notifications=True) as pilot:
        blob = stage.store.put_blob(b"all of it\n" * 3)
        result = ToolResultEntry(
            call_id="c",
            tool="bash",
            status=ToolStatus.COMPLETED,
            output="all of",
            full_output=blob,
            title="ls",
        )
        stage.agent.append(
            UserEntry(parts=(TextPart(text="Fix it."),)),
            AssistantEntry(model="m", parts=(TextPart(text=ANSWER),)),
            result,
            ShellEntry(command="ls", output="a\nb"),
            ShellEntry(command="touch x", output=""),
            result.model_copy(update={"output": "short", "full_output": None}),
        )
        await pilot.pause()

        async def copied(argument: str) -> Any:
            stage.app.copy_to_clipboard("")
            await run_command(stage, pilot, "copy", argument)
            return stage.app.clipboard

        assert await copied("") == ANSWER
        saved = tmp_path / "state" / "copied.txt"
        await until(lambda: saved.is_file() and saved.read_text() == ANSWER, pilot)
        await until(lambda: any("OSC 52" in toast for toast in stage.toasts), pilot)
        assert await copied("code") == "make test\n\nmake"
        assert await copied("#1") == "Fix it."
        assert await copied("3") == "all of it\n" * 3
        assert await copied("#4") == "a\nb"
        assert await copied("#5") == "touch x", "what the conversation copies of it, too"
        assert await copied("#6") == "short"
        whole = await copied("all")
        assert "Fix it." in whole
        assert "make test" in whole
        assert await copied("#99") == ""
        assert "99" in stage.main.notice.message
        assert await copied("everything") == ""
        assert stage.main.notice.message.startswith("Use /copy")


def test_pages() -> None:
    lines = todo_lines([("done", "read"), ("in_progress", "write"), ("pending", "test")])
    assert lines == ["1 of 3 done", "", "● read", "◐ write  (now)", "○ test"]


@pytest.mark.daily(1)
@pytest.mark.parametrize("size", [(40, 12), (80, 24), (120, 35), (200, 50)])
@pytest.mark.parametrize(
    "dialog",
    [
        lambda: ReportScreen(
            "Long", Content("\n".join(f"line {number} of a report" for number in range(90)))
        ),
        lambda: ChoiceScreen(
            Choice(
                "Which?",
                [(str(number), f"answer {number} " * 5) for number in range(20)],
                "why " * 60,
            )
        ),
        lambda: LineScreen(TextLine("What?", "text", details="why " * 60)),
        lambda: LongTextScreen(LongText("All of it", "\n".join(map(str, range(90))))),
    ],
    ids=["report", "choice", "line", "long text"],
)
async def test_a_dialog_shows_its_title_and_its_keys_in_any_size(
    stage: Stage, size: tuple[int, int], dialog: Any
) -> None:
    async with stage.run(size) as pilot:
        shown = dialog()
        stage.app.push_screen(shown)
        await until(lambda: stage.app.screen is shown, pilot)
        await pilot.pause()
        box, keys = shown.query_one(".dialog").region, shown.keys.region
        assert 0 <= box.y < box.bottom <= size[1]
        assert keys.bottom == box.bottom - (size[1] > 12)
        title = str(shown.query_one(".dialog-title", Static).content)
        assert title.split(maxsplit=1)[0] in screen_text(stage)
        assert "esc back" in screen_text(stage)
        last = max(
            part.region.bottom for part in shown.query(".dialog > *") if part is not shown.keys
        )
        assert last == keys.y


@pytest.mark.parametrize("question", [None, TextLine("Name?")])
async def test_a_page_that_comes_late_waits_for_a_pause_in_typing(
    tmp_path: Path, question: TextLine | None
) -> None:
    now = 1_000.0
    settings = STILL.model_copy(update={"typing_pause": 0.05})
    stage = make_stage(tmp_path, settings=settings, clock=lambda: now)
    async with stage.run() as pilot:
        main = stage.main
        await main.controller.run("clear-nothing")
        now += 1
        await pilot.press("h", "i")
        if question is None:
            main.show(Output("Late", "text"))
        else:
            main.controller.soon(main.ask(question))
        await pilot.press(" ", "u")
        assert stage.app.screen is main
        assert main.prompt.text == "hi u"
        now += 1
        await until(lambda: stage.app.screen is not main, pilot)
        assert main.prompt.text == "hi u"


async def test_the_page_of_a_subagent_waits_while_the_subagent_goes_on(tmp_path: Path) -> None:
    now = 1_000.0
    settings = STILL.model_copy(update={"typing_pause": 0.05})
    stage = make_stage(tmp_path, settings=settings, clock=lambda: now)
    async with stage.run() as pilot:
        page = SubagentPage(cast("Agent", stage.agent))
        await stage.main.controller.run("clear-nothing")
        now += 1
        await pilot.press("h", "i")
        stage.main.show(page)
        stage.agent.session.append(UserEntry(parts=(TextPart(text="go on"),)))
        now += 1
        await until(lambda: isinstance(stage.app.screen, BranchScreen), pilot)


async def test_keys_typed_before_a_command_hold_up_no_page(tmp_path: Path) -> None:
    settings = STILL.model_copy(update={"typing_pause": 30.0})
    stage = make_stage(tmp_path, settings=settings)
    async with stage.run() as pilot:
        await pilot.press("h", "i")
        stage.main.command_begins()
        stage.main.show(Output("At once", "text"))
        await until(lambda: stage.app.screen is not stage.main, pilot)


@pytest.mark.parametrize(
    "page",
    [Output("Late", "text"), PermissionsPage(), HelpPage(), JobsPage(), SettingsPage()],
    ids=lambda page: page.title,
)
async def test_a_page_asked_for_twice_opens_once(tmp_path: Path, page: Page) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        stage.main.show(page)
        stage.main.show(page)
        assert len(stage.app.screen_stack) == 2
        await until(lambda: stage.app.screen.is_attached, pilot)
        await pilot.press("escape")
        await until(lambda: stage.app.screen is stage.main, pilot)
        stage.main.show(page)
        assert stage.app.screen is not stage.main, "it opens again when it was left"


async def test_a_question_asked_twice_is_asked_once(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    async with stage.run() as pilot:
        first = stage.main.controller.soon(stage.main.ask(TextLine("Name?")))
        await until(lambda: stage.app.screen is not stage.main, pilot)
        assert await stage.main.ask(TextLine("Name?")) is None
        await pilot.press("n", "o", "enter")
        assert await first == "no"


async def test_a_page_that_waits_opens_once_and_not_over_a_newer_one(tmp_path: Path) -> None:
    now = 1_000.0
    settings = STILL.model_copy(update={"typing_pause": 0.001})
    stage = make_stage(tmp_path, settings=settings, clock=lambda: now)
    async with stage.run() as pilot:
        main = stage.main
        late = Output("Late", "text")
        await main.controller.run("clear-nothing")
        now += 1
        await pilot.press("h", "i")
        main.show(late)
        main.show(late)
        main.controller.soon(main.ask(TextLine("Name?")))
        await pilot.pause()
        now += 1
        main.command_begins()
        main.show(SettingsPage())
        newer = stage.app.screen
        assert newer is not main
        for _ in range(3):
            await pilot.pause()
        assert stage.app.screen is newer
        newer.dismiss()
        opened = []
        for _ in range(2):
            await until(lambda: stage.app.screen not in {main, *opened}, pilot)
            opened.append(stage.app.screen)
            assert len(stage.app.screen_stack) == 2
            stage.app.screen.dismiss()
        assert [type(screen) for screen in opened] == [ViewerScreen, LineScreen]
        assert stage.app.screen is main
