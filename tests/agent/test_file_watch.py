"""A watched project is seen as one that is listed each time."""

import asyncio
import contextlib
import os
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.thoroughness import NIGHTLY
from tui_agent.agent.checkpoints.manifest import FileWatch, WatchedProject, manifest_of

NAMES = ("a.txt", "b.py", "c.log", "keep.log", ".hidden", "new")
PLACES = ("", "src/", "src/deep/", "build/", "logs/", "__pycache__/", "src/.git/", "empty/")

needs_inotify = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")


def filled(root: Path) -> Path:
    for place in PLACES:
        (root / place).mkdir(parents=True, exist_ok=True)
    (root / ".gitignore").write_text("build/\n*.log\n!keep.log\n")
    for place in ("", "src/", "logs/", "build/"):
        for name in NAMES[:4]:
            (root / place / name).write_text(f"{place}{name}")
    return root


def change(root: Path, chance: random.Random) -> None:
    path = root / chance.choice(PLACES) / chance.choice(NAMES)
    other = root / chance.choice(PLACES) / chance.choice(NAMES)
    place = root / chance.choice(PLACES[1:])
    acts: list[Callable[[], object]] = [
        lambda: path.write_text(str(chance.random())),
        lambda: path.open("a").write("more"),
        path.unlink,
        lambda: path.rename(other),
        lambda: os.link(path, other),
        lambda: path.symlink_to(other),
        lambda: path.chmod(chance.choice((0o600, 0o755))),
        lambda: os.utime(path, ns=(1, chance.randrange(10**18))),
        place.mkdir,
        lambda: shutil.rmtree(place),
        lambda: place.rename(root / chance.choice(("moved", "src/moved", "empty/moved"))),
        lambda: (root / chance.choice(("src", "logs", "")) / ".gitignore").write_text(
            chance.choice(("*.py\n", ""))
        ),
    ]
    with contextlib.suppress(OSError):  # it is not there, or in the way
        chance.choices(acts, weights=(6, 4, 3, 3, 1, 1, 1, 1, 2, 1, 1, 1))[0]()


@pytest.mark.parametrize("seed", range(12 if NIGHTLY else 4))
async def test_it_is_seen_as_if_it_were_listed(tmp_path: Path, seed: int) -> None:
    root, chance = filled(tmp_path / "project"), random.Random(seed)
    project = WatchedProject(root)
    for _ in range(40):
        for _ in range(chance.randrange(4)):
            await asyncio.to_thread(change, root, chance)
        assert await project.look() == await manifest_of(root)
    project.close()


@needs_inotify
async def test_nothing_is_listed_where_nothing_or_only_known_files_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = filled(tmp_path / "project")
    watch = FileWatch(root)
    watch.begin()
    if watch.touched() is None:
        pytest.skip("the user's other programs use up inotify")
    watch.close()
    project = WatchedProject(root)
    first = await project.look()
    monkeypatch.setattr("tui_agent.agent.checkpoints.manifest.manifest_of", None)
    assert await project.look() is first
    began = first.began
    (root / "src/a.txt").write_text("other")
    (root / "src/b.py").unlink()
    (root / "build/made.o").write_text("ignored")
    second = await project.look()
    assert second.keys() == first.keys() - {"src/b.py"}
    assert second["src/a.txt"] != first["src/a.txt"]
    assert second.began > began
    project.close()


@needs_inotify
async def test_a_change_by_another_name_of_a_file_is_seen(tmp_path: Path) -> None:
    root = filled(tmp_path / "project")
    os.link(root / "a.txt", tmp_path / "outside")
    project = WatchedProject(root)
    before = await project.look()
    (tmp_path / "outside").write_text("changed through it")
    assert (await project.look())["a.txt"] != before["a.txt"]
    project.close()


@needs_inotify
def test_more_than_the_system_keeps_is_not_guessed(tmp_path: Path) -> None:
    watch = FileWatch(filled(tmp_path / "project"))
    watch.begin()
    for number in range(20_000):
        (tmp_path / "project" / NAMES[number % 2]).touch()
    assert watch.touched() is None
    assert watch.touched() is None


def test_an_unwatched_directory_with_files_ends_the_watch(tmp_path: Path) -> None:
    watch = FileWatch(filled(tmp_path / "project"))
    watch.begin()
    watch.check(["build/a.txt"])
    assert watch.touched() is None
