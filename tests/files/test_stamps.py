"""Files that others wrote are read once while they stay as they are, and again after any change."""

import os
import time
from pathlib import Path

import pytest

from tests.support.knowledge import write
from tui_agent.files.stamps import settled_stamp
from tui_agent.foreign_file import read_foreign
from tui_agent.plugins import digest_of


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour passed since any file was written."""
    now = time.time_ns() + 3_600_000_000_000
    monkeypatch.setattr(time, "time_ns", lambda: now)


def test_what_was_just_written_has_no_stamp_yet(tmp_path: Path) -> None:
    assert settled_stamp(write(tmp_path / "a.json", "{}")) is None
    assert settled_stamp(tmp_path / "none.json") is None


@pytest.mark.usefixtures("later")
def test_a_settings_file_is_read_again_only_when_it_changed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", '{"a": 1}')
    first = read_foreign(path, "a.json")
    assert first is not None
    assert read_foreign(path, "a.json") is first
    other = write(tmp_path / "b.json", '{"a": 2}')
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    other.replace(path)
    again = read_foreign(path, "a.json")
    assert again is not None
    assert again.table == {"a": 2}
    path.unlink()
    assert read_foreign(path, "a.json") is None


@pytest.mark.usefixtures("later")
def test_a_plugins_digest_follows_every_change(tmp_path: Path) -> None:
    root = tmp_path / "kit"
    path = write(root / "commands/a.md", "one")
    digests = [digest_of(root), digest_of(root)]
    times = path.stat()
    path.write_text("two")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    digests.append(digest_of(root))
    path.chmod(0o755)
    digests.append(digest_of(root))
    write(root / "commands/b.md", "new")
    digests.append(digest_of(root))
    assert [digests.index(digest) for digest in digests] == [0, 0, 2, 3, 4]
