"""A project whose commands run in the sandbox of this machine."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.contained import JUDGED, Contained, state_of


@pytest.fixture(params=JUDGED)
async def plain(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Contained]:
    plain = Contained(tmp_path / "home", state=state_of(request.param, tmp_path))
    yield plain
    await plain.sandbox.aclose()


@pytest.fixture
def box(plain: Contained) -> Contained:
    """Stands for what a module makes of the project."""
    return plain
