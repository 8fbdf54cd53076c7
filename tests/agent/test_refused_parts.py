"""A part that a provider refuses is left out of the session, shown as a marker, and can be restored."""

import json
from pathlib import Path

from tests.support.agents import Harness, make_agent
from tests.support.drawn import drawn
from tests.support.model_script import Recorded
from tests.support.model_server import ModelServer, Turn, status
from tui_agent.model.catalog import Catalog
from tui_agent.model.client import ProviderClient
from tui_agent.model.route import Router
from tui_agent.model.settings import ModelSettings
from tui_agent.session.entries import ContextEditEntry, ImagePart, TextPart

MODEL = "openai/own"


def picky(request: Recorded) -> Turn:
    """A server that can't read pictures."""
    has_picture = "image_url" in json.dumps(request.json)
    return status(400, "Could not process image") if has_picture else Turn("Fine.")


def agent_at(tmp_path: Path, server: ModelServer) -> Harness:
    models = {MODEL: ModelSettings(base_url=server.openai_url, vision=True)}
    return make_agent(tmp_path, ProviderClient(Router(Catalog(models), {}, models=models)), model=MODEL)


async def test_a_picture_the_provider_refuses_is_taken_out_and_comes_back_when_restored(tmp_path: Path) -> None:
    with ModelServer(picky) as server:
        harness = agent_at(tmp_path, server)
        picture = ImagePart(blob=harness.store.put_blob(drawn()), mime="image/png", path="a.png")
        harness.agent.submit((TextPart(text="look"), picture))
        first = await harness.ended()
        second = await harness.say("and now?")
        asked = len(server.calls)
        (edit,) = harness.entries(ContextEditEntry)
        harness.agent.edit_context(edit.target, "restore")
        third = await harness.say("again?")
        await harness.client.aclose()

    assert [ended.reason for ended in (first, second, third)] == ["done"] * 3
    assert asked == 3, "the second message has no picture to refuse"
    assert edit.note == "picture a.png taken out: the provider can't read it"
    assert any("can't read a picture" in notice for notice in harness.notices())
    assert "taken out: the provider can't read it" in json.dumps(server.calls[2].json)
    assert "image_url" in json.dumps(server.calls[3].json), "it was restored"
