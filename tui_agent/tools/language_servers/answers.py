"""Parses the results of requests to language servers in pure functions.

Invalid items are left out.
"""

import re
from collections.abc import Iterator
from typing import Annotated, Any, TypeVar

from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, ValidationError

from tui_agent.json_text import as_dict, as_list, as_text, objects
from tui_agent.lazy import LazyPattern, frozen

MAX_NESTED = 50
"""Maximum depth of nested symbols that are read."""
MAX_READ = 20_000
"""Maximum number of items that are read from a list in a language server's answer."""
MAX_FINDINGS = 500
_ERROR = 1
"""The severity number of errors in the language server protocol. Other numbers stand for warnings
and hints."""
_FUNCTIONS = frozenset({6, 9, 12})
_VARIABLES = frozenset({13, 14})
"""Numbers in the language server protocol for the kinds of symbols that are variables or constants.
"""
_RECEIVER = LazyPattern(r"^\(\*?(\w+)[^)]*\)\.")
_TYPES = LazyPattern(r"(<(?:[^<>]|<[^<>]*>)*>|\(.*)", re.DOTALL)
_BETWEEN = LazyPattern(r"::|[./]")
Number = Annotated[int, Field(ge=0, lt=2**31)]


class Position(BaseModel):
    """A line and a character in a file, both counted from 0. Characters are UTF-16 units."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    line: Number
    character: Number = 0


class Place(BaseModel):
    """A file's URI and a position in the file, from a ``Location`` or ``LocationLink``."""

    model_config = ConfigDict(defer_build=True)

    uri: str = Field(validation_alias=AliasChoices("targetUri", "uri"))
    start: Position = Field(
        validation_alias=AliasChoices(
            AliasPath("targetSelectionRange", "start"),
            AliasPath("selectionRange", "start"),
            AliasPath("range", "start"),
        )
    )


class _Symbol(BaseModel):
    """A symbol in one of the three forms of the protocol.

    The forms are ``DocumentSymbol``, ``SymbolInformation`` and ``WorkspaceSymbol``.
    """

    model_config = ConfigDict(defer_build=True)

    name: str
    kind: int = 0
    start: Position = Field(
        default=Position(line=0),
        validation_alias=AliasChoices(
            AliasPath("selectionRange", "start"), AliasPath("location", "range", "start")
        ),
    )
    uri: str = Field(default="", validation_alias=AliasPath("location", "uri"))
    container: str | None = Field(default=None, validation_alias="containerName")
    children: list[Any] | None = None


class _Caller(BaseModel):
    model_config = ConfigDict(defer_build=True)

    place: Place = Field(validation_alias="from")
    at: list[Any] = Field(default_factory=list, validation_alias="fromRanges")


class _Diagnostic(BaseModel):
    model_config = ConfigDict(defer_build=True)

    message: str
    severity: int = _ERROR
    start: Position = Field(validation_alias=AliasPath("range", "start"))


@frozen
class Finding:
    """An error that a server reports. ``line`` counts from 0."""

    line: int
    message: str


@frozen
class Symbol:
    """A named thing in a file, such as a class or a function.

    ``names`` are the names of the symbols that contain this one, outermost first, followed by its
    own name. ``uri`` is "" if the server was asked about a single file.
    """

    names: tuple[str, ...]
    start: Position
    uri: str = ""

    def is_called(self, names: tuple[str, ...]) -> bool:
        """Return True if the symbol's qualified name ends with ``names``."""
        return self.names[-len(names) :] == names


Row = TypeVar("Row", bound=BaseModel)


def _rows(result: Any, kind: type[Row]) -> Iterator[Row]:
    rows = result if isinstance(result, list) else [result]
    for row in rows[:MAX_READ]:
        try:
            yield kind.model_validate(row)
        except ValidationError:
            continue


def places_of(result: Any) -> list[Place]:
    return list(_rows(result, Place))


def symbols_of(result: Any, around: tuple[str, ...] = (), kind: int = 0) -> list[Symbol]:
    """Return the symbols in a result, each followed by the symbols inside it.

    Local variables of functions are left out. If ``result`` lists the children of a symbol,
    ``around`` are that symbol's names and ``kind`` is its kind in the protocol.
    """
    found: list[Symbol] = []
    for row in _rows(result, _Symbol):
        if kind in _FUNCTIONS and row.kind in _VARIABLES:
            continue
        outer = around
        if row.container:
            outer = plain_names(row.container)
        names = (*outer, *plain_names(row.name))
        found.append(Symbol(names, row.start, row.uri))
        if row.children and len(names) < MAX_NESTED:
            found += symbols_of(row.children, names, row.kind)
    return found


def plain_names(name: str) -> tuple[str, ...]:
    """Return the plain names in a language server's name for a symbol, without types or parameters.

    ``(*T).M`` gives T and M, ``impl A for T<U>`` gives T, ``m(int)`` gives m, ``a::b`` gives a and
    b.
    """
    receiver = _RECEIVER.sub(r"\1.", name)
    plain = _TYPES.sub("", receiver).split()
    if not plain:
        return (name,)
    return tuple(filter(None, _BETWEEN.split(plain[-1]))) or (name,)


def callers_of(result: Any) -> list[Place]:
    """Return the places of all calls in a result of the request ``callHierarchy/incomingCalls``.

    If no places are given for the calls of a caller, the place of the caller is returned.
    """
    places = []
    for caller in _rows(result, _Caller):
        for start in _starts(caller):
            places.append(Place.model_construct(uri=caller.place.uri, start=start))
    return places


def _starts(caller: _Caller) -> list[Position]:
    found = [row.get("start") for row in objects(caller.at)]
    return list(_rows(found, Position)) or [caller.place.start]


def errors_of(result: Any) -> list[Finding]:
    """Return the errors in a list of diagnostics, that is, without warnings and hints.

    A message is cut at its first blank line.
    """
    found = []
    for one in _rows(as_list(result)[:MAX_FINDINGS], _Diagnostic):
        if one.severity == _ERROR:
            found.append(Finding(one.start.line, one.message.partition("\n\n")[0]))
    return found


def hover_text(result: Any) -> str:
    """Return the text of a hover result in any form that the protocol allows; "" if none."""
    contents = as_dict(result).get("contents")
    texts = []
    for part in contents if isinstance(contents, list) else [contents]:
        said = part.get("value") if isinstance(part, dict) else part
        if text := as_text(said).strip():
            texts.append(text)
    return "\n\n".join(texts)
