"""Models too small for tools: requests that tell the next step, and the steps in their answers."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.context.request import ContentText, Message, ModelRequest, RequestToolCall
from tui_agent.model.steps import files_seen, in_steps, read_step

CALC = "def add(a, b):\n    return a - b\n"
MENDED = "def add(a, b):\n    return a + b\n"
TWO = f"{CALC}\n\ndef sub(a, b):\n    return a - b\n"
SYSTEM = Message("system", (ContentText("You are an agent."),), origin=(1,))
TASK = Message("user", (ContentText("Mend calc.py."),), origin=(2,))


def called(number: int, tool: str, result: str, **arguments: str) -> list[Message]:
    """Return a call and its result."""
    call = RequestToolCall(f"c{number}", tool, json.dumps(arguments))
    return [
        Message("assistant", tool_calls=(call,), origin=(number,)),
        Message("tool", (ContentText(result),), call_id=call.call_id, origin=(number + 1,)),
    ]


def was_read(text: str = CALC, path: str = "calc.py") -> list[Message]:
    rows = [f"{number}\t{line}" for number, line in enumerate(text.splitlines(), 1)]
    return called(10, "read", "\n".join(rows), path=path)


def was_written(text: str, number: int = 20) -> list[Message]:
    return called(number, "write", "Wrote calc.py.", path="calc.py", content=text)


def asked(*messages: Message, tool_choice: str = "auto") -> list[Message]:
    request = ModelRequest("m", (SYSTEM, TASK, *messages))
    if tool_choice == "none":
        request = replace(request, tool_choice="none")
    return list(in_steps(request, lambda name: f"({name})").messages)


def last(*messages: Message) -> str:
    return asked(*messages)[-1].text


def test_before_a_file_was_seen_it_is_told_how_to_see_one() -> None:
    assert last() == "Mend calc.py. (step_unseen)"


def test_a_file_that_was_read_stands_before_the_task_and_no_call_is_shown() -> None:
    sent = asked(*was_read())
    assert [message.role for message in sent] == ["system", "user"]
    assert sent[-1].text == f"calc.py:\n```\n{CALC}```\n\nMend calc.py. (step_seen)"


def test_a_file_is_shown_as_it_was_written_last() -> None:
    said = last(*was_read(), *was_written(MENDED))
    assert "a - b" not in said
    assert MENDED in said
    assert said.endswith("(step_written)")


def test_a_file_written_as_it_was_is_asked_for_once_more_and_then_no_more() -> None:
    once = [*was_read(), *was_written(CALC)]
    assert last(*once).endswith("(step_again)")
    assert last(*once, *was_written(CALC, 30)).endswith("(step_written)")


def test_a_result_that_is_no_file_is_shown() -> None:
    lost = called(5, "read", "calc.py does not exist.", path="calc.py")
    lost[-1] = replace(lost[-1], failed=True)
    assert last(*lost) == "calc.py does not exist.\n\nMend calc.py. (step_seen)"


@pytest.mark.parametrize(
    ("path", "result"),
    [
        ("calc.py", "1\tdef add(a, b):\n[Lines 1-1 of 2. Read on with offset=2.]"),
        ("calc.py", "2\t    return a - b"),
        ("calc.ipynb", "1\tdef add(a, b):\n2\t    return a - b"),
    ],
)
def test_a_part_of_a_file_is_a_result_and_nothing_takes_its_place(path: str, result: str) -> None:
    messages = called(10, "read", result, path=path)
    assert last(*messages) == f"{result}\n\nMend calc.py. (step_seen)"
    assert read_step(f"```python\n{MENDED}```", [TASK, *messages]) is None


def test_a_request_that_may_call_nothing_is_told_no_step() -> None:
    assert asked(tool_choice="none")[-1].text == "Mend calc.py."


def test_a_request_that_is_no_conversation_stays_as_it_is() -> None:
    title = ModelRequest("m", (Message("user", (ContentText("Name it."),)),))
    assert in_steps(title, lambda name: name) == title


SEEN = [TASK, *was_read()]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("READ calc.py", "calc.py"),
        ("READ: `src/calc.py`", "src/calc.py"),
        ("I look at it first.\n\n**READ calc.py**", "calc.py"),
        ("READ my notes.txt", "my notes.txt"),
    ],
)
def test_it_asks_for_a_file_by_name(text: str, path: str) -> None:
    step = read_step(text, [TASK])
    assert step is not None
    assert [(call.tool, json.loads(call.arguments)) for call in step.calls] == [
        ("read", {"path": path})
    ]


@pytest.mark.parametrize(
    "text",
    [
        f"```python\n{MENDED}```",
        f"Here it is:\n\n```python\n{MENDED}```\n\nThen run it:\n\n```sh\npytest\n```",
        f"Run `pip install x`:\n```sh\npip install x\n```\nThe mended calc.py:\n```\n{MENDED}```",
        f"```python\n{MENDED}",
        "1. So:\n\n   ```python\n   def add(a, b):\n       return a + b\n   ```\n",
    ],
)
def test_a_fence_with_the_whole_file_writes_it(text: str) -> None:
    step = read_step(text, SEEN)
    assert step is not None
    (call,) = step.calls
    assert call.tool == "write"
    assert json.loads(call.arguments) == {"path": "calc.py", "content": MENDED}


@pytest.mark.parametrize(
    "text",
    [
        "It adds two numbers.",
        "```sh\npip install maths\n```",
        "```python\ndef test_add():\n    assert add(2, 3) == 5\n```",
        "You may READ it yourself.",
        "",
    ],
)
def test_other_answers_are_answers(text: str) -> None:
    assert read_step(text, SEEN) is None


def test_an_excerpt_does_not_take_the_place_of_a_file() -> None:
    messages = [TASK, *was_read(TWO)]
    assert read_step(f"```python\n{MENDED}```", messages) is None
    assert read_step(f"```python\n{TWO.replace('a - b', 'a + b', 1)}```", messages) is not None


def test_a_new_file_is_written_under_the_name_before_its_fence_and_in_the_task() -> None:
    task = replace(TASK, content=(ContentText("Make a file hello.py."),))
    step = read_step("This is hello.py:\n```python\nprint(1)\n```", [task])
    assert step is not None
    assert json.loads(step.calls[0].arguments) == {"path": "hello.py", "content": "print(1)\n"}
    assert read_step("```python\nprint(1)\n```", [task]) is None
    assert read_step("This is hello.py:\n```python\nprint(1)\n```", [TASK]) is None


@pytest.mark.parametrize(
    ("said", "writes"),
    [("Say hello.", False), ("Mend test_calc.", True), ("It should ADD them.", True)],
)
def test_a_file_is_written_only_where_a_word_of_the_task_is_in_it(
    said: str, *, writes: bool
) -> None:
    task = replace(TASK, content=(ContentText(said),))
    step = read_step(f"calc.py:\n```\n{MENDED}```", [task, *was_read()])
    assert (step is not None) == writes


def test_a_question_is_not_told_to_write_a_file() -> None:
    question = replace(TASK, content=(ContentText("What does calc.py do?"),))
    sent = in_steps(ModelRequest("m", (SYSTEM, question, *was_read())), lambda name: name).messages
    assert sent[-1].text.endswith("What does calc.py do? step_question")


def test_of_several_files_that_named_last_before_the_fence_is_meant() -> None:
    messages = [TASK, *was_read(), *called(30, "read", "1\tx = 1", path="b.py")]
    assert list(files_seen(messages)) == ["calc.py", "b.py"]
    step = read_step(f"b.py is right, calc.py is not:\n```\n{MENDED}```", messages)
    assert step is not None
    assert json.loads(step.calls[0].arguments)["path"] == "calc.py"


@given(
    st.text(alphabet="READ calc.py`\n\t# :*def()+-", max_size=120), st.sampled_from([SEEN, [TASK]])
)
def test_any_answer_is_read(text: str, messages: list[Message]) -> None:
    step = read_step(text, messages)
    for call in step.calls if step is not None else ():
        assert call.tool in ("read", "write")
        assert json.loads(call.arguments)["path"].strip()
