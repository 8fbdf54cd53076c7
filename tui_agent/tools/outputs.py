"""The one place that turns raw text into a tool result: cut to the limits, counted, stored, with a way to go on."""

import asyncio
from collections.abc import Callable
from typing import Literal

from tui_agent.context.truncation import OutputLimits, Truncated, truncate
from tui_agent.lazy import frozen
from tui_agent.pictures import NoPicture, Picture, read_picture
from tui_agent.safe_text import valid
from tui_agent.session.entries import ImagePart, ToolMetadata, Truncation
from tui_agent.tools.base import ToolContext, ToolResult

READ_ON = "[Lines {first}-{last} of {total}. Read on with offset={next}.]"
READ_END = "[Lines {first}-{last} of {total}, the end of the file.]"
NARROWER = "[{shown:,} of {total:,} {what}. For the rest use a narrower pattern, path or glob.]"
LIST_DEEPER = "[{shown:,} of {total:,} names. For the rest list one of these directories.]"
LIST_BY_NAME = "[{shown:,} of {total:,} names. For others use glob with part of the name.]"
FILTER_OUTPUT = "To see more, filter it, or recall this result by its #number."

SMALL = 100_000
"""Characters that are cut in less time than it takes to hand them to a thread."""

CutHint = str | Callable[[Truncation], str]


@frozen
class Output:
    """A tool's output, before it is cut.

    ``footer`` stands at the end. ``cut_hint`` says how to get the rest: with the head kept it is
    put in the footer's place when lines are cut (a format with ``{shown}`` and ``{total}`` lines,
    or a function of the counts), with both ends kept it stands where lines are missing. ``raw`` is
    stored when the text is cut or differs from it. ``seen`` replaces the totals, for a tool that
    left something out before. ``stored`` is off for output that can be read again.
    """

    text: str
    title: str = ""
    keep: Literal["head", "ends"] = "head"
    footer: str = ""
    cut_hint: CutHint = ""
    metadata: ToolMetadata = ToolMetadata.model_construct()
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
        # The note of the truncation counts within this text; the tool knows how much there is
        # altogether.
        shown = cut.text.split("\n")[: truncation.kept_lines]
        parts = ["\n".join(shown), _hint(output, truncation) or output.footer]
    encoded = output.text.encode("utf-8", "replace")
    raw = output.raw
    if raw is None:
        raw = encoded
    full_output = None
    if output.stored and (truncation or raw != encoded):
        full_output = context.put_blob(raw)
    return ToolResult(
        output=valid("\n".join(part for part in parts if part)),
        title=valid(output.title),
        is_error=output.is_error,
        attachments=output.attachments,
        full_output=full_output,
        metadata=output.metadata.model_copy(update={"truncation": truncation}),
    )


def _hint(output: Output, truncation: Truncation) -> str:
    hint = output.cut_hint
    if isinstance(hint, str):
        return hint.format(shown=truncation.kept_lines, total=truncation.total_lines)
    return hint(truncation)


def shown_picture(
    raw: bytes, *, vision: bool, path: str | None = None
) -> tuple[str, Picture | None]:
    """Return a note on an image that a call gave, and the picture where the model can see it.

    ``path`` is where it was read. Decoding takes up to seconds.
    """
    named = "Image, "
    if path:
        named = f"{path}: "
    picture = read_picture(raw)
    if isinstance(picture, NoPicture):
        return f"[{named}{size_text(len(raw))}. Not shown: it is {picture.reason}.]", None
    about = f"{named}{picture.mime}, {picture.width}x{picture.height} pixels, {size_text(len(picture.data))}"
    if not vision:
        return f"[{about}. This model takes no images.]", None
    if picture.data is not raw:
        about += ", scaled or converted"
    return f"[{about}]", picture


def image_part(
    picture: Picture, put_blob: Callable[[bytes], str], path: str | None = None
) -> ImagePart:
    """Return a picture or a PDF as a part of a message or a result; its bytes are stored."""
    blob = put_blob(picture.data)
    return ImagePart(
        blob=blob,
        mime=picture.mime,
        width=picture.width,
        height=picture.height,
        path=path,
        pages=picture.pages,
    )


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: ``1 file``, ``2 files``."""
    if number == 1:
        return f"{number:,} {noun}"
    return f"{number:,} {plural or noun + 's'}"


def size_text(number: int) -> str:
    if number < 1_000:
        return counted(number, "byte")
    for unit, factor in (("kB", 1_000), ("MB", 1_000_000)):
        if number < factor * 1_000:
            return f"{number / factor:.1f} {unit}"
    return f"{number / 1_000_000_000:.1f} GB"


def _cut(output: Output, limits: OutputLimits) -> Truncated:
    hint = ""
    if output.keep == "ends" and isinstance(output.cut_hint, str):
        hint = output.cut_hint
    return truncate(output.text, output.keep, limits, hint=hint)
