"""The known language servers, and how the one for a file is found."""

import fnmatch
import shlex
from collections.abc import Callable
from pathlib import Path

from tui_agent.files.nearest import nearest_files
from tui_agent.lazy import frozen
from tui_agent.processes.own_programs import find_own_program, find_program
from tui_agent.tools.language_servers.settings import CodeSettings

MAX_NAMES = 3_000
"""Maximum file names seen to find a project's languages, nearest first."""
MAX_DEPTH = 4
_LEFT_OUT = frozenset({"node_modules", "target", "dist", "build", "vendor", "venv", "__pycache__"})

_LOAD_ON_DEMAND = frozenset({"basedpyright", "pyright", "pylsp", "typescript-language-server"})
"""Servers that load everything a request needs before they answer, so loading needn't be
awaited."""
_READY_WORDS = dict.fromkeys(("basedpyright", "pyright"), r"(Found [\d,]+|No) source files?\b")


@frozen
class Language:
    """A language with its servers, preferred first.

    ``suffixes`` has the protocol's language id by file suffix.
    """

    name: str
    suffixes: dict[str, str]
    servers: tuple[tuple[str, ...], ...]


@frozen
class ServerCommand:
    """The command of a server; ``is_users`` is True if the settings name it."""

    language: Language
    words: tuple[str, ...]
    is_users: bool = False

    @property
    def name(self) -> str:
        return Path(self.words[0]).name.removesuffix("-langserver")

    @property
    def ready_words(self) -> str:
        """The server's log message when it has loaded the project, "" if it logs none."""
        return _READY_WORDS.get(self.name, "")

    @property
    def loads_first(self) -> bool:
        """Whether the server's answers are incomplete until it has loaded the project."""
        return self.name not in _LOAD_ON_DEMAND


LANGUAGES = (
    Language(
        "Python",
        {".py": "python", ".pyi": "python"},
        (
            ("basedpyright-langserver", "--stdio"),
            ("pyright-langserver", "--stdio"),
            ("pylsp",),
        ),
    ),
    Language(
        "TypeScript",
        {
            ".ts": "typescript",
            ".mts": "typescript",
            ".cts": "typescript",
            ".tsx": "typescriptreact",
            ".js": "javascript",
            ".mjs": "javascript",
            ".cjs": "javascript",
            ".jsx": "javascriptreact",
        },
        (("typescript-language-server", "--stdio"),),
    ),
    Language("Go", {".go": "go"}, (("gopls",),)),
    Language("Rust", {".rs": "rust"}, (("rust-analyzer",),)),
    Language(
        "C++",
        {
            ".c": "c",
            ".h": "cpp",
            ".cc": "cpp",
            ".cpp": "cpp",
            ".cxx": "cpp",
            ".hh": "cpp",
            ".hpp": "cpp",
        },
        (("clangd",),),
    ),
)


def language_of(path: str, settings: CodeSettings) -> Language | None:
    """Return the language of a file by its name, None for a file that no server could know."""
    name = Path(path).name
    suffix = Path(path).suffix.lower()
    for pattern in settings.servers:
        if fnmatch.fnmatchcase(name, pattern):
            return Language(pattern, {suffix: suffix.removeprefix(".")}, ())
    return next((language for language in LANGUAGES if suffix in language.suffixes), None)


def find_server(language: Language, root: Path, settings: CodeSettings) -> ServerCommand | None:
    """Return the server of a language: the settings', else the project's own, else one on ``PATH``."""
    chosen = settings.servers.get(language.name)
    if chosen is not None:
        words = tuple(shlex.split(chosen))
        return ServerCommand(language, words, is_users=True) if words else None
    for name, *options in language.servers:
        if (path := find_own_program(name, root, root)) is not None:
            return ServerCommand(language, (path, *options))
    for name, *options in language.servers:
        if (path := find_program(name, root)) is not None:
            return ServerCommand(language, (path, *options))
    return None


def has_server(root: Path, settings: CodeSettings, has_sandbox: Callable[[], bool]) -> bool:
    """Return True if a server can run for one of the nearest files. Takes some milliseconds."""
    served = {pattern for pattern, command in settings.servers.items() if command.strip()}
    found = {one.name for one in LANGUAGES if find_server(one, root, settings) is not None}
    if found and has_sandbox():
        served |= found
    if not served:
        return False
    rows = nearest_files([root], _is_of_project, names=MAX_NAMES, depth=MAX_DEPTH)
    for row in rows:
        language = language_of(row.name, settings)
        if language is not None and language.name in served:
            return True
    return False


def _is_of_project(directory: str) -> bool:
    """Return True if a directory's name is neither hidden nor one for output."""
    return not directory.startswith(".") and directory not in _LEFT_OUT
