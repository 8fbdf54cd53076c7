"""Starts the model host with a stand-in for litellm, whose import takes two seconds of processor time.

The stand-in asks a server that speaks OpenAI's format and passes its stream on: what tests of the process need.
"""

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LIGHT_COMMAND = (
    sys.executable,
    "-E",
    "-P",
    "-c",
    f"import sys; sys.path.append({str(ROOT)!r}); from tests.model.light_host import main; main()",
)


class UnsupportedParamsError(Exception):
    """Never raised here."""


class Chunk:
    def __init__(self, data: dict[str, Any]) -> None:
        self.choices = data.get("choices")
        self.usage = data.get("usage")


async def acompletion(
    *, model: str, api_base: str, api_key: str, messages: list[Any], **_: Any
) -> Any:
    """Ask and return the chunks, as litellm does."""

    async def chunks() -> AsyncIterator[Chunk]:
        import httpx

        body = {"model": model.partition("/")[2], "messages": messages, "stream": True}
        headers = {"authorization": f"Bearer {api_key}"}
        async with (
            httpx.AsyncClient(timeout=60) as client,
            client.stream(
                "POST", f"{api_base}/chat/completions", json=body, headers=headers
            ) as answer,
        ):
            async for line in answer.aiter_lines():
                data = line.removeprefix("data: ")
                if data.startswith("{"):
                    yield Chunk(json.loads(data))

    return chunks()


def main() -> None:
    """Run the host."""
    from tui_agent.model.hosted import host

    host.load = lambda: sys.modules[__name__]  # type: ignore[assignment]
    host.main()
