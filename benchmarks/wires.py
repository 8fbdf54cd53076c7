"""The formats spoken directly, beside plain httpx in the same process: CPU of a paced answer, and the first token."""

import asyncio
import importlib
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from statistics import median
from typing import Any

from benchmarks.report import Row
from tests.support.model_script import Recorded, Turn
from tests.support.model_server import ModelServer

NAME = "wires"
MODELS = {
    "chat completions": "openai/gpt-4o",
    "Messages": "anthropic/claude-sonnet-4-5",
    "Responses": "openai/gpt-5.4",
    "Gemini": "gemini/gemini-2.5-pro",
}
PIECES = 1_000
PACE = 0.002
"""Seconds between pieces."""
ROUNDS = 5
"""Paced answers of each kind, in turns; the cheapest of each counts, because other programs only add to it."""
FIRST_TOKENS = 40


def run() -> Iterator[Row]:
    """Measure each format in a process of its own; the server is in this one."""
    with ModelServer() as server:
        server.play_function(_script)
        for name, model in MODELS.items():
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.wires", model, server.url],
                stdout=subprocess.PIPE,
                text=True,
                check=False,
                timeout=300,
            )
            if done.returncode:
                raise AssertionError(f"{name}: no numbers")
            found = json.loads(done.stdout)
            note = f"plain httpx {found['plain_cpu']:.0f} ms, in all {found['cpu']:.0f} ms"
            yield Row(
                NAME,
                f"{name}: CPU of 1,000 paced pieces",
                found["cpu"] - found["plain_cpu"],
                "ms",
                60,
                note,
            )
            note = f"plain httpx {found['plain_first']:.1f} ms; median of {FIRST_TOKENS}"
            yield Row(
                NAME,
                f"{name}: first token later by",
                found["first"] - found["plain_first"],
                "ms",
                3,
                note,
            )


def _script(request: Recorded) -> Turn:
    if b"paced" in request.body:
        words = [f"word{number} " for number in range(PIECES)]
        return Turn("".join(words), chunks=words, delay=PACE)
    return Turn("at once")


# -- the measured process -----------------------------------------------------------------------------------

Streaming = Callable[[str], AsyncIterator[object]]
"""Asks with a prompt and yields what comes, piece by piece."""


async def _measure(model: str, url: str) -> dict[str, float]:
    from tui_agent.context.request import ContentText, Message, ModelRequest
    from tui_agent.model.catalog import Catalog
    from tui_agent.model.client import ProviderClient
    from tui_agent.model.protocol import TextDelta
    from tui_agent.model.route import Router
    from tui_agent.model.settings import ProviderSettings

    bases = {"openai": f"{url}/v1", "anthropic": url, "gemini": url}
    providers = {name: ProviderSettings(base_url=base) for name, base in bases.items()}
    router = Router(
        Catalog(),
        dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"), "x"),
        providers=providers,
    )
    client = ProviderClient(router)
    route = router.route(model)
    assert route.wire is not None

    def request(prompt: str) -> ModelRequest:
        return ModelRequest(model, (Message("user", (ContentText(prompt),)),))

    async def ours(prompt: str) -> AsyncIterator[object]:
        async for event in client.stream(request(prompt)):
            if isinstance(event, TextDelta):
                yield event

    call = importlib.import_module(f"tui_agent.model.wires.{route.wire}").call(
        request("warm up"), route
    )
    post = _plain(f"{route.base_url}{call.path}", call.body)
    found: dict[str, list[float]] = {"cpu": [], "plain_cpu": [], "first": [], "plain_first": []}
    both = ((post, "plain_"), (ours, ""))
    for streaming, _name in both:
        await _first(streaming, "warm up")
    for _ in range(ROUNDS):
        for streaming, name in both:
            found[f"{name}cpu"].append(await _cpu(streaming, "paced"))
    for _ in range(FIRST_TOKENS):
        for streaming, name in both:
            found[f"{name}first"].append(await _first(streaming, "go"))
    await client.aclose()
    return {
        name: (min if name.endswith("cpu") else median)(values) * 1000
        for name, values in found.items()
    }


def _plain(url: str, body: Mapping[str, Any]) -> Streaming:
    """Return how plain httpx asks the same and reads each event's JSON."""
    import httpx

    client = httpx.AsyncClient(timeout=60)

    async def post(prompt: str) -> AsyncIterator[object]:
        content = json.dumps(body).replace("warm up", prompt)
        async with client.stream("POST", url, content=content) as response:
            async for line in response.aiter_lines():
                if line.startswith("data:") and line != "data: [DONE]":
                    yield json.loads(line[5:])

    return post


async def _cpu(streaming: Streaming, prompt: str) -> float:
    before = time.process_time()
    async for _piece in streaming(prompt):
        pass
    return time.process_time() - before


async def _first(streaming: Streaming, prompt: str) -> float:
    begun, first = time.perf_counter(), 0.0
    async for _piece in streaming(prompt):
        first = first or time.perf_counter() - begun
    return first


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_measure(*sys.argv[1:]))))
