"""The pure functions on headers, against the plainest definition of each."""

from hypothesis import given
from hypothesis import strategies as st

from tui_agent.session.records import EntryHeader, children
from tui_agent.session.tree_index import Spine, SpineRows


def header(entry_id: int, parent: int | None) -> EntryHeader:
    return EntryHeader(entry_id, parent, "user", "", 0, 0, 0)


@st.composite
def forests(draw: st.DrawFn) -> tuple[list[EntryHeader], int | None, int | None]:
    """Headers with ids that may have gaps, each below any earlier one or a root, and two of the ids or None."""
    ids = sorted(draw(st.sets(st.integers(1, 40), min_size=1, max_size=25)))
    headers = [header(i, draw(st.sampled_from([None, *[j for j in ids if j < i]]))) for i in ids]
    ends = st.sampled_from([None, *ids])
    return headers, draw(ends), draw(ends)


def ancestors(headers: list[EntryHeader], leaf: int | None) -> list[int]:
    parents = {one.id: one.parent_id for one in headers}
    line = []
    while leaf is not None:
        line.append(leaf)
        leaf = parents[leaf]
    return line[::-1]


def rows_of(headers: list[EntryHeader]) -> SpineRows:
    return SpineRows.of((one.id, one.parent_id, one.kind, one.size) for one in headers)


@given(forests())
def test_the_spine_knows_paths_and_where_two_part(case: tuple[list[EntryHeader], int | None, int | None]) -> None:
    headers, leaf, target = case
    spine = Spine()
    half = len(headers) // 2
    for part in (headers[:half], headers[half:]):
        spine.extend(rows_of(part))
    assert (spine.count, spine.last, spine.reattached) == (len(headers), headers[-1].id, set())
    one, other = ancestors(headers, leaf), ancestors(headers, target)
    assert list(spine.path(leaf)) == one
    shared = [a for a, b in zip(one, other, strict=False) if a == b]
    parting = spine.parting(leaf, target)
    assert (parting.leaf, parting.ancestor) == (leaf, shared[-1] if shared else None)
    assert [entry.id for entry in parting.left] == [i for i in one if i not in other]


def test_a_missing_parent_ends_a_path_and_the_spine_mends_it() -> None:
    headers = [header(1, None), header(2, 1), header(5, 4), header(6, 5)]
    assert children(headers)[None] == [1, 5]
    spine = Spine()
    spine.extend(rows_of(headers))
    assert list(spine.path(6)) == [1, 2, 5, 6]
    assert spine.reattached == {5}
