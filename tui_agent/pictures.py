"""The one door for pictures and PDFs that are sent as they are: known by their bytes, as providers take them.

What a name, a server or another program says of a picture's type counts for nothing. Pillow is
imported with the first picture, and is given only the formats named here.
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
"""Bytes of a picture that are sent: providers take 5 MB of base64."""
MAX_SIDE = 2_000
"""Pixels of the longest side that is sent. Providers scale down to less, and refuse 8,000 or, of
many pictures, 2,000 (platform.claude.com/docs, "Vision")."""
MAX_PIXELS = 64_000_000
"""Pixels that are decoded: a small file may hold any number of them."""
MAX_SOURCE_BYTES = 40_000_000
"""Bytes of a picture that are looked at."""
TYPES = {
    "PNG": "image/png",
    "JPEG": "image/jpeg",
    "MPO": "image/jpeg",
    "GIF": "image/gif",
    "WEBP": "image/webp",
}
"""Types that are kept as they are, by Pillow's name of the format; the others it reads become PNG
or JPEG."""
SUFFIXES = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}
PDF = "application/pdf"
MAX_PDF_BYTES = 5_000_000
"""Bytes of a PDF that is sent as it is, in every request until it is cleared."""
MAX_PDF_PAGES = 20
"""Pages of such a PDF: each takes as much of the window as a picture and its text."""
_READ = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "ICO", "PPM", "AVIF")
_PLAIN_MODES = frozenset({"1", "L", "LA", "P", "RGB", "RGBA", "I;16"})
_QUALITY = 85
_SMALLER = 0.7
"""The factor of a picture's sides that has too many bytes."""
_MIN_SIDE = 16

_BEGINNINGS: tuple[tuple[bytes, str], ...] = (
    (b"<svg", "an SVG drawing, which is text: read it as such"),
    (b"<!doctype", "a web page"),
    (b"<html", "a web page"),
    (b"%PDF", "a PDF"),
)
_HEIC = (b"heic", b"heix", b"hevc", b"mif1", b"msf1")


@frozen
class PictureLimits:
    """The pictures a provider takes: types, most bytes, and most pixels of the longer side."""

    types: tuple[str, ...] = tuple(SUFFIXES)
    bytes: int = MAX_BYTES
    side: int = MAX_SIDE


@frozen
class Picture:
    """A picture, or a PDF, that can be sent. Width and height are pixels, none of a PDF."""

    data: bytes
    mime: str
    width: int = 0
    height: int = 0
    pages: int = 0


@frozen
class NoPicture:
    """Bytes that are no picture that can be sent; ``reason`` says what they are: "a web page"."""

    reason: str


STANDARD = PictureLimits()


def picture_type(data: bytes) -> str:
    """Return a picture's type by its first bytes, "" for one that providers don't take as it is."""
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
    """Whether a picture may be sent as it is, judged by its first bytes and its size."""
    return picture_type(data) == mime and mime in limits.types and len(data) <= limits.bytes


def read_picture(data: bytes, limits: PictureLimits = STANDARD) -> Picture | NoPicture:
    """Decode a picture; scale and convert it where the limits ask for it.

    Takes up to seconds: call it in a thread.
    """
    if len(data) > MAX_SOURCE_BYTES:
        return NoPicture(f"a file of more than {MAX_SOURCE_BYTES // 1_000_000} MB")
    try:
        return _read(data, limits)
    except Exception as error:  # noqa: BLE001 - decoders of many formats raise whatever they meet
        log.info("a picture can't be read: %s", error)
        return NoPicture(_described(data))


def picture_size(path: Path) -> tuple[int, int]:
    """Return width and height in pixels from a file's head, 0 if unknown; raises OSError."""
    with path.open("rb") as file:
        try:
            return _opened(file).size
        except Exception as error:  # noqa: BLE001 - as above
            log.info("a picture's size can't be read: %s", error)
            return 0, 0


def _opened(file: "io.BytesIO | io.BufferedReader") -> "Image":
    from PIL import Image

    # The size is checked here, before anything is decoded; Pillow's own check warns on standard
    # error.
    Image.MAX_IMAGE_PIXELS = None
    Image.init()
    return Image.open(file, formats=[name for name in _READ if name in Image.OPEN])


def _read(data: bytes, limits: PictureLimits) -> Picture | NoPicture:
    with _opened(io.BytesIO(data)) as image:
        width, height = image.size
        if width * height > MAX_PIXELS:
            return NoPicture(f"a picture of {width}x{height} pixels, too many to decode")
        mime = TYPES.get(image.format or "", "")
        is_small = max(width, height) <= limits.side and len(data) <= limits.bytes
        image.load()
        if is_small and mime in limits.types and image.mode in _PLAIN_MODES:
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
    return NoPicture("a picture that can't be made small enough")


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
    """Return what bytes are that can't be decoded."""
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
