"""The formats sessions are imported from: one row each.

A row's module is imported when a file is looked at.
"""

from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_agent.lazy import dataclass
from tui_agent.path_checks import is_directory, is_file, is_there

if TYPE_CHECKING:
    from tui_agent.session.formats.incoming import IncomingSession
    from tui_agent.session.formats.reading import SourceFile


@dataclass(frozen=True, kw_only=True)
class Format:
    """The session files of one program.

    The module ``tui_agent.session.formats.MODULE`` has a `SessionReader` named ``Reader``, or,
    where a file can hold several sessions, ``read(source)``, which yields them (those that come
    together are stored together or not at all). It has any of ``is_line(node)`` (whether one of the
    first lines shows that the file is this program's), ``is_file(source)`` (the same of the whole
    file) and ``project_of(source)`` (the directory its sessions worked in, where the first lines
    don't say it).
    """

    name: str
    """The value of ``--from``."""
    program: str
    """Its name as people write it."""
    module: str
    file_names: tuple[str, ...] = ("*.jsonl",)
    """Patterns of the names of its files in a directory that is imported."""
    places: tuple[tuple[str, str, str], ...] = ()
    """Where it keeps them: an environment variable, its default below the home directory, a
    pattern."""

    def read(self, source: "SourceFile") -> "Iterator[Sequence[IncomingSession]]":
        if (read := self.function("read")) is not None:
            yield from read(source)
        else:
            yield [self.function("Reader")(source).read()]

    def function(self, name: str) -> Any:
        """Return the module's attribute of a name, None where it has none."""
        return getattr(import_module(f"tui_agent.session.formats.{self.module}"), name, None)


FORMATS: tuple[Format, ...] = (
    Format(
        name="tui-agent", program="tui-agent", module="native_store", file_names=("*.jsonl", "*.db")
    ),
    Format(
        name="pi",
        program="Pi",
        module="pi",
        places=(("PI_CODING_AGENT_DIR", ".pi/agent", "sessions/**/*.jsonl"),),
    ),
    Format(
        name="codex",
        program="Codex",
        module="codex",
        places=(
            ("CODEX_HOME", ".codex", "sessions/**/rollout-*.jsonl"),
            ("CODEX_HOME", ".codex", "archived_sessions/**/rollout-*.jsonl"),
        ),
    ),
    Format(
        name="gemini-cli",
        program="Gemini CLI",
        module="gemini",
        file_names=("*.jsonl", "*.json"),
        places=(("", ".gemini", "tmp/*/chats/session-*.json*"),),
    ),
    Format(
        name="qwen-code",
        program="Qwen Code",
        module="qwen_code",
        places=(("QWEN_HOME", ".qwen", "projects/*/chats/*.jsonl"),),
    ),
    Format(
        name="copilot-cli",
        program="Copilot CLI",
        module="copilot",
        places=(("COPILOT_HOME", ".copilot", "session-state/*/events.jsonl"),),
    ),
    Format(
        name="claude-code",
        program="Claude Code",
        module="claude_code",
        places=(("CLAUDE_CONFIG_DIR", ".claude", "projects/*/*.jsonl"),),
    ),
    Format(
        name="opencode",
        program="OpenCode",
        module="opencode",
        file_names=("*.json", "*.db"),
        places=(
            ("XDG_DATA_HOME", ".local/share", "opencode/opencode*.db"),
            ("XDG_DATA_HOME", ".local/share", "opencode/storage/session/*/ses_*.json"),
        ),
    ),
)
"""A file has the format of the first row that recognises it."""


def format_of(source: "SourceFile") -> Format:
    """Return the format of a file.

    Raises:
        NoConversation: it is not a known one.
        ImportRefused: the file can't be read.
    """
    from tui_agent.session.formats.reading import NoConversation, shown_name

    for row in FORMATS:
        if (is_own := row.function("is_file")) is not None and is_own(source):
            return row
    # No program keeps a session as one JSON list: some keep logs or pieces of one so.
    is_list = source.path.suffix == ".json" and source.head.lstrip().startswith(b"[")
    if not (source.is_database or source.is_document or is_list):
        for node in source.first_nodes():
            for row in FORMATS:
                if (is_line := row.function("is_line")) is not None and is_line(node):
                    return row
    names = ", ".join(row.name for row in FORMATS)
    raise NoConversation(
        f"{shown_name(source.path)} is none of the known formats; name its format with --from ({names})."
    )


def files_of(path: Path) -> list[Path]:
    """Return the files that may hold sessions: the one named, or all below a directory, in order.

    Raises:
        ImportRefused: there is nothing.
    """
    from tui_agent.session.formats.reading import ImportRefused

    if is_directory(path):
        patterns = dict.fromkeys(pattern for row in FORMATS for pattern in row.file_names)
        found = sorted(
            {file for pattern in patterns for file in path.rglob(pattern) if is_file(file)}
        )
        if not found:
            raise ImportRefused(f"{path} holds no file of a known format ({', '.join(patterns)}).")
        return found
    if not is_there(path):
        raise ImportRefused(f"There is no file or directory {path}.")
    if not is_file(path):
        raise ImportRefused(f"{path} is not a file.")
    return [path]
