"""What is remembered of a path holds for the paths that go on from it."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.texts import said
from tui_agent.session.path_queries import PathMark


@given(length=st.integers(0, 5), more=st.integers(0, 3), data=st.data())
def test_a_mark_knows_the_paths_that_begin_with_its_own(
    length: int, more: int, data: st.DataObject
) -> None:
    path = [said(str(number)) for number in range(length + more)]
    mark = PathMark.of(path[:length])
    assert mark.begins(path) is (length > 0)
    if length:
        assert not mark.begins(path[: length - 1])
        changed = data.draw(st.sampled_from([0, length - 1]))
        other = [*path[:changed], said("other"), *path[changed + 1 :]]
        assert not mark.begins(other)
