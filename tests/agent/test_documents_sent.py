"""A PDF goes as it is where the model takes one, and as text where it doesn't, is refused or is cleared."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import Harness, make_agent
from tests.support.model_script import Call, Recorded
from tests.support.model_server import ModelServer, Turn, status
from tests.support.pdfs import pdf
from tests.support.scripted_client import Call as ScriptedCall
from tests.support.scripted_client import Reply
from tests.support.wire_rounds import route_to
from tui_agent.context.projection import ModelTraits, project
from tui_agent.context.tokens import PAGE_TOKENS
from tui_agent.model.catalog import Catalog
from tui_agent.model.client import ProviderClient
from tui_agent.model.route import Router
from tui_agent.model.settings import ModelSettings
from tui_agent.model.wires import chat, gemini, messages, ollama, responses
from tui_agent.model.wires.wire import Wire
from tui_agent.session.entries import ContextEditEntry, ImagePart, TextPart, ToolResultEntry

MODEL = "test/model"
DATA = pdf("First words", "Second words")
ENCODED = base64.b64encode(DATA).decode()
READ = ScriptedCall("read", '{"path": "a.pdf"}')


async def read_by(tmp_path: Path, *replies: Reply) -> Harness:
    """Return an agent whose model, which takes PDFs, has read one."""
    harness = make_agent(tmp_path, [Reply(calls=(READ,)), Reply("Read."), *replies])
    harness.directory.with_documents.add(harness.agent.model)
    (harness.agent.ports.cwd / "a.pdf").write_bytes(DATA)
    assert (await harness.say("read it")).reason == "done"
    return harness


@pytest.mark.parametrize(
    ("wire", "model", "block"),
    [
        (messages, "anthropic/claude-opus-4-8", '"type": "document"'),
        (responses, "openai/gpt-5", '"type": "input_file"'),
        (gemini, "gemini/gemini-3-pro-preview", '"mimeType": "application/pdf"'),
        (chat, "openrouter/some/model", ""),
        (ollama, "ollama/qwen3", ""),
    ],
)
async def test_every_format_has_it_as_it_is_or_its_text(
    tmp_path: Path, wire: Wire, model: str, block: str
) -> None:
    harness = await read_by(tmp_path)
    path = harness.session.active_path()
    for in_results in (True, False):
        traits = ModelTraits(model, documents=True, images_in_results=in_results)
        request = project(path, traits)
        request.blobs.update({part.blob: DATA for part in attached(harness)})
        sent = json.dumps(wire.call(request, route_to(model)).body)
        assert (ENCODED in sent) == bool(block)
        assert block in sent
        assert ("First words" in sent) != bool(block), "it is said once"
    told = json.dumps(wire.call(project(path, ModelTraits(model)), route_to(model)).body)
    assert "First words" in told
    assert ENCODED not in told


def attached(harness: Harness) -> list[ImagePart]:
    return [part for entry in harness.entries(ToolResultEntry) for part in entry.attachments]


async def test_its_pages_are_counted_and_its_text_comes_back(tmp_path: Path) -> None:
    recall = ScriptedCall("recall", '{"what": "#4"}')
    harness = await read_by(tmp_path, Reply(calls=(recall,)), Reply("Done."))
    taken = harness.agent.context_size().total
    harness.directory.with_documents.clear()
    harness.agent.change_model("test/other")
    assert taken - harness.agent.context_size().total > 1.5 * PAGE_TOKENS
    harness.directory.with_documents.add("test/other")
    read = harness.entries(ToolResultEntry)[0]
    assert recall.arguments == f'{{"what": "#{read.id}"}}'
    await harness.say("what did it say?")
    brought = harness.entries(ToolResultEntry)[1]
    assert "Second words" in brought.output
    assert not brought.attachments
    assert "Second words" in harness.client.requests[-1].messages[-1].text


def strict(request: Recorded) -> Turn:
    """A provider that can't read PDFs."""
    said = json.dumps(request.json)
    if '"type": "document"' in said:
        return status(400, "messages.2.content.0.pdf: The PDF specified was not valid.")
    if '"tool_result"' in said:
        return Turn("Fine.")
    return Turn(tool_calls=(Call("read", {"path": "a.pdf"}),))


async def test_a_refused_one_goes_as_text_and_comes_back_when_restored(tmp_path: Path) -> None:
    name = "anthropic/claude-opus-4-8"
    with ModelServer(strict) as server:
        models = {name: ModelSettings(base_url=server.url)}
        client = ProviderClient(Router(Catalog(models), {"ANTHROPIC_API_KEY": "x"}, models=models))
        harness = make_agent(tmp_path, client, model=name)
        harness.directory.with_documents.add(name)
        (harness.agent.ports.cwd / "a.pdf").write_bytes(DATA)
        first = await harness.say("read it")
        (edit,) = harness.entries(ContextEditEntry)
        second = await harness.say("and now?")
        harness.agent.edit_context(edit.target, "restore")
        await harness.say("again?")
        await client.aclose()
    bodies = [json.dumps(call.json) for call in server.calls]
    assert [ended.reason for ended in (first, second)] == ["done"] * 2
    assert edit.note == "document a.pdf removed: the provider can't read it"
    assert any("can't read a picture or a document" in notice for notice in harness.notices())
    assert [ENCODED in body for body in bodies[:4]] == [False, True, False, False]
    assert ["First words" in body for body in bodies[:4]] == [False, False, True, True]
    assert ENCODED in bodies[4], "it was restored"


async def test_one_that_comes_with_a_message_is_sent_and_named_where_it_can_t_be(
    tmp_path: Path,
) -> None:
    harness = make_agent(tmp_path, [Reply("One."), Reply("Two.")])
    harness.directory.with_documents.add(harness.agent.model)
    blob = harness.store.put_blob(DATA)
    part = ImagePart(blob=blob, mime="application/pdf", path="a.pdf", pages=2)
    harness.agent.submit((TextPart(text="look"), part))
    await harness.ended()
    harness.directory.with_documents.clear()
    await harness.say("again")
    one, two = harness.client.requests
    assert one.blobs == {blob: DATA}
    assert not two.blobs
    assert "[document: a.pdf, 2 pages; use read for its text]" in json.dumps(
        [message.text for message in two.messages]
    )


def test_attachments_are_told_apart() -> None:
    kinds: dict[str, Any] = {"image/png": "image", "application/pdf": "document"}
    assert {mime: ImagePart(blob="b", mime=mime).kind for mime in kinds} == kinds
