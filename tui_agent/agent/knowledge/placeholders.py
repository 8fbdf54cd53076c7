"""Replaces the placeholders for arguments in commands and skills, by the rules of several programs.

``$ARGUMENTS`` is replaced by the whole typed text, ``$1`` by its first word. Claude Code numbers the
words from 0 and can name them, Codex takes ``NAME=value``, Pi has ``$@``, ``${@:2}`` and
``${1:-default}``.
Sources: the programs' documentation of commands and skills.
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
"""Matches a typed word. Quotes count only if they enclose a whole word, so ``it's`` stays
unchanged."""
_NAMED = LazyPattern(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_CAPITALS = LazyPattern(r"\$([A-Z][A-Z0-9_]*)")


@frozen
class Slots:
    """The placeholders ("slots") that a template may use, and how they are filled.

    ``first`` is the number of the first typed word: 0 or 1. ``names`` are names for the typed
    words, in order. With ``takes_named``, words may be typed as ``NAME=value``. ``variables`` are
    values that the program provides (``CLAUDE_SKILL_DIR``). ``plain`` names the groups of ``_SLOT``
    for the forms that the program doesn't support; slots of these forms stay as text.
    """

    first: int = 1
    names: tuple[str, ...] = ()
    takes_named: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    plain: frozenset[str] = frozenset()
    escapes: bool = False
    """True if a backslash before a slot keeps it as text."""
    keeps_missing: bool = False
    """True if the slot of a word that was not typed stays as text instead of becoming empty."""
    last_takes_rest: bool = False
    """True if the slot with the highest number takes all remaining words."""
    joins_words: bool = False
    """True if the slot for all arguments is filled with the unquoted words, not the typed text."""


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
"""How other programs replace placeholders, found out from the requests that they send for given
files and arguments."""


@frozen
class Given:
    """Typed arguments: the whole text, and its words without quotes."""

    text: str
    words: tuple[str, ...]


def given(text: str) -> Given:
    """Split the arguments typed after a command into words.

    Quotes group words. A quote inside a word, or one that is not closed, is part of the word.
    """
    return Given(text, tuple(_word_of(found) for found in _WORD.finditer(text)))


def slots_of(whose: str, template: str, names: object) -> Slots:
    """Return the `Slots` for a template, according to the program that it was written for.

    ``whose`` is the name of another program, "" for this one. ``names`` is the ``arguments`` field
    of the front matter.
    """
    way = _WAYS.get(whose, Slots())
    if way.takes_named:
        found = dict.fromkeys(_CAPITALS.findall(template))
        return replace(way, names=tuple(name for name in found if name != "ARGUMENTS"))
    return replace(way, names=_words(names))


def takes_arguments(template: str, slots: Slots) -> bool:
    """Return True if a template contains a slot for arguments.

    If not, callers append the arguments.
    """
    numbers = _numbers(template)
    return any(_is_argument(slot, slots, numbers) for slot in _SLOT.finditer(template))


def fill_in(template: str, arguments: Given, slots: Slots, whole: str | None = None) -> str:
    """Return a template with its slots replaced; other uses of ``$`` (``it costs $5``) are kept.

    If ``template`` is only a part of a template, pass the whole template as ``whole``: a ``$2`` is
    a slot only if the whole template contains a ``$1``.
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
    """Return the text for a slot; None if the word with the slot's number was not typed."""
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
    """Return True if a match is a slot for arguments, not a sum of money or a shell variable."""
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
    """Return True if ``$number`` is a slot.

    Slots begin at ``slots.first``. A number above 1 is a slot only if the template also uses the
    number before it.
    """
    return number >= slots.first and (number <= 1 or number - 1 in numbers)


def _last(numbers: frozenset[int], slots: Slots) -> int:
    return max(number for number in numbers if _is_counted(number, slots, numbers))


def _numbers(template: str) -> frozenset[int]:
    found = (slot["number"] or slot["digit"] for slot in _SLOT.finditer(template))
    return frozenset(int(number) for number in found if number)


def _named(arguments: Given, slots: Slots) -> dict[str, str]:
    """Return a mapping from the names of named slots to the words typed for them."""
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
