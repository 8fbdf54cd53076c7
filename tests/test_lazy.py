"""Dataclasses whose constructor is made late are as the standard library's."""

import copy
import dataclasses
import pickle
from dataclasses import field
from typing import Any, Generic, TypeVar

import pytest

from tui_agent.lazy import LazyPattern, dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 2
    put: tuple[int, ...] = field(default=(), repr=False)
    marks: list[str] = field(default_factory=list, compare=False, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Named(Point):
    name: str
    made: int = field(default=7, init=False)


@dataclass(slots=True)
class Counter:
    count: int = 0
    doubled: int = field(init=False)

    def __post_init__(self) -> None:
        self.doubled = self.count * 2


@dataclass(frozen=True)
class Box(Generic[T]):
    content: T

    def __hash__(self) -> int:
        return 1


@pytest.mark.parametrize(("given", "named"), [((), {}), ((1, 2, (), [], 5), {}), ((1,), {"z": 2}), ((1,), {"x": 2})])
def test_wrong_arguments_are_refused(given: tuple[Any, ...], named: dict[str, Any]) -> None:
    for _ in range(2):
        with pytest.raises(TypeError):
            Point(*given, **named)


def test_a_frozen_one_stays_as_it_is_and_has_what_it_inherits() -> None:
    point = Point(1)
    for act in (lambda: setattr(point, "x", 2), lambda: delattr(point, "x")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            act()
    assert {point: "found"}[Point(1, 2, (), ["not compared"])] == "found"
    assert repr(point).endswith("Point(x=1, y=2, marks=[])")
    assert Point.__match_args__ == ("x", "y", "put", "marks")
    assert Point(1, 3) != point != (1, 2, (), [])
    assert (Counter(4).doubled, Counter.__hash__) == (8, None)
    assert hash(Box([])) == 1, "a method of its own stays"
    named = Named(1, name="n")
    assert (named.x, named.y, named.name, named.made) == (1, 2, "n", 7)
    assert dataclasses.replace(point, y=9) == Point(1, 9) != named


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda point: pickle.loads(pickle.dumps(point))])
def test_a_copy_is_the_same(copied: Any) -> None:
    assert copied(Point(1, 3)) == Point(1, 3)
    assert copied(Box("b")).content == "b"


def test_an_expression_is_compiled_once_and_late() -> None:
    wrong = LazyPattern("(")
    with pytest.raises(Exception, match="unterminated"):
        wrong.search("x")
    words = LazyPattern(r"\w+")
    assert words.findall("two words") == ["two", "words"]
    assert words.sub("x", "two words", 1) == "x words"
