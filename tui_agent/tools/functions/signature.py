"""Derives a tool's name, description and schema from a typed function, and calls the function.

Also turns the returned value into text and images. The process of a tool file imports this module,
too, so apart from pydantic it imports only the standard library.
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_core import to_json

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_SECTION = re.compile(
    r"\s*(?:Args|Arguments|Parameters|Returns?|Yields?|Raises|Examples?|Notes?):\s*"
)
_LISTS = frozenset({"Args:", "Arguments:", "Parameters:"})
_ARGUMENT = re.compile(r"\s*\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.+)")
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)

# -- its value -------------------------------------------------------------------------------------
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


class FunctionError(ValueError):
    """Raised if a function can't be a tool, can't take the arguments, or returned a bad value."""


@dataclass(frozen=True, slots=True)
class FunctionSignature:
    """A Python function with its name, description and parameters as a tool.

    ``parameters`` is the JSON schema of the arguments, ``accepted`` the model that validates them.
    """

    function: Callable[..., Any]
    name: str
    description: str
    parameters: dict[str, Any]
    accepted: type[BaseModel]

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        """Validate the arguments, call the function with them, and return its value.

        If the value is awaitable, it is awaited. Raises FunctionError if the arguments don't fit
        the parameters. Exceptions of the function are passed on.
        """
        try:
            taken = self.accepted.model_validate(dict(arguments))
        except ValidationError as error:
            problems = [_problem(one) for one in error.errors(include_url=False)]
            raise FunctionError(f"{'; '.join(problems)}.") from None
        # Only the fields that were given are passed, so that the function applies its own defaults.
        given = {}
        for name, field in self.accepted.model_fields.items():
            if name in taken.model_fields_set:
                given[field.alias or name] = getattr(taken, name)
        returned = self.function(**given)
        if inspect.isawaitable(returned):
            return await returned
        return returned


def signature_of(function: Callable[..., Any]) -> FunctionSignature:
    """Return a function's signature as a tool. The descriptions come from its docstring.

    Raises:
        FunctionError: the function has no docstring or no valid name, an argument has no type or
            can't be passed by name, or a type has no JSON schema.
    """
    name = getattr(function, "__name__", "")
    if not _NAME.fullmatch(name):
        raise FunctionError(
            f"“{name}” can't be a tool's name: use at most 64 letters, digits and _"
        )
    description, about = _parse_docstring(inspect.getdoc(function) or "")
    if not description:
        raise FunctionError(f"{name} has no docstring to tell the model what it does")
    fields: dict[str, Any] = {}
    try:
        hints = get_type_hints(function, include_extras=True)
        for number, parameter in enumerate(inspect.signature(function).parameters.values()):
            fields[f"field_{number}"] = _field(name, parameter, hints, about)
        accepted = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
        schema = accepted.model_json_schema()
    except FunctionError:
        raise
    except Exception as error:  # noqa: BLE001 - the author's types may raise anything
        raise FunctionError(
            f"{name}: {(str(error) or type(error).__name__).splitlines()[0]}"
        ) from None
    return FunctionSignature(function, name, description, schema, accepted)


def _field(
    function: str, parameter: inspect.Parameter, hints: Mapping[str, Any], about: Mapping[str, str]
) -> Any:
    name = parameter.name
    if parameter.kind not in _NAMED:
        raise FunctionError(f"{function}: {parameter} can't be given by name")
    if name not in hints:
        raise FunctionError(f"{function}: the argument {name} has no type")
    if parameter.default is inspect.Parameter.empty:
        default = ...
    else:
        default = parameter.default
    # The fields have numbers as names, because pydantic forbids some names that parameters may
    # have.
    if name in about:
        described = Field(default, alias=name, description=about[name])
    else:
        described = Field(default, alias=name)
    return Annotated[hints[name], described], default


def _parse_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return a docstring without its ``Args:`` section, and that section's descriptions by name."""
    lines: list[str] = []
    about: dict[str, str] = {}
    latest = ""
    lists = False
    for line in text.splitlines():
        if _SECTION.fullmatch(line):
            lists = line.strip() in _LISTS
            latest = ""
        if not lists:
            lines.append(line)
        elif found := _ARGUMENT.fullmatch(line):
            latest = found[1]
            about[latest] = found[2].strip()
        elif latest and line.strip():
            about[latest] += f" {line.strip()}"
    return "\n".join(lines).strip(), about


def _problem(error: Mapping[str, Any]) -> str:
    where = ".".join(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        return f"there is no argument {where}"
    if where:
        return f"{where}: {error['msg'][:1].lower()}{error['msg'][1:]}"
    return str(error["msg"])


@dataclass(frozen=True, slots=True)
class Returned:
    """The value that a function returned, as text and images.

    Each image is the content of an image file.
    """

    text: str = ""
    images: tuple[bytes, ...] = ()


def returned(value: Any) -> Returned:
    """Return a function's value in the form that is sent to a model.

    A string stays unchanged, and None becomes an empty text. The bytes of a PNG, JPEG, GIF or WebP,
    and objects with a method ``_repr_png_`` (figures), become images; a list may mix those with
    other values. Everything else is written as JSON.

    Raises:
        FunctionError: the value can't be written as JSON.
    """
    if (image := _image(value)) is not None:
        return Returned(images=(image,))
    is_list = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    if is_list and any(_may_be_image(part) for part in value):
        texts: list[str] = []
        images: list[bytes] = []
        for part in map(returned, value):
            if part.text:
                texts.append(part.text)
            images += part.images
        return Returned("\n\n".join(texts), tuple(images))
    return Returned(_text(value))


def _may_be_image(value: Any) -> bool:
    return isinstance(value, bytes | bytearray) or hasattr(type(value), "_repr_png_")


def image_type(data: bytes) -> str:
    """Return the media type of a PNG, JPEG, GIF or WebP from its first bytes; "" for other data."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for begin, mime in _SIGNATURES if data.startswith(begin)), "")


def _image(value: Any) -> bytes | None:
    if isinstance(value, bytes | bytearray):
        if image_type(bytes(value[:16])):
            return bytes(value)
        return None
    draw = getattr(type(value), "_repr_png_", None)
    drawn = None
    if draw is not None:
        drawn = draw(value)
    return drawn if isinstance(drawn, bytes) else None


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return to_json(value, indent=1, inf_nan_mode="strings").decode()
    except Exception as error:  # noqa: BLE001 - whatever the value's own methods raise
        if str(error):
            reason = str(error).splitlines()[0]
        else:
            reason = type(error).__name__
        raise FunctionError(
            f"it returned a value of type {type(value).__name__} that can't be written as JSON ({reason}); return "
            "text, numbers, lists, dictionaries, dataclasses, pydantic models, or the bytes of a PNG, JPEG, GIF or WebP"
        ) from None
