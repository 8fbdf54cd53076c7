"""An editor that behaves badly or cancels at any moment: every prompt is answered, nothing but messages is read."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from acp.helpers import update_agent_message_text
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    ClientCapabilities,
    DeclineElicitationResponse,
    ElicitationCapabilities,
    ElicitationFormCapabilities,
    ElicitationSchema,
    RequestPermissionResponse,
)

from tests.support.agents import make_agent
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.acp import session as module
from tui_agent.acp.server import MessageLines, is_message
from tui_agent.acp.session import EditorSession
from tui_agent.acp.updates import Prompt
from tui_agent.agent.context_keeper import ContextKeeper
from tui_agent.app.services import OpenRequest
from tui_agent.session.session import Session


class Editor:
    """Answers every question with one option, whether it was offered or not."""

    def __init__(self, option: str = "once") -> None:
        self.option = option
        self.offered: list[str] = []

    async def session_update(self, session_id: str, update: Any, **_more: Any) -> None:
        pass

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_more: Any
    ) -> RequestPermissionResponse:
        self.offered = [option.option_id for option in options]
        return RequestPermissionResponse(
            outcome=AllowedOutcome(outcome="selected", option_id=self.option)
        )


async def opened(tmp_path: Path, editor: Any, *replies: Reply) -> EditorSession:
    harness = make_agent(tmp_path, ScriptedClient(list(replies)), answer=None)
    session = EditorSession(editor, harness.services())
    await session.open(OpenRequest())
    return session


async def test_a_cancel_that_comes_before_the_run_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await opened(tmp_path, Editor(), Reply("never"))
    prepare, at, on = module.prepare, asyncio.Event(), asyncio.Event()

    async def slow(*arguments: Any) -> Any:
        at.set()
        await on.wait()
        return await prepare(*arguments)

    monkeypatch.setattr(module, "prepare", slow)
    prompt = asyncio.ensure_future(session.prompt(Prompt("hello", ())))
    await at.wait()
    session.cancel()
    on.set()
    assert await asyncio.wait_for(prompt, 60) == "cancelled"
    assert session.agent.session.path() == []
    await session.aclose()


async def test_a_compaction_that_is_cancelled_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await opened(tmp_path, Editor())
    at = asyncio.Event()

    async def slow(*_arguments: Any, **_more: Any) -> None:
        at.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(ContextKeeper, "compact", slow)
    prompt = asyncio.ensure_future(session.prompt(Prompt("/compact", ())))
    await at.wait()
    session.cancel()
    done, _waiting = await asyncio.wait([prompt], timeout=60)
    assert [task.cancelled() or task.result() for task in done] == ["cancelled"]
    await session.aclose()


async def test_an_answer_that_was_not_offered_refuses(tmp_path: Path) -> None:
    call = Call("bash", json.dumps({"command": "curl x; touch made"}))
    editor = Editor("stop")
    session = await opened(tmp_path, editor, Reply("", (call,)), Reply("Went on."))
    assert await asyncio.wait_for(session.prompt(Prompt("hello", ())), 60) == "end_turn"
    assert "stop" not in editor.offered
    # Refused, not stopped: the model had its turn after it.
    assert [entry.kind for entry in session.agent.session.path()][-2:] == [
        "tool_result",
        "assistant",
    ]
    assert not (tmp_path / "project" / "made").exists()
    await session.aclose()


QUESTIONS = [
    {"question": "Which database?", "options": ["*SQLite: one file", "Postgres"]},
    {"question": "Which parts?", "options": ["API", "page", "tests"], "several": True},
    {"question": "What is it called?"},
]


class FormEditor(Editor):
    """Fills in every form with the same values."""

    def __init__(self, content: dict[str, Any] | None) -> None:
        super().__init__()
        self.content = content
        self.forms: list[ElicitationSchema] = []

    async def create_elicitation(self, message: str, mode: Any, **_more: Any) -> Any:
        self.forms.append(mode.requested_schema)
        if self.content is None:
            return DeclineElicitationResponse(action="decline")
        return AcceptElicitationResponse(action="accept", content=self.content)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"1": "Postgres", "2": ["API", "tests"], "3": "Shop"}, ["Postgres", "API, tests", "Shop"]),
        (
            {"1": "SQLite", "1-words": "a file", "2": [], "2-words": "all", "3": "X"},
            ["a file", "all", "X"],
        ),
        ({"1": "SQLite", "2": [], "3": "X"}, None),
        ({}, None),
        (None, None),
    ],
)
async def test_all_questions_of_the_model_are_one_form(
    tmp_path: Path, content: dict[str, Any] | None, said: list[str] | None
) -> None:
    call = Call("ask", json.dumps({"questions": QUESTIONS}))
    script = ScriptedClient([Reply("", (call,)), Reply("Built.")])
    harness = make_agent(tmp_path, script, answer=None)
    editor = FormEditor(content)
    able = ClientCapabilities(
        elicitation=ElicitationCapabilities(form=ElicitationFormCapabilities())
    )
    session = EditorSession(editor, harness.services(), able)
    await session.open(OpenRequest())
    assert await asyncio.wait_for(session.prompt(Prompt("build", ())), 60) == "end_turn"
    await session.aclose()
    (form,) = editor.forms
    assert [field.title for field in (form.properties or {}).values()][::2] == [
        question["question"] for question in QUESTIONS
    ]
    assert (form.properties or {})["1"].default == "SQLite"
    (result,) = harness.results()
    if said is None:
        assert "no answer" in result.output
    else:
        assert [row[2:] for row in result.output.split("\n") if row.startswith("→ ")] == said


@pytest.mark.parametrize(
    "line",
    [b"[]", b"null", b'"x"', b"5", b'{"method": 5}', b'{"id": []}', b'{"id": 1, "error": "no"}'],
)
async def test_what_is_no_message_is_passed_over(line: bytes) -> None:
    good = b'{"jsonrpc": "2.0", "id": 1, "method": "initialize"}\n'
    reader = MessageLines()
    reader.feed_data(line + b"\n" + good + line)
    reader.feed_eof()
    assert await reader.readuntil() == good
    with pytest.raises(asyncio.IncompleteReadError) as ended:
        await reader.readuntil()
    assert ended.value.partial == b""


async def test_a_line_that_comes_in_pieces_is_kept_whole() -> None:
    reader = MessageLines(limit=100)
    reader.feed_data(b'{"method": "' + b"x" * 300 + b'", "params": []}\n{}\n')
    reader.feed_eof()
    pieces = b""
    while not pieces.endswith(b"\n"):
        try:
            pieces += await reader.readuntil()
        except asyncio.LimitOverrunError as error:
            pieces += await reader.readexactly(error.consumed)
    assert is_message(pieces)
    assert json.loads(pieces)["method"] == "x" * 300


class RecordingEditor(Editor):
    """Remembers the texts of the updates."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    async def session_update(self, session_id: str, update: Any, **_more: Any) -> None:
        self.texts.append(getattr(getattr(update, "content", None), "text", ""))


class HangingEditor(Editor):
    """Takes no update to its end."""

    def __init__(self) -> None:
        super().__init__()
        self.sending = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **_more: Any) -> None:
        self.sending.set()
        await asyncio.Event().wait()


@pytest.mark.parametrize("command", ["/fork", "/new", "/demo"])
async def test_a_command_that_would_open_another_session_says_where_to_do_that(
    tmp_path: Path, command: str
) -> None:
    harness = make_agent(tmp_path, ScriptedClient([Reply("Yes.")]), answer=None)
    opened: list[OpenRequest] = []

    def open_session(request: OpenRequest) -> Session:
        opened.append(request)
        return harness.session

    editor = RecordingEditor()
    session = EditorSession(editor, harness.services(open_session=open_session))  # type: ignore[arg-type]
    await session.open(OpenRequest())
    await session.prompt(Prompt("hello", ()))
    await session.prompt(Prompt(command, ()))
    assert len(opened) == 1
    assert "your editor's list of sessions" in editor.texts[-1]
    await session.aclose()


async def test_what_could_not_be_attached_is_said(tmp_path: Path) -> None:
    editor = RecordingEditor()
    session = await opened(tmp_path, editor, Reply("Yes."))
    (session.agent.ports.cwd / "cut.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    await session.prompt(Prompt("see @cut.png", ()))
    what = "a picture that is damaged or cut off"
    assert f"Not attached, it is {what}: cut.png.\n\n" in editor.texts
    await session.aclose()


@pytest.mark.parametrize("text", ["hello", "/compact"])
async def test_a_prompt_is_answered_if_its_session_is_closed_before_all_updates_are_sent(
    tmp_path: Path, text: str
) -> None:
    editor = HangingEditor()
    session = await opened(tmp_path, editor, Reply("I wait.", hang=True))
    prompt = asyncio.ensure_future(session.prompt(Prompt(text, ())))
    await asyncio.sleep(0)
    for number in range(3):
        session.queue_update(update_agent_message_text(str(number)))
    await editor.sending.wait()
    await session.aclose()
    assert await asyncio.wait_for(prompt, 10) == "cancelled"


class FirstAnswers(RecordingEditor):
    """Gives the first answer to every question."""

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_more: Any
    ) -> RequestPermissionResponse:
        await asyncio.sleep(0)
        return RequestPermissionResponse(
            outcome=AllowedOutcome(outcome="selected", option_id=options[0].option_id)
        )


async def test_a_question_that_the_editor_can_t_ask_is_not_answered_and_said(
    tmp_path: Path,
) -> None:
    questions = [QUESTIONS[0], {"question": "What is it called?"}]
    call = Call("ask", json.dumps({"questions": questions}))
    editor = FirstAnswers()
    session = await opened(tmp_path, editor, Reply("", (call,)), Reply("Went on."))
    assert await asyncio.wait_for(session.prompt(Prompt("hello", ())), 10) == "end_turn"
    assert any("Your editor can't ask this." in text for text in editor.texts)
    await session.prompt(Prompt("/rename", ()))
    assert "Your editor can't ask this." in editor.texts[-1]
    await session.aclose()
