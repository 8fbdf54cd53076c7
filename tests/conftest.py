"""What holds for every test."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.tooling import Workspace

# How fast examples are made says something of the machine, not of the program.
settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    """A repository and the context in which tools work on it."""
    root = tmp_path / "project"
    root.mkdir()
    (root / ".git").mkdir()
    return Workspace(root.resolve(), environ=dict(os.environ))
