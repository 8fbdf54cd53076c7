"""Images pasted from the clipboard: kept in a directory of the program, so that a message can name them like a file."""

from __future__ import annotations

import tempfile
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.files.atomic import write_atomically
from tui_agent.lazy import LazyPattern
from tui_agent.path_checks import is_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_agent.session.entries import ImagePart

MAX_KEPT = 50
"""Images kept; those of messages that were sent are in the store as well."""

NAME = LazyPattern(r"clipboard-[0-9a-f]{8}\.(?:png|jpg|gif|webp)")
"""How such an image is named in a message, after the ``@``."""

_BEGINNINGS = ((b"\x89PNG\r\n\x1a\n", "png"), (b"\xff\xd8\xff", "jpg"), (b"GIF8", "gif"))


def image_suffix(data: bytes) -> str:
    """Return the suffix of an image's format by its first bytes, "" for formats that providers do not take."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    return next((suffix for beginning, suffix in _BEGINNINGS if data.startswith(beginning)), "")


class PastedImages:
    """The images below ``directory``, by default one of their own that nobody finds again."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = (directory or Path(tempfile.mkdtemp(prefix="tui-agent-"))) / "pasted"

    def keep(self, data: bytes) -> str:
        """Keep an image and return its name.

        Raises:
            OSError: it can't be written.
        """
        name = f"clipboard-{sha256(data).hexdigest()[:8]}.{image_suffix(data)}"
        write_atomically(self._directory / name, data, mode=0o600)
        kept = sorted(self._directory.glob("clipboard-*"), key=lambda path: path.stat().st_mtime_ns)
        for path in kept[:-MAX_KEPT]:
            path.unlink(missing_ok=True)
        return name

    def path(self, name: str) -> Path | None:
        """Return where an image is, None when there is none of that name."""
        path = self._directory / name
        return path if NAME.fullmatch(name) and is_file(path) else None

    def part(self, name: str, put_blob: Callable[[bytes], str]) -> ImagePart | None:
        """Return the part of a message that holds an image, None when there is none of that name."""
        from tui_agent.agent.mentions import IMAGE_TYPES
        from tui_agent.session.entries import ImagePart
        from tui_agent.tools.outputs import image_size

        if (path := self.path(name)) is None:
            return None
        data = path.read_bytes()
        width, height = image_size(data)
        return ImagePart(blob=put_blob(data), mime=IMAGE_TYPES[path.suffix], width=width, height=height, path=name)
