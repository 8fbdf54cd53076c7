"""A file is replaced as a whole, or the error names it."""

from pathlib import Path

import pytest

from tui_agent.files.atomic import write_atomically
from tui_agent.text_files.replacing import replace_file


def test_the_error_names_the_file_and_not_the_temporary_one(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 256)
    with pytest.raises(OSError, match="too long") as caught:
        write_atomically(path, b"text")
    assert caught.value.filename == str(path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127, "ab" + "長" * 84])
def test_a_name_may_be_as_long_as_the_file_system_allows(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    for write in (write_atomically, replace_file):
        write(path, write.__name__.encode())
        assert path.read_bytes() == write.__name__.encode()
    assert list(tmp_path.iterdir()) == [path]
