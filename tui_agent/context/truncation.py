"""Truncation: shortens a tool output to its limits when it is recorded.

Truncation is the first defence against a full context window. No text is lost, because the caller
(``tools.outputs``) stores the whole output and passes a hint that says how to get it. `cut_middle`
is also used for texts cut by a prune and for placeholders. Counts are exact; lines are numbered as
in the whole output, and bytes are UTF-8 bytes.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import Literal

from tui_agent.context.settings import TruncationSettings
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.session.entries import Truncation

# Patterns of lines that look like errors, and of those that are certainly errors.

_WORDS = (
    "error",
    "exception",
    "traceback",
    "fatal",
    "panic",
    "fail",
    "assert",
    "segmentation fault",
    "undefined",
    "unresolved",
    "not found",
    "no such",
    "denied",
    "refused",
    "cannot",
    "unable to",
    "abort",
    "timed out",
    "core dumped",
    "out of memory",
    "killed",
    "conflict",
    "err!",
    "not ok",
    "caused by",
    "not used",
    "redeclared",
    "missing return",
    "✕",
    "✗",
    "✘",
)
"""Every line that ``_ERROR`` matches contains at least one of these words. Searching for them first
is far faster on a huge log than the pattern alone."""

_ERROR = LazyPattern(
    r"error|exception\b|traceback|\bfatal\b|\bpanic|\bfail(?:ed|ing|ure|ures|s)?\b|assert(?:ion)?\b|segmentation fault"
    r"|\bundefined\b|\bunresolved\b|\bnot found\b|\bno such\b|\bdenied\b|\brefused\b|\bcannot\b|\bunable to\b"
    r"|\babort(?:ed|ing)?\b|\btimed out\b|core dumped|out of memory|\bkilled\b|\bconflict\b|\berr!|\bnot ok\b"
    r"|\bcaused by\b|\b(?:and|is) not used\b|\bredeclared\b|\bmissing return\b|[✕✗✘]",
    re.IGNORECASE,
)
_NO_ERROR = LazyPattern(
    r"\b(?:0|no|without) (?:errors?|fail\w*|exceptions?)\b|\b(?:errors?|fail\w*)[:=] ?0\b",
    re.IGNORECASE,
)
_FINE = LazyPattern(r"\bPASS(?:ED)?\b|^\s*(?:test .* \.\.\. )?ok\b|[✓✔√]")
"""Matches lines about passed tests. They are no errors, though test names often contain error
words."""

_CLEAR = LazyPattern(
    r"(?i:(?:error|exception|fatal|panic)(?:\[\w+\])?: )|(?i:\berror [A-Z]{1,4}\d+)|^E  +\S|^Traceback|\bFAIL(?:ED)?\b"
    r"|\bpanicked at\b|^\s*not ok\b|\b(?:ERR!|Caused by:)|\[ERROR\]|undefined reference|\*\*\* \[|[✕✗✘]"
    r"|(?i:segmentation fault|core dumped|out of memory|\bkilled\b)"
)
_PLACE = LazyPattern(
    r"^\s*(?:[\w.-]*[/\\])*[\w-][\w.-]*\.\w{1,5}:\d+(?P<column>:\d+)?: (?!\s*(?:warning|note|info|debug)\b)",
    re.IGNORECASE,
)
"""Matches a file and line number before a message, as printed by compilers and test runners."""

_PLACED = LazyPattern(r"\.\w{1,5}:\d+(?::\d+)?: ")
_POINTER = LazyPattern(r"\s*--> \S+:\d+")
"""Matches a line in which the Rust compiler names the file of the error on the line before."""

_MAX_LINE_CHARS = 2_000
"""Maximum number of characters of a line in which errors are searched for."""

_MAX_LINES_JUDGED = 8_000
"""Maximum lines with an error word that are matched against ``_ERROR``. If there are more, the
first and the last are matched."""

_MAX_SIMILAR_LINES = 3
"""How many lines that differ only in their numbers are ranked as usual. Any more of them rank below
all other lines."""

NOTE_BYTES = 200
"""Number of bytes of a cut output that are reserved for the note about what was left out."""

ERROR_SHARE = 0.2
"""Lines from the middle that look like errors may take at most this share of a cut output."""

ERROR_LINE_CHARS = 240
"""Maximum number of characters that are shown of a line that looks like an error."""


def error_looking(lines: Sequence[str]) -> list[int]:
    """Return the indexes of the lines that look like errors, in ascending order."""
    lowered = [line.lower() for line in lines]
    ends = list(accumulate(len(line) + 1 for line in lowered))
    text = "\n".join(lowered)
    found: set[int] = set()
    for word in _WORDS:
        at = text.find(word)
        while at >= 0:
            line = bisect_right(ends, at)
            found.add(line)
            at = text.find(word, ends[line])
    placed = {bisect_right(ends, match.start()) for match in _PLACED.finditer(text)}
    bad: set[int] = set()
    for at in _first_and_last(sorted(found), _MAX_LINES_JUDGED):
        head = _NO_ERROR.sub("", lines[at][:_MAX_LINE_CHARS])
        if _ERROR.search(head) and not _FINE.search(head):
            bad.add(at)
    for at in placed:
        if _PLACE.match(lines[at][:_MAX_LINE_CHARS]):
            bad.add(at)
    return sorted(bad)


def most_informative(lines: Sequence[str], most: int) -> list[int]:
    """Return the indexes of at most ``most`` error-looking lines, the most informative first.

    Certain errors come before lines that only contain an error word; lines that differ from three
    earlier ones only in numbers come last. If a rank has too many lines, only its first and last
    lines are taken. A line with an error's location (``--> src/main.rs:3``) stays with the error
    before it.
    """
    ranks: dict[int, list[int]] = {rank: [] for rank in range(4)}
    seen: Counter[str] = Counter()
    for at in error_looking(lines):
        line = lines[at][:_MAX_LINE_CHARS]
        kind = re.sub(r"\d+", "0", line.strip())
        seen[kind] += 1
        place = _PLACE.match(line)
        clear = _CLEAR.search(line) is not None or (
            place is not None and place["column"] is not None
        )
        ranks[2 * (seen[kind] > _MAX_SIMILAR_LINES) + (not clear)].append(at)
    chosen: list[int] = []
    for found in ranks.values():
        for at in _first_and_last(found, most - len(chosen)):
            chosen.append(at)
            if at + 1 < len(lines) and _POINTER.match(lines[at + 1]):
                chosen.append(at + 1)
    return chosen[:most]


def _first_and_last(found: list[int], most: int) -> list[int]:
    if len(found) <= most:
        return found
    last = most // 4
    if most > 0:
        return [*found[: most - last], *found[len(found) - last :]]
    return []


@frozen
class OutputLimits:
    """The maximum size of an output that is sent to the model."""

    lines: int = 2_000
    bytes: int = 50 * 1024
    line_chars: int = 2_000
    tokens: int = 20_000


@frozen
class Truncated:
    """A text within its limits; ``truncation`` is None if nothing was left out.

    ``next_line`` is the number of the first line left out, to continue reading from; None if no
    line was left out.
    """

    text: str
    truncation: Truncation | None = None
    next_line: int | None = None


def limits_for(window: int, free: int, settings: TruncationSettings) -> OutputLimits:
    """Return the limits of one output.

    ``window`` is the size of the context window and ``free`` the unused part of it, in tokens.
    """
    return OutputLimits(
        settings.lines, settings.bytes, settings.line_chars, settings.tokens(window, free)
    )


def truncate(
    text: str,
    keep: Literal["head", "ends"],
    limits: OutputLimits,
    *,
    hint: str = "",
    first_line: int = 1,
    error_lines: int = 20,
) -> Truncated:
    """Cut a text to its limits, and add a note that says exactly what is missing.

    If ``keep`` is "head", the beginning is kept; this is for reads and listings, which can continue
    at an offset. If it is "ends", the beginning, the end and up to ``error_lines`` error-looking
    lines from between are kept; this is for commands. Lines are kept or left out whole, but
    overlong lines are cut in their middle. ``hint`` says how to get the rest and is added to the
    note; ``{next}`` in the hint becomes ``next_line``. ``first_line`` is the number of the text's
    first line.
    """
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    room = fitting_bytes(text, limits)
    size = utf8_size(text)
    if len(lines) <= limits.lines and size <= room:
        most = limits.line_chars
        if len(text) <= most or all(len(line) <= most for line in lines):
            return Truncated(text)
        shorter: list[str] = []
        kept = 0
        for line in lines:
            shown, left = _cut_inside(line, most)
            shorter.append(shown)
            kept += left + 1
        if text.endswith("\n"):
            shorter.append("")
        else:
            kept -= 1
        truncation = Truncation(
            total_lines=len(lines), total_bytes=size, kept_lines=len(lines), kept_bytes=kept
        )
        return Truncated("\n".join(shorter), truncation)
    cut = _Cut(
        lines=lines,
        first_line=first_line,
        total_bytes=size,
        ends_open=not text.endswith("\n"),
        room=max(room - NOTE_BYTES - utf8_size(hint), room // 2),
        max_lines=max(1, limits.lines - 6),
        line_chars=min(limits.line_chars, max(40, room // 12)),
    )
    if keep == "head":
        return cut.head(hint)
    return cut.ends(hint, error_lines)


def cut_middle(text: str, chars: int, address: str = "") -> str:
    """Cut a text in its middle to ``chars`` characters.

    The result consists of the beginning and the end of the text, with a note between them. A text
    that fits is returned unchanged. The note says how many characters are missing and where the
    whole text is (``address``, such as ``#412``). The address is shown even if there is no room for
    the rest of the note, and even if it makes the result longer than ``chars``.
    """
    if address and len(text) > chars:
        return _cut_inside(text, max(chars, len(address) + 2), f", {address}", f"…{address}")[0]
    return _cut_inside(text, chars)[0]


@frozen
class _Cut:
    """Cuts one output that exceeds its limits; ``room`` is the bytes that its lines may take."""

    lines: Sequence[str]
    first_line: int
    total_bytes: int
    ends_open: bool
    """Whether the last line of the output does not end with a newline."""
    room: int
    max_lines: int
    line_chars: int

    def head(self, hint: str) -> Truncated:
        shown, kept = self._take(self.lines, self.room, self.max_lines)
        if len(shown) == len(self.lines):
            # Lines were only cut in their middle, where a note says so. So there is no line from
            # which to continue.
            kept -= self.ends_open
            return Truncated("\n".join(shown), self._truncation(len(shown), kept))
        last = self.first_line + len(shown) - 1
        note = (
            f"[Lines {self.first_line:,}-{last:,} of {self.first_line + len(self.lines) - 1:,} shown, "
            f"{kept:,} of {self.total_bytes:,} bytes.{_after(hint, last + 1)}]"
        )
        return Truncated(
            "\n".join([*shown, "", note]), self._truncation(len(shown), kept), last + 1
        )

    def ends(self, hint: str, error_lines: int) -> Truncated:
        """Return the first and last lines of the output, and error-looking lines from between."""
        most_errors = min(error_lines, self.max_lines // 10)
        error_room = 0
        if most_errors:
            error_room = round(self.room * ERROR_SHARE)
        half = (self.room - error_room) // 2
        most = max(1, (self.max_lines - most_errors) // 2)
        head, head_bytes = self._take(self.lines, half, most)
        tail, tail_bytes = self._take(self.lines[len(head) :][::-1], half, most)
        stop = len(self.lines) - len(tail)
        kept = head_bytes + tail_bytes - self.ends_open
        missing = stop - len(head)
        if not missing:
            return Truncated(
                "\n".join([*head, *tail[::-1]]), self._truncation(len(self.lines), kept)
            )
        errors = self._errors(len(head), stop, most_errors, error_room)
        start = self.first_line + len(head)
        note = (
            f"[{missing:,} of {len(self.lines):,} lines left out here ({start:,}-{start + missing - 1:,}), "
            f"{self.total_bytes - kept:,} of {self.total_bytes:,} bytes.{_after(hint, start)}]"
        )
        parts = [*head, "", note]
        if errors:
            parts += ["Error-looking lines among them:", *errors]
        truncation = self._truncation(len(head) + len(tail) + len(errors), kept)
        return Truncated("\n".join([*parts, "", *tail[::-1]]), truncation, start)

    def _take(self, lines: Sequence[str], room: int, most: int) -> tuple[list[str], int]:
        """Return the first lines that fit, but at least one, and the number of bytes kept."""
        taken: list[str] = []
        kept = 0
        for line in lines[:most]:
            shown, left = _cut_inside(line, self.line_chars)
            room -= utf8_size(shown) + 1
            if room < 0 and taken:
                break
            taken.append(shown)
            kept += left + 1
        return taken, kept

    def _errors(self, start: int, stop: int, most: int, room: int) -> list[str]:
        shown: dict[int, str] = {}
        for at in most_informative(self.lines[start:stop], most):
            line = f"{self.first_line + start + at}: {cut_middle(self.lines[start + at].strip(), ERROR_LINE_CHARS)}"
            room -= utf8_size(line) + 1
            if room < 0:
                break
            shown[at] = line
        return [shown[at] for at in sorted(shown)]

    def _truncation(self, kept_lines: int, kept_bytes: int) -> Truncation:
        return Truncation(
            total_lines=len(self.lines),
            total_bytes=self.total_bytes,
            kept_lines=kept_lines,
            kept_bytes=kept_bytes,
        )


def _cut_inside(text: str, chars: int, where: str = "", short: str = "") -> tuple[str, int]:
    """Return a text cut in its middle to ``chars`` characters, and the number of its bytes kept.

    ``where`` is added to the note in the middle; ``short`` ends the result if there is no room for
    the note.
    """
    if len(text) <= chars:
        return text, utf8_size(text)
    room = max(0, chars - len(f" … [{len(text):,} characters left out{where}] … "))
    tail = room // 3
    head = text[: room - tail]
    end = text[len(text) - tail :]
    whole = f"{head} … [{len(text) - room:,} characters left out{where}] … {end}"
    if room:
        shown = whole
    else:
        shown = f"{text[: chars - len(short)]}{short}"
    return shown, utf8_size(head) + utf8_size(end) if room else utf8_size(shown)


def _after(hint: str, next_line: int) -> str:
    if hint:
        return f" {hint.replace('{next}', str(next_line))}"
    return ""


def fitting_bytes(text: str, limits: OutputLimits) -> int:
    """Return how many bytes of a text fit into limits that are given in bytes and in tokens.

    The bytes per token are estimated from the text's beginning: three for prose, code or Chinese,
    one and a half for text without spaces (base64, hashes, minified data).
    """
    sample = text[:8_192]
    per_token = 1.5
    if not sample.isascii() or len(sample.split()) * 25 > len(sample):
        per_token = 3.0
    return min(limits.bytes, round(limits.tokens * per_token))


def utf8_size(text: str) -> int:
    if text.isascii():
        return len(text)
    return len(text.encode("utf-8", "surrogatepass"))
