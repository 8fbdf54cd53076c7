"""A Python function as a tool that runs in this process, not in the sandbox."""

import asyncio
import contextlib
import traceback
from collections.abc import Callable
from typing import Any

from tui_agent.errors import ToolError
from tui_agent.session.entries import ImagePart, ToolSchema
from tui_agent.tools.base import (
    DynamicTool,
    FreeTool,
    RawInput,
    ToolContext,
    ToolResult,
    slim_schema,
)
from tui_agent.tools.functions.signature import FunctionError, Returned, returned, signature_of
from tui_agent.tools.outputs import FILTER_OUTPUT, Output, finish, image_part, shown_picture


class FunctionTool(DynamicTool, FreeTool[RawInput]):
    """A function that the program using the library gave to an agent; its calls need no permission.

    The constructor raises FunctionError if the function can't be a tool.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._signature = signature = signature_of(function)
        super().__init__(schema_of(signature.name, signature.description, signature.parameters))

    async def run(self, arguments: RawInput, context: ToolContext) -> ToolResult:
        """Call the function on the event loop; what it raises becomes a ToolError for the model."""
        try:
            value = returned(await self._signature.call(arguments.values))
        except FunctionError as error:
            raise ToolError(f"{self.name}: {error}") from None
        except Exception as error:  # the function's own
            raise ToolError(traceback.format_exception_only(error)[-1].strip()) from error
        return await told(value, self.title(arguments), context)


def schema_of(name: str, description: str, parameters: dict[str, Any]) -> ToolSchema:
    """Return the schema of a function as a tool, with slimmed parameters.

    Parameters in which a type contains itself are kept unchanged.
    """
    with contextlib.suppress(RecursionError):
        parameters = slim_schema(parameters)
    return ToolSchema(name=name, description=description, parameters=parameters)


async def told(value: Returned, title: str, context: ToolContext, footer: str = "") -> ToolResult:
    """Return a function's value as the result of a call; ``footer`` is added below the text."""
    said: list[str] = []
    if value.text:
        said = [value.text]
    images: list[ImagePart] = []
    for raw in value.images:
        about, picture = await asyncio.to_thread(shown_picture, raw, vision=context.vision)
        said.append(about)
        if picture is not None:
            images.append(image_part(picture, context.put_blob))
    text = "\n\n".join(said) or "(no output)"
    output = Output(
        text,
        title=title,
        keep="ends",
        footer=footer,
        cut_hint=FILTER_OUTPUT,
        attachments=tuple(images),
    )
    return await finish(output, context)
