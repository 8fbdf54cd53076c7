"""The ``/answer`` command: replaces the user's answer to a question that the model asked.

The session continues on a new branch. Its leaf and the project's files go back to their state
before the old answer; then the new answer is appended, and the agent continues. If files were
changed outside the session, moves.py asks the user about them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.format import one_line
from tui_agent.errors import CommandError, ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tui_agent.app.controller import Controller
    from tui_agent.session.entries import Entry, ToolResultEntry
    from tui_agent.tools.questions import ModelQuestions, Value

ASK = "ask"
"""Name of the tool that the model uses to ask the user questions."""


@Command(
    "answer",
    "change your answer to a question from the model",
    argument="[#N]",
    changes_files=True,
    place=215,
    words="reply, question, change",
)
async def answer(controller: Controller, argument: str) -> None:
    """Ask the user the model's questions again, and replace the old answer with the new one.

    ``argument`` is the number of the old answer's entry (``#12``), or "" for the newest answer. The
    conversation continues from the point before the old answer; the old answer stays as a branch.
    Does nothing if the user cancels.
    """
    from tui_agent.app.moves import move_with_files
    from tui_agent.app.server_questions import ask_for_model
    from tui_agent.tools.ask import answers_text

    agent = controller.idle_agent
    controller.require_writable()
    path = list(agent.session.active_path())
    result = _chosen(path, argument)
    asked = _questions(path, result)
    given = await ask_for_model(controller, asked, _former_answers(asked, result))
    if given.action != "accept":
        return
    others = _others(path, result)
    leaf = agent.session.leaf
    before = result.parent_id
    restored = await move_with_files(
        controller, agent, before, lambda: agent.navigator.go(before), pair=(leaf, before)
    )
    if restored is None:
        return
    changed = result.model_copy(update={"output": answers_text(asked, given), "full_output": None})
    agent.keep(*(_as_new_entry(entry) for entry in (changed, *others)))
    along = ""
    if restored:
        along = f"; {restored}"
    controller.say(f"Your answer was replaced{along}. The old answer stays as a branch in /tree.")
    agent.retry()


def _chosen(path: Sequence[Entry], argument: str) -> ToolResultEntry:
    """Return the ``ask`` result with the entry number ``argument``, or the newest if it is "".

    Raises `CommandError` if ``path`` has no such result.
    """
    from tui_agent.session.entries import ToolResultEntry

    answers = []
    for entry in path:
        if isinstance(entry, ToolResultEntry) and entry.tool == ASK:
            answers.append(entry)
    if not answers:
        raise CommandError("The model has asked no questions on this branch.")
    wanted = argument.strip().removeprefix("#")
    if not wanted:
        return answers[-1]
    found = [entry for entry in answers if str(entry.id) == wanted]
    if not found:
        known = ", ".join(f"#{entry.id}" for entry in answers)
        raise CommandError(
            f"#{one_line(wanted, 20)} is not one of your answers. Answers on this branch: {known}."
        )
    return found[0]


def _questions(path: Sequence[Entry], result: ToolResultEntry) -> ModelQuestions:
    """Return the model's questions to which the tool result ``result`` is the answer.

    Raises `CommandError` if the questions are missing or invalid.
    """
    from tui_agent.session.entries import AssistantEntry, ToolCallPart

    for entry in reversed(path):
        if not isinstance(entry, AssistantEntry):
            continue
        for part in entry.parts:
            if isinstance(part, ToolCallPart) and part.call_id == result.call_id:
                return _read(part.arguments)
    raise CommandError("The question for that answer is not on this branch.")


def _read(arguments: str) -> ModelQuestions:
    """Parse the JSON arguments of an ``ask`` call; raises `CommandError` if they are invalid."""
    from tui_agent.tools.arguments import parse_arguments
    from tui_agent.tools.ask import AskInput, AskTool, questions_of

    try:
        read = parse_arguments(AskTool(), arguments)
        assert isinstance(read, AskInput)  # noqa: S101 - the type of this tool's arguments
        return questions_of(read)
    except ToolError:
        raise CommandError("That question can no longer be read.") from None


def _former_answers(asked: ModelQuestions, result: ToolResultEntry) -> Mapping[str, Value]:
    """Return the user's earlier answers by field name, to fill in when asking again.

    The result is empty unless every question has exactly one answer.
    """
    lines = [line[2:] for line in result.output.splitlines() if line.startswith("→ ")]
    if len(lines) != len(asked.fields):
        return {}
    given: dict[str, Value] = {}
    for field, line in zip(asked.fields, lines, strict=True):
        if field.kind == "choices":
            given[field.name] = line.split(", ")
        else:
            given[field.name] = line
    return given


def _others(path: Sequence[Entry], result: ToolResultEntry) -> list[ToolResultEntry]:
    """Return the tool results that directly follow ``result``, to append them after the new answer.

    The user's new answer doesn't affect them.
    """
    from tui_agent.session.entries import ToolResultEntry

    others = []
    for entry in path[path.index(result) + 1 :]:
        if not isinstance(entry, ToolResultEntry):
            break
        others.append(entry)
    return others


def _as_new_entry(entry: ToolResultEntry) -> ToolResultEntry:
    """Return a copy of an entry without its number and parent, so that it can be appended again."""
    return entry.model_copy(update={"id": 0, "parent_id": None})
