"""Whether the terminal's background is light: asked of the terminal itself (OSC 11), answered among the keys."""

import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tui_agent.files.atomic import write_atomically

log = logging.getLogger(__name__)

QUESTION: Final = "\x1b]11;?\x1b\\"
"""The sequence that asks for the background's colour."""

MUTE: Final = frozenset({"", "dumb", "linux"})
"""Terminals that know no such question."""


class BackgroundMemory:
    """The last answer of a terminal of this kind, in a file of its own, so that the first frame is in its colours."""

    def __init__(self, folder: Path, environment: Mapping[str, str] = os.environ) -> None:
        kind = environment.get("TERM_PROGRAM") or environment.get("TERM") or "unknown"
        self._path = folder / f"background-{re.sub(r'[^A-Za-z0-9._-]', '_', kind)[:60]}"

    def light(self) -> bool | None:
        """Return whether it was light, None when nobody knows."""
        try:
            return {"light": True, "dark": False}.get(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def keep(self, *, light: bool) -> None:
        """Remember an answer; where that can't be kept, the next start asks all the same."""
        if self.light() is light:
            return
        try:
            write_atomically(self._path, b"light" if light else b"dark")
        except OSError as error:
            log.info("The terminal's background is not remembered: %s", error)
