"""Delays compiling regular expressions and generating dataclass methods until first use.

The program defines hundreds of expressions and dataclasses, and a run uses few of them. Compiling
an expression takes up to 3 ms. The standard library takes 0.45 ms to define a frozen dataclass;
here it takes 0.01 ms, 0.03 ms more for the first object, and 0.1 ms to compile a constructor once
there are many objects. Also contains a thread-safe `cached_property`.
"""

import dataclasses
import functools
import re
from collections.abc import Callable, Iterable
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

__all__ = ["UNCOMPILED_OBJECTS", "LazyPattern", "cached_property", "dataclass", "frozen"]

T = TypeVar("T")

UNCOMPILED_OBJECTS = 32
"""Number of objects that are filled field by field before the dataclass's constructor is
compiled."""

_collecting = RLock()
"""Lock that is held while a class's fields are collected. It is reentrant, because the fields of
the class's bases are collected, too."""


class _Fields:
    """Placeholder for ``__dataclass_fields__`` that collects the fields when it is first read."""

    def __init__(self, kind: Any, kw_only: bool) -> None:  # noqa: FBT001 - passed on as the decorator got it
        self._kind = kind
        self._kw_only = kw_only

    def __get__(self, _object: object, _kind: object = None) -> Any:
        kind = self._kind
        with _collecting:
            # Another thread may have collected them while this thread waited for the lock.
            if kind.__dict__["__dataclass_fields__"] is self:
                dataclasses.dataclass(kind, init=False, repr=False, eq=False, kw_only=self._kw_only)
        return kind.__dict__["__dataclass_fields__"]


class _MatchArgs:
    """Placeholder for ``__match_args__``, replaced when a pattern first matches by position."""

    def __init__(self, kind: Any) -> None:
        self._kind: Any = kind

    def __get__(self, _object: object, _kind: object = None) -> tuple[str, ...]:
        names = tuple(_shape(self._kind)[1])
        setattr(self._kind, "__match_args__", names)  # noqa: B010 - a constant to the type checker
        return names


if TYPE_CHECKING:
    from dataclasses import dataclass
    from functools import cached_property  # noqa: TID251

    LazyPattern = re.compile
else:

    class cached_property(functools.cached_property):  # noqa: N801, TID251 - named like the standard one, which it extends
        """A cached property that is computed only once, even if two threads read it together.

        From Python 3.12 on, both threads may compute a cached property of the standard library, and
        one of them then uses a value that is not the cached one.
        """

        def __init__(self, make):
            super().__init__(make)
            self._making = RLock()

        def __get__(self, owner, kind=None):
            with self._making:
                return super().__get__(owner, kind)

    class LazyPattern:
        """A regular expression that is compiled only when one of its methods is first used.

        It has the methods of ``re.Pattern``, and the attribute ``pattern``.
        """

        def __init__(self, pattern, flags=0):
            self.pattern = pattern
            self._flags = flags

        def __getattr__(self, name):
            """Compile the expression, and return its method ``name``; store it for later uses."""
            method = getattr(re.compile(self.pattern, self._flags), name)
            setattr(self, name, method)
            return method

    def dataclass(kind=None, /, *, frozen=False, slots=False, kw_only=False, eq=True, repr=True):  # noqa: A002 - named like the standard one's
        """Turn a class into a dataclass whose fields and constructor are generated on first use.

        ``fields``, ``replace``, ``asdict`` and pattern matching work as for any dataclass. Use
        ``slots`` only for classes with very many objects, because it builds the class twice.
        """
        if kind is None:
            return lambda kind: dataclass(
                kind, frozen=frozen, slots=slots, kw_only=kw_only, eq=eq, repr=repr
            )
        own = set(kind.__dict__) - {"__hash__"} | (
            {"__hash__"} if kind.__dict__.get("__hash__") else set()
        )
        # If a class has no docstring, the standard library makes one from the constructor's
        # signature, which takes longer than everything else.
        kind.__doc__ = kind.__doc__ or kind.__name__
        if slots:
            kind = dataclasses.dataclass(
                kind, init=False, repr=False, eq=False, slots=True, kw_only=kw_only
            )
        else:
            kind.__dataclass_fields__ = _Fields(kind, kw_only)
            kind.__match_args__ = _MatchArgs(kind)

        methods = {"__init__": _first_init(kind, frozen=frozen)}
        if repr:
            methods["__repr__"] = _repr
        if eq:
            methods["__eq__"] = _equal
            methods["__hash__"] = _hash if frozen else None
        if frozen:
            methods |= _frozen(kind)
        for name, method in methods.items():
            if name not in own:
                setattr(kind, name, method)
        return kind


def _first_init(kind: Any, *, frozen: bool) -> Callable[..., None]:
    """Return a constructor that sets the fields of the first objects one by one.

    After `UNCOMPILED_OBJECTS` objects, it is replaced by a compiled constructor.
    """
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
    """Set the fields of a new object from the arguments; return False if the arguments are wrong.

    If they are wrong, the caller calls the compiled constructor, which raises the TypeError.
    """
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
    """Return a dataclass's fields, and the names of those that may be passed by position."""
    fields = dataclasses.fields(kind)
    return fields, [field.name for field in fields if field.init and not field.kw_only]


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def frozen(kind: type[T]) -> type[T]:
    """Turn a class into a frozen dataclass, like ``dataclass`` with ``frozen=True``."""
    return dataclass(kind, frozen=True)


def _compiled_init(kind: Any, *, frozen: bool) -> Callable[..., None]:
    """Return a constructor for the class, compiled from generated source code.

    It has a parameter for each field. Parameters that can only be passed by keyword come last.
    """
    # The underscores avoid clashes with the names of fields.
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
    exec(f"def __init__({parameters}):\n    {body}", known)  # noqa: S102 - as the standard library does, with the same names
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


@cache
def _compared(kind: Any) -> Callable[[Any], Any]:
    """Return a function that reads the fields by which objects of a dataclass are compared."""
    return _getter(field.name for field in dataclasses.fields(kind) if field.compare)


@cache
def _hashed(kind: Any) -> Callable[[Any], object]:
    """Return a function that reads the fields of an object from which its hash is computed."""
    names = []
    for field in dataclasses.fields(kind):
        if field.compare if field.hash is None else field.hash:
            names.append(field.name)
    return _getter(names)


def _getter(names: Iterable[str]) -> Callable[[Any], object]:
    names = list(names)
    return attrgetter(*names) if names else lambda _self: ()


def _equal(self: Any, other: Any) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    values = _compared(type(self))  # type: ignore[arg-type]
    return values(self) == values(other)


def _hash(self: Any) -> int:
    return hash(_hashed(type(self))(self))  # type: ignore[arg-type]


def _frozen(kind: Any) -> dict[str, Any]:
    def change(self: object, name: str, *value: object) -> None:
        """Set an attribute or, without a value, delete it.

        Raises FrozenInstanceError for a field. In an object of this class itself, not of a
        subclass, also raises it for any other attribute.
        """
        if type(self) is kind or name in kind.__dataclass_fields__:
            raise dataclasses.FrozenInstanceError(
                f"cannot {'assign to' if value else 'delete'} field {name!r}"
            )
        if value:
            super(kind, self).__setattr__(name, *value)
        else:
            super(kind, self).__delattr__(name)

    return {"__setattr__": change, "__delattr__": change, "__setstate__": _set_state}


def _set_state(self: object, state: Any) -> None:
    for part in state if isinstance(state, tuple) else (state,):
        for name, value in (part or {}).items():
            object.__setattr__(self, name, value)
