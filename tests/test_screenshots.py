"""The pictures of the README: there, and the same on every run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.thoroughness import NIGHTLY

ROOT = Path(__file__).parent.parent


SOME = () if NIGHTLY else ("tree", "permission")
"""Pictures that are drawn, all if there are none."""


def draw(directory: Path, *names: str) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "screenshots.py", directory, *names],
        capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {path.name: path.read_text(encoding="utf-8") for path in directory.iterdir()}


def test_two_runs_draw_the_same_pictures(tmp_path: Path) -> None:
    first = draw(tmp_path / "first", *SOME)
    again = draw(tmp_path / "second", *SOME[1:])
    assert again == {name: first[name] for name in again}
    assert len(again) >= len(first) - 1
    assert "yes,&#160;once" in first["permission.svg"]
    assert not [name for name, svg in first.items() if str(tmp_path) in svg]


@pytest.mark.nightly
def test_the_recording_of_the_tour_can_be_made_again(tmp_path: Path) -> None:
    made = tmp_path / "tour.svg"
    done = subprocess.run([sys.executable, ROOT / "scripts" / "recording.py", made], check=False, timeout=110)
    assert done.returncode == 0
    svg = made.read_text(encoding="utf-8")
    assert svg.count('class="frame"') == 10
    assert "Session&#160;tree" in svg
    assert "Undone:&#160;compaction" in svg
    assert "@font-face" not in svg


def test_the_documents_show_every_picture_there_is() -> None:
    shown = {
        (document.parent / target).resolve()
        for document in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
        for target in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", document.read_text(encoding="utf-8"))
    }
    assert shown == set((ROOT / "docs" / "images").iterdir())
