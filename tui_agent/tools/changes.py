"""Defines the base class of the tools ``write`` and ``edit``.

The base class finds the permissions that a change needs, and writes the changed file.

The subclass plans the change (`ChangeTool.plan`) once for the diff that the user sees in the
question about permission, and again when the call runs. Checkpoints are recorded by the caller.
"""

import asyncio
import os
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from tui_agent.editing.diffs import FileDiff
from tui_agent.errors import ToolError
from tui_agent.files.inside import make_directories
from tui_agent.files.secret_files import MAX_BYTES, is_secret_file, shown_diff, shown_text
from tui_agent.files.sensitive import (
    has_steering_part,
    is_bare_repository,
    is_repository_part,
    is_sensitive,
)
from tui_agent.lazy import frozen
from tui_agent.path_checks import is_directory, is_file
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.session.entries import ToolMetadata
from tui_agent.text_files.encodings import DETECTED_BYTES
from tui_agent.text_files.replacing import check_writable, replace_file
from tui_agent.text_files.structure import made_invalid
from tui_agent.tools.base import Tool, ToolContext, ToolInput, ToolResult
from tui_agent.tools.paths import Location, explain, locate, path_needs, relocate

MAX_CHANGED_BYTES = DETECTED_BYTES
"""Maximum size of a file that can be changed, in bytes."""


@frozen
class Change:
    """A planned change of one file, with its old and new text, the bytes to write, and the diff.

    ``before`` is None for a new file. For a notebook, ``before`` and ``text`` are the text of the
    cells.
    """

    before: str | None
    text: str
    data: bytes
    diff: FileDiff
    count: int | None = None
    """Number of places that were changed; None if the places were not counted."""
    loosely: tuple[str, ...] = ()
    """Kinds of differences, such as "indentation", that were ignored in order to find the old text.
    """


class ChangeInput(ToolInput):
    """The arguments of a call that changes a file."""

    path: str


InputT = TypeVar("InputT", bound=ChangeInput)


class ChangeTool(Tool[InputT]):
    """Base class of tools that change one file.

    The change is planned twice, first to ask the user for permission, and again when it is made.
    """

    @abstractmethod
    def plan(self, arguments: InputT, location: Location, context: ToolContext) -> Change:
        """Plan the change of the file and return it, without writing anything.

        Raises ToolError or OSError if the change can't be made.
        """

    @abstractmethod
    def words(self, arguments: InputT, location: Location, change: Change, note: str) -> str:
        """Return the text of the tool result for the model, after the file was written.

        ``note`` is a sentence to include, with a space before it, or "".
        """

    def place(self, arguments: InputT, context: ToolContext) -> Location:
        """Return the location of the file to change, for the question about permission."""
        return locate(arguments.path, context)

    def needs(self, arguments: InputT, context: ToolContext) -> tuple[PermissionNeed, ...]:
        location = self.place(arguments, context)
        return change_needs(
            location, lambda: self.plan(arguments, location, context).diff.text, context
        )

    async def run(self, arguments: InputT, context: ToolContext) -> ToolResult:
        location = relocate(arguments.path, Permission.EDIT, context)
        return await asyncio.to_thread(self._change, arguments, location, context)

    def touches(self, arguments: InputT, context: ToolContext) -> tuple[Path, ...]:
        return (locate(arguments.path, context).real,)

    def title(self, arguments: InputT) -> str:
        return arguments.path

    def _change(self, arguments: InputT, location: Location, context: ToolContext) -> ToolResult:
        try:
            change = self.plan(arguments, location, context)
            if change.before is None:
                make_directories(location.real.parent)
            replace_file(location.real, change.data)
        except OSError as error:
            raise explain(error, location.shown) from error
        context.reads.note(location.real)
        before = change.before or ""
        diff = shown_diff(location.real, (before, change.text), change.diff.text)
        note = validity_note(location, before, change.text)
        return ToolResult(
            self.words(arguments, location, change, note),
            title=location.shown,
            metadata=ToolMetadata(
                path=location.pattern,
                diff=diff or None,
                additions=change.diff.additions,
                deletions=change.diff.deletions,
                count=change.count,
                modified_files=(location.pattern,),
            ),
        )


def change_needs(
    location: Location, diff: Callable[[], str], context: ToolContext
) -> tuple[PermissionNeed, ...]:
    """Return the permissions that a change needs; those for editing contain the diff.

    ``diff`` computes the diff, and raises ToolError or OSError if the change can't be made. If the
    file is outside the project or a secret, or the rules deny reading it, such an error is
    suppressed, because it could quote the file; the permissions are then returned without a diff.

    Raises:
        ToolError: the change can't be made, or the file can't be written.
    """
    needs = path_needs(Permission.EDIT, location)
    if location.inside and not has_steering_part(Path(location.real_pattern)):
        # Writing the file may turn a directory into a bare git repository, whose settings git then
        # obeys. So this needs a permission, too.
        bare = _bare_around(location.real, Path(os.path.realpath(context.project)))
        needs += tuple(PermissionNeed(Permission.EDIT, f"{place}/.git") for place in bare)
    try:
        text = diff()
        check_writable(location.real)
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
    shown = []
    for need in needs:
        if need.permission is Permission.EDIT:
            need = replace(need, detail=text, detail_kind="diff")  # noqa: PLW2901 - the same need
        shown.append(need)
    return tuple(shown)


def _bare_around(path: Path, project: Path) -> Iterator[str]:
    """Yield the directories that would become bare git repositories if a file were written.

    They are directories around the file, up to the project itself ("."), relative to the project.
    """
    for parent in path.parents[: len(path.parts) - len(project.parts)]:
        child = path.relative_to(parent).parts[0]
        try:
            names = [row.name for row in Path(parent).iterdir()]
        except OSError:
            names = []
        if is_repository_part(child) and is_bare_repository([child, *names]):
            yield parent.relative_to(project).as_posix()


def refuse_left_out(before: str, after: str, location: Location) -> None:
    """Raise ToolError if a change writes the placeholder of a secret or reveals a secret.

    ``before`` and ``after`` are the whole text of the file before and after the change.
    """
    from tui_agent.secret_detector import REMOVED, find_secrets

    if after.count(REMOVED) > before.count(REMOVED):
        raise ToolError(
            f"{location.shown} would have {REMOVED} instead of a secret that you were not shown; nothing was "
            "changed. Edit the lines around it."
        )
    if is_secret_file(location.real):
        return
    start = before[:MAX_BYTES]
    pieces: set[str] = set()
    for found in find_secrets(start):
        for at in range(found.start, found.end - 5, 3):
            pieces.add(start[at : at + 6])
    if pieces:
        now = shown_text(location.real, after)
        was = shown_text(location.real, before)
        if any(piece in now and piece not in was for piece in pieces):
            raise ToolError(
                f"The change would reveal a secret in {location.shown} that you were not shown; nothing was changed."
            )


def refuse_unless_file(location: Location) -> None:
    """Raise ToolError unless the location is a regular file."""
    if is_directory(location.real):
        raise ToolError(f"{location.shown} is a directory.")
    if not is_file(location.real):
        raise ToolError(f"{location.shown} is a device, pipe or socket, not a file.")


def validity_note(location: Location, before: str, after: str) -> str:
    """Return a sentence for the model if a change made a valid file invalid, else "".

    Checks JSON, notebooks, TOML, YAML and Python.
    """
    found = made_invalid(location.real.name, before, after)
    if found is None:
        return ""
    return f" The file was written, but is now {found}."


def stale(location: Location) -> ToolError:
    """Return the error for a file that changed since the model read it."""
    return ToolError(
        f"{location.shown} changed since it was read. Read it again, then repeat the change."
    )
