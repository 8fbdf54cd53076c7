"""A file is replaced as a whole, or the error names it."""

from pathlib import Path

import pytest

from tui_agent.files.atomic import write_atomically


def test_the_error_names_the_file_and_not_the_temporary_one(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 250)
    with pytest.raises(OSError, match="too long") as caught:
        write_atomically(path, b"text")
    assert caught.value.filename == str(path)
    assert list(tmp_path.iterdir()) == []
