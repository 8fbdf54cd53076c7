"""Finds out which path or host an MCP server failed to reach because of the sandbox.

Searches the server's command line and its last output for paths, and checks whether they exist.
Limits nothing itself: ``connection`` puts the server into the sandbox.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tui_agent.lazy import frozen
from tui_agent.path_checks import at_home, is_there, real_path

_PATH = re.compile(r"(?:~|(?<![\w.~/-]))/[\w.@+~/-]+")
_OWN = frozenset({"dev", "proc", "sys"})
"""Top-level directories that the sandbox provides."""
_MAX_NAMED = 2
"""Maximum paths named in a message."""


@frozen
class SandboxLimits:
    """The limits of the sandbox that a server runs in.

    ``words`` is the server's command line, ``sees`` returns whether a path outside the project is
    visible, and ``refused`` has, by host, a sentence about each connection that was blocked.
    """

    project: Path
    words: tuple[str, ...]
    sees: Callable[[Path], bool]
    refused: Mapping[str, str]

    def lacks(self, said: str) -> str:
        """Return which paths or host the sandbox kept from the server, and the setting that allows it.

        A clause without full stop; "" if the sandbox is not the cause. ``said`` is the server's output.
        """
        hidden = [path.as_posix() for path in self.hidden(said)]
        if hidden:
            return f"it can't see {' and '.join(hidden)} in the sandbox: add it to [sandbox] read in config.toml"
        return next(iter(self.refused.values()), "").rstrip(".")

    def hidden(self, said: str) -> tuple[Path, ...]:
        """Return the first `_MAX_NAMED` paths that the sandbox kept from the server."""
        return tuple(dict.fromkeys(self._hidden(said)))[:_MAX_NAMED]

    def _hidden(self, said: str) -> Iterator[Path]:
        """Yield the paths in the command line and in ``said`` that exist but that the sandbox hides."""
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
                yield path
