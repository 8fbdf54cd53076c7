"""Looks for secrets in many files, once and after each change, while there is time.

Most files hold none. They are read together, and only where there is something in all of their text
is each of them judged by itself.
"""

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from tui_agent.files.inside import read_known
from tui_agent.files.secret_files import file_holds_secret, text_in

_BATCH_CHARS = 200_000
_FEWEST_ALONE = 40
_MOST_ALONE = 500
"""Characters of a file that may be nothing but a key."""
_APART = "\n\0\n"
"""Between the texts of a batch: no secret goes over it."""

_TURN_SECONDS = 0.05

GoesOn = Callable[[], bool]
"""Whether there is still time."""


class FileState(NamedTuple):
    """A file as it was at a moment: nobody can set back when it last ``changed``."""

    path: str
    changed: int
    size: int


class SecretSearch:
    """What is known of the files of a project."""

    def __init__(self) -> None:
        self._known: dict[FileState, bool] = {}
        self._turn = threading.Lock()
        self.waiting = 0
        """Files that are still to be looked at."""

    def known(self, file: FileState) -> bool | None:
        """Return whether a file holds a secret, None where it was not looked at."""
        return self._known.get(file)

    def look(self, files: Iterable[FileState], goes_on: GoesOn) -> None:
        """Look at files of which nothing is known, small ones first, until there is no more time."""
        while goes_on():
            if self._turn.acquire(timeout=_TURN_SECONDS):
                break
        else:
            return
        try:
            unknown = [file for file in files if file not in self._known]
            self._look(sorted(unknown, key=lambda file: file.size), goes_on)
        finally:
            self.waiting = 0
            self._turn.release()

    def _look(self, unknown: list[FileState], goes_on: GoesOn) -> None:
        batch: list[FileState] = []
        texts: list[str] = []
        held = 0
        self.waiting = len(unknown)
        for file in unknown:
            if not goes_on():
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
    """Whether a short file is nothing but a key."""
    from tui_agent.secret_detector import is_secret_value

    if _FEWEST_ALONE <= len(text) <= _MOST_ALONE:
        return is_secret_value(text.strip(), Path(file.path).name)
    return False
