"""``remember``: the model proposes a line for the project's memory; the user decides."""

import asyncio
from typing import ClassVar

from tui_agent.errors import ToolError
from tui_agent.files.memory import NotKeptError
from tui_agent.session.tool_traits import ToolTraits
from tui_agent.tools.base import FreeTool, ToolContext, ToolInput, ToolResult


class RememberInput(ToolInput):
    """Arguments of ``remember``."""

    note: str
    """``topic: one sentence``, or a sentence alone."""


class RememberTool(FreeTool[RememberInput]):
    """Writes nothing that a model is sent, so it needs no permission."""

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
            raise ToolError("Nothing is kept for later sessions here.")
        try:
            line = await asyncio.to_thread(context.propose, arguments.note)
        except NotKeptError as error:
            raise ToolError(str(error)) from error
        return ToolResult("Proposed. The user decides in /memory.", title=line[:80])
