"""Runs a call while what it changes is recorded."""

import asyncio
from typing import Any

from tui_agent.agent.checkpoints.recorder import Recorder
from tui_agent.tools.base import Tool, ToolContext, ToolInput, ToolResult


async def run_watched(
    recorder: Recorder | None, tool: Tool[Any], arguments: ToolInput, context: ToolContext
) -> ToolResult:
    """Run a call as it is without a recorder, otherwise watched.

    Raises:
        ToolError: as the call raises it.
    """
    if recorder is None:
        return await tool.run(arguments, context)
    context.recorded = recorder.around
    async with recorder.around(await asyncio.to_thread(tool.touches, arguments, context)):
        return await tool.run(arguments, context)
