"""Lists every setting as a row: its value, where it was set, its meaning and what it accepts.

``tui-agent config`` and the settings page show these rows. The descriptions come from the fields of
`Config`. For fields with a docstring instead of a description, they are read from the program's
source files. This module writes nothing.
"""

import ast
import inspect
import json
import textwrap
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cache
from itertools import pairwise
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from tui_agent.config import LoadedConfig, is_fixed
from tui_agent.lazy import frozen

UNSET = "—"
"""Text that is shown in place of the value if a setting has no value."""

_SESSION = "from the next session on"
_EFFECTIVE_LATER = {
    "model": _SESSION,
    "mode": _SESSION,
    "instructions": _SESSION,
    "webfetch": _SESSION,
    "websearch": _SESSION,
    "code": _SESSION,
    "checkpoints.enabled": _SESSION,
    "hooks": _SESSION,
    "mcp": "with /mcp reload",
}
"""When a change takes effect, by setting or table. Changes of settings that are not listed here
take effect at once."""

_ABBREVIATED = {"ui": "interface", "mcp": "MCP servers"}


def takes_effect(key: str) -> str:
    """Return when a changed setting takes effect in a running program; "" means at once."""
    for name, when in _EFFECTIVE_LATER.items():
        if key == name or key.startswith(f"{name}."):
            return when
    return ""


def changed_keys(before: BaseModel, after: BaseModel, prefix: str = "") -> Iterator[str]:
    """Yield the dotted keys of all settings whose values differ between two configurations.

    A table whose keys the user chooses, such as ``models``, counts as one setting.
    """
    for name in type(before).model_fields:
        old = getattr(before, name)
        new = getattr(after, name)
        if isinstance(old, BaseModel) and isinstance(new, BaseModel):
            yield from changed_keys(old, new, f"{prefix}{name}.")
        elif old != new:
            yield f"{prefix}{name}"


@frozen
class SettingRow:
    """One setting and its value, as the settings page shows it.

    ``key`` is dotted, as in ``ui.theme``. ``value`` is `UNSET` if there is none, the number of
    entries for a table or list, and "…" for an API key. ``origin`` is where the value was set.
    """

    key: str
    value: str
    origin: str
    description: str
    accepts: str
    choices: tuple[str, ...] = ()
    """All values that the setting accepts, if they can be listed; otherwise empty."""
    editable: bool = True
    """Whether the settings page can edit the setting, because it is a single value and not a table
    or a list."""

    @property
    def words(self) -> str:
        """The last part of the setting's key, in words, such as ``typing pause``."""
        return _in_words(self.key.rpartition(".")[2])

    @property
    def table(self) -> str:
        """The setting's table in words, such as ``interface``; "" at the top level."""
        return _in_words(self.key.rpartition(".")[0])


def _in_words(name: str) -> str:
    return _ABBREVIATED.get(name, name.replace("_", " ").replace("-", " ").replace(".", " "))


def setting_rows(
    loaded: LoadedConfig, table: BaseModel | None = None, prefix: str = ""
) -> tuple[SettingRow, ...]:
    """Return a row for every setting, also for those in tables, in the order of `Config`.

    With ``table`` and its ``prefix``, such as ``ui.``, returns only the settings of that table.
    """
    table = table or loaded.config
    described = _docstrings(type(table))
    rows: list[SettingRow] = []
    for name, info in type(table).model_fields.items():
        value = getattr(table, name)
        key = f"{prefix}{name}"
        if is_fixed(info):
            continue
        if isinstance(value, BaseModel):
            rows += setting_rows(loaded, value, f"{key}.")
            continue
        editable = not isinstance(value, dict | tuple | list) and not any(
            get_origin(kind) in {dict, tuple, list} for kind in _kinds(info)
        )
        row = SettingRow(
            key=key,
            value=_shown(value),
            origin=loaded.origin(key),
            description=" ".join((info.description or described.get(name, "")).split()),
            accepts=_accepts(info) if editable else "a table or list; write it in the file",
            choices=_choices(info),
            editable=editable,
        )
        rows.append(row)
    return tuple(rows)


@cache
def _docstrings(model: type[BaseModel]) -> Mapping[str, str]:
    """Return the docstrings of a settings model's fields by field name, read from the source file.

    The result is empty if the source file can't be read.
    """
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(model))).body[0]
    except (OSError, TypeError, SyntaxError):
        return {}
    found: dict[str, str] = {}
    for field, below in pairwise(body.body if isinstance(body, ast.ClassDef) else ()):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(below, ast.Expr)
        ):
            text = None
            if isinstance(below.value, ast.Constant):
                text = below.value.value
            if isinstance(text, str):
                found[field.target.id] = text
    return found


def _shown(value: Any) -> str:
    match value:
        case None | "":
            return UNSET
        case SecretStr():
            return "…"
        case str():
            return value
        case dict() | tuple() | list():
            if value:
                return f"{len(value)} {'entry' if len(value) == 1 else 'entries'}"
            return UNSET
        case _:
            return json.dumps(value, default=str)


def _choices(info: FieldInfo) -> tuple[str, ...]:
    found: list[str] = []
    for kind in _kinds(info):
        if kind is bool:
            found += ["true", "false"]
        elif get_origin(kind) is Literal:
            found += [str(choice) for choice in get_args(kind)]
        elif isinstance(kind, type) and issubclass(kind, StrEnum):
            found += list(kind)
        elif kind is not NoneType:
            return ()
    return tuple(found)


def _kinds(info: FieldInfo) -> tuple[Any, ...]:
    return tuple(member.annotation for member in _members(info))


def _members(info: FieldInfo) -> tuple[FieldInfo, ...]:
    """Return the types that a settings field accepts, one by one, each with its limits."""
    if get_origin(info.annotation) in {Literal, dict, tuple, list}:
        return (info,)
    kinds = get_args(info.annotation)
    return tuple(FieldInfo.from_annotation(kind) for kind in kinds) or (info,)


def _accepts(info: FieldInfo) -> str:
    if choices := _choices(info):
        return ", ".join(choices[:-1]) + f" or {choices[-1]}"
    kinds = _kinds(info)
    names = []
    for kind, name in ((int, "a whole number"), (float, "a number"), (str, "text")):
        if kind in kinds:
            names.append(name)
    words = {Ge: ("at least", "ge"), Gt: ("more than", "gt"), Le: ("at most", "le")}
    given = list(info.metadata)
    for member in _members(info):
        given += [limit for limit in member.metadata if limit not in given]
    known = [(limit, *words[type(limit)]) for limit in given if type(limit) in words]
    limits = [f"{word} {getattr(limit, name)}" for limit, word, name in known]
    return ", ".join([" or ".join(names) or "a value", *limits])
