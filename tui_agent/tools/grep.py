"""The ``grep`` tool: lines that match a regular expression, by file."""

import asyncio
import re
from dataclasses import field, replace
from typing import Any

from pydantic import Field, model_validator

from tui_agent.errors import ToolError
from tui_agent.files.globs import name_glob
from tui_agent.files.ripgrep import TIMEOUT, NoRipgrepError, run_ripgrep
from tui_agent.files.secret_files import is_secret_file, shown_line
from tui_agent.files.sensitive import is_sensitive
from tui_agent.lazy import dataclass
from tui_agent.permission import PermissionNeed
from tui_agent.session.entries import ToolMetadata
from tui_agent.session.tool_traits import ToolTraits
from tui_agent.tools.base import Tool, ToolContext, ToolInput, ToolResult
from tui_agent.tools.outputs import NARROWER, Output, counted, finish
from tui_agent.tools.searching import Scope, check_exists, scope_needs, scope_of

MAX_ROWS = 200
"""Lines that are shown."""

MAX_COLUMNS = 300
"""Characters shown of a line."""


@dataclass(slots=True)
class Matches:
    """Matches by path, in whatever order files come in. ``files`` counts those with a match."""

    total: int = 0
    files: int = 0
    secrets: list[str] = field(default_factory=list)
    timed_out: bool = False
    _rows: dict[str, list[tuple[int, str, bool]]] = field(default_factory=dict)
    """Number and text of a line, and whether it is a match, by path."""
    _held: int = 0
    _last_path: str = ""
    _limit: str | None = None
    """Paths after this one are not shown."""

    def add(self, path: str, number: int, line: str, *, hit: bool = True) -> None:
        """Take a line; those of one file come together and in order."""
        if hit:
            self.total += 1
            self.files += path != self._last_path
            self._last_path = path
        if self._limit is not None and path > self._limit:
            return
        rows = self._rows.setdefault(path, [])
        if len(rows) < MAX_ROWS:
            rows.append((number, line, hit))
            self._held += 1
        if self._held > 10 * MAX_ROWS:
            self._forget()

    def rows(self, scope: Scope, *, apart: bool) -> list[tuple[str, bool]]:
        """Return the first lines by path, without secrets, each with whether it is a match. Looks at files.

        ``apart`` puts dashes between groups.
        """
        found: list[tuple[str, bool]] = []
        for path in sorted(self._rows):
            name, real, last = scope.shown(path), scope.directory / path, -1
            if scope.single_file is None and is_secret_file(real):
                self.secrets.append(name)
                continue
            whole = scope.single_file is not None and is_secret_file(real)
            for number, line, hit in self._rows[path]:
                if apart and found and number != last + 1:
                    found.append(("--", False))
                text = _cut(line if whole else shown_line(real, number, line))
                found.append((f"{name}:{number}{':' if hit else '-'} {text}", hit))
                last = number
                if len(found) >= MAX_ROWS:
                    return found
        return found

    def _forget(self) -> None:
        kept: dict[str, list[tuple[int, str, bool]]] = {}
        self._held = 0
        for path in sorted(self._rows):
            kept[path] = self._rows[path]
            self._held += len(kept[path])
            self._limit = path
            if self._held >= MAX_ROWS:
                break
        self._rows = kept


def _cut(line: str) -> str:
    line = line.rstrip("\r\n")
    return line if len(line) <= MAX_COLUMNS else f"{line[:MAX_COLUMNS]} [...]"


MAX_CONTEXT = 20
"""Lines shown around a match at most."""

_SECRETS_SHOWN = 3
_LINE = re.compile(rb"(\d+)([:-])(.*)", re.DOTALL)
_LAST = re.compile(r"((?:^|[^\\])(?:\\\\)*)\\[Zz]")
_IGNORING_CASE = ("-i", "i", "ignore_case", "case_insensitive")
_AROUND = ("-C", "-A", "-B", "context_lines", "after", "before")
_IGNORED_ARGUMENTS = ("-n", "line_numbers", "head_limit", "max_results", "limit")


class GrepInput(ToolInput):
    """Arguments of ``grep``."""

    pattern: str = Field(description="Regular expression; (?i) ignores case")
    path: str = "."
    glob: str = Field(default="", description="Only files like *.py or src/**/*.ts")
    literal: bool = False
    context: int = Field(default=0, ge=0, description="Lines around each match")

    @model_validator(mode="before")
    @classmethod
    def _other_ways(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        values = {name: value for name, value in values.items() if name not in _IGNORED_ARGUMENTS}
        said = [_says(values.pop(name), "true") for name in _IGNORING_CASE if name in values]
        if any(said) or _says(values.pop("case_sensitive", None), "false"):
            literal = _says(values.pop("literal", None), "true")
            pattern = str(values.get("pattern", ""))
            values["pattern"] = f"(?i){re.escape(pattern) if literal else pattern.removeprefix('(?i)')}"
        around = [values.pop(name) for name in _AROUND if name in values]
        if values.get("output_mode") == "content":
            del values["output_mode"]
        return values if not around else {"context": max(around, key=str)} | values


def _says(value: Any, word: str) -> bool:
    return str(value).lower() == word


@dataclass(frozen=True, slots=True)
class _Query:
    """A search: its pattern, and how to match it."""

    pattern: str
    literal: bool
    context: int
    ignoring_case: bool = False


class _BadPatternError(Exception):
    """The pattern is no regular expression; the message says why."""


class GrepTool(Tool[GrepInput]):
    """Searches file contents."""

    name = "grep"
    description = "Search files that git does not ignore; gives path:line: text."
    Input = GrepInput
    traits = ToolTraits(
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
        found, notes = await _found(query, scope)
        return await finish(await asyncio.to_thread(_output, query, scope, found, notes), context)


async def _found(query: _Query, scope: Scope) -> tuple[Matches, list[str]]:
    """Return the matches, and notes on how they were found.

    Raises:
        ToolError: the pattern can't be searched for, in no way.
    """
    try:
        found = await _search(query, scope)
    except _BadPatternError as error:
        found = await _search(replace(query, literal=True), scope)
        if not found.total:
            raise ToolError(
                f"pattern is not a valid regular expression: {error}. Escape ( ) [ ] {{ }} . * + ? with \\, "
                "or set literal to search plain text."
            ) from None
        return found, [f"[pattern is not a valid regular expression ({error}), so this is where it stands as text.]"]
    if found.total or query.pattern.lower() == query.pattern.upper():
        return found, []
    alike = await _search(replace(query, ignoring_case=True), scope)
    if not alike.total:
        return found, []
    return found, [f"[{counted(alike.total, 'match', 'matches')} in {counted(alike.files, 'file')} ignoring case.]"]


def _output(query: _Query, scope: Scope, found: Matches, notes: list[str]) -> Output:
    rows = found.rows(scope, apart=query.context > 0)
    what = f"matches in {counted(found.files, 'file')}"

    def footer(shown: list[tuple[str, bool]]) -> str:
        hits = sum(hit for _text, hit in shown)
        narrower = [NARROWER.format(shown=hits, total=found.total, what=what)] if hits < found.total else []
        return "\n".join([*narrower, *notes])

    if found.secrets:
        more = ", ..." if len(found.secrets) > _SECRETS_SHOWN else ""
        names = ", ".join(sorted(found.secrets)[:_SECRETS_SHOWN])
        notes.append(f"[Not shown, may hold secrets: {names}{more}. Name one as path to search it.]")
    if found.timed_out:
        notes.append(f"[Stopped after {TIMEOUT:.0f} s; there may be more. Search a smaller path.]")
    return Output(
        text="\n".join(text for text, _hit in rows) or "No matches.",
        title=f"{query.pattern} · {counted(found.total, 'match', 'matches')}",
        footer=footer(rows),
        cut_hint=lambda cut: footer(rows[: cut.kept_lines]),
        metadata=ToolMetadata(count=found.total),
    )


# -- ripgrep ------------------------------------------------------------------------------------------------


async def _search(query: _Query, scope: Scope) -> Matches:
    found, secrets = Matches(), dict[str, None]()
    shown_secrets = scope.single_file is not None

    def sink(lines: list[bytes]) -> None:
        for line in lines:
            raw_path, _, rest = line.partition(b"\0")
            parts = _LINE.match(rest)
            if parts is None:
                continue
            path = raw_path.decode("utf-8", "surrogateescape").removeprefix("./")
            hit = parts[2] == b":"
            if is_sensitive(path) and not shown_secrets:
                secrets.update({path: None} if hit else {})
            elif shown_secrets or scope.takes(path):
                found.add(path, int(parts[1]), parts[3].decode("utf-8", "replace"), hit=hit)

    try:
        search = await run_ripgrep(_arguments(query, scope), scope.directory, sink)
    except NoRipgrepError:
        raise ToolError("No ripgrep runs here to the end of a search. Search with grep in bash.") from None
    # Code 2 and not a word: a file could not be read, which does not spoil the rest.
    if search.code == 2 and search.errors and not found.total:
        reason = " ".join(line.strip() for line in search.errors.removeprefix("rg: ").splitlines() if line.strip())
        if "regex" in reason:
            raise _BadPatternError(reason.rpartition("error: ")[2].partition(" Consider enabling")[0])
        raise ToolError(f"The search failed: {reason}.")
    found.secrets, found.timed_out = [scope.shown(path) for path in secrets if scope.takes(path)], search.timed_out
    return found


def _arguments(query: _Query, scope: Scope) -> list[str]:
    options = ["--line-number", "--with-filename", "--no-heading", "--null", "--crlf"]
    # In bytes; lines still too long are cut when shown.
    options += [f"--max-columns={8 * MAX_COLUMNS}", "--max-columns-preview"]
    options += [f"--context={query.context}"] if query.context else []
    options += ["--fixed-strings"] if query.literal else []
    options += ["--ignore-case"] if query.ignoring_case else []
    multiline = "\n" in query.pattern or (not query.literal and "\\n" in query.pattern)
    options += ["--multiline"] if multiline else []
    by_name = name_glob(scope.glob)
    if by_name and not scope.excludes and scope.single_file is None:
        # As a type, not with --glob: that would bring back files that git ignores.
        options += [f"--type-add=wanted:{by_name}", "--type=wanted"]
    pattern = query.pattern if query.literal else _LAST.sub(r"\1$", query.pattern)
    return [*options, "-e", pattern, "--", f"./{scope.single_file or ''}"]
