"""What holds for every test."""

import gc
import os
import signal
import sys
from asyncio.base_subprocess import BaseSubprocessTransport
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, Phase, settings

from tests import slow_machine
from tests.support.thoroughness import EXAMPLES, NIGHTLY, for_the_night
from tests.support.tooling import Workspace

if TYPE_CHECKING:
    from tests.support.mcp_place import Place
    from tests.support.model_server import ModelServer

LONGEST_ID = 200
"""Characters of a text that a test is named by."""

# Rewriting the assertions of all tests takes ten seconds of each process: it is done once, whatever the shell prefers.
sys.dont_write_bytecode = False

# Tests name the permissions of what they make, which shells mask differently.
os.umask(0o022)

# The program names variables of this form that it doesn't know.
_OF_THE_TESTS = ("TUI_AGENT_NIGHTLY", "TUI_AGENT_CANARY_LINES", "TUI_AGENT_NEIGHBOURS")

# How fast examples are made says something of the machine, not of the program.
settings.register_profile(
    "steady",
    deadline=None,
    max_examples=100 if NIGHTLY else EXAMPLES,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not NIGHTLY,
)
settings.load_profile("steady")
# Of a mutant it is enough to know that a test fails.
settings.register_profile(
    "mutants", settings.get_profile("steady"), phases=[Phase.explicit, Phase.generate]
)


# Python 3.11 never wakes who waits for a program whose start was cancelled with its whole loop, as loops of tests are.
_wait_for = BaseSubprocessTransport._wait  # type: ignore[attr-defined]


async def _wait(self: Any) -> Any:
    return None if None in self._pipes.values() else await _wait_for(self)


BaseSubprocessTransport._wait = _wait  # type: ignore[attr-defined]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what provokes the failures of a loaded machine."""
    parser.addoption(
        "--slow-machine", metavar="SEED", help="make loops, threads and programs late at random"
    )


def pytest_make_parametrize_id(val: object) -> str | None:
    """Keep a long text out of the test's name: each worker's list of tests and each report has it."""
    if isinstance(val, str | bytes) and len(val) > LONGEST_ID:
        return f"{len(val)} of {val[:20]!r}"
    return None


def pytest_configure(config: pytest.Config) -> None:
    """Be slow, if that is asked for. What a shell starts with & or nohup ignores signals, and so would we."""
    for number, handler in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGHUP, signal.SIG_DFL),
    ):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
    if config.getoption("--slow-machine") is not None:
        slow_machine.slow_down()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is for the night, and begin with what takes long."""
    left_out = set() if NIGHTLY else for_the_night(items)
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]
    # What looks at the whole program takes seconds a test: no process is to be waited for alone at the end.
    items.sort(key=lambda item: item.path.parent != Path(__file__).parent)


def pytest_collection_finish() -> None:
    """Let the collector of cycles pass over the tests and what they imported, which stay to the end."""
    gc.collect()
    gc.freeze()
    # Applications do this too, once they are up: those of the tests before, and their files, would stay for ever.
    gc.freeze = lambda: None


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Let a process of several tell the first one of a passed test once: it reads all they tell, a report a test."""
    if not hasattr(item.config, "workerinput"):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let a test be late at the same moments each time."""
    slow_machine.chance.seed(f"{item.config.getoption('--slow-machine')} {item.nodeid}")


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator["Place"]:
    """MCP servers of the test's own."""
    from tests.support.mcp_place import Place

    found = Place(tmp_path / "servers")
    yield found
    await found.hub.aclose()


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    """A repository and the context in which tools work on it."""
    root = tmp_path / "project"
    root.mkdir()
    (root / ".git").mkdir()
    return Workspace(root.resolve(), environ=dict(os.environ))


@pytest.fixture
def server() -> Iterator["ModelServer"]:
    """A server with scripted models; it echoes until told otherwise."""
    from tests.support.model_server import ModelServer

    with ModelServer() as running:
        yield running


@pytest.fixture(autouse=True)
def _without_variables_of_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _OF_THE_TESTS:
        monkeypatch.delenv(name, raising=False)
