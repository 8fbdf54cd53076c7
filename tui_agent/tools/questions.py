"""Questions to the user: the model's own, and those of servers, forms by a schema and pages to visit."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from tui_agent.lazy import dataclass, frozen

if TYPE_CHECKING:
    from mcp.types import ElicitRequestParams

Value = str | int | float | bool | list[str]


@frozen
class FormField:
    """One value of a form. ``options`` are values with their labels, for those that choose."""

    name: str
    title: str
    about: str = ""
    kind: Literal["text", "integer", "number", "yes_no", "choice", "choices"] = "text"
    options: tuple[tuple[str, str], ...] = ()
    default: Value | None = None
    required: bool = False
    is_free: bool = False
    """Words of one's own are an answer too."""
    least: float | None = None
    most: float | None = None
    """Bounds of a number, of a text's length, of how many are chosen."""

    def read(self, text: str) -> Value | None:
        """Return the typed text as a value, None for nothing where that is allowed; raises ValueError."""
        text = text.strip()
        if not text:
            if self.required:
                raise ValueError(f"{self.title} is needed.")
            return None
        match self.kind:
            case "integer" | "number":
                try:
                    number = int(text) if self.kind == "integer" else float(text)
                except ValueError:
                    whole = "whole " if self.kind == "integer" else ""
                    raise ValueError(f"{self.title} has to be a {whole}number.") from None
                return self._within(number)
            case "yes_no":
                return text == "yes"
            case "choices":
                known = {word: value for value, label in self.options for word in (value, label)}
                chosen = [word.strip() for word in text.split(",") if word.strip()]
                if wrong := [word for word in chosen if word not in known]:
                    raise ValueError(
                        f"“{wrong[0]}” is none of {', '.join(label for _value, label in self.options)}."
                    )
                self._within(len(chosen), "choices")
                return [known[word] for word in chosen]
            case _:
                if self.kind == "text":
                    self._within(len(text), "characters")
                return text

    def _within(self, size: float, unit: str = "") -> float:
        if self.least is not None and size < self.least:
            if unit:
                few = f"needs at least {self.least:g} {unit}"
            else:
                few = f"has to be {self.least:g} or more"
            raise ValueError(f"{self.title} {few}.")
        if self.most is not None and size > self.most:
            if unit:
                many = f"takes at most {self.most:g} {unit}"
            else:
                many = f"has to be {self.most:g} or less"
            raise ValueError(f"{self.title} {many}.")
        return size


@frozen
class ModelQuestions:
    """The model wants the user to decide something."""

    fields: tuple[FormField, ...]


@frozen
class ServerForm:
    """A server wants to know something that only a person can say."""

    server: str
    message: str
    fields: tuple[FormField, ...] = ()


@frozen
class ServerLink:
    """A server wants a person to visit a page."""

    server: str
    message: str
    url: str


ServerQuestion = ServerForm | ServerLink


@frozen
class Answer:
    """A person's answer; "cancel" is no answer.

    ``values`` are those of a form that was accepted.
    """

    action: Literal["accept", "decline", "cancel"] = "cancel"
    values: Mapping[str, Value] = field(default_factory=dict)


Asker = Callable[[ServerQuestion | ModelQuestions], Awaitable[Answer]]
"""Asks the person of a session."""


@dataclass
class Person:
    """The person of a session, for everybody there who has a question."""

    asker: Asker | None = None
    """Asks them; None where nobody can be asked."""


class Host(Protocol):
    """A session whose person servers can ask, if it has one.

    While it works, a question is most likely about that.
    """

    @property
    def asker(self) -> Asker | None: ...

    @property
    def is_busy(self) -> bool: ...


def question_of(server: str, params: "ElicitRequestParams") -> ServerForm | ServerLink:
    if params.mode == "url":
        return ServerLink(server, params.message, params.url)
    schema = params.requested_schema
    properties = schema.get("properties")
    required = schema.get("required")
    wanted = required if isinstance(required, list) else []
    rows = properties.items() if isinstance(properties, dict) else ()
    fields = (_field(str(name), row, name in wanted) for name, row in rows if isinstance(row, dict))
    return ServerForm(server, params.message, tuple(fields))


def _field(name: str, row: Mapping[str, Any], required: bool) -> FormField:  # noqa: FBT001 - of the schema
    kind = row.get("type")
    inner = row.get("items") if kind == "array" else row
    options = _options(inner if isinstance(inner, dict) else {})
    bounds = {"array": ("minItems", "maxItems"), "string": ("minLength", "maxLength")}
    given = map(row.get, bounds.get(str(kind), ("minimum", "maximum")))
    least, most = (
        one if isinstance(one, int | float) and not isinstance(one, bool) else None for one in given
    )
    kinds: dict[object, Any] = {
        "integer": "integer",
        "number": "number",
        "boolean": "yes_no",
        "array": "choices",
    }
    return FormField(
        name=name,
        title=str(row.get("title") or name),
        about=str(row.get("description") or ""),
        kind=kinds.get(kind, "choice" if options else "text"),
        options=options,
        default=row.get("default"),
        required=required,
        least=least,
        most=most,
    )


def _options(row: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    if isinstance(values := row.get("enum"), list):
        names = row.get("enumNames")
        labels = values
        if isinstance(names, list) and len(names) == len(values):
            labels = names
        return tuple((str(value), str(label)) for value, label in zip(values, labels, strict=True))
    titled = row.get("oneOf") or row.get("anyOf")
    rows = []
    if isinstance(titled, list):
        rows = [one for one in titled if isinstance(one, dict) and "const" in one]
    return tuple((str(one["const"]), str(one.get("title") or one["const"])) for one in rows)


def as_text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value)
