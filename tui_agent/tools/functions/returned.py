"""What a function returned, as text and images. This also runs in the process of a tool file."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json

MAX_CHARACTERS = 10_000_000
"""Most characters of a result that are kept; of more the middle is left out."""

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


class NotSerialisableError(ValueError):
    """A value can't be told to a model; the message says what can."""


@dataclass(frozen=True, slots=True)
class Returned:
    """A result. Images are the bytes of files of types that models take."""

    text: str = ""
    images: tuple[bytes, ...] = ()


def returned(value: Any) -> Returned:
    """Return a function's value as a model is told it.

    Text stays as it is, None is nothing, the bytes of an image and what draws itself (``_repr_png_``, as figures and
    pictures do) are images, a list may mix those with text; everything else is written as JSON.

    Raises:
        NotSerialisableError: it can't be.
    """
    if (image := _image(value)) is not None:
        return Returned(images=(image,))
    if isinstance(value, Sequence) and not isinstance(value, str | bytes) and any(map(_is_image, value)):
        parts = [returned(part) for part in value]
        text = "\n\n".join(part.text for part in parts if part.text)
        return Returned(_bounded(text), tuple(image for part in parts for image in part.images))
    return Returned(_bounded(_text(value)))


def image_type(data: bytes) -> str:
    """Return the media type of an image that models take, "" for anything else."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for begin, mime in _SIGNATURES if data.startswith(begin)), "")


def _image(value: Any) -> bytes | None:
    if isinstance(value, bytes | bytearray):
        return bytes(value) if image_type(bytes(value[:16])) else None
    draw = getattr(type(value), "_repr_png_", None)
    drawn = draw(value) if draw is not None else None
    return drawn if isinstance(drawn, bytes) else None


def _is_image(value: Any) -> bool:
    return isinstance(value, bytes | bytearray) or hasattr(type(value), "_repr_png_")


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return to_json(value, indent=1, inf_nan_mode="strings").decode()
    except Exception as error:  # noqa: BLE001 - whatever the value's own methods raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise NotSerialisableError(
            f"it returned a value of type {type(value).__name__} that can't be written as JSON ({reason}); return "
            "text, numbers, lists, dictionaries, dataclasses, pydantic models, or the bytes of a PNG, JPEG, GIF or WebP"
        ) from None


def _bounded(text: str) -> str:
    if len(text) <= MAX_CHARACTERS:
        return text
    half = MAX_CHARACTERS // 2
    return f"{text[:half]}\n[{len(text) - 2 * half:,} characters were left out here.]\n{text[-half:]}"
