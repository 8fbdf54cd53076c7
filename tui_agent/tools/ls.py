"""The ``ls`` tool: two levels of a directory."""

import asyncio

from tui_agent.errors import ToolError
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.session.tool_traits import ToolTraits
from tui_agent.tools.base import Tool, ToolContext, ToolInput, ToolResult
from tui_agent.tools.listing import list_tree
from tui_agent.tools.paths import explain, find, missing, path_needs, relocate


class LsInput(ToolInput):
    """Arguments of ``ls``."""

    path: str = "."


class LsTool(Tool[LsInput]):
    """Lists a directory."""

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

    def needs(self, arguments: LsInput, context: ToolContext) -> tuple[PermissionNeed, ...]:
        return path_needs(Permission.READ, find(arguments.path, context))

    async def run(self, arguments: LsInput, context: ToolContext) -> ToolResult:
        location = relocate(arguments.path, Permission.READ, context)
        try:
            return await list_tree(location, context, depth=2)
        except FileNotFoundError:
            raise await asyncio.to_thread(missing, location, context) from None
        except NotADirectoryError:
            raise ToolError(f"{location.shown} is a file; use read.") from None
        except OSError as error:
            raise explain(error, location.shown) from error
