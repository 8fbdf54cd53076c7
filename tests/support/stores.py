"""Session files for tests."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tui_agent.session.store import Store


def open_store(path: Path, **options: Any) -> Store:
    """Open a store; a new one is a copy of an empty one, since to make one is to wait for the disk several times."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_empty_file())
        path.chmod(0o600)
    return Store(path, **options)


@cache
def _empty_file() -> bytes:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "sessions.db"
        Store(path).close()
        return path.read_bytes()
