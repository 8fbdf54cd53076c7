"""The ``ask`` tool: the model asks the user questions, and receives the answers as a result."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field, field_validator

from tui_agent.errors import ToolError
from tui_agent.session.tool_traits import ToolTraits
from tui_agent.tools.base import FreeTool, ToolContext, ToolInput, ToolResult
from tui_agent.tools.questions import Answer, FieldKind, FormField, ModelQuestions, as_text

MAX_QUESTIONS = 4
"""Maximum number of questions in one call."""
MAX_OPTIONS = 6
"""Maximum number of options of one question."""
_RECOMMENDED = "*"
"""Prefix with which the model marks the option that it recommends."""
NO_USER = (
    "There is no user to ask in this run. Decide yourself and say what you assumed, "
    "or end your turn with the question."
)
"""Error message for an ``ask`` call in a run without a user."""
UNANSWERED = "The user gave no answer. Decide yourself if that is safe; otherwise end your turn."
"""Result of an ``ask`` call if the user closed the questions without an answer."""


class AskQuestion(ToolInput):
    """One question of an ``ask`` call."""

    question: str
    options: list[str] = Field(
        default_factory=list,
        description="2 to 4, or none. Label: what it means. * before the recommended one",
    )
    several: bool = False
    """Whether more than one option may be chosen."""

    @field_validator("options", mode="before")
    @classmethod
    def _as_lines(cls, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        return [_line(one) if isinstance(one, dict) else one for one in value]


class AskInput(ToolInput):
    """Arguments of the ``ask`` tool."""

    questions: list[AskQuestion]
    """The questions to ask, at least 1 and at most ``MAX_QUESTIONS``."""

    @field_validator("questions", mode="before")
    @classmethod
    def _as_questions(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return [value]
        return value


class AskTool(FreeTool[AskInput]):
    """Asks the user questions. The result contains the questions and the user's answers."""

    name: ClassVar[str] = "ask"
    description: ClassVar[str] = (
        "Ask the user what the project can't tell you. They may always answer in their own words."
    )
    Input = AskInput
    traits = ToolTraits(
        kind="think",
        other_names="askuserquestion askuser askquestion question requestuserinput askfollowupquestion",
        protected=True,
    )

    async def run(self, arguments: AskInput, context: ToolContext) -> ToolResult:
        questions = questions_of(arguments)
        if context.ask is None:
            raise ToolError(NO_USER)
        answer = await context.ask(questions)
        return ToolResult(answers_text(questions, answer), title=self.title(arguments))

    def touches(self, arguments: AskInput, context: ToolContext) -> tuple[()]:  # noqa: ARG002 - as inherited
        return ()

    def title(self, arguments: AskInput) -> str:
        questions = [" ".join(one.question.split()) for one in arguments.questions]
        return " · ".join(questions)[:120]


def _line(option: Mapping[str, Any]) -> str:
    """Convert an option to text if the model gave it as an object, as in other programs.

    The text is ``label: about``, or only the label if there is no explanation.
    """
    label = str(option.get("label") or option.get("value") or option.get("title") or "")
    about = str(option.get("about") or option.get("description") or "")
    if option.get("recommended"):
        label = f"{_RECOMMENDED}{label}"
    return f"{label}: {about}" if about else label


def questions_of(arguments: AskInput) -> ModelQuestions:
    """Return the questions of an ``ask`` call as form fields, named "1", "2" and so on.

    Raises ToolError if there are no questions or too many, or a question has too many options or
    two with the same label.
    """
    if not 1 <= len(arguments.questions) <= MAX_QUESTIONS:
        raise ToolError(f"Ask 1 to {MAX_QUESTIONS} questions at once.")
    fields = tuple(_field(number, one) for number, one in enumerate(arguments.questions, start=1))
    return ModelQuestions(fields)


def _field(number: int, asked: AskQuestion) -> FormField:
    if len(asked.options) > MAX_OPTIONS:
        raise ToolError(f"A question has at most {MAX_OPTIONS} options.")
    options: dict[str, str] = {}
    recommended = None
    for text in asked.options:
        label, shown = _option(text)
        options[label] = shown
        if text.startswith(_RECOMMENDED) and recommended is None:
            recommended = label
    if len(options) != len(asked.options):
        raise ToolError("Two options of a question have the same label.")
    kind: FieldKind = "text"
    if options:
        kind = "choices" if asked.several else "choice"
    return FormField(
        name=str(number),
        title=asked.question,
        kind=kind,
        options=tuple(options.items()),
        default=recommended,
        required=True,
        is_free=True,
    )


def _option(text: str) -> tuple[str, str]:
    """Return the label of an option, which is also its value, and the option's text for the screen.

    ``text`` is ``Label: what it means`` as the model wrote it, with a leading ``*`` for the
    recommended option.
    """
    label, _colon, about = text.removeprefix(_RECOMMENDED).partition(": ")
    label = label.strip() or text
    shown = label
    if about.strip():
        shown = f"{label}: {about.strip()}"
    if text.startswith(_RECOMMENDED):
        shown = f"{shown} (recommended)"
    return label, shown


def answers_text(questions: ModelQuestions, answer: Answer) -> str:
    """Return the questions, each with the user's answer, as text for the model.

    Returns ``UNANSWERED`` if the user closed or declined the questions.
    """
    if answer.action != "accept":
        return UNANSWERED
    said = []
    for field in questions.fields:
        said.append(f"{field.title}\n→ {as_text(answer.values.get(field.name))}")
    return "\n\n".join(said)
