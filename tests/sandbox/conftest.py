"""A project whose commands run in the sandbox of this machine."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.contained import Contained


@pytest.fixture
async def plain(tmp_path: Path) -> AsyncIterator[Contained]:
    plain = Contained(tmp_path / "home")
    yield plain
    await plain.sandbox.aclose()


@pytest.fixture
def box(plain: Contained) -> Contained:
    """Stands for what a module makes of the project."""
    return plain
