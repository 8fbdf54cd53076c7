"""Output while it comes in, and as the model is shown it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.processes import capture as module
from tui_agent.processes.capture import Capture, plain_text


@given(st.lists(st.binary(max_size=20)))
def test_what_fits_is_kept_as_it_is(chunks: list[bytes]) -> None:
    capture = Capture()
    for chunk in chunks:
        capture.feed(chunk)
    raw = b"".join(chunks)
    assert capture.raw() == raw
    assert capture.total_bytes == len(raw)
    assert capture.total_lines == raw.count(b"\n") + (raw != b"" and not raw.endswith(b"\n"))


def test_the_middle_is_dropped_counted_and_searched_for_errors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "HEAD_BYTES", 100)
    monkeypatch.setattr(module, "TAIL_BYTES", 100)
    capture = Capture()
    lines = [b"line %04d\n" % n for n in range(1, 1001)]
    lines[499] = b"fatal Error: it broke here\n"
    for line in lines:
        capture.feed(line)
    raw = capture.raw()
    assert raw.startswith(b"line 0001\n")
    assert raw.endswith(b"line 1000\n")
    assert raw.count(b"500: fatal Error: it broke here\n") == 1
    assert capture.total_lines == 1000
    assert capture.total_bytes == sum(map(len, lines))
    kept = [line for line in lines if line in raw]
    assert f"[{1000 - len(kept) + 1:,} lines, ".encode() in raw
    assert len(raw) < 400


def test_lines_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HEAD_LINES", 10)
    monkeypatch.setattr(module, "TAIL_LINES", 10)
    capture = Capture()
    for _ in range(1_000):
        capture.feed(b"y\n")
    assert capture.total_lines == 1_000
    assert b"[980 lines, 1,960 bytes were not kept]" in capture.raw()


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"\x1b[1;31mred\x1b[m", "red"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\x1b]0;unfinished title\nnext", "\nnext"),
        (b"\x1b[?1049h\x1b[2J\x1b(Btext\x1b7\x1b8", "text"),
        (b"a\r\nb\r\n", "a\nb\n"),
        (b"10%\r20%\r100%\ndone\r\n", "100%\ndone\n"),
        (b"kept\r\r\n", "kept\n"),
        (b"ab\x08c\x08\x08xy", "xy"),
        (b"a\x00b\x07c\x7f", "a\nbc"),
        (b"caf\xe9", "caf\ufffd"),
        ("é [bold] \tx".encode(), "é [bold] \tx"),
    ],
)
def test_plain_text(raw: bytes, shown: str) -> None:
    assert plain_text(raw) == shown


TEXT = "".join(f"line {number}\n" for number in range(100))
ELF = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0>\0\x01\0\0\0\nplain line\n\xff\xfe\x02\x03\x04\x05\x06\x0e\x0f\x10"
NOTE = f"[{len(ELF)} bytes of binary output are not shown.]"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (ELF, NOTE),
        (b"before\n" + ELF + b"\nafter\n", f"before\n{NOTE}\nafter\n"),
        (ELF + b"\n" + TEXT.encode() + ELF, f"{NOTE}\n{TEXT}{NOTE}"),
        (
            b"\0".join([b"src/first.py", b"src/second.py"] * 50),
            "\n".join(["src/first.py", "src/second.py"] * 50),
        ),
        (b"\x1b[32mok\x1b[0m\a\n" * 50, "ok\n" * 50),
        (b"a\x01b\n", "ab\n"),
        ("Größe\n".encode("latin-1") * 20, "Gr\ufffd\ufffde\n" * 20),
    ],
)
def test_binary_output_is_described(raw: bytes, shown: str) -> None:
    assert plain_text(raw) == shown


@given(st.binary(max_size=200))
def test_plain_text_never_moves_a_cursor(raw: bytes) -> None:
    assert not set(plain_text(raw)) & {
        chr(n) for n in (*range(9), *range(11, 32), *range(127, 160))
    }
