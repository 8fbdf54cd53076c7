"""The rows of the tree: what is on screen in which order, whatever the tree looks like."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.thoroughness import examples
from tui_agent.session.records import EntryHeader
from tui_agent.session.skeleton import Headers
from tui_agent.ui.widgets.tree.outline import MAX_DEPTH, LineKind, Outline, TreeLine, TreeOptions
from tui_agent.ui.widgets.tree.rows import Filter, rows_of
from tui_agent.ui.widgets.tree.search_matches import Hits
from tui_agent.ui.widgets.tree.segments import TreeIndex

KINDS = ("user", "assistant", "tool_result", "compaction", "system", "checkpoint", "model_change")


def header(
    entry_id: int, parent: int | None, kind: str = "user", preview: str = "", tokens: int = 1
) -> EntryHeader:
    return EntryHeader(entry_id, parent, kind, preview or f"{kind} {entry_id}", tokens, 0, 10)


def chain(*kinds: str, first: int = 1, parent: int | None = None) -> list[EntryHeader]:
    found: list[EntryHeader] = []
    for number, kind in enumerate(kinds, first):
        preview = 'grep {"a": 1}' if kind == "call" else ""
        found.append(header(number, parent, kind.replace("call", "assistant"), preview))
        parent = number
    return found


@st.composite
def trees(draw: st.DrawFn) -> list[EntryHeader]:
    """Draw headers with ascending ids; some ids are missing, some parents are roots."""
    found: list[EntryHeader] = []
    entry_id = 0
    for _ in range(draw(st.integers(0, 40))):
        entry_id += draw(st.integers(1, 2))
        choices: list[int | None] = [None, *(one.id for one in found)]
        parent = (
            found[-1].id if found and draw(st.integers(0, 3)) else draw(st.sampled_from(choices))
        )
        preview = 'grep {"a": 1}' if draw(st.booleans()) else "said"
        found.append(header(entry_id, parent, draw(st.sampled_from(KINDS)), preview))
    return found


def tree_of(
    headers: Sequence[EntryHeader], leaf: int | None, costs: dict[int, float] | None = None
) -> TreeIndex:
    return TreeIndex(Headers.of(headers), leaf, costs)


def ids_of(line: TreeLine) -> tuple[int, int]:
    ids = line.segment.headers.ids
    return ids[line.row.first], ids[line.row.last]


def lines(outline: Outline) -> list[tuple[int, int]]:
    found = [outline.line(y) for y in range(outline.total)]
    return [ids_of(line) for line in found if line is not None and line.what is not LineKind.FOLD]


def unfolded(index: TreeIndex, view: TreeOptions) -> Outline:
    return Outline(
        index,
        TreeOptions(view.filter, view.labels, {segment.key: False for segment in index.segments}),
    )


def leaf_of(headers: Sequence[EntryHeader]) -> int | None:
    return headers[len(headers) // 2].id if headers else None


@settings(max_examples=examples(50))
@given(trees())
def test_every_entry_can_be_reached_from_the_folds_at_first(headers: list[EntryHeader]) -> None:
    index = tree_of(headers, leaf_of(headers))
    outline = Outline(index, TreeOptions(Filter.EVERYTHING))
    for one in headers:
        shown = Outline(index, outline.revealing(one.id), outline)
        line = shown.line(shown.find(one.id))
        assert line is not None
        assert line.what is not LineKind.FOLD
        assert ids_of(line) == (one.id, one.id)


@settings(max_examples=examples(50))
@given(trees(), st.sampled_from(list(Filter)))
def test_parents_stand_above_their_children_and_all_can_be_shown(
    headers: list[EntryHeader], wanted: Filter
) -> None:
    outline = unfolded(
        tree_of(headers, leaf_of(headers)),
        TreeOptions(wanted, {one.id: "x" for one in headers[::3]}),
    )
    rows = lines(outline)
    if wanted is Filter.EVERYTHING:
        assert sorted(first for first, _ in rows) == [one.id for one in headers]
    place = {entry: y for y, (first, last) in enumerate(rows) for entry in (first, last)}
    for one in headers:
        if one.id in place and one.parent_id in place:
            assert place[one.parent_id] <= place[one.id]


@settings(max_examples=examples(50))
@given(trees())
def test_totals_are_those_of_the_branch_and_the_path_is_marked(headers: list[EntryHeader]) -> None:
    leaf = leaf_of(headers)
    index = tree_of(headers, leaf, {one.id: 0.5 for one in headers})
    below: dict[int, int] = {one.id: 1 for one in headers}
    for one in reversed(headers):
        if one.parent_id in below:
            below[one.parent_id] += below[one.id]
    for segment in index.segments:
        assert segment.count == below[segment.key]
        assert segment.tokens == segment.count
        assert segment.cost == pytest.approx(segment.count * 0.5)
    parents, path = {one.id: one.parent_id for one in headers}, set[int]()
    while leaf in parents:
        path.add(leaf)
        leaf = parents[leaf]
    places = [(one.id, index.locate(one.id)) for one in headers]
    assert {
        one for one, place in places if place is not None and place[1] < place[0].active
    } == path


@settings(max_examples=examples(50))
@given(trees(), st.data())
def test_hits_go_from_top_to_bottom_and_around(
    headers: list[EntryHeader], data: st.DataObject
) -> None:
    outline = Outline(tree_of(headers, leaf_of(headers)), TreeOptions())
    ids = data.draw(st.sets(st.sampled_from([one.id for one in headers]))) if headers else set()
    hits = Hits(outline, ids)
    whole = unfolded(outline.index, TreeOptions())
    rows = lines(whole)
    held = [
        last
        for first, last in rows
        if any(
            first <= entry <= last and ids_of(whole.line(whole.find(entry))) == (first, last)
            for entry in ids
        )  # type: ignore[union-attr]
    ]
    assert [hits.entry(number) for number in range(hits.total)] == held[: hits.total]
    assert hits.total <= len(held)
    if hits.total:
        assert hits.entry(-1) == hits.entry(hits.total - 1)


@pytest.mark.parametrize(
    ("headers", "wanted", "drawn"),
    [
        (  # only branch points indent
            [
                *chain("user", "assistant"),
                *chain("user", "call", first=3, parent=2),
                *chain("user", first=5, parent=2),
            ],
            Filter.DEFAULT,
            ["1", "2", "├─3", "│ 4", "└─5"],
        ),
        (  # a branch that the filter hides takes its branch point along
            [
                *chain("user", "assistant", "tool_result"),
                *chain("user", "assistant", first=4, parent=2),
            ],
            Filter.NO_TOOLS,
            ["1", "2", "4", "5"],
        ),
        (  # branches of an entry that is hidden hang where it would
            [*chain("user", "checkpoint", "user"), *chain("user", first=4, parent=2)],
            Filter.DEFAULT,
            ["1", "├─3", "└─4"],
        ),
        # several roots are branches of nothing
        (
            [*chain("user", "assistant"), *chain("user", first=3)],
            Filter.DEFAULT,
            ["├─1", "│ 2", "└─3"],
        ),
    ],
)
def test_what_branches_and_what_does_not(
    headers: list[EntryHeader], wanted: Filter, drawn: list[str]
) -> None:
    outline = Outline(tree_of(headers, headers[-1].id), TreeOptions(wanted))
    found = [line for y in range(outline.total) if (line := outline.line(y)) is not None]
    assert [f"{line.guide}{line.entry}" for line in found] == drawn


def test_attempts_that_failed_beside_the_path_are_no_branches() -> None:
    trunk = chain("user")
    failed, answer = chain("assistant", first=2, parent=1), chain("assistant", first=3, parent=1)
    left = chain("user", "assistant", first=4, parent=3)
    index = tree_of([*trunk, *failed, *answer, *left, *chain("user", first=6, parent=3)], 6)
    assert index.branches(lambda _id: False) == 3
    assert index.branches(lambda entry_id: entry_id == 2) == 2
    assert tree_of([*trunk, *failed], 2).branches(lambda _id: True) == 1, "where one is counts"


def test_an_answer_that_says_something_before_its_calls_has_a_row() -> None:
    headers = [*chain("user", "assistant"), *chain("tool_result", first=3, parent=2)]
    assert [row.first for row in rows_of(Headers.of(headers), Filter.DEFAULT, {})] == [0, 1, 2]


def test_very_deep_trees_stay_on_screen() -> None:
    headers = [header(1, None)]
    for level in range(2_000):
        headers += [header(level * 2 + 2, headers[-1].id if level else 1)]
        headers += [header(level * 2 + 3, headers[-1].parent_id)]
    index = tree_of(headers, headers[-1].id)
    outline = Outline(index, TreeOptions(Filter.EVERYTHING))
    deepest = outline.line(outline.here)
    assert deepest is not None
    assert len(deepest.guide) <= 2 * MAX_DEPTH
    assert deepest.guide.startswith("‥")


def test_the_leaf_is_shown_at_the_nearest_row_when_it_has_none() -> None:
    index = tree_of(chain("user", "assistant", "model_change"), 3)
    assert Outline(index, TreeOptions()).here == 1
    assert Outline(index, TreeOptions(Filter.EVERYTHING)).here == 2
    assert Outline(tree_of(chain("user"), None), TreeOptions()).here == -1


def test_what_subagents_did_hangs_folded_beside_the_way_on_and_is_no_branch() -> None:
    asked = chain("system", "user", "assistant")
    work = chain("subagent", "system", "user", "assistant", first=4)
    headers = [
        *asked,
        *work,
        header(8, 3, "tool_result"),
        *chain("assistant", "user", first=9, parent=8),
    ]
    index = TreeIndex(Headers.of(headers).hung({4: 3}), 10)
    shown = Outline(index, TreeOptions(Filter.EVERYTHING))
    found = [line for y in range(shown.total) if (line := shown.line(y)) is not None]
    guides = {4: "├─", 7: "│ "}
    assert [(line.entry, line.guide) for line in found] == [
        (at, guides.get(at, "")) for at in (1, 2, 3, 4, 7, 8, 9, 10)
    ]
    assert found[4].what is LineKind.FOLD
    assert [line for line, _ in lines(Outline(index, TreeOptions(Filter.USER_ONLY)))] == [2, 10]
    assert index.branches(lambda _entry: False) == 1
    assert index.roots[0].last == 10, "the tip of the branch is no subagent's"


def test_an_answer_that_was_asked_for_again_is_one_row_and_its_attempts_are_found_in_everything() -> (
    None
):
    attempts = [header(number, 1, "assistant") for number in (2, 3, 4)]
    headers = [header(1, None), *attempts, header(5, 4), header(6, 5, "assistant")]
    index = tree_of(headers, 6)
    assert lines(Outline(index, TreeOptions())) == [(1, 1), (4, 4), (5, 5), (6, 6)]
    assert len(lines(Outline(index, TreeOptions(filter=Filter.EVERYTHING)))) == 6
    assert (2, 2) in lines(Outline(index, TreeOptions(labels={2: "kept"})))
