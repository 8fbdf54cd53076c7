"""Fixtures of the end-to-end tests."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.model_server import ModelServer
from tests.support.place import Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    place.close()


@pytest.fixture(scope="module")
def shared_place() -> Iterator[Place]:
    """A place for a whole module, under a short path: sockets have a limit of about 100 characters."""
    with tempfile.TemporaryDirectory(prefix="ta-") as name:
        place = Place(Path(name))
        yield place
        place.close()


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture(scope="module")
def shared_server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server
