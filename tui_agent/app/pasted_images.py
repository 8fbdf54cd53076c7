"""Keeps images pasted from the clipboard as files, so that a message can mention them by name."""

from __future__ import annotations

import tempfile
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.files.atomic import write_atomically
from tui_agent.lazy import LazyPattern
from tui_agent.path_checks import is_file
from tui_agent.pictures import SUFFIXES, NoPicture, read_picture

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_agent.session.entries import ImagePart

MAX_KEPT = 50
"""Maximum number of pasted images kept as files. Sent images are in the session store as well."""

NAME = LazyPattern(r"clipboard-[0-9a-f]{8}\.(?:png|jpg|gif|webp)")
"""Matches the name of a pasted image as it follows ``@`` in a message."""


class PastedImages:
    """Keeps pasted images in ``directory``/pasted or, without one, in a temporary directory."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = (directory or Path(tempfile.mkdtemp(prefix="tui-agent-"))) / "pasted"

    def keep(self, data: bytes) -> str:
        """Save an image and return its file name, for ``@`` in a message.

        Deletes the oldest images beyond ``MAX_KEPT``.

        Raises:
            OSError: ``data`` is not an image, or can't be written.
        """
        picture = read_picture(data)
        if isinstance(picture, NoPicture):
            raise OSError(f"The clipboard holds {picture.reason}.")
        name = f"clipboard-{sha256(picture.data).hexdigest()[:8]}.{SUFFIXES[picture.mime]}"
        write_atomically(self._directory / name, picture.data, mode=0o600)
        kept = sorted(self._directory.glob("clipboard-*"), key=lambda path: path.stat().st_mtime_ns)
        for path in kept[:-MAX_KEPT]:
            path.unlink(missing_ok=True)
        return name

    def path(self, name: str) -> Path | None:
        """Return the path of the pasted image with this file name; None if there is none."""
        path = self._directory / name
        if NAME.fullmatch(name) and is_file(path):
            return path
        return None

    def part(self, name: str, put_blob: Callable[[bytes], str]) -> ImagePart | None:
        """Store a pasted image with ``put_blob``, and return it as a message part.

        Returns None if there is no image with this file name.
        """
        from tui_agent.tools.outputs import image_part

        if (path := self.path(name)) is None:
            return None
        picture = read_picture(path.read_bytes())
        if isinstance(picture, NoPicture):
            return None
        return image_part(picture, put_blob, name)
