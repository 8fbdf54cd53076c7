"""What a message holds, read from blocks with a type, as Pi and Claude Code keep them each in its own spelling."""

import json
from collections.abc import Callable, Mapping

from tui_agent.lazy import dataclass
from tui_agent.session.entries import AssistantPart, ImagePart, ReasoningPart, TextPart, ToolCallPart
from tui_agent.session.formats.incoming import Builder
from tui_agent.session.formats.reading import Node

__all__ = ["Content", "Spelling"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelling:
    """How a program writes what others write differently."""

    call: str
    """Type of the block that calls a tool."""
    arguments: str
    """Its key for what the tool is called with."""
    image: Callable[[Node], tuple[str, str]]
    """Returns an image's base64 and its type."""
    tools: Mapping[str, str]
    """Its names of tools that are called otherwise here."""
    read_elsewhere: frozenset[str] = frozenset()
    """Types of blocks in a user's message that are no part of what the user said."""


class Content:
    """Reads the content of messages for a session that is being put together; what has no place there is counted."""

    def __init__(self, make: Builder, spelling: Spelling) -> None:
        self._make = make
        self._spelling = spelling

    def said(self, message: Node, whose: str = "a message") -> tuple[TextPart | ImagePart, ...]:
        """Return texts and images in their order; ``whose`` they are is told with what is left out."""
        if isinstance(text := message.value.get("content"), str):
            return (TextPart(text=text),)
        parts: list[TextPart | ImagePart] = []
        for block in message.nodes("content"):
            match kind := block.text("type"):
                case "text":
                    parts.append(TextPart(text=block.text("text")))
                case "image":
                    if image := self._make.image(block, *self._spelling.image(block)):
                        parts.append(image)
                case _ if kind not in self._spelling.read_elsewhere:
                    self._make.leave_out(f"“{kind[:40]}” part of {whose}")
        return tuple(parts)

    def output(self, result: Node) -> tuple[str, tuple[ImagePart, ...]]:
        parts = self.said(result, "a tool result")
        text = "\n".join(part.text for part in parts if isinstance(part, TextPart))
        return text, tuple(part for part in parts if isinstance(part, ImagePart))

    def answered(self, message: Node, model: str) -> tuple[AssistantPart, ...]:
        """Return texts, reasoning and calls of an answer."""
        parts: list[AssistantPart] = []
        for block in message.nodes("content"):
            match kind := block.text("type"):
                case "text":
                    parts.append(TextPart(text=block.text("text")))
                case "thinking":
                    # Signatures are in the program's own form; a provider would refuse them, so only the words stay.
                    parts.append(ReasoningPart(text=block.text("thinking", ""), model=model))
                case self._spelling.call:
                    tool, arguments = block.text("name"), block.node(self._spelling.arguments).value
                    call = ToolCallPart(
                        call_id=block.text("id"),
                        tool=self._spelling.tools.get(tool, tool),
                        arguments=json.dumps(arguments, ensure_ascii=False),
                    )
                    parts.append(call)
                case _:
                    self._make.leave_out(f"“{kind[:40]}” part of an answer")
        return tuple(parts)
