"""The ``todo`` tool, and the list it leaves on a path."""

import json

import pytest

from tests.support.session_paths import PathBuilder
from tests.support.tooling import Workspace
from tui_agent.context.files import FileOperations
from tui_agent.context.preserved import Budgets, Summarised, carry
from tui_agent.errors import ToolError
from tui_agent.session.entries import StateText, SummaryDetails, ToolStatus
from tui_agent.tools.arguments import parse_arguments
from tui_agent.tools.registry import tool_traits
from tui_agent.tools.todo import EMPTY, Todo, TodoInput, TodoStatus, TodoTool, current_todos, parse

LIST = "[x] read\n[>] change\n[ ] test\n[-] rewrite"
TODOS = (
    Todo("read", TodoStatus.DONE),
    Todo("change", TodoStatus.IN_PROGRESS),
    Todo("test", TodoStatus.PENDING),
    Todo("rewrite", TodoStatus.CANCELLED),
)


def words(text: str) -> int:
    return len(text.split())


async def test_the_list_comes_back_in_one_form(space: Workspace) -> None:
    result = await space.call(TodoTool(), todos=LIST)
    assert result.output == LIST
    assert (result.title, result.metadata.count) == ("1/3 done", 4)
    assert TodoTool().needs(TodoInput(todos=LIST), space.context()) == ()


@pytest.mark.parametrize(
    "todos",
    [
        "- [x] read\n- [~] change\n- [ ] test\n* [-] rewrite",
        "# Plan\n1. [X] read\n2) [>] change\n\n3. test\n[-]   rewrite  ",
        [
            {"content": "read", "status": "completed", "activeForm": "Reading"},
            {"content": "change", "status": "in-progress", "id": "2"},
            {"title": "test", "status": "pending", "priority": "high"},
            {"text": "rewrite", "status": "canceled"},
        ],
        ["[x] read", "[>] change", "test", "[-] rewrite"],
    ],
)
def test_how_models_write_lists(todos: object) -> None:
    arguments = parse_arguments(TodoTool(), json.dumps({"todos": todos}))
    assert isinstance(arguments, TodoInput)
    assert parse(arguments.todos) == TODOS


def test_an_unknown_status_and_an_item_without_content_are_told() -> None:
    with pytest.raises(
        ToolError, match="later is not a status; use pending, in_progress, done, cancelled"
    ):
        parse_arguments(TodoTool(), '{"todos": [{"content": "x", "status": "later"}]}')
    with pytest.raises(ToolError, match="an item has no content, only status"):
        parse_arguments(TodoTool(), '{"todos": [{"status": "done"}]}')


@pytest.mark.parametrize("todos", ["\n".join(f"[ ] {n}" for n in range(101)), "[ ] " + "x" * 9_000])
async def test_a_list_is_taken_whole_or_not(space: Workspace, todos: str) -> None:
    with pytest.raises(ToolError, match="too long"):
        await space.call(TodoTool(), todos=todos)


def test_the_last_result_is_the_list() -> None:
    build = PathBuilder()
    build.user("go")
    assert current_todos(build.path) == ()
    build.run("todo", {}, "[ ] first")
    build.run("todo", {}, LIST)
    build.run("todo", {}, "denied", status=ToolStatus.DENIED)
    build.say("ok")
    assert current_todos(build.path) == TODOS
    build.run("todo", {}, EMPTY)
    assert current_todos(build.path) == ()


def test_a_compaction_carries_the_list() -> None:
    build = PathBuilder()
    details = SummaryDetails(
        state=(StateText(tool="skill", name="x", text="y"), StateText(tool="todo", text=LIST))
    )
    kept = build.user("kept")
    build.compaction("summary", kept.id, details=details)
    build.say("ok")
    assert current_todos(build.path) == TODOS


def test_a_result_that_a_compaction_kept_is_newer_than_what_it_carries() -> None:
    build = PathBuilder()
    kept = build.run("todo", {}, LIST)
    build.compaction(
        "summary", kept.id, details=SummaryDetails(state=(StateText(tool="todo", text="[ ] old"),))
    )
    assert current_todos(build.path) == TODOS


def test_a_branch_summary_carries_the_list_of_the_branch() -> None:
    build = PathBuilder()
    build.run("todo", {}, "[ ] before the branch")
    build.branch_summary("tried it", 9, SummaryDetails(state=(StateText(tool="todo", text=LIST),)))
    assert current_todos(build.path) == TODOS
    build.branch_summary("another", 12)
    assert current_todos(build.path) == TODOS


def carried(text: str, tokens: int) -> tuple[StateText, ...]:
    build = PathBuilder()
    build.run("todo", {}, text)
    budgets = Budgets(user_messages=100, anchors=100, files=100, state=tokens)
    return carry(
        Summarised(build.path, FileOperations(), tool_traits()), SummaryDetails(), budgets, words
    ).state


def test_in_a_small_window_what_is_finished_goes_first() -> None:
    text = "\n".join([f"[x] done {n}" for n in range(30)] + [f"[ ] open {n}" for n in range(3)])
    (state,) = carried(text, 40)
    assert state.text == "[ ] open 0\n[ ] open 1\n[ ] open 2\n# 30 items not listed"
    assert [todo.content for todo in parse(state.text)] == ["open 0", "open 1", "open 2"]


def test_in_a_tiny_one_what_comes_last_goes_too() -> None:
    text = "\n".join(f"[ ] open {n}" for n in range(30))
    (state,) = carried(text, 26)
    assert [todo.content for todo in parse(state.text)] == ["open 0", "open 1", "open 2"]
    assert carried(text, 5) == ()
