"""Turns a tool's output into its result, by cutting the text and storing the full output.

The text is cut to the limits of the context, and a hint says how the model can get the rest. Tools
that return text call ``finish`` at the end. The module also scales pictures and stores them for
results (`shown_picture`, `image_part`).
"""

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
"""Maximum length, in characters, of an output that is processed on the event loop instead of in a
thread."""

CutHint = str | Callable[[Truncation], str]


@frozen
class Output:
    """A tool's output before it is cut.

    ``keep`` says whether the beginning or both ends are kept when ``text`` is cut. ``footer`` is
    added at the end, uncut. ``cut_hint`` tells the model how to get the rest if lines were cut.
    With ``keep="head"``, the hint replaces the footer; it is a format string with the numbers of
    lines ``{shown}`` and ``{total}``, or a function of the `Truncation`. With ``keep="ends"``, the
    hint is inserted where lines are missing. ``raw`` is the full output to store, as bytes; None to
    store ``text``. ``seen`` contains the total sizes if the tool already left something out of
    ``text``. If ``stored`` is False, no full output is stored, because it can be produced again.
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
    """Return the result of a call, with its text cut to the context's limits.

    If the text was cut or differs from ``raw``, the full output is stored as a blob, unless
    ``output.stored`` is False.
    """
    if len(output.text) > SMALL:
        cut = await asyncio.to_thread(_cut, output, context.limits)
    else:
        cut = _cut(output, context.limits)
    truncation = cut.truncation
    count = output.metadata.count
    if truncation is not None and output.seen is not None:
        kept = {"kept_lines": truncation.kept_lines, "kept_bytes": truncation.kept_bytes}
        truncation = output.seen.model_copy(update=kept)
        if count is not None:
            count = min(count, truncation.kept_lines)
    parts = [cut.text.rstrip("\n"), output.footer]
    if output.keep == "head" and cut.next_line is not None and truncation is not None:
        # The note that ``truncate`` added is replaced, because it counts only the lines of this
        # text, but the tool knows their total number.
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
        metadata=output.metadata.model_copy(update={"truncation": truncation, "count": count}),
    )


def _hint(output: Output, truncation: Truncation) -> str:
    hint = output.cut_hint
    if isinstance(hint, str):
        return hint.format(shown=truncation.kept_lines, total=truncation.total_lines)
    return hint(truncation)


def shown_picture(
    raw: bytes, *, vision: bool, path: str | None = None
) -> tuple[str, Picture | None]:
    """Return a note for the model on an image file, and the picture to attach.

    ``raw`` is the file's content. The picture is scaled or converted if providers require that. The
    picture is None if the bytes can't be decoded, or if the model doesn't accept images (``vision``
    is False). ``path`` is the file's name for the note. Decoding may take seconds, so call the
    function in a thread.
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
    """Store a picture or PDF as a blob, and return it as a part of a message or tool result.

    ``path`` is the path of the picture or PDF relative to the project.
    """
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
    """Return a number of bytes as text: ``12 bytes``, ``3.4 kB``. A kB is 1,000 bytes."""
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
