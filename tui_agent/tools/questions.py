"""Questions to the user: the model's, and those of MCP servers (forms, and pages to visit)."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from tui_agent.json_text import as_dict, as_list, objects
from tui_agent.lazy import dataclass, frozen

if TYPE_CHECKING:
    from mcp.types import ElicitRequestParams

Value = str | int | float | bool | list[str]
FieldKind = Literal["text", "integer", "number", "yes_no", "choice", "choices"]

_KINDS: dict[str, FieldKind] = {
    "integer": "integer",
    "number": "number",
    "boolean": "yes_no",
    "array": "choices",
}
"""Kinds of fields by JSON schema type; all others are texts or choices."""
_BOUNDS = {"array": ("minItems", "maxItems"), "string": ("minLength", "maxLength")}
"""The schema keywords for bounds by type; for numbers they are minimum and maximum."""


@frozen
class FormField:
    """A field of a form. ``options`` are the values of a choice, with their labels."""

    name: str
    title: str
    about: str = ""
    kind: FieldKind = "text"
    options: tuple[tuple[str, str], ...] = ()
    default: Value | None = None
    required: bool = False
    is_free: bool = False
    """Whether the user may answer in their own words, too."""
    least: float | None = None
    most: float | None = None
    """The upper bound of a number, of a text's length, or of the number of choices; None for
    none."""

    def read(self, text: str) -> Value | None:
        """Return the value of a typed text, None for nothing if that is allowed.

        Raises ValueError.
        """
        text = text.strip()
        if not text and self.required:
            raise ValueError(f"{self.title} is needed.")
        if not text:
            return None
        match self.kind:
            case "integer" | "number":
                number = self._number(text)
                self._check_size(number, "has to be {:g} or more", "has to be {:g} or less")
                return number
            case "yes_no":
                return text == "yes"
            case "choices":
                chosen = self._chosen(text)
                self._check_size(
                    len(chosen), "needs at least {:g} choices", "takes at most {:g} choices"
                )
                return chosen
            case "text":
                self._check_size(
                    len(text), "needs at least {:g} characters", "takes at most {:g} characters"
                )
        return text

    def _number(self, text: str) -> float:
        try:
            return int(text) if self.kind == "integer" else float(text)
        except ValueError:
            whole = "whole " if self.kind == "integer" else ""
            raise ValueError(f"{self.title} has to be a {whole}number.") from None

    def _chosen(self, text: str) -> list[str]:
        """Return the values of a list of values or labels, separated by commas."""
        known: dict[str, str] = {}
        for value, label in self.options:
            known |= {value: value, label: value}
        chosen = []
        for part in text.split(","):
            word = part.strip()
            if word and word not in known:
                labels = ", ".join([label for _value, label in self.options])
                raise ValueError(f"“{word}” is none of {labels}.")
            if word:
                chosen.append(known[word])
        return chosen

    def _check_size(self, size: float, few: str, many: str) -> None:
        """Raise ValueError for a size out of bounds, with ``few`` or ``many`` as the message."""
        if self.least is not None and size < self.least:
            raise ValueError(f"{self.title} {few.format(self.least)}.")
        if self.most is not None and size > self.most:
            raise ValueError(f"{self.title} {many.format(self.most)}.")


@frozen
class ModelQuestions:
    """Questions of the model that the user is to answer."""

    fields: tuple[FormField, ...]


@frozen
class ServerForm:
    """A form that an MCP server asks the user to fill in."""

    server: str
    message: str
    fields: tuple[FormField, ...] = ()


@frozen
class ServerLink:
    """A page that an MCP server asks the user to visit."""

    server: str
    message: str
    url: str


ServerQuestion = ServerForm | ServerLink


@frozen
class Answer:
    """The user's answer; "cancel" means none. ``values`` are those of an accepted form."""

    action: Literal["accept", "decline", "cancel"] = "cancel"
    values: Mapping[str, Value] = field(default_factory=dict)


Asker = Callable[[ServerQuestion | ModelQuestions], Awaitable[Answer]]
"""Asks the user of a session."""


@dataclass
class Person:
    """The user of a session, for every part that has a question."""

    asker: Asker | None = None
    """Asks the user; None if no one can be asked."""


class Host(Protocol):
    """A session whose user MCP servers can ask.

    While the session works, a server's question is most likely about that work.
    """

    @property
    def asker(self) -> Asker | None: ...

    @property
    def is_busy(self) -> bool: ...


def question_of(server: str, params: "ElicitRequestParams") -> ServerForm | ServerLink:
    if params.mode == "url":
        return ServerLink(server, params.message, params.url)
    schema = params.requested_schema
    required = as_list(schema.get("required"))
    fields = []
    for name, row in as_dict(schema.get("properties")).items():
        if isinstance(row, dict):
            fields.append(_field(str(name), row, required=name in required))
    return ServerForm(server, params.message, tuple(fields))


def _field(name: str, row: Mapping[str, Any], *, required: bool) -> FormField:
    kind = str(row.get("type"))
    options = _options(as_dict(row.get("items")) if kind == "array" else row)
    lower, upper = _BOUNDS.get(kind, ("minimum", "maximum"))
    return FormField(
        name=name,
        title=str(row.get("title") or name),
        about=str(row.get("description") or ""),
        kind=_KINDS.get(kind, "choice" if options else "text"),
        options=options,
        default=row.get("default"),
        required=required,
        least=_number_in(row, lower),
        most=_number_in(row, upper),
    )


def _number_in(row: Mapping[str, Any], name: str) -> float | None:
    value = row.get(name)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return None


def _options(row: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    options = []
    if isinstance(values := row.get("enum"), list):
        labels = as_list(row.get("enumNames"))
        if len(labels) != len(values):
            labels = values
        for value, label in zip(values, labels, strict=True):
            options.append((str(value), str(label)))
        return tuple(options)
    for one in objects(row.get("oneOf") or row.get("anyOf")):
        if "const" in one:
            options.append((str(one["const"]), str(one.get("title") or one["const"])))
    return tuple(options)


def as_text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join([str(one) for one in value])
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value)
