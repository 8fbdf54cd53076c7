"""The ``read`` tool on real files."""

import hashlib
import os
import struct
import zlib

import pytest

from tests.support.drawn import drawn
from tests.support.tooling import Workspace
from tui_agent.context.truncation import OutputLimits
from tui_agent.errors import ToolError
from tui_agent.pictures import MAX_BYTES, MAX_SOURCE_BYTES
from tui_agent.tools import reads as reads_module
from tui_agent.tools.read import ReadTool

READ = ReadTool()


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + b"\0\0\0" * width for _ in range(height)))
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    )


async def test_offset_and_limit_say_where_the_rest_is(space: Workspace) -> None:
    space.file("a.txt", "".join(f"line {n}\n" for n in range(1, 101)))
    result = await space.call(READ, path="a.txt", offset=40, limit=3)
    assert (
        result.output
        == "40\tline 40\n41\tline 41\n42\tline 42\n[Lines 40-42 of 100. Read on with offset=43.]"
    )
    assert result.title == "a.txt:40-42"
    last = await space.call(READ, path="a.txt", offset=99)
    assert last.output.endswith("[Lines 99-100 of 100, the end of the file.]")


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        ({"end_line": 2}, "1-2"),
        ({"start_line": 3, "end_line": 5}, "3-5"),
        ({"view_range": [4, 4]}, "4"),
        ({"startLine": 8}, "8-9"),
    ],
)
async def test_lines_may_be_named_by_their_numbers(
    space: Workspace, given: dict[str, object], lines: str
) -> None:
    space.file("a.txt", "".join(f"line {n}\n" for n in range(1, 10)))
    result = await space.call(READ, path="a.txt", **given)
    first, _, last = lines.partition("-")
    expected = range(int(first), int(last or first) + 1)
    shown = [line for line in result.output.split("\n") if not line.startswith("[")]
    assert shown == [f"{n}\tline {n}" for n in expected]


async def test_offset_past_the_end(space: Workspace) -> None:
    space.file("a.txt", "1\n2\n")
    with pytest.raises(ToolError, match=r"past the end: a.txt has 2 lines"):
        await space.call(READ, path="a.txt", offset=9)


@pytest.mark.parametrize(
    "limits", [OutputLimits(lines=50), OutputLimits(bytes=2_000), OutputLimits(tokens=700)]
)
async def test_what_is_cut_continues_seamlessly(space: Workspace, limits: OutputLimits) -> None:
    """Reading on at the named offset gives every line once."""
    space.file("big.txt", "".join(f"the text of line {n}\n" for n in range(1, 301)))
    space.limits = limits
    seen: list[str] = []
    offset: int | None = 1
    while offset is not None:
        result = await space.call(READ, path="big.txt", offset=offset)
        *lines, note = result.output.split("\n")
        seen += [line.split("\t")[1] for line in lines]
        offset = int(note.split("offset=")[1].rstrip(".]")) if "offset=" in note else None
        if result.metadata.truncation is not None:
            assert result.metadata.truncation.total_lines == 300
            assert result.metadata.truncation.kept_lines == len(lines)
            assert f"of 300. Read on with offset={offset}" in note
        whole = space.blobs[result.full_output].decode() if result.full_output else result.output
        assert whole.rstrip(".]").split("\n")[-1].endswith(("line 300", "of the file")), (
            "the rest is stored for recall"
        )
    assert seen == [f"the text of line {n}" for n in range(1, 301)]


async def test_a_huge_line_is_cut_and_counted(space: Workspace) -> None:
    space.file("min.js", b"x" * 10_000_000 + b"\nend\n")
    result = await space.call(READ, path="min.js")
    first, second = result.output.split("\n")
    assert len(first) < 2_100
    assert first.endswith("[+9,998,042 bytes]")
    assert second == "2\tend"


async def test_the_middle_of_a_huge_file(space: Workspace) -> None:
    space.file("log.txt", b"".join(b"%07d filler filler filler\n" % n for n in range(400_000)))
    result = await space.call(READ, path="log.txt", offset=399_990, limit=2)
    assert result.output.startswith("399990\t0399989 filler")
    assert "of 400000. Read on with offset=399992" in result.output


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ("é\nb\n".encode(), "1\té\n2\tb"),
        ("\ufeffé\nb\n".encode(), "1\té\n2\tb"),
        (b"\xff\xfe" + "é\r\nb\r\n".encode("utf-16-le"), "1\té\n2\tb"),
        (b"caf\xe9\nb\n", "1\tcafé\n2\tb"),
        (b"a\r\nb\r\n", "1\ta\n2\tb"),
        (b"", "[The file is empty.]"),
    ],
)
async def test_encodings_and_line_endings(space: Workspace, data: bytes, shown: str) -> None:
    space.file("f.txt", data)
    assert (await space.call(READ, path="f.txt")).output == shown


async def test_bytes_that_are_not_utf8_far_into_a_file(space: Workspace) -> None:
    space.file("f.txt", b"plain\n" * 20_000 + b"caf\xe9\n")
    assert (await space.call(READ, path="f.txt", offset=20_001)).output.startswith("20001\tcafé")


async def test_an_image_is_attached_with_its_size(space: Workspace) -> None:
    data = png(40, 30)
    space.file("shot.png", data)
    result = await space.call(READ, path="shot.png")
    (part,) = result.attachments
    assert (part.mime, part.width, part.height, part.path) == ("image/png", 40, 30, "shot.png")
    assert space.blobs[part.blob] == data
    assert "40x30" in result.output
    space.blobs.clear()
    space.file("heavy.png", png(4, 3) + b"\0" * MAX_BYTES)
    heavy = await space.call(READ, path="heavy.png")
    assert len(space.blobs[heavy.attachments[0].blob]) < 1_000
    space.blobs.clear()
    space.file("huge.png", png(4, 3) + b"\0" * MAX_SOURCE_BYTES)
    huge = await space.call(READ, path="huge.png")
    space.vision = False
    unseen = await space.call(READ, path="shot.png")
    assert unseen.attachments == huge.attachments == ()
    assert "more than 40 MB" in huge.output
    assert "40x30 pixels, 83 bytes. This model takes no images." in unseen.output
    assert space.blobs == {}


@pytest.mark.parametrize(
    ("data", "mime"),
    [
        (drawn("GIF"), "image/gif"),
        (drawn("JPEG"), "image/jpeg"),
        (drawn("WEBP"), "image/webp"),
    ],
)
async def test_images_are_known_by_content(space: Workspace, data: bytes, mime: str) -> None:
    space.file("picture", data)
    (part,) = (await space.call(READ, path="picture")).attachments
    assert part.mime == mime

    space.file("picture", data[: len(data) // 2])
    cut = await space.call(READ, path="picture")
    assert "Not shown: it is a picture that is damaged or cut off." in cut.output


@pytest.mark.parametrize("data", [b"\x7fELF\0\0\0", bytes(range(1, 255)) * 10])
async def test_binary_is_described(space: Workspace, data: bytes) -> None:
    space.file("tool.bin", data)
    result = await space.call(READ, path="tool.bin")
    assert result.output.startswith("[tool.bin: binary file")


async def test_a_directory_is_listed(space: Workspace) -> None:
    space.file("src/b.py")
    space.file("src/sub/c.py")
    assert (await space.call(READ, path="src")).output == "sub/\n  c.py\nb.py"


@pytest.mark.parametrize(
    ("wanted", "meant"),
    [("src/mian.py", "src/main.py"), ("lib/main.py", "src/main.py"), ("README.MD", "readme.md")],
)
async def test_a_missing_file_is_guessed(space: Workspace, wanted: str, meant: str) -> None:
    space.file("src/main.py")
    space.file("readme.md")
    with pytest.raises(ToolError, match=f"does not exist. Did you mean {meant}"):
        await space.call(READ, path=wanted)


@pytest.mark.parametrize("place", ["a.txt:2-3", "a.txt:2", "a.txt:2:7", "`a.txt`:2"])
async def test_a_place_as_searches_name_it(space: Workspace, place: str) -> None:
    space.file("a.txt", "1\n2\n3\n4\n")
    space.file("`a.txt`", "1\n2\n3\n")
    shown = (await space.call(READ, path=place)).output
    assert shown.startswith("2\t2\n3\t3")
    assert ("[Lines 2-3 of 4" in shown) == place.endswith("-3")
    assert (await space.call(READ, path=place, offset=1)).output.startswith("1\t1\n2\t2")
    space.file(place, "itself")
    assert (await space.call(READ, path=place)).output == "1\titself"


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("link", r"^link is a link to gone\.txt, which does not exist\.$"),
        ("pipe", "not a file"),
        ("src/**/*.py", r"src/\*\*/\*\.py does not exist\. To find files by a pattern, use glob\."),
    ],
)
async def test_what_is_no_file_says_so(space: Workspace, path: str, told: str) -> None:
    (space.root / "link").symlink_to("gone.txt")
    os.mkfifo(space.root / "pipe")
    with pytest.raises(ToolError, match=told):
        await space.call(READ, path=path)


async def test_half_a_pdf_says_that_it_can_not_be_read(space: Workspace) -> None:
    space.file("a.pdf", b"%PDF-1.4\n1 0 obj\n")
    assert "[The rest can't be read: " in (await space.call(READ, path="a.pdf")).output


async def test_what_the_system_makes_up_is_not_read_to_its_end(
    space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that says it is empty is not hashed: reading some of those waits for ever."""
    path = space.file("empty", "")

    def endless(*_arguments: object) -> None:
        raise AssertionError

    monkeypatch.setattr(hashlib, "file_digest", endless)
    assert (await space.call(READ, path="empty")).output == "[The file is empty.]"
    assert space.reads.changed_since(path) is False


def test_content_counts_and_time_does_not(space: Workspace) -> None:
    path = space.file("a.txt", "one")
    space.reads.note(path)
    os.utime(path, ns=(1, 1))
    assert space.reads.changed_since(path) is False
    path.write_text("two")
    assert space.reads.changed_since(path) is True


def test_large_files_go_by_time_and_size(space: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads_module, "HASHED_BYTES", 2)
    path = space.file("a.txt", "one")
    space.reads.note(path)
    assert space.reads.changed_since(path) is False
    os.utime(path, ns=(1, 1))
    assert space.reads.changed_since(path) is True


def test_a_deleted_file_has_changed_and_links_are_one_file(space: Workspace) -> None:
    path = space.file("a.txt", "one")
    (space.root / "link").symlink_to(path)
    space.reads.note(space.root / "link")
    assert space.reads.changed_since(path) is False
    path.unlink()
    assert space.reads.changed_since(path) is True
    space.reads.note(path)
    assert space.reads.changed_since(path) is None
