"""What the message being written carries as images: name, size, tokens, and a small picture where there is room."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from textual import work
from textual.color import Color
from textual.content import Content
from textual.message import Message
from textual.style import Style
from textual.widget import Widget

from tui_agent.agent.mentions import IMAGE_TYPES, file_mentions
from tui_agent.app.format import one_line, tokens
from tui_agent.app.pasted_images import PastedImages
from tui_agent.lazy import dataclass
from tui_agent.path_checks import is_file

PICTURE_ROWS, PICTURE_COLUMNS = 4, 16
"""Cells a picture takes at most; a cell is two pixels, one above the other."""
MAX_SHOWN = 4
"""Images shown; more are counted."""

Picture = tuple[tuple[tuple[Color, Color], ...], ...]
"""Rows of cells: the colours of their upper and lower halves."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """An image that goes along with the message. Sizes are pixels, 0 where they can't be told."""

    name: str
    width: int
    height: int
    picture: Picture = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """What has to be known of whom the message goes to: where names are looked for, and the model."""

    cwd: Path
    pasted: PastedImages
    model: str
    vision: bool


class AttachmentStrip(Widget):
    """Hidden while no image is named."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES = {"attachments--name", "attachments--facts", "attachments--warning"}  # noqa: RUF012 - as inherited

    @dataclass
    class Found(Message):
        """The images a text names were looked at."""

        attachments: tuple[Attachment, ...]
        asked: Asked

    def __init__(self, asked: Callable[[], Asked | None]) -> None:
        super().__init__()
        self._ask = asked
        self._asked: Asked | None = None
        self.names: tuple[str, ...] = ()
        """The images that the text names."""
        self.attachments: tuple[Attachment, ...] = ()
        self.display = False

    def follow(self, text: str) -> None:
        names = tuple(
            mention.written
            for mention in (file_mentions(text) if "@" in text else ())
            if Path(mention.written).suffix.lower() in IMAGE_TYPES
        )
        if names != self.names:
            self.names = names
            self._look(names)

    def look_again(self) -> None:
        if self.names:
            self._look(self.names)

    @work(exclusive=True, group="attachments")
    async def _look(self, names: Sequence[str]) -> None:
        asked = self._ask()
        if not names or asked is None:
            self.attachments, self.display = (), False
            return
        with_pictures = self.app.size.height >= 24 and not self.app.no_color and find_spec("PIL") is not None
        found = await asyncio.to_thread(
            lambda: [_attachment(name, asked, with_picture=with_pictures) for name in names]
        )
        self.post_message(self.Found(tuple(item for item in found if item is not None), asked))

    def on_attachment_strip_found(self, message: Found) -> None:
        message.stop()
        self.attachments, self._asked = message.attachments, message.asked
        self.display = bool(self.attachments)
        self.refresh(layout=True)

    def render(self) -> Content:
        """Draw a line for each image, the pictures over them."""
        if self._asked is None:
            return Content("")
        shown = self.attachments[:MAX_SHOWN]
        lines = [*_pictures(shown, self.size.width), *(self._line(item, self._asked) for item in shown)]
        if len(self.attachments) > len(shown):
            lines.append(Content(f"  and {len(self.attachments) - len(shown)} more images"))
        if not self._asked.vision:
            warned = self.get_visual_style("attachments--warning", partial=True)
            lines.append(
                Content.styled(
                    f"▲ {one_line(self._asked.model, 40)} takes no images: it is told the name only.", warned
                )
            )
        return Content("\n").join(lines)

    def _line(self, item: Attachment, asked: Asked) -> Content:
        from tui_agent.context.tokens import image_tokens

        size = f"{item.width}×{item.height} · " if item.width and self.size.width >= 50 else ""
        about = f"  {size}~{tokens(image_tokens(item.width, item.height, asked.model))} tokens"
        name = one_line(item.name, max(12, self.size.width - len(about) - 4))
        return Content.assemble(
            (f"▣ {name}", self.get_visual_style("attachments--name", partial=True)),
            (
                about if asked.vision else f"  {size}no tokens",
                self.get_visual_style("attachments--facts", partial=True),
            ),
        )


def _attachment(name: str, asked: Asked, *, with_picture: bool) -> Attachment | None:
    """Look at an image; None when there is none of that name. Reads files."""
    from tui_agent.tools.outputs import image_size

    try:
        path = asked.pasted.path(name) or asked.cwd / Path(name).expanduser()
        if not is_file(path):
            return None
        return Attachment(name, *image_size(path), _picture(path) if with_picture else ())
    except (OSError, ValueError, RuntimeError):
        return None


def _picture(path: Path) -> Picture:
    """Return a small picture of an image, none where it can't be read."""
    from PIL import Image

    try:
        with Image.open(path) as opened:
            opened.draft("RGB", (PICTURE_COLUMNS * 4, PICTURE_ROWS * 8))
            opened.thumbnail((PICTURE_COLUMNS, PICTURE_ROWS * 2))
            small = opened.convert("RGB")
    except (OSError, ValueError, Image.DecompressionBombError):
        return ()
    pixel = small.load()
    width, height = small.size

    def colour(x: int, y: int) -> Color:
        return Color(*pixel[x, min(y, height - 1)])

    return tuple(tuple((colour(x, y), colour(x, y + 1)) for x in range(width)) for y in range(0, height, 2))


def _pictures(shown: Sequence[Attachment], room: int) -> list[Content]:
    """Return the rows of the pictures that fit side by side."""
    pictures: list[Picture] = []
    for item in shown:
        width = len(item.picture[0]) + 2 if item.picture else 0
        if width and width <= room:
            pictures.append(item.picture)
            room -= width
    rows = max((len(picture) for picture in pictures), default=0)
    lines = []
    for row in range(rows):
        cells: list[tuple[str, Style] | str] = []
        for picture in pictures:
            if row < len(picture):
                cells += [("▀", Style(foreground=upper, background=lower)) for upper, lower in picture[row]]
            else:
                cells.append(" " * len(picture[0]))
            cells.append("  ")
        lines.append(Content.assemble(*cells))
    return lines
