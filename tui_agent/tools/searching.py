"""Defines the scope of a ``grep`` or ``glob`` call: what to search, and the glob for file names.

Also cuts long lines in the results of searches.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from tui_agent.errors import ToolError
from tui_agent.files.globs import compile_glob, has_magic, split_glob
from tui_agent.lazy import frozen
from tui_agent.path_checks import is_directory
from tui_agent.permission import Permission, PermissionNeed, rule_path
from tui_agent.safe_text import listed_name
from tui_agent.sandbox.view import RuleOfReading
from tui_agent.text_files.names import AlikeError, as_on_disk, folded
from tui_agent.tools.base import ToolContext
from tui_agent.tools.paths import Location, check_allowed, find, locate, missing, path_needs

MAX_NAMED = 3
"""Maximum number of skipped files that a note names."""
MAX_COLUMNS = 300
"""Maximum number of characters that are shown of a line."""


@frozen
class Scope:
    """A directory or file to search, and the glob that files in it have to match.

    ``glob`` is the glob as one pattern, "" if there is no glob or if it has several parts.
    ``matcher`` is the compiled glob, None to take all files. With ``excludes``, the files that
    don't match are taken. ``alike`` matches paths that only look as if they matched the glob,
    because their Unicode characters are similar; such a path has to be passed through ``folded``
    first.
    """

    location: Location
    glob: str = ""
    matcher: re.Pattern[str] | None = None
    alike: re.Pattern[str] | None = None
    excludes: bool = False
    written: str = ""
    """The glob as it was written in the call."""
    project: Path = Path()
    """The project's directory, to which the paths in permission rules are relative."""
    reading: RuleOfReading | None = None
    """The user's permission rules about reading files of the project; None if there are none."""

    @property
    def directory(self) -> Path:
        """The directory to search; for a single file, the directory that contains this file."""
        if is_directory(self.location.real):
            return self.location.real
        return self.location.real.parent

    @property
    def single_file(self) -> str | None:
        """The name of the file if a single file is searched; None for a directory."""
        if is_directory(self.location.real):
            return None
        return self.location.real.name

    def takes(self, path: str) -> bool:
        """Return True if the glob selects the file ``path``, which is relative to ``directory``."""
        if (
            self.excludes
            and folded(path.rpartition("/")[2]).strip() == folded(self.written).strip()
        ):
            return True  # The glob is the name of an existing file, which begins with "!".
        return self.matcher is None or self._matches(path) != self.excludes

    def withholds(self, path: str) -> bool:
        """Return True if a permission rule withholds a file that the call doesn't name.

        A rule withholds a file if it denies reading the file or asks the user about it. ``path`` is
        relative to ``directory``. If the call names the file itself, reading it was already
        permitted.
        """
        if self.reading is None or self.single_file is not None:
            return False
        return self.reading(rule_path(self.directory / path, self.project)) != ""

    def shown(self, path: str) -> str:
        """Return a path as the model sees it; ``path`` is relative to ``directory``.

        The result is relative to the call's working directory if the scope is inside it, else
        absolute.
        """
        base = self.location.shown
        if self.single_file is not None:
            base = os.path.dirname(base)  # noqa: PTH120 - a text that may be relative
        if base in {"", "."}:
            return listed_name(path)
        return f"{base.rstrip('/')}/{listed_name(path)}"

    def first_names(self, paths: Iterable[str]) -> str:
        """Return up to ``MAX_NAMED`` paths as `shown` gives them, sorted and joined for a note.

        ``paths`` are relative to ``directory``. If there are more, "..." follows.
        """
        names = [self.shown(path) for path in sorted(paths)]
        if len(names) > MAX_NAMED:
            names[MAX_NAMED:] = ["..."]
        return ", ".join(names)

    def _matches(self, path: str) -> bool:
        if self.matcher is None or self.matcher.fullmatch(path) is not None:
            return True
        return self.alike is not None and self.alike.fullmatch(folded(path)) is not None


def scope_of(path: str, glob: str, context: ToolContext) -> Scope:
    """Return the scope of a search for a call's ``path`` and ``glob``, as the model wrote them.

    Directories without wildcards at the start of the glob become part of the path. If ``glob`` is
    empty and ``path`` is a glob, ``path`` is used as the glob. The path need not exist.

    Raises:
        ToolError: the glob contains a NUL character, or ``..`` after a wildcard, or ``paths.find``
            refuses the path.
    """
    if has_magic(path) and not glob.strip() and not os.path.lexists(context.cwd / path.strip()):
        glob = path
        path = "."
    if "\0" in glob:
        raise ToolError("glob contains a NUL character")
    place = locate(path, context).real if path.strip() else context.cwd
    is_name = bool(glob.strip()) and _is_there(place / glob)
    excludes = glob.strip().startswith("!") and not is_name
    wanted = [_all_below(part) for part in _parts(glob, excludes=excludes, is_name=is_name)]
    base = ""
    if len(wanted) == 1 and "/" in wanted[0] and not excludes:
        base, rest = _split(wanted[0], place)
        if base:
            wanted = [f"/{rest}"]
        if base.startswith("/") and (base == "/" or not os.path.lexists(base)):
            # A slash at the beginning stands for the searched directory, not for the root of the
            # file system.
            base = base.strip("/")
    # These directories become part of the path even if they are ``..``, so that the permission
    # check sees where the search leads.
    location = find(os.path.join(path, base) if base else path, context)  # noqa: PTH118 - a text that may be relative
    if any(".." in part.split("/") for part in wanted):
        raise ToolError(f"glob {glob.strip()!r} can't contain '..'; put it in path.")
    project = Path(os.path.realpath(context.project))
    reading = context.view.reading
    if not glob.strip():
        return Scope(location, project=project, reading=reading)
    return Scope(
        location,
        project=project,
        reading=reading,
        glob=wanted[0] if len(wanted) == 1 else "",
        matcher=_any_of(wanted),
        alike=_any_of([folded(part) for part in wanted]),
        excludes=excludes,
        written=glob.strip(),
    )


def _parts(glob: str, *, excludes: bool, is_name: bool) -> list[str]:
    """Return the globs that a model may mean by a text: all of it, then the parts between commas.

    ``excludes`` is True if the text begins with "!" to exclude files. ``is_name`` is True if a file
    has the text as its name; a text that begins or ends with spaces is then the only glob.
    """
    plain = glob.strip()
    if excludes:
        plain = plain.removeprefix("!")
    if is_name and glob != plain:
        return [glob]
    parts = [plain]
    if glob != plain and "/" not in plain and not excludes:
        parts.append(glob)  # The name of a file may begin or end with white space.
    if "," in plain and "{" not in plain:
        parts += [part.strip() for part in plain.split(",") if part.strip()]
    return parts


def _is_there(path: Path) -> bool:
    """Return True if a path exists, or another path that looks the same."""
    try:
        return os.path.lexists(as_on_disk(path))
    except AlikeError:
        return True


def _all_below(glob: str) -> str:
    """Change a glob that ends in "/" so that it matches all files below; return others unchanged.

    As in .gitignore, ``src/`` matches at any depth (``**/src/**``), but ``a/src/`` only at the top.
    ``/``, ``.`` and ``./`` mean all files.
    """
    if glob and not glob.removeprefix(".").strip("/"):
        return "**"
    if not glob.endswith("/"):
        return glob
    if "/" in glob[:-1]:
        return f"{glob}**"
    return f"**/{glob}**"


def _split(glob: str, place: Path) -> tuple[str, str]:
    """Split a glob into its leading directories without wildcards ("" if none) and the rest.

    Directories that exist in ``place`` as written, such as ``[id]``, count as having no wildcards.
    """
    base, rest = split_glob(glob)
    first, *more = PurePosixPath(rest).parts
    while more and first != "**" and is_directory(place / base / first):
        base = os.path.join(base, first)  # noqa: PTH118 - a text that may be relative
        first, *more = more
    return base, "/".join([first, *more])


def _any_of(globs: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{compile_glob(glob).pattern})" for glob in globs), re.DOTALL)


def cut_line(line: str) -> str:
    """Return a line without its line end.

    A line that is longer than ``MAX_COLUMNS`` is cut, and " [...]" is added.
    """
    line = line.rstrip("\r\n")
    if len(line) <= MAX_COLUMNS:
        return line
    return f"{line[:MAX_COLUMNS]} [...]"


def scope_needs(scope: Scope) -> tuple[PermissionNeed, ...]:
    """Return the permissions that a search needs to read its directory or file."""
    return path_needs(Permission.READ, scope.location)


def check_exists(scope: Scope, context: ToolContext) -> None:
    """Check, when a call runs, that the path to search exists and was allowed.

    Raises:
        ToolError: the path doesn't exist, or now leads to a place that was not allowed.
    """
    check_allowed(scope_needs(scope), context)
    if not os.path.lexists(scope.location.real):
        raise missing(scope.location, context)
