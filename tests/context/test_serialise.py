from hypothesis import given, settings

from tests.support.entry_strategies import paths
from tests.support.session_paths import PathBuilder
from tests.support.thoroughness import EXAMPLES
from tui_agent.context.budget import ContextSize
from tui_agent.context.compaction import CompactionPlan, PlanOptions, plan_compaction
from tui_agent.context.serialise import compaction_tasks, serialise
from tui_agent.context.settings import ContextSettings
from tui_agent.session.entries import FilePart, ImagePart, ReasoningPart, TextPart, ToolCallPart, UserEntry
from tui_agent.tools.registry import tool_traits


def test_every_kind_of_entry_has_its_mark():
    build = PathBuilder()
    build.system()
    build.user("What they said")
    asked = build.add(
        build.say("").model_copy(
            update={
                "parts": (
                    ReasoningPart(text="Internal reasoning", blob="{}"),
                    TextPart(text="Response text"),
                    ToolCallPart(call_id="a", tool="read", arguments='{"path": "foo.ts"}'),
                    ToolCallPart(call_id="b", tool="edit", arguments='{"path": "bar.ts", "n": 1}'),
                )
            }
        )
    )
    build.result("a", "Output from tool", "read")
    build.result("b", "Edited", "edit")
    assert serialise([build.path[1], asked, *build.path[-2:]]) == (
        "[User]: What they said",
        "[Assistant thinking]: Internal reasoning",
        "[Assistant]: Response text",
        '[Assistant tool calls]: read(path="foo.ts"); edit(path="bar.ts", n=1)',
        "[Tool result]: Output from tool",
        "[Tool result]: Edited",
    )

    build = PathBuilder()
    image = ImagePart(blob="b" * 64, mime="image/png", width=64, height=48, path="shot.png")
    build.add(UserEntry(parts=(TextPart(text="see"), FilePart(path="a.md", text="body"), image)))
    build.shell("make", "boom\n", exit_code=2)
    build.shell("secret", "hidden", excluded=True)
    build.branch_summary("tried it", from_id=9)
    build.compaction("not told here", None)
    assert serialise(build.path) == (
        "[User]: see\n@a.md\nbody\n[image: shot.png, 64x48]",
        "[User]: ran `make` (exit code 2)\nboom",
        "[Summary of a branch that was left]: tried it",
    )


def test_results_are_cut_at_both_ends_and_missing_ones_marked_in_place():
    build = PathBuilder()
    build.run("bash", {"command": "START" + "x" * 5_000 + "STOP"}, "HEAD" + "y" * 9_000 + "TAIL")
    call, result = serialise(build.path)
    assert "START" in call
    assert 'STOP"' in call
    assert len(call) < 1_100
    assert result.startswith("[Tool result]: HEAD")
    assert result.endswith("TAIL")
    assert "characters left out] …" in result
    assert len(result) < 2_100

    build = PathBuilder()
    asked = build.call(("bash", {"command": "a"}), ("bash", {"command": "b"}))
    build.result(asked.tool_calls[0].call_id, "done")
    build.user("stop")
    build.call(("bash", {"command": "c"}))
    texts = serialise(build.path)
    assert texts[1:4] == ("[Tool result]: done", "[Tool result]: [Tool execution was interrupted]", "[User]: stop")
    assert texts[-1] == "[Tool result]: [Tool execution was interrupted]"


def test_tasks_leave_out_what_the_user_took_out_of_view():
    build = PathBuilder()
    build.user("go", tokens=50)
    dropped = build.run("bash", {"command": "env"}, "SECRET", tokens=50)
    build.edit(dropped.id, "drop")
    masked = build.user("MASKED TEXT", tokens=50)
    build.edit(masked.id, "mask")
    build.say("kept", tokens=100)
    text = "\n".join(block for task in compaction_tasks(plan(build), "serialised") for block in task.blocks)
    assert "SECRET" not in text
    assert "interrupted" not in text
    assert "[User]: [Hidden: " in text


def plan(build: PathBuilder) -> CompactionPlan:
    size = ContextSize(0, 900, 900, 50_000, 1_000, 40_000, None, estimated=True)
    found = plan_compaction(
        build.path, ContextSettings(), size, PlanOptions(tool_traits(), keep_recent=100, instructions="the bug")
    )
    assert isinstance(found, CompactionPlan)
    return found


def test_a_split_turn_has_two_tasks_and_a_previous_summary_is_updated():
    build = PathBuilder()
    build.user("first", tokens=50)
    build.say("yes", tokens=50)
    build.user("second", tokens=50)
    build.say("working", tokens=50)
    build.say("kept", tokens=100)
    history, prefix = compaction_tasks(plan(build), "serialised")
    assert (history.prompt, history.blocks) == ("compaction", ("[User]: first", "[Assistant]: yes"))
    assert (prefix.prompt, prefix.blocks) == ("turn_prefix", ("[User]: second", "[Assistant]: working"))
    assert history.focus == prefix.focus == "the bug"
    assert history.share + prefix.share == 1
    (live,) = compaction_tasks(plan(build), "live")
    assert live.live
    assert live.blocks == (*history.blocks, *prefix.blocks)

    build = PathBuilder()
    build.user("first", tokens=50)
    build.compaction("## Goal\nport it", first_kept_id=None)
    build.user("second", tokens=50)
    build.say("yes", tokens=50)
    build.user("third", tokens=50)
    build.say("kept", tokens=100)
    history, _ = compaction_tasks(plan(build), "serialised")
    assert (history.prompt, history.previous) == ("compaction_update", "## Goal\nport it")
    assert "port it" not in "".join(history.blocks)


@given(paths(max_size=25))
@settings(max_examples=EXAMPLES, deadline=None)
def test_any_path_can_be_told(path):
    texts = serialise(path)
    assert texts == serialise(list(path))
    assert all(text.startswith("[") for text in texts)
