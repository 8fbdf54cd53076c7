"""What other programs' tool calls tell of files and commands, in the terms of our own results."""

from tui_agent.json_text import loads
from tui_agent.lazy import dataclass
from tui_agent.session.entries import ToolCallPart, ToolMetadata

__all__ = ["CallFacts", "facts_of"]

_READING = frozenset({"read"})
_CHANGING = frozenset({"write", "edit", "multiedit", "patch", "notebookedit"})
_PATH_KEYS = ("path", "file_path", "filePath", "notebook_path")
_TITLE_KEYS = (*_PATH_KEYS, "command", "cmd", "pattern", "query", "url", "description")
_TITLE_CHARS = 200


@dataclass(frozen=True, slots=True)
class CallFacts:
    """What is kept of a call until its result comes; the arguments can be a whole file."""

    tool: str = ""
    title: str = ""
    metadata: ToolMetadata = ToolMetadata()


def facts_of(call: ToolCallPart | None) -> tuple[str, ToolMetadata]:
    """Return what a result is called in a list, and which file it read or changed."""
    try:
        arguments = loads(call.arguments) if call is not None else {}
    except ValueError:
        arguments = {}
    if call is None or not isinstance(arguments, dict):
        return "", ToolMetadata()
    titles = (value for key in _TITLE_KEYS if isinstance(value := arguments.get(key), str) and value.strip())
    path = next((value for key in _PATH_KEYS if isinstance(value := arguments.get(key), str) and value), None)
    tool = call.tool.lower()
    touched = (path,) if path else ()
    metadata = ToolMetadata(
        path=path,
        read_files=touched if tool in _READING else (),
        modified_files=touched if tool in _CHANGING else (),
    )
    return " ".join(next(titles, "").split())[:_TITLE_CHARS], metadata
