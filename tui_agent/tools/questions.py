"""Defines forms for questions by the model or an MCP server, and checks the user's answers."""

import json
import math
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
"""Kinds of form fields by JSON schema type. A field of another type is a choice if the schema lists
values, otherwise a text."""
_BOUNDS = {"array": ("minItems", "maxItems"), "string": ("minLength", "maxLength")}
"""JSON schema keywords for the lower and the upper bound of a value, by the value's type. Other
types use "minimum" and "maximum"."""


_YES = {"yes", "y", "true"}
_NO = {"no", "n", "false"}


@frozen
class FormField:
    """A field of a form that the user fills in.

    ``about`` explains the field. ``options`` are the values to choose from, each with its label.
    """

    name: str
    title: str
    about: str = ""
    kind: FieldKind = "text"
    options: tuple[tuple[str, str], ...] = ()
    default: Value | None = None
    required: bool = False
    is_free: bool = False
    """Whether the user may also type an answer that is not among the options."""
    least: float | None = None
    """The lower bound of the answer, that is, of a number, a text's length, or the number of
    choices. None if there is no bound."""
    most: float | None = None
    """The upper bound of the answer, that is, of a number, a text's length, or the number of
    choices. None if there is no bound."""

    def read(self, text: str) -> Value | None:
        """Return the field's value for a text that the user typed; None if the text is empty.

        An option is given by its value or its label; several options are separated by commas. If
        the field is a choice and ``is_free``, any text is returned as it is, without white space
        at both ends. Raises ValueError with a message for the user if the field is required and
        the text empty, or the text doesn't fit the field's kind, options or bounds.
        """
        text = text.strip()
        if not text and self.required:
            raise ValueError(f"{self.title} is required.")
        if not text:
            return None
        match self.kind:
            case "integer" | "number":
                number = self._number(text)
                self._check_size(number, "has to be {:g} or more", "has to be {:g} or less")
                return number
            case "yes_no":
                if (word := text.lower()) not in _YES | _NO:
                    raise ValueError(f"{self.title} has to be yes or no.")
                return word in _YES
            case "choice" if not self.is_free:
                return self._option(text)
            case "choices":
                chosen = self._chosen(text)
                if not chosen and self.required:
                    raise ValueError(f"{self.title} is required.")
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
            number = int(text) if self.kind == "integer" else float(text)
        except ValueError:
            number = math.nan
        if "_" in text or not (isinstance(number, int) or math.isfinite(number)):
            whole = "whole " if self.kind == "integer" else ""
            raise ValueError(f"{self.title} has to be a {whole}number.")
        return number

    def _chosen(self, text: str) -> list[str]:
        """Return the chosen values, each once; ``text`` is a list of values or labels with commas.

        Raises ValueError if one of them isn't the value or label of an option.
        """
        words = [part.strip() for part in text.split(",")]
        return list(dict.fromkeys(self._option(word) for word in words if word))

    def _option(self, word: str) -> str:
        """Return the value of the option that has a text as its value, or else as its label.

        Raises ValueError if there is no such option.
        """
        labels = {label.strip(): value for value, label in self.options}
        known = labels | {value.strip(): value for value, _label in self.options}
        if word not in known:
            listed = ", ".join([label for _value, label in self.options])
            raise ValueError(f"“{word}” is not one of: {listed}.")
        return known[word]

    def _check_size(self, size: float, few: str, many: str) -> None:
        """Raise ValueError if a number, length or count is out of bounds.

        ``few`` and ``many`` are the error messages for a value that is too small or too large. They
        are format strings, into which the bound is inserted.
        """
        if self.least is not None and size < self.least:
            raise ValueError(f"{self.title} {few.format(self.least)}.")
        if self.most is not None and size > self.most:
            raise ValueError(f"{self.title} {many.format(self.most)}.")


@frozen
class ModelQuestions:
    """Questions from the model to the user, each of which is a field of a form."""

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
    """The user's answer to a question; ``action`` is "cancel" if they closed it without an answer.

    If the user accepted, ``values`` contains the value of each filled field by the field's name.
    """

    action: Literal["accept", "decline", "cancel"] = "cancel"
    values: Mapping[str, Value] = field(default_factory=dict)


Asker = Callable[[ServerQuestion | ModelQuestions], Awaitable[Answer]]
"""A function that asks a session's user a question and returns the answer."""


@dataclass
class UserContact:
    """Holds the function that asks a session's user, and is shared by all code that asks."""

    asker: Asker | None = None
    """Function that asks the user a question; None if there is no user to ask."""
    open_questions: int = 0
    """How many questions the user has not answered yet."""


class QuestionHost(Protocol):
    """A session in which MCP servers can ask the user questions.

    Because sessions share MCP servers, a question is shown in a session that is busy, which most
    likely caused it.
    """

    @property
    def asker(self) -> Asker | None: ...

    @property
    def is_busy(self) -> bool: ...


def question_of(server: str, params: "ElicitRequestParams") -> ServerForm | ServerLink:
    """Return an MCP server's elicitation request as a question; ``server`` is the server's name."""
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
    """Return the values that a JSON schema lists, each once, with its label; () if there are none."""
    options: dict[str, str] = {}
    if isinstance(values := row.get("enum"), list):
        labels = as_list(row.get("enumNames"))
        if len(labels) != len(values):
            labels = values
        for value, label in zip(values, labels, strict=True):
            options.setdefault(str(value), str(label))
        return tuple(options.items())
    for one in objects(row.get("oneOf") or row.get("anyOf")):
        if "const" in one:
            options.setdefault(str(one["const"]), str(one.get("title") or one["const"]))
    return tuple(options.items())


def as_text(value: object) -> str:
    """Return the value of an answer as text.

    A flag becomes "yes" or "no", a list is joined with commas, and None becomes "".
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join([str(one) for one in value])
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value)
