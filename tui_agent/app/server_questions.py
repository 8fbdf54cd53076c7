"""Asks the user what the model or an MCP server wants to know: form fields, or a page to visit.

The callers pass the answer on to the model or the server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from tui_agent.app.format import one_line, visible
from tui_agent.app.frontend import Choice, TextLine
from tui_agent.tools.questions import (
    Answer,
    FormField,
    ModelQuestions,
    ServerForm,
    ServerLink,
    ServerQuestion,
    Value,
    as_text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tui_agent.app.frontend import Frontend, Question, Severity

T = TypeVar("T")

_TITLE_CHARS = 300
"""Maximum length, in characters, of a form's field names in the question about the form."""
_SKIP = "\0skip"
_OWN_WORDS = "\0words"
_DONE = "\0done"
"""Names of the answers that this module adds to those of a question.

They begin with a null character, so that no option of a question can have the same name.
"""


class Dialogs(Protocol):
    """The part of the controller that this module needs, to ask the user and to show messages."""

    frontend: Frontend

    async def ask(self, question: Question[T]) -> T | None: ...

    def say(self, message: str, severity: Severity = "information") -> None: ...


def text_of(question: ServerQuestion | ModelQuestions) -> str:
    """Return the question, or the first of several, as one line.

    If a server asks, the line contains the server's name.
    """
    match question:
        case ModelQuestions(fields=fields):
            return one_line(fields[0].title, 200)
        case ServerForm() | ServerLink():
            return one_line(f"{question.server}: {question.message}", 200)


async def ask(dialogs: Dialogs, question: ServerQuestion | ModelQuestions) -> Answer:
    """Ask the user a question from an MCP server or the model, and return the answer.

    The answer's action is "cancel" if the user cancels, and "decline" if they refuse a server.
    """
    match question:
        case ModelQuestions():
            return await ask_for_model(dialogs, question)
        case ServerForm():
            return await _form(dialogs, question)
        case ServerLink():
            return await _link(dialogs, question)


async def ask_for_model(
    dialogs: Dialogs, asked: ModelQuestions, former: Mapping[str, Value] | None = None
) -> Answer:
    """Ask the user the model's questions, and return the answers.

    The questions are asked in one form if the frontend has forms. Otherwise they are asked one by
    one, and the user confirms the answers at the end. If the user goes back, the previous question
    is asked again; at the first question, this cancels all of them. ``former`` contains answers to
    fill in, by field name.
    """
    values: dict[str, Value] = dict(former or {})
    at_once = await dialogs.frontend.fill_in(asked, values)
    if at_once is not None:
        return at_once
    at = 0
    while at < len(asked.fields):
        field = asked.fields[at]
        value = await _model_answer(dialogs, field, place=_place(asked, at), given=values)
        if value is None and at == 0:
            return Answer("cancel")
        if value is None:
            at -= 1
            continue
        values[field.name] = value
        at += 1
        if at == len(asked.fields) > 1 and not await _is_confirmed(dialogs, asked, values):
            at = 0
    return Answer("accept", values)


def _place(asked: ModelQuestions, at: int) -> str:
    if len(asked.fields) == 1:
        return ""
    return f"{at + 1} of {len(asked.fields)} · "


async def _is_confirmed(
    dialogs: Dialogs, asked: ModelQuestions, values: Mapping[str, Value]
) -> bool:
    """Show all answers, and return whether the user wants to send them."""
    lines = []
    for field in asked.fields:
        answer = one_line(as_text(values[field.name]), 200)
        lines.append(f"{one_line(field.title, 120)}\n  {answer}")
    decision = await dialogs.ask(
        Choice(
            "Send these answers?",
            [("y", "yes"), ("n", "no, go through them again")],
            visible("\n".join(lines)),
            inline=True,
            unasked="y",
        )
    )
    return decision == "y"


async def _model_answer(
    dialogs: Dialogs, field: FormField, *, place: str, given: Mapping[str, Value]
) -> Value | None:
    """Ask the user one of the model's questions, and return the answer.

    ``place`` is shown before the question: its number and the number of questions, or "". Returns
    None if the user goes back or enters an empty text.
    """
    title = visible(f"{place}{field.title}")
    before = given.get(field.name, field.default)
    if field.kind == "choices":
        return await _several(dialogs, field, title, before)
    if field.kind == "choice":
        labels = [(value, visible(one_line(label, 300))) for value, label in field.options]
        known = {value for value, _label in field.options}
        chosen = await dialogs.ask(
            Choice(
                title,
                [*labels, (_OWN_WORDS, "in your own words …")],
                at=as_text(before) if before in known else None,
                numbered=True,
                inline=True,
                unasked=as_text(field.default) or None,
            )
        )
        if chosen != _OWN_WORDS:
            return chosen
    text = await dialogs.ask(TextLine(title, as_text(before), confirm="answer"))
    if text is None:
        return None
    return text.strip() or None


async def _several(
    dialogs: Dialogs, field: FormField, title: str, before: Value | None
) -> Value | None:
    """Let the user tick options; return the ticked ones (possibly none), or a text that they typed.

    Returns None if the user goes back.
    """
    known = {value for value, _label in field.options}
    marked = known.intersection(before if isinstance(before, list) else [as_text(before)])
    at = None
    while True:
        rows = []
        for value, label in field.options:
            box = "[x]" if value in marked else "[ ]"
            rows.append((value, f"{box} {visible(one_line(label, 300))}"))
        chosen = await dialogs.ask(
            Choice(
                f"{title} (choose any number: space ticks)",
                [*rows, (_DONE, "done"), (_OWN_WORDS, "in your own words …")],
                at=at,
                numbered=True,
                inline=True,
                ticks=len(rows),
                unasked=_DONE if marked else None,
            )
        )
        at = chosen
        if chosen is None:
            return None
        if chosen == _OWN_WORDS:
            text = await dialogs.ask(TextLine(title, confirm="answer"))
            if text and text.strip():
                return text.strip()
        elif chosen == _DONE:
            return [value for value, _label in field.options if value in marked]
        else:
            marked ^= {chosen}


async def _form(dialogs: Dialogs, form: ServerForm) -> Answer:
    """Ask the user whether to answer a server's form, then ask for the value of each field.

    If the user goes back, the previous field is asked for again, with its answer filled in; at the
    first field, the question whether to answer is asked again.
    """
    answers = {field.name: _preset(field) for field in form.fields}
    decision = await dialogs.ask(_opening(form))
    at = 0
    while decision == "y" and at < len(form.fields):
        field = form.fields[at]
        answer = await _field_answer(dialogs, form.server, field, answers[field.name])
        if answer is not None:
            answers[field.name] = answer
            at += 1
        elif at:
            at -= 1
        else:
            decision = await dialogs.ask(_opening(form))
    if decision != "y":
        return _without_one(decision)
    values: dict[str, Value] = {}
    for field in form.fields:
        if (value := _value(field, answers[field.name])) is not None:
            values[field.name] = value
    return Answer("accept", values)


def _preset(field: FormField) -> str | None:
    """Return the answer that a form's field proposes; None if the field has options and no default."""
    if field.default is None and _is_chosen(field):
        return None
    text = as_text(field.default)
    if field.kind == "yes_no":
        try:
            return as_text(field.read(text)) or None
        except ValueError:
            return None
    return text


def _is_chosen(field: FormField) -> bool:
    """Return True if the user chooses the value of a form's field and can't type it."""
    return field.kind in {"yes_no", "choice"}


def _value(field: FormField, answer: str | None) -> Value | None:
    """Return the value that a form's field gets with an answer; None if the field is left out."""
    if answer is None or answer == _SKIP:
        return None
    if field.kind == "choice":
        return answer
    return field.read(answer)


def _opening(form: ServerForm) -> Choice:
    """Return the question that asks whether to answer a server's form, and names its fields."""
    titles: dict[str, list[str]] = {"Required": [], "Optional": []}
    for field in form.fields:
        titles["Required" if field.required else "Optional"].append(field.title)
    details = []
    for what, named in titles.items():
        if named:
            details.append(f"{what}: {one_line(', '.join(named), _TITLE_CHARS)}")
    asked = f"The MCP server {form.server} asks: {one_line(form.message, 300)}"
    answers = [
        ("y", "yes, answer" if form.fields else "yes"),
        ("n", "no: tell the server that you decline"),
    ]
    return Choice(visible(asked), answers, visible("\n".join(details)), inline=True)


async def _field_answer(
    dialogs: Dialogs, server: str, field: FormField, before: str | None
) -> str | None:
    """Ask for the value of a form's field until it is valid, and return the answer.

    ``before`` is the earlier answer, which is filled in or selected at first. The answer is the
    name of the chosen option, `_SKIP` if the user leaves a field with options out, or a text.
    Returns None if the user goes back.
    """
    title = visible(f"{server}: {one_line(field.title, 100)}")
    if _is_chosen(field):
        if field.kind == "choice":
            options = list(field.options)
        else:
            options = [("yes", "Yes"), ("no", "No")]
        if field.required:
            more = []
        else:
            more = [(_SKIP, "Leave it out")]
        labelled = [(value, visible(one_line(label, 200))) for value, label in options]
        return await dialogs.ask(Choice(title, [*labelled, *more], visible(field.about), at=before))
    labels = ", ".join(label for _value, label in field.options)
    asked = [text for text in (field.about, labels) if text]
    if asked:
        title = f"{title} · {one_line(' · '.join(asked), 300)}"
    title = visible(title)
    text: str | None = before
    while (text := await dialogs.ask(TextLine(title, text or "", confirm="next"))) is not None:
        try:
            field.read(text)
        except ValueError as error:
            dialogs.say(visible(str(error)), "warning")
        else:
            return text
    return None


async def _link(dialogs: Dialogs, link: ServerLink) -> Answer:
    """Ask whether to visit a server's page; if so, show the address for the user to open."""
    asked = visible(
        f"The MCP server {link.server} wants you to visit a page: {one_line(link.message, 300)}"
    )
    answers = [("y", "yes, show the address; I'll open it"), ("n", "no")]
    decision = await dialogs.ask(Choice(asked, answers, visible(link.url), inline=True))
    if decision == "y":
        dialogs.frontend.announce(f"Open {visible(link.url)}")
        return Answer("accept")
    return _without_one(decision)


def _without_one(decision: str | None) -> Answer:
    """Return an answer to a server's question that contains no values.

    Its action is "decline" if the user declined, otherwise "cancel".
    """
    if decision == "n":
        return Answer("decline")
    return Answer("cancel")
