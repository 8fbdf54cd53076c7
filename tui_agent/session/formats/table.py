"""Lists the formats from which sessions can be imported, and detects the format of a file.

The module of a format is imported when a file is examined.
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

    The module ``tui_agent.session.formats.MODULE`` contains a `SessionReader` named ``Reader``. If
    a file can contain several sessions, the module contains ``read(source)`` instead, which yields
    the sessions in groups. The sessions of a group are stored together or not at all. The module
    may also contain:

    - ``is_line(node)``: returns True if one of the first lines shows that the file is the program's
    - ``is_file(source)``: returns True if the file as a whole is the program's
    - ``project_of(source)``: returns the directory that the file's sessions worked in, for files
      that don't have it as ``cwd`` in one of the first lines
    """

    name: str
    """Name of the format, as given to the option ``--from``."""
    program: str
    """Name, as shown to the user, of the program that writes the files."""
    module: str
    file_names: tuple[str, ...] = ("*.jsonl",)
    """Patterns for the names of the program's session files, used to import a whole directory."""
    places: tuple[tuple[str, str, str], ...] = ()
    """The places where the program keeps its session files. Each consists of an environment
    variable that may name the directory ("" for none), the default directory relative to the home
    directory, and the pattern of the files in the directory."""

    def read(self, source: "SourceFile") -> "Iterator[Sequence[IncomingSession]]":
        """Yield the sessions of a file in groups that are stored together; raises ImportRefused."""
        if (read := self.function("read")) is not None:
            yield from read(source)
        else:
            yield [self.function("Reader")(source).read()]

    def function(self, name: str) -> Any:
        """Return the function or class ``name`` of this format's module; None if it has none."""
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
"""All formats that can be imported. If several recognise a file, the first one is used."""


def format_of(source: "SourceFile") -> Format:
    """Return the format of a file.

    Raises:
        NoConversation: the file has no known format.
        ImportRefused: the file can't be read.
    """
    from tui_agent.session.formats.reading import NoConversation, shown_name

    for row in FORMATS:
        if (is_own := row.function("is_file")) is not None and is_own(source):
            return row
    # No program stores a session as a single JSON list. Files with such a list are logs or parts of
    # sessions.
    is_list = source.path.suffix == ".json" and source.head.lstrip().startswith(b"[")
    if not (source.is_database or source.is_document or is_list):
        for node in source.first_nodes():
            for row in FORMATS:
                if (is_line := row.function("is_line")) is not None and is_line(node):
                    return row
    names = ", ".join(row.name for row in FORMATS)
    raise NoConversation(
        f"{shown_name(source.path)} has none of the known formats. Name the format with --from ({names})."
    )


def files_of(path: Path) -> list[Path]:
    """Return the files to import for a path: the file itself, or the files in a directory, sorted.

    Files in a directory are found at any depth if their names match the patterns of a known format.

    Raises:
        ImportRefused: the path is neither a file nor a directory, or the directory has no such
            file.
    """
    from tui_agent.session.formats.reading import ImportRefused

    if is_directory(path):
        patterns = dict.fromkeys(pattern for row in FORMATS for pattern in row.file_names)
        found = sorted(
            {file for pattern in patterns for file in path.rglob(pattern) if is_file(file)}
        )
        if not found:
            raise ImportRefused(f"{path} has no file of a known format ({', '.join(patterns)}).")
        return found
    if not is_there(path):
        raise ImportRefused(f"There is no file or directory {path}.")
    if not is_file(path):
        raise ImportRefused(f"{path} is not a file.")
    return [path]
