"""A real llama.cpp server with real weights, and a LiteLLM proxy before it; ``make neighbours`` installs both."""

import json
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.neighbours import HOME, package

SERVE = Path(__file__).parents[1] / "neighbours" / "serve_model.py"
RESULTS = HOME / "real_server.json"
KEY = "sk-" + "0123456789abcdef" * 4
"""The gateway's; llama.cpp asks for none."""
READY_SECONDS = 180
PROXY = """
model_list:
  - {model_name: smol, litellm_params: {model: openai/smol, api_base: "URL", api_key: none}}
"""


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=5) as answer:
        return json.load(answer)


def wait_for(url: str, process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + READY_SECONDS
    while time.monotonic() < end and process.poll() is None:
        with suppress(OSError):
            get(url)
            return
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.1)
    raise AssertionError(f"{url} did not answer")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@dataclass
class LlamaServer:
    """One server; ``start`` again after ``kill`` serves at the same address, with another size if one is given."""

    port: int = field(default_factory=free_port)
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, size: int, slots: int = 1) -> None:
        package("xllamacpp")
        command = [
            str(HOME / "python/bin/python"),
            str(SERVE),
            str(self.port),
            str(size),
            str(slots),
        ]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_for(f"{self.url}/health", self.process)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(30)

    @property
    def busy(self) -> bool:
        return any(slot["is_processing"] for slot in get(f"{self.url}/slots"))

    def is_free_within(self, seconds: float) -> bool:
        """Return True once no slot is at work, False if that takes longer."""
        end = time.monotonic() + seconds
        while self.busy and time.monotonic() < end:
            time.sleep(0.1)
        return not self.busy


@contextmanager
def gateway(server: LlamaServer, folder: Path) -> Iterator[str]:
    """Run a LiteLLM proxy before a server; gives its address."""
    package("litellm")
    port, settings = free_port(), folder / "proxy.yaml"
    settings.write_text(PROXY.replace("URL", f"{server.url}/v1"))
    command = [
        str(HOME / "python/bin/litellm"),
        "--config",
        str(settings),
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MASTER_KEY": KEY}
    with (folder / "proxy.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    try:
        wait_for(f"http://127.0.0.1:{port}/health/liveliness", process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


def record(name: str, *facts: Any) -> None:
    """Keep a row for the table in docs/measured.md, which ``scripts/real_server_table`` writes."""
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    RESULTS.write_text(json.dumps({**known, name: facts}, indent=1))
