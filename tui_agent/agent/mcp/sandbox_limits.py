"""Finds out which path or host the sandbox kept from an MCP server that failed.

Searches the server's command line and its last output for paths, and checks whether they exist.
(``connection`` starts the server in the sandbox.) Also finds the directories that a server needs to
read.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from tui_agent.lazy import frozen
from tui_agent.path_checks import at_home, is_directory, is_file, is_there, real_path

_PATH = re.compile(r"(?:~|(?<![\w.~/-]))/[\w.@+~/-]+")
_OWN = frozenset({"dev", "proc", "sys"})
"""Top-level directories that the sandbox itself provides."""
_OF_PACKAGE = ("package.json", "pyvenv.cfg", "pyproject.toml")
"""Files that mark the root of a package or environment."""
_MAX_NAMED = 2
"""Maximum number of paths named in a message."""


def directories_of(paths: Iterable[Path], home: Path) -> tuple[Path, ...]:
    """Return the directories that a server must read to use the programs or files at ``paths``.

    A program reads the files beside it. For a link, such as npm's in ``.bin``, the package to which
    it leads is included. None of the directories contains ``home`` or is inside another one.
    """
    found: list[Path] = []
    for path in paths:
        beside = path if is_directory(path) else path.parent
        if home.is_relative_to(beside):
            beside = path
        found.append(beside)
        package = _package_of(real_path(path), home)
        if package is not None:
            found.append(package)
    outermost = [
        one
        for one in found
        if not any(one != other and one.is_relative_to(other) for other in found)
    ]
    return tuple(dict.fromkeys(outermost))


def _package_of(real: Path, home: Path) -> Path | None:
    """Return the package that contains a file, else its directory; None if that contains ``home``.

    For a package of npm, return the whole ``node_modules``, because npm's packages use each other.
    """
    around = [folder for folder in (real, *real.parents) if not home.is_relative_to(folder)]
    folders = list(filter(is_directory, around))
    shared = [folder for folder in folders if folder.name == "node_modules"]
    packages = [folder for folder in folders if any(is_file(folder / name) for name in _OF_PACKAGE)]
    return next(iter([*shared[-1:], *packages, *folders]), None)


@frozen
class SandboxLimits:
    """The limits of the sandbox in which a server runs.

    ``words`` is the server's command line, ``sees`` returns True if a path outside the project is
    visible, and ``refused`` has a sentence about each blocked connection, by host.
    """

    project: Path
    words: tuple[str, ...]
    sees: Callable[[Path], bool]
    refused: Mapping[str, str]

    def explanation(self, said: str) -> str:
        """Return which path or host the sandbox kept from the server, as a clause without full stop.

        For a path, it names the setting that allows it. "" if the sandbox isn't the cause. ``said``
        is the server's output.
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
            if not self.sees(path):
                yield path
            elif not self.sees(real):
                yield real
