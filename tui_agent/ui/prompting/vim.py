"""The keys of vi for a small text: what each does to text and cursor. Pure.

A position is a number of characters from the beginning. In normal mode it is that of a character, not behind the last
one of a line.
"""

import re
from collections.abc import Callable
from enum import StrEnum
from typing import Literal

from tui_agent.lazy import dataclass


class Mode(StrEnum):
    """What a key means; the value is how the mode is called on the screen."""

    INSERT = "insert"
    NORMAL = "normal"
    VISUAL = "visual"
    LINES = "visual line"


@dataclass(frozen=True, slots=True)
class Step:
    """What a key did. ``selected`` is a range, its end not included; ``wants`` is for whoever has the text to do."""

    text: str
    at: int
    selected: tuple[int, int] | None = None
    wants: Literal["", "undo", "redo", "older", "newer"] = ""


@dataclass(frozen=True, slots=True)
class Span:
    """What an operator acts on; whole lines include their line feed."""

    start: int
    end: int
    lines: bool = False


_WORDS = {"": re.compile(r"\w+|[^\w\s]+"), "big": re.compile(r"\S+")}
_MOTIONS = frozenset("hjklwbeWBE0^$G;, ")
_SHORT = {
    "x": ("d", "l"),
    "X": ("d", "h"),
    "D": ("d", "$"),
    "C": ("c", "$"),
    "s": ("c", "l"),
    "S": ("c", "c"),
    "Y": ("y", "y"),
}
"""Keys that stand for an operator with its motion."""


def _start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _end(text: str, at: int) -> int:
    found = text.find("\n", at)
    return found if found >= 0 else len(text)


def _first(text: str, at: int) -> int:
    """Return the first character of a line that is no blank."""
    start, end = _start(text, at), _end(text, at)
    return start + len(text[start:end]) - len(text[start:end].lstrip())


_INSERTING: dict[str, Callable[[str, int], int]] = {
    "i": lambda _text, at: at,
    "a": lambda text, at: min(at + 1, _end(text, at)),
    "I": _first,
    "A": _end,
}
"""Keys that begin to insert, and where."""


def clamped(text: str, at: int) -> int:
    """Return a position of normal mode."""
    at = max(0, min(at, len(text)))
    return max(_start(text, at), min(at, _end(text, at) - 1))


class Vim:
    """One per prompt. ``press`` is told every key."""

    def __init__(self) -> None:
        self.mode = Mode.INSERT
        self._anchor = 0
        self._count = ""
        self._operator = ""
        self._prefix = ""
        self._register, self._register_lines = "", False
        self._find = ("", "")
        self._keys: list[str] = []
        self._last: tuple[list[str], str] = ([], "")
        self._inserting: tuple[list[str], str, int] = ([], "", 0)

    @property
    def pending(self) -> str:
        """The keys of a command that is not complete."""
        return "".join(self._keys)

    def reset(self) -> None:
        """Begin anew, writing: the text is another one."""
        self._forget()
        self.mode = Mode.INSERT
        self._inserting = ([], "", 0)

    def press(self, key: str, text: str, at: int) -> Step | None:
        """Do what a key does, a character or a key's name; None where it means nothing here."""
        if self.mode is Mode.INSERT:
            return self._leave_insert(text, at) if key == "escape" else None
        if key == "escape":
            was_idle = self.mode is Mode.NORMAL and not self._keys
            self.mode = Mode.NORMAL
            self._forget()
            return None if was_idle else Step(text, clamped(text, at))
        if len(key) > 1 and key not in {"ctrl+r", "space", "backspace"}:
            return None
        key = {"space": " ", "backspace": "h"}.get(key, key)
        self._keys.append(key)
        step = self._do(key, text, at)
        if self.mode in {Mode.VISUAL, Mode.LINES} and step.selected is None:
            span = self._visual(step.text, step.at)
            step = Step(step.text, step.at, (span.start, span.end), step.wants)
        return step

    # -- keys -------------------------------------------------------------------------------------------------

    def _do(self, key: str, text: str, at: int) -> Step:  # noqa: PLR0911 - one exit for each kind of key
        if self._prefix:
            prefix, self._prefix = self._prefix, ""
            return self._after_prefix(prefix, key, text, at)
        if key.isdecimal() and (key != "0" or self._count):
            self._count += key
            return Step(text, at)
        is_visual = self.mode is not Mode.NORMAL
        if key in "fFtTg" or (key in "ia" and (self._operator or is_visual)) or (key == "r" and not self._operator):
            self._prefix = key
            return Step(text, at)
        if self._operator and key == self._operator:
            return self._operate(self._lines(text, at), text, at)
        if key in _MOTIONS:
            return self._moved(key, text, at)
        if self._operator:
            return self._done(Step(text, at))
        return self._in_visual(key, text, at) if is_visual else self._in_normal(key, text, at)

    def _after_prefix(self, prefix: str, key: str, text: str, at: int) -> Step:  # noqa: PLR0911 - one arm for each
        match prefix:
            case "g" if key == "g":
                return self._moved("gg", text, at)
            case "r" if len(key) == 1:
                end = at + self._number
                if end > _end(text, at):
                    return self._done(Step(text, at))
                return self._done(Step(text[:at] + key * (end - at) + text[end:], end - 1), change=True)
            case "f" | "F" | "t" | "T":
                self._find = prefix, key
                return self._moved(prefix, text, at)
            case "i" | "a" if key in "wW":
                span = _word_around(text, at, "big" if key == "W" else "", outer=prefix == "a")
                if self._operator:
                    return self._operate(span, text, at)
                self._anchor = span.start
                return self._done(Step(text, max(span.start, span.end - 1)))
            case _:
                return self._done(Step(text, at))

    def _in_normal(self, key: str, text: str, at: int) -> Step:  # noqa: PLR0911, PLR0912, C901 - one arm for each command
        match key:
            case "d" | "c" | "y":
                self._operator = key
                return Step(text, at)
            case "i" | "a" | "I" | "A":
                return self._insert(Step(text, _INSERTING[key](text, at)))
            case "o":
                end = _end(text, at)
                return self._insert(Step(f"{text[:end]}\n{text[end:]}", end + 1))
            case "O":
                start = _start(text, at)
                return self._insert(Step(f"{text[:start]}\n{text[start:]}", start))
            case "p" | "P":
                return self._done(self._put(text, at, after=key == "p"), change=True)
            case "v" | "V":
                self.mode, self._anchor = (Mode.VISUAL if key == "v" else Mode.LINES), at
                return self._done(Step(text, at))
            case "u" | "ctrl+r":
                return self._done(Step(text, at, wants="undo" if key == "u" else "redo"))
            case ".":
                return self._again(text, at)
            case "~":
                end = min(at + self._number, _end(text, at))
                return self._done(
                    Step(text[:at] + text[at:end].swapcase() + text[end:], clamped(text, end)), change=True
                )
            case "J":
                end = _end(text, at)
                if end == len(text):
                    return self._done(Step(text, at))
                rest = text[end + 1 :].lstrip(" \t")
                space = "" if not rest or rest.startswith("\n") else " "
                joined = f"{text[:end]}{space}{rest}"
                return self._done(Step(joined, clamped(joined, end)), change=True)
            case "x" | "X" | "D" | "C" | "s" | "S" | "Y":
                operator, motion = _SHORT[key]
                self._operator = operator
                if motion == operator:
                    return self._operate(self._lines(text, at), text, at)
                return self._moved(motion, text, at)
            case _:
                return self._done(Step(text, at))

    def _in_visual(self, key: str, text: str, at: int) -> Step:
        match key:
            case "d" | "x" | "c" | "s" | "y":
                self._operator = {"x": "d", "s": "c"}.get(key, key)
                span, self.mode = self._visual(text, at), Mode.NORMAL
                return self._operate(span, text, at)
            case "v" | "V":
                other = Mode.VISUAL if key == "v" else Mode.LINES
                self.mode = Mode.NORMAL if self.mode is other else other
            case "o":
                self._anchor, at = at, self._anchor
            case "p":
                span, self.mode = self._visual(text, at), Mode.NORMAL
                text = text[: span.start] + self._register + text[span.end :]
                return self._done(Step(text, clamped(text, span.start + len(self._register) - 1)), change=True)
            case "~":
                span, self.mode = self._visual(text, at), Mode.NORMAL
                swapped = text[span.start : span.end].swapcase()
                return self._done(Step(text[: span.start] + swapped + text[span.end :], span.start), change=True)
            case _:
                pass
        return self._done(Step(text, at))

    # -- moving -----------------------------------------------------------------------------------------------

    @property
    def _number(self) -> int:
        return min(int(self._count or 1), 10_000)

    def _moved(self, key: str, text: str, at: int) -> Step:
        """Move, or let the operator that waits act on what was moved over."""
        if key in {"j", "k", "G", "gg"}:
            return self._moved_lines(key, text, at)
        to = at
        for _ in range(self._number):
            to = self._target(key, text, to)
        if not self._operator:
            return self._done(Step(text, to if self.mode is not Mode.NORMAL else clamped(text, to)))
        if key in {"w", "W"}:
            to = self._end_of_words(key, text, at, to)
        inclusive = key in {"e", "E", "$", "f", "t"} or (key in {";", ","} and self._finds_forward(key))
        if key in "fFtT;," and to == at and not self._is_beside(key, text, at):
            return self._done(Step(text, at))
        start, end = min(at, to), max(at, to) + inclusive
        if key in "hlx ":
            start, end = max(start, _start(text, at)), min(end, _end(text, at))
        return self._operate(Span(start, min(end, len(text))), text, at)

    def _moved_lines(self, key: str, text: str, at: int) -> Step:
        lines = text.split("\n")
        row = text.count("\n", 0, at)
        column = at - _start(text, at)
        number = int(self._count) - 1 if self._count else (0 if key == "gg" else len(lines) - 1)
        to = {"j": row + self._number, "k": row - self._number}.get(key, number)
        if key in {"j", "k"} and not 0 <= to < len(lines) and self.mode is Mode.NORMAL:
            # An operator has nothing to act on there; without one it is the history.
            return self._done(Step(text, at, wants="" if self._operator else "newer" if key == "j" else "older"))
        to = max(0, min(to, len(lines) - 1))
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line) + 1)
        if self._operator:
            return self._operate(
                Span(starts[min(row, to)], min(starts[max(row, to) + 1], len(text)), lines=True), text, at
            )
        target = starts[to] + min(column, len(lines[to])) if key in {"j", "k"} else _first(text, starts[to])
        return self._done(Step(text, clamped(text, target)))

    def _target(self, key: str, text: str, at: int) -> int:  # noqa: PLR0911 - one arm for each motion
        kind = "big" if key in "WBE" else ""
        match key:
            case "h":
                return max(at - 1, _start(text, at))
            case "l" | " ":
                return min(at + 1, _end(text, at))
            case "0":
                return _start(text, at)
            case "^":
                return _first(text, at)
            case "$":
                return max(_start(text, at), _end(text, at) - 1)
            case "w" | "W":
                return next(
                    (found.start() for found in _WORDS[kind].finditer(text, 0) if found.start() > at), len(text)
                )
            case "e" | "E":
                return next((found.end() - 1 for found in _WORDS[kind].finditer(text) if found.end() - 1 > at), at)
            case "b" | "B":
                return max((found.start() for found in _WORDS[kind].finditer(text) if found.start() < at), default=0)
            case _:
                return self._found(key, text, at)

    def _finds_forward(self, key: str) -> bool:
        return (self._find[0] in "ft") == (key != ",")

    def _is_beside(self, key: str, text: str, at: int) -> bool:
        """Whether t has nowhere to go because its character is the next one."""
        return key == "t" and text[at + 1 : at + 2] == self._find[1]

    def _found(self, key: str, text: str, at: int) -> int:
        """Return where the character is that was looked for on this line, or beside it."""
        kind, character = self._find
        if not kind:
            return at
        beside = kind in "tT"
        # Again, it is the next one that is meant.
        skipped = beside and key in ";,"
        if self._finds_forward(key):
            found = text.find(character, at + 1 + skipped, _end(text, at))
            return at if found < 0 else found - beside
        found = text.rfind(character, _start(text, at), max(0, at - skipped))
        return at if found < 0 else found + beside

    def _end_of_words(self, key: str, text: str, at: int, to: int) -> int:
        """Return how far an operator goes with w: not over the end of a line; changing stops at the end of the word."""
        if self._operator == "c" and at < len(text) and not text[at].isspace():
            kind, end = "big" if key == "W" else "", at - 1
            for _ in range(self._number):
                end = next((found.end() - 1 for found in _WORDS[kind].finditer(text) if found.end() - 1 > end), end)
            return end + 1
        last = text.rfind("\n", at, to)
        return last if last > at and not text[last:to].strip() else to

    # -- changing ---------------------------------------------------------------------------------------------

    def _lines(self, text: str, at: int) -> Span:
        start, end = _start(text, at), _end(text, at)
        for _ in range(self._number - 1):
            end = _end(text, min(end + 1, len(text)))
        return Span(start, min(end + 1, len(text)), lines=True)

    def _visual(self, text: str, at: int) -> Span:
        start, end = min(self._anchor, at), max(self._anchor, at)
        if self.mode is Mode.LINES:
            return Span(_start(text, start), min(_end(text, end) + 1, len(text)), lines=True)
        return Span(start, min(end + 1, len(text)))

    def _operate(self, span: Span, text: str, at: int) -> Step:
        taken = text[span.start : span.end]
        self._register = f"{taken.rstrip(chr(10))}\n" if span.lines else taken
        self._register_lines = span.lines
        match self._operator:
            case "y":
                first = at if span.start >= _start(text, at) else _first(text, span.start)
                return self._done(Step(text, clamped(text, first if span.lines else span.start)))
            case "c":
                end = span.end - 1 if span.lines and taken.endswith("\n") else span.end
                return self._insert(Step(text[: span.start] + text[end:], span.start))
            case _:
                start = span.start
                if span.lines and span.end == len(text) and not taken.endswith("\n") and start:
                    start -= 1  # the line feed before the last line goes with it
                rest = text[:start] + text[span.end :]
                to = _first(rest, min(start, len(rest))) if span.lines else start
                return self._done(Step(rest, clamped(rest, to)), change=True)

    def _put(self, text: str, at: int, *, after: bool) -> Step:
        what = self._register * self._number
        if not what:
            return Step(text, at)
        if not self._register_lines:
            to = min(at + 1, _end(text, at)) if after else at
            put = text[:to] + what + text[to:]
            return Step(put, clamped(put, to + len(what) - 1))
        if not after:
            start = _start(text, at)
            put = text[:start] + what + text[start:]
            return Step(put, clamped(put, _first(put, start)))
        end = _end(text, at)
        put = f"{text[:end]}\n{what.removesuffix(chr(10))}{text[end:]}"
        return Step(put, clamped(put, _first(put, end + 1)))

    def _insert(self, step: Step) -> Step:
        self.mode = Mode.INSERT
        self._inserting = (list(self._keys), step.text, step.at)
        self._forget()
        return step

    def _leave_insert(self, text: str, at: int) -> Step:
        self.mode = Mode.NORMAL
        keys, before, begun = self._inserting
        if keys:
            more = len(text) - len(before)
            fits = more >= 0 and text.startswith(before[:begun]) and text.endswith(before[begun:])
            self._last = keys, text[begun : begun + more] if fits else ""
        return Step(text, max(_start(text, at), at - 1))

    def _again(self, text: str, at: int) -> Step:
        """Do the last change once more."""
        self._forget()
        (keys, inserted), step = self._last, Step(text, at)
        for key in keys:
            self._keys.append(key)
            step = self._do(key, step.text, step.at)
        if self.mode is Mode.INSERT:
            text = step.text[: step.at] + inserted + step.text[step.at :]
            self.mode = Mode.NORMAL
            step = Step(text, max(_start(text, step.at + len(inserted)), step.at + len(inserted) - 1))
        self._last = keys, inserted
        return step

    def _done(self, step: Step, *, change: bool = False) -> Step:
        if change:
            self._last = list(self._keys), ""
        self._forget()
        return step

    def _forget(self) -> None:
        self._count = self._operator = self._prefix = ""
        self._keys.clear()


def _word_around(text: str, at: int, kind: str, *, outer: bool) -> Span:
    """Return the word at a position, or the blanks between two; ``outer`` takes the blanks after it along."""
    found = next((found for found in _WORDS[kind].finditer(text) if found.start() <= at < found.end()), None)
    if found is None:
        start, end = _start(text, at), _end(text, at)
        before = len(text[start:at].rstrip()) + start
        after = end - len(text[at:end].lstrip())
        word = _WORDS[kind].match(text, after) if outer else None
        return Span(before, word.end() if word is not None else after)
    start, end = found.span()
    line = text[end : _end(text, end)]
    blanks = len(line) - len(line.lstrip())
    if outer and not blanks:
        ahead = text[_start(text, start) : start]
        start -= len(ahead) - len(ahead.rstrip())
    return Span(start, end + blanks if outer else end)
