"""Shared by ``write`` and ``edit``: when a file may be changed, and the preview shown to the user before."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from tui_agent.errors import ToolError
from tui_agent.files.secret_files import MAX_BYTES, is_secret_file, shown_text
from tui_agent.files.sensitive import (
    is_bare_repository,
    is_of_repository,
    is_sensitive,
    rules_programs,
)
from tui_agent.path_checks import is_directory, is_file
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.text_files.encodings import DETECTED_BYTES
from tui_agent.text_files.structure import made_invalid
from tui_agent.tools.base import ToolContext
from tui_agent.tools.paths import Location, explain, path_needs

MAX_CHANGED_BYTES = DETECTED_BYTES
"""Largest file that is changed in memory."""


def change_needs(
    location: Location, diff: Callable[[], str], context: ToolContext
) -> tuple[PermissionNeed, ...]:
    """Return the needs of a change, each edit need with the diff.

    Raises:
        ToolError: the change can't be made. Not for files outside the project, with secrets, or
            that a rule keeps
            from being read: the reason may quote the file, and nobody has allowed that yet.
    """
    needs = path_needs(Permission.EDIT, location)
    if location.inside and not rules_programs(Path(location.real_pattern)):
        # Git takes such a directory for a repository, and obeys its settings.
        bare = _bare_around(location.real, Path(os.path.realpath(context.project)))
        needs += tuple(PermissionNeed(Permission.EDIT, f"{place}/.git") for place in bare)
    try:
        text = diff()
    except (ToolError, OSError) as error:
        is_open = (
            location.inside
            and not is_secret_file(location.real)
            and not is_sensitive(location.path)
        )
        reading = path_needs(Permission.READ, location)
        if is_open and all(context.verdict(need) != "deny" for need in reading):
            raise explain(error, location.shown) if isinstance(error, OSError) else error from None
        return needs
    return tuple(
        replace(need, detail=text, detail_kind="diff")
        if need.permission is Permission.EDIT
        else need
        for need in needs
    )


def _bare_around(path: Path, project: Path) -> Iterator[str]:
    """Yield the directories of a project that are bare repositories once there is a file."""
    for parent in path.parents[: len(path.parts) - len(project.parts)]:
        child = path.relative_to(parent).parts[0]
        try:
            names = [row.name for row in Path(parent).iterdir()]
        except OSError:
            names = []
        if is_of_repository(child) and is_bare_repository([child, *names]):
            yield parent.relative_to(project).as_posix()


def refuse_left_out(before: str, after: str, location: Location) -> None:
    """Stop a change that would put the mark for a secret in the secret's place, or take away what tells it is one.

    Raises:
        ToolError: it would.
    """
    from tui_agent.secret_detector import REMOVED, find_secrets

    if after.count(REMOVED) > before.count(REMOVED):
        raise ToolError(
            f"{location.shown} would have {REMOVED} in the place of a secret, which you were not shown; nothing was "
            "changed. Edit the lines around it."
        )
    start = before[:MAX_BYTES]
    if is_secret_file(location.real):
        secrets = []
    else:
        secrets = [start[found.start : found.end] for found in find_secrets(start)]
    pieces = {
        piece
        for text in secrets
        for at in range(0, len(text), 3)
        if len(piece := text[at : at + 6]) == 6
    }
    if pieces:
        now = shown_text(location.real, after)
        was = shown_text(location.real, before)
        if any(piece in now and piece not in was for piece in pieces):
            raise ToolError(
                f"{location.shown} would show a secret, which you were not shown; nothing was changed."
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


def validity_note(location: Location, before: str, after: str) -> str:
    """Return what is added to the answer when a change made a structured file invalid, "" for nothing."""
    found = made_invalid(location.real.name, before, after)
    if found is None:
        return ""
    return f" It was written, but is now {found}."


def stale(location: Location) -> ToolError:
    """Return the error for a file that is not as it was when the model read it."""
    return ToolError(
        f"{location.shown} changed since it was read. Read it again, then repeat the change."
    )
