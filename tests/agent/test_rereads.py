"""Reading again what the model can still see costs a line; what left the context is shown whole."""

import json
from pathlib import Path

import pytest

from tests.support.agents import Harness, make_agent
from tests.support.scripted_client import Call, Reply, call
from tui_agent.context.settings import ContextSettings, TruncationSettings
from tui_agent.session.entries import ContextEditEntry, ToolResultEntry

TEXT = "".join(
    f"value_{number} = compute({number})  # a line of some length\n" for number in range(1, 61)
)


def read(path: str = "app.py", **lines: int) -> Reply:
    return Reply(calls=[Call("read", json.dumps({"path": path, **lines}))])


def outputs(harness: Harness) -> list[ToolResultEntry]:
    return [
        entry for entry in harness.agent.session.active_path() if isinstance(entry, ToolResultEntry)
    ]


def begin(tmp_path: Path, *replies: Reply, settings: ContextSettings | None = None) -> Harness:
    harness = make_agent(
        tmp_path, [*replies, Reply("Done.")], settings=settings or ContextSettings()
    )
    (tmp_path / "project" / "app.py").write_text(TEXT)
    return harness


async def test_a_changed_file_is_answered_with_the_difference(tmp_path: Path) -> None:
    change = Reply(calls=[call("edit", path="app.py", old="value_30 = ", new="value_x = ")])
    harness = begin(tmp_path, read(), change, read(), read())
    await harness.say("change it")
    first, _edit, difference, whole = outputs(harness)
    assert "+value_x = compute(30)" in difference.output
    assert "-value_30 = compute(30)" in difference.output
    assert len(difference.output) < len(first.output) / 2
    assert "value_60" not in difference.output
    assert "30\tvalue_x = compute(30)" in whole.output


@pytest.mark.parametrize(
    ("lines", "after", "shown"),
    [
        ({}, TEXT[: TEXT.index("value_51")], "-value_51 = "),
        ({}, TEXT + "value_61 = 61\n", "+value_61 = 61"),
        ({"limit": 30}, TEXT[: TEXT.index("value_41")], "of 40."),
        ({"limit": 30}, TEXT + "value_61 = 61\n", "of 61."),
        ({"limit": 30}, TEXT.replace("value_5 ", "new\nvalue_5 "), "30\tvalue_29"),
        ({"offset": 31}, TEXT + "value_61 = 61\n", "61\tvalue_61"),
    ],
    ids=["cut", "grown", "cut behind", "grown behind", "moved", "grown part"],
)
async def test_what_was_added_or_taken_away_around_known_lines_is_told(
    tmp_path: Path, lines: dict[str, int], after: str, shown: str
) -> None:
    """Lines moved by a change elsewhere were neither removed nor added, and a shorter file is no unchanged one."""
    change = Reply(calls=[call("write", path="app.py", content=after)])
    harness = begin(tmp_path, read(**lines), change, read(**lines))
    await harness.say("change it")
    again = outputs(harness)[2].output
    assert "Unchanged" not in again
    assert shown in again
    assert "-value_30" not in again


async def test_the_setting_turns_it_off(tmp_path: Path) -> None:
    settings = ContextSettings(truncation=TruncationSettings(short_rereads=False))
    harness = begin(tmp_path, read(), read(), settings=settings)
    await harness.say("look twice")
    first, second = outputs(harness)
    assert second.output == first.output


@pytest.mark.parametrize("action", ["mask", "drop", "pin"])
async def test_the_model_never_sees_a_reference_to_what_left_its_view(
    tmp_path: Path, action: str
) -> None:
    harness = begin(tmp_path, read(), read(), Reply("Seen."), read())
    await harness.say("look twice")
    first, told = outputs(harness)
    harness.agent.session.append(ContextEditEntry(target=first.id, action=action))
    await harness.say("and?")

    client = harness.agent.ports.client
    sent = "\n".join(message.text for message in client.requests[-2].messages)
    assert told.metadata.known_from == first.id
    assert told.output.startswith(
        f"[Unchanged: lines 1-60 of app.py are the same as when you read them in #{first.id}"
    )
    assert "\n" not in told.output
    if action == "pin":
        assert "[Unchanged: lines 1-60" in sent
        assert "60\tvalue_60" in sent
    else:
        assert "Unchanged" not in sent
        assert (
            f'[As #{first.id} had it, which has left the context since: read the file again, or recall("#'
            in sent
        )
        assert outputs(harness)[-1].output == first.output, "reading it again gives the whole"
