"""What a server in the sandbox could not see or reach, from its command line and its last words.

Looks at files.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tui_agent.lazy import frozen
from tui_agent.path_checks import at_home, is_there, real_path

_PATH = re.compile(r"(?:~|(?<![\w.~/-]))/[\w.@+~/-]+")
_OWN = frozenset({"dev", "proc", "sys"})
"""Directories of which commands have their own."""
_MAX_NAMED = 2


@frozen
class Containment:
    """A server's sandbox: what it was started with, what it sees outside of the project, hosts it was refused."""

    project: Path
    words: tuple[str, ...]
    sees: Callable[[Path], bool]
    refused: Mapping[str, str]

    def lacks(self, said: str) -> str:
        """Return what kept it from working, with the setting that gives it.

        Empty for nothing known.
        """
        hidden = list(dict.fromkeys(self._hidden(said)))[:_MAX_NAMED]
        if hidden:
            return f"in the sandbox it can't see {' and '.join(hidden)}: add it to [sandbox] read in config.toml"
        return next(iter(self.refused.values()), "").rstrip(".")

    def _hidden(self, said: str) -> Iterator[str]:
        """Yield the paths that are there and not in its view."""
        for text in (*self.words, *_PATH.findall(said)):
            path = None
            if text.startswith(("/", "~")):
                path = at_home(text)
            if (
                path is None
                or not path.is_absolute()
                or not is_there(path)
                or not _OWN.isdisjoint(path.parts[1:2])
            ):
                continue
            real = real_path(path)
            root = real_path(self.project)
            if real.is_relative_to(root) or root.is_relative_to(real):
                continue
            if not (self.sees(path) and self.sees(real)):
                yield os.fspath(path)
