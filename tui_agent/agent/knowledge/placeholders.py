"""Fills in the arguments of commands and skills, in the ways of several programs.

``$ARGUMENTS`` is everything that was typed, ``$1`` … one word of it. Claude Code counts words from
0 and names them, Codex takes ``NAME=value``, Pi has ``$@``, ``${@:2}`` and ``${1:-default}``.
Sources: the programs' pages on commands and skills.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from tui_agent.lazy import LazyPattern, frozen

_SLOT = LazyPattern(
    r"(?P<escape>\\)?(?:"
    r"\$ARGUMENTS\[(?P<index>\d{1,2})\]"
    r"|\$\{@:(?P<start>\d{1,2})(?::(?P<count>\d{1,2}))?\}"
    r"|\$\{@:-(?P<otherwise>[^}\n]*)\}"
    r"|\$\{(?P<number>\d)(?::-(?P<default>[^}\n]*))?\}"
    r"|\$(?P<digit>\d)(?![0-9A-Za-z_])"
    r"|(?P<everything>\$ARGUMENTS(?![0-9A-Za-z_]))"
    r"|(?P<at>\$@|\$\{ARGUMENTS\})"
    r"|\$\{(?P<braced>[A-Za-z_]\w*)\}"
    r"|\$(?P<name>[A-Za-z_]\w*))"
)
_WORD = LazyPattern(
    r"""(?P<key>[^\s"'=]*=)?(?:"(?P<double>(?:\\.|[^"\\])*+)"|'(?P<single>[^']*)')(?=\s|$)|(?P<plain>\S+)""",
    re.DOTALL,
)
"""A word: quotes count where they begin and end it, so that ``it's`` is one."""
_NAMED = LazyPattern(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_CAPITALS = LazyPattern(r"\$([A-Z][A-Z0-9_]*)")


@frozen
class Slots:
    """What a template's author may have written to be filled in.

    ``first`` is the number of the first word. ``names`` are those of the words, in order.
    ``takes_named`` lets words be ``NAME=value``. ``variables`` are the program's own
    (``CLAUDE_SKILL_DIR``). ``plain`` are the forms of slots (groups of the expression) that stay
    text.
    """

    first: int = 1
    names: tuple[str, ...] = ()
    takes_named: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    plain: frozenset[str] = frozenset()
    escapes: bool = False
    """Whether a slot behind a backslash stays text."""
    keeps_missing: bool = False
    """Whether the slot of a word that was not typed stays text."""
    last_takes_rest: bool = False
    """Whether the slot with the highest number stands for all words from there on."""
    joins_words: bool = False
    """Whether all that was typed is its words, without their quotes."""


_WAYS = {
    "Claude Code": Slots(
        first=0,
        plain=frozenset({"start", "otherwise", "number", "at"}),
        escapes=True,
        keeps_missing=True,
    ),
    "Codex": Slots(takes_named=True),
    "OpenCode": Slots(
        last_takes_rest=True, plain=frozenset({"start", "otherwise", "number", "at"})
    ),
    "Pi": Slots(joins_words=True),
}
"""As the programs' requests show, for the same files and words."""


@frozen
class Given:
    """The arguments of one use: the text that was typed, and its words."""

    text: str
    words: tuple[str, ...]


def given(text: str) -> Given:
    """Take typed arguments apart.

    A quote in the middle of a word, or that doesn't close, is part of it.
    """
    return Given(text, tuple(_word_of(found) for found in _WORD.finditer(text)))


def slots_of(whose: str, template: str, names: object) -> Slots:
    """Return the slots of a file of a program; ``names`` is its ``arguments`` field."""
    way = _WAYS.get(whose, Slots())
    if way.takes_named:
        found = dict.fromkeys(_CAPITALS.findall(template))
        return replace(way, names=tuple(name for name in found if name != "ARGUMENTS"))
    return replace(way, names=_words(names))


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
        is_variable = (slot["braced"] or slot["name"]) in slots.variables
        if not (is_variable or _is_argument(slot, slots, numbers)):
            return slot[0]
        if slot["escape"] and slots.escapes:
            return slot[0].removeprefix("\\")
        filled = _value(slot, arguments, slots, values, numbers)
        if filled is None and slots.keeps_missing:
            return slot[0]
        return (slot["escape"] or "") + (filled or "")

    return _SLOT.sub(value, template)


def _word_of(found: re.Match[str]) -> str:
    if found["plain"] is not None:
        return found["plain"]
    inside = found["single"]
    if inside is None:
        inside = re.sub(r"\\([\"\\])", r"\1", found["double"])
    return (found["key"] or "") + inside


def _value(
    slot: re.Match[str],
    arguments: Given,
    slots: Slots,
    values: Mapping[str, str],
    numbers: frozenset[int],
) -> str | None:
    """Return what stands for a slot, None for a word that was not typed."""
    if slot["everything"] or slot["at"] or slot["otherwise"] is not None:
        return _everything(arguments, slots) or slot["otherwise"] or ""
    if slot["index"]:
        return _word(arguments.words, int(slot["index"]))
    if slot["start"]:
        return _from(slot, arguments.words)
    if slot["number"] or slot["digit"]:
        return _counted(slot, arguments.words, slots, numbers)
    return values.get(slot["braced"] or slot["name"], "")


def _everything(arguments: Given, slots: Slots) -> str:
    if slots.joins_words:
        return " ".join(arguments.words)
    return arguments.text


def _from(slot: re.Match[str], words: Sequence[str]) -> str:
    start = max(0, int(slot["start"]) - 1)
    end = None
    if slot["count"]:
        end = start + int(slot["count"])
    return " ".join(words[start:end])


def _counted(
    slot: re.Match[str], words: Sequence[str], slots: Slots, numbers: frozenset[int]
) -> str | None:
    number = int(slot["number"] or slot["digit"])
    place = number - slots.first
    if slots.last_takes_rest and number == _last(numbers, slots):
        return " ".join(words[place:])
    found = _word(words, place)
    if not found and slot["default"] is not None:
        return str(slot["default"])
    return found


def _is_argument(slot: re.Match[str], slots: Slots, numbers: frozenset[int]) -> bool:
    """Whether a slot is one, and not an amount of money or a variable of the shell."""
    if any(slot[form] is not None for form in slots.plain):
        return False
    if slot["default"] is not None or slot["otherwise"] is not None:
        return True
    if slot["everything"] or slot["at"] or slot["index"] or slot["start"]:
        return True
    if slot["number"] or slot["digit"]:
        return _is_counted(int(slot["number"] or slot["digit"]), slots, numbers)
    return (slot["braced"] or slot["name"]) in slots.names


def _is_counted(number: int, slots: Slots, numbers: frozenset[int]) -> bool:
    """Whether a number is that of a word: nobody asks for a fifth one who has no use for the fourth."""
    return number >= slots.first and (number <= 1 or number - 1 in numbers)


def _last(numbers: frozenset[int], slots: Slots) -> int:
    return max(number for number in numbers if _is_counted(number, slots, numbers))


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


def _word(words: Sequence[str], index: int) -> str | None:
    if 0 <= index < len(words):
        return words[index]
    return None


def _words(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(value.replace(",", " ").split())
    if isinstance(value, Iterable):
        return tuple(str(item) for item in value)
    return ()
