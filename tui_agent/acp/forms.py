"""Converts questions of the model to forms of the Agent Client Protocol, and forms to answers."""

from collections.abc import Mapping
from typing import Any

from acp.schema import (
    ElicitationMultiSelectPropertySchema,
    ElicitationSchema,
    ElicitationStringPropertySchema,
    EnumOption,
    TitledMultiSelectItems,
)

from tui_agent.tools.questions import Answer, FormField, ModelQuestions, Value, as_text

_WORDS = "-words"
"""Suffix of the names of form fields in which the user answers a question in their own words."""

Property = ElicitationStringPropertySchema | ElicitationMultiSelectPropertySchema


def form_of(asked: ModelQuestions, former: Mapping[str, Value]) -> ElicitationSchema:
    """Return a form with the model's questions.

    The form is filled in with ``former``, earlier answers by field name.
    """
    properties: dict[str, Any] = {}
    for field in asked.fields:
        properties[field.name] = _property(field, former.get(field.name, field.default))
        if field.options:
            words = ElicitationStringPropertySchema(type="string", title="… in your own words")
            properties[f"{field.name}{_WORDS}"] = words
    return ElicitationSchema(properties=properties)


def _property(field: FormField, given: Value | None) -> Property:
    options = [EnumOption(const=value, title=label) for value, label in field.options]
    known = {value for value, _label in field.options}
    if field.kind == "choices":
        marked = given if isinstance(given, list) else [as_text(given)]
        return ElicitationMultiSelectPropertySchema(
            type="array",
            title=field.title,
            items=TitledMultiSelectItems(any_of=options),
            default=[value for value in marked if value in known] or None,
        )
    default = as_text(given) or None
    if not options:
        return ElicitationStringPropertySchema(type="string", title=field.title, default=default)
    return ElicitationStringPropertySchema(
        type="string",
        title=field.title,
        one_of=options,
        default=default if default in known else None,
    )


def answer_of(asked: ModelQuestions, content: Mapping[str, Any]) -> Answer:
    """Return the answers in a form's content; "cancel" if a question has no answer.

    Text in the field for the user's own words replaces the chosen options.
    """
    values: dict[str, Value] = {}
    for field in asked.fields:
        words = str(content.get(f"{field.name}{_WORDS}") or "").strip()
        given = words or content.get(field.name)
        if not given:
            return Answer("cancel")
        values[field.name] = [str(one) for one in given] if isinstance(given, list) else str(given)
    return Answer("accept", values)
