"""The model asks the user: what is shown, what the model gets, and another answer later."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.app.test_race_commands import do
from tests.support.agents import make_agent
from tests.support.headless import run_headless
from tests.support.races import writes
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.agent.events import QuestionAsked, QuestionsAnswered
from tui_agent.app.controller import Controller
from tui_agent.app.frontend import Choice, Frontend, Question
from tui_agent.app.services import OpenRequest
from tui_agent.cli.output import ExitCode
from tui_agent.session.entries import ToolResultEntry
from tui_agent.tools.ask import UNANSWERED, AskInput, answers_text, questions_of
from tui_agent.tools.questions import Answer

DATABASE = {
    "question": "Which database?",
    "options": [
        {"label": "SQLite", "about": "one file", "recommended": True},
        {"label": "Postgres", "about": "a server"},
    ],
}
PARTS = {"question": "Which parts?", "options": ["API", "page", "tests"], "several": True}
NAME = {"question": "What is it called?", "options": []}


def asks(*questions: Any) -> Call:
    return Call("ask", json.dumps({"questions": questions}))


class Answering(Frontend):
    """A person who gives these answers, one after the other."""

    def __init__(self, *answers: str | None) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []
        self.said: list[str] = []

    def say(self, message: str, severity: str = "information", remedy: object = None) -> None:
        self.said.append(message)

    async def ask(self, question: Question[Any]) -> Any:
        self.asked.append(question)
        answer = self.answers.pop(0)
        if isinstance(question, Choice) and answer is not None:
            assert answer in dict(question.answers)
        return answer


async def talk(tmp_path: Path, replies: list[Reply], *answers: str | None) -> tuple[Any, Any, Any]:
    harness = make_agent(tmp_path, ScriptedClient(replies), keeps_files=True)
    frontend = Answering(*answers)
    controller = Controller(frontend, lambda _event: None)
    controller.attach(harness.services())
    await controller.open_or_raise(OpenRequest(harness.session.id))
    await harness.say("Build it.")
    return harness, frontend, controller


def results(harness: Any) -> list[str]:
    return [entry.output for entry in harness.results()]


async def test_the_answers_are_what_the_model_reads(tmp_path: Path) -> None:
    replies = [Reply(calls=(asks(DATABASE, PARTS, NAME),)), Reply("Thank you.")]
    harness, frontend, _ = await talk(
        tmp_path, replies, "Postgres", "API", "tests", "\0done", "  shop ", "y"
    )
    assert results(harness) == [
        "Which database?\n→ Postgres\n\nWhich parts?\n→ API, tests\n\nWhat is it called?\n→ shop"
    ]
    first = frontend.asked[0]
    assert first.question == "1 of 3 · Which database?"
    assert first.at == "SQLite", "the recommended one"
    assert dict(first.answers)["SQLite"] == "SQLite: one file (recommended)"
    assert "Postgres" in frontend.asked[-1].details, "the answers can be checked before they go"


async def test_one_question_is_asked_without_more(tmp_path: Path) -> None:
    replies = [Reply(calls=(asks(DATABASE),)), Reply("Thank you.")]
    harness, frontend, _ = await talk(tmp_path, replies, "\0words", "neither: files")
    assert results(harness) == ["Which database?\n→ neither: files"]
    assert [type(question).__name__ for question in frontend.asked] == ["Choice", "TextLine"]


async def test_the_agent_says_when_a_question_waits_and_when_none_does_any_more(
    tmp_path: Path,
) -> None:
    replies = [Reply(calls=(asks(DATABASE),)), Reply("Thank you.")]
    harness, _, _ = await talk(tmp_path, replies, "SQLite")
    heard = [
        event for event in harness.events if isinstance(event, QuestionAsked | QuestionsAnswered)
    ]
    assert heard == [QuestionAsked("Which database?"), QuestionsAnswered()]


async def test_going_back_asks_the_question_before(tmp_path: Path) -> None:
    replies = [Reply(calls=(asks(DATABASE, NAME),)), Reply("Thank you.")]
    harness, frontend, _ = await talk(
        tmp_path, replies, "SQLite", None, "Postgres", "shop", "n", "SQLite", "shop", "y"
    )
    assert results(harness) == ["Which database?\n→ SQLite\n\nWhat is it called?\n→ shop"]
    assert frontend.asked[2].at == "SQLite", "what was answered before"


async def test_no_answer_is_said(tmp_path: Path) -> None:
    replies = [Reply(calls=(asks(DATABASE),)), Reply("Then I don't.")]
    harness, _, _ = await talk(tmp_path, replies, None)
    assert results(harness) == [UNANSWERED]


async def test_another_answer_is_another_branch_and_takes_files_back(tmp_path: Path) -> None:
    replies = [
        Reply(calls=(asks(DATABASE), Call("ls", "{}"))),
        Reply(calls=(writes("db.txt", "sqlite\n"),)),
        Reply("Done with SQLite."),
        Reply("Done with Postgres."),
    ]
    harness, frontend, controller = await talk(tmp_path, replies, "SQLite")
    made = Path(harness.session.info.cwd) / "db.txt"
    assert made.read_text() == "sqlite\n"
    before = harness.path()

    frontend.answers = ["Postgres"]
    assert await do(controller, "answer")
    await harness.ended()
    assert frontend.asked[-1].at == "SQLite", "the answer given before"
    assert not made.exists(), "the work on the other answer is taken back"
    assert results(harness)[0] == "Which database?\n→ Postgres"
    assert len(results(harness)) == 2, "the other results of that step hold with any answer"
    sent = harness.client.requests[-1].messages
    assert [message.role for message in sent][-3:] == ["assistant", "tool", "tool"]
    assert "Postgres" in str(sent[-2])

    assert await do(controller, "undo")
    assert await do(controller, "undo"), "the answer, then the way back"
    assert [entry.id for entry in harness.path()] == [entry.id for entry in before]
    assert made.read_text() == "sqlite\n"


async def test_what_can_not_be_answered_is_said(tmp_path: Path) -> None:
    harness, frontend, controller = await talk(tmp_path, [Reply("Hello.")])
    assert not await do(controller, "answer")
    assert frontend.said[-1] == "The model has asked no questions on this branch."
    assert harness.entries(ToolResultEntry) == []


@pytest.mark.parametrize(
    ("question", "code"), [(DATABASE, ExitCode.DONE), (PARTS, ExitCode.STOPPED)]
)
async def test_without_a_screen_what_is_recommended_is_taken(
    tmp_path: Path, question: Any, code: ExitCode
) -> None:
    client = ScriptedClient([Reply(calls=(asks(question),)), Reply("Done.")])
    harness = make_agent(tmp_path, client, answer=None)
    out, err = io.StringIO(), io.StringIO()
    assert await run_headless(harness, "go", out=out, err=err) == code
    said = err.getvalue()
    assert ("SQLite" in said) if code is ExitCode.DONE else ("Which parts?" in said)


words = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=40)


@given(st.lists(words, min_size=2, max_size=4, unique=True), st.integers(0, 3), st.booleans())
def test_any_labels_come_back_as_they_are(labels: list[str], at: int, several: bool) -> None:
    arguments = AskInput.model_validate(
        {"questions": [{"question": "Which?", "options": labels, "several": several}]}
    )
    asked = questions_of(arguments)
    chosen = labels[at % len(labels)]
    answer = Answer("accept", {"1": [chosen] if several else chosen})
    assert answers_text(asked, answer) == f"Which?\n→ {chosen}"
