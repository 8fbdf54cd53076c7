"""What the model is told of a tool's arguments."""

from typing import Any, ClassVar

from tui_agent.permission import PermissionNeed
from tui_agent.tools.base import Tool, ToolContext, ToolInput, ToolResult


class CountedInput(ToolInput):
    """Arguments that count how often their schema is made."""

    place: str

    made: ClassVar[int] = 0

    @classmethod
    def model_json_schema(cls, *arguments: Any, **options: Any) -> dict[str, Any]:
        CountedInput.made += 1
        return super().model_json_schema(*arguments, **options)


class CountedTool(Tool[CountedInput]):
    name = "counted"
    description = "Counts."
    Input = CountedInput

    def needs(self, arguments: CountedInput, context: ToolContext) -> tuple[PermissionNeed, ...]:
        return ()

    async def run(self, arguments: CountedInput, context: ToolContext) -> ToolResult:
        return ToolResult("")

    def title(self, arguments: CountedInput) -> str:
        return arguments.place


def test_a_schema_is_made_once_however_often_a_run_asks_for_it() -> None:
    first, second = CountedTool().schema(), CountedTool().schema()
    assert first == second
    assert list(first.parameters["properties"]) == ["place"]
    assert CountedInput.made == 1
