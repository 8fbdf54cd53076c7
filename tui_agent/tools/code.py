"""The ``code`` tool: finds definitions, references, symbols and more with language servers."""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from tui_agent.context.projection import ModelTraits
from tui_agent.errors import ToolError
from tui_agent.files.secret_files import is_secret_file, shown_line, shown_quote
from tui_agent.lazy import LazyPattern, cached_property, dataclass
from tui_agent.path_checks import is_file, real_path
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.processes.capture import plain_text
from tui_agent.session.entries import ToolMetadata
from tui_agent.session.tool_traits import ToolTraits
from tui_agent.tools.base import Tool, ToolContext, ToolInput, ToolResult
from tui_agent.tools.language_servers.known import (
    LANGUAGES,
    Language,
    find_server,
    has_server,
    language_of,
)
from tui_agent.tools.language_servers.settings import CodeSettings
from tui_agent.tools.outputs import Output, counted, finish
from tui_agent.tools.paths import Location, find, locate, missing, path_needs, relocate
from tui_agent.tools.searching import cut_line

if TYPE_CHECKING:
    from tui_agent.tools.language_servers.lookup import Answer, Question
    from tui_agent.tools.language_servers.server import LanguageServer
    from tui_agent.tools.language_servers.servers import LanguageServers
    from tui_agent.tools.language_servers.spots import Spot

# The modules that talk to servers are imported by the first call.

MAX_ROWS = 200
"""Maximum number of places that a result shows."""
MAX_FILES = 20_000
"""Maximum number of files in a server's answer that are considered."""

_PLACE = LazyPattern(r"(.+?):(\d{1,9})(?::(\d{1,9}))?:?")
"""Matches ``path:line`` and ``path:line:column``."""


class CodeInput(ToolInput):
    """Arguments of the ``code`` tool."""

    op: Literal["definition", "references", "implementations", "callers", "hover", "symbols"]
    symbol: str = ""
    """Name of a symbol, or ``Class.name``. For ``symbols``, a part of a name. "" if ``path`` names
    the place."""
    path: str = Field(default="", description="or path:line")


class CodeTool(Tool[CodeInput]):
    """Answers questions about code with language servers, which are started on first use.

    The servers keep running for later calls. They run in the sandbox. Without a sandbox, only
    servers that the user's settings name can run.
    """

    name: ClassVar[str] = "code"
    description: ClassVar[str] = "Ask the language server."
    Input = CodeInput
    traits = ToolTraits(
        kind="search",
        other_names="lsp gotodefinition findreferences findsymbol codenavigation",
        explores=True,
        repeatable=True,
        quotes=True,
        counts="place",
        runs_of="symbol",
        output="matches",
        says_arguments=True,
    )
    read_only: ClassVar[bool] = True

    def __init__(
        self,
        project: Path,
        settings: CodeSettings,
        has_sandbox: Callable[[], bool] = lambda: True,
    ) -> None:
        """Create the tool for a project; ``has_sandbox`` returns True if there is a sandbox."""
        self._project = real_path(project)
        self._has_sandbox = has_sandbox
        self._settings = settings
        self._servers: LanguageServers | None = None

    def offered_to(self, model: ModelTraits) -> bool:  # noqa: ARG002 - as inherited
        return self._settings.enabled and self._can_act

    @cached_property
    def _can_act(self) -> bool:
        """Whether a server can run for one of the project's languages.

        This is decided only once, because a change of the tools would break the prompt cache.
        """
        return has_server(self._project, self._settings, self._has_sandbox)

    def needs(self, arguments: CodeInput, context: ToolContext) -> tuple[PermissionNeed, ...]:
        path, _line, _column = _place_of(arguments, context)
        return path_needs(Permission.READ, find(path, context))

    async def run(self, arguments: CodeInput, context: ToolContext) -> ToolResult:
        from tui_agent.tools.language_servers.lookup import Lookup
        from tui_agent.tools.language_servers.place import ServerPlace
        from tui_agent.tools.language_servers.servers import LanguageServers

        question = await asyncio.to_thread(_question, arguments, context)
        if self._servers is None:
            self._servers = LanguageServers(self._settings)
        place = ServerPlace(
            real_path(context.project),
            context.environment,
            context.sandbox,
            context.view.reading,
            stands_for=context.stands_for,
        )
        answer = await Lookup(self._servers, place, context.report).answer(question)
        output = await asyncio.to_thread(_output, self.title(arguments), answer, context)
        return await finish(output, context)

    async def aclose(self, project: Path) -> None:
        if self._servers is not None:
            await self._servers.aclose(real_path(project))

    def running_for(self, path: Path, project: Path) -> "LanguageServer | None":
        """Return the running server for a file's language in a project; None if none is running."""
        language = language_of(path.name, self._settings)
        if self._servers is None or language is None:
            return None
        return self._servers.of(real_path(project), language)

    def server_lines(self) -> Iterator[str]:
        """Yield the lines that inform the user about the language servers.

        The first lines show the servers that the settings name. Then each language has a line that
        names its server and the server's state. If the tool is switched off, there is only one
        line. Looks for programs on disk: call it in a thread.
        """
        if not self._settings.enabled:
            yield "off (code.enabled is false)"
            return
        for pattern, command in self._settings.servers.items():
            yield f"{pattern}: {command or 'none'}"
        for language in LANGUAGES:
            found = find_server(language, self._project, self._settings)
            names = " or ".join(words[0] for words in language.servers)
            yield f"{language.name}: {self._state(language, found.words[0] if found else '', names)}"

    def _state(self, language: Language, found: str, names: str) -> str:
        if not found:
            return f"{names}, not found"
        server = None
        if self._servers is not None:
            server = self._servers.of(self._project, language)
        if server is None:
            return found
        return f"{found}, {'loading' if server.is_loading else 'running'}"

    def title(self, arguments: CodeInput) -> str:
        return " ".join(filter(None, [arguments.op, arguments.symbol, arguments.path]))


def _place_of(arguments: CodeInput, context: ToolContext) -> tuple[str, int | None, int | None]:
    """Return the path that a call names, and the line and column after it.

    The line and the column count from 1, and are None if they are not given. If the call names no
    path, the project's path is returned.
    """
    path = arguments.path.strip() or str(context.project)
    found = _PLACE.fullmatch(path)
    if found is None or os.path.lexists(context.cwd / path):
        return path, None, None
    column = max(int(found[3]), 1) if found[3] else None
    return found[1], max(int(found[2]), 1), column


def _question(arguments: CodeInput, context: ToolContext) -> "Question":
    """Return the question that a ``code`` call asks the language servers.

    Raises ToolError if the path doesn't exist, or leads to a place that was not allowed.
    """
    from tui_agent.tools.language_servers.lookup import Question

    path, line, column = _place_of(arguments, context)
    location = relocate(path, Permission.READ, context)
    if not os.path.lexists(location.real):
        raise missing(location, context)
    return Question(
        arguments.op, arguments.symbol, location.real, location.shown, line=line, column=column
    )


# -- what is shown ---------------------------------------------------------------------------------

Access = Literal["shown", "named", "hidden", "ignored"]
"""How places in a file are treated. "shown" places are listed with the text of the line, "named"
ones only with path and line number. "hidden" places are only counted, and "ignored" ones are left
out."""


@dataclass
class _Rows:
    """Collects the output lines for the places in a language server's answer.

    ``accesses`` and ``texts`` are caches of how each file may be shown, and of its lines. The
    methods read files, so call them in a thread.
    """

    context: ToolContext
    lines: list[str]
    counts: Counter[Access]
    accesses: dict[Path, tuple[Access, Location]]
    texts: dict[Path, list[str]]

    def add(self, spot: "Spot") -> None:
        """Count a place that a server found, and add an output line for it.

        No line is added if the file is hidden or ignored, or if there are already `MAX_ROWS` lines.
        """
        if spot.path not in self.accesses:
            location = locate(str(spot.path), self.context)
            self.accesses[spot.path] = self._access(location), location
        access, location = self.accesses[spot.path]
        self.counts[access] += 1
        if access in {"hidden", "ignored"} or len(self.lines) >= MAX_ROWS:
            return
        place = f"{location.shown}:{spot.at.line + 1}"
        if access == "shown":
            place = f"{place}: {self._text(location.real, spot.at.line)}".rstrip()
        self.lines.append(place)

    def _access(self, location: Location) -> Access:
        """Return how places in a file may be shown under the permission rules.

        The result is "shown" for files that may be read, "named" for files outside the project
        about which the user would have to be asked, and "hidden" for all other existing files. It
        is "ignored" for missing files, and for all files after the first ``MAX_FILES``.
        """
        if len(self.accesses) >= MAX_FILES or not is_file(location.real):
            return "ignored"
        allowed = self.context.allowed or frozenset()
        verdicts = {
            (need.permission, self.context.verdict(need))
            for need in path_needs(Permission.READ, location)
            if (need.permission, need.pattern) not in allowed
        }
        refused = {one for one in verdicts if one[1] != "allow"}
        if not refused:
            return "shown"
        return "named" if refused == {(Permission.EXTERNAL_DIRECTORY, "ask")} else "hidden"

    def _text(self, path: Path, line: int) -> str:
        """Return the text of the line ``line`` (from 0), redacted; "" if it can't be read.

        A long line is cut.
        """
        from tui_agent.tools.language_servers.spots import lines_in

        if path not in self.texts:
            try:
                self.texts[path] = lines_in(path)
            except ToolError:
                self.texts[path] = []
        lines = self.texts[path]
        if line >= len(lines):
            return ""
        text = cut_line(lines[line])
        # A file that is a secret as a whole is shown only if the user has allowed reading it.
        return text if is_secret_file(path) else shown_line(path, line + 1, text)


def _output(title: str, answer: "Answer", context: ToolContext) -> Output:
    rows = _Rows(context, [], Counter(), {}, {})
    for spot in {(spot.path, spot.at.line): spot for spot in answer.spots}.values():
        rows.add(spot)
    total = rows.counts["shown"] + rows.counts["named"]
    text = "\n".join(rows.lines)
    if answer.text and rows.counts["shown"]:
        said = plain_text(answer.text.encode(errors="replace"))
        text = f"{text}\n{shown_quote(answer.spots[0].path, said)}"

    def footer(shown: int) -> str:
        return "\n".join([*_notes(rows.counts, shown), *answer.notes])

    return Output(
        text=text or "Nothing found.",
        title=f"{title} · {counted(total, 'place')}",
        footer=footer(len(rows.lines)),
        cut_hint=lambda cut: footer(min(cut.kept_lines, len(rows.lines))),
        metadata=ToolMetadata(count=total),
    )


def _notes(counts: Counter[Access], shown: int) -> Iterator[str]:
    total = counts["shown"] + counts["named"]
    if shown < total:
        yield f"[{shown:,} of {total:,} places. Use grep to find the rest.]"
    if counts["named"]:
        yield "[Lines of files outside the project are not shown. Read the file to see them.]"
    if counts["hidden"]:
        yield f"[Not shown: {counted(counts['hidden'], 'place')} in files that rules deny or that may hold secrets.]"
