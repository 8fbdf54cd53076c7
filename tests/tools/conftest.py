"""The workspace every tool test starts with."""

import os
from pathlib import Path

import pytest

from tests.support.tooling import Workspace


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    root = tmp_path / "project"
    root.mkdir()
    (root / ".git").mkdir()
    return Workspace(root.resolve(), environ=dict(os.environ))
