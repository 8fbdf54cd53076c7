"""The ``glob`` tool: finds files by name, newest first."""

import asyncio
import os
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from itertools import groupby
from pathlib import Path

from tui_agent.files.descriptors import open_beneath, state_at, using
from tui_agent.files.globs import has_unclosed_bracket
from tui_agent.files.inside import directory as opened_directory
from tui_agent.files.ripgrep import shared_files
from tui_agent.files.unseen import unseen_files
from tui_agent.path_checks import is_directory
from tui_agent.permission import PermissionNeed
from tui_agent.session.entries import ToolMetadata
from tui_agent.session.tool_traits import ToolTraits
from tui_agent.tools.base import Tool, ToolContext, ToolInput, ToolResult
from tui_agent.tools.outputs import NARROWER, Output, counted, finish
from tui_agent.tools.searching import Scope, check_exists, scope_needs, scope_of

MAX_FILES = 100
"""Maximum number of files in the output."""


class GlobInput(ToolInput):
    """Arguments of the ``glob`` tool."""

    pattern: str
    path: str = "."


class GlobTool(Tool[GlobInput]):
    """Finds the files whose paths match a glob, newest first. Skips files that git ignores."""

    name = "glob"
    description = "Find files by pattern like src/**/*.{ts,tsx}, newest first."
    Input = GlobInput
    traits = ToolTraits(
        basic=True,
        kind="search",
        other_names="find findfiles globsearch filesearch findfile",
        explores=True,
        repeatable=True,
        counts="file",
        runs_of="pattern",
        says_arguments=True,
    )
    read_only = True

    def needs(self, arguments: GlobInput, context: ToolContext) -> tuple[PermissionNeed, ...]:
        return scope_needs(scope_of(arguments.path, arguments.pattern, context))

    async def run(self, arguments: GlobInput, context: ToolContext) -> ToolResult:
        scope = scope_of(arguments.path, arguments.pattern, context)
        await asyncio.to_thread(check_exists, scope, context)
        if scope.single_file is not None:
            paths = [scope.single_file]
        else:
            paths = await shared_files(scope.directory)
        taken = [path for path in paths if scope.takes(path)]
        found = await asyncio.to_thread(_newest_first, scope.directory, taken)
        shown = [scope.shown(path) for path in found[:MAX_FILES]]
        nothing = ""
        if not found:
            nothing = await asyncio.to_thread(_nothing, scope)
        narrower = partial(NARROWER.format, total=len(found), what="files")
        output = Output(
            text="\n".join(shown) or nothing,
            title=f"{arguments.pattern} · {counted(len(found), 'file')}",
            footer=narrower(shown=len(shown)) if len(shown) < len(found) else "",
            cut_hint=lambda cut: narrower(shown=cut.kept_lines),
            metadata=ToolMetadata(count=len(found)),
        )
        return await finish(output, context)


def _nothing(scope: Scope) -> str:
    """Return a text for the model that says why no file matches, or which skipped files match."""
    if scope.single_file is not None:
        return f"No files match: {scope.location.shown} is a file with another name."
    plain = scope.glob.strip("/")
    if plain and is_directory(scope.directory / plain):
        name = scope.shown(plain)
        return f"No files match: {name} is a directory. To find the files in it, use {name}/**."
    unseen = unseen_files(scope.directory, scope.takes)
    if unseen.paths:
        by_reason: dict[str, list[str]] = {}
        for path, reason in unseen.paths.items():
            by_reason.setdefault(reason, []).append(path)
        groups = [f"{reason}: {scope.first_names(paths)}" for reason, paths in by_reason.items()]
        return f"The only matches are files that searches skip ({'; '.join(groups)})."
    if unseen.is_complete:
        literally = ""
        if has_unclosed_bracket(scope.glob):
            literally = " The pattern has an unclosed [ or {, which was matched literally."
        return f"No files match, including files ignored by git.{literally}"
    return "No files match. Not all files ignored by git were checked; search a smaller path."


def _newest_first(directory: Path, paths: list[str]) -> list[str]:
    """Return the files sorted by modification time, newest first.

    ``paths`` and the result are relative to ``directory``. Missing files, and files below a link to
    a directory, are left out.
    """
    modified = dict[str, int]()
    with suppress(OSError), opened_directory(directory) as root:
        for folder, group in groupby(sorted(paths, key=os.path.dirname), key=os.path.dirname):
            with suppress(OSError):
                modified |= _times(root, folder, group)
    return sorted(modified, key=lambda path: (-modified[path], path))


def _times(root: int, folder: str, paths: Iterable[str]) -> dict[str, int]:
    """Return the modification times, in nanoseconds, of files in the directory ``folder``, by path.

    ``root`` is the file descriptor of the directory to which ``folder`` and ``paths`` are relative.
    Missing files are left out. Raises OSError if ``folder`` can't be opened, or contains a link.
    """
    times = dict[str, int]()
    with using(open_beneath(root, folder)) as opened:
        for path in paths:
            state = state_at(opened, path.rpartition("/")[2])
            if state is not None:
                times[path] = state.st_mtime_ns
    return times
