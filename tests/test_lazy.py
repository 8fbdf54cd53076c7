"""Objects that are made on first use, asked for by many threads at once."""

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tui_agent.lazy import cached_property

THREADS = 8


@pytest.fixture
def _switching_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_switching_often")
def test_a_property_is_made_once_for_all_threads() -> None:
    class Owner:
        @cached_property
        def made(self) -> object:
            sum(range(20_000))
            return object()

    owner = Owner()
    begin = threading.Barrier(THREADS, timeout=30)

    def ask(_number: int) -> object:
        begin.wait()
        return owner.made

    with ThreadPoolExecutor(THREADS) as pool:
        assert len(set(pool.map(ask, range(THREADS)))) == 1
