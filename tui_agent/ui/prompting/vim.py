"""Computes what vi's keys do to the prompt's text and cursor, with pure functions.

Positions are offsets in characters. In normal mode the cursor is on a character, never after the
last one of its line.
"""

import re
from enum import StrEnum
from typing import Literal

from tui_agent.lazy import frozen

_WORD = re.compile(r"\w+|[^\w\s]+")
_BIG_WORD = re.compile(r"\S+")

_COUNT_DIGITS = 9
"""Maximum number of digits in the count before a command, such as the 12 in ``12w``. Further digits
are ignored."""
_MOTIONS = frozenset("hl 0^$wWeEbB")
"""Motions whose target depends only on the text and the cursor. A count before such a motion
repeats it."""
_ABBREVIATIONS = {"x": "dl", "X": "dh", "D": "d$", "C": "c$", "s": "cl", "S": "cc", "Y": "yy"}
"""Keys that abbreviate an operator with a motion, and what they stand for."""


class Mode(StrEnum):
    """The modes of vi. Each value is the name of the mode that is shown on the screen."""

    INSERT = "insert"
    NORMAL = "normal"
    VISUAL = "visual"
    LINES = "visual line"


@frozen
class Step:
    """What a vi key does: the prompt's new text, cursor and selection.

    ``selected`` contains the selection's start and end, the end excluded; None if nothing is
    selected. ``wants`` is an action that the prompt itself has to perform, "" for none: undo or
    redo an edit, or show an older or newer message of the history.
    """

    text: str
    at: int
    selected: tuple[int, int] | None = None
    wants: Literal["", "undo", "redo", "older", "newer"] = ""


@frozen
class Span:
    """The range of text that a vi operator acts on, ``end`` excluded.

    ``lines`` tells whether it consists of whole lines, including their line feeds.
    """

    start: int
    end: int
    lines: bool = False


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _line_end(text: str, at: int) -> int:
    found = text.find("\n", at)
    if found >= 0:
        return found
    return len(text)


def _first_nonblank(text: str, at: int) -> int:
    """Return the offset of the first character that isn't blank in the line containing ``at``."""
    start = _line_start(text, at)
    end = _line_end(text, at)
    return start + len(text[start:end]) - len(text[start:end].lstrip())


def clamped(text: str, at: int) -> int:
    """Return the position nearest to ``at`` where the cursor can be in normal mode."""
    at = max(0, min(at, len(text)))
    return max(_line_start(text, at), min(at, _line_end(text, at) - 1))


def _next_word(word: re.Pattern[str], text: str, at: int) -> int:
    for found in word.finditer(text):
        if found.start() > at:
            return found.start()
    return len(text)


def _end_of_word(word: re.Pattern[str], text: str, at: int) -> int:
    for found in word.finditer(text):
        if found.end() - 1 > at:
            return found.end() - 1
    return at


def _word_before(word: re.Pattern[str], text: str, at: int) -> int:
    return max((found.start() for found in word.finditer(text) if found.start() < at), default=0)


def _target(key: str, text: str, at: int) -> int:  # noqa: PLR0911 - one arm for each motion
    """Return the position to which the motion of a vi key moves from ``at``."""
    word = _BIG_WORD if key.isupper() else _WORD
    match key:
        case "h":
            return max(at - 1, _line_start(text, at))
        case "l" | " ":
            return min(at + 1, _line_end(text, at))
        case "0":
            return _line_start(text, at)
        case "^":
            return _first_nonblank(text, at)
        case "$":
            return max(_line_start(text, at), _line_end(text, at) - 1)
        case "w" | "W":
            return _next_word(word, text, at)
        case "e" | "E":
            return _end_of_word(word, text, at)
        case _:
            return _word_before(word, text, at)


def _insert_position(key: str, text: str, at: int) -> int:
    """Return the position at which the vi command ``i``, ``a``, ``I`` or ``A`` starts inserting."""
    match key:
        case "a":
            return min(at + 1, _line_end(text, at))
        case "I":
            return _first_nonblank(text, at)
        case "A":
            return _line_end(text, at)
        case _:
            return at


class Vim:
    """Interprets vi keys for one prompt. It keeps the mode, pending keys, register and last change.

    Every key has to be passed to ``press``.
    """

    def __init__(self) -> None:
        self.mode = Mode.INSERT
        self._text = ""
        self._at = 0
        self._wants: Literal["", "undo", "redo", "older", "newer"] = ""
        self._anchor = 0
        self._count = self._operator = self._prefix = ""
        self._register = ""
        self._register_lines = False
        self._find = ("", "")
        self._keys: list[str] = []
        self._last_change: tuple[list[str], str] = ([], "")
        self._inserting: tuple[list[str], str, int] = ([], "", 0)

    @property
    def pending(self) -> str:
        return "".join(self._keys)

    def reset(self) -> None:
        """Switch to insert mode and drop pending keys, after the prompt's text was replaced."""
        self._drop_pending()
        self.mode = Mode.INSERT
        self._inserting = ([], "", 0)

    def press(self, key: str, text: str, at: int) -> Step | None:
        """Return what a key does to ``text`` with the cursor at ``at``.

        ``key`` is a character or Textual's name of the key. Returns None if the prompt has to
        handle the key. These are, in insert mode, all keys but escape; in the other modes, named
        keys that vi does not use; and in normal mode, escape without pending keys.
        """
        if self.mode is Mode.INSERT:
            if key == "escape":
                return self._leave_insert(text, at)
            return None
        if key == "escape":
            was_idle = self.mode is Mode.NORMAL and not self._keys
            self.mode = Mode.NORMAL
            self._drop_pending()
            if was_idle:
                return None
            return Step(text, clamped(text, at))
        if len(key) > 1 and key not in {"ctrl+r", "space", "backspace"}:
            return None
        self._text = text
        self._at = at
        self._wants = ""
        self._do({"space": " ", "backspace": "h"}.get(key, key), is_typed=True)
        span = None
        if self.mode in {Mode.VISUAL, Mode.LINES}:
            span = self._selection()
        return Step(
            self._text, self._at, None if span is None else (span.start, span.end), self._wants
        )

    # -- keys

    def _do(self, key: str, *, is_typed: bool = False) -> None:
        if is_typed:
            self._keys.append(key)
        is_visual = self.mode is not Mode.NORMAL
        if self._prefix:
            prefix = self._prefix
            self._prefix = ""
            self._after_prefix(prefix, key)
        elif key.isdecimal() and (key != "0" or self._count):
            self._count = (self._count + key)[:_COUNT_DIGITS]
        elif (
            key in "fFtTg"
            or (key in "ia" and (self._operator or is_visual))
            or (key == "r" and not self._operator)
        ):
            self._prefix = key
        elif self._operator and key == self._operator:
            self._operate(self._line_span())
        elif key in _MOTIONS or key in "jkG;,":
            self._move(key)
        elif self._operator:
            self._drop_pending()
        elif is_visual:
            self._in_visual(key)
        else:
            self._in_normal(key)

    def _after_prefix(self, prefix: str, key: str) -> None:
        text = self._text
        at = self._at
        match prefix:
            case "g" if key == "g":
                self._move("gg")
            case "r" if len(key) == 1 and (end := at + self._number) <= _line_end(text, at):
                self._change(text[:at] + key * (end - at) + text[end:], end - 1)
            case "f" | "F" | "t" | "T":
                self._find = prefix, key
                self._move(prefix)
            case "i" | "a" if key in "wW":
                span = _word_around(
                    text, at, _BIG_WORD if key == "W" else _WORD, outer=prefix == "a"
                )
                if self._operator:
                    self._operate(span)
                else:
                    self._anchor = span.start
                    self._at = max(span.start, span.end - 1)
                    self._drop_pending()
            case _:
                self._drop_pending()

    def _in_normal(self, key: str) -> None:  # noqa: C901, PLR0912 - one arm for each command
        text = self._text
        at = self._at
        start = _line_start(text, at)
        end = _line_end(text, at)
        match key:
            case "d" | "c" | "y":
                self._operator = key
            case "i" | "a" | "I" | "A":
                self._insert(text, _insert_position(key, text, at))
            case "o":
                self._insert(f"{text[:end]}\n{text[end:]}", end + 1)
            case "O":
                self._insert(f"{text[:start]}\n{text[start:]}", start)
            case "p" | "P":
                self._put(after=key == "p")
            case "v" | "V":
                self.mode = Mode.VISUAL if key == "v" else Mode.LINES
                self._anchor = at
                self._drop_pending()
            case "u" | "ctrl+r":
                self._wants = "undo" if key == "u" else "redo"
                self._drop_pending()
            case ".":
                self._repeat_change()
            case "~":
                to = min(at + self._number, end)
                self._change(text[:at] + text[at:to].swapcase() + text[to:], to)
            case "J" if end < len(text):
                rest = text[end + 1 :].lstrip(" \t")
                space = "" if not rest or rest.startswith("\n") else " "
                self._change(f"{text[:end]}{space}{rest}", end)
            case _ if key in _ABBREVIATIONS:
                for part in _ABBREVIATIONS[key]:
                    self._do(part)
            case _:
                self._drop_pending()

    def _in_visual(self, key: str) -> None:
        span = self._selection()
        text = self._text
        match key:
            case "d" | "x" | "c" | "s" | "y":
                self.mode = Mode.NORMAL
                self._operator = {"x": "d", "s": "c"}.get(key, key)
                self._operate(span)
            case "v" | "V":
                other = Mode.VISUAL if key == "v" else Mode.LINES
                if self.mode is other:
                    self.mode = Mode.NORMAL
                else:
                    self.mode = other
                self._drop_pending()
            case "o":
                anchor = self._anchor
                self._anchor = self._at
                self._at = anchor
                self._drop_pending()
            case "p" | "~":
                self.mode = Mode.NORMAL
                to = span.start
                if key == "p":
                    put = self._register
                    to += len(put) - 1
                else:
                    put = text[span.start : span.end].swapcase()
                self._change(text[: span.start] + put + text[span.end :], to)
            case _:
                self._drop_pending()

    # -- moving

    @property
    def _number(self) -> int:
        return min(int(self._count or 1), 10_000)

    def _move(self, key: str) -> None:
        """Move the cursor by a motion, or apply the pending operator to the text in between."""
        if key in {"j", "k", "G", "gg"}:
            self._move_lines(key)
            return
        text = self._text
        at = self._at
        to = at
        for _ in range(self._number):
            if key in _MOTIONS:
                to = _target(key, text, to)
            else:
                to = self._find_target(key, text, to)
        if not self._operator:
            if self.mode is not Mode.NORMAL:
                self._at = to
            else:
                self._at = clamped(text, to)
            self._drop_pending()
            return
        if key in "wW":
            to = self._end_of_words(key, to)
        inclusive = key in "e$Eft" or (key in ";," and self._finds_forward(key))
        # If a t search looks for the character right after the cursor, the cursor doesn't move, and
        # an operator acts on the character under the cursor.
        is_beside = key == "t" and text[at + 1 : at + 2] == self._find[1]
        if key in "fFtT;," and to == at and not is_beside:
            self._drop_pending()
            return
        start = min(at, to)
        end = max(at, to) + inclusive
        if key in "hl ":
            start = max(start, _line_start(text, at))
            end = min(end, _line_end(text, at))
        self._operate(Span(start, min(end, len(text))))

    def _move_lines(self, key: str) -> None:
        text = self._text
        at = self._at
        lines = text.split("\n")
        row = text.count("\n", 0, at)
        if self._count:
            number = int(self._count) - 1
        elif key == "gg":
            number = 0
        else:
            number = len(lines) - 1
        to = {"j": row + self._number, "k": row - self._number}.get(key, number)
        if key in "jk" and not 0 <= to < len(lines) and self.mode is Mode.NORMAL:
            # Moving up from the first line or down from the last one shows the history, unless
            # there is an operator; then nothing happens.
            if self._operator:
                self._wants = ""
            elif key == "j":
                self._wants = "newer"
            else:
                self._wants = "older"
            self._drop_pending()
            return
        to = max(0, min(to, len(lines) - 1))
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line) + 1)
        if self._operator:
            self._operate(
                Span(starts[min(row, to)], min(starts[max(row, to) + 1], len(text)), lines=True)
            )
            return
        column = min(at - _line_start(text, at), len(lines[to]))
        self._at = clamped(
            text, starts[to] + column if key in "jk" else _first_nonblank(text, starts[to])
        )
        self._drop_pending()

    def _finds_forward(self, key: str) -> bool:
        return (self._find[0] in "ft") == (key != ",")

    def _find_target(self, key: str, text: str, at: int) -> int:
        """Return the position to which the vi command f, F, t, T, ; or , moves from ``at``.

        The position is on the same line. The keys ; and , repeat the last search. A search with f
        or F ends on the character; one with t or T ends beside it. Returns ``at`` if the character
        is not found.
        """
        kind, character = self._find
        if not kind:
            return at
        beside = kind in "tT"
        # When ; or , repeats a search with t or T, skip one character; otherwise, the search would
        # find the same one again.
        skipped = beside and key in ";,"
        if self._finds_forward(key):
            found = text.find(character, at + 1 + skipped, _line_end(text, at))
            if found < 0:
                return at
            return found - beside
        found = text.rfind(character, _line_start(text, at), max(0, at - skipped))
        if found < 0:
            return at
        return found + beside

    def _end_of_words(self, key: str, to: int) -> int:
        """Return the end of the range on which an operator with the motion w or W acts.

        ``to`` is the position to which the motion moves. With the operator c and the cursor on a
        word, the range ends at the end of the word. Otherwise, it does not include a line break
        before the next word.
        """
        text = self._text
        at = self._at
        if self._operator == "c" and at < len(text) and not text[at].isspace():
            end = at - 1
            for _ in range(self._number):
                end = _end_of_word(_BIG_WORD if key == "W" else _WORD, text, end)
            return end + 1
        last = text.rfind("\n", at, to)
        if last > at and not text[last:to].strip():
            return last
        return to

    # -- changing

    def _line_span(self) -> Span:
        start = _line_start(self._text, self._at)
        end = _line_end(self._text, self._at)
        for _ in range(self._number - 1):
            end = _line_end(self._text, min(end + 1, len(self._text)))
        return Span(start, min(end + 1, len(self._text)), lines=True)

    def _selection(self) -> Span:
        start = min(self._anchor, self._at)
        end = max(self._anchor, self._at)
        if self.mode is Mode.LINES:
            start = _line_start(self._text, start)
            end = _line_end(self._text, end)
        return Span(start, min(end + 1, len(self._text)), lines=self.mode is Mode.LINES)

    def _operate(self, span: Span) -> None:
        text = self._text
        at = self._at
        taken = text[span.start : span.end]
        if span.lines:
            self._register = f"{taken.rstrip(chr(10))}\n"
        else:
            self._register = taken
        self._register_lines = span.lines
        match self._operator:
            case "y":
                if span.start >= _line_start(text, at):
                    first = at
                else:
                    first = _first_nonblank(text, span.start)
                self._at = clamped(text, first if span.lines else span.start)
                self._drop_pending()
            case "c":
                if span.lines and taken.endswith("\n"):
                    end = span.end - 1
                else:
                    end = span.end
                self._insert(text[: span.start] + text[end:], span.start)
            case _:
                start = span.start
                if span.lines and span.end == len(text) and not taken.endswith("\n") and start:
                    start -= 1  # the last line has no line feed: remove the one before it
                rest = text[:start] + text[span.end :]
                self._change(
                    rest, _first_nonblank(rest, min(start, len(rest))) if span.lines else start
                )

    def _put(self, *, after: bool) -> None:
        text = self._text
        at = self._at
        register = self._register * self._number
        if not self._register_lines:
            to = at
            if after:
                to = min(at + 1, _line_end(text, at))
            self._change(
                text[:to] + register + text[to:], to + len(register) - 1 if register else at
            )
        elif after:
            end = _line_end(text, at)
            put = f"{text[:end]}\n{register.removesuffix(chr(10))}{text[end:]}"
            self._change(put, _first_nonblank(put, end + 1))
        else:
            start = _line_start(text, at)
            put = text[:start] + register + text[start:]
            self._change(put, _first_nonblank(put, start))

    def _change(self, text: str, at: int) -> None:
        self._text = text
        self._at = clamped(text, at)
        self._last_change = (list(self._keys), "")
        self._drop_pending()

    def _insert(self, text: str, at: int) -> None:
        self.mode = Mode.INSERT
        self._text = text
        self._at = at
        self._inserting = (list(self._keys), text, at)
        self._drop_pending()

    def _leave_insert(self, text: str, at: int) -> Step:
        self.mode = Mode.NORMAL
        keys, before, begin = self._inserting
        if keys:
            more = len(text) - len(before)
            fits = more >= 0 and text.startswith(before[:begin]) and text.endswith(before[begin:])
            self._last_change = keys, text[begin : begin + more] if fits else ""
        return Step(text, max(_line_start(text, at), at - 1))

    def _repeat_change(self) -> None:
        self._drop_pending()
        keys, inserted = self._last_change
        for key in keys:
            self._do(key, is_typed=True)
        if self.mode is Mode.INSERT:
            text = self._text
            end = self._at + len(inserted)
            self._text = text[: self._at] + inserted + text[self._at :]
            self.mode = Mode.NORMAL
            self._at = max(_line_start(self._text, end), end - 1)
        self._last_change = keys, inserted

    def _drop_pending(self) -> None:
        self._count = self._operator = self._prefix = ""
        self._keys.clear()


def _word_around(text: str, at: int, word: re.Pattern[str], *, outer: bool) -> Span:
    """Return the range of the word at a position, or of the blanks if there is no word there.

    With ``outer``, a word's range includes the blanks after it, or those before it if none follow;
    the range of blanks includes the word after them.
    """
    found = next(
        (found for found in word.finditer(text) if found.start() <= at < found.end()), None
    )
    if found is None:
        start = _line_start(text, at)
        end = _line_end(text, at)
        before = len(text[start:at].rstrip()) + start
        after = end - len(text[at:end].lstrip())
        following = None
        if outer:
            following = word.match(text, after)
        return Span(before, following.end() if following is not None else after)
    start, end = found.span()
    line = text[end : _line_end(text, end)]
    blanks = len(line) - len(line.lstrip())
    if outer and not blanks:
        ahead = text[_line_start(text, start) : start]
        start -= len(ahead) - len(ahead.rstrip())
    return Span(start, end + blanks if outer else end)
