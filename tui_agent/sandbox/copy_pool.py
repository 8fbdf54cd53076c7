"""Keeps the copies of projects that no command uses at the moment, for later commands."""

import threading
from contextlib import AbstractContextManager
from pathlib import Path

from tui_agent.files.descriptors import remove_tree
from tui_agent.sandbox.layer import Layer


class CopyPool:
    """The copies of projects that no command of a session uses. May be used from any thread.

    Copies with only the output directories (``live``) are kept apart from copies of whole projects.
    """

    def __init__(self) -> None:
        self._free: dict[tuple[Path, bool], list[Layer]] = {}
        self._lock = threading.Lock()
        self._first = threading.Lock()

    def making_first(self) -> AbstractContextManager[object]:
        """Return a context manager for making the session's first copy, for which `take` waits."""
        return self._first

    def take(self, root: Path, *, live: bool) -> Layer | None:
        """Take an unused copy of a project out of the pool; None if there is no such copy.

        With ``live``, the copy has only the output directories.
        """
        with self._first, self._lock:
            free = self._free.get((root, live))
            if free:
                return free.pop()
        return None

    def put_back(self, layer: Layer) -> None:
        with self._lock:
            self._free.setdefault((layer.project, layer.live), []).append(layer)

    def clear(self) -> None:
        """Delete all unused copies of projects from the disk."""
        with self._lock:
            unused = [layer for layers in self._free.values() for layer in layers]
            self._free.clear()
        for layer in unused:
            remove_tree(layer.place)
