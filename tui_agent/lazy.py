"""Objects compiled on first use: regular expressions, and the constructors of dataclasses.

A start of the program sees hundreds of either and uses few of them. An expression takes up to 3 ms
to compile, a frozen dataclass with slots 0.45 ms to make; here it takes 0.04 ms, and 0.1 ms once
so many objects of it are made that a compiled constructor pays.
"""

import dataclasses
import re
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

__all__ = ["UNCOMPILED_OBJECTS", "LazyPattern", "dataclass", "frozen"]

T = TypeVar("T")

UNCOMPILED_OBJECTS = 32
"""Objects of a dataclass that are filled field by field before its constructor is compiled."""

if TYPE_CHECKING:
    from dataclasses import dataclass

    LazyPattern = re.compile
else:

    class LazyPattern:
        """An expression with the methods of a compiled one."""

        def __init__(self, pattern, flags=0):
            self.pattern = pattern
            self._flags = flags

        def __getattr__(self, name):
            """Compile the expression when a method is first used, and keep the method."""
            method = getattr(re.compile(self.pattern, self._flags), name)
            setattr(self, name, method)
            return method

    def dataclass(kind=None, /, *, frozen=False, slots=False, kw_only=False, eq=True, repr=True):  # noqa: A002 - as the standard one
        """Make a dataclass whose constructor is compiled when it is called often; otherwise as the standard one.

        ``fields``, ``replace``, ``asdict`` and matching work as with any dataclass.
        """
        if kind is None:
            return lambda kind: dataclass(
                kind, frozen=frozen, slots=slots, kw_only=kw_only, eq=eq, repr=repr
            )
        own = set(kind.__dict__) - {"__hash__"} | (
            {"__hash__"} if kind.__dict__.get("__hash__") else set()
        )
        # Without a text it would be made of the constructor's signature, which takes longer than
        # all the rest.
        kind.__doc__ = kind.__doc__ or kind.__name__
        kind = dataclasses.dataclass(
            kind, init=False, repr=False, eq=False, slots=slots, kw_only=kw_only
        )

        methods = {"__init__": _first_init(kind, frozen=frozen)}
        if repr:
            methods["__repr__"] = _repr
        fields = dataclasses.fields(kind)
        if eq:
            methods |= _compared(fields, hashed=frozen)
        if frozen:
            methods |= _frozen(kind, frozenset(field.name for field in fields))
        for name, method in methods.items():
            if name not in own:
                setattr(kind, name, method)
        return kind


def _first_init(kind: Any, *, frozen: bool) -> Callable[..., None]:
    """Return the constructor of the first objects, which then puts the compiled one in its place."""
    made = 0

    def init(self: object, /, *given: object, **named: object) -> None:
        nonlocal made
        made += 1
        if made <= UNCOMPILED_OBJECTS and _fill(self, kind, given, named):
            return
        compiled = _compiled_init(kind, frozen=frozen)
        kind.__init__ = compiled
        compiled(self, *given, **named)

    return init


def _fill(self: Any, kind: Any, given: tuple[object, ...], named: dict[str, object]) -> bool:
    """Set the fields; returns False for arguments that the compiled constructor has to refuse."""
    fields, plain = _shape(kind)
    values = dict(zip(plain, given, strict=False))
    if len(given) > len(plain) or not values.keys().isdisjoint(named):
        return False
    values |= named
    for field in fields:
        if field.init and field.name in values:
            value = values.pop(field.name)
        elif field.default_factory is not dataclasses.MISSING:
            value = field.default_factory()
        elif field.default is not dataclasses.MISSING:
            value = field.default
        elif field.init:
            return False
        else:
            continue
        object.__setattr__(self, field.name, value)
    if values:
        return False
    if hasattr(kind, "__post_init__"):
        self.__post_init__()
    return True


@cache
def _shape(kind: Any) -> tuple[tuple[dataclasses.Field[Any], ...], list[str]]:
    """Return the fields, and the names of those that may be given without theirs."""
    fields = dataclasses.fields(kind)
    return fields, [field.name for field in fields if field.init and not field.kw_only]


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def frozen(kind: type[T]) -> type[T]:
    """Make a dataclass of values that never change, with slots."""
    return dataclass(kind, frozen=True, slots=True)


def _compiled_init(kind: Any, *, frozen: bool) -> Callable[..., None]:
    """Return the constructor: fields in order, those that must be named at the end."""
    # Underscores keep these from being taken for fields.
    known: dict[str, Any] = {"__missing": dataclasses.MISSING, "__put": object.__setattr__}
    plain: list[str] = []
    named: list[str] = []
    lines: list[str] = []
    for field in dataclasses.fields(kind):
        parameter = value = name = field.name
        if field.default_factory is not dataclasses.MISSING:
            known[f"__make_{name}"] = field.default_factory
            parameter = f"{name}=__missing"
            if field.init:
                value = f"__make_{name}() if {name} is __missing else {name}"
            else:
                value = f"__make_{name}()"
        elif field.default is not dataclasses.MISSING:
            known[f"__default_{name}"] = field.default
            parameter = f"{name}=__default_{name}"
            if field.init:
                value = name
            else:
                value = f"__default_{name}"
        elif not field.init:
            continue
        if field.init:
            (named if field.kw_only else plain).append(parameter)
        lines.append(f"__put(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(kind, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ", ".join(["self", *plain, *(["*", *named] if named else [])])
    body = "\n    ".join(lines or ["pass"])
    exec(f"def __init__({parameters}):\n    {body}", known)  # noqa: S102 - as the standard library makes it, from the same names
    made: Callable[..., None] = known["__init__"]
    made.__qualname__ = f"{kind.__qualname__}.__init__"
    return made


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (
        f"{field.name}={getattr(self, field.name)!r}"
        for field in dataclasses.fields(self)
        if field.repr
    )
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _compared(fields: tuple[dataclasses.Field[Any], ...], *, hashed: bool) -> dict[str, Any]:
    names = [field.name for field in fields if field.compare]
    values = attrgetter(*names) if names else lambda _self: ()

    def equal(self: object, other: object) -> bool:
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    hashable = []
    for field in fields:
        if field.compare if field.hash is None else field.hash:
            hashable.append(field.name)
    if hashable == names:
        key = values
    else:
        key = attrgetter(*hashable)
    return {"__eq__": equal, "__hash__": (lambda self: hash(key(self))) if hashed else None}


def _frozen(kind: Any, names: frozenset[str]) -> dict[str, Any]:
    def change(self: object, name: str, *value: object) -> None:
        """Set a field or, without a value, delete it; refuse those that are frozen."""
        if type(self) is kind or name in names:
            raise dataclasses.FrozenInstanceError(
                f"cannot {'assign to' if value else 'delete'} field {name!r}"
            )
        if value:
            super(kind, self).__setattr__(name, *value)
        else:
            super(kind, self).__delattr__(name)

    def setstate(self: object, state: Any) -> None:
        for part in state if isinstance(state, tuple) else (state,):
            for name, value in (part or {}).items():
                object.__setattr__(self, name, value)

    return {"__setattr__": change, "__delattr__": change, "__setstate__": setstate}
