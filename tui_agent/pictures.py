"""Recognises pictures by their bytes, and scales and converts them to what providers accept.

The type claimed by a file name, a server or another program is ignored. Pillow is imported for the
first picture, and only reads the formats in ``_READ``. `Picture` also stands for a PDF to be sent.
"""

import io
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.lazy import frozen

if TYPE_CHECKING:
    from PIL.Image import Image

log = logging.getLogger(__name__)

MAX_BYTES = 3_750_000
"""Maximum size of a picture that is sent, in bytes. Providers accept 5 MB of base64."""
MAX_SIDE = 2_000
"""Maximum length of the longer side of a picture that is sent, in pixels. Providers scale larger
pictures down. They refuse more than 8,000 pixels, or more than 2,000 in a request with many
pictures (platform.claude.com/docs, "Vision")."""
MAX_PIXELS = 64_000_000
"""Maximum number of pixels (width times height) in a picture that is decoded. A small file may
claim any size."""
MAX_SOURCE_BYTES = 40_000_000
"""Maximum size of a picture file that is read, in bytes."""
TOO_LARGE = f"a file of more than {MAX_SOURCE_BYTES // 1_000_000} MB"
TYPES = {
    "PNG": "image/png",
    "JPEG": "image/jpeg",
    "MPO": "image/jpeg",
    "GIF": "image/gif",
    "WEBP": "image/webp",
}
"""MIME types of the picture formats that are sent unchanged, by Pillow's name of the format. Other
pictures are converted to PNG or JPEG."""
SUFFIXES = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}
PDF = "application/pdf"
MAX_PDF_BYTES = 5_000_000
"""Maximum size of a PDF that is sent unchanged, in bytes. Each request contains the PDF until it is
cleared from the context."""
MAX_PDF_PAGES = 20
"""Maximum number of pages in a PDF that is sent unchanged. Each page costs the tokens of a picture
in addition to those of its text."""
_READ = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "ICO", "PPM", "AVIF")
_PLAIN_MODES = frozenset({"1", "L", "LA", "P", "RGB", "RGBA", "I;16"})
_ORIENTATION = 0x0112
"""EXIF tag that says how a picture must be rotated; 1 means not at all. Providers ignore this
tag."""
_QUALITY = 85
"""JPEG quality of converted pictures, 1 to 95."""
_SMALLER = 0.7
"""Factor by which both sides of a picture are scaled, repeatedly, until it has few enough bytes."""
_MIN_SIDE = 16
"""Minimum length of the longer side of a picture, in pixels. A picture is not shrunk below it."""

_BEGINNINGS: tuple[tuple[bytes, str], ...] = (
    (b"<svg", "an SVG drawing, which is text: read it as such"),
    (b"<!doctype", "a web page"),
    (b"<html", "a web page"),
    (b"%PDF", "a PDF"),
)
_HEIC = (b"heic", b"heix", b"hevc", b"mif1", b"msf1")


@frozen
class PictureLimits:
    """The pictures that a provider accepts: MIME types, maximum bytes, longest side in pixels."""

    types: tuple[str, ...] = tuple(SUFFIXES)
    bytes: int = MAX_BYTES
    side: int = MAX_SIDE


@frozen
class Picture:
    """A picture or PDF that can be sent to a model.

    ``width`` and ``height`` are in pixels, 0 for a PDF. ``pages`` is 0 for a picture.
    """

    data: bytes
    mime: str
    width: int = 0
    height: int = 0
    pages: int = 0


@frozen
class NoPicture:
    """Returned instead of a picture for bytes that can't be sent as one.

    ``reason`` says what the bytes are, such as "a web page".
    """

    reason: str


STANDARD = PictureLimits()


def picture_type(data: bytes) -> str:
    """Return the MIME type of a PNG, JPEG, GIF or WebP picture by its first bytes; "" for other data."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return ""


def fits(data: bytes, mime: str, limits: PictureLimits) -> bool:
    """Return True if ``data`` is a picture of type ``mime`` that is within the limits.

    The limits concern type and size in bytes; the size in pixels is not checked.
    """
    return picture_type(data) == mime and mime in limits.types and len(data) <= limits.bytes


def read_picture(data: bytes, limits: PictureLimits = STANDARD) -> Picture | NoPicture:
    """Decode a picture; scale, turn or convert it if it can't be sent as it is.

    Returns NoPicture for data that is too large, can't be decoded, or can't be made small enough.
    May take seconds, so call it in a thread.
    """
    if len(data) > MAX_SOURCE_BYTES:
        return NoPicture(TOO_LARGE)
    try:
        return _read(data, limits)
    except Exception as error:  # noqa: BLE001 - Pillow's decoders may raise any error
        log.info("could not read a picture: %s", error)
        return NoPicture(_described(data))


def look_at_picture(path: Path) -> tuple[int, int] | NoPicture:
    """Return a picture file's width and height in pixels, or what it is if it can't be decoded.

    Decodes the picture, but doesn't convert it. May take a second, so call it in a thread. Raises
    OSError if the file can't be read.
    """
    with path.open("rb") as file:
        data = file.read(MAX_SOURCE_BYTES + 1)
    if len(data) > MAX_SOURCE_BYTES:
        return NoPicture(TOO_LARGE)
    try:
        with _opened(io.BytesIO(data)) as image:
            width, height = image.size
            if width * height <= MAX_PIXELS:
                image.load()
                return width, height
            return _too_many_pixels(image)
    except Exception as error:  # noqa: BLE001 - as above
        log.info("could not decode a picture: %s", error)
        return NoPicture(_described(data))


def _too_many_pixels(image: "Image") -> NoPicture:
    width, height = image.size
    return NoPicture(f"a picture of {width}x{height} pixels, too many to decode")


def _opened(file: "io.BytesIO | io.BufferedReader") -> "Image":
    from PIL import Image

    # `_read` has checked the size before; Pillow's own check would print a warning.
    Image.MAX_IMAGE_PIXELS = None
    Image.init()
    return Image.open(file, formats=[name for name in _READ if name in Image.OPEN])


def _read(data: bytes, limits: PictureLimits) -> Picture | NoPicture:
    with _opened(io.BytesIO(data)) as image:
        width, height = image.size
        if width * height > MAX_PIXELS:
            return _too_many_pixels(image)
        mime = TYPES.get(image.format or "", "")
        is_small = max(width, height) <= limits.side and len(data) <= limits.bytes
        image.load()
        is_plain = image.mode in _PLAIN_MODES and image.getexif().get(_ORIENTATION, 1) == 1
        if is_small and is_plain and mime in limits.types:
            return Picture(data, mime, width, height)
        return _converted(image, mime, limits)


def _converted(image: "Image", mime: str, limits: PictureLimits) -> Picture | NoPicture:
    from PIL import ImageOps

    upright = ImageOps.exif_transpose(image)
    has_alpha = upright.has_transparency_data
    made = upright.convert("RGBA" if has_alpha else "RGB")
    made.thumbnail((limits.side, limits.side))
    if mime == "image/jpeg":
        wanted = ["image/jpeg"]
    else:
        wanted = ["image/png", "image/jpeg"]
    types = [each for each in wanted if each in limits.types] or list(limits.types)
    while max(made.size) >= _MIN_SIDE or made.size == image.size:
        for each in types:
            data = _encoded(made, each)
            if len(data) <= limits.bytes:
                return Picture(data, each, *made.size)
        smaller = (max(1, round(made.width * _SMALLER)), max(1, round(made.height * _SMALLER)))
        if smaller == made.size:
            break
        made = made.resize(smaller)
    return NoPicture("a picture that can't be made small enough to send")


def _encoded(image: "Image", mime: str) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    if mime != "image/jpeg":
        image.save(file, SUFFIXES[mime])
        return file.getvalue()
    if image.mode == "RGBA":
        white = Image.new("RGB", image.size, "white")
        white.paste(image, mask=image)
        image = white
    image.save(file, "jpeg", quality=_QUALITY)
    return file.getvalue()


def _described(data: bytes) -> str:
    """Say what bytes are that can't be decoded as a picture, such as "an empty file"."""
    if not data:
        return "an empty file"
    start = data[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if b"<svg" in start:
        return _BEGINNINGS[0][1]
    if found := next((what for begin, what in _BEGINNINGS if start.startswith(begin.lower())), ""):
        return found
    if data[4:8] == b"ftyp" and data[8:12] in _HEIC:
        return "a HEIC photo: save it as JPEG"
    if picture_type(data):
        return "a picture that is damaged or cut off"
    return "no picture that can be read"
