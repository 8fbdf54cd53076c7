"""Files dropped on the terminal become mentions, however their paths are quoted."""

import shlex
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.ui.prompting.completion import mention
from tui_agent.ui.prompting.dropped import dropped_files


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    names = ["a&b (1).png", "notes.txt", "it's 100%.jpg", "Zoë $x [2].py", "plain.png"]
    for name in names:
        (tmp_path / name).touch()
    return [str(tmp_path / name) for name in names]


def escaped(path: str) -> str:
    return "".join(
        letter if letter.isalnum() or letter in "/._-" else f"\\{letter}" for letter in path
    )


def ansi_c(byte: int) -> str:
    return f"\\x{byte:02x}" if byte > 126 or byte == ord("'") else chr(byte)


QUOTINGS = {
    "backslashes": escaped,
    "single quotes": lambda path: shlex.quote(path) if "'" in path else f"'{path}'",
    "double quotes": lambda path: '"' + path.replace("$", "\\$") + '"',
    "url": lambda path: f"file://{quote(path)}",
    "url of this host": lambda path: f"file://localhost{quote(path)}",
    "ansi-c": lambda path: f"$'{''.join(map(ansi_c, path.encode()))}'",
}  # fmt: skip


@pytest.mark.parametrize("way", QUOTINGS)
def test_each_quoting_of_one_and_of_several(files: list[str], way: str) -> None:
    write = QUOTINGS[way]
    for path in (path for path in files if write(path) != path):
        assert dropped_files(write(path)) == mention(path), path
        assert dropped_files(f" {write(path)}\n") == mention(path)
    several = [write(path) for path in files]
    together = "".join(map(mention, files))
    assert dropped_files("\r\n".join(several)) == together
    if not way.startswith("url"):
        assert dropped_files(" ".join(several)) == together


def test_an_image_as_it_is_and_what_stays_text(files: list[str]) -> None:
    assert dropped_files(files[0]) == mention(files[0])
    assert dropped_files(files[1]) is None
    assert dropped_files(f"look at {files[4]}") is None
    assert dropped_files(f"{files[4]} /none/at/all.png") is None
    assert dropped_files("don't") is None
    assert dropped_files("") is None


def test_windows_paths_under_wsl(
    files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert str(tmp_path / "plain.png") in files
    home = str(tmp_path / "plain.png")
    assert dropped_files("\\\\wsl$\\Debian" + home.replace("/", "\\")) == mention(home)
    assert dropped_files('"\\\\wsl.localhost\\Debian' + home.replace("/", "\\") + '"') == mention(
        home
    )
    there = {"/mnt/c/Users/me/my shot.png", "/mnt/c/a.png", "/mnt/d/b.png"}
    monkeypatch.setattr("tui_agent.ui.prompting.dropped.is_file", lambda path: str(path) in there)
    assert dropped_files('"C:\\Users\\me\\my shot.png"') == mention("/mnt/c/Users/me/my shot.png")
    assert dropped_files("C:\\a.png D:\\b.png") == mention("/mnt/c/a.png") + mention("/mnt/d/b.png")


@given(st.text(max_size=60))
def test_any_text_is_a_text(text: str) -> None:
    assert dropped_files(text) is None or "@" in dropped_files(text)  # type: ignore[operator]
