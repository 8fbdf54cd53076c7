"""Hooks around one tool call: what they make of it before it runs, and what they add to its output."""

import json
from dataclasses import replace
from typing import Any

from tui_agent.agent.hooks.hooks import Hooks
from tui_agent.agent.hooks.payloads import AfterTool, BeforeTool
from tui_agent.lazy import dataclass
from tui_agent.tools.arguments import parse_arguments
from tui_agent.tools.base import Tool, ToolInput, ToolResult
from tui_agent.tools.dynamic import RawInput


@dataclass(frozen=True, slots=True)
class Checked:
    """A call after its hooks: its arguments as they are now, whether a question is answered, why it may not run.

    ``changed`` is the JSON text of the arguments when a hook changed them.
    """

    arguments: ToolInput
    allowed: bool = False
    refusal: str | None = None
    changed: str | None = None


async def check_call(hooks: Hooks, call_id: str, tool: Tool[Any], arguments: ToolInput) -> Checked:
    """Ask the hooks about a call.

    Raises:
        ToolError: a hook changed the arguments to what the tool does not take.
    """
    if not await hooks.wanted("before_tool", tool.name):
        return Checked(arguments)
    payload = BeforeTool(about=hooks.about, call_id=call_id, tool=tool.name, arguments=plain(arguments))
    answer = await hooks.before_tool(payload)
    if answer.decision == "deny":
        return Checked(
            arguments, refusal=f"A hook of the user's refused this call: {answer.message or 'no reason given'}"
        )
    changed = None
    if answer.arguments is not None and answer.arguments != payload.arguments:
        changed = json.dumps(answer.arguments, ensure_ascii=False)
        arguments = parse_arguments(tool, changed)
    return Checked(arguments, answer.decision == "allow", changed=changed)


async def add_to_result(
    hooks: Hooks, call_id: str, tool: Tool[Any], checked: Checked, result: ToolResult, seconds: float
) -> ToolResult:
    added = [] if checked.changed is None else [f"[A hook of the user's changed the arguments to {checked.changed}]"]
    if await hooks.wanted("after_tool", tool.name):
        payload = AfterTool(
            about=hooks.about,
            call_id=call_id,
            tool=tool.name,
            arguments=plain(checked.arguments),
            output=result.output,
            is_error=result.is_error,
            seconds=seconds,
        )
        added.append(await hooks.after_tool(payload))
    text = "\n\n".join(filter(None, added))
    return replace(result, output=f"{result.output}\n\n{text}") if text else result


def plain(arguments: ToolInput) -> dict[str, Any]:
    """Return arguments as a hook is given them: only those that were set."""
    if isinstance(arguments, RawInput):
        return dict(arguments.values)
    return arguments.model_dump(mode="json", exclude_unset=True)
