"""Finds out which of many files contain secrets. A file is searched again only after a change.

Most files contain no secret. To save time, the texts of several files (a batch) are therefore
searched together. If a secret is found, the files of the batch are searched one by one.
"""

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from tui_agent.files.inside import read_known
from tui_agent.files.secret_files import file_holds_secret, text_in

_BATCH_CHARS = 200_000

_APART = "\n\0\n"
"""The separator between the texts of files that are searched together. No secret contains it."""

_TURN_SECONDS = 0.05

MayContinue = Callable[[], bool]
"""A function that returns True as long as the search may go on."""


class FileState(NamedTuple):
    """A file's absolute path, status change time in nanoseconds, and size in bytes.

    The status change time is used, because programs can't set it back.
    """

    path: str
    changed: int
    size: int


class SecretSearch:
    """Searches files for secrets and keeps the results in memory. It can be used from any thread.

    Each `Sandbox` has its own.
    """

    def __init__(self) -> None:
        self._known: dict[FileState, bool] = {}
        self._turn = threading.Lock()
        self.waiting = 0
        """Number of files that the running search still has to read. 0 if no search is running."""

    def known(self, file: FileState) -> bool | None:
        """Return whether a file in this state contains a secret, or None if it wasn't searched."""
        return self._known.get(file)

    def run(self, files: Iterable[FileState], may_continue: MayContinue) -> None:
        """Search all files that have not been searched yet, beginning with the smallest.

        This method blocks, and first waits for any search in another thread. The search stops as
        soon as ``may_continue`` returns False.
        """
        while may_continue():
            if self._turn.acquire(timeout=_TURN_SECONDS):
                break
        else:
            return
        try:
            unknown = [file for file in files if file not in self._known]
            self._search(sorted(unknown, key=lambda file: file.size), may_continue)
        finally:
            self.waiting = 0
            self._turn.release()

    def _search(self, unknown: list[FileState], may_continue: MayContinue) -> None:
        batch: list[FileState] = []
        texts: list[str] = []
        held = 0
        self.waiting = len(unknown)
        for file in unknown:
            if not may_continue():
                break
            text = text_in(read_known(file.path, file.size))
            batch.append(file)
            texts.append(text)
            held += len(text)
            if held >= _BATCH_CHARS:
                self._judge(batch, texts)
                batch = []
                texts = []
                held = 0
        self._judge(batch, texts)

    def _judge(self, batch: list[FileState], texts: list[str]) -> None:
        from tui_agent.secret_detector import has_secret

        if any(map(_is_key, batch, texts)) or has_secret(_APART.join(texts)):
            found = {file: file_holds_secret(Path(file.path)) for file in batch}
        else:
            found = dict.fromkeys(batch, False)
        self._known |= found
        self.waiting -= len(batch)


def _is_key(file: FileState, text: str) -> bool:
    """Return True if a file contains only a secret, such as an API key, and white space."""
    from tui_agent.secret_detector import is_secret_value

    return is_secret_value(text.strip(), Path(file.path).name)
