"""What an editor sends as a prompt, as the parts of a message."""

import base64
import binascii
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from acp import RequestError
from acp.schema import (
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)

from tui_agent.agent.mentions import IMAGE_TYPES
from tui_agent.lazy import dataclass
from tui_agent.session.entries import FilePart, ImagePart, UserPart
from tui_agent.tools.outputs import MAX_IMAGE_BYTES, image_size

MAX_RESOURCE_CHARS = 200_000
"""Characters taken of one resource the editor embeds."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The typed text, and what came with it."""

    text: str
    attached: tuple[UserPart, ...] = ()


def read_prompt(blocks: Sequence[Any], cwd: Path, put_blob: Callable[[bytes], str]) -> Prompt:
    """Return the message that content blocks make.

    Raises:
        RequestError: a block can't be taken; it says why.
    """
    texts: list[str] = []
    attached: list[UserPart] = []
    for block in blocks:
        match block:
            case TextContentBlock():
                texts.append(block.text)
            case ResourceContentBlock():
                texts.append(_apart(texts, _name(block.uri, cwd)))
            case ImageContentBlock():
                attached.append(_image(block.data, block.mime_type, block.uri, put_blob))
            case EmbeddedResourceContentBlock(resource=TextResourceContents() as resource):
                text = resource.text[:MAX_RESOURCE_CHARS]
                if len(resource.text) > len(text):
                    text += f"\n[{len(resource.text) - len(text)} more characters; use read for the rest]"
                attached.append(FilePart(path=_name(resource.uri, cwd), text=text))
                texts.append(_apart(texts, _name(resource.uri, cwd)))
            case EmbeddedResourceContentBlock(resource=BlobResourceContents() as resource):
                attached.append(_image(resource.blob, resource.mime_type or "", resource.uri, put_blob))
            case _:
                raise _refused(f"A prompt can't hold {getattr(block, 'type', 'this')} content.")
    return Prompt("".join(texts), tuple(attached))


def _apart(texts: Sequence[str], name: str) -> str:
    """Return a name as it stands in the text: editors put it where the user did, mostly with a space before it."""
    return name if not texts or texts[-1][-1:].isspace() else f" {name}"


def _image(data: str, mime: str, uri: str | None, put_blob: Callable[[bytes], str]) -> ImagePart:
    if mime not in IMAGE_TYPES.values():
        raise _refused(f"Attachments of the type {mime or 'unknown'} can't be taken, images can.")
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise _refused("An image is not base64.") from None
    if len(content) > MAX_IMAGE_BYTES:
        raise _refused(f"An image is larger than {MAX_IMAGE_BYTES // 1_000_000} MB.")
    width, height = image_size(content)
    name = Path(unquote(urlsplit(uri).path)).name if uri else None
    return ImagePart(blob=put_blob(content), mime=mime, width=width, height=height, path=name or None)


def _name(uri: str, cwd: Path) -> str:
    """Return how a resource is named to the model: a file of the project by its relative path."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return uri
    path = Path(unquote(parts.path))
    return str(path.relative_to(cwd)) if path.is_relative_to(cwd) else str(path)


def _refused(sentence: str) -> RequestError:
    return RequestError(-32602, sentence)
