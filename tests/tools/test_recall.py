"""What left the view comes back by number or by search."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import Harness, make_agent
from tests.support.scripted_client import Call, Reply, ScriptedClient
from tests.support.session_paths import PathBuilder
from tui_agent.agent.archive import SessionArchive
from tui_agent.agent.attachments import files_back
from tui_agent.agent.permissions import Action, Rule
from tui_agent.context.recalling import outline, recall_limits
from tui_agent.context.tokens import TokenCounter
from tui_agent.context.truncation import OutputLimits
from tui_agent.context.view import resolve
from tui_agent.session.entries import (
    CompactionEntry,
    ContextEditEntry,
    ToolMetadata,
    ToolResultEntry,
    ToolStatus,
)

ALL = (Rule("*", "*", Action.ALLOW, "flag"),)


def recall(what: str, **more: object) -> Call:
    return Call("recall", json.dumps({"what": what, **more}))


async def worked(
    tmp_path: Path, text: str, *calls: Call, **options: Any
) -> tuple[Harness, list[Reply], ScriptedClient]:
    """Return an agent that made these calls, the script of what its model answers from now on, and its client."""
    script = [Reply(calls=(call,)) for call in calls]
    client = ScriptedClient(lambda _request: script.pop(0) if script else Reply("Done."))
    harness = make_agent(tmp_path, client, rules=ALL, **options)
    await harness.say(text)
    return harness, script, client


def results(harness) -> list[ToolResultEntry]:
    return [entry for entry in harness.path() if isinstance(entry, ToolResultEntry)]


async def test_a_search_reaches_other_branches_and_says_so(tmp_path: Path) -> None:
    client = ScriptedClient([Reply("The secret ingredient is cardamom.")])
    harness = make_agent(tmp_path, client, rules=ALL)
    await harness.say("what is in it?")
    await harness.agent.navigator.go(harness.path()[0].id)
    client.script = [Reply("x"), Reply(calls=(recall("cardamom"),)), Reply("It was cardamom.")]
    await harness.say("what was it?")
    assert "(other branch)" in results(harness)[0].output
    assert "cardamom" in results(harness)[0].output


@pytest.mark.parametrize("is_compacted", [False, True])
async def test_an_edited_block_comes_back_as_it_was_edited(
    tmp_path: Path, is_compacted: bool
) -> None:
    client = ScriptedClient([Reply("The port is 1234.")])
    harness = make_agent(tmp_path, client, rules=ALL)
    await harness.say("which port?")
    session = harness.agent.session
    said = harness.path()[-1].id
    session.append(ContextEditEntry(target=said, action="edit", text="The port is 8080."))
    if is_compacted:
        compaction = CompactionEntry(
            summary="A port was named.",
            first_kept_id=None,
            tokens_before=100,
            tokens_after=10,
            trigger="manual",
            model="m",
        )
        session.append(compaction)
    archive = SessionArchive(session, lambda _blob: None)
    assert archive.text(said) == "The port is 8080."
    session.append(ContextEditEntry(target=said, action="restore"))
    assert archive.text(said) == "The port is 1234."


@pytest.mark.parametrize(
    ("what", "words"), [("#99999", "no entry"), ("zyzzyva", "Nothing in this session")]
)
async def test_what_is_not_there_is_said(tmp_path: Path, what: str, words: str) -> None:
    client = ScriptedClient([Reply(calls=(recall(what),)), Reply("Pity.")])
    harness = make_agent(tmp_path, client, rules=ALL)
    await harness.say("go")
    assert results(harness)[0].status is ToolStatus.ERROR
    assert words in results(harness)[0].output


async def test_recall_does_not_find_its_own_results(tmp_path: Path) -> None:
    client = ScriptedClient(
        [Reply("The word is xylophone."), Reply(calls=(recall("xylophone"),)), Reply("Yes.")]
    )
    harness = make_agent(tmp_path, client, rules=ALL)
    await harness.say("word?")
    await harness.say("which?")
    found = SessionArchive(harness.session, harness.store.blob).search("xylophone", 10)
    assert all("recall" not in hit.gist for hit in found)
    assert len(found) >= 1


async def test_a_search_ranks_and_brings_the_lines_that_fit_with_what_they_belong_to(
    tmp_path: Path,
) -> None:
    steps = [
        ("bash", "seq 1 40; echo retry_limit = 7"),
        ("bash", "echo limit"),
        ("bash", "echo limit"),
    ]
    calls = [Call(tool, json.dumps({"command": command})) for tool, command in steps]
    harness, script, _ = await worked(tmp_path, "go", *calls)
    wanted = results(harness)[0]
    script[:] = [Reply(calls=(recall("what was the limit retry_limit"),))]
    await harness.say("and?")
    told = results(harness)[-1].output.split("\n")
    assert any(line.startswith(f"#{wanted.id} bash") for line in told), (
        "some of the words are enough"
    )
    assert "  41: retry_limit = 7" in told
    assert told.count("  1: limit") == 1, "the same is not told twice"
    assert any("asked in #" in line and "seq 1 40" in line for line in told)


async def test_one_looks_into_a_cut_output_by_range_and_by_text(tmp_path: Path) -> None:
    harness, script, client = await worked(
        tmp_path, "count", Call("bash", '{"command": "seq 1 30000"}')
    )
    address = f"#{results(harness)[0].id}"
    assert f"[{address}]" in client.requests[-1].messages[-1].text, "the model is told the number"
    script[:] = [
        Reply(calls=(recall(address, offset=15_000, limit=2),)),
        Reply(calls=(recall(address, grep="2999", limit=3),)),
        Reply(calls=(recall(address, grep="pepper"),)),
    ]
    await harness.say("and the middle?")
    ranged, found, missing = results(harness)[-3:]
    assert ranged.output == (
        f'15000\n15001\n[Lines 15000-15001 of 30000. Continue with "{address} 15002-".]'
    )
    assert found.output.startswith(
        "2999: 2999\n12999: 12999\n22999: 22999\n[3 of 13 matching lines, of 30000 in all."
    )
    assert found.output.endswith(f'Continue with "{address} 23000-".]')
    assert missing.status is ToolStatus.ERROR
    assert "contains 'pepper'" in missing.output


async def test_what_a_read_left_out_comes_back_as_it_was_by_lines_and_by_search(
    tmp_path: Path,
) -> None:
    file = tmp_path / "project" / "big.py"
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(f"name_{n} = {n}  # {'.' * 40}\n" for n in range(1, 2_001)))
    harness, script, _ = await worked(
        tmp_path, "read it", Call("read", '{"path": "big.py"}'), window=32_768
    )
    (cut,) = results(harness)
    assert "name_1900" not in cut.output
    file.write_text("gone\n")
    script[:] = [
        Reply(calls=(recall(f"#{cut.id} 1900-1901"),)),
        Reply(calls=(recall("name_1950 = 1950"),)),
    ]
    await harness.say("and the end?")
    lines, found = (result.output for result in results(harness)[-2:])
    assert lines.startswith("1900\tname_1900 = 1900")
    assert "name_1902" not in lines
    assert found.startswith(f"#{cut.id} ")
    assert "name_1950 = 1950" in found


@pytest.mark.parametrize(("output", "recalled"), [(800, 2_400), (3_000, 6_000), (20_000, 20_000)])
def test_a_recall_has_three_times_the_room_of_a_small_output(output: int, recalled: int) -> None:
    assert recall_limits(OutputLimits(tokens=output)).tokens == recalled


async def test_a_long_entry_comes_back_with_the_lines_in_use_and_an_outline(tmp_path: Path) -> None:
    call = Call("bash", json.dumps({"command": "seq -f 'value_n%g is set' 1 9000"}))
    harness, script, _ = await worked(tmp_path, "list", call, window=16_384)
    (cut,) = results(harness)
    script[:] = [Reply(calls=(recall(f"#{cut.id}"),))]
    await harness.say("What of value_n4321?")
    brought = results(harness)[-1].output.split("\n")
    assert brought[0] == "value_n1 is set"
    assert "4321: value_n4321 is set" in brought
    assert any(re.fullmatch(r"(\d+): … value_n\1", row) for row in brought)
    assert brought[-1].startswith("[Lines 1-")
    assert f'"#{cut.id} 1-9000"' in brought[-1]


LIMITS = OutputLimits(tokens=2_000)
ITEMS = [{"id": number, "name": f"item_{number}", "text": "some words"} for number in range(2_000)]


@pytest.mark.parametrize("following", [[], ["a second line"], ["the next line is long, too" * 900]])
@pytest.mark.parametrize(
    ("first", "name"), [("word " * 20_000, ""), (json.dumps(ITEMS), "item_1000"), ("é" * 9_000, "")]
)
def test_of_a_first_line_that_is_too_long_the_beginning_and_names_are_shown(
    first: str, name: str, following: list[str]
) -> None:
    shown = dict(outline([first, *following], {}, LIMITS))
    beginning, _, names = shown[0].partition("…")
    assert first.startswith(beginning)
    assert len(beginning) > 900
    assert name in names
    assert len(shown[0]) <= LIMITS.line_chars
    assert sum(len(text.encode()) for text in shown.values()) < 6_000
    assert shown.get(1, "") in {"", *following}


def test_the_long_line_after_a_short_one_is_shown_too() -> None:
    shown = dict(outline(["Result:", json.dumps(ITEMS), "End."], {}, LIMITS))
    assert shown[0] == "Result:"
    assert shown[1].startswith(json.dumps(ITEMS)[:900])
    assert "item_1000" in shown[1]


def test_a_first_line_of_usual_length_is_shown_whole() -> None:
    lines = ["first " * 49, *(f"value_{number} is set" for number in range(3_000))]
    assert outline(lines, {}, LIMITS)[0] == (0, lines[0])


async def test_a_long_line_comes_back_with_its_beginning(tmp_path: Path) -> None:
    call = Call(
        "bash", json.dumps({"command": "printf 'begins here'; printf ' word%.0s' $(seq 20000)"})
    )
    harness, script, _ = await worked(tmp_path, "list", call, window=16_384)
    (cut,) = results(harness)
    script[:] = [Reply(calls=(recall(f"#{cut.id}"),))]
    await harness.say("What was it?")
    brought = results(harness)[-1].output.split("\n")
    assert brought[0].startswith("1: begins here word word")
    assert brought[-1].startswith("[The beginning of line 1 of 1. For the rest: ")


def test_a_file_with_a_long_first_line_comes_back_with_one_number_before_it(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("begins here " + "word " * 20_000)
    build = PathBuilder()
    build.user("write it")
    build.run(
        "write", {"path": "long.txt"}, "", metadata=ToolMetadata(modified_files=("long.txt",))
    )
    counter = TokenCounter("test/model")
    [part] = files_back(build.path, resolve(build.path), tmp_path, 3_000, counter)
    first, last = part.text.split("\n")
    assert first.startswith("1\tbegins here word word")
    assert last.startswith("[1 of 1 lines")
