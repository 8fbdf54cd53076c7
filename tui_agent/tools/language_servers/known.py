"""Lists the known language servers by language, and finds the language server for a file."""

import fnmatch
import shlex
from collections.abc import Callable
from pathlib import Path

from tui_agent.files.nearest import nearest_files
from tui_agent.lazy import frozen
from tui_agent.processes.own_programs import find_own_program, find_program
from tui_agent.tools.language_servers.settings import CodeSettings

MAX_NAMES = 3_000
"""Maximum number of file names that are checked to find a project's languages. Names in the topmost
directories are checked first."""
MAX_DEPTH = 4
"""Maximum depth of the directories in which files are looked for to detect a project's languages.
"""
_LEFT_OUT = frozenset({"node_modules", "target", "dist", "build", "vendor", "venv", "__pycache__"})

_LOAD_ON_DEMAND = frozenset({"basedpyright", "pyright", "pylsp", "typescript-language-server"})
"""Language servers that load the files which a request needs before they answer it. So requests to
them don't wait until the whole project is loaded."""
_READY_WORDS = dict.fromkeys(("basedpyright", "pyright"), r"(Found [\d,]+|No) source files?\b")


@frozen
class Language:
    """A language with the command lines of its servers, the preferred server first.

    ``suffixes`` maps file suffixes to the protocol's language ids (".tsx": "typescriptreact"). For
    files whose server the settings name, ``name`` is the settings' pattern and ``servers`` is
    empty.
    """

    name: str
    suffixes: dict[str, str]
    servers: tuple[tuple[str, ...], ...]


@frozen
class ServerCommand:
    """A language server's command line; ``is_users`` is True if the user's settings name it."""

    language: Language
    words: tuple[str, ...]
    is_users: bool = False

    @property
    def name(self) -> str:
        return Path(self.words[0]).name.removesuffix("-langserver")

    @property
    def ready_words(self) -> str:
        """Regular expression for the message that the server logs when it has loaded the project.

        The value is "" if the server logs no such message.
        """
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
    """Return a file's language, by the patterns in the settings or else by the file's suffix.

    Returns None if neither matches.
    """
    name = Path(path).name
    suffix = Path(path).suffix.lower()
    for pattern in settings.servers:
        if fnmatch.fnmatchcase(name, pattern):
            return Language(pattern, {suffix: suffix.removeprefix(".")}, ())
    return next((language for language in LANGUAGES if suffix in language.suffixes), None)


def find_server(language: Language, root: Path, settings: CodeSettings) -> ServerCommand | None:
    """Return the command line of a language's server, from the settings, the project or ``PATH``.

    These places are searched in this order. Returns None if there is no server, or if the settings
    switch the server off.
    """
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
    """Return True if a server can run for a file in the top ``MAX_DEPTH`` levels of a project.

    Without a sandbox, only servers that the settings name can run. The function takes some
    milliseconds.
    """
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
    """Return False if a directory is hidden or has a usual name for build output or packages."""
    return not directory.startswith(".") and directory not in _LEFT_OUT
