from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.entry_strategies import paths
from tests.support.session_paths import PathBuilder
from tests.support.thoroughness import EXAMPLES
from tui_agent.context.branch_summary import (
    BranchBudget,
    MovePlan,
    branch_summary_entry,
    plan_branch_summary,
    plan_merge,
    plan_move,
)
from tui_agent.context.settings import ContextSettings
from tui_agent.session.entries import FilePart, SummaryDetails, TextPart, ToolMetadata, UserEntry
from tui_agent.session.records import Divergence, EntryOutline, Outlines
from tui_agent.tools.registry import tool_traits

SETTINGS = ContextSettings()


def tokens(text: str) -> int:
    return -(-len(text) // 4)


def tree():
    """Return the paths of: system 1, user 2, say 3, then branch 4-5-6 and branch 7-8."""
    build = PathBuilder()
    build.system()
    build.user("root question")
    build.say("root answer")
    trunk = list(build.path)
    build.user("left question")
    build.say("left answer")
    build.say("left end")
    left = list(build.path)
    build.path = list(trunk)
    build.user("right question")
    build.say("right answer")
    return left, list(build.path)


def parting(path, other) -> Divergence:
    """Tell two paths from each other."""
    shared = [one.id for one, two in zip(path, other, strict=False) if one.id == two.id]
    left = Outlines.of(EntryOutline(entry.id, entry.kind, 0) for entry in path[len(shared) :])
    return Divergence(path[-1].id if path else None, shared[-1] if shared else None, left)


def loading(*paths):
    known = {entry.id: entry for path in paths for entry in path}
    return lambda ids: [known[entry_id] for entry_id in ids]


def moved(path, target, **fields) -> MovePlan:
    """Plan the move from the end of one path to the end of another."""
    end = target[-1].id if target else None
    return plan_move(parting(path, target), end, loading(path, target), **fields)


def summary(move: MovePlan, path, room: int = 10_000, **fields):
    abandoned = loading(path)(list(move.abandoned.ids))
    return plan_branch_summary(move, abandoned, SETTINGS, BranchBudget(room, 40_000, tokens), tool_traits(), **fields)


def ids(entries):
    return [entry.id for entry in entries]


def test_a_chosen_user_message_goes_back_into_the_prompt_and_the_leaf_before_it():
    left, right = tree()
    file = FilePart(path="a.py", text="text")
    right[3] = right[3].model_copy(update={"parts": (TextPart(text="right question"), file)})
    move = moved(left, right[:4])
    assert (move.leaf, move.prompt) == (3, right[3].parts)
    tip = moved(left, right[:4], continue_from_here=True)
    assert (tip.leaf, tip.prompt) == (7, ())

    left, _ = tree()
    move = moved(left, left[:2])
    assert (move.leaf, move.ancestor, ids(move.abandoned)) == (1, 2, [3, 4, 5, 6])
    assert move.prompt[0].text == "root question"
    bare = [UserEntry(id=1, parts=(TextPart(text="only"),))]
    assert moved(bare, bare).leaf is None


def test_a_move_over_no_message_asks_nothing_and_merging_back_moves_nothing():
    build = PathBuilder()
    build.user("go")
    build.say("ok")
    build.model("other/model")
    build.shell("secret", "x", excluded=True)
    move = moved(build.path, build.path[:2])
    assert len(move.abandoned) == 2
    assert not move.asks
    assert summary(move, build.path) is None

    left, right = tree()
    merge = plan_merge(parting(right, left), loading(left, right))
    assert (ids(merge.abandoned), merge.from_id) == ([7, 8], 8)
    assert plan_merge(parting(left[:4], left), loading(left)) is None


def test_summaries_on_the_way_are_included_before_older_messages():
    build = PathBuilder()
    build.user("old " + "x" * 4_000)
    build.compaction("EARLIER summary", first_kept_id=None)
    build.branch_summary("TRIED elsewhere", from_id=99)
    for number in range(10):
        build.user(f"message {number} " + "x" * 400)
    plan = summary(moved(build.path, []), build.path, room=500)
    text = "\n".join(plan.blocks)
    assert "EARLIER summary" in text
    assert "TRIED elsewhere" in text
    assert text.index("EARLIER") < text.index("TRIED") < text.index("message 9 ")

    huge = PathBuilder()
    huge.user("START " + "x" * 100_000 + " END")
    (block,) = summary(moved(huge.path, []), huge.path, room=1_000).blocks
    assert "START" in block
    assert block.endswith("END"), "a message that is too big by itself is cut"


def test_the_entry_carries_files_over_summaries_on_the_way():
    build = PathBuilder()
    build.user("go")
    build.compaction("s", None, details=SummaryDetails(read_files=("old.py",), modified_files=("made.py",)))
    build.branch_summary("b", from_id=77, details=SummaryDetails(modified_files=("branch.py",)))
    build.run("read", {"path": "new.py"}, "text", metadata=ToolMetadata(read_files=("new.py",)))
    build.checkpoint("generated.py")
    plan = summary(moved(build.path, []), build.path, focus="the files")
    assert (plan.task().prompt, plan.task().focus) == ("branch_summary", "the files")
    entry = branch_summary_entry(plan, "## Goal\nport it", tokens)
    assert entry.from_id == build.path[-1].id
    assert entry.summary == "## Goal\nport it"
    assert entry.details.read_files == ("old.py", "new.py")
    assert entry.details.modified_files == ("made.py", "branch.py", "generated.py")
    assert entry.details.user_messages == ()


@given(paths(max_size=20), st.integers(0, 19), st.integers(60, 3_000))
@settings(max_examples=EXAMPLES, deadline=None)
def test_a_branch_with_a_message_is_never_told_as_nothing_and_always_fits(path, at, room):
    move = moved(path, path[:at])
    plan = summary(move, path, room=room)
    if plan is None:
        assert not move.asks
        return
    assert sum(tokens(block) + 2 for block in plan.blocks) <= room + 2
    if plan.omitted:
        assert plan.blocks
