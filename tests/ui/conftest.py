"""The full-screen program as most tests of it need it."""

from pathlib import Path

import pytest

from tests.support.ui_app import Stage, make_stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """A program with a session without entries."""
    return make_stage(tmp_path)
