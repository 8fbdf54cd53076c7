"""What was told already: runs without a screen say once a day what is the matter with a server, not every time."""

import contextlib
import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path

from tui_agent.files.atomic import write_atomically

DAY = 24 * 3600
"""Seconds after which something is told again."""


class DailyNotices:
    """Remembers in a file what was told and when. ``about`` is what it depends on, such as the servers' settings."""

    def __init__(self, path: Path, about: str, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._about = about
        self._clock = clock

    def is_news(self, text: str) -> bool:
        """Whether a text was not told within a day; from now on it was. What can't be remembered is news."""
        now = self._clock()
        digest = hashlib.sha256(f"{self._about}\n{text}".encode()).hexdigest()[:16]
        told = {key: at for key, at in self._read().items() if 0 <= now - at < DAY}
        if digest in told:
            return False
        with contextlib.suppress(OSError):
            write_atomically(self._path, json.dumps({**told, digest: now}).encode(), mode=0o600)
        return True

    def _read(self) -> dict[str, float]:
        try:
            known = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return {}
        return {key: at for key, at in known.items() if isinstance(at, int | float)} if isinstance(known, dict) else {}
