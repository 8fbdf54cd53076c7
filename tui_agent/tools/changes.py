"""Shared by ``write`` and ``edit``: when a file may be changed, and the preview shown to the user before."""

from collections.abc import Callable
from dataclasses import replace

from tui_agent.errors import ToolError
from tui_agent.files.secret_files import is_secret_file
from tui_agent.files.sensitive import is_sensitive
from tui_agent.path_checks import is_directory, is_file
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.tools.base import ToolContext
from tui_agent.tools.paths import Location, explain, path_needs

MAX_CHANGED_BYTES = 10_000_000
"""Largest file that is changed in memory."""


def change_needs(location: Location, diff: Callable[[], str], context: ToolContext) -> tuple[PermissionNeed, ...]:
    """Return the needs of a change, each edit need with the diff.

    Raises:
        ToolError: the change can't be made. Not for files outside the project, with secrets, or that a rule keeps
            from being read: the reason may quote the file, and nobody has allowed that yet.
    """
    needs = path_needs(Permission.EDIT, location)
    try:
        text = diff()
    except (ToolError, OSError) as error:
        is_open = location.inside and not is_secret_file(location.real) and not is_sensitive(location.path)
        reading = path_needs(Permission.READ, location)
        if is_open and all(context.verdict(need) != "deny" for need in reading):
            raise explain(error, location.shown) if isinstance(error, OSError) else error from None
        return needs
    return tuple(
        replace(need, detail=text, detail_kind="diff") if need.permission is Permission.EDIT else need for need in needs
    )


def refuse_left_out(before: str, after: str, location: Location) -> None:
    """Stop a change that would put the mark for a secret in the secret's place.

    Raises:
        ToolError: it would.
    """
    from tui_agent.secret_detector import REMOVED

    if after.count(REMOVED) > before.count(REMOVED):
        raise ToolError(
            f"{location.shown} would have {REMOVED} in the place of a secret, which you were not shown; nothing was "
            "changed. Edit the lines around it."
        )


def refuse_unless_file(location: Location) -> None:
    """Stop a change of something that is not a regular file.

    Raises:
        ToolError: it is a directory or a device.
    """
    if is_directory(location.real):
        raise ToolError(f"{location.shown} is a directory.")
    if not is_file(location.real):
        raise ToolError(f"{location.shown} is a device, pipe or socket, not a file.")


def stale(location: Location) -> ToolError:
    """Return the error for a file that is not as it was when the model read it."""
    return ToolError(f"{location.shown} changed since it was read. Read it again, then repeat the change.")
