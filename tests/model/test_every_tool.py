"""Every tool from the model's call to its next request, in each format, without a screen."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import make_agent
from tests.support.every_tool import Use, files_in, ports, uses, web
from tests.support.headless import run_headless
from tests.support.model_client import Provider
from tests.support.model_script import Call, Recorded
from tests.support.model_server import ModelServer, Turn
from tui_agent.model.client import ProviderClient
from tui_agent.session.entries import ToolStatus

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Worker:
    """Plays a model that calls one tool after the other."""

    def __init__(self, todo: list[Use]) -> None:
        self.todo = todo
        self.sent: list[Recorded] = []

    def __call__(self, request: Recorded) -> Turn:
        if "You explore." in request.body.decode():
            return Turn("Nothing there.")
        self.sent.append(request)
        at = len(self.sent) - 1
        if at >= len(self.todo):
            return Turn("Done.")
        use = self.todo[at]
        return Turn(tool_calls=(Call(use.tool, use.told(request.body.decode())),))


@pytest.mark.parametrize("provider", [one for one in Provider if one is not Provider.HOSTED])
async def test_in_each_format(
    tmp_path: Path, session_client: ProviderClient, session_server: ModelServer, provider: Provider
) -> None:
    async with web() as server:
        todo = uses(server.port)
        worker = Worker(todo)
        session_server.play_function(worker)
        harness = make_agent(
            tmp_path, session_client, model=provider.model, **ports(server, tmp_path)
        )
        files_in(harness.agent.ports.cwd)
        assert await run_headless(harness, "Use them all.") == 0
        await harness.agent.aclose()
    assert len(worker.sent) == len(todo) + 1
    for use, request, result in zip(todo, worker.sent[1:], harness.results(), strict=True):
        where = f"{use.tool} {use.arguments}"
        assert result.status is ToolStatus.COMPLETED, f"{where}: {result.output}"
        assert use.says in result.output, where
        assert quoted(use.says) in json.dumps(request.json, ensure_ascii=False), where
    assert json.loads((harness.agent.ports.cwd / "a.ipynb").read_text())["cells"][0]["source"]


def quoted(text: str) -> Any:
    return json.dumps(text, ensure_ascii=False)[1:-1]
