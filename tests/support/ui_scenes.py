"""What pictures of the interface are taken of: each scene brings the application into one state."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tests.support.ui_app import STILL, Stage, make_stage, press, until, write
from tui_agent.agent.events import (
    AnswerDelta,
    PermissionAsked,
    PermissionRequest,
    RequestStarted,
    RunEnded,
    RunStarted,
)
from tui_agent.app.services import FirstView
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.session.effort import Effort
from tui_agent.session.entries import (
    AssistantEntry,
    Entry,
    TextPart,
    ToolCallPart,
    ToolMetadata,
    ToolResultEntry,
    ToolStatus,
    Usage,
    UserEntry,
)
from tui_agent.session.session import Session

DIFF = """--- a/src/auth/views.py
+++ b/src/auth/views.py
@@ -39,5 +39,5 @@
 def login(request):
     if not request.user.is_authenticated:
-        return redirect(LOGIN_URL)
+        return redirect(f"{LOGIN_URL}?{urlencode({'next': request.path})}")
     return home(request)
"""


def conversation() -> list[Entry]:
    calls = (
        ToolCallPart(call_id="1", tool="grep", arguments='{"pattern": "next=", "path": "src"}'),
        ToolCallPart(call_id="2", tool="edit", arguments='{"path": "src/auth/views.py"}'),
    )
    usage = Usage(input=4_000, cache_read=46_000, output=210)
    model = "anthropic/claude-sonnet-4-5"
    told = "The redirect dropped `next` because it was built from a **constant**.\n"
    result = partial(ToolResultEntry, status=ToolStatus.COMPLETED, started_at=0)
    return [
        UserEntry(parts=(TextPart(text="The login redirect loses the query string. Find out why."),)),
        AssistantEntry(parts=calls, model=model, usage=usage, cost=0.02, finish="tool_calls"),
        result(call_id="1", tool="grep", output="src/auth/views.py:41: ...", title='"next=" src',
               metadata=ToolMetadata(count=12), ended_at=100),
        result(call_id="2", tool="edit", output="done", title="src/auth/views.py", ended_at=40,
               metadata=ToolMetadata(path="src/auth/views.py", diff=DIFF, additions=1, deletions=1)),
        AssistantEntry(parts=(TextPart(text=told),), model=model, usage=usage, cost=0.02),
    ]  # fmt: skip


def question_bash() -> PermissionRequest:
    command = "rm -rf build && python -m build --wheel"
    needs = (PermissionNeed(Permission.BASH, command, command, "command"),)
    return PermissionRequest(
        "c1", "bash", command, needs, "it runs a command", (f"allow bash: {command}",)
    )


def question_edit() -> PermissionRequest:
    needs = (PermissionNeed(Permission.EDIT, "src/auth/views.py", DIFF, "diff"),)
    return PermissionRequest(
        "c2", "edit", "src/auth/views.py", needs, "it changes a file", ("allow edit: *",)
    )


Act = Callable[[Stage, Any], Awaitable[None]]


async def _conversation(stage: Stage, pilot: Any) -> None:
    stage.agent.append(*conversation())
    await pilot.pause()


async def _streaming(stage: Stage, pilot: Any) -> None:
    await _conversation(stage, pilot)
    stage.agent.emit(
        RunStarted(), RequestStarted(3, "m"), AnswerDelta("Now I look at the tests, and")
    )
    await pilot.pause()
    stage.agent.submit("use pytest, not unittest")
    stage.agent.submit("then write a changelog entry", follow_up=True)
    await write(pilot, "and also")


async def _ask_bash(stage: Stage, pilot: Any) -> None:
    await _conversation(stage, pilot)
    stage.agent.emit(RunStarted(), PermissionAsked(question_bash()))
    await until(lambda: stage.view.question.display, pilot)


async def _ask_edit(stage: Stage, pilot: Any) -> None:
    await _conversation(stage, pilot)
    stage.agent.emit(
        RunStarted(), PermissionAsked(question_edit()), PermissionAsked(question_bash())
    )
    await until(lambda: stage.view.question.display, pilot)


async def _note(stage: Stage, pilot: Any) -> None:
    await _ask_bash(stage, pilot)
    await pilot.press("4")
    await write(pilot, "use make clean")


async def _failed(stage: Stage, pilot: Any) -> None:
    await _conversation(stage, pilot)
    sentence = (
        "The provider refused the key: set ANTHROPIC_API_KEY, or use another model with /model."
    )
    stage.agent.emit(RunStarted(), RunEnded("error", sentence))
    await pilot.pause()


async def _files(stage: Stage, pilot: Any) -> None:
    await write(pilot, "look at @auth")
    await until(lambda: stage.main.popup.display, pilot)


async def _palette(stage: Stage, pilot: Any) -> None:
    await _conversation(stage, pilot)
    await pilot.press("ctrl+p")
    await write(pilot, "co")
    await pilot.pause()


async def _full(stage: Stage, pilot: Any) -> None:
    stage.agent.size = replace(stage.agent.size, total=186_000, history=174_000, estimated=False)
    await _conversation(stage, pilot)


async def _sessions(stage: Stage, pilot: Any) -> None:
    listing = stage.app.screen.query_one("#rows")
    await until(lambda: len(listing.options) == 5, pilot)  # type: ignore[attr-defined]
    await until(lambda: any("$0.42" in str(option.prompt) for option in listing.options), pilot)  # type: ignore[attr-defined]


async def _found(stage: Stage, pilot: Any) -> None:
    await _sessions(stage, pilot)
    await pilot.press("slash", *"redirect")
    listing = stage.app.screen.query_one("#rows")
    await until(lambda: len(listing.options) == 4, pilot)  # type: ignore[attr-defined]
    # What was typed so far is looked for, too: the last of it counts.
    await until(lambda: not any(worker.is_running for worker in stage.app.screen.workers), pilot)


async def _models(stage: Stage, pilot: Any) -> None:
    await pilot.press("f2")
    await until(lambda: len(stage.app.screen.query_one("#rows").options) == 9, pilot)  # type: ignore[attr-defined]


async def _effort(stage: Stage, pilot: Any) -> None:
    await _conversation(stage, pilot)
    stage.agent.levels = (Effort.OFF, Effort.LOW, Effort.MEDIUM, Effort.HIGH)
    stage.agent.change_effort(Effort.HIGH)
    await pilot.press("f9")
    await until(lambda: len(stage.app.screen_stack) == 2, pilot)


async def _welcome(stage: Stage, pilot: Any) -> None:
    await until(lambda: stage.view.question.display, pilot)


async def _run(stage: Stage, pilot: Any, name: str) -> None:
    await _conversation(stage, pilot)
    await stage.main.controller.run(name, "")
    await until(lambda: len(stage.app.screen_stack) == 2, pilot)


async def _elsewhere(stage: Stage, pilot: Any) -> None:
    await pilot.press("f2")
    await until(lambda: len(stage.app.screen.query_one("#rows").options) == 9, pilot)  # type: ignore[attr-defined]
    stage.agent.emit(RunStarted(), PermissionAsked(question_bash()))
    await pilot.pause()


@dataclass(frozen=True)
class Scene:
    act: Act
    start: FirstView = FirstView()


SCENES: dict[str, Scene] = {
    "empty": Scene(lambda _stage, pilot: pilot.pause()),
    "conversation": Scene(_conversation),
    "streaming": Scene(_streaming),
    "ask_bash": Scene(_ask_bash),
    "ask_edit": Scene(_ask_edit),
    "note": Scene(_note),
    "failed": Scene(_failed),
    "commands": Scene(lambda _stage, pilot: press(pilot, "slash")),
    "files": Scene(_files),
    "palette": Scene(_palette),
    "full": Scene(_full),
    "sessions": Scene(_sessions, FirstView(screen="sessions")),
    "found": Scene(_found, FirstView(screen="sessions")),
    "models": Scene(_models),
    "effort": Scene(_effort),
    "welcome": Scene(_welcome, FirstView(screen="welcome")),
    "help": Scene(partial(_run, name="help")),
    "cost": Scene(partial(_run, name="cost")),
    "themes": Scene(partial(_run, name="theme")),
    "elsewhere": Scene(_elsewhere),
}


def scene_stage(
    tmp_path: Path, name: str, *, theme: str = "textual-dark", files: Path | None = None
) -> Stage:
    """Return the application for a scene, with some sessions in its store."""
    scene = SCENES[name]
    stage = make_stage(
        tmp_path, start=scene.start, settings=STILL.model_copy(update={"theme": theme})
    )
    if name in {"sessions", "found"}:
        first = "The login redirect loses the query string"
        shop, notes = "/home/ada/src/shop", "/home/ada/notes"
        texts = {
            first: shop,
            "Why are the tests slow on CI?": shop,
            "日本語のREADMEを書いて 🎉": shop,
            "Sort my notes": notes,
        }
        for text, cwd in texts.items():
            session = Session(
                stage.store, stage.store.create_session(cwd).id, estimate=lambda _entry: 9
            )
            session.append(UserEntry(parts=(TextPart(text=text),)))
            if text is first:
                said = (TextPart(text="The redirect dropped next: 重定向 of /login."),)
                session.append(
                    AssistantEntry(parts=said, model="anthropic/claude-sonnet-4-5", cost=0.42)
                )
                session.append(
                    UserEntry(parts=(TextPart(text="Now write a test for the redirect"),))
                )
                session.set_title("Login loses the query")
    return stage


async def play(stage: Stage, pilot: Any, name: str) -> None:
    await until(lambda: stage.agents, pilot)
    await pilot.pause()
    await SCENES[name].act(stage, pilot)
    await pilot.pause()
