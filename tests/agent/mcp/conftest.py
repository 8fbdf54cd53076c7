"""What tests of MCP servers share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.mcp_place import Place


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    found = Place(tmp_path)
    yield found
    await found.hub.aclose()
