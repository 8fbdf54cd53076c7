"""The one place that turns raw text into a tool result: cut to the limits, counted, stored, with a way to go on."""

import asyncio
import io
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from tui_agent.context.truncation import OutputLimits, Truncated, truncate
from tui_agent.lazy import dataclass
from tui_agent.safe_text import valid
from tui_agent.session.entries import ImagePart, ToolMetadata, Truncation
from tui_agent.tools.base import ToolContext, ToolResult

READ_ON = "[Lines {first}-{last} of {total}. Read on with offset={next}.]"
READ_END = "[Lines {first}-{last} of {total}, the end of the file.]"
NARROWER = "[{shown:,} of {total:,} {what}. For the rest use a narrower pattern, path or glob.]"
LIST_DEEPER = "[{shown:,} of {total:,} names. For the rest list one of these directories.]"
LIST_BY_NAME = "[{shown:,} of {total:,} names. For others use glob with part of the name.]"
FILTER_OUTPUT = "To see more, filter it, or recall this result by its #number."

MAX_IMAGE_BYTES = 3_750_000
"""Largest image that is sent: providers take 5 MB of base64."""

SMALL = 100_000
"""Characters that are cut in less time than it takes to hand them to a thread."""

CutHint = str | Callable[[Truncation], str]


@dataclass(frozen=True, slots=True)
class Output:
    """A tool's output, before it is cut.

    ``footer`` stands at the end. ``cut_hint`` says how to get the rest: with the head kept it is put in the footer's
    place when lines are cut (a format with ``{shown}`` and ``{total}`` lines, or a function of the counts), with
    both ends kept it stands where lines are missing. ``raw`` is stored when the text
    is cut or differs from it. ``seen`` replaces the totals, for a tool that left something out before.
    ``stored`` is off for output that can be read again.
    """

    text: str
    title: str = ""
    keep: Literal["head", "ends"] = "head"
    footer: str = ""
    cut_hint: CutHint = ""
    metadata: ToolMetadata = ToolMetadata()
    is_error: bool = False
    attachments: tuple[ImagePart, ...] = ()
    raw: bytes | None = None
    seen: Truncation | None = None
    stored: bool = True


async def finish(output: Output, context: ToolContext) -> ToolResult:
    """Return the result of a call; the blob of a cut output is stored on the calling thread."""
    if len(output.text) > SMALL:
        cut = await asyncio.to_thread(_cut, output, context.limits)
    else:
        cut = _cut(output, context.limits)
    truncation = cut.truncation
    if truncation is not None and output.seen is not None:
        kept = {"kept_lines": truncation.kept_lines, "kept_bytes": truncation.kept_bytes}
        truncation = output.seen.model_copy(update=kept)
    parts = [cut.text.rstrip("\n"), output.footer]
    if output.keep == "head" and cut.next_line is not None and truncation is not None:
        # The note of the truncation counts within this text; the tool knows how much there is altogether.
        shown = cut.text.split("\n")[: truncation.kept_lines]
        counts = {"shown": truncation.kept_lines, "total": truncation.total_lines}
        hint = output.cut_hint
        note = hint.format(**counts) if isinstance(hint, str) else hint(truncation)
        parts = ["\n".join(shown), note or output.footer]
    encoded = output.text.encode("utf-8", "replace")
    raw = encoded if output.raw is None else output.raw
    return ToolResult(
        output=valid("\n".join(part for part in parts if part)),
        title=valid(output.title),
        is_error=output.is_error,
        attachments=output.attachments,
        full_output=context.put_blob(raw) if output.stored and (truncation or raw != encoded) else None,
        metadata=output.metadata.model_copy(update={"truncation": truncation}),
    )


def stored_image(
    raw: bytes, mime: str, put_blob: Callable[[bytes], str], *, vision: bool
) -> tuple[str, ImagePart | None]:
    """Store an image that a call gave; returns a note on it, and the image where the model can see it."""
    about = f"Image, {mime}, {size_text(len(raw))}"
    if not vision:
        return f"[{about}. This model takes no images.]", None
    if len(raw) > MAX_IMAGE_BYTES:
        return f"[{about}. Too large to be shown (limit {size_text(MAX_IMAGE_BYTES)}).]", None
    width, height = image_size(raw)
    return f"[{about}]", ImagePart(blob=put_blob(raw), mime=mime, width=width, height=height)


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: ``1 file``, ``2 files``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {plural or noun + 's'}"


def size_text(number: int) -> str:
    if number < 1_000:
        return counted(number, "byte")
    for unit, factor in (("kB", 1_000), ("MB", 1_000_000)):
        if number < factor * 1_000:
            return f"{number / factor:.1f} {unit}"
    return f"{number / 1_000_000_000:.1f} GB"


def _cut(output: Output, limits: OutputLimits) -> Truncated:
    hint = output.cut_hint if isinstance(output.cut_hint, str) else ""
    return truncate(output.text, output.keep, limits, hint=hint if output.keep == "ends" else "")


def image_size(image: Path | bytes) -> tuple[int, int]:
    """Return width and height in pixels, 0 where they are unknown."""
    import imagesize  # brings in urllib and an XML parser, and images are rare

    try:
        width, height = imagesize.get(image if isinstance(image, Path) else io.BytesIO(image))
    except (ValueError, OSError):
        return 0, 0
    return max(int(width), 0), max(int(height), 0)
