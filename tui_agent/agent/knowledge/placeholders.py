"""Fills in the arguments of commands and skills, in the ways of several programs.

``$ARGUMENTS`` is everything that was typed, ``$1`` … one word of it. Claude Code counts words from
0 and names them, Codex takes ``NAME=value``, Pi has ``$@``, ``${@:2}`` and ``${1:-default}``.
Sources: the programs' pages on commands and skills.
"""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from tui_agent.lazy import LazyPattern, dataclass

_SLOT = LazyPattern(
    r"\$ARGUMENTS\[(?P<index>\d{1,2})\]"
    r"|\$\{@:(?P<start>\d{1,2})(?::(?P<count>\d{1,2}))?\}"
    r"|\$\{(?P<number>\d)(?::-(?P<default>[^}\n]*))?\}"
    r"|\$(?P<digit>\d)(?![0-9A-Za-z_])"
    r"|(?P<everything>\$ARGUMENTS(?![0-9A-Za-z_])|\$\{ARGUMENTS\}|\$@)"
    r"|\$\{(?P<braced>[A-Za-z_]\w*)\}"
    r"|\$(?P<name>[A-Za-z_]\w*)"
)
_NAMED = LazyPattern(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_CAPITALS = LazyPattern(r"\$([A-Z][A-Z0-9_]*)")


@dataclass(frozen=True, slots=True)
class Slots:
    """What a template's author may have written to be filled in.

    ``first`` is the number of the first word. ``names`` are those of the words, in order.
    ``takes_named`` lets words be ``NAME=value``. ``variables`` are the program's own
    (``CLAUDE_SKILL_DIR``).
    """

    first: int = 1
    names: tuple[str, ...] = ()
    takes_named: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Given:
    """The arguments of one use: the text that was typed, and its words."""

    text: str
    words: tuple[str, ...]


def given(text: str) -> Given:
    """Take typed arguments apart as a shell would; a quote that doesn't close is taken as it is."""
    try:
        return Given(text, tuple(shlex.split(text)))
    except ValueError:
        return Given(text, tuple(text.split()))


def slots_of(whose: str, template: str, names: object) -> Slots:
    """Return the slots of a file of a program; ``names`` is its ``arguments`` field."""
    match whose:
        case "Claude Code":
            return Slots(first=0, names=_words(names))
        case "Codex":
            found = dict.fromkeys(_CAPITALS.findall(template))
            return Slots(
                names=tuple(name for name in found if name != "ARGUMENTS"), takes_named=True
            )
        case _:
            return Slots(names=_words(names))


def takes_arguments(template: str, slots: Slots) -> bool:
    """Whether a template says itself where its arguments go."""
    numbers = _numbers(template)
    return any(_is_argument(slot, slots, numbers) for slot in _SLOT.finditer(template))


def fill_in(template: str, arguments: Given, slots: Slots, whole: str | None = None) -> str:
    """Return a template with its arguments and variables.

    What is none of them stays: ``it costs $5``.

    ``whole``: the template that this is a part of.
    """
    numbers = _numbers(template if whole is None else whole)
    values = dict(slots.variables) | _named(arguments, slots)

    def value(slot: re.Match[str]) -> str:
        if not (
            _is_argument(slot, slots, numbers)
            or (slot["braced"] or slot["name"]) in slots.variables
        ):
            return slot[0]
        return _value(slot, arguments, slots, values)

    return _SLOT.sub(value, template)


def _value(slot: re.Match[str], arguments: Given, slots: Slots, values: Mapping[str, str]) -> str:
    words = arguments.words
    if slot["everything"]:
        return arguments.text
    if slot["index"]:
        return _word(words, int(slot["index"]))
    if slot["start"]:
        start = max(0, int(slot["start"]) - 1)
        end = None
        if slot["count"]:
            end = start + int(slot["count"])
        return " ".join(words[start:end])
    if slot["number"] or slot["digit"]:
        return _word(words, int(slot["number"] or slot["digit"]) - slots.first) or (
            slot["default"] or ""
        )
    return values.get(slot["braced"] or slot["name"], "")


def _is_argument(slot: re.Match[str], slots: Slots, numbers: frozenset[int]) -> bool:
    """Whether a slot is one, and not an amount of money or a variable of the shell."""
    if slot["everything"] or slot["index"] or slot["start"]:
        return True
    if slot["number"] or slot["digit"]:
        number = int(slot["number"] or slot["digit"])
        # Nobody asks for a fifth argument who has no use for the fourth.
        return number >= slots.first and (number <= 1 or number - 1 in numbers)
    return (slot["braced"] or slot["name"]) in slots.names


def _numbers(template: str) -> frozenset[int]:
    found = (slot["number"] or slot["digit"] for slot in _SLOT.finditer(template))
    return frozenset(int(number) for number in found if number)


def _named(arguments: Given, slots: Slots) -> dict[str, str]:
    """Return the values of the slots that have a name."""
    values = dict(zip(slots.names, arguments.words, strict=False))
    if slots.takes_named:
        values = {}
        for word in arguments.words:
            if found := _NAMED.fullmatch(word):
                values[found[1]] = found[2]
    return values


def _word(words: Sequence[str], index: int) -> str:
    if 0 <= index < len(words):
        return words[index]
    return ""


def _words(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(value.replace(",", " ").split())
    if isinstance(value, Iterable):
        return tuple(str(item) for item in value)
    return ()
