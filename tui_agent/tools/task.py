"""The ``task`` tool: gives a task to a subagent on a separate branch, and returns its report."""

from typing import ClassVar, Literal

from pydantic import ConfigDict, Field

from tui_agent.errors import ToolError
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.session.entries import ToolMetadata
from tui_agent.session.tool_traits import ToolTraits
from tui_agent.tools.base import (
    SubagentHost,
    SubagentReport,
    Tool,
    ToolContext,
    ToolInput,
    ToolResult,
)
from tui_agent.tools.outputs import Output, finish
from tui_agent.whole_numbers import plural

TITLE_CHARS = 60
"""Maximum number of characters of the task that the title of the call's card shows."""


class TaskInput(ToolInput):
    """Arguments of the ``task`` tool."""

    agent: str = "explore"
    task: str = Field(description="All it needs to know")
    context: Literal["task", "conversation"] = Field(
        default="task", description="conversation: it sees this conversation"
    )
    continue_: int | None = Field(
        default=None,
        alias="continue",
        description="Number at the end of a report: continues its subagent",
    )

    model_config = ConfigDict(validate_by_alias=True, validate_by_name=True)


class TaskTool(Tool[TaskInput]):
    """Starts or continues a subagent, whose context is separate from the caller's.

    Several subagents can run in parallel.
    """

    name: ClassVar[str] = "task"
    description: ClassVar[str] = (
        "Have a subagent work and report, to keep its reading out of your context. "
        "explore: only reads. general: every tool. Several run side by side."
    )
    Input = TaskInput
    traits = ToolTraits(
        kind="think",
        other_names="agent subagent dispatchagent",
        starts_agents=True,
    )
    read_only: ClassVar[bool] = True
    # The call counts as read-only, because the subagent's own calls are checked and recorded one by
    # one.

    def needs(self, arguments: TaskInput, context: ToolContext) -> tuple[PermissionNeed, ...]:
        return (PermissionNeed(Permission.TASK, self._agent(arguments, context), arguments.task),)

    async def run(self, arguments: TaskInput, context: ToolContext) -> ToolResult:
        agent = self._agent(arguments, context)
        assert context.subagents is not None  # noqa: S101 - checked above
        report = await self._run_subagent(arguments, context, context.subagents)
        if report.error and not report.text:
            raise ToolError(f"The subagent stopped: {report.error}")
        stopped = ""
        if report.error:
            stopped = f"; stopped: {report.error}"
        steps = plural(report.steps, "step")
        footer = f"[{agent}, {steps}{stopped}; continue: {report.branch}]"
        return await finish(
            Output(
                report.text,
                self.title(arguments),
                footer=footer,
                cut_hint="[{shown:,} of {total:,} lines of the report. Ask for a shorter one.]",
                metadata=ToolMetadata(branch=report.branch, count=report.steps),
            ),
            context,
        )

    @staticmethod
    async def _run_subagent(
        arguments: TaskInput, context: ToolContext, subagents: SubagentHost
    ) -> SubagentReport:
        if arguments.continue_ is not None:
            return await subagents.resume(
                arguments.continue_, arguments.task, context.report, call_id=context.call_id
            )
        forked = arguments.context == "conversation"
        return await subagents.run(
            arguments.agent,
            arguments.task,
            context.report,
            call_id=context.call_id,
            in_conversation=forked,
        )

    def title(self, arguments: TaskInput) -> str:
        text = " ".join(arguments.task.split())
        worker = arguments.agent
        if arguments.continue_ is not None:
            worker = f"continue #{arguments.continue_}"
        return f"{worker}: {text[:TITLE_CHARS]}{'…' if len(text) > TITLE_CHARS else ''}"

    @staticmethod
    def _agent(arguments: TaskInput, context: ToolContext) -> str:
        """Return the kind of the subagent that the call starts or continues.

        Raises:
            ToolError: there is no such kind or branch, or the caller is itself a subagent.
        """
        if context.subagents is None:
            raise ToolError("A subagent can't start subagents. Do the task yourself.")
        if arguments.continue_ is not None:
            return context.subagents.agent_of(arguments.continue_)
        names = context.subagents.names()
        if arguments.agent not in names:
            kinds = "; ".join(f"{name}: {purpose}" for name, purpose in names.items())
            raise ToolError(f"There is no agent {arguments.agent!r}. Agents: {kinds}.")
        return arguments.agent
