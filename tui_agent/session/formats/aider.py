"""aider's chat history: Markdown with a heading for each start.

``####`` stands before what was typed, ``>`` before what the program said. Everything else is the model's answer.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from tui_agent.session.entries import AssistantEntry, TextPart, Usage, UserEntry
from tui_agent.session.formats.incoming import Builder, IncomingSession
from tui_agent.session.formats.reading import ImportLimits, ImportRefused, NoConversation
from tui_agent.session.formats.source import SourceFile

__all__ = ["FILE_NAME", "is_history", "read"]

FILE_NAME = ".aider.chat.history.md"
_START = "# aider chat started at "
_MODEL = re.compile(r"> (?:Main model|Model): (\S+)")
_TOKENS = re.compile(r"> Tokens: ([\d.,]+)(k?) sent, .*?([\d.,]+)(k?) received\.(?: Cost: \$([\d.]+) message)?")
_TYPED = "#### "
_SAID = "> "


def is_history(source: SourceFile) -> bool:
    """Whether a file is aider's history."""
    return source.head.lstrip().startswith(_START.encode())


def read(source: SourceFile) -> Iterator[IncomingSession]:
    """Make a session of each start in which something was said.

    Raises:
        ImportRefused: the file can't be read, or nothing was said in it.
    """
    chat: _Chat | None = None
    found = False
    for line in _lines(source):
        if line.startswith(_START):
            if chat is not None and (session := chat.finish()) is not None:
                found = True
                yield session
            chat = _Chat(source, line.removeprefix(_START).strip())
        elif chat is not None:
            chat.line(line)
    if chat is not None and (session := chat.finish()) is not None:
        found = True
        yield session
    if not found:
        raise NoConversation("It holds no conversation of aider.")


def _lines(source: SourceFile) -> Iterator[str]:
    try:
        with source.path.open(encoding="utf-8-sig", errors="replace") as file:
            while line := file.readline(source.limits.line_bytes):
                yield line.rstrip("\n")
    except OSError as error:
        raise ImportRefused(f"{source.path.name} can't be read: {error.strerror or error}.") from error


class _Chat:
    def __init__(self, source: SourceFile, started: str) -> None:
        limits: ImportLimits = source.limits
        self._make = Builder("aider", limits)
        self._cwd = str(source.path.absolute().parent)
        self._started = started
        self._at = _moment(started)
        self._model = ""
        self._typed: list[str] = []
        self._answer: list[str] = []
        self._last: int | None = None
        """The last answer."""

    def line(self, line: str) -> None:
        if line.startswith(_TYPED) or line == _TYPED.rstrip():
            self._end_answer()
            self._typed.append(line.removeprefix("####").removeprefix(" ").removesuffix("  "))
        elif line.startswith(_SAID) or line == _SAID.rstrip():
            self._end_typed()
            self._end_answer()
            self._told(line)
        elif self._typed or len(self._make.session.entries):  # before it, the program says how it was started
            if line:
                self._end_typed()
            self._answer.append(line)

    def finish(self) -> IncomingSession | None:
        """Return the session, None when nothing was said in it."""
        self._end_typed()
        self._end_answer()
        if not len(self._make.session.entries):
            return None
        name = f"{self._cwd}\0{self._started}"
        return self._make.finish(name=name, cwd=self._cwd, title="", created_at=self._at, leaf=self._make.last)

    def _told(self, line: str) -> None:
        if model := _MODEL.match(line):
            self._model = model[1]
        elif (tokens := _TOKENS.match(line)) and self._last is not None:
            entry = self._make.entry(self._last)
            usage = Usage(input=_count(tokens[1], tokens[2]), output=_count(tokens[3], tokens[4]))
            cost = float(tokens[5]) if tokens[5] else None
            self._make.replace(self._last, entry.model_copy(update={"usage": usage, "cost": cost}))

    def _end_typed(self) -> None:
        if text := "\n".join(self._typed).strip():
            # A line with a slash is a command of aider: no model was sent it.
            synthetic = "aider:command" if text.startswith("/") else None
            entry = UserEntry(parts=(TextPart(text=text),), synthetic=synthetic, created_at=self._at)
            self._make.add(entry, self._make.last)
        self._typed.clear()

    def _end_answer(self) -> None:
        if text := "\n".join(self._answer).strip("\n"):
            entry = AssistantEntry(parts=(TextPart(text=text),), model=self._model, created_at=self._at)
            self._last = self._make.add(entry, self._make.last)
        self._answer.clear()


def _moment(text: str) -> int:
    """Return a local time in milliseconds, 0 when it is none."""
    try:
        # aider writes the time of the machine without a zone. As if it were UTC it is the same everywhere.
        return max(0, int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000))
    except ValueError:
        return 0


def _count(number: str, thousands: str) -> int:
    return int(float(number.replace(",", "") or 0) * (1000 if thousands else 1))
