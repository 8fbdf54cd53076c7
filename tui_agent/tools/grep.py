"""The ``grep`` tool: finds lines that match a regular expression, with ripgrep."""

import asyncio
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from tui_agent.errors import ToolError
from tui_agent.files.globs import name_globs
from tui_agent.files.inside import directory, file_beneath
from tui_agent.files.ripgrep import TIMEOUT, NoRipgrepError, list_files, run_ripgrep
from tui_agent.files.secret_files import is_secret_file, shown_line, text_in
from tui_agent.files.sensitive import is_sensitive
from tui_agent.lazy import dataclass, frozen
from tui_agent.permission import PermissionNeed
from tui_agent.session.entries import ToolMetadata
from tui_agent.session.tool_traits import ToolTraits
from tui_agent.text_files.encodings import UTF_8, Encoding
from tui_agent.text_files.reading import encoding_of, line_text
from tui_agent.tools.base import Tool, ToolContext, ToolInput, ToolResult
from tui_agent.tools.outputs import NARROWER, Output, counted, finish
from tui_agent.tools.searching import (
    MAX_COLUMNS,
    MAX_NAMED,
    Scope,
    check_exists,
    cut_line,
    scope_needs,
    scope_of,
)

MAX_ROWS = 200
"""Maximum number of lines in the output."""

ELSEWHERE_SECONDS = 2.0
"""Time limit, in seconds, of the search in files that the first search skipped."""

MAX_OTHER_FILES = 200
"""Maximum number of files in encodings other than UTF-8 that are searched if the pattern has
non-ASCII characters."""

MAX_CONTEXT = 20
"""Maximum number of lines that are shown before and after a match."""

_BINARY = "[Binary, so not searched to the end: {names}. To search a file, name it as path.]"
_IGNORED = "[Ignored by git, so not searched: {names}. To search a file, name it as path.]"
_SEPARATOR = b"--"
"""The line that ripgrep prints between groups of lines."""
_CUT_SHORT = b": WARNING: stopped searching binary file"
_LINE = re.compile(rb"(\d+)([:-])(\d+)[:-](.*)", re.DOTALL)
_SHORTENED = re.compile(rb" \[\.\.\. [^\[\]]*\]$")
"""Matches the note that ripgrep appends to a line that it has cut."""
_MAX_OTHER_BYTES = 16 * 1024**2
"""Maximum number of bytes read from the start of a file that is not UTF-8, in order to verify a
found line."""

_NOT_UTF_8 = (
    r"(?-u:[\xC0-\xFF](?:[\x00-\x7F\xC0-\xFF]|$)"
    r"|(?:^|[\x00-\x7F])[\x80-\xBF]"
    r"|[\xE0-\xFF][\x80-\xBF](?:[\x00-\x7F]|$))"
)
"""Matches nearly all lines that aren't UTF-8, because they contain an incomplete character or a
lone continuation byte."""

_LAST = re.compile(r"((?:^|[^\\])(?:\\\\)*)\\[Zz]")
r"""Matches ``\Z`` and ``\z``, which are replaced with ``$`` for ripgrep."""
_IGNORING_CASE = ("-i", "i", "ignore_case", "case_insensitive")
_AROUND = ("-C", "-A", "-B", "context_lines", "after", "before")
_IGNORED_ARGUMENTS = ("-n", "line_numbers", "head_limit", "max_results", "limit")


@frozen
class _Row:
    """A line that ripgrep printed, with its number, its byte offset in the file, and its bytes.

    ``hit`` is True if it matches, False for a line of context.
    """

    number: int
    offset: int
    line: bytes
    hit: bool


@dataclass
class Matches:
    """Counts all matching lines, but keeps only the lines of the files whose paths sort first.

    All paths are relative to the directory that is searched. Files may be added in any order.
    """

    total: int = 0
    """Number of matching lines."""
    paths: set[str] = field(default_factory=set)
    """Files with a match."""
    cut_short: list[str] = field(default_factory=list)
    """Names of the files that were not searched to the end because they are binary."""
    secrets: list[str] = field(default_factory=list)
    """Names of files with matches that are not shown because the files may contain secrets."""
    withheld: list[str] = field(default_factory=list)
    """Names of files with matches that are not shown because a permission rule restricts reading
    them."""
    unread: list[str] = field(default_factory=list)
    """Names of the files in other encodings in which only ASCII characters could be searched for.
    """
    timed_out: bool = False
    _rows: dict[str, list[_Row]] = field(default_factory=dict)
    """The lines that are kept of each file, at most ``MAX_ROWS``, by the file's path."""
    _held: int = 0
    """Number of lines in ``_rows``."""
    _limit: str | None = None
    """Matches in files whose paths sort after this path are only counted. None while the lines of
    all files are kept."""

    def add(self, path: str, row: _Row) -> None:
        """Add a line of a file.

        The lines of a file must be added in order, without lines of other files between them.
        """
        if row.hit:
            self.total += 1
            self.paths.add(path)
        if self._limit is not None and path > self._limit:
            return
        rows = self._rows.setdefault(path, [])
        if len(rows) < MAX_ROWS:
            rows.append(row)
            self._held += 1
        if self._held > 10 * MAX_ROWS:
            self._forget()

    def rows(self, scope: Scope, *, apart: bool) -> list[tuple[str, bool]]:
        """Return up to ``MAX_ROWS`` lines of output, sorted by path, each with True if it matches.

        Files that are secrets are left out and added to ``secrets``, unless only one file is
        searched; other secrets are redacted. With ``apart``, a line of dashes separates groups of
        lines. The method reads files, so call it in a thread.
        """
        found: list[tuple[str, bool]] = []
        for path, rows in _verified(scope, self._rows):
            name = scope.shown(path)
            real = scope.directory / path
            last = -1
            if scope.single_file is None and is_secret_file(real):
                self.secrets.append(path)
                continue
            whole = scope.single_file is not None and is_secret_file(real)
            for row in rows:
                line = line_text(row.line, real)
                if apart and found and row.number != last + 1:
                    found.append(("--", False))
                text = cut_line(line if whole else shown_line(real, row.number, line))
                found.append((f"{name}:{row.number}{':' if row.hit else '-'} {text}", row.hit))
                last = row.number
                if len(found) >= MAX_ROWS:
                    return found
        return found

    def _forget(self) -> None:
        kept: dict[str, list[_Row]] = {}
        self._held = 0
        for path in sorted(self._rows):
            kept[path] = self._rows[path]
            self._held += len(kept[path])
            self._limit = path
            if self._held >= MAX_ROWS:
                break
        self._rows = kept


def _verified(scope: Scope, found: Mapping[str, list[_Row]]) -> Iterator[tuple[str, list[_Row]]]:
    """Yield the files, sorted by path, with those found lines that the file really contains.

    Ripgrep opens files by name. So a command that replaces a directory with a link during the
    search could make ripgrep show files from outside the scope.
    """
    with suppress(OSError), directory(scope.directory) as root:
        for path in sorted(found):
            with suppress(OSError), file_beneath(root, path) as file:
                if rows := _rows_in(file, found[path]):
                    yield path, rows


def _rows_in(file: BinaryIO, rows: list[_Row]) -> list[_Row]:
    if all(_is_at_offset(file, row) for row in rows):
        return rows
    # If the file has another encoding or a byte order mark, the lines aren't at their offsets. They
    # are then searched for in the file's text.
    file.seek(0)
    text = text_in(file.read(_MAX_OTHER_BYTES))
    there = []
    for row in rows:
        if _is_at_offset(file, row) or _text_of(row).decode(errors="replace") in text:
            there.append(row)
    return there


def _is_at_offset(file: BinaryIO, row: _Row) -> bool:
    plain = _text_of(row)
    file.seek(row.offset)
    return file.read(len(plain)) == plain


def _text_of(row: _Row) -> bytes:
    """Return a line's bytes, up to where ripgrep cut the line."""
    return _SHORTENED.sub(b"", row.line.removesuffix(b"\r"))


def _without_links(scope: Scope, paths: Iterable[str]) -> list[str]:
    """Return the paths below the scope's directory that exist and contain no symbolic link."""
    found = []
    with suppress(OSError), directory(scope.directory) as root:
        for path in paths:
            with suppress(OSError), file_beneath(root, path):
                found.append(path)
    return found


class GrepInput(ToolInput):
    """Arguments of the ``grep`` tool."""

    pattern: str = Field(description="Regex; (?i) ignores case")
    path: str = "."
    glob: str = Field(default="", description="Like src/**/*.ts")
    literal: SkipJsonSchema[bool] = False
    """Whether ``pattern`` is plain text. The field is left out of the schema, because a pattern
    without matches is searched for as plain text anyway."""
    context: int = Field(default=0, ge=0)
    """Number of lines to show before and after each match."""

    @model_validator(mode="before")
    @classmethod
    def _other_spellings(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        values = {name: value for name, value in values.items() if name not in _IGNORED_ARGUMENTS}
        ignores_case = _is_word(values.pop("case_sensitive", None), "false")
        for name in _IGNORING_CASE:
            ignores_case |= _is_word(values.pop(name, None), "true")
        if ignores_case:
            pattern = str(values.get("pattern", "")).removeprefix("(?i)")
            if _is_word(values.pop("literal", None), "true"):
                pattern = re.escape(str(values.get("pattern", "")))
            values["pattern"] = f"(?i){pattern}"
        around = [values.pop(name) for name in _AROUND if name in values]
        if values.get("output_mode") == "content":
            del values["output_mode"]
        if not around:
            return values
        return {"context": max(around, key=str)} | values


def _is_word(value: Any, word: str) -> bool:
    return str(value).lower() == word


@frozen
class _Query:
    """A search, with its pattern, how to match it, and the number of context lines to show."""

    pattern: str
    literal: bool
    context: int
    ignoring_case: bool = False


class _BadPatternError(Exception):
    """Raised if a pattern is not a valid regular expression; the message says why."""


class GrepTool(Tool[GrepInput]):
    """Finds lines that match a regular expression or, if none does, contain it as plain text."""

    name = "grep"
    description = "Search files that git does not ignore; gives path:line: text."
    Input = GrepInput
    traits = ToolTraits(
        basic=True,
        kind="search",
        other_names="search searchfiles searchfilecontent grepsearch ripgrep rg searchcode",
        explores=True,
        repeatable=True,
        quotes=True,
        counts="match",
        runs_of="pattern",
        output="matches",
        says_arguments=True,
    )
    read_only = True

    def needs(self, arguments: GrepInput, context: ToolContext) -> tuple[PermissionNeed, ...]:
        return scope_needs(scope_of(arguments.path, arguments.glob, context))

    async def run(self, arguments: GrepInput, context: ToolContext) -> ToolResult:
        if not arguments.pattern:
            raise ToolError("pattern is empty.")
        scope = scope_of(arguments.path, arguments.glob, context)
        await asyncio.to_thread(check_exists, scope, context)
        query = _Query(arguments.pattern, arguments.literal, min(arguments.context, MAX_CONTEXT))
        found, notes = await _search_with_fallbacks(query, scope)
        return await finish(await asyncio.to_thread(_output, query, scope, found, notes), context)


async def _search_with_fallbacks(query: _Query, scope: Scope) -> tuple[Matches, list[str]]:
    """Return the matches, and notes for the model on how they were found or what was skipped.

    A pattern that is invalid or has no matches is also searched for as plain text. Raises ToolError
    if the pattern is invalid and isn't found as plain text, or if the search fails.
    """
    try:
        found = await _search(query, scope)
    except _BadPatternError as error:
        found = await _search(replace(query, literal=True), scope)
        if not found.total:
            raise ToolError(
                f"pattern is not a valid regular expression: {error}. Escape ( ) [ ] {{ }} . * + ? with \\."
            ) from None
        note = f"[pattern is not a valid regular expression ({error}), so it was searched for as plain text.]"
        return found, [note]
    if not found.total and _name_filter(scope):
        # Ripgrep skips files whose names look as if they matched the glob but contain other
        # characters. So the files are searched again without giving the glob to ripgrep.
        scope = replace(scope, glob="")
        found = await _search(query, scope)
    if found.total:
        cut_short = await asyncio.to_thread(_without_links, scope, found.cut_short)
        return found, [_BINARY.format(names=scope.first_names(cut_short))] if cut_short else []
    if not query.literal and re.escape(query.pattern) != query.pattern:
        as_text = await _search(replace(query, literal=True), scope)
        if as_text.total:
            return as_text, [
                "[The regular expression has no matches; these lines contain it as plain text.]"
            ]
    return found, await _missed_matches(query, scope)


async def _missed_matches(query: _Query, scope: Scope) -> list[str]:
    """Return notes for the model on matches that a search without a result missed.

    These are lines in another case and, unless only one file is searched, lines of files that are
    binary or ignored by git. If there was no time to search these files, a note says so.
    """
    notes: list[str] = []
    if query.pattern.lower() != query.pattern.upper():
        alike = await _search(replace(query, ignoring_case=True), scope)
        if alike.total:
            matches = counted(alike.total, "match", "matches")
            notes.append(f"[{matches} in {counted(len(alike.paths), 'file')} ignoring case.]")
    if scope.single_file is not None:
        return notes
    try:
        async with asyncio.timeout(ELSEWHERE_SECONDS):
            every = await _names(query, scope, "--text", "--no-ignore")
            binary = []
            if every:
                binary = await _names(query, scope, "--text")
    except TimeoutError:
        return [*notes, "[Files that git ignores and binary files were not searched.]"]
    for note, paths in ((_BINARY, binary), (_IGNORED, set(every) - set(binary))):
        names = await asyncio.to_thread(_names_for_note, scope, paths)
        notes += [note.format(names=names)] if names else []
    return notes


async def _names(query: _Query, scope: Scope, *options: str) -> list[str]:
    """Return the names of the files with a match; ``options`` are further options for ripgrep.

    Paths are relative to the scope's directory. Files whose names suggest secrets, or which a
    permission rule withholds, are left out. The result is empty if ripgrep can't be used.
    """
    found: list[str] = []

    def sink(names: list[bytes]) -> None:
        for name in names:
            path = os.fsdecode(name)
            if scope.takes(path) and not is_sensitive(path) and not scope.withholds(path):
                found.append(path)

    arguments = [
        *_match_options(query),
        *options,
        "--files-with-matches",
        f"--regexp={_expression(query)}",
    ]
    try:
        await list_files(scope.directory, sink, arguments)
    except NoRipgrepError:
        return []
    return found


def _names_for_note(scope: Scope, paths: Iterable[str]) -> str:
    """Return the names of the first few files, joined for a note; "" if there are none.

    Files that are secrets as a whole are not named. The function reads files, so call it in a
    thread.
    """
    named: list[str] = []
    for path in _without_links(scope, sorted(paths)):
        if not is_secret_file(scope.directory / path):
            named.append(path)
        if len(named) > MAX_NAMED:
            break
    return scope.first_names(named)


def _output(query: _Query, scope: Scope, found: Matches, notes: list[str]) -> Output:
    rows = found.rows(scope, apart=query.context > 0)
    what = f"matches in {counted(len(found.paths), 'file')}"

    def footer(shown: list[tuple[str, bool]]) -> str:
        hits = sum(hit for _text, hit in shown)
        if hits >= found.total:
            return "\n".join(notes)
        narrower = NARROWER.format(shown=hits, total=found.total, what=what)
        return "\n".join([narrower, *notes])

    if secrets := _without_links(scope, found.secrets):
        notes.append(
            f"[Not shown, because of possible secrets: {scope.first_names(secrets)}. "
            "To search a file, name it as path.]"
        )
    if withheld := _without_links(scope, found.withheld):
        notes.append(
            f"[Not shown, because a permission rule denies or asks about reading: {scope.first_names(withheld)}.]"
        )
    if unread := _without_links(scope, found.unread):
        notes.append(
            f"[Not UTF-8, so searched only for ASCII characters: {scope.first_names(unread)}.]"
        )
    if found.timed_out:
        notes.append(f"[Stopped after {TIMEOUT:.0f} s; there may be more. Search a smaller path.]")
    return Output(
        text="\n".join(text for text, _hit in rows) or "No matches.",
        title=f"{query.pattern} · {counted(found.total, 'match', 'matches')}",
        footer=footer(rows),
        cut_hint=lambda cut: footer(rows[: cut.kept_lines]),
        metadata=ToolMetadata(count=found.total),
    )


# -- ripgrep ---------------------------------------------------------------------------------------


async def _search(query: _Query, scope: Scope) -> Matches:
    """Return the matches in the files of a scope, in every encoding that ripgrep can read."""
    found = Matches()
    if scope.single_file is not None:
        encoding = await asyncio.to_thread(encoding_of, scope.location.real)
        await _run(query, scope, found, _encoding_options(encoding), [scope.single_file])
        return found
    await _run(query, scope, found, [], [""])
    if not query.pattern.isascii():
        # Characters outside ASCII are different bytes in each encoding, so files in other encodings
        # are searched separately.
        for name, paths in (await _other_encodings(scope)).items():
            if name:
                await _run(query, scope, found, [f"--encoding={name}"], paths)
            else:
                found.unread = paths
    return found


def _encoding_options(encoding: Encoding | None) -> list[str]:
    """Return ripgrep's options to search one file with the given encoding, even if it is binary.

    ``encoding`` is None for a file that isn't text.
    """
    if encoding is None or encoding == UTF_8 or encoding.bom or not encoding.web_name:
        return ["--text"]
    return [f"--encoding={encoding.web_name}", "--text"]


async def _other_encodings(scope: Scope) -> dict[str, list[str]]:
    """Return the text files in the scope that aren't UTF-8, by ripgrep's name of their encoding.

    The files that ripgrep can't decode, and all files after the first ``MAX_OTHER_FILES``, are
    listed under the name "".
    """
    query = _Query(_NOT_UTF_8, literal=False, context=0)
    paths = await _names(query, scope, "--no-unicode")
    found: dict[str, list[str]] = {}
    for path in paths[:MAX_OTHER_FILES]:
        encoding = await asyncio.to_thread(_encoding, scope.directory / path)
        if encoding is not None and encoding != UTF_8:
            found.setdefault(encoding.web_name, []).append(path)
    if len(paths) > MAX_OTHER_FILES:
        found.setdefault("", []).extend(paths[MAX_OTHER_FILES:])
    return found


def _encoding(path: Path) -> Encoding | None:
    try:
        return encoding_of(path)
    except OSError:
        return None


def _list_for(found: Matches, scope: Scope, path: str) -> list[str] | None:
    """Return the list of files with hidden matches to which a file belongs, or None.

    The result is None if the file's matches may be shown.
    """
    if scope.single_file is not None:
        return None
    if is_sensitive(path):
        return found.secrets
    if scope.withholds(path):
        return found.withheld
    return None


async def _run(
    query: _Query, scope: Scope, found: Matches, options: list[str], paths: list[str]
) -> None:
    """Search files with ripgrep, and add the matches to ``found``.

    ``paths`` are relative to the searched directory; "" stands for all files in the directory.

    Raises:
        ToolError: ripgrep is missing or failed.
        _BadPatternError: the pattern is not a valid regular expression.
    """
    list_of = cache(partial(_list_for, found, scope))
    begun = b""

    def sink(lines: list[bytes]) -> None:
        nonlocal begun
        for piece in lines:
            line = begun + piece
            begun = b""
            raw_path, end, rest = line.partition(b"\0")
            is_path = not end and line.removesuffix(b"\r") != _SEPARATOR
            if is_path and _CUT_SHORT not in line:
                # The path contains a line feed, so the rest of the path is on the next line.
                begun = line + b"\n"
                continue
            if not end and _CUT_SHORT in line:
                found.cut_short.append(
                    os.fsdecode(line.partition(_CUT_SHORT)[0]).removeprefix("./")
                )
            parts = _LINE.match(rest)
            if parts is None:
                continue
            path = os.fsdecode(raw_path).removeprefix("./")
            hit = parts[2] == b":"
            if scope.single_file is None and not scope.takes(path):
                continue
            not_shown = list_of(path)
            if not_shown is None:
                found.add(path, _Row(int(parts[1]), int(parts[3]), parts[4], hit))
            elif hit and path not in not_shown:
                not_shown.append(path)

    arguments = [
        *_match_options(query),
        *_output_options(query),
        *options,
        *_name_filter(scope),
        "-e",
        _expression(query),
        "--",
    ]
    arguments += [f"./{path}" for path in paths]
    try:
        search = await run_ripgrep(arguments, scope.directory, sink)
    except NoRipgrepError:
        raise ToolError(
            "ripgrep can't be used in this directory. Search with grep in bash."
        ) from None
    # Exit code 2 without a message means that a file couldn't be read. The matches in other files
    # are valid.
    if search.code == 2 and search.errors and not found.total:
        reason = " ".join(search.errors.removeprefix("rg: ").split())
        if "regex" in reason:
            raise _BadPatternError(
                reason.rpartition("error: ")[2].partition(" Consider enabling")[0]
            )
        raise ToolError(f"The search failed: {reason}.")
    found.timed_out |= search.timed_out


def _match_options(query: _Query) -> list[str]:
    """Return ripgrep's options for matching: line ends, case, and matches over several lines."""
    options = ["--crlf"]
    if query.ignoring_case:
        options.append("--ignore-case")
    if "\n" in query.pattern or (not query.literal and "\\n" in query.pattern):
        options.append("--multiline")
    return options


def _output_options(query: _Query) -> list[str]:
    """Return ripgrep's options for the output that ``_run`` parses."""
    options = ["--line-number", "--byte-offset", "--with-filename", "--no-heading", "--null"]
    # This limit of ripgrep is in bytes. Lines that have too many characters are cut later.
    options += [f"--max-columns={8 * MAX_COLUMNS}", "--max-columns-preview"]
    if query.context:
        return [*options, f"--context={query.context}"]
    return options


def _name_filter(scope: Scope) -> list[str]:
    """Return ripgrep's options to skip most files whose names the glob doesn't match.

    This is only an optimisation, because the results are checked against the glob again. Returns an
    empty list if the glob can't be turned into such options.
    """
    if scope.excludes or scope.single_file is not None:
        return []
    # The names are given as a file type of ripgrep, because --glob would include files that git
    # ignores.
    types = [f"--type-add=wanted:{name}" for name in name_globs(scope.glob)]
    if types:
        return [*types, "--type=wanted"]
    return []


def _expression(query: _Query) -> str:
    """Return a query's pattern in ripgrep's syntax.

    U+FFFD also matches any undecodable byte, because the model sees such bytes as U+FFFD. NUL is
    escaped, because a command line can't contain it.
    """
    if query.literal:
        pattern = re.escape(query.pattern)
    else:
        pattern = _LAST.sub(r"\1$", query.pattern)
    pattern = pattern.replace("\0", r"\x00").replace("\\\x00", r"\x00")
    return pattern.replace("\ufffd", r"(?:\x{FFFD}|(?-u:[\x80-\xFF]))")
