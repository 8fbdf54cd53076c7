"""Parses the terminal's input into messages: keys, pastes, mouse, focus, the background's colour.

Other control sequences (ECMA-48: CSI, OSC, DCS, SOS, PM, APC), such as a terminal's answers, are
dropped, even if they arrive in several pieces. Textual's own parser would type unknown sequences
into the focused widget.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from time import monotonic
from typing import Final

from textual import events
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._keyboard_protocol import FUNCTIONAL_KEYS
from textual._xterm_parser import (
    FOCUSIN,
    FOCUSOUT,
    XTermParser,
    _re_cursor_position,
    _re_extended_key,
    _re_in_band_window_resize,
    _re_mouse_event,
    _re_terminal_mode_response,
)
from textual.constants import ESCAPE_DELAY
from textual.keys import _character_to_key
from textual.message import Message

from tui_agent.lazy import LazyPattern, dataclass
from tui_agent.whole_numbers import whole_number

PIECE_SECONDS: Final = 0.25
"""Seconds to wait for the rest of an escape sequence if the user may have typed its beginning as
separate keys."""
ANSWER_SECONDS: Final = 2.0
"""Seconds to wait for the rest of an escape sequence that the user can't have typed. After that,
the sequence is dropped."""
SLOW_PASTE_SECONDS: Final = 0.3
"""Seconds after which a paste that is still arriving is reported, and between further reports."""

_PASTE_END: Final = "\x1b[201~"
_STRING: Final = r"(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])"
_INSIDE: Final = r"[^\x03\x07\x1b\x9c\x18\x1a]*"
"""Matches the content of a string sequence. Ctrl+C ends the content, so that the user can interrupt
an answer of the terminal that doesn't end."""
_ONE_BYTE_STRINGS: Final = "\x90\x98\x9e\x9f"
"""Single characters that begin a string sequence. If one is a stray byte, no end follows, so more
input does not extend the wait for the end."""
_BEGIN: Final = LazyPattern(r"[\x1b\x90\x98\x9b\x9d-\x9f]")
_WHOLE: Final = LazyPattern(
    r"(?P<paste>\x1b\[200~)"
    r"|\x1b(?P<meta>\x1b\[[ABCD])"  # Alt with an arrow, as older terminals encode it
    r"|(?P<csi>\x1b\[M(?s:...)|\x1b\[\[[A-E]|(?:\x1b\[|\x9b)(?!M|\[)[0-?]*[ -/]*[@-~])"
    r"|(?P<ss3>\x1bO[ -~])"
    rf"|(?P<string>{_STRING}{_INSIDE}(?:\x07|\x1b\\|\x9c))"
)
_PIECE: Final = LazyPattern(
    r"(?:\x1b(?:\x1b?\[?|\[M(?s:.){0,2}|\[\[|O)|(?:\x1b\[|\x9b)[0-?]*[ -/]*"
    rf"|(?:\x1b\]|\x9d)(?:[0-9]+(?:;{_INSIDE})?|[lLI]{_INSIDE})?\x1b?|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f]){_INSIDE}\x1b?)\Z"
)
_BROKEN: Final = LazyPattern(
    rf"(?:\x1b\[|\x9b)[0-?]+[ -/]*|(?:\x1b\]|\x9d)[0-9]+;{_INSIDE}|[\x90-\x9f]{_INSIDE}"
)
"""Matches an incomplete escape sequence that the user can't have typed, and that is cut off by
other characters."""
_UNMISTAKABLE: Final = LazyPattern(
    r"(?:\x1b\[|\x9b)[0-?]|(?:\x1b\]|\x9d)[0-9]+;|(?:\x1bP|\x90)[0-9;]*[>!$+]|(?:\x1b_|\x9f)G|[\x90-\x9f]"
)
"""Matches the beginning of an escape sequence that the user can't have typed."""
_OTHER_KEY: Final = LazyPattern(r"\x1b\[27;([0-9]+);([0-9]+)~|\x1b\[([0-9]+);([0-9]+)u")
"""Matches a key pressed with modifiers, as encoded by tmux and by xterm's modifyOtherKeys."""
_SHIFT_F3: Final = "\x1b[1;2R"
"""The sequence that xterm and tmux send for Shift with the third function key. A terminal reports a
cursor at row 1, column 2 with the same sequence, but the program never asks for such a report."""
_BACKGROUND: Final = LazyPattern(
    r"(?:\x1b\]|\x9d)11;rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})[^\x07\x1b]{0,8}(?:\x07|\x1b\\|\x9c)"
)
_LAST_CHARACTER: Final = 0x10FFFF
_ARROWS: Final = {"A": "up", "B": "down", "C": "right", "D": "left"}


@dataclass
class BackgroundKnown(Message):
    """Posted when the terminal has reported its background colour.

    ``light`` is True if the brightness of the colour is above 50 %.
    """

    light: bool


@dataclass
class PasteComing(Message):
    """A paste is still arriving; ``characters`` is the number received so far."""

    characters: int


class InputParser(XTermParser):
    """Textual's input parser, restricted to the escape sequences that Textual knows.

    Terminals send the same bytes for Escape followed by a letter and for Alt+letter. This parser
    yields Alt+letter, and `KeyOrder` may replace it with Escape and the letter.
    """

    def __init__(self, debug: bool = False, clock: Callable[[], float] = monotonic) -> None:  # noqa: FBT001, FBT002 - as inherited
        super().__init__(debug)
        self._clock = clock
        self._piece = ""
        self._piece_since = 0.0
        self._pasted: list[str] | None = None
        self._paste_reported = 0.0

    def feed(self, data: str) -> Iterable[Message]:
        """Yield the messages for some input. If it ends with an incomplete sequence, keep that.

        The next call, or `tick`, handles the incomplete sequence.
        """
        if not data:
            yield from super().feed(data)
            return
        continues = bool(self._piece)
        data = self._piece + data
        self._piece = ""
        at = 0
        while at < len(data):
            if self._pasted is not None:
                at = yield from self._paste(data, at)
                continue
            begin = _BEGIN.search(data, at)
            if begin is None:
                end = len(data)
            else:
                end = begin.start()
            if at < end:
                yield from super().feed(data[at:end])
            if begin is None:
                return
            at = yield from self._sequence(data, end, continues=continues)

    def tick(self) -> Iterable[Message]:
        """Handle an incomplete sequence whose time limit has passed, because its rest won't come.

        Yields the sequence's characters as keys, or drops the sequence if it can't have been typed.
        Also does what Textual's own `tick` does.
        """
        if (
            self._piece
            and self._pasted is None
            and self._clock() >= self._piece_since + self._patience()
        ):
            piece = self._piece
            self._piece = ""
            if not _UNMISTAKABLE.match(piece):
                yield from self._typed(piece)
        yield from super().tick()

    def _patience(self) -> float:
        """Return how many seconds to wait for the rest of the incomplete sequence."""
        if _UNMISTAKABLE.match(self._piece):
            return ANSWER_SECONDS
        # The piece is a single Escape, or Alt with a character that can also begin a sequence.
        return ESCAPE_DELAY if len(self._piece) <= 2 else PIECE_SECONDS

    def _typed(self, piece: str) -> Iterator[Message]:
        """Yield keys for an incomplete sequence, as if each of its characters had been typed."""
        if piece == "\x1b":
            yield events.Key("escape", "\x1b")
            return
        if piece.startswith("\x1b\x1b"):
            yield events.Key("escape", "\x1b")
            yield from self._typed(piece[1:])
            return
        yield _alt(piece[1])
        if len(piece) > 2:
            yield from self.feed(piece[2:])

    # -- sequences

    def _sequence(self, data: str, at: int, *, continues: bool) -> Generator[Message, None, int]:
        """Yield the messages of the sequence at ``at``, and return the index after it.

        If the sequence is incomplete, keeps it and returns the length of the data. ``continues``
        tells whether the data begins with a piece that was kept before.
        """
        found = _WHOLE.match(data, at)
        if found is not None:
            yield from self._whole(found.lastgroup or "", found[found.lastgroup or 0])
            return found.end()
        if _PIECE.match(data, at):
            self._piece = data[at:]
            if at > 0 or not continues or self._piece[0] not in _ONE_BYTE_STRINGS:
                self._piece_since = self._clock()
            return len(data)
        if broken := _BROKEN.match(data, at):
            return broken.end()
        if data[at + 1] == "\x1b":
            yield events.Key("escape", "\x1b")
            return at + 1
        yield from self._with_alt(data[at + 1])
        return at + 2

    def _with_alt(self, letter: str) -> Iterator[Message]:
        if letter.isprintable():
            yield _alt(letter)
        elif letter == "\r":
            yield events.Key("alt+enter", None)
        elif (written := f"\x1b{letter}") in ANSI_SEQUENCES_KEYS:
            yield from super().feed(written)
        else:
            # A control character after Escape. A slow connection may deliver the two keys at once.
            yield events.Key("escape", "\x1b")
            yield from super().feed(letter)

    def _whole(self, kind: str, written: str) -> Iterator[Message]:
        """Yield the messages for a complete sequence; most answers from the terminal yield none.

        ``kind`` is the group of `_WHOLE` that matched, and ``written`` is the sequence.
        """
        match kind:
            case "paste":
                self._pasted = []
                self._paste_reported = self._clock()
            case "meta":
                yield events.Key(f"alt+{_ARROWS[written[-1]]}", None)
            case "csi":
                yield from self._control(written.replace("\x9b", "\x1b["))
            case "ss3" if written in ANSI_SEQUENCES_KEYS:
                yield from super().feed(written)
            case "ss3":
                yield _alt("O")
                yield from super().feed(written[2:])
            case _:
                if found := _BACKGROUND.fullmatch(written):
                    red, green, blue = map(_share_of_colour, found.groups())
                    yield BackgroundKnown(0.299 * red + 0.587 * green + 0.114 * blue > 0.5)

    def _control(self, written: str) -> Iterator[Message]:
        if written == _SHIFT_F3:
            yield events.Key("shift+f3", None)
            return
        if found := _OTHER_KEY.fullmatch(written):
            modifiers = found[1] or found[4]
            code = found[2] or found[3]
            character = _character_of(code)
            if modifiers in {"1", "2"} and character is not None and character.isprintable():
                # If the modifier is Shift, the code stands for the shifted character already.
                yield from super().feed(character)
                return
            written = f"\x1b[{code};{modifiers}u"
        if self._is_known(written):
            yield from super().feed(written)

    def _is_known(self, written: str) -> bool:
        """Return True if Textual understands a sequence.

        Textual knows those of keys, the mouse and focus, and the answers to its own queries.
        """
        if written in {FOCUSIN, FOCUSOUT} or written in ANSI_SEQUENCES_KEYS:
            return True
        forms = (
            _re_mouse_event,
            _re_in_band_window_resize,
            _re_terminal_mode_response,
            _re_cursor_position,
        )
        if any(form.fullmatch(written) for form in forms):
            return True
        return _is_key(written) and self._parse_extended_key(written) is not None

    # -- pastes

    def _paste(self, data: str, at: int) -> Generator[Message, None, int]:
        """Collect the part of a paste that begins at ``at``; return the index after that part.

        Yields the whole paste at its end, and `PasteComing` while a long one arrives.
        """
        assert self._pasted is not None  # noqa: S101 - callers check it
        end = data.find(_PASTE_END, at)
        if end >= 0:
            self._pasted.append(data[at:end])
            text = "".join(self._pasted)
            self._pasted = None
            yield events.Paste(text.replace("\0", ""))
            return end + len(_PASTE_END)
        # The end of the data may be the beginning of the marker that ends the paste.
        tail = 0
        for size in range(len(_PASTE_END) - 1, 0, -1):
            if data.endswith(_PASTE_END[:size]):
                tail = size
                break
        tail = min(tail, len(data) - at)
        self._pasted.append(data[at : len(data) - tail])
        self._piece = data[len(data) - tail :]
        self._piece_since = self._clock()
        if self._clock() >= self._paste_reported + SLOW_PASTE_SECONDS:
            self._paste_reported = self._clock()
            yield PasteComing(sum(map(len, self._pasted)))
        return len(data)


def _share_of_colour(digits: str) -> float:
    """Return the intensity of a colour component, 0 to 1, that hexadecimal digits stand for."""
    return int(digits, 16) / int("f" * len(digits), 16)


def _alt(letter: str) -> events.Key:
    if letter.isalnum():
        name = letter
    else:
        name = _character_to_key(letter)
    return events.Key(f"alt+shift+{name.lower()}" if letter.isupper() else f"alt+{name}", letter)


def _is_key(written: str) -> bool:
    """Return True if a sequence of the kitty keyboard protocol has valid codes for key and text."""
    found = _re_extended_key.fullmatch(written)
    if found is None:
        return False
    code, modifiers, text = (*found[1].split(";"), "", "")[:3]
    if whole_number(modifiers or "1") is None or whole_number(code or "1") is None:
        return False
    if found[2] != "u":
        return f"{code or 1}{found[2]}" in FUNCTIONAL_KEYS
    letters = [part for part in (code, *text.split(":")) if part]
    named = all(_character_of(part) is not None for part in letters)
    return named and (whole_number(code or "1") != 0 or bool(text))


def _character_of(code: str) -> str | None:
    """Return the character whose code is given as a decimal number; None if there is none."""
    number = whole_number(code)
    if number is None or number > _LAST_CHARACTER:
        return None
    return chr(number)
