"""Answers a call of the ``code`` tool: finds the symbol, asks servers, returns places in files."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from tui_agent.errors import ToolError
from tui_agent.lazy import frozen
from tui_agent.path_checks import is_directory, is_file
from tui_agent.tools.language_servers.answers import (
    Place,
    Position,
    Symbol,
    callers_of,
    hover_text,
    places_of,
    symbols_of,
)
from tui_agent.tools.language_servers.connection import ServerError
from tui_agent.tools.language_servers.known import (
    LANGUAGES,
    ServerCommand,
    find_server,
    language_of,
)
from tui_agent.tools.language_servers.place import ServerPlace
from tui_agent.tools.language_servers.server import LanguageServer
from tui_agent.tools.language_servers.servers import LanguageServers
from tui_agent.tools.language_servers.spots import (
    MAX_ABOVE,
    MAX_NAMED,
    Mention,
    Spot,
    at_name,
    lines_in,
    mentions,
    names_of,
    spots_in_line,
    words_in,
)
from tui_agent.tools.searching import cut_line
from tui_agent.whole_numbers import plural

MAX_CANDIDATES = 20
"""Maximum number of files for which a language server is asked about the declaration of a name."""
MAX_SPOTS = 5
"""Maximum number of declarations of one name about which language servers are asked."""
MAX_HOVER = 8_000
"""Maximum number of characters of a language server's hover text."""

_KNOWS_SYMBOLS = "workspaceSymbolProvider"
_AMBIGUOUS = (
    "[{name} is declared in {count} places. To choose one, ask with Class.name or path:line.]"
)
_ELSEWHERE = "[The project has no declaration of {name}. This answer is for its use in {place}.]"
_LOADING = "[{name} is still loading the project, so results may be missing. Ask again later.]"

Operation = Literal["definition", "references", "implementations", "callers", "hover", "symbols"]
_METHODS = {
    "definition": ("textDocument/definition", "definitionProvider"),
    "references": ("textDocument/references", "referencesProvider"),
    "implementations": ("textDocument/implementation", "implementationProvider"),
    "callers": ("textDocument/prepareCallHierarchy", "callHierarchyProvider"),
    "hover": ("textDocument/hover", "hoverProvider"),
}
"""For each operation of the ``code`` tool, the protocol's request and the capability that a server
needs for it."""


@frozen
class Question:
    """A question about a symbol or a place, from a call of the ``code`` tool.

    ``path`` is the file or directory to search, absolute and without links; ``shown`` is its name
    for the model. ``symbol`` is "" if the call names no symbol. ``line`` and ``column`` count from
    1.
    """

    op: Operation
    symbol: str
    path: Path
    shown: str
    line: int | None = None
    column: int | None = None


@frozen
class Answer:
    """The places that a ``code`` call found, and notes for the model.

    For ``hover``, ``text`` is the server's text about the only place; otherwise it is "".
    """

    spots: Sequence[Spot]
    text: str = ""
    notes: tuple[str, ...] = ()


class Lookup:
    """Answers the question of one call of the ``code`` tool.

    Its methods raise ToolError, with a message for the model, if they find nothing to ask about or
    a server fails.
    """

    def __init__(
        self, servers: LanguageServers, place: ServerPlace, report: Callable[[str], None]
    ) -> None:
        """Create a lookup for one call; ``report`` shows the user what the call is waiting for."""
        self._servers = servers
        self._settings = servers.settings
        self._place = place
        self._report = report
        self._commands: dict[str, ServerCommand | None] = {}
        self._asked: list[LanguageServer] = []
        self._notes: list[str] = []

    async def answer(self, question: Question) -> Answer:
        if question.op == "symbols":
            return self._answer(_sorted(await self._symbols(question.symbol, question.path)))
        if not question.symbol and question.line is None:
            raise ToolError("Name a symbol, or a line as path:line.")
        if question.line is None:
            names = names_of(question.symbol)
            declared = await self._declarations(names, question.path)
            if declared and question.op == "definition":
                return self._answer(declared)
            if len(declared) > 1:
                self._notes.append(_AMBIGUOUS.format(name=question.symbol, count=len(declared)))
            spots = declared or await self._mentioned(names[-1], question.path)
        else:
            spots = await self._in_line(question, question.line)
        if question.op == "hover":
            return await self._hover(spots)
        shown = [spot for spot in spots if not self._place.withholds(spot.path)]
        places: list[Spot] = []
        for spot in shown[:MAX_SPOTS]:
            places += await self._places(question.op, spot)
        if question.op == "definition":
            return self._answer(places)
        return self._answer(_sorted(places))

    def _answer(self, spots: Iterable[Spot], text: str = "") -> Answer:
        loading = [_LOADING.format(name=one.name) for one in self._asked if one.is_loading]
        return Answer(list(dict.fromkeys(spots)), text, (*self._notes, *loading))

    # -- finding the symbol ------------------------------------------------------------------------

    async def _declarations(self, names: tuple[str, ...], where: Path) -> list[Spot]:
        """Return the places where a symbol is declared in a file or directory; [] if none.

        ``names`` are the parts of ``Class.name``. In a directory, up to `MAX_CANDIDATES` files with
        a line that looks like a declaration are searched; if there is none, the first file that
        mentions the name is searched. Servers with an index of the project are asked, too. If more
        than `MAX_CANDIDATES` files seem to declare the name, all servers are asked.
        """
        found: list[Spot] = []
        files = [where]
        seem: set[Path] = set()
        if is_directory(where):
            mentioned = await self._mentions(names[-1], where, "--word-regexp")
            files = _files(mentioned)
            seem = {mention.path for mention in mentioned if mention.is_declared}
        for path in files[: len(seem) or 1][:MAX_CANDIDATES]:
            symbols = await self._symbols_in(path)
            found += [Spot(path, symbol.start) for symbol in symbols if symbol.is_called(names)]
        # To find a symbol by name, a server without an index would have to read the whole project.
        # So it is asked only if too many files seem to declare the name.
        asked = files
        if len(seem) <= MAX_CANDIDATES:
            asked = [path for path in files if self._is_indexed(path)]
        if is_directory(where):
            for spot, symbol in await self._project_symbols(names[-1], asked):
                if symbol.is_called(names) and spot.path.is_relative_to(where):
                    found.append(spot)
        named = [await asyncio.to_thread(at_name, spot, names[-1]) for spot in found]
        return list(dict.fromkeys(named))

    async def _mentioned(self, name: str, where: Path) -> list[Spot]:
        """Return a list with the first use of a name that the project doesn't declare.

        Adds a note for the model that names the place. Raises ToolError if no code file contains
        the name.
        """
        for mention in await self._mentions(name, where, "--word-regexp"):
            lines = await asyncio.to_thread(lines_in, mention.path)
            if mention.line < len(lines):
                spots = spots_in_line(mention.path, mention.line, lines[mention.line], name)
                place = f"{mention.path.name}:{mention.line + 1}"
                self._notes.append(_ELSEWHERE.format(name=name, place=place))
                return spots[:1]
        raise ToolError(f"The name {name} is in no code file. Search for text with grep.")

    async def _in_line(self, question: Question, number: int) -> list[Spot]:
        """Return a list with the place in line ``number`` (from 1) that the question is about.

        The place is that of the symbol or the column that the question names. If the question names
        neither, it is that of the line's only word, or of the only name that is declared in the
        line. Raises ToolError if there is no such place, or more than one declaration.
        """
        path = question.path
        lines = await asyncio.to_thread(lines_in, path)
        if number > len(lines):
            raise ToolError(f"{question.shown} has {plural(len(lines), 'line')}.")
        line = lines[number - 1]
        if question.symbol:
            name = names_of(question.symbol)[-1]
            spots = spots_in_line(path, number - 1, line, name)
            if not spots:
                raise ToolError(f"Line {number} has no {name}: {cut_line(line.strip())}")
            return spots[:1]
        if question.column is not None:
            return [Spot(path, Position(line=number - 1, character=question.column - 1))]
        begun: dict[Spot, None] = {}
        for symbol in await self._symbols_in(path):
            if number - MAX_ABOVE < symbol.start.line + 1 <= number:
                spot = Spot(path, symbol.start)
                named = await asyncio.to_thread(at_name, spot, symbol.names[-1])
                begun[named] = None
        declared = [spot for spot in begun if spot.at.line == number - 1]
        words = words_in(line)
        if len(words) == 1:
            declared = spots_in_line(path, number - 1, line, words[0])
        if len(declared) != 1:
            choice = ", ".join(words[:MAX_NAMED]) or "none"
            raise ToolError(f"Give one of line {number}'s names as symbol: {choice}.")
        return declared

    async def _symbols(self, symbol: str, path: Path) -> list[Spot]:
        """Return the places of the symbols in a file or directory whose names contain ``symbol``.

        In a directory, the language servers decide which names match.
        """
        if is_file(path):
            found = await self._symbols_in(path)
            wanted = symbol.lower()
            return [Spot(path, one.start) for one in found if wanted in one.names[-1].lower()]
        if not symbol:
            raise ToolError("Set path to a file, or symbol to part of a name.")
        mentioned = await self._mentions(symbol, path, "--ignore-case")
        known = await self._project_symbols(symbol, _files(mentioned))
        is_able = any(one.capabilities.get(_KNOWS_SYMBOLS) for one in self._asked)
        if self._asked and not is_able:
            raise ToolError(
                f"{self._asked[0].name} lists only a file's symbols. Set path to a file."
            )
        return [spot for spot, _symbol in known if spot.path.is_relative_to(path)]

    async def _project_symbols(self, name: str, files: Sequence[Path]) -> list[tuple[Spot, Symbol]]:
        """Return the project's symbols that match a name, from the language servers for ``files``.

        Only servers that can list the symbols of the whole project are asked. They decide which
        symbols match.
        """
        firsts: dict[tuple[str, ...], Path] = {}
        for file in files:
            command = self._command(file)
            if command is not None:
                firsts.setdefault(command.words, file)
        found: list[tuple[Spot, Symbol]] = []
        for file in firsts.values():
            server = await self._server(file)
            if not server.capabilities.get(_KNOWS_SYMBOLS):
                continue
            await self._open(server, file)
            for symbol in symbols_of(await self._ask(server, "workspace/symbol", {"query": name})):
                path = self._place.path_of(symbol.uri)
                if path is not None:
                    found.append((Spot(path, symbol.start), symbol))
        return found

    async def _mentions(self, name: str, where: Path, *options: str) -> list[Mention]:
        """Return the lines that contain a name, in files for which there is a language server.

        ``where`` is the file or directory to search, ``options`` are further options for ripgrep.
        Files that language servers aren't allowed to see are left out. Raises ToolError if only
        files without a server contain the name.
        """
        root = where if is_directory(where) else where.parent
        globs = [f"*{suffix}" for language in LANGUAGES for suffix in language.suffixes]
        globs += self._settings.servers
        found = await mentions(name, root, globs, *options)
        if is_file(where):
            found = [mention for mention in found if mention.path == where]
        usable = [mention for mention in found if self._command(mention.path) is not None]
        if found and not usable:
            raise self._no_server(found[0].path)
        return [mention for mention in usable if not self._place.withholds(mention.path)]

    # -- asking servers ----------------------------------------------------------------------------

    def _command(self, path: Path) -> ServerCommand | None:
        """Return the command line of the server for a file; None if none is known or installed."""
        language = language_of(path.name, self._settings)
        if language is None:
            return None
        if language.name not in self._commands:
            found = find_server(language, self._place.project, self._settings)
            self._commands[language.name] = found
        return self._commands[language.name]

    async def _server(self, path: Path) -> LanguageServer:
        command = self._command(path)
        if command is None:
            raise self._no_server(path)
        try:
            server = await self._servers.running(command, self._place, self._report)
            if server not in self._asked:
                self._asked.append(server)
                await server.documents.send_changes()
        except ServerError as error:
            raise ToolError(f"{command.name} {error}. Search with grep.") from None
        return server

    def _is_indexed(self, path: Path) -> bool:
        command = self._command(path)
        return command is not None and command.loads_first

    def _no_server(self, path: Path) -> ToolError:
        language = language_of(path.name, self._settings)
        if language is None:
            return ToolError(f"No language server is known for {path.name}. Search with grep.")
        names = " or ".join(words[0] for words in language.servers) or "none is set"
        return ToolError(
            f"No language server for {language.name} is installed ({names}). Search with grep."
        )

    async def _open(self, server: LanguageServer, path: Path) -> None:
        if self._place.withholds(path):
            raise ToolError(
                f"{server.name} is not allowed to see {path.name}, which may contain secrets."
            )
        try:
            await server.documents.open(path)
        except ServerError as error:
            raise ToolError(f"{server.name} {error}.") from None

    async def _ask(self, server: LanguageServer, method: str, params: dict[str, Any]) -> Any:
        if server.is_loading:
            self._report(f"{server.name} is loading the project.\n")
        try:
            return await server.ask(method, params)
        except ServerError as error:
            raise ToolError(f"{server.name} {error}.") from None

    async def _symbols_in(self, path: Path) -> list[Symbol]:
        server = await self._server(path)
        await self._open(server, path)
        document = {"textDocument": {"uri": self._place.uri_of(path)}}
        return symbols_of(await self._ask(server, "textDocument/documentSymbol", document))

    async def _ask_at(self, op: str, spot: Spot, **more: Any) -> tuple[LanguageServer, Any]:
        """Ask the server of a place's file about the place; return the server and its result.

        ``more`` are further parameters of the request.
        """
        server = await self._server(spot.path)
        method, capability = _METHODS[op]
        if not server.capabilities.get(capability):
            raise ToolError(f"{server.name} does not support {op}.")
        await self._open(server, spot.path)
        params = {
            "textDocument": {"uri": self._place.uri_of(spot.path)},
            "position": {"line": spot.at.line, "character": spot.at.character},
            **more,
        }
        return server, await self._ask(server, method, params)

    async def _places(self, op: Operation, spot: Spot) -> list[Spot]:
        if op == "references":
            around = {"includeDeclaration": True}
            _server, result = await self._ask_at(op, spot, context=around)
            return self._spots(places_of(result))
        server, result = await self._ask_at(op, spot)
        if op != "callers":
            return self._spots(places_of(result))
        items = result if isinstance(result, list) else []
        calls: list[Place] = []
        for item in items[:MAX_SPOTS]:
            asked = await self._ask(server, "callHierarchy/incomingCalls", {"item": item})
            calls += callers_of(asked)
        return self._spots(calls)

    async def _hover(self, spots: Sequence[Spot]) -> Answer:
        for spot in spots:
            _server, result = await self._ask_at("hover", spot)
            text = hover_text(result)
            if text:
                return self._answer([spot], text[:MAX_HOVER])
        return self._answer([])

    def _spots(self, places: Iterable[Place]) -> list[Spot]:
        spots = []
        for place in places:
            path = self._place.path_of(place.uri)
            if path is not None:
                spots.append(Spot(path, place.start))
        return spots


def _files(found: Iterable[Mention]) -> list[Path]:
    """Return the files that contain the mentions, each file once, in the order of the mentions."""
    return list(dict.fromkeys([mention.path for mention in found]))


def _sorted(spots: Iterable[Spot]) -> list[Spot]:
    return sorted(spots, key=lambda spot: (spot.path, spot.at.line, spot.at.character))
