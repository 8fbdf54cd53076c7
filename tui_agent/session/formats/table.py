"""The formats sessions are imported from: one row each, with how its files are told, read, and found."""

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path

from tui_agent.lazy import dataclass
from tui_agent.session.formats import (
    aider,
    claude_code,
    codex,
    crush,
    gemini,
    native,
    native_store,
    opencode,
    pi,
    vibe,
    vibe_logs,
)
from tui_agent.session.formats.incoming import IncomingSession
from tui_agent.session.formats.reading import ImportRefused, NoConversation, Node
from tui_agent.session.formats.source import SourceFile

__all__ = ["FORMATS", "FileFormat", "Format", "files_of", "format_named", "format_of"]


class FileFormat(StrEnum):
    """Whose file it is."""

    TUI_AGENT = "tui-agent"
    PI = "pi"
    CLAUDE_CODE = "claude-code"
    OPENCODE = "opencode"
    CODEX = "codex"
    GEMINI_CLI = "gemini-cli"
    CRUSH = "crush"
    VIBE = "vibe"
    AIDER = "aider"


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One program's files."""

    name: FileFormat
    program: str
    """As people call it."""
    read: Callable[[SourceFile], Iterator[Sequence[IncomingSession]]]
    """Yields the sessions; those that come together are stored together or not at all."""
    is_line: Callable[[Node], bool] | None = None
    """Whether one of the first lines shows that the file is this program's."""
    is_file: Callable[[SourceFile], bool] | None = None
    """Whether the file as a whole is this program's, for files that are no lines of JSON."""
    file_names: tuple[str, ...] = ("*.jsonl",)
    """Patterns of the names of its files in a directory that is imported."""
    places: tuple[tuple[str, str, str], ...] = ()
    """Where it keeps them: a variable of the environment, its default below the home directory, a pattern."""
    whole_directory: tuple[str, ...] = ()
    """Names of those of its files whose session is the whole directory they stand in."""
    project: Callable[[SourceFile], str] | None = None
    """Returns the directory a file's sessions worked in, where its first lines don't say it."""


def _tui_agent(source: SourceFile) -> Iterator[Sequence[IncomingSession]]:
    if native_store.is_store(source):
        yield from native_store.read(source)
    else:
        yield native.read(source.lines(), source.limits, cut_off=source.skip_damaged)


def _gemini(source: SourceFile) -> Iterator[Sequence[IncomingSession]]:
    if _gemini_document(source):
        yield [gemini.read([source.document()], source.limits, _gemini_project(source))]
    else:
        yield [gemini.read(source.lines(), source.limits, _gemini_project(source))]


def _gemini_document(source: SourceFile) -> bool:
    return source.is_document and gemini.is_document(source.document())


def _gemini_project(source: SourceFile) -> str:
    """Return the directory that stands beside the chats."""
    try:
        return (source.path.absolute().parent.parent / ".project_root").read_text(encoding="utf-8").strip()[:4096]
    except (OSError, UnicodeDecodeError):
        return ""


def _opencode(source: SourceFile) -> Iterator[Sequence[IncomingSession]]:
    if source.is_database:
        yield from ([session] for session in opencode.read_database(source))
    elif opencode.is_stored(source):
        yield [opencode.read_stored(source)]
    else:
        yield [opencode.read(source.document(), source.limits)]


def _is_opencode(source: SourceFile) -> bool:
    if source.is_database:
        return source.has_columns(opencode.TABLES)
    if opencode.is_stored(source):
        return True
    one_line = source.head.lstrip().startswith((b'{"info":', b'{ "info":'))
    return (one_line or source.is_document) and opencode.is_document(source.document())


def _opencode_project(source: SourceFile) -> str:
    if not source.is_database:
        return source.document().text("directory", "")
    found = opencode.projects_of(source)
    return found[0] if len(found) == 1 else f"{len(found)} projects"


FORMATS: tuple[Format, ...] = (
    Format(
        name=FileFormat.TUI_AGENT,
        program="tui-agent",
        is_line=native.is_header,
        is_file=native_store.is_store,
        read=_tui_agent,
        file_names=("*.jsonl", "*.db"),
    ),
    Format(
        name=FileFormat.PI,
        program="Pi",
        is_line=pi.is_header,
        read=lambda source: iter([[pi.read(source.lines(), source.limits)]]),
        places=(("PI_CODING_AGENT_DIR", ".pi/agent", "sessions/**/*.jsonl"),),
    ),
    Format(
        name=FileFormat.CODEX,
        program="Codex",
        is_line=codex.is_line,
        read=lambda source: iter([[codex.read(source.lines(), source.limits)]]),
        places=(
            ("CODEX_HOME", ".codex", "sessions/**/rollout-*.jsonl"),
            ("CODEX_HOME", ".codex", "archived_sessions/**/rollout-*.jsonl"),
        ),
    ),
    Format(
        name=FileFormat.GEMINI_CLI,
        program="Gemini CLI",
        is_line=gemini.is_line,
        is_file=_gemini_document,
        read=_gemini,
        file_names=("*.jsonl", "*.json"),
        places=(("", ".gemini", "tmp/*/chats/session-*.json*"),),
        project=_gemini_project,
    ),
    Format(
        name=FileFormat.VIBE,
        program="Mistral Vibe",
        is_file=lambda source: vibe.is_store(source) or vibe_logs.is_log(source),
        read=lambda source: iter([[vibe.read(source) if vibe.is_store(source) else vibe_logs.read(source)]]),
        file_names=("CURRENT", "messages.jsonl", "session_*.json"),
        whole_directory=("CURRENT", "messages.jsonl"),
        places=(
            ("VIBE_HOME", ".vibe", "logs/session/unified/*/CURRENT"),
            ("VIBE_HOME", ".vibe", "logs/session/session_*/messages.jsonl"),
            ("VIBE_HOME", ".vibe", "logs/session/session_*.json"),
        ),
        project=lambda source: (vibe if vibe.is_store(source) else vibe_logs).project_of(source),
    ),
    Format(
        name=FileFormat.CLAUDE_CODE,
        program="Claude Code",
        is_line=claude_code.is_line,
        read=lambda source: iter([[claude_code.read(source.lines(), source.limits)]]),
        places=(("CLAUDE_CONFIG_DIR", ".claude", "projects/*/*.jsonl"),),
    ),
    Format(
        name=FileFormat.OPENCODE,
        program="OpenCode",
        is_file=_is_opencode,
        read=_opencode,
        file_names=("*.json", "*.db"),
        places=(
            ("XDG_DATA_HOME", ".local/share", "opencode/opencode*.db"),
            ("XDG_DATA_HOME", ".local/share", "opencode/storage/session/*/ses_*.json"),
        ),
        project=_opencode_project,
    ),
    Format(
        name=FileFormat.CRUSH,
        program="Crush",
        is_file=lambda source: source.has_columns(crush.TABLES),
        read=lambda source: ([session] for session in crush.read(source)),
        file_names=("*.db",),
        project=crush.project_of,
    ),
    Format(
        name=FileFormat.AIDER,
        program="aider",
        is_file=aider.is_history,
        read=lambda source: ([session] for session in aider.read(source)),
        file_names=(aider.FILE_NAME,),
        project=lambda source: str(source.path.absolute().parent),
    ),
)
"""Asked in this order whose a file is."""

_HEAD_LINES = 20
"""Lines looked at to tell a format: some programs write bookkeeping first."""


def format_named(name: FileFormat) -> Format:
    """Return the row of a format."""
    return next(row for row in FORMATS if row.name is name)


def format_of(source: SourceFile) -> Format:
    """Return whose file it is.

    Raises:
        NoConversation: it is nobody's that is known.
        ImportRefused: it can't be read.
    """
    for row in FORMATS:
        if row.is_file is not None and row.is_file(source):
            return row
    if not (source.is_database or source.is_document or source.is_list):
        for number, node in enumerate(source.lines()):
            for row in FORMATS:
                if node is not None and row.is_line is not None and row.is_line(node):
                    return row
            if number + 1 >= _HEAD_LINES:
                break
    names = ", ".join(FileFormat)
    raise NoConversation(f"{source.path.name} is none of the known formats; say which with --from ({names}).")


def files_of(path: Path) -> list[Path]:
    """Return the files that may hold sessions: the one named, or all below a directory, in order.

    Raises:
        ImportRefused: there is nothing.
    """
    if path.is_dir():
        patterns = dict.fromkeys(pattern for row in FORMATS for pattern in row.file_names)
        found = sorted({file for pattern in patterns for file in path.rglob(pattern) if file.is_file()})
        if not found:
            raise ImportRefused(f"{path} holds no file of a known format ({', '.join(patterns)}).")
        return found
    if not path.exists():
        raise ImportRefused(f"There is no file or directory {path}.")
    if not path.is_file():
        raise ImportRefused(f"{path} is no file.")
    return [path]
