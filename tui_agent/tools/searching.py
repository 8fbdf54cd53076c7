"""Where ``grep`` and ``glob`` start and which files they take, and how a line is cut for any search."""

import os
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from tui_agent.errors import ToolError
from tui_agent.files.globs import compile_glob, has_magic, split_glob
from tui_agent.lazy import frozen
from tui_agent.path_checks import is_directory
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.text_files.names import AlikeError, as_on_disk, folded
from tui_agent.tools.base import ToolContext
from tui_agent.tools.paths import Location, check_allowed, find, locate, missing, path_needs

MAX_NAMED = 3
"""Maximum files left out of a search that are named."""
MAX_COLUMNS = 300
"""Maximum characters shown of a line."""


@frozen
class Scope:
    """A place to search and the glob that files below it have to match; ``matcher`` None takes all.

    With ``excludes`` those are taken that don't match. ``alike`` matches names that only look as
    the glob says.
    """

    location: Location
    glob: str = ""
    matcher: re.Pattern[str] | None = None
    alike: re.Pattern[str] | None = None
    excludes: bool = False
    written: str = ""
    """The glob as it was given."""

    @property
    def directory(self) -> Path:
        if is_directory(self.location.real):
            return self.location.real
        return self.location.real.parent

    @property
    def single_file(self) -> str | None:
        if is_directory(self.location.real):
            return None
        return self.location.real.name

    def takes(self, path: str) -> bool:
        if (
            self.excludes
            and folded(path.rpartition("/")[2]).strip() == folded(self.written).strip()
        ):
            return True  # A name that begins with the sign for what is left out.
        return self.matcher is None or self._matches(path) != self.excludes

    def shown(self, path: str) -> str:
        base = self.location.shown
        if self.single_file is not None:
            base = os.path.dirname(base)  # noqa: PTH120 - a text that may be relative
        if base in {"", "."}:
            return path
        return f"{base.rstrip('/')}/{path}"

    def some(self, paths: Iterable[str]) -> str:
        """Return the names of the first files for an answer."""
        names = [self.shown(path) for path in sorted(paths)]
        if len(names) > MAX_NAMED:
            names[MAX_NAMED:] = ["..."]
        return ", ".join(names)

    def _matches(self, path: str) -> bool:
        if self.matcher is None or self.matcher.fullmatch(path) is not None:
            return True
        return self.alike is not None and self.alike.fullmatch(folded(path)) is not None


def scope_of(path: str, glob: str, context: ToolContext) -> Scope:
    """Return the scope of a search; directories at the start of the glob become part of the path.

    Raises:
        ToolError: the glob leads upwards.
    """
    if has_magic(path) and not glob.strip() and not os.path.lexists(context.cwd / path.strip()):
        glob = path
        path = "."
    place = locate(path, context).real if path.strip() else context.cwd
    is_name = bool(glob.strip()) and _is_there(place / glob)
    excludes = glob.strip().startswith("!") and not is_name
    wanted = [_inside(part) for part in _parts(glob, excludes=excludes, is_name=is_name)]
    base = ""
    if len(wanted) == 1 and "/" in wanted[0] and not excludes:
        base, rest = _split(wanted[0], place)
        if base:
            wanted = [f"/{rest}"]
        if base.startswith("/") and (base == "/" or not os.path.lexists(base)):
            # From the root of the search: nobody means to look through the whole machine.
            base = base.strip("/")
    # Folded into the path even when they are ``..``: the permission check then sees where the
    # search leads.
    location = find(os.path.join(path, base) if base else path, context)  # noqa: PTH118 - a text that may be relative
    if any(".." in part.split("/") for part in wanted):
        raise ToolError(f"glob {glob.strip()!r}: put .. in path.")
    if not glob.strip():
        return Scope(location)
    return Scope(
        location,
        glob=wanted[0] if len(wanted) == 1 else "",
        matcher=_any_of(wanted),
        alike=_any_of([folded(part) for part in wanted]),
        excludes=excludes,
        written=glob.strip(),
    )


def _parts(glob: str, *, excludes: bool, is_name: bool) -> list[str]:
    """Return the globs that a text holds, separated by commas; first the text as it is."""
    plain = glob.strip()
    if excludes:
        plain = plain.removeprefix("!")
    if is_name and glob != plain:
        return [glob]
    parts = [plain]
    if glob != plain and "/" not in plain and not excludes:
        parts.append(glob)  # A name may begin or end in white space.
    if "," in plain and "{" not in plain:
        parts += [part.strip() for part in plain.split(",") if part.strip()]
    return parts


def _is_there(path: Path) -> bool:
    try:
        return os.path.lexists(as_on_disk(path))
    except AlikeError:
        return True


def _inside(glob: str) -> str:
    """Return for ``src/`` the glob of the files in the directory, any other glob as it is."""
    if not glob.endswith("/") or glob == "/":
        return glob
    if "/" in glob[:-1]:
        return f"{glob}**"
    return f"**/{glob}**"


def _split(glob: str, place: Path) -> tuple[str, str]:
    """Split a glob as `split_glob` does.

    A directory that is there as it is written has no wildcards but ``**``.
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
    """Return a line as a search shows it."""
    line = line.rstrip("\r\n")
    if len(line) <= MAX_COLUMNS:
        return line
    return f"{line[:MAX_COLUMNS]} [...]"


def scope_needs(scope: Scope) -> tuple[PermissionNeed, ...]:
    return path_needs(Permission.READ, scope.location)


def check_exists(scope: Scope, context: ToolContext) -> None:
    """Stop a search of nothing, or of another place than was allowed.

    Raises:
        ToolError: the path does not exist, or leads somewhere else by now.
    """
    check_allowed(scope_needs(scope), context)
    if not os.path.lexists(scope.location.real):
        raise missing(scope.location, context)
