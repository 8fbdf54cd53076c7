"""A pasted or dropped path of an image, turned into what attaches it."""

from pathlib import Path

from tui_agent.agent.mentions import IMAGE_TYPES
from tui_agent.path_checks import is_file


def pasted_path(text: str) -> str | None:
    """Return the mention for a pasted or dropped path of an image that exists, None for any other text."""
    if len(text) > 4_096:
        return None
    name = text.strip().removeprefix("file://").strip("'\"").replace("\\ ", " ")
    if "\n" in name or Path(name).suffix.lower() not in IMAGE_TYPES:
        return None
    try:
        exists = is_file(Path(name).expanduser())
    except OSError:
        return None
    return (f'@"{name}" ' if " " in name else f"@{name} ") if exists else None
