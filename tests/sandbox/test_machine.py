"""What of this machine commands see, and what is hidden from them."""

import os
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from tui_agent.sandbox import machine
from tui_agent.sandbox.machine import scan_machine


@pytest.mark.parametrize("value", ["", "cache", "~/.cache"])
def test_a_cache_directory_that_is_no_absolute_path_does_not_count(
    tmp_path: Path, value: str
) -> None:
    found = scan_machine({"XDG_CACHE_HOME": value}, tmp_path, lambda _path: False)
    assert found.cache == tmp_path / ".cache"


def test_a_file_deleted_during_the_search_does_not_end_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    secret.touch(mode=0o600)
    gone = Mock(spec=os.DirEntry)
    gone.stat.side_effect = FileNotFoundError

    class Rows:
        def __enter__(self) -> Iterator[object]:
            return iter([gone, *rows])

        def __exit__(self, *_error: object) -> None: ...

    with os.scandir(tmp_path) as found:
        rows = list(found)
    monkeypatch.setattr(machine, "ADMINISTERED", (str(tmp_path),))
    monkeypatch.setattr(os, "scandir", lambda _path: Rows())
    assert scan_machine({}, tmp_path / "home", lambda _path: False).hidden == (secret,)
