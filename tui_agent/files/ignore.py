"""Applies ``.gitignore`` and ``.ignore`` files, and lists files that are not ignored."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.files.inside import directory as opened_directory
from tui_agent.files.inside import read_regular
from tui_agent.files.sensitive import is_repository_name
from tui_agent.lazy import frozen
from tui_agent.path_checks import is_file
from tui_agent.text_files.encodings import user_text

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

MAX_BYTES = 100_000
"""Maximum number of bytes that are read from an ignore file.

There is a limit because it takes time to compile the patterns.
"""
_IGNORE_FILES = (".gitignore", ".ignore")


@frozen
class IgnoreRules:
    """The ignore rules that apply in one directory.

    ``chain`` has one row for each directory with ignore files, outermost first: the directory's
    path and its patterns.
    """

    chain: tuple[tuple[str, "GitIgnoreSpec"], ...] = ()

    @classmethod
    def above(cls, directory: Path) -> "IgnoreRules":
        """Return the rules that a directory inherits from its parents in its repository.

        The rules in the directory's own ignore files are not included. They are added by
        `entering`. If the directory itself is ignored, it inherits nothing, because a user who
        names an ignored directory wants to see its files.
        """
        return cls.of_lines(lines_above(directory), directory)

    @classmethod
    def of_lines(cls, rows: Iterable[tuple[str, Sequence[str]]], directory: Path) -> "IgnoreRules":
        """Return the same rules as `above`, but use ignore files that have already been read.

        ``rows`` is the result of `lines_above` for the directory.
        """
        rules = cls(tuple((base, _spec(list(lines))) for base, lines in rows))
        if rules.ignored(str(directory), directory=True):
            return cls()
        return rules

    def entering(self, directory: str | Path) -> "IgnoreRules":
        """Return the rules for a subdirectory: these rules, and those in its own ignore files."""
        lines = _lines_in(directory)
        if lines:
            return IgnoreRules((*self.chain, (str(directory), _spec(lines))))
        return self

    def ignored(self, path: str, *, directory: bool) -> bool:
        """Return True if these rules ignore the file with the given absolute path.

        ``directory`` is True if the path is a directory.
        """
        for base, spec in reversed(self.chain):
            relative = os.path.relpath(path, base).replace(os.sep, "/")
            is_ignored = spec.check_file(f"{relative}/" if directory else relative).include
            # The value is None if no pattern matches, and False if a pattern with ``!`` matches.
            if is_ignored is not None:
                return is_ignored
        return False


def lines_above(directory: Path) -> list[tuple[str, list[str]]]:
    """Return the ignore rules in the parents of a directory, from the repository's root down.

    Each row consists of a directory that contains ignore files, and the lines of these files. The
    given directory itself is not included. The list is empty outside a repository, and for the
    repository's root.
    """
    parents = (directory, *directory.parents)
    repository = next((parent for parent in parents if os.path.lexists(parent / ".git")), None)
    if repository is None or repository == directory:
        return []
    inner = directory.relative_to(repository).parts[:-1]
    found = []
    for depth in range(len(inner) + 1):
        place = repository.joinpath(*inner[:depth])
        if lines := _lines_in(place):
            found.append((str(place), lines))
    return found


def _lines_in(directory: str | Path) -> list[str]:
    lines: list[str] = []
    for name in _IGNORE_FILES:
        # As git does, don't follow links, and read only regular files.
        data = read_regular(os.path.join(directory, name), MAX_BYTES)  # noqa: PTH118 - called for every directory of a walk
        lines += user_text(data).replace("\r\n", "\n").split("\n") if data else []
    return lines


@frozen
class ListedPath:
    """An entry in a directory listing: its name, absolute path, kind, and whether it is ignored."""

    name: str
    path: str
    directory: bool
    link: bool
    ignored: bool


def rows(directory: str | Path, rules: IgnoreRules) -> list[ListedPath]:
    """Return a directory's entries, directories first, sorted by name.

    ``directory`` is absolute. ``rules`` are the rules that apply in it. Leaves out ``.git`` and
    other data of version control. A link doesn't count as a directory. Raises OSError if the
    directory can't be listed, or if its path contains a link.
    """
    found = []
    with opened_directory(Path(directory)) as descriptor, os.scandir(descriptor) as entries:
        for entry in entries:
            if is_repository_name(entry.name):
                continue
            path = f"{directory}/{entry.name}"
            is_directory = entry.is_dir(follow_symlinks=False)
            ignored = rules.ignored(path, directory=is_directory)
            found.append(ListedPath(entry.name, path, is_directory, entry.is_symlink(), ignored))
    return sorted(found, key=lambda row: (not row.directory, row.name))


def walk_files(root: Path, *, limit: int | None = None) -> Iterator[Path]:
    """Yield the regular files below ``root``, except for ignored files and links.

    Yields at most ``limit`` files, or all if it is None. Their paths begin with ``root``. A
    directory's files come before the files in its subdirectories. Files and subdirectories are
    sorted by name. Directories that can't be listed are skipped.
    """
    real = Path(os.path.realpath(root))
    pending = [(str(real), IgnoreRules.above(real).entering(real))]
    count = 0
    while pending:
        directory, rules = pending.pop()
        try:
            listing = [row for row in rows(directory, rules) if not row.ignored]
        except OSError:
            continue
        for row in listing:
            if row.directory or row.link or not is_file(row.path):
                continue
            if count == limit:
                return
            count += 1
            yield root / os.path.relpath(row.path, real)
        for row in reversed(listing):
            if row.directory:
                pending.append((row.path, rules.entering(row.path)))


def walk_links(root: Path, *, limit: int | None = None) -> Iterator[str]:
    """Yield the relative paths of the links below ``root``, except for ignored ones.

    Yields at most ``limit`` links, or all if it is None. No link is followed. Directories that
    can't be listed are skipped.
    """
    real = os.path.realpath(root)
    pending = [("", IgnoreRules.above(Path(real)))]
    count = 0
    while pending:
        prefix, rules = pending.pop()
        place = f"{real}/{prefix}"
        rules = rules.entering(place.rstrip("/") or "/")
        try:
            with os.scandir(place) as scanned:
                entries = [row for row in scanned if not row.is_file(follow_symlinks=False)]
        except OSError:
            continue
        for entry in entries:
            is_directory = entry.is_dir(follow_symlinks=False)
            is_other = not (is_directory or entry.is_symlink())
            path = f"{place}{entry.name}"
            if is_other or is_repository_name(entry.name):
                continue
            if rules.ignored(path, directory=is_directory):
                continue
            if is_directory:
                pending.append((f"{prefix}{entry.name}/", rules))
                continue
            if count == limit:
                return
            count += 1
            yield prefix + entry.name


def _spec(lines: list[str]) -> "GitIgnoreSpec":
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(lines)
    except (ValueError, re.error):
        if len(lines) == 1:
            return GitIgnoreSpec([])
        # Skip lines that aren't valid patterns, as git does.
        return GitIgnoreSpec([pattern for line in lines for pattern in _spec([line]).patterns])
