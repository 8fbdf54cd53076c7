import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.entry_strategies import paths
from tests.support.session_paths import PathBuilder
from tests.support.thoroughness import EXAMPLES
from tui_agent.context.anchors import Anchor, find_anchors
from tui_agent.context.kept_lines import Source, choose_lines, decode_lines, encode_lines, texts_of
from tui_agent.session.entries import ToolMetadata, ToolStatus
from tui_agent.tools.registry import tool_traits


def found(build: PathBuilder) -> dict[str, str]:
    """Return the anchors' texts and kinds."""
    return {anchor.text: anchor.kind for anchor in find_anchors(build.path, tool_traits())}


@pytest.mark.parametrize(
    ("text", "kind", "anchor"),
    [
        ("see src/tui/app.py:213:9.", "path", "src/tui/app.py:213:9"),
        ("edit pyproject.toml", "path", "pyproject.toml"),
        ("docs at https://example.com/a/b", "path", "https://example.com/a/b"),
        ("the function load_config fails", "name", "load_config"),
        ("call getTheme() first", "name", "getTheme"),
        ("run it with --no-cache", "name", "--no-cache"),
        ("error TS2304 again", "name", "TS2304"),
        ("theme.fg is undefined", "name", "theme.fg"),
        ("commit 1f2e3d4c5b", "hash", "1f2e3d4c5b"),
        ("id 0198c0de-aaaa-7bbb-8ccc-0123456789ab", "hash", "0198c0de-aaaa-7bbb-8ccc-0123456789ab"),
        ("it took 350 ms", "number", "350 ms"),
        ("this and/or that", None, "and/or"),
    ],
)
def test_facts_are_found_in_what_was_said(text, kind, anchor):
    build = PathBuilder()
    build.say(text)
    assert found(build).get(anchor) == kind


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text",
    ["Ab" + "A" * 100 + "+x", "1," * 100_000, "Ab_" * 30_000],
    ids=["capitals", "numbers", "words"],
)
def test_no_text_takes_more_time_than_its_length(text):
    build = PathBuilder()
    build.say(text)
    assert len(found(build)) < 10


@pytest.mark.parametrize(
    "sentence",
    ["You must never push to main.", "请不要修改测试文件。", "Auf keinen Fall committen."],
)
def test_sentences_that_demand_or_forbid_are_kept_word_for_word(sentence):
    build = PathBuilder()
    build.user(f"Look at the code. {sentence} Then say hello.")
    assert found(build).get(sentence) == "rule"
    assert "Then say hello." not in found(build)


def test_commands_carry_their_exit_codes_and_their_errors_count():
    build = PathBuilder()
    build.run(
        "bash",
        {"command": "make\n test"},
        "boom",
        metadata=ToolMetadata(exit_code=2),
        status=ToolStatus.ERROR,
    )
    build.run("bash", {"command": "npm run check"}, "ok")
    build.run(
        "bash",
        {"command": "cargo build"},
        "lines\nCommand exited with code 101",
        status=ToolStatus.ERROR,
    )
    build.shell("git push", "rejected", exit_code=1)
    kinds = found(build)
    assert kinds["`make test` → exit 2"] == "command"
    assert kinds["`npm run check` → exit 0"] == "command"
    assert kinds["`cargo build` → exit 101"] == "command"
    assert kinds["`git push` → exit 1"] == "command"

    build = PathBuilder()
    build.run("bash", {"command": "x"}, "fine\n  src/a.ts(3,1): error TS2345: no overload\nfine")
    build.run("read", {"path": "b.ts"}, 'throw new Error("Invalid color value");')
    kinds = found(build)
    assert kinds["src/a.ts(3,1): error TS2345: no overload"] == "error"
    assert not any("Invalid color" in text for text in kinds)


def test_the_most_referenced_come_first_and_newer_ones_before_older():
    build = PathBuilder()
    build.say("old_name")
    build.say("often_used")
    build.say("often_used")
    for _ in range(10):
        build.say("nothing to see")
    build.say("new_name often_used")
    order = [anchor.text for anchor in find_anchors(build.path, tool_traits())]
    assert order == ["often_used", "new_name", "old_name"]


def test_the_words_of_the_user_weigh_more_than_those_of_the_model():
    build = PathBuilder()
    build.say("early_name")
    for _ in range(10):
        build.say("nothing to see")
    build.user("asked_name")
    build.say("said_name")
    order = [anchor.text for anchor in find_anchors(build.path, tool_traits())]
    assert order == ["asked_name", "said_name", "early_name"]


def test_earlier_anchors_come_back_and_foreign_strings_are_none():
    build = PathBuilder()
    build.say("load_config")
    first = find_anchors(build.path, tool_traits())
    later = PathBuilder(first_id=50)
    later.say("save_config load_config")
    again = find_anchors(later.path, tool_traits(), [anchor.encode() for anchor in first])
    assert [(a.text, a.weight, a.entry_id) for a in again] == [
        ("load_config", 4.0, 50),
        ("save_config", 2.0, 50),
    ]

    assert Anchor.decode("src/app.py") is None
    assert Anchor.decode("nonsense 2 3 #4 text") is None
    anchor = Anchor("error", "a #3 b\nc", 12, 2.5, 14)
    assert Anchor.decode(anchor.encode()) == anchor


@given(paths(max_size=25))
@settings(max_examples=EXAMPLES, deadline=None)
def test_any_path_has_deterministic_anchors_that_encode(path):
    anchors = find_anchors(path, tool_traits())
    assert anchors == find_anchors(list(path), tool_traits())
    ids = {entry.id for entry in path}
    for anchor in anchors:
        assert anchor.entry_id in ids
        assert Anchor.decode(anchor.encode()) == anchor


def test_what_is_remembered_of_texts_is_bounded_by_their_length() -> None:
    tracemalloc.start()
    try:
        for number in range(100):
            text = f"Error: number {number} is wrong.\n" + "x" * 100_000
            find_anchors([PathBuilder().user(text)], tool_traits())
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 6_000_000


def words(text: str) -> int:
    return len(text.split())


def kept(path, budget: int, shown: str = "", earlier=()) -> tuple[str, ...]:
    anchors = find_anchors(path, tool_traits(), earlier)
    texts = {entry.id: texts_of(entry) for entry in path}
    return encode_lines(choose_lines(anchors, Source(texts), budget, words, shown))


def test_a_name_brings_the_whole_line_it_stood_in_last_in_the_order_of_its_entry():
    build = PathBuilder()
    build.run(
        "read",
        {"path": "src/app.py"},
        "import os\ndef load_config(path, *, strict=True):\n    pass",
    )
    build.say("I will change load_config\nand then test it")
    newest = build.run(
        "grep",
        {"pattern": "x"},
        "src/app.py:2: def load_config(path, *, strict=False):\nsrc/b.py:1: x",
    )
    (line, *_) = [line for line in kept(build.path, 100) if "strict" in line]
    assert line.startswith(f"#{newest.id}: ")
    assert "src/app.py:2: def load_config(path, *, strict=False):" in line

    build = PathBuilder()
    build.run("read", {"path": "a.py"}, "first_name = 1\nsecond_name = 2\nthird_name = 3")
    build.user("what of second_name?")
    build.run("read", {"path": "a.py"}, "first_name = 1\nsecond_name = 2\nthird_name = 3")
    (line,) = [line for line in kept(build.path, 60) if "first_name" in line]
    assert line.split(": ", 1)[1].split("\n")[:3] == [
        "first_name = 1",
        "second_name = 2",
        "third_name = 3",
    ]


def test_demands_leave_room_for_names_and_cheap_lines_for_what_the_agent_found():
    build = PathBuilder()
    for number in range(40):
        build.user(
            f"You must never do thing number {number} of all the many things there are to do."
        )
    build.say("load_config")
    lines = "\n".join(kept(build.path, 200))
    assert "load_config" in lines
    assert 0 < lines.count("You must never") < 5

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
    again = choose_lines(
        anchors, Source({50: "nothing to see"}, earlier=decode_lines(carried)[0]), 100, words, ""
    )
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
    chosen = choose_lines(
        anchors, Source({build.path[-2].id: texts_of(build.path[-2])}), 400, words, ""
    )
    assert all(len(line) <= 300 for line in chosen.get(build.path[-2].id, [])[:-1])


# What parts names from their lines: numbers at the end, units, breaks of all kinds, ends of sentences, long lines.
fillers = st.sampled_from(
    ["", "word " * 70, "x" * 301, "Short. ", "never do it. ", "Error: refused at "]
)
names = st.sampled_from(["took 30", "1,200", "load_config", "src/app.py:3", "a.b.c", "1f2e3d4c5b"])
breaks = st.sampled_from([" ", "\n", "\r\n", "\u2028", "\x0b", "\n\n", "\t", "\u00a0", ". ", "。"])
units = st.sampled_from(["ms", "bytes", "lines", "%", "word", "seconds"])
line_texts = st.tuples(fillers, names, breaks, units, breaks, fillers, st.text(max_size=3)).map(
    "".join
)
long_texts = st.lists(line_texts, min_size=1, max_size=6).map("".join)


@given(
    said=st.lists(long_texts, min_size=1, max_size=4),
    foreign=st.lists(st.text(min_size=1, max_size=6), max_size=3),
    budget=st.integers(-5, 400),
)
@settings(max_examples=EXAMPLES, deadline=None)
def test_any_text_has_lines_to_keep(said, foreign, budget):
    build = PathBuilder()
    for text in said:
        build.say(text)
        build.run("bash", {"command": text}, text)
    carried = [Anchor("path", name, 1, 1.0, 1) for name in foreign]
    anchors = (*find_anchors(build.path, tool_traits()), *carried)
    assert all("\n" not in anchor.text for anchor in anchors if anchor.kind == "number")
    lines = choose_lines(anchors, Source.of(build.path), budget, words, "")
    assert set(lines) <= {entry.id for entry in build.path}
