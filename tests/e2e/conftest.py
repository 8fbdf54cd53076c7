"""Fixtures of the end-to-end tests.

Loading litellm takes seconds, so most tests share one user whose model host stays warm; each works in a project of
its own. Tests about the host's life or the demo get a machine of their own.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.model_script import echo
from tests.support.model_server import ModelServer
from tests.support.place import Place
from tests.support.terminal import Terminal


@pytest.fixture
def own_place(tmp_path: Path) -> Iterator[Place]:
    """A machine nobody has used; the model host ends with the program."""
    place = Place(tmp_path)
    yield place
    place.close()


@pytest.fixture
def shell(own_place: Place) -> Iterator[Terminal]:
    """An interactive shell on that machine, in a terminal of 100 by 30."""
    terminal = own_place.open(["bash", "--norc", "-i"], PS1="shell> ")
    terminal.wait_for("shell>")
    yield terminal
    for child in psutil.Process(terminal.process.pid).children(recursive=True):
        child.kill()


@pytest.fixture(scope="session")
def _warm_place() -> Iterator[Place]:
    # Under a short path: the host's socket has a limit of about 100 characters.
    with tempfile.TemporaryDirectory(prefix="ta-") as name:
        yield Place(Path(name))


@pytest.fixture(scope="session")
def _shared_server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def warm_server(_shared_server: ModelServer) -> ModelServer:
    """The server of the shared user, echoing again."""
    _shared_server.play_function(echo)
    return _shared_server


@pytest.fixture
def place(_warm_place: Place, warm_server: ModelServer) -> Iterator[Place]:
    """The shared user in a new project, configured for the shared server."""
    _warm_place.move_to_new_project()
    _warm_place.configure(warm_server.openai_url)
    yield _warm_place
    _warm_place.close()
