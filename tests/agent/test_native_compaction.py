"""``compaction.style = "native"``: the provider's own compaction stands for the history, for the model that made it."""

from collections.abc import AsyncGenerator
from pathlib import Path

from tests.support.agents import MODEL, Harness, make_agent
from tests.support.scripted_client import Reply, Script, ScriptedClient
from tui_agent.agent.events import Notice
from tui_agent.context.projection import ModelTraits, project
from tui_agent.context.request import ModelRequest
from tui_agent.context.settings import CompactionSettings, ContextSettings
from tui_agent.model.protocol import ErrorKind, Finished, ModelError, ModelEvent, UsageReport
from tui_agent.session.entries import CompactionEntry, Usage

ITEM = '{"compacted": [{"type": "compaction", "encrypted_content": "b3BhcXVl", "odd":  1}]}'
SUMMARY = "## Goal\nSay words.\n\n## Next\nSay more."


class Provider(ScriptedClient):
    """Compacts by itself, unless it ``refuses``."""

    def __init__(self, script: Script, *, refuses: bool = False) -> None:
        super().__init__(script)
        self.compacted: list[ModelRequest] = []
        self.refuses = refuses

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if not request.compact:
            async for event in super().stream(request):
                yield event
            return
        self.compacted.append(request)
        if self.refuses:
            raise ModelError(ErrorKind.INVALID_REQUEST, "Test has no compaction of its own.")
        yield UsageReport(Usage(input=900, output=70), 0.01)
        yield Finished("stop", ITEM)


async def long_talk(tmp_path: Path, client: Provider) -> Harness:
    settings = ContextSettings(compaction=CompactionSettings(style="native"))
    harness = make_agent(tmp_path, client, settings=settings, window=20_000)
    for number in range(8):
        await harness.say(f"Message {number}.")
    return harness


def words(request: ModelRequest) -> Reply:
    return Reply("word " * 700) if request.tools else Reply(SUMMARY)


def compactions(harness: Harness) -> list[CompactionEntry]:
    return [entry for entry in harness.agent.session.path() if isinstance(entry, CompactionEntry)]


async def test_the_item_goes_back_to_its_model_and_the_entries_stay(tmp_path: Path) -> None:
    client = Provider(words)
    harness = await long_talk(tmp_path, client)
    before = harness.agent.session.leaf

    outcome = await harness.agent.compact()

    (made,) = compactions(harness)
    assert outcome.problem is None
    assert (made.style, made.item, made.model, made.cost) == ("native", ITEM, MODEL, 0.01)
    assert made.usage is not None
    assert made.usage.output == 70
    (asked,) = client.compacted
    assert made.first_kept_id not in {number for message in asked.messages for number in message.origin}
    await harness.say("Go on.")
    (summary,) = [message for message in client.requests[-1].messages if message.reasoning]
    assert summary.reasoning == (ITEM,)
    assert summary.origin == (made.id,)
    assert "Message 0." in summary.text, "what code carries stays readable for every model"

    path = harness.agent.session.active_path()
    other = project(path, ModelTraits("other/model"))
    assert not any(message.reasoning for message in other.messages)
    assert "Message 0." in "\n".join(message.text for message in other.messages)

    await harness.agent.navigator.go(before)
    assert compactions(harness) == []


async def test_where_the_provider_has_none_a_summary_is_written_and_it_is_said_once(tmp_path: Path) -> None:
    client = Provider(words, refuses=True)
    harness = await long_talk(tmp_path, client)

    await harness.agent.compact()
    for number in range(8):
        await harness.say(f"More {number}.")
    await harness.agent.compact()

    assert {entry.style for entry in compactions(harness)} == {"summary"}
    assert len(client.compacted) == 1
    said = [event.message for event in harness.events if isinstance(event, Notice)]
    assert [text for text in said if "Test has no compaction of its own." in text] == [
        "A summary is written instead of the provider's own compaction: Test has no compaction of its own."
    ]


async def test_a_focus_and_an_edited_text_are_summaries(tmp_path: Path) -> None:
    client = Provider(words)
    harness = await long_talk(tmp_path, client)
    drafted = await harness.agent.compactor.draft(harness.agent.context.order("manual", None))
    assert drafted.item == ITEM  # type: ignore[union-attr]

    await harness.agent.compactor.commit(drafted, "My own words.")  # type: ignore[arg-type]

    (made,) = compactions(harness)
    assert (made.style, made.item) == ("summary", None)
    assert made.summary == "My own words."
    for number in range(8):
        await harness.say(f"More {number}.")
    await harness.agent.compact("the words")
    assert compactions(harness)[-1].style == "summary"
    assert len(client.compacted) == 1
