"""Resolves paths in tool arguments, finds the permissions they need, and suggests similar paths."""

import difflib
import os
from collections.abc import Iterable
from pathlib import Path

from tui_agent.errors import ToolError
from tui_agent.files.ignore import walk_files
from tui_agent.files.secret_files import is_secret_file
from tui_agent.files.sensitive import is_sensitive
from tui_agent.lazy import frozen
from tui_agent.path_checks import is_directory, is_inside, is_link
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.safe_text import listed_name, valid
from tui_agent.text_files.names import AlikeError, as_on_disk
from tui_agent.tools.base import ToolContext

_SUGGESTIONS = 3
"""Maximum number of paths suggested for a path that doesn't exist."""
_MAX_SIBLINGS = 2_000
"""Maximum number of names in a directory that are compared for suggestions."""
_MAX_FILES = 20_000
"""Maximum number of project files that are compared with a missing path in order to suggest similar
ones."""
_MAX_END_PARTS = 30
"""Maximum number of components that are taken from the end of a missing path and looked up in the
project."""
_MAX_CHARS = 300
"""Maximum number of characters of a path that a message shows."""
_WILD = frozenset("*?")
_QUOTES = {"`": "`", '"': '"', "'": "'", "<": ">"}
"""The closing quotation mark for each opening quotation mark."""


@frozen
class Location:
    """A path from a call's arguments, resolved.

    ``path`` is the absolute path, and ``real`` is that path with symbolic links resolved. ``shown``
    is the path for the user and the model, relative to the working directory if possible.
    ``pattern`` and ``real_pattern`` are ``path`` and ``real`` as rules match them: relative to the
    project, or absolute if they are outside it. ``inside`` is True if ``real`` is in the project.
    """

    path: Path
    real: Path
    shown: str
    pattern: str
    real_pattern: str
    inside: bool


def locate(raw: str, context: ToolContext) -> Location:
    """Resolve a path, which may be relative to the call's working directory and need not exist.

    Tolerates quotes, spaces, a leading ``@``, ``file://``, and names that only look the same as
    names on disk.

    Raises:
        ToolError: the text can't be a path, or several names in the project look the same as it.
    """
    if not raw.strip() or "\0" in raw:
        raise ToolError("path is empty or contains a NUL character")
    written = _written(raw, context)
    project = context.stands_for
    if (
        project is not None
        and written.is_relative_to(project)
        and not written.is_relative_to(context.project)
    ):
        # The tool call works in a copy of the project, so a path in the original becomes one in the
        # copy.
        written = context.project / written.relative_to(project)
    path, real = Path(os.path.normpath(written)), Path(os.path.realpath(written))
    project = Path(os.path.realpath(context.project))
    if os.path.realpath(path) != str(real) or (
        real.is_relative_to(project) and not path.is_relative_to(context.project)
    ):
        # Use the path without links, because ``link/..`` is the parent of the link's target, and
        # because a project may be reached through a link.
        path = real
    return Location(
        path=path,
        real=real,
        shown=listed_name(_relative(path, context.cwd, Path(os.path.realpath(context.cwd)))),
        pattern=_relative(path, context.project, project),
        real_pattern=_relative(real, project),
        inside=real.is_relative_to(project),
    )


def _written(raw: str, context: ToolContext) -> Path:
    """Return the absolute path that the model means by a text.

    If the text is an existing path as it is written, that path is returned. Otherwise spaces around
    the text are removed and ``~`` is expanded. If the resulting path doesn't exist either, quotes
    and similar characters are removed, too.
    """
    as_said = _as_on_disk(raw, context)
    if os.path.lexists(as_said):
        return as_said
    text = raw.strip()
    plain = _as_on_disk(_with_home(text), context)
    if os.path.lexists(plain):
        return plain
    return _as_on_disk(_with_home(_without_quotes(text)), context)


def _as_on_disk(name: str | Path, context: ToolContext) -> Path:
    path = context.cwd / name
    try:
        return as_on_disk(path)
    except AlikeError as error:
        if not is_inside(context.project, path.parent):
            return path  # Reading names outside the project is not allowed yet.
        raise ToolError(f"{error}.") from None


def find(raw: str, context: ToolContext) -> Location:
    """Resolve a path that should exist, before the user is asked for permission.

    Raises:
        ToolError: `locate` refuses the path, or the path is outside the project and doesn't exist,
            but the project contains a path with the same end (models invent directories above the
            project).
    """
    location = locate(raw, context)
    if (
        not location.inside
        and not os.path.lexists(location.real)
        and (meant := _same_end(location, context))
    ):
        raise ToolError(f"{location.shown} does not exist. Did you mean {meant}?")
    return location


def relocate(raw: str, permission: Permission, context: ToolContext) -> Location:
    """Resolve a path again at the time when the tool call runs.

    Raises:
        ToolError: the path now leads to a place that was not allowed, because a link has changed.
    """
    location = locate(raw, context)
    check_allowed(path_needs(permission, location), context)
    return location


def check_allowed(needs: Iterable[PermissionNeed], context: ToolContext) -> None:
    """Check, when a call runs, that all permissions which it needs were given before.

    Does nothing if permissions were not checked (``context.allowed`` is None).

    Raises:
        ToolError: a permission that the call needs was not given.
    """
    if context.allowed is None:
        return
    for need in needs:
        if (need.permission, need.pattern) not in context.allowed:
            raise ToolError(
                f"The call now leads to {need.pattern}, which was not allowed; nothing was done."
            )


def path_needs(permission: Permission, location: Location) -> tuple[PermissionNeed, ...]:
    """Return the permissions that a path needs: for the path, and for its real path if different.

    If the real path is outside the project, also return the permission for its directory.
    """
    real = location.real
    secret = permission is Permission.READ and not is_sensitive(real) and is_secret_file(real)
    leads_to = ""
    if location.real_pattern != location.pattern:
        leads_to = location.real_pattern
    needs = [PermissionNeed(permission, location.pattern, secret=secret, leads_to=leads_to)]
    if leads_to:
        needs.append(PermissionNeed(permission, leads_to, secret=secret, leads_to=leads_to))
    if not location.inside:
        directory = real if is_directory(real) else real.parent
        outside = PermissionNeed(Permission.EXTERNAL_DIRECTORY, str(directory), detail=str(real))
        needs.append(outside)
    return tuple(needs)


def missing(location: Location, context: ToolContext) -> ToolError:
    """Return the error for a path that doesn't exist, with suggestions of similar paths.

    Nothing is suggested for a link to a missing path, or for a pattern such as ``*.py``. The
    function searches the project, so call it in a thread.
    """
    shown = _cut(location.shown)
    if is_link(location.path):
        return ToolError(
            f"{shown} is a link to {valid(str(location.path.readlink()))}, which does not exist."
        )
    if not _WILD.isdisjoint(shown):
        return ToolError(f"{shown} does not exist. To find files by a pattern, use glob.")
    close = _suggestions(location, context)
    meant = ""
    if close:
        meant = f" Did you mean {' or '.join(close)}?"
    return ToolError(f"{shown} does not exist.{meant}")


def _suggestions(location: Location, context: ToolContext) -> list[str]:
    """Return up to ``_SUGGESTIONS`` existing paths similar to a missing one, most likely first.

    The paths are relative to the working directory if they are in it.
    """
    found = []
    if meant := _same_end(location, context):
        found.append(meant)
    for near in _close_siblings(location.path):
        found.append(_relative(location.path.parent / near, context.cwd))
    if location.inside:
        found += _same_name(location, context)
    return [valid(path) for path in dict.fromkeys(found)][:_SUGGESTIONS]


def _same_name(location: Location, context: ToolContext) -> list[str]:
    """Return the project's files that have the same name as the location, ignoring case.

    The files whose directories have the most names in common with the location come first.
    """
    name = location.path.name.lower()
    files = []
    for path in walk_files(context.project, limit=_MAX_FILES):
        if path.name.lower() == name:
            files.append(_relative(path, context.cwd))
    parts = set(location.shown.split("/"))
    return sorted(files, key=lambda path: (-len(parts.intersection(path.split("/"))), path))


def explain(error: OSError, shown: str) -> ToolError:
    """Return an error for the model that names the path and the operating system's reason."""
    reason = error.strerror or type(error).__name__
    return ToolError(f"{_cut(shown)}: {reason[:1].lower()}{reason[1:]}.")


def _cut(shown: str) -> str:
    if len(shown) <= _MAX_CHARS:
        return shown
    return f"{shown[:_MAX_CHARS]}..."


def _without_quotes(text: str) -> str:
    """Return a path without quotes around it and without a leading ``@`` or ``file://``.

    Backslashes become slashes if the path contains no slash.
    """
    if len(text) > 2 and text[0] in _QUOTES and text[-1] == _QUOTES[text[0]]:
        text = text[1:-1]
    if text.startswith("file://"):
        from urllib.parse import unquote

        text = unquote(text.removeprefix("file://"))
    text = text.removeprefix("@")
    if "/" in text:
        return text
    return text.replace("\\", "/")


def _with_home(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise ToolError(f"{text}: no such home directory.") from error


def _relative(path: Path, *bases: Path) -> str:
    for base in bases:
        if path.is_relative_to(base):
            return path.relative_to(base).as_posix()
    return path.as_posix()


def _close_siblings(path: Path) -> list[str]:
    try:
        with os.scandir(path.parent) as rows:
            names = [row.name for row, _ in zip(rows, range(_MAX_SIBLINGS), strict=False)]
    except OSError:
        return []
    lowered = {name.lower(): name for name in sorted(names)}
    close = difflib.get_close_matches(path.name.lower(), lowered, _SUGGESTIONS, 0.7)
    return [lowered[near] for near in close]


def _same_end(location: Location, context: ToolContext) -> str:
    """Return the existing project path that has the longest end in common with a location.

    The result is relative to the working directory if it is inside that directory. Returns "" if
    there is no such path.
    """
    parts = location.path.parts[1:][-_MAX_END_PARTS:]
    for start in range(len(parts)):
        path = context.project.joinpath(*parts[start:])
        if os.path.lexists(path) and path != location.path:
            return valid(_relative(path, context.cwd))
    return ""
