"""Pool of the copies of projects that no command is using, for the next commands."""

import threading
from contextlib import AbstractContextManager
from pathlib import Path

from tui_agent.files.descriptors import remove_tree
from tui_agent.sandbox.layer import Layer


class CopyPool:
    """Free copies by project; copies of output directories alone are kept separately."""

    def __init__(self) -> None:
        self._free: dict[tuple[Path, bool], list[Layer]] = {}
        self._lock = threading.Lock()
        self._first = threading.Lock()

    def first(self) -> AbstractContextManager[object]:
        """Give a context for making the session's first copy; `take` waits for its end."""
        return self._first

    def take(self, root: Path, *, live: bool) -> Layer | None:
        """Take a free copy of a project out of the pool; None if there is none."""
        with self._first, self._lock:
            free = self._free.get((root, live))
            if free:
                return free.pop()
        return None

    def put_back(self, layer: Layer) -> None:
        with self._lock:
            self._free.setdefault((layer.project, layer.live), []).append(layer)

    def clear(self) -> None:
        """Remove all free copies."""
        with self._lock:
            unused = [layer for layers in self._free.values() for layer in layers]
            self._free.clear()
        for layer in unused:
            remove_tree(layer.place)
