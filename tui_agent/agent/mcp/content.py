"""Converts the content of an MCP server's answers to text and images, and stores the images."""

import base64
import binascii
import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from tui_agent.agent.mcp.records import Content
from tui_agent.session.entries import ImagePart
from tui_agent.tools.outputs import image_part, shown_picture, size_text

if TYPE_CHECKING:
    from mcp.types import (
        BlobResourceContents,
        CallToolResult,
        ContentBlock,
        PromptMessage,
        ReadResourceResult,
        TextResourceContents,
    )

PutBlob = Callable[[bytes], str]


class Reader:
    """Converts the content of one answer of a server. Create a new reader for each answer.

    ``put_blob`` stores an image and returns its hash. Without ``vision``, images are only mentioned
    in the text.
    """

    def __init__(self, put_blob: PutBlob, *, vision: bool = True) -> None:
        self._put_blob = put_blob
        self._vision = vision
        self._images: list[ImagePart] = []

    def call_result(self, result: "CallToolResult") -> Content:
        """Return the result of a tool call.

        Structured content is used, as JSON, only if the result has no text and no images.
        """
        text = "\n\n".join(filter(None, (self._block(block) for block in result.content)))
        if not text and not self._images and result.structured_content is not None:
            text = json.dumps(result.structured_content, ensure_ascii=False, indent=1)
        if not text and result.is_error:
            text = "The tool failed and gave no reason."
        return Content(text, tuple(self._images), result.is_error)

    def prompt(self, messages: "Iterable[PromptMessage]") -> Content:
        """Return a prompt's messages as one text.

        ``[Assistant]:`` precedes the assistant's messages.
        """
        texts = []
        for message in messages:
            text = self._block(message.content)
            texts.append(f"[Assistant]: {text}" if message.role == "assistant" else text)
        return Content("\n\n".join(filter(None, texts)), tuple(self._images))

    def resource(self, result: "ReadResourceResult") -> Content:
        texts = [self._contents(contents) for contents in result.contents]
        return Content("\n\n".join(filter(None, texts)), tuple(self._images))

    def _block(self, block: "ContentBlock") -> str:
        match block.type:
            case "text":
                return block.text
            case "image":
                return self._image(block.data, block.mime_type)
            case "audio":
                return f"[Audio, {block.mime_type}: left out.]"
            case "resource_link":
                about = ""
                if block.description:
                    about = f": {block.description}"
                return f"[Resource {block.uri}{about}]"
            case "resource":
                return self._contents(block.resource)

    def _contents(self, contents: "TextResourceContents | BlobResourceContents") -> str:
        text: str | None = getattr(contents, "text", None)
        if text is not None:
            return text
        data: str = getattr(contents, "blob", "")
        mime = contents.mime_type or "application/octet-stream"
        if mime.startswith("image/"):
            return self._image(data, mime)
        return f"[{contents.uri}: {mime}, {size_text(len(data) * 3 // 4)}. Not text.]"

    def _image(self, data: str, mime: str) -> str:
        try:
            raw = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            return f"[Image, {mime}: damaged.]"
        said, picture = shown_picture(raw, vision=self._vision)
        if picture is not None:
            self._images.append(image_part(picture, self._put_blob))
        return said
