"""The list above the prompt of the draft's images: each one's name, size in pixels and tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual import work
from textual.content import Content
from textual.widget import Widget

from tui_agent.agent.mentions import IMAGE_SUFFIXES, file_mentions
from tui_agent.app.format import one_line, plural, token_count
from tui_agent.app.pasted_images import PastedImages
from tui_agent.lazy import frozen
from tui_agent.path_checks import is_file
from tui_agent.pictures import NoPicture, look_at_picture

if TYPE_CHECKING:
    from tui_agent.app.controller import Controller

MAX_SHOWN = 4


@frozen
class Attachment:
    """An image that will be sent with the message, because the draft mentions it.

    ``name`` is the name used in the draft. ``width`` and ``height`` are in pixels.
    """

    name: str
    width: int = 0
    height: int = 0
    note: str = ""
    """How the file is sent if it can't be sent as an image; "" if it can."""


class AttachmentStrip(Widget):
    """Lists the images that the draft mentions, up to `MAX_SHOWN`. Hidden if there are none."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES = {"attachments--name", "attachments--facts", "attachments--warning"}

    def __init__(self, controller: Controller) -> None:
        super().__init__()
        self._controller = controller
        self.names: tuple[str, ...] = ()
        self.attachments: tuple[Attachment, ...] = ()
        self.display = False

    def follow(self, text: str) -> None:
        """Show the images that the draft ``text`` mentions."""
        names = _image_names(text)
        if names != self.names:
            self.names = names
            self._load(names)

    def reload(self) -> None:
        """Read the sizes of the mentioned images again, because the files may have changed."""
        if self.names:
            self._load(self.names)

    @work(exclusive=True, group="attachments")
    async def _load(self, names: Sequence[str]) -> None:
        controller = self._controller
        if controller.agent is None:
            names = ()
        found = await asyncio.to_thread(
            lambda: [_attachment(name, controller.cwd, controller.pasted) for name in names]
        )
        self.attachments = tuple(item for item in found if item is not None)
        self.display = bool(self.attachments)
        self.refresh(layout=True)

    def render(self) -> Content:
        if (agent := self._controller.agent) is None:
            return Content("")
        shown = self.attachments[:MAX_SHOWN]
        takes_images = agent.ports.directory.limits(agent.model).vision
        lines = [self._line(item, agent.model, takes_images=takes_images) for item in shown]
        if len(self.attachments) > len(shown):
            more = len(self.attachments) - len(shown)
            lines.append(Content(f"  and {plural(more, 'more image')}"))
        if not takes_images and not all(item.note for item in self.attachments):
            warning = f"▲ {one_line(agent.model, 40)} can't see images: it gets only their names."
            lines.append(Content.styled(warning, ".attachments--warning"))
        return Content("\n").join(lines)

    def _line(self, item: Attachment, model: str, *, takes_images: bool) -> Content:
        from tui_agent.context.tokens import image_tokens

        if item.note:
            name = one_line(item.name, max(12, self.size.width - len(item.note) - 6))
            return Content.assemble(
                (f"▣ {name}", ".attachments--name"),
                (f"  ▲ {item.note}", ".attachments--warning"),
            )
        facts = "  "
        if self.size.width >= 50:
            facts += f"{item.width}×{item.height} · "
        if takes_images:
            facts += f"~{token_count(image_tokens(item.width, item.height, model))}"
        else:
            facts += "no tokens"
        name = one_line(item.name, max(12, self.size.width - len(facts) - 4))
        return Content.assemble((f"▣ {name}", ".attachments--name"), (facts, ".attachments--facts"))


def _image_names(text: str) -> tuple[str, ...]:
    if "@" not in text:
        return ()
    written = [mention.written for mention in file_mentions(text)]
    return tuple(name for name in written if Path(name).suffix.lower() in IMAGE_SUFFIXES)


def _attachment(name: str, cwd: Path, pasted: PastedImages) -> Attachment | None:
    """Return the image file mentioned as ``name``, with its size in pixels.

    If it can't be sent as an image, returns it with a note. Returns None if it can't be read.
    """
    from tui_agent.agent.attachments import note_on_file

    try:
        path = pasted.path(name) or cwd / Path(name).expanduser()
        if not is_file(path):
            return None
        found = look_at_picture(path)
        if isinstance(found, NoPicture):
            return Attachment(name, note=note_on_file(name, path))
        return Attachment(name, *found)
    except (OSError, ValueError, RuntimeError):
        return None
