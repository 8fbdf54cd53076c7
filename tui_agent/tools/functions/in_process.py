"""Turns a Python function into a tool that runs in this process, not in the sandbox."""

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
    """A tool made from a function that a user of the library passed to an agent.

    Calls need no permission.

    The constructor raises FunctionError if the function can't be a tool.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._signature = signature = signature_of(function)
        super().__init__(schema_of(signature.name, signature.description, signature.parameters))

    async def run(self, arguments: RawInput, context: ToolContext) -> ToolResult:
        """Call the function on the event loop. Its exceptions become a ToolError for the model."""
        try:
            value = returned(await self._signature.call(arguments.values))
        except FunctionError as error:
            raise ToolError(f"{self.name}: {error}") from None
        except Exception as error:  # The function itself raised the error.
            raise ToolError(traceback.format_exception_only(error)[-1].strip()) from error
        return await result_of(value, self.title(arguments), context)


def schema_of(name: str, description: str, parameters: dict[str, Any]) -> ToolSchema:
    """Return the tool schema of a function, with slimmed parameters.

    If the type of a parameter contains itself, the parameters are not slimmed.
    """
    with contextlib.suppress(RecursionError):
        parameters = slim_schema(parameters)
    return ToolSchema(name=name, description=description, parameters=parameters)


async def result_of(
    value: Returned, title: str, context: ToolContext, footer: str = ""
) -> ToolResult:
    """Return a function's value as the result of a call, with ``footer`` below the text."""
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
