"""Finds the sandbox grants that a failed command lacked, by the paths in its error messages."""

import errno
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from tui_agent.files.sensitive import is_repository_name
from tui_agent.lazy import LazyPattern
from tui_agent.path_checks import at_home, is_among, is_there
from tui_agent.sandbox.plan import OWN_PLACES, unrestorable
from tui_agent.sandbox.project_scan import ProjectScan
from tui_agent.sandbox.view import Grants, View

_LINES = 200
"""Number of lines at the end of a command's output that are searched for error messages."""

_REFUSALS = (errno.EROFS, errno.EACCES, errno.EBUSY, errno.ENOENT)
_WORDS = {
    **{os.strerror(number): number for number in (*_REFUSALS, errno.EPERM)},
    **{errno.errorcode[number]: number for number in _REFUSALS},
}
"""The numbers of the errors that the sandbox can cause, by the message or name of the error."""
_REFUSAL = LazyPattern("|".join(map(re.escape, sorted(_WORDS, key=len, reverse=True))))
_WHO = LazyPattern(r"^\S+: line \d+:")
"""Matches the start of the shell's own error messages, that is, its name and a line number."""
_QUOTED = LazyPattern(r"""['"‘“`]([^'"’”`\n]{1,400})['"’”`]""")
_PATH = LazyPattern(r"(?:~|\.{0,2})/[^\s:'\"’”`,;()\[\]<>|]+|[\w.@+-]+(?:/[\w.@+-]+)*")


def lacking(
    output: str,
    cwd: Path,
    view: View,
    seen: ProjectScan,
    shows: Callable[[Path], bool],
    large: Sequence[Path] = (),
) -> Grants:
    """Return the sandbox grants that a failed command lacked, according to its output.

    Looks at files. The grants are for paths on lines with one of the system's error messages, if
    the sandbox may have caused the error. Relative paths are relative to ``cwd``. ``shows`` returns
    True if commands see a path outside the project; ``large`` are the paths in the project that
    were too large to copy.
    """
    wanted = Grants()
    for path, refusal in refused_paths(output, cwd):
        if is_among(path, [seen.root, *seen.elsewhere]):
            wanted |= _inside(path, refusal, view, seen, large)
        elif is_among(path, OWN_PLACES):
            continue
        elif refusal == errno.ENOENT and os.path.lexists(path) and not shows(path):
            wanted |= Grants(read=frozenset({path}))
        elif refusal != errno.ENOENT and _could_write(path):
            wanted |= Grants(write=frozenset({path}))
    return wanted


def refused_paths(output: str, cwd: Path) -> Iterator[tuple[Path, int]]:
    """Yield each path that is on a line with a system error, with the number of the error.

    Searches the output's last lines. The paths are absolute, with links not resolved; relative
    paths in the output are relative to ``cwd``.
    """
    for line in output.splitlines()[-_LINES:]:
        refusal = _REFUSAL.search(line)
        if refusal is None:
            continue
        number = _WORDS[refusal[0]]
        rest, of_shell = _WHO.subn("", f"{line[: refusal.start()]} {line[refusal.end() :]}")
        quoted = _QUOTED.findall(rest)
        # A file that couldn't be created doesn't exist, so take a name without a slash for a file,
        # too. If Landlock forbids the file, the error is "Permission denied", which also has other
        # causes.
        unmade = set[str]()
        if number in {errno.EROFS, errno.EACCES}:
            unmade |= {*quoted}
        if number == errno.EROFS or (number == errno.EACCES and of_shell):
            unmade.add(rest.strip(" :\t"))
        for text in dict.fromkeys([*quoted, *_PATH.findall(rest)]):
            if text == ".":
                continue  # this is the end of a sentence, not a path
            try:
                path = Path(os.path.normpath(cwd / at_home(text.rstrip("."))))
                known = "/" in text or text in unmade or os.path.lexists(path)
            except ValueError:
                continue
            if known:
                yield path, number


def _inside(
    path: Path, refusal: int, view: View, seen: ProjectScan, large: Sequence[Path]
) -> Grants:
    if refusal == errno.ENOENT:
        return Grants()
    if any(map(is_repository_name, path.parts)) or not path.is_relative_to(seen.root):
        return Grants(repository=True)
    if is_among(path, seen.protected):
        return Grants(protected=frozenset({path}))
    held = refusal in {errno.EROFS, errno.EBUSY} or (refusal == errno.EACCES and _could_write(path))
    if not held:
        return Grants()
    around = _around(path, large)
    if around is None and not view.changes_sources:
        return Grants(sources=True)
    around = around or _around(path, unrestorable(seen))
    return Grants() if around is None else Grants(write=frozenset({around}))


def _around(path: Path, places: Iterable[Path]) -> Path | None:
    return next((place for place in places if path.is_relative_to(place)), None)


def _could_write(path: Path) -> bool:
    return os.access(path if is_there(path) else path.parent, os.W_OK)


def files_named_in(output: str, files: tuple[Path, ...], root: Path) -> frozenset[Path]:
    """Return those of the project's files whose relative paths occur in a command's output."""
    names = {path: re.escape(path.relative_to(root).as_posix()) for path in files}
    return frozenset(
        path for path, name in names.items() if re.search(rf"(?<![\w.-]){name}(?![\w-])", output)
    )
