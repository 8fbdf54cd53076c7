"""Finds out which path or host the sandbox denied to an MCP server that failed.

Searches the server's command line and its last output for paths, and checks whether they exist.
Also finds the directories that the user can then allow the server to read. Nothing here sets up a
sandbox: ``connection`` does.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from tui_agent.lazy import frozen
from tui_agent.path_checks import at_home, is_directory, is_file, is_there, real_path

_PATH = re.compile(r"(?:~|(?<![\w.~/-]))/[\w.@+~/-]+")
_OWN = frozenset({"dev", "proc", "sys"})
"""Top-level directories that the sandbox provides itself, instead of the system's."""
_OF_PACKAGE = ("package.json", "pyvenv.cfg", "pyproject.toml")
"""Files that mark the root of a package or environment."""
_MAX_NAMED = 2
"""Maximum number of paths that one message names."""


def directories_of(paths: Iterable[Path], home: Path) -> tuple[Path, ...]:
    """Return the directories that a server must read to use the programs or files at ``paths``.

    For each path, these are the directory that contains it (or the path itself, if it is a
    directory or its directory is or contains ``home``), and the package that it belongs to. If the
    path is a link, such as npm's in ``.bin``, this is the package of the link's target. Paths that
    are or contain ``home``, and paths inside another one, are left out.
    """
    found: list[Path] = []
    for path in paths:
        if _contains(path, home):
            continue
        beside = path if is_directory(path) else path.parent
        if _contains(beside, home):
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
    """Return a file's package, or else its directory; None if that directory contains ``home``.

    For an npm package, return the whole ``node_modules``, because npm's packages use each other.
    """
    around = [folder for folder in (real, *real.parents) if not _contains(folder, home)]
    folders = list(filter(is_directory, around))
    shared = [folder for folder in folders if folder.name == "node_modules"]
    packages = [folder for folder in folders if any(is_file(folder / name) for name in _OF_PACKAGE)]
    return next(iter([*shared[-1:], *packages, *folders]), None)


def _contains(folder: Path, home: Path) -> bool:
    """Return True if ``home`` is ``folder`` or inside it, as written or after following links."""
    return home.is_relative_to(folder) or real_path(home).is_relative_to(real_path(folder))


@frozen
class SandboxLimits:
    """The limits of the sandbox in which a server runs.

    ``words`` is the server's command line, ``sees`` returns True if a path outside the project is
    visible, and ``refused`` maps each host to which a connection was blocked to a sentence about
    it.
    """

    project: Path
    words: tuple[str, ...]
    sees: Callable[[Path], bool]
    refused: Mapping[str, str]

    def explanation(self, said: str) -> str:
        """Return which path or host the sandbox denied the server, as a clause without full stop.

        For a path, the clause names the setting that allows it. Returns "" if the sandbox isn't the
        cause. ``said`` is the server's output.
        """
        hidden = [path.as_posix() for path in self.hidden(said)]
        if hidden:
            them = "it" if len(hidden) == 1 else "them"
            named = " and ".join(hidden)
            return (
                f"it can't see {named} in the sandbox: add {them} to [sandbox] read in config.toml"
            )
        return next(iter(self.refused.values()), "").rstrip(".")

    def hidden(self, said: str) -> tuple[Path, ...]:
        """Return the first `_MAX_NAMED` paths that the sandbox denied to the server."""
        return tuple(dict.fromkeys(self._hidden(said)))[:_MAX_NAMED]

    def _hidden(self, said: str) -> Iterator[Path]:
        """Yield existing paths, named in the command line or in ``said``, that the sandbox hides.

        The project, its contents and the directories above it are left out: the server can see
        them. ``said`` is the server's output.
        """
        root = real_path(self.project)
        for text in self._mentioned(said):
            path = _existing(text)
            if path is None:
                continue
            real = real_path(path)
            if real.is_relative_to(root) or root.is_relative_to(real):
                continue
            if not self.sees(path):
                yield path
            elif not self.sees(real):
                yield real

    def _mentioned(self, said: str) -> Iterator[str]:
        """Yield the parts of the command line and of the output ``said`` that may be paths."""
        yield from self.words
        for text in (*self.words, said):
            for path in _PATH.findall(text):
                yield path
                # The full stop may end a sentence.
                yield path.rstrip(".")


def _existing(text: str) -> Path | None:
    """Return the path that a text names; None if it doesn't exist or no sandbox could hide it."""
    if not text.startswith(("/", "~")):
        return None
    path = at_home(text)
    if not path.is_absolute() or not is_there(path):
        return None
    if not _OWN.isdisjoint(path.parts[1:2]):
        return None
    return path
