"""The ``ls`` tool, and the two-level listing of a directory that ``read`` also shows."""

import asyncio
from dataclasses import field

from tui_agent.context.projection import ModelTraits
from tui_agent.errors import ToolError
from tui_agent.files.ignore import IgnoreRules, ListedPath, rows
from tui_agent.lazy import dataclass
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.safe_text import listed_name
from tui_agent.session.entries import ToolMetadata
from tui_agent.session.tool_traits import ToolTraits
from tui_agent.tools.base import Tool, ToolContext, ToolInput, ToolResult
from tui_agent.tools.outputs import LIST_BY_NAME, LIST_DEEPER, Output, counted, finish
from tui_agent.tools.paths import Location, explain, find, missing, path_needs, relocate

MAX_ROWS = 400
"""Maximum number of names in a listing."""

MAX_CHILDREN = 60
"""Maximum number of names that a listing shows for one subdirectory."""

_IGNORED_SHOWN = 10
"""Maximum number of ignored names that are shown below a listing."""


@dataclass
class _Listing:
    lines: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    total: int = 0


async def list_tree(location: Location, context: ToolContext) -> ToolResult:
    """Return a tool result that lists a directory, with the names in its subdirectories indented.

    Names that git ignores are not listed; a note mentions some of the ignored names at the first
    level. If there are more than ``MAX_ROWS`` names, only the first level is listed. Raises OSError
    if the directory can't be read.
    """
    listing = await asyncio.to_thread(_listing, location, 2)
    if len(listing.lines) > MAX_ROWS:
        # A complete list of the first level is more useful than an incomplete list of two levels.
        listing = await asyncio.to_thread(_listing, location, 1)
    shown = listing.lines[:MAX_ROWS]
    notes = []
    if len(shown) < listing.total:
        notes.append(_rest(shown).format(shown=len(shown), total=listing.total))
    if listing.ignored:
        more = "" if len(listing.ignored) <= _IGNORED_SHOWN else ", ..."
        notes.append(f"[Ignored by git: {', '.join(listing.ignored[:_IGNORED_SHOWN])}{more}]")
    output = Output(
        text="\n".join(shown) or "[The directory is empty.]",
        title=f"{location.shown} · {counted(listing.total, 'name')}",
        footer="\n".join(notes),
        cut_hint=_rest(shown),
        metadata=ToolMetadata(path=location.pattern, count=listing.total),
    )
    return await finish(output, context)


def _rest(shown: list[str]) -> str:
    if any(name.endswith("/") for name in shown):
        return LIST_DEEPER
    return LIST_BY_NAME


def _listing(location: Location, depth: int) -> _Listing:
    listing = _Listing()
    rules = IgnoreRules.above(location.real).entering(location.real)
    for row in rows(location.real, rules):
        if row.ignored:
            listing.ignored.append(_name(row))
        else:
            _add(listing, row, rules, depth - 1)
    return listing


def _add(
    listing: _Listing, row: ListedPath, rules: IgnoreRules, depth: int, indent: str = ""
) -> None:
    listing.lines.append(f"{indent}{_name(row)}")
    listing.total += 1
    if not row.directory or depth < 1:
        return
    inner = rules.entering(row.path)
    try:
        children = [child for child in rows(row.path, inner) if not child.ignored]
    except OSError:
        return
    below = f"{indent}  "
    for child in children[:MAX_CHILDREN]:
        _add(listing, child, inner, depth - 1, below)
    if len(children) > MAX_CHILDREN:
        listing.total += len(children) - MAX_CHILDREN
        listing.lines.append(f"{below}... {len(children) - MAX_CHILDREN} more")


def _name(row: ListedPath) -> str:
    if row.directory:
        suffix = "/"
    elif row.link:
        suffix = "@"
    else:
        suffix = ""
    return f"{listed_name(row.name)}{suffix}"


class LsInput(ToolInput):
    """Arguments of the ``ls`` tool."""

    path: str = "."


class LsTool(Tool[LsInput]):
    """Lists a directory.

    No request offers the tool, because ``read`` lists directories, too. It exists for models that
    call it from habit.
    """

    name = "ls"
    description = "List a directory, two levels deep, without what git ignores."
    Input = LsInput
    traits = ToolTraits(
        kind="search",
        other_names="list listdir listdirectory listfiles dir",
        explores=True,
        repeatable=True,
        counts="entry",
        runs_of="folder",
        says_arguments=True,
    )
    read_only = True

    def offered_to(self, model: ModelTraits) -> bool:  # noqa: ARG002 - as inherited
        return False

    def needs(self, arguments: LsInput, context: ToolContext) -> tuple[PermissionNeed, ...]:
        return path_needs(Permission.READ, find(arguments.path, context))

    async def run(self, arguments: LsInput, context: ToolContext) -> ToolResult:
        location = relocate(arguments.path, Permission.READ, context)
        try:
            return await list_tree(location, context)
        except FileNotFoundError:
            raise await asyncio.to_thread(missing, location, context) from None
        except NotADirectoryError:
            raise ToolError(f"{location.shown} is a file; use read.") from None
        except OSError as error:
            raise explain(error, location.shown) from error
