"""The host's process: killed, hung, orphaned, each test starts its own; and the lines between it and the program."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.model.light_host import LIGHT_COMMAND
from tests.support.model_client import HOSTED_MODEL, PATIENT, ask, collect, host_client
from tests.support.model_server import ModelServer, Turn
from tui_agent.model.client import ProviderClient
from tui_agent.model.hosted import client as hosted_client
from tui_agent.model.hosted import lines, link
from tui_agent.model.hosted.link import host_environment
from tui_agent.model.protocol import ErrorKind, ModelError, TextDelta
from tui_agent.model.settings import HostSettings
from tui_agent.model.waits import RETRIED

MODEL = HOSTED_MODEL
ROOT = Path(__file__).parents[2]


@pytest.fixture
async def own_client(
    server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ProviderClient]:
    """A client whose host's process is the subject; how litellm gets on in it is that of the other tests."""
    monkeypatch.setattr(link, "COMMAND", LIGHT_COMMAND)
    client = host_client(server, log_path=tmp_path / "host.log", host=PATIENT)
    yield client
    await client.aclose()


async def test_without_litellm_a_model_that_needs_it_names_the_command(
    own_client: ProviderClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosted_client, "is_installed", lambda: False)

    error = (await collect(own_client, ask(MODEL))).failure

    command = f'run {sys.executable} -m pip install "litellm'
    assert f"is reached through litellm, which is not installed: {command}" in error.message
    assert "!=1.107.0" in error.message
    assert error.kind not in RETRIED
    assert own_client.hosted.pid is None


class _Impatient:
    """Settings that give a host that was stopped half a second, and the one after it all the time it needs."""

    def __init__(self, client: ProviderClient, stopped: int) -> None:
        self._client = client
        self._stopped = stopped

    def __getattr__(self, name: str) -> Any:
        # Its process may still be there for a moment when the next one starts.
        return 0.25 if self._client.hosted.pid == self._stopped else getattr(PATIENT, name)


def _signal(client: ProviderClient, signal_number: int) -> int:
    """Send the host a signal and return its process id."""
    pid = client.hosted.pid
    assert pid
    if signal_number == signal.SIGSTOP:
        client.settings = cast("HostSettings", _Impatient(client, pid))
        assert client.hosted.settings is client.settings
    os.kill(pid, signal_number)
    return pid


async def _gone(pid: int) -> None:
    """Wait until a process has ended, whoever its parent is."""
    with contextlib.suppress(psutil.NoSuchProcess):
        await asyncio.to_thread(psutil.Process(pid).wait, 60)


async def _until_error(
    client: ProviderClient, signal_number: int
) -> tuple[int, list[object], ModelError]:
    """Send the host a signal in the middle of an answer; return its pid, what came, and how it failed."""
    taken: list[object] = []
    pid = 0
    try:
        async for event in client.stream(ask(MODEL)):
            taken.append(event)
            if not pid:
                pid = _signal(client, signal_number)
    except ModelError as error:
        return pid, taken, error
    raise AssertionError("the answer did not fail")


async def test_killed_in_an_answer_and_killed_idle(
    own_client: ProviderClient, server: ModelServer
) -> None:
    """The request fails as one that can be tried again; another process takes over without being asked."""
    server.play(Turn("word " * 500, delay=0.01), Turn("again"), Turn("and again"))

    first, taken, error = await _until_error(own_client, signal.SIGKILL)

    assert isinstance(taken[0], TextDelta)
    assert error.kind is ErrorKind.HOST
    assert (await collect(own_client, ask(MODEL))).text == "again"

    second = own_client.hosted.pid
    assert second not in {None, first}
    os.kill(second, signal.SIGKILL)
    await _gone(second)
    assert (await collect(own_client, ask(MODEL))).text == "and again"
    assert own_client.hosted.pid not in {None, second}


async def test_hung_in_an_answer_and_hung_idle(
    own_client: ProviderClient, server: ModelServer
) -> None:
    """A host that gives no sign of life is ended; a request it had not taken up yet goes to the next one."""
    server.play(Turn("word " * 500, delay=0.01), Turn("again"))

    async with asyncio.timeout(60):
        first, _taken, error = await _until_error(own_client, signal.SIGSTOP)
    assert error.kind is ErrorKind.HOST
    await _gone(first)

    own_client.hosted.warm()
    async with asyncio.timeout(60):
        while own_client.hosted.pid in {None, first}:
            await asyncio.sleep(0.01)
    second = _signal(own_client, signal.SIGSTOP)
    assert second != first
    async with asyncio.timeout(60):
        assert (await collect(own_client, ask(MODEL))).text == "again"
    await _gone(second)


async def test_closing_ends_the_host_and_what_it_was_asked(
    own_client: ProviderClient, server: ModelServer
) -> None:
    server.play(Turn("word " * 500, delay=0.01))
    stream = aiter(own_client.stream(ask(MODEL)))
    await anext(stream)
    pid = own_client.hosted.pid
    assert pid is not None

    await own_client.aclose()

    await _gone(pid)
    await server.until(lambda server: server.requests[0].aborted)
    with pytest.raises(Exception, match="ended"):
        async for _event in stream:
            pass


async def test_a_host_that_cannot_start_says_why(
    own_client: ProviderClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = (sys.executable, "-c", "import sys; sys.exit('no module of that name')")
    monkeypatch.setattr(link, "COMMAND", command)

    error = (await collect(own_client, ask(MODEL))).failure

    assert error.kind is ErrorKind.HOST
    assert "exit status 1" in error.message
    assert "no module of that name" in error.message


PARENT = """
import asyncio, sys
from tests.model.light_host import LIGHT_COMMAND
from tui_agent.model.hosted import link
async def main():
    if sys.argv[1] == "ready":
        link.COMMAND = LIGHT_COMMAND
    host = await link.start({}, None)
    print(host.pid, flush=True)
    if sys.argv[1] == "ready":
        await host.host.take()
    print("now", flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


@pytest.mark.parametrize("moment", ["importing", "ready"])
async def test_the_host_ends_when_its_parent_is_killed(moment: str) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, moment], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    with parent.stdout:
        pid = int(parent.stdout.readline())
        assert parent.stdout.readline() == "now\n"
        assert psutil.pid_exists(pid)

        parent.kill()
        parent.wait(60)

    await _gone(pid)


def test_the_environment_keeps_locale_proxies_and_certificates() -> None:
    passed = {
        "PATH": "/bin",
        "LC_ALL": "C.UTF-8",
        "HTTPS_PROXY": "http://proxy:3128",
        "SSL_CERT_FILE": "/ca.pem",
    }
    held_back = {"OPENAI_API_KEY": "sk-x", "AWS_SECRET_ACCESS_KEY": "x", "LITELLM_LOG": "DEBUG"}
    kept = host_environment({**passed, **held_back, "NO_PROXY": "corp"})

    assert kept.items() >= {**passed, "NO_PROXY": "localhost,127.0.0.1,::1,corp"}.items()
    assert not held_back.keys() & kept.keys()


async def test_stray_output_of_libraries_does_not_reach_the_lines() -> None:
    """The host's own stdout is not where its lines go."""
    script = "import tui_agent.model.hosted.host as host\nhost.load = lambda: print('stray', flush=True)\nhost.main()\n"
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    environment = {**host_environment(os.environ), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-P", "-c", script], env=environment, **pipes
    ) as process:
        first = await asyncio.wait_for(asyncio.to_thread(process.stdout.readline), 60)

    assert json.loads(first) == [lines.HOST, [lines.READY]]


@given(st.lists(st.text(max_size=40), max_size=8), st.data())
def test_lines_survive_any_cutting(texts: list[str], data: st.DataObject) -> None:
    stream = b"".join(lines.encode([1, [lines.CHUNK, text]]) for text in texts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    reader, found = lines.LineReader(), []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += reader.feed(stream[start:end])

    assert [event[1] for _number, event in found] == texts


LOADED = """
import os, sys
os.environ["OPENAI_API_KEY"] = "not to be used"
from tui_agent.model.hosted.host import load
litellm = load()
import tiktoken.registry
assert not tiktoken.registry.ENCODINGS, "an encoding was loaded"
assert len(litellm.model_cost) > 1000
assert "OPENAI_BASE_URL" not in os.environ
assert litellm.num_retries == 0 and litellm.REPEATED_STREAMING_CHUNK_LIMIT > 1_000_000
"""


def test_litellm_comes_quietly_without_a_tokenizer_and_not_from_the_working_directory(
    tmp_path: Path,
) -> None:
    (tmp_path / "litellm.py").write_text("raise SystemExit('imported from the working directory')")
    (tmp_path / ".env").write_text("OPENAI_BASE_URL=from-dotenv")
    done = subprocess.run(
        [sys.executable, "-P", "-c", LOADED],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=500,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip

    assert (done.returncode, done.stdout) == (0, ""), done.stderr
