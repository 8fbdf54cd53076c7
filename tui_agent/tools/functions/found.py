"""A tool file as it was found: where it is, and its text."""

from pathlib import Path

from tui_agent.files.inside import read_file, read_inside
from tui_agent.lazy import dataclass

MAX_FILE_BYTES = 1_000_000
"""A tool file larger than this is not read."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A tool file. ``shown`` is its name for people, ``inside`` the project that it must be in; None for the user's."""

    path: Path
    shown: str
    inside: Path | None = None

    def source(self) -> str:
        """Return its text.

        Raises:
            OSError: it can't be read, or leads out of the project.
            ValueError: it is no text, or too large.
        """
        limit = MAX_FILE_BYTES + 1
        data, _state = (
            read_file(self.path, limit) if self.inside is None else read_inside(self.inside, self.path, limit)
        )
        if len(data) > MAX_FILE_BYTES:
            raise ValueError(f"it is larger than {MAX_FILE_BYTES // 1_000_000} MB")
        return data.decode("utf-8")
