"""Noticing that a file changed."""

import os

import pytest

from tests.support.tooling import Workspace
from tui_agent.tools import reads as reads_module


def test_content_counts_and_time_does_not(space: Workspace) -> None:
    path = space.file("a.txt", "one")
    space.reads.note(path)
    os.utime(path, ns=(1, 1))
    assert space.reads.changed_since(path) is False
    path.write_text("two")
    assert space.reads.changed_since(path) is True


def test_a_change_within_one_tick_of_the_clock(space: Workspace) -> None:
    path = space.file("a.txt", "one")
    status = path.stat()
    space.reads.note(path)
    path.write_text("two")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
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
