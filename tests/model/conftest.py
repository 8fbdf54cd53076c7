"""One scripted provider and one client for the whole run: litellm's import is what costs."""

import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.model_client import Provider, host_client
from tests.support.model_server import ModelServer
from tui_agent.model.client import ProviderClient


@pytest.fixture(scope="session")
def session_server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture(scope="session")
def refused() -> Iterator[str]:
    """The address of a port that is taken, so that nobody else listens there, and never answers."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture(scope="session")
def host_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("host") / "host.log"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def session_client(
    session_server: ModelServer, refused: str, host_log: Path
) -> AsyncIterator[ProviderClient]:
    client = host_client(session_server, log_path=host_log, refused=refused)
    yield client
    await client.aclose()


@pytest.fixture
def server(session_server: ModelServer) -> ModelServer:
    session_server.play()
    return session_server


@pytest.fixture
def client(session_client: ProviderClient, server: ModelServer) -> ProviderClient:
    return session_client


@pytest.fixture(params=list(Provider))
def provider(request: pytest.FixtureRequest) -> Provider:
    found: Provider = request.param
    return found
