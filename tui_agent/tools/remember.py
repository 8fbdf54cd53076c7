"""The ``remember`` tool: proposes a line for the project's memory, which the user may accept."""

import asyncio
from typing import ClassVar

from tui_agent.errors import ToolError
from tui_agent.files.memory import NotKeptError
from tui_agent.session.tool_traits import ToolTraits
from tui_agent.tools.base import FreeTool, ToolContext, ToolInput, ToolResult


class RememberInput(ToolInput):
    """Arguments of the ``remember`` tool."""

    note: str
    """The line to propose: ``topic: one sentence``, or only a sentence."""


class RememberTool(FreeTool[RememberInput]):
    """Proposes a line for the project's memory.

    The call needs no permission, because the line has no effect before the user accepts it.
    """

    name: ClassVar[str] = "remember"
    description: ClassVar[str] = "Propose a fact or wish to keep for later sessions."
    Input = RememberInput
    read_only: ClassVar[bool] = True
    traits = ToolTraits(
        kind="think",
        other_names="savememory memory addmemory",
        quotes=True,
    )

    async def run(self, arguments: RememberInput, context: ToolContext) -> ToolResult:
        if context.propose is None:
            raise ToolError("This session has no memory to add to.")
        try:
            line = await asyncio.to_thread(context.propose, arguments.note)
        except NotKeptError as error:
            raise ToolError(str(error)) from error
        return ToolResult(
            "The line was proposed. The user decides about it in /memory.", title=line[:80]
        )
