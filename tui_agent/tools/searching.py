"""Where a search starts and which files it takes, the same for ``grep`` and ``glob``."""

import os
import re
from pathlib import Path

from tui_agent.errors import ToolError
from tui_agent.files.globs import compile_glob, has_magic, split_glob
from tui_agent.lazy import dataclass
from tui_agent.path_checks import is_directory
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.tools.base import ToolContext
from tui_agent.tools.paths import Location, check_allowed, find, missing, path_needs


@dataclass(frozen=True, slots=True)
class Scope:
    """A place to search and the glob that files below it have to match; ``matcher`` None takes all.

    With ``excludes`` those are taken that don't match.
    """

    location: Location
    glob: str = ""
    matcher: re.Pattern[str] | None = None
    excludes: bool = False

    @property
    def directory(self) -> Path:
        return self.location.real if is_directory(self.location.real) else self.location.real.parent

    @property
    def single_file(self) -> str | None:
        return None if is_directory(self.location.real) else self.location.real.name

    def takes(self, path: str) -> bool:
        return self.matcher is None or (self.matcher.fullmatch(path) is not None) != self.excludes

    def shown(self, path: str) -> str:
        base = self.location.shown if self.single_file is None else os.path.dirname(self.location.shown)  # noqa: PTH120 - a text to show
        return path if base in {"", "."} else f"{base.rstrip('/')}/{path}"


def scope_of(path: str, glob: str, context: ToolContext) -> Scope:
    """Return the scope of a search; directories at the start of the glob become part of the path.

    Raises:
        ToolError: the glob is malformed.
    """
    path, glob = path.strip(), glob.strip()
    if has_magic(path) and not glob and not os.path.lexists(context.cwd / path):
        path, glob = ".", path
    excludes, plain = glob.startswith("!"), glob.removeprefix("!")
    parts = [part.strip() for part in plain.split(",")] if "{" not in plain else [plain]
    wanted = [_inside(part) for part in parts if part] or [""]
    base, rest = split_glob(wanted[0]) if len(wanted) == 1 and "/" in wanted[0] and not excludes else ("", "")
    if base.startswith("/") and (base == "/" or not os.path.lexists(base)):
        # From the root of the search: nobody means to look through the whole machine.
        base, wanted = base.strip("/"), [f"/{rest}"]
    elif base:
        wanted = [f"/{rest}"]
    # Folded into the path even when they are ``..``: the permission check then sees where the search leads.
    location = find(os.path.join(path, base) if base else path, context)  # noqa: PTH118 - a text that may be relative
    if any(".." in part.split("/") for part in wanted):
        raise ToolError(f"glob {glob!r}: put .. in path.")
    try:
        matcher = re.compile("|".join(f"(?:{compile_glob(part).pattern})" for part in wanted), re.DOTALL)
    except (ValueError, re.error) as error:
        raise ToolError(f"glob {glob!r} is malformed: {error}.") from None
    return Scope(location, wanted[0] if len(wanted) == 1 else "", matcher if glob else None, excludes=excludes)


def _inside(glob: str) -> str:
    """Return for ``src/`` the glob of the files in the directory, any other glob as it is."""
    if not glob.endswith("/") or glob == "/":
        return glob
    return f"{glob}**" if "/" in glob[:-1] else f"**/{glob}**"


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
