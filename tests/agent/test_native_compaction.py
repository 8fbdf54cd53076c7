"""``compaction.style = "native"``: the provider's own compaction stands for the history, for the model that made it."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.support.agents import MODEL, Harness, make_agent
from tests.support.scripted_client import Reply, Script, ScriptedClient
from tui_agent.context.projection import ModelTraits, project
from tui_agent.context.request import ModelRequest
from tui_agent.context.settings import CompactionSettings, ContextSettings
from tui_agent.model.protocol import ErrorKind, Finished, ModelError, ModelEvent, UsageReport
from tui_agent.session.entries import CompactionEntry, Usage

ITEM = '{"compacted": [{"type": "compaction", "encrypted_content": "b3BhcXVl", "odd":  1}]}'
OTHER = "test/other"
SUMMARY = "## Goal\nSay words.\n\n## Next\nSay more."


class Provider(ScriptedClient):
    """Compacts by itself, unless it ``refuses``."""

    def __init__(self, script: Script, *, refuses: ErrorKind | None = None) -> None:
        super().__init__(script)
        self.compacted: list[ModelRequest] = []
        self.refuses = refuses

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if not request.compact:
            async for event in super().stream(request):
                yield event
            return
        self.compacted.append(request)
        if self.refuses is not None:
            raise ModelError(self.refuses, "Test has no compaction of its own.")
        yield UsageReport(Usage(input=900, output=70), 0.01)
        yield Finished("stop", ITEM)


async def long_talk(tmp_path: Path, client: Provider, harness: Harness | None = None) -> Harness:
    settings = ContextSettings(compaction=CompactionSettings(style="native"))
    harness = harness or make_agent(tmp_path, client, settings=settings, window=20_000)
    for number in range(8):
        await harness.say(f"Message {number}.")
    return harness


def words(request: ModelRequest) -> Reply:
    return Reply("word " * 700) if request.tools else Reply(SUMMARY)


async def test_the_item_goes_back_to_its_model_and_the_entries_stay(tmp_path: Path) -> None:
    client = Provider(words)
    harness = await long_talk(tmp_path, client)
    before = harness.session.leaf
    assert (await harness.agent.compact()).problem is None
    (made,) = harness.entries(CompactionEntry)
    assert (made.style, made.item, made.model, made.cost) == ("native", ITEM, MODEL, 0.01)
    assert made.preview.startswith("by the provider: ")
    assert made.usage.output == 70
    (asked,) = client.compacted
    assert made.first_kept_id not in {
        number for message in asked.messages for number in message.origin
    }
    await harness.say("Go on.")
    (summary,) = [message for message in client.requests[-1].messages if message.reasoning]
    assert (summary.reasoning, summary.origin) == ((ITEM,), (made.id,))
    assert "Message 0." in summary.text, "what code carries stays readable for every model"
    other = project(harness.session.active_path(), ModelTraits("other/model"))
    assert not any(message.reasoning for message in other.messages)
    assert "Message 0." in "\n".join(message.text for message in other.messages)
    await harness.agent.navigator.go(before)
    assert harness.entries(CompactionEntry) == []


async def test_another_model_gets_the_entries_themselves_and_its_own_gets_the_item_again(
    tmp_path: Path,
) -> None:
    harness = await long_talk(tmp_path, Provider(words))
    agent, session = harness.agent, harness.session
    whole = project(session.path(), ModelTraits(MODEL))
    await agent.compact()
    (made,) = harness.entries(CompactionEntry)
    small = agent.context_size().history

    ahead = await agent.context.ahead(OTHER)
    agent.change_model(OTHER)
    path = session.active_path()
    assert ahead.after.history == agent.context_size().history > small
    assert path == session.path() == session.reader.load_active(session.leaf)
    foreign = [
        (message.role, message.text) for message in project(path, ModelTraits(OTHER)).messages
    ]
    assert foreign == [(message.role, message.text) for message in whole.messages]
    assert agent.inspector.standings().compaction == 0

    agent.change_model(MODEL)
    again = project(session.active_path(), ModelTraits(MODEL))
    assert [message.reasoning for message in again.messages if message.reasoning] == [(ITEM,)]
    assert again == project(session.path(), ModelTraits(MODEL)), (
        "the active path says the same as the whole one"
    )
    assert agent.inspector.standings().compaction == made.id


async def test_an_earlier_summary_holds_for_a_model_that_can_not_read_the_item(
    tmp_path: Path,
) -> None:
    client = Provider(words)
    harness = await long_talk(tmp_path, client)
    await harness.agent.compact("the words")
    await long_talk(tmp_path, client, harness)
    await harness.agent.compact()
    first, second = harness.entries(CompactionEntry)
    assert (first.style, second.style) == ("summary", "native")

    harness.agent.change_model(OTHER)
    request = project(harness.agent.session.active_path(), ModelTraits(OTHER))

    assert request == project(harness.agent.session.path(), ModelTraits(OTHER))
    assert harness.agent.inspector.standings().compaction == first.id
    assert first.summary in "\n".join(message.text for message in request.messages)


@pytest.mark.parametrize(
    ("kind", "style", "asked"),
    [(ErrorKind.INVALID_REQUEST, "summary", 1), (ErrorKind.OVERLOADED, "native", 2)],
)
async def test_where_the_provider_has_none_a_summary_is_written_and_it_is_said_once(
    tmp_path: Path, kind: ErrorKind, style: str, asked: int
) -> None:
    client = Provider(words, refuses=kind)
    harness = await long_talk(tmp_path, client)
    await harness.agent.compact()
    client.refuses = None
    await long_talk(tmp_path, client, harness)
    await harness.agent.compact()

    assert [entry.style for entry in harness.entries(CompactionEntry)] == ["summary", style]
    assert len(client.compacted) == asked
    assert [text for text in harness.notices() if "Test has no compaction of its own." in text] == [
        "Writing a summary instead of using the provider's own compaction: Test has no compaction of its own."
    ]


async def test_a_focus_and_an_edited_text_are_summaries(tmp_path: Path) -> None:
    client = Provider(words)
    harness = await long_talk(tmp_path, client)
    compactor = harness.agent.context.compactor
    compactor.prepared.is_wanted = lambda: False  # type: ignore[method-assign] # none beside the talk
    drafted = await compactor.draft(harness.agent.context.order("manual", None))
    assert drafted.item == ITEM  # type: ignore[union-attr]
    await compactor.commit(drafted, "My own words.")  # type: ignore[arg-type]
    (made,) = harness.entries(CompactionEntry)
    assert (made.style, made.item, made.summary) == ("summary", None, "My own words.")
    await long_talk(tmp_path, client, harness)
    await harness.agent.compact("the words")
    assert harness.entries(CompactionEntry)[-1].style == "summary"
    assert len(client.compacted) == 1
