"""Reads what a message mentions with ``@path`` into the files and images that travel with it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tui_agent.session.entries import FilePart, ImagePart, TextPart, UserPart
from tui_agent.ui.prompting.mentions import IMAGE_TYPES, mentions

FILE_BYTES = 50 * 1024
"""Bytes of a text file that are attached."""
IMAGE_BYTES = 10 * 1024 * 1024
"""Larger images are not attached."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that was read. ``data`` holds at most the limit's bytes, ``size`` is the whole file's."""

    name: str
    path: Path
    data: bytes
    size: int

    @property
    def mime(self) -> str | None:
        """The image type, None for other files."""
        return IMAGE_TYPES.get(self.path.suffix.lower())


def load(text: str, cwd: Path) -> list[Attachment]:
    """Read the files a message mentions; names that are no file are left alone, they may be words."""
    found = []
    for name in mentions(text):
        path = cwd / Path(name).expanduser()
        limit = IMAGE_BYTES if path.suffix.lower() in IMAGE_TYPES else FILE_BYTES
        try:
            if not path.is_file():
                continue
            size = path.stat().st_size
            with path.open("rb") as file:
                found.append(Attachment(name, path, file.read(limit), size))
        except OSError:
            continue
    return found


async def parts_of(text: str, cwd: Path, put_blob: Callable[[bytes], str]) -> tuple[UserPart, ...]:
    """Return a message's parts: its text and what it mentions. Files are read in a thread."""
    loaded = await asyncio.to_thread(load, text, cwd)
    return (TextPart(text=text), *(_part(item, put_blob) for item in loaded))


def _part(item: Attachment, put_blob: Callable[[bytes], str]) -> UserPart:
    mime = item.mime
    if mime is None:
        return FilePart(path=item.name, text=_text(item))
    if item.size > len(item.data):
        return FilePart(path=item.name, text=f"[image of {item.size} bytes, too large to attach]")
    width, height = _dimensions(item.data)
    return ImagePart(blob=put_blob(item.data), mime=mime, width=width, height=height, path=item.name)


def _text(item: Attachment) -> str:
    if b"\0" in item.data[:8_192]:
        return f"[binary file of {item.size} bytes]"
    text = item.data.decode("utf-8", errors="replace")
    if item.size <= len(item.data):
        return text
    return f"{text}\n[{item.size - len(item.data)} more bytes; use read for the rest]"


def _dimensions(data: bytes) -> tuple[int, int]:
    import io

    import imagesize

    width, height = imagesize.get(io.BytesIO(data))
    return max(0, int(width)), max(0, int(height))
