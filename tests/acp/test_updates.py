"""What an editor is told: each call by an id of its own, texts once, diffs as before and after."""

import base64
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from acp import RequestError, helpers

from tests.support.pdfs import pdf
from tui_agent.acp.session import options_of
from tui_agent.acp.updates import (
    MAX_OUTPUT_CHARS,
    MAX_RESOURCE_CHARS,
    OUTPUT_STEP_CHARS,
    Updates,
    diffs_of,
    read_prompt,
)
from tui_agent.agent.events import (
    AnswerDelta,
    CompactionEnded,
    CompactionStarted,
    EntryAppended,
    PermissionRequest,
    ReasoningProgress,
    RetryScheduled,
    TitleChanged,
    ToolCallProgress,
    ToolOutput,
    ToolStarted,
)
from tui_agent.pictures import PDF
from tui_agent.session.entries import (
    AssistantEntry,
    CompactionEntry,
    FilePart,
    ImagePart,
    ModeChangeEntry,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)

CWD = Path("/project")


def told(updates: Updates, *events: Any) -> list[Any]:
    return [update for event in events for update in updates.updates_for(event)]


def result(
    call_id: str = "c", tool: str = "bash", output: str = "out", **fields: Any
) -> EntryAppended:
    fields = {"status": ToolStatus.COMPLETED} | fields
    return EntryAppended(ToolResultEntry(call_id=call_id, tool=tool, output=output, **fields))


def answer(text: str) -> EntryAppended:
    return EntryAppended(AssistantEntry(parts=(TextPart(text=text),), model="m"))


def test_a_streamed_answer_is_told_once_and_one_that_was_not_streamed_too() -> None:
    updates = told(
        Updates(CWD), AnswerDelta("Hel"), AnswerDelta("lo"), answer("Hello"), answer("Again")
    )
    assert [update.content.text for update in updates] == ["Hel", "lo", "Again"]


def test_call_ids_that_providers_use_again_are_told_apart() -> None:
    updates = Updates(CWD)
    first = told(updates, ToolCallProgress("call_0", "bash", "{}"), result("call_0"))
    second = told(updates, ToolCallProgress("call_0", "bash", "{}"), result("call_0"))
    assert first[0].tool_call_id == first[1].tool_call_id
    assert second[0].tool_call_id == second[1].tool_call_id
    assert first[0].tool_call_id != second[0].tool_call_id


def test_output_of_a_running_command_is_sent_in_steps_and_bounded() -> None:
    updates = Updates(CWD)
    told(updates, ToolStarted("c", "bash", "make", '{"command": "make"}'))
    small = told(updates, *(ToolOutput("c", "x" * 10) for _ in range(OUTPUT_STEP_CHARS // 10 + 1)))
    assert len(small) == 2, "the first at once, then when enough has come"
    [large] = told(updates, ToolOutput("c", "y" * 10 * MAX_OUTPUT_CHARS))
    assert len(large.content[0].content.text) == MAX_OUTPUT_CHARS
    assert told(updates, ToolOutput("nobody", "text")) == []


def test_a_to_do_list_is_the_plan() -> None:
    updates = told(
        Updates(CWD), result(tool="todo", output="[x] one\n[>] two\n[-] three\n[ ] four")
    )
    rows = {row.content: row.status for row in updates[-1].entries}
    assert rows == {"one": "completed", "two": "in_progress", "four": "pending"}


def test_failed_calls_and_asides() -> None:
    updates = Updates(CWD)
    assert told(updates, result(status=ToolStatus.ERROR))[-1].status == "failed"
    assert (
        told(updates, RetryScheduled(1, 3, 2.0, "Busy."))[0].content.text
        == "Busy. Trying again in 2 s.\n"
    )
    assert told(updates, ReasoningProgress("hm"))[0].session_update == "agent_thought_chunk"
    assert told(updates, TitleChanged("Shop"))[0].title == "Shop"
    assert told(updates, EntryAppended(ModeChangeEntry(mode="plan")))[0].current_mode_id == "plan"


def test_a_diff_becomes_its_hunks() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n\\ No newline at end of file\n@@ -9 +9,2 @@\n z\n+new\n"
    first, second = diffs_of(diff, "/project/x")
    assert (first.path, first.old_text, first.new_text) == ("/project/x", "a\nb\n", "a\nc")
    assert (second.old_text, second.new_text) == ("z\n", "z\nnew\n")
    assert diffs_of("", "/x") == []
    [created] = diffs_of("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+all\n", "/x")
    assert created.old_text is None
    [whole] = diffs_of(
        "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n", "/x"
    )
    assert (whole.old_text, whole.new_text) == ("a", "b\n")


def test_images_come_back_as_images() -> None:
    updates = Updates(CWD, {"d1": b"PNG"}.get)
    image = ImagePart(blob="d1", mime="image/png")
    asked = UserEntry(
        parts=(TextPart(text="see"), image, ImagePart(blob="gone", mime="image/png", path="a.png"))
    )
    first, second, third = updates.replay(asked)
    assert (first.content.text, third.content.text) == ("see", "@a.png")
    assert (second.content.type, second.content.data, second.content.mime_type) == (
        "image",
        "UE5H",
        "image/png",
    )
    shown = told(updates, result(attachments=(image,)))[-1]
    assert [block.content.type for block in shown.content] == ["text", "image"]


def test_a_path_is_replayed_as_it_happened() -> None:
    updates = Updates(CWD)
    call = ToolCallPart(call_id="c", tool="bash", arguments="{}")
    entries = [
        UserEntry(parts=(TextPart(text="hello"),)),
        UserEntry(parts=(TextPart(text="unseen"),), synthetic="continue"),
        AssistantEntry(
            parts=(ReasoningPart(text="hm"), TextPart(text="Looking."), call), model="m"
        ),
        result().entry,
    ]
    kinds = [update.session_update for entry in entries for update in updates.replay(entry)]
    told = [
        "user_message_chunk",
        "agent_thought_chunk",
        "agent_message_chunk",
        "tool_call",
        "tool_call_update",
    ]
    assert kinds == told


@pytest.mark.parametrize(
    ("rules", "loop", "kinds"),
    [
        ((), (), ["allow_once", "reject_once"]),
        (("bash:make *",), (), ["allow_once", "allow_always", "allow_always", "reject_once"]),
        ((), ("same",), ["allow_once", "reject_once", "reject_always"]),
    ],
)
def test_an_editor_offers_what_can_be_answered(rules, loop, kinds) -> None:
    request = PermissionRequest("c", "bash", "make", (), "because", rules, loop)
    options = options_of(request)
    assert [option.kind for option in options] == kinds
    assert all(rule in options[1].name for rule in rules)


async def test_what_an_editor_embeds_is_named_and_bounded() -> None:
    resource = helpers.embedded_text_resource(
        "file:///project/src/a%20b.py", "x" * (MAX_RESOURCE_CHARS + 5)
    )
    link = helpers.resource_link_block("w", "https://w.example")
    blocks = [helpers.text_block("see"), helpers.resource_block(resource), link]
    prompt = await read_prompt(blocks, CWD, lambda _data: "digest")
    assert prompt.text == "see src/a b.py https://w.example"
    [part] = prompt.attached
    assert part.path == "src/a b.py"
    assert part.text.endswith("[5 more characters; use read for the rest]")


async def test_a_pdf_comes_from_an_editor_and_goes_back_to_it() -> None:
    kept: dict[str, bytes] = {}
    encoded = base64.b64encode(pdf("One", "Two")).decode()
    resource = helpers.embedded_blob_resource("file:///project/a.pdf", encoded, mime_type=PDF)
    block = helpers.resource_block(resource)

    def keep(data: bytes) -> str:
        kept["digest"] = data
        return "digest"

    [part] = (await read_prompt([block], CWD, keep)).attached
    assert isinstance(part, ImagePart)
    assert (part.path, part.pages) == ("a.pdf", 2)
    [shown] = Updates(CWD, kept.get).replay(UserEntry(id=1, parts=(part,)))
    assert shown.content.resource.blob == encoded


@pytest.mark.parametrize(
    "block",
    [
        helpers.resource_block(
            helpers.embedded_blob_resource("file:///a.pdf", "AAAA", mime_type=PDF)
        ),
        helpers.image_block("AAAA", "image/x-photoshop"),
        helpers.image_block("%%%%", "image/png"),
        helpers.audio_block("AAAA", "audio/wav"),
        SimpleNamespace(type="smell"),
    ],
)
async def test_what_can_t_be_taken_is_refused_with_a_sentence(block: Any) -> None:
    with pytest.raises(RequestError) as refused:
        await read_prompt([block], CWD, lambda _data: "digest")
    assert refused.value.code == -32602
    assert str(refused.value).endswith(".")


def test_new_problems_are_shown_where_they_arise_and_when_a_session_is_loaded() -> None:
    problems = UserEntry(
        parts=(
            TextPart(text="A checker ran."),
            FilePart(path="diagnostics:a.py", text="2 new problems:\na.py:1: one\na.py:2: two"),
            FilePart(path="diagnostics:b.py", text="1 new problem:\nb.py:3: three"),
        ),
        synthetic="diagnostics",
    )
    (live,) = told(Updates(CWD), EntryAppended(problems))
    (loaded,) = Updates(CWD).replay(problems)

    assert live.session_update == "agent_thought_chunk"
    assert (
        live.content.text
        == "New problems after the edits:\na.py:1: one\na.py:2: two\nb.py:3: three\n"
    )
    assert loaded == live


def test_a_compaction_is_told_as_one_where_the_editor_asks_for_it_and_among_the_thoughts_elsewhere() -> (
    None
):
    entry = CompactionEntry(
        id=7,
        summary="What was done.",
        first_kept_id=None,
        tokens_before=900,
        tokens_after=90,
        trigger="manual",
    )
    started, ended = CompactionStarted("manual", 900), CompactionEnded()
    updates = Updates(CWD, compactions=True)

    done = told(updates, started, EntryAppended(entry), ended)
    assert [(update.id, update.status) for update in done] == [
        (done[0].id, "in_progress"),
        (done[0].id, "completed"),
    ]
    assert done[1].params("s") == {
        "sessionId": "s",
        "update": {
            "sessionUpdate": "compaction_update", "compactionId": done[0].id, "status": "completed",
            "summary": [{"type": "text", "text": "What was done."}],
        },
    }  # fmt: skip
    _, failed = told(updates, started, CompactionEnded("It is too long."))
    assert (failed.id != done[0].id, failed.status, failed.error) == (
        True,
        "failed",
        "It is too long.",
    )
    assert [update.status for update in told(updates, started, ended)] == [
        "in_progress",
        "cancelled",
    ]
    assert [(update.id, update.status) for update in updates.replay(entry)] == [
        ("compaction.of.7", "completed")
    ]
    among = told(Updates(CWD), started, EntryAppended(entry), ended)
    assert [update.session_update for update in among] == ["agent_thought_chunk"] * 2
