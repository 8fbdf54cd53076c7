"""What the message being written carries as images: name, size, tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from textual import work
from textual.content import Content
from textual.widget import Widget

from tui_agent.agent.mentions import IMAGE_TYPES, file_mentions
from tui_agent.app.format import one_line, tokens
from tui_agent.app.pasted_images import PastedImages
from tui_agent.lazy import dataclass
from tui_agent.path_checks import is_file

MAX_SHOWN = 4
"""Images shown; more are counted."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """An image that goes along with the message. Sizes are pixels, 0 where they can't be told."""

    name: str
    width: int
    height: int


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
        found = await asyncio.to_thread(lambda: [_attachment(name, asked) for name in names])
        self.attachments, self._asked = tuple(item for item in found if item is not None), asked
        self.display = bool(self.attachments)
        self.refresh(layout=True)

    def render(self) -> Content:
        if self._asked is None:
            return Content("")
        shown = self.attachments[:MAX_SHOWN]
        lines = [self._line(item, self._asked) for item in shown]
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


def _attachment(name: str, asked: Asked) -> Attachment | None:
    """Look at an image; None when there is none of that name. Reads files."""
    from tui_agent.tools.outputs import image_size

    try:
        path = asked.pasted.path(name) or asked.cwd / Path(name).expanduser()
        if not is_file(path):
            return None
        return Attachment(name, *image_size(path))
    except (OSError, ValueError, RuntimeError):
        return None
