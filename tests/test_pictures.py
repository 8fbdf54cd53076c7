"""Any bytes are a picture that can be sent or a reason why not; never an error, and never a picture that is refused."""

import io
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.support.drawn import drawn
from tests.support.thoroughness import examples
from tui_agent.pictures import (
    MAX_BYTES,
    MAX_SIDE,
    MAX_SOURCE_BYTES,
    STANDARD,
    SUFFIXES,
    NoPicture,
    Picture,
    PictureLimits,
    fits,
    look_at_picture,
    picture_type,
    read_picture,
)

FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "ICO", "PPM")


def noise(width: int, height: int, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.frombytes("RGB", (width, height), random.Random(1).randbytes(width * height * 3)).save(
        file, kind
    )
    return file.getvalue()


def checked(found: Picture | NoPicture, limits: PictureLimits = STANDARD) -> None:
    """Check that a picture is one that a strict provider takes, and that there is a reason for anything else."""
    if isinstance(found, NoPicture):
        assert found.reason
        return
    assert fits(found.data, found.mime, limits)
    assert max(found.width, found.height) <= limits.side
    with Image.open(io.BytesIO(found.data)) as image:
        image.load()
        assert image.size == (found.width, found.height)


WHOLE = [drawn(kind) for kind in FORMATS]


@settings(max_examples=examples(300), deadline=None)
@given(st.one_of(st.binary(max_size=400), st.sampled_from(WHOLE)), st.data())
def test_any_bytes_are_a_picture_or_a_reason(data: bytes, draw: st.DataObject) -> None:
    changed = bytearray(data)
    for _ in range(draw.draw(st.integers(0, 6))):
        if changed:
            changed[draw.draw(st.integers(0, len(changed) - 1))] = draw.draw(st.integers(0, 255))
    cut = bytes(changed[: draw.draw(st.integers(0, len(changed)))])
    types = draw.draw(st.lists(st.sampled_from(list(SUFFIXES)), min_size=1, unique=True))
    limits = PictureLimits(
        tuple(types), bytes=draw.draw(st.sampled_from([600, MAX_BYTES])), side=32
    )
    for each in (bytes(changed), cut):
        checked(read_picture(each, limits), limits)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_type_that_providers_take_stays_and_any_other_is_converted(kind: str) -> None:
    data = drawn(kind)
    found = read_picture(data)

    assert isinstance(found, Picture)
    checked(found)
    assert (found.data == data) == bool(picture_type(data))
    assert (found.width, found.height) == (20, 10) or kind == "ICO"


def test_a_large_one_is_scaled_and_a_heavy_one_made_smaller() -> None:
    wide = read_picture(drawn(size=(9_000, 90)))
    heavy = read_picture(noise(1_500, 1_500))

    assert isinstance(wide, Picture)
    assert (wide.width, wide.height, wide.mime) == (MAX_SIDE, 20, "image/png")
    assert isinstance(heavy, Picture)
    checked(heavy)


def test_an_odd_colour_space_and_a_turned_photo_become_plain() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = read_picture(drawn("JPEG", (9_000, 90), exif=exif))
    small = read_picture(drawn("JPEG", (40, 20), exif=exif))
    printed = read_picture(drawn("JPEG", mode="CMYK"))

    assert isinstance(turned, Picture)
    assert (turned.width, turned.height) == (20, MAX_SIDE)
    assert isinstance(small, Picture)
    assert (small.width, small.height) == (20, 40)
    assert isinstance(printed, Picture)
    with Image.open(io.BytesIO(printed.data)) as image:
        assert image.mode == "RGB"


def test_a_small_file_of_a_million_million_pixels_is_not_decoded(
    recwarn: pytest.WarningsRecorder,
) -> None:
    head = bytearray(drawn())
    head[16:24] = (1_000_000).to_bytes(4, "big") * 2
    crc = __import__("zlib").crc32(bytes(head[12:29]))
    head[29:33] = crc.to_bytes(4, "big")

    found = read_picture(bytes(head))
    assert isinstance(found, NoPicture)
    assert "1000000x1000000 pixels, too many" in found.reason
    assert not recwarn.list


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b"<svg xmlns='x'/>", "SVG"),
        (b"\xef\xbb\xbf<?xml version='1.0'?>\n<svg/>", "SVG"),
        (b"<!DOCTYPE html><html></html>", "web page"),
        (b"%PDF-1.7", "PDF"),
        (b"\0\0\0\x18ftypheic\0\0\0\0", "HEIC"),
        (drawn()[:40], "damaged or cut off"),
        (bytes.fromhex("ffd8ffe000104a46494600010100000100010000ffd9"), "damaged or cut off"),
        (b"just words", "no picture"),
        (b"\0" * (MAX_SOURCE_BYTES + 1), "more than 40 MB"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_picture_says_what_it_is(data: bytes, reason: str) -> None:
    found = read_picture(data)

    assert isinstance(found, NoPicture)
    assert reason in found.reason


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (drawn(size=(7, 3)), (7, 3)),
        (b"nothing", NoPicture("no picture that can be read")),
        # The size is known, but the rest is missing.
        (noise(300, 300)[:2_000], NoPicture("a picture that is damaged or cut off")),
        (b"\0" * (MAX_SOURCE_BYTES + 1), NoPicture("a file of more than 40 MB")),
    ],
    ids=["whole", "text", "cut off", "large"],
)
def test_a_file_is_looked_at_as_it_is_when_it_is_sent(
    tmp_path: Path, data: bytes, found: object
) -> None:
    (tmp_path / "a").write_bytes(data)
    assert look_at_picture(tmp_path / "a") == found
    read = read_picture(data)
    assert (read if isinstance(read, NoPicture) else (read.width, read.height)) == found
