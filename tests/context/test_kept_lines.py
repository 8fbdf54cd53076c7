import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.entry_strategies import paths
from tests.support.session_paths import PathBuilder
from tests.support.thoroughness import EXAMPLES
from tui_agent.context.anchors import find_anchors
from tui_agent.context.kept_lines import Source, choose_lines, decode_lines, encode_lines, texts_of
from tui_agent.tools.registry import tool_traits


def words(text: str) -> int:
    return len(text.split())


def kept(path, budget: int, shown: str = "", earlier=()) -> tuple[str, ...]:
    anchors = find_anchors(path, tool_traits(), earlier)
    texts = {entry.id: texts_of(entry) for entry in path}
    return encode_lines(choose_lines(anchors, Source(texts), budget, words, shown))


def test_a_name_brings_the_whole_line_it_stood_in_last_in_the_order_of_its_entry():
    build = PathBuilder()
    build.run("read", {"path": "src/app.py"}, "import os\ndef load_config(path, *, strict=True):\n    pass")
    build.say("I will change load_config\nand then test it")
    newest = build.run("grep", {"pattern": "x"}, "src/app.py:2: def load_config(path, *, strict=False):\nsrc/b.py:1: x")
    (line, *_) = [line for line in kept(build.path, 100) if "strict" in line]
    assert line.startswith(f"#{newest.id}: ")
    assert "src/app.py:2: def load_config(path, *, strict=False):" in line

    build = PathBuilder()
    build.run("read", {"path": "a.py"}, "first_name = 1\nsecond_name = 2\nthird_name = 3")
    build.user("what of second_name?")
    build.run("read", {"path": "a.py"}, "first_name = 1\nsecond_name = 2\nthird_name = 3")
    (line,) = [line for line in kept(build.path, 60) if "first_name" in line]
    assert line.split(": ", 1)[1].split("\n")[:3] == ["first_name = 1", "second_name = 2", "third_name = 3"]


def test_demands_leave_room_for_names_and_cheap_lines_for_what_the_agent_found():
    build = PathBuilder()
    for number in range(40):
        build.user(f"You must never do thing number {number} of all the many things there are to do.")
    build.say("load_config")
    lines = "\n".join(kept(build.path, 200))
    assert "load_config" in lines
    assert "You must never" in lines

    build = PathBuilder()
    build.user("go")
    found = "The lock_order is wrong because the flush_queue waits for every reader that merge_pages has opened before."
    build.say(f"{'I looked at all of it for a long while, one file after the other. ' * 4}{found}")
    for number in range(40):
        build.run("grep", {"pattern": f"short_{number}"}, f"short_{number} = 1", tokens=10)
    anchors = find_anchors(build.path, tool_traits())
    chosen = choose_lines(anchors, Source.of(build.path), 110, words, "")
    assert found in [line for lines in chosen.values() for line in lines]


def test_lines_of_names_that_stay_in_view_take_the_room_that_is_left():
    build = PathBuilder()
    build.say("load_config reads the theme\nsave_config writes it")
    both = ("#1: load_config reads the theme\nsave_config writes it",)
    assert kept(build.path, 100, shown="uses load_config(path)") == both
    assert kept(build.path, 20, shown="uses load_config(path)") == ("#1: save_config writes it",)


def test_lines_that_were_kept_before_are_kept_on_while_their_names_matter():
    build = PathBuilder()
    build.say("def load_config(path): reads the theme")
    first = find_anchors(build.path, tool_traits())
    carried = kept(build.path, 100)
    later = PathBuilder(first_id=50)
    later.say("nothing to see")
    anchors = find_anchors(later.path, tool_traits(), [anchor.encode() for anchor in first])
    again = choose_lines(anchors, Source({50: "nothing to see"}, earlier=decode_lines(carried)[0]), 100, words, "")
    assert encode_lines(again) == carried


def test_lines_survive_being_written_down():
    chosen = {3: ["a: b", "c"], 12: ["#4 is meant"]}
    lines, titles = decode_lines([*encode_lines(chosen, {12: "src/app.py"}), "no address", "#x: y"])
    assert lines == [(3, "a: b"), (3, "c"), (12, "#4 is meant")]
    assert titles == {12: "src/app.py"}


@given(paths(max_size=25), st.integers(0, 400))
@settings(max_examples=EXAMPLES, deadline=None)
def test_any_path_has_the_same_lines_every_time_within_their_budget(path, budget):
    lines = kept(path, budget)
    assert lines == kept(list(path), budget)
    assert sum(words(line) for line in lines) <= budget


@pytest.mark.timeout(60)
def test_names_on_one_very_long_line_are_looked_up_in_time_and_bring_their_sentence():
    build = PathBuilder()
    many = " ".join(f"name_{number}_of.thing{number}" for number in range(20_000))
    build.user(f"{many}. The lock_order is wrong! {many}")
    build.say("lock_order name_7_of.thing7")
    anchors = find_anchors(build.path, tool_traits())
    chosen = choose_lines(anchors, Source({build.path[-2].id: texts_of(build.path[-2])}), 400, words, "")
    assert all(len(line) <= 300 for line in chosen.get(build.path[-2].id, [])[:-1])
