"""The tree on a session with several branches, a real agent and a real store."""

from pathlib import Path

import pytest

from tests.support.tree_stage import TreeStage, tree_stage


@pytest.fixture
def stage(tmp_path: Path) -> TreeStage:
    return tree_stage(tmp_path)
