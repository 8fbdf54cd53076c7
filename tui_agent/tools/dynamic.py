"""Tools that are only known at run time: their schema is somebody else's, and so is the check of their arguments."""

from typing import Any

from tui_agent.session.entries import ToolSchema
from tui_agent.tools.base import Tool, ToolInput


class RawInput(ToolInput):
    """Arguments as the model wrote them; whoever offers the tool checks them."""

    values: dict[str, Any]


class DynamicTool(Tool[RawInput]):
    """A tool made from a schema that came from outside."""

    # One class serves many tools, so what a built-in tool says in its class is said by each instance here.
    name: str  # type: ignore[misc]  # of the instance
    description: str  # type: ignore[misc]  # of the instance
    read_only: bool  # type: ignore[misc]  # of the instance
    Input = RawInput

    def __init__(self, schema: ToolSchema, *, read_only: bool = False) -> None:
        self.name = schema.name
        self.description = schema.description
        self.read_only = read_only
        self._schema = schema

    def schema(self) -> ToolSchema:
        return self._schema

    def title(self, arguments: RawInput) -> str:
        """Return the first text among the arguments, or all of them in short."""
        texts = (value for value in arguments.values.values() if isinstance(value, str) and value.strip())
        shown = next(texts, None) or ", ".join(f"{name}={value}" for name, value in arguments.values.items())
        return " ".join(shown.split())[:80]
