"""Questions of MCP servers to a person: forms field by field, and pages to visit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.agent.mcp.questions import (
    Answer,
    FormField,
    ServerForm,
    ServerLink,
    ServerQuestion,
    Value,
    as_text,
)
from tui_agent.app.format import one_line, visible
from tui_agent.app.frontend import Choice, TextLine

if TYPE_CHECKING:
    from tui_agent.app.controller import Controller

_MESSAGE_CHARS = 600
_MESSAGE_LINES = 8
"""The most characters and lines of a text beside a question, so that a small screen has room for
the answers."""
_TITLE_CHARS = 300
"""Characters of the names of a form's fields."""
_SKIP = "\0skip"


async def ask(controller: Controller, question: ServerQuestion) -> Answer:
    """Ask a person a server's question; going back answers nothing, which is a cancel."""
    match question:
        case ServerForm():
            return await _form(controller, question)
        case ServerLink():
            return await _link(controller, question)


async def _form(controller: Controller, form: ServerForm) -> Answer:
    needed = [field.title for field in form.fields if field.required]
    others = [field.title for field in form.fields if not field.required]
    parts = [("Needed", needed), ("May be left out", others)]
    details = "\n".join(
        f"{what}: {one_line(', '.join(titles), _TITLE_CHARS)}" for what, titles in parts if titles
    )
    asked = f"The MCP server {form.server} asks: {one_line(form.message, 300)}"
    answers = [
        ("y", "yes, answer" if form.fields else "yes"),
        ("n", "no: it is told that you won't say"),
    ]
    decision = await controller.ask(Choice(visible(asked), answers, visible(details), inline=True))
    if decision != "y":
        return Answer("decline" if decision == "n" else "cancel")
    values: dict[str, Value] = {}
    for field in form.fields:
        text = await _text(controller, form.server, field)
        if text is None:
            return Answer("cancel")
        if (value := field.read(text)) is not None:
            values[field.name] = value
    return Answer("accept", values)


async def _text(controller: Controller, server: str, field: FormField) -> str | None:
    """Ask for one value until it is one; None when they went back."""
    title = visible(f"{server}: {one_line(field.title, 100)}")
    if field.kind in {"yes_no", "choice"}:
        if field.kind == "choice":
            options = list(field.options)
        else:
            options = [("yes", "Yes"), ("no", "No")]
        if field.required:
            more = []
        else:
            more = [(_SKIP, "Leave it out")]
        labelled = [(value, visible(one_line(label, 200))) for value, label in options]
        chosen = await controller.ask(
            Choice(
                title, [*labelled, *more], visible(field.about), at=as_text(field.default) or None
            )
        )
        return "" if chosen == _SKIP else chosen
    asked = [
        field.about or title,
        *([", ".join(label for _value, label in field.options)] if field.options else []),
    ]
    title = visible(
        f"{title} · {one_line(' · '.join(asked), 300)}" if field.about or field.options else title
    )
    text: str | None = as_text(field.default)
    while (text := await controller.ask(TextLine(title, text or "", confirm="next"))) is not None:
        try:
            field.read(text)
        except ValueError as error:
            controller.say(visible(str(error)), "warning")
        else:
            return text
    return None


async def _link(controller: Controller, link: ServerLink) -> Answer:
    asked = visible(
        f"The MCP server {link.server} wants you to visit a page: {one_line(link.message, 300)}"
    )
    answers = [("y", "yes, show the address; I'll open it"), ("n", "no")]
    decision = await controller.ask(Choice(asked, answers, visible(link.url), inline=True))
    if decision == "y":
        controller.frontend.announce(f"Open {visible(link.url)}")
        return Answer("accept")
    return Answer("decline" if decision == "n" else "cancel")
