"""The ``grep`` tool: lines that match a regular expression, by file."""

import asyncio
import re
import threading
import time
from dataclasses import dataclass, field
from itertools import islice

from pydantic import Field

from tui_agent.session.entries import ToolMetadata
from tui_agent.tools.base import Tool, ToolContext, ToolInput, ToolResult
from tui_agent.tools.errors import ToolError
from tui_agent.tools.globs import name_glob
from tui_agent.tools.outputs import NARROWER, Output, counted, finish
from tui_agent.tools.permission import PermissionNeed
from tui_agent.tools.ripgrep import TIMEOUT, NoRipgrepError, run_ripgrep
from tui_agent.tools.searching import Scope, check_exists, scope_needs, scope_of
from tui_agent.tools.sensitive import is_sensitive

MAX_MATCHES = 200
"""Matching lines that are shown."""

MAX_COLUMNS = 300
"""Characters shown of a line."""

_MAX_FILE_BYTES = 20_000_000
_SECRETS_SHOWN = 3


class GrepInput(ToolInput):
    """Arguments of ``grep``."""

    pattern: str = Field(description="Regular expression; (?i) at its start ignores case")
    path: str = "."
    glob: str = Field(default="", description="Only files like *.py or src/**/*.ts")
    literal: bool = Field(default=False, description="pattern is plain text")


@dataclass(slots=True)
class _Found:
    """The first matches by path, in whatever order files come in: all are counted, only those that count are kept."""

    total: int = 0
    files: int = 0
    secrets: list[str] = field(default_factory=list)
    timed_out: bool = False
    _rows: dict[str, list[str]] = field(default_factory=dict)
    _held: int = 0
    _last_path: str = ""
    _limit: str | None = None
    """Paths after this one are past what is shown."""

    def add(self, path: str, number: str, text: str) -> None:
        """Count a match; those of one file come together."""
        self.total += 1
        self.files += path != self._last_path
        self._last_path = path
        if self._limit is not None and path > self._limit:
            return
        rows = self._rows.setdefault(path, [])
        if len(rows) < MAX_MATCHES:
            rows.append(f"{number}: {text}")
            self._held += 1
        if self._held > 10 * MAX_MATCHES:
            self._forget()

    def lines(self, scope: Scope) -> list[str]:
        """Return the first matches by path, as they are shown."""
        rows = (f"{scope.shown(path)}:{row}" for path in sorted(self._rows) for row in self._rows[path])
        return list(islice(rows, MAX_MATCHES))

    def _forget(self) -> None:
        kept: dict[str, list[str]] = {}
        self._held = 0
        for path in sorted(self._rows):
            kept[path] = self._rows[path]
            self._held += len(kept[path])
            self._limit = path
            if self._held >= MAX_MATCHES:
                break
        self._rows = kept


class GrepTool(Tool[GrepInput]):
    """Searches file contents."""

    name = "grep"
    description = "Search file contents; gives path:line: text. Files that git ignores are left out."
    Input = GrepInput
    read_only = True

    def needs(self, arguments: GrepInput, context: ToolContext) -> tuple[PermissionNeed, ...]:
        """Return a read need for what is searched."""
        return scope_needs(scope_of(arguments.path, arguments.glob, context))

    async def run(self, arguments: GrepInput, context: ToolContext) -> ToolResult:
        """Search."""
        if not arguments.pattern:
            raise ToolError("pattern is empty.")
        scope = scope_of(arguments.path, arguments.glob, context)
        await asyncio.to_thread(check_exists, scope, context)
        try:
            found = await _with_ripgrep(arguments, scope)
        except NoRipgrepError:
            found = await _with_python(arguments, scope)
        return await finish(_output(arguments, found, found.lines(scope)), context)


def _output(arguments: GrepInput, found: _Found, lines: list[str]) -> Output:
    what = f"matches in {counted(found.files, 'file')}"

    def narrower(shown: int) -> str:
        return NARROWER.format(shown=shown, total=found.total, what=what)

    notes = [narrower(len(lines))] if len(lines) < found.total else []
    if found.secrets:
        more = ", ..." if len(found.secrets) > _SECRETS_SHOWN else ""
        names = ", ".join(sorted(found.secrets)[:_SECRETS_SHOWN])
        notes.append(f"[Not shown, may hold secrets: {names}{more}. Name one as path to search it.]")
    if found.timed_out:
        notes.append(f"[Stopped after {TIMEOUT:.0f} s; there may be more. Search a smaller path.]")
    return Output(
        text="\n".join(lines) or "No matches.",
        title=f"{arguments.pattern} · {counted(found.total, 'match', 'matches')}",
        footer="\n".join(notes),
        cut_hint=lambda cut: "\n".join([narrower(cut.kept_lines), *notes[len(lines) < found.total :]]),
        metadata=ToolMetadata(count=found.total),
        stored=False,
    )


# -- ripgrep ------------------------------------------------------------------------------------------------


async def _with_ripgrep(arguments: GrepInput, scope: Scope) -> _Found:
    found, secrets = _Found(), dict[str, None]()
    shown_secrets = scope.single_file is not None

    def sink(lines: list[bytes]) -> None:
        for line in lines:
            raw_path, separator, rest = line.partition(b"\0")
            number, colon, text = rest.partition(b":")
            if not separator or not colon:
                continue
            path = raw_path.decode("utf-8", "surrogateescape").removeprefix("./")
            if is_sensitive(path) and not shown_secrets:
                secrets[path] = None
            elif shown_secrets or scope.takes(path):
                found.add(path, number.decode(), _row(text.decode("utf-8", "replace")))

    search = await run_ripgrep(_arguments(arguments, scope), scope.directory, sink)
    # Code 2 with something found: a file that can't be read does not spoil the rest.
    if search.code == 2 and not found.total:
        raise _bad_pattern(search.errors)
    found.secrets, found.timed_out = [scope.shown(path) for path in secrets if scope.takes(path)], search.timed_out
    return found


def _arguments(arguments: GrepInput, scope: Scope) -> list[str]:
    options = ["--line-number", "--with-filename", "--no-heading", "--null"]
    options += [f"--max-columns={MAX_COLUMNS}", "--max-columns-preview"]
    if arguments.literal:
        options.append("--fixed-strings")
    if "\n" in arguments.pattern or (not arguments.literal and "\\n" in arguments.pattern):
        options.append("--multiline")
    by_name = name_glob(scope.glob)
    if by_name and scope.single_file is None:
        # As a type, not with --glob: that would bring back files that git ignores.
        options += [f"--type-add=wanted:{by_name}", "--type=wanted"]
    return [*options, "-e", arguments.pattern, "--", f"./{scope.single_file or ''}"]


def _bad_pattern(errors: str) -> ToolError:
    reason = " ".join(line.strip() for line in errors.removeprefix("rg: ").splitlines() if line.strip())
    if "regex" in reason or "look-around" in reason or "backreference" in reason:
        return ToolError(f"pattern is not a valid regular expression ({reason}). Set literal to search plain text.")
    return ToolError(f"The search failed: {reason or 'ripgrep gave no reason'}.")


def _row(text: str) -> str:
    text = text.rstrip("\r\n")
    return text if len(text) <= MAX_COLUMNS + 40 else f"{text[:MAX_COLUMNS]} [...]"


# -- Python, where no ripgrep runs --------------------------------------------------------------------------


async def _with_python(arguments: GrepInput, scope: Scope) -> _Found:
    try:
        pattern = re.compile(re.escape(arguments.pattern) if arguments.literal else arguments.pattern, re.MULTILINE)
    except re.error as error:
        raise _bad_pattern(f"regex: {error}") from None
    stop = threading.Event()
    try:
        return await asyncio.to_thread(_search, pattern, scope, stop)
    finally:
        stop.set()


def _search(pattern: re.Pattern[str], scope: Scope, stop: threading.Event) -> _Found:
    found, deadline = _Found(), time.monotonic() + TIMEOUT
    for path in scope.files():
        if stop.is_set() or time.monotonic() > deadline:
            found.timed_out = True
            break
        text = _text(scope, path)
        if text is None or not pattern.search(text):
            continue
        if is_sensitive(path) and scope.single_file is None:
            found.secrets.append(scope.shown(path))
            continue
        for number, line in enumerate(text.split("\n"), 1):
            if pattern.search(line):
                found.add(path, str(number), _row(line))
    return found


def _text(scope: Scope, path: str) -> str | None:
    try:
        file = scope.directory / path
        data = b"" if file.stat().st_size > _MAX_FILE_BYTES else file.read_bytes()
    except OSError:
        return None
    return None if b"\0" in data[:8_192] else data.decode("utf-8", "replace")
