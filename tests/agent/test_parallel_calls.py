"""Reading calls of one answer: as many side by side as the setting says, and no more."""

import asyncio
from pathlib import Path
from typing import ClassVar

import pytest

from tests.support.agents import make_agent
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tui_agent.permission import PermissionNeed
from tui_agent.tools.base import Tool, ToolContext, ToolInput, ToolResult

CALLS = 4


class Nothing(ToolInput):
    """Takes no arguments."""


class Meet(Tool[Nothing]):
    """Ends once as many calls run at the same time as were expected; tells the most that ever did."""

    name: ClassVar[str] = "meet"
    description: ClassVar[str] = "Wait for the others."
    Input = Nothing
    read_only: ClassVar[bool] = True

    def __init__(self, expected: int) -> None:
        self._full = asyncio.Event()
        self._expected = expected
        self.running = self.most = 0

    def needs(self, arguments: Nothing, context: ToolContext) -> tuple[PermissionNeed, ...]:
        return ()

    async def run(self, arguments: Nothing, context: ToolContext) -> ToolResult:
        self.running += 1
        self.most = max(self.most, self.running)
        if self.running == self._expected:
            self._full.set()
        await asyncio.wait_for(self._full.wait(), 60)
        self.running -= 1
        return ToolResult("met")


@pytest.mark.parametrize("allowed", [1, 2, CALLS])
async def test_no_more_calls_run_side_by_side_than_allowed(tmp_path: Path, allowed: int) -> None:
    meet = Meet(expected=allowed)
    client = ScriptedClient([Reply(calls=tuple(Call("meet", "{}") for _ in range(CALLS))), Reply("Done.")])
    harness = make_agent(tmp_path, client, tools=(meet,), parallel_calls=allowed)
    await harness.say("meet")
    assert meet.most == allowed
    assert harness.kinds().count("tool_result") == CALLS
