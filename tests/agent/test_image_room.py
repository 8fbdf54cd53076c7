"""How many images a request holds: the settings hold, whoever brought the images."""

import json
from pathlib import Path

from tests.support.agents import make_agent
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tests.tools.test_read import png
from tui_agent.agent.events import CompactionEnded, Notice
from tui_agent.context.request import ImageRef, ModelRequest
from tui_agent.context.settings import ContextSettings, ImageSettings
from tui_agent.session.entries import ImagePart, PruneEntry, TextPart, ToolResultEntry


def images(request: ModelRequest) -> int:
    return sum(isinstance(part, ImageRef) for message in request.messages for part in message.content)


def draw(tmp_path: Path, count: int, size: tuple[int, int] = (8, 8)) -> list[Call]:
    (tmp_path / "project").mkdir(exist_ok=True)
    for number in range(count):
        (tmp_path / "project" / f"{number}.png").write_bytes(png(*size) + bytes([number]))
    return [Call("read", json.dumps({"path": f"{number}.png"})) for number in range(count)]


def limited(**fields: float) -> ContextSettings:
    return ContextSettings(images=ImageSettings(**fields))


async def test_images_read_one_after_another_never_pass_the_setting(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, [*(Reply(calls=(call,)) for call in draw(tmp_path, 25)), Reply("All seen.")])
    await harness.say("Look at all of them.")
    assert [images(request) for request in harness.client.requests] == [*range(21), *range(10, 15)]
    (prune,) = harness.entries(PruneEntry)
    assert (len(prune.targets), prune.reason) == (11, "too many images")
    told = harness.client.requests[-1].messages
    assert any("0.png" in message.text and "recall" in message.text for message in told if message.role == "tool")


async def test_heavy_images_are_pruned_by_their_share_of_the_history(tmp_path: Path) -> None:
    calls = draw(tmp_path, 6, (900, 900))
    client = ScriptedClient([*(Reply(calls=(call,)) for call in calls), Reply("All seen.")])
    harness = make_agent(tmp_path, client, settings=limited(max_tokens_share=0.05))
    await harness.say("Look.")
    assert 1 <= max(images(request) for request in client.requests) < 6
    assert images(client.requests[-1]) >= 1
    assert {entry.reason for entry in harness.entries(PruneEntry)} == {"images too heavy"}


async def test_a_message_with_more_than_are_allowed_says_so(tmp_path: Path) -> None:
    harness = make_agent(tmp_path, [Reply("I see none.")], settings=limited(max_count=3))
    blobs = [harness.store.put_blob(png(8, 8) + bytes([number])) for number in range(5)]
    images_sent = (ImagePart(blob=blob, mime="image/png", width=8, height=8, path=f"{blob[:4]}.png") for blob in blobs)
    harness.agent.submit((TextPart(text="look"), *images_sent))
    await harness.ended()
    assert images(harness.client.requests[0]) == 0
    (notice,) = harness.of(Notice)
    assert "5 new images are not sent: a request holds at most 3 images" in notice.message


async def test_a_pruned_image_is_recalled_as_an_image(tmp_path: Path) -> None:
    calls = draw(tmp_path, 3)
    found: list[int] = []

    def script(request: ModelRequest) -> Reply:
        step = len(client.requests)
        if step <= 3:
            return Reply(calls=(calls[step - 1],))
        if step == 4:
            found.extend(entry.id for entry in harness.path() if isinstance(entry, ToolResultEntry))
            return Reply(calls=(Call("recall", json.dumps({"what": f"#{found[0]}"})),))
        return Reply("Seen.")

    client = ScriptedClient(script)
    harness = make_agent(tmp_path, client, settings=limited(max_count=2))
    await harness.say("Look.")
    results = harness.results()
    assert found[0] in harness.entries(PruneEntry)[0].targets
    assert results[3].attachments == results[0].attachments
    assert images(client.requests[-1]) == 2
    assert not harness.of(CompactionEnded)
