"""Where a command runs, and where the paths in it lead."""

import os
from pathlib import Path

from tui_agent.lazy import dataclass


@dataclass(frozen=True, slots=True)
class CommandPlace:
    """Where a command runs. Both are real paths."""

    project: Path
    folder: Path

    def inside(self, text: str) -> Path | None:
        """Return where a path leads; None when that is out of the project, or there is a link on the way."""
        written = os.path.join(self.folder, text)  # noqa: PTH118 - a path as a shell takes it
        path = Path(os.path.normpath(written))
        return path if os.path.realpath(written) == str(path) and path.is_relative_to(self.project) else None


def is_listable(text: str, place: CommandPlace) -> bool:
    """A place in the project, to be listed: not in the repository's own directory."""
    path = None if text.startswith("-") or not text else place.inside(text)
    return path is not None and ".git" not in below(path, place)


def below(path: Path, place: CommandPlace) -> list[str]:
    """Return the parts of a path below the project, in lower case."""
    return [part.lower() for part in path.relative_to(place.project).parts]
