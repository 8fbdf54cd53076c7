"""Asks for the terminal's background colour (OSC 11), and stores the answer in a file."""

import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tui_agent.files.atomic import write_atomically

log = logging.getLogger(__name__)

QUESTION: Final = "\x1b]11;?\x1b\\"
"""Escape sequence that asks the terminal for its background colour."""

SILENT_TERMINALS: Final = frozenset({"", "dumb", "linux"})
"""Values of TERM of terminals that don't answer `QUESTION`, and so aren't asked."""


class BackgroundMemory:
    """Stores whether the terminal's background is light, so that the next start can choose a theme.

    The answer is stored for each kind of terminal, in a file in ``folder``. The kind is the value
    of ``TERM_PROGRAM`` or, if that is unset, of ``TERM``.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str] = os.environ) -> None:
        kind = environment.get("TERM_PROGRAM") or environment.get("TERM") or "unknown"
        self._path = folder / f"background-{re.sub(r'[^A-Za-z0-9._-]', '_', kind)[:60]}"

    def light(self) -> bool | None:
        """Return whether the background was light when it was last reported; None if unknown."""
        try:
            return {"light": True, "dark": False}.get(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def keep(self, *, light: bool) -> None:
        """Store whether the background is light. A failure to write the file is only logged."""
        if self.light() is light:
            return
        try:
            write_atomically(self._path, b"light" if light else b"dark")
        except OSError as error:
            log.info("Can't store whether the terminal's background is light: %s", error)
