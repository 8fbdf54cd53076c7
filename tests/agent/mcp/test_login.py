"""Logging in with OAuth against the SDK's own authorization routes: the user's browser, the tokens, their end."""

import asyncio
import json
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.agent.mcp.mcp_login import OpenDoor, make_closed_server
from tests.support.mcp_place import QUICK, Place, served, until
from tui_agent.agent.mcp.records import ServerState
from tui_agent.web.callback import free_port


@pytest.fixture
async def vault(tmp_path: Path) -> AsyncIterator[tuple[OpenDoor, str]]:
    door, port = OpenDoor(), free_port()
    address = f"http://127.0.0.1:{port}"
    async with served(make_closed_server(door, address), port):
        yield door, f"{address}/mcp"


async def visit(place: Place) -> str:
    """Be the user's browser: open the address that the program showed, and go where one is sent."""
    await until(lambda: any("log in" in notice.message for notice in place.notices))
    assert place.state("vault") is ServerState.LOGIN
    url = place.notices[-1].message.rpartition(" ")[2]
    async with httpx.AsyncClient(follow_redirects=True) as browser:
        return (await browser.get(url)).text


async def test_the_user_logs_in_once_and_private_tokens_renew(tmp_path: Path, vault: tuple[OpenDoor, str]) -> None:
    door, url = vault
    place = Place(tmp_path)
    place.add("vault", url=url)
    settling = asyncio.create_task(place.hub.settle())
    assert "You are logged in" in await visit(place)
    await settling
    assert (await place.call("vault_look")).output == "gold"
    await place.hub.aclose()
    (file,) = (tmp_path / "tokens").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    for renewed in (0, 1):
        again = Place(tmp_path, QUICK)
        again.add("vault", url=url)
        await again.hub.settle()
        assert (await again.call("vault_look")).output == "gold"
        assert (again.notices, door.refreshed) == ([], renewed)
        await again.hub.aclose()
        table = json.loads(file.read_text())
        file.write_text(json.dumps({**table, "tokens": {**table["tokens"], "expires_at": 1}}))
        door.access.clear()
