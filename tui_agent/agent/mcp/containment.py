"""Finds out which path or host the sandbox kept from an MCP server that failed.

Reads the server's command line and its last output, and looks the paths up on disk.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tui_agent.lazy import frozen
from tui_agent.path_checks import at_home, is_there, real_path

_PATH = re.compile(r"(?:~|(?<![\w.~/-]))/[\w.@+~/-]+")
_OWN = frozenset({"dev", "proc", "sys"})
"""Top-level directories that the sandbox provides itself."""
_MAX_NAMED = 2
"""Maximum paths named in a message."""


@frozen
class Containment:
    """A server's sandbox.

    ``words`` is the server's command line, ``sees`` returns whether a path outside the project is
    visible, and ``refused`` has a sentence for each host that was blocked.
    """

    project: Path
    words: tuple[str, ...]
    sees: Callable[[Path], bool]
    refused: Mapping[str, str]

    def lacks(self, said: str) -> str:
        """Return what the server lacked and the setting that gives it, without full stop; "" if unknown.

        ``said`` is the server's output.
        """
        hidden = list(dict.fromkeys(self._hidden(said)))[:_MAX_NAMED]
        if hidden:
            return f"it can't see {' and '.join(hidden)} in the sandbox: add it to [sandbox] read in config.toml"
        return next(iter(self.refused.values()), "").rstrip(".")

    def _hidden(self, said: str) -> Iterator[str]:
        """Yield the paths of the command line and of ``said`` that exist but are hidden."""
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
