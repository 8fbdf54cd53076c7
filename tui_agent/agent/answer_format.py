"""Compares an answer with the JSON Schema (draft 4 to 2020-12) that the user gave for it.

Pure. `FormatCheck` sends back an answer that doesn't match; the frontend adds the request for the
format to the message, prints the value and decides the exit code.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from tui_agent.context.templates import fill
from tui_agent.errors import UserFacingError
from tui_agent.json_text import as_dict, as_text, loads
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.safe_text import one_line

ANSWER_FORMAT = "answer_format"
"""Name of the prompt that asks the model to answer in a given format."""
_MAX_PROBLEMS = 5
"""Maximum number of mismatches that are reported for an answer."""
_PROBLEM_CHARS = 300
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_MISSING = "The schema refers to {}, which it doesn't contain."
_FENCED = LazyPattern(r"^(`{3,}|~{3,})[^\n]*\n(.*?)^\1[ \t]*$", re.DOTALL | re.MULTILINE)


class SchemaError(UserFacingError):
    """Raised if a text is not a usable JSON Schema."""


class AnswerFormatError(UserFacingError):
    """Raised if an answer doesn't match the schema; the message, for user and model, says where."""


@frozen
class AnswerFormat:
    """The JSON Schema that the last answer of a run has to match."""

    schema: Mapping[str, Any] | bool

    @classmethod
    def parse(cls, text: str) -> "AnswerFormat":
        """Return the answer format that a JSON Schema describes.

        Raises:
            SchemaError: the text is not JSON or not a schema, or refers to a schema that it doesn't
                contain.
        """
        from jsonschema import exceptions, validators

        try:
            schema = loads(text)
        except ValueError as error:
            raise SchemaError(f"The schema is not JSON: {error}.") from None
        if not isinstance(schema, dict | bool):
            raise SchemaError("The schema must be a JSON object.")
        try:
            validators.validator_for(schema).check_schema(schema)
        except exceptions.SchemaError as error:
            raise SchemaError(
                f"The schema is wrong at {error.json_path}: {one_line(error.message, _PROBLEM_CHARS)}."
            ) from None
        _check_references(schema)
        return cls(schema)

    def request(self, prompt: Callable[[str], str]) -> str:
        """Return the text that asks the model to answer in this format.

        ``prompt`` returns the text of a prompt by its name.
        """
        return fill(prompt(ANSWER_FORMAT), schema=json.dumps(self.schema, ensure_ascii=False))

    def value(self, answer: str) -> Any:
        """Return the JSON value of an answer's text or, if that isn't JSON, of its last code block.

        Raises:
            AnswerFormatError: the answer has no JSON, or its value doesn't match the schema.
            SchemaError: the schema can't be applied to the value.
        """
        value = _json_of(answer)
        problems = self._problems(value)
        if problems:
            raise AnswerFormatError("; ".join(problems))
        return value

    def _problems(self, value: Any) -> list[str]:
        """Return up to ``_MAX_PROBLEMS`` mismatches between a value and the schema."""
        from jsonschema import validators
        from referencing import Registry
        from referencing.exceptions import Unresolvable

        # The registry is empty, so that a reference to an address is never fetched.
        validator = validators.validator_for(self.schema)(self.schema, registry=Registry())
        problems: list[str] = []
        try:
            for error in validator.iter_errors(value):
                problems.append(f"{error.json_path}: {one_line(error.message, _PROBLEM_CHARS)}")
                if len(problems) == _MAX_PROBLEMS:
                    break
        except Unresolvable as error:
            raise SchemaError(_MISSING.format(error.ref)) from None
        except RecursionError:
            raise SchemaError("The schema refers to itself endlessly.") from None
        return problems


def _check_references(schema: Any) -> None:
    """Raise SchemaError if a schema refers to a schema that it doesn't contain.

    With this check, a run with such a schema fails at its start, not when its answer is checked.
    """
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012, UnknownDialect, specification_with

    named = as_text(as_dict(schema).get("$schema"))
    try:
        dialect = specification_with(named, default=DRAFT202012)
    except UnknownDialect:
        dialect = DRAFT202012
    whole = dialect.create_resource(schema)
    base = whole.id() or ""
    resolver = Registry[Any]().with_resource(base, whole).resolver(base)
    pending = [(whole, resolver)]
    while pending:
        resource, resolver = pending.pop()
        for key in _REFERENCES:
            wanted = as_dict(resource.contents).get(key)
            if not isinstance(wanted, str):
                continue
            try:
                resolver.lookup(wanted)
            except Unresolvable:
                raise SchemaError(_MISSING.format(one_line(wanted, _PROBLEM_CHARS))) from None
        for inner in resource.subresources():
            pending.append((inner, resolver.in_subresource(inner)))


def _json_of(answer: str) -> Any:
    """Return the JSON value of a text or, if the text isn't JSON, of its last code block."""
    candidates = [answer.strip()]
    blocks = [found[2] for found in _FENCED.finditer(answer)]
    candidates += blocks[-1:]
    problem = ""
    for candidate in candidates:
        try:
            return loads(candidate)
        except ValueError as error:
            problem = str(error)
    raise AnswerFormatError(f"The answer is not JSON: {problem}")
