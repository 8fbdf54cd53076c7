"""The ``lookup`` tool: what a word means in the project's own dictionary."""

from tui_agent.errors import ToolError
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.session.tool_traits import ToolTraits
from tui_agent.tools.base import Tool, ToolContext, ToolInput, ToolResult
from tui_agent.tools.outputs import Output, finish

MEANINGS = {"leaf": "The entry the next one is appended to."}


class LookupInput(ToolInput):
    """Arguments of ``lookup``."""

    word: str


class LookupTool(Tool[LookupInput]):
    """Tells what a word means."""

    name = "lookup"
    description = "Look up what a word means in this project."
    Input = LookupInput
    traits = ToolTraits(kind="search", other_names="define", repeatable=True)
    read_only = True

    def needs(self, arguments: LookupInput, context: ToolContext) -> tuple[PermissionNeed, ...]:
        """Return a read need for the word."""
        return (PermissionNeed(Permission.READ, arguments.word),)

    async def run(self, arguments: LookupInput, context: ToolContext) -> ToolResult:
        """Look it up."""
        if (meaning := MEANINGS.get(arguments.word)) is None:
            raise ToolError(
                f"There is no word {arguments.word!r}; there are {', '.join(MEANINGS)}."
            )
        return await finish(Output(meaning), context)
