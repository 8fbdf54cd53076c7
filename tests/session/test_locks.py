"""Lock files tell which programs are running."""

from pathlib import Path

from tui_agent.session.locks import FileLock, LivenessLocks


def test_a_lock_file_is_the_users_alone(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    lock.close()
    assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600


def test_a_lock_may_be_closed_more_than_once(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    assert lock.take()
    for _ in range(3):
        lock.close()
    other = FileLock(tmp_path / "lock")
    assert other.take()
    other.close()


def test_the_file_of_a_program_that_has_ended_is_deleted(tmp_path: Path) -> None:
    held = FileLock(tmp_path / "held")
    assert held.take()
    (tmp_path / "ended").touch()
    locks = LivenessLocks(tmp_path)
    assert [locks.alive(token) for token in ("held", "ended", "never")] == [True, False, False]
    assert {path.name for path in tmp_path.iterdir()} == {"held"}
    held.close()


def test_a_program_whose_file_is_a_directory_counts_as_ended(tmp_path: Path) -> None:
    (tmp_path / "odd").mkdir()
    assert not LivenessLocks(tmp_path).alive("odd")
