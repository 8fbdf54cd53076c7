"""Diffs on the screen: one below the other, side by side, in colours, and copied as text."""

from functools import partial

from textual.app import App, ComposeResult
from textual.geometry import Offset
from textual.selection import Selection

from tests.support.ui_app import until
from tui_agent.resources import style_path
from tui_agent.ui.contrast import readable_variables
from tui_agent.ui.widgets.transcript.bodies import body_lines
from tui_agent.ui.widgets.transcript.diffs import (
    MIN_SPLIT_WIDTH,
    changed_parts,
    diff_body,
    read_diff,
)
from tui_agent.ui.widgets.transcript.line_view import LineView, diff_lines
from tui_agent.ui.widgets.transcript.lines import Line, spans_width

DIFF = """--- a/x.py
+++ b/x.py
@@ -8,4 +8,3 @@
 def f(a):
-    return a + 1
-    # gone
+    return a + 2
 last = 日本
@@ -90 +89,2 @@
 end
+    added = "text"
"""


def drawn(line: Line) -> str:
    return "".join(text for text, _ in (*line.prefix, *line.content(), *line.tail)).rstrip()


def lines(width: int, diff: str = DIFF) -> list[Line]:
    return list(body_lines(diff_body(diff, width), width))


def test_a_wide_diff_has_the_old_beside_the_new() -> None:
    shown = [drawn(line) for line in lines(MIN_SPLIT_WIDTH)]
    halves = [[half.rstrip() for half in row.split(" │ ")] for row in shown]
    assert halves == [
        ["   8   def f(a):", " 8   def f(a):"],
        ["   9 -     return a + 1", " 9 +     return a + 2"],
        ["  10 -     # gone │"],
        ["  11   last = 日本", "10   last = 日本"],
        ["  ⋯"],
        ["  90   end", "89   end"],
        ["", '90 +     added = "text"'],
    ]


def test_no_line_is_wider_than_its_room_and_the_middle_stays_where_it_is() -> None:
    diff = DIFF.replace("# gone", "# " + "日本 and more " * 30).replace("a + 2", "a + " + "b" * 200)
    for width in (MIN_SPLIT_WIDTH, MIN_SPLIT_WIDTH + 1, 187):
        shown = lines(width, diff)
        assert all(
            spans_width((*line.prefix, *line.content(), *line.tail)) <= width for line in shown
        )
        middles = {spans_width(line.prefix[: line.prefix.index((" │ ", "rule"))]) for line in shown
                   if (" │ ", "rule") in line.prefix}  # fmt: skip
        assert len(middles) == 1
        assert "".join(line.text for line in shown).count("b" * 60) >= 1


def test_what_changed_inside_a_line_is_marked() -> None:
    changed = [
        [text for text, style in line.content() if style.endswith("-part")]
        for line in lines(80)[1:4]
    ]
    assert changed == [["1"], [], ["2"]]


def test_lines_that_have_little_in_common_are_not_marked() -> None:
    assert changed_parts("import os", "def run(self) -> None:") == ((), ())
    assert changed_parts("x" * 900, "x" * 901) == ((), ())
    assert changed_parts("call(a, b)", "call(a, c)") == (((8, 9),), ((8, 9),))


def test_a_diff_that_was_cut_says_so_and_a_text_that_is_none_is_shown() -> None:
    cut = "--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n-a\n+b\n\\ The rest of the diff is too long to be shown.\n"
    assert drawn(lines(80, cut)[-1]) == "  The rest of the diff is too long to be shown."
    assert [drawn(line) for line in lines(80, "not a diff")] == ["  not a diff"]


def test_the_lines_of_every_file_are_there_and_a_removed_file_is_known_by_its_old_name() -> None:
    gone = "--- a/y.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-import os\n"
    rows = read_diff("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n" + gone)
    assert [row.text for row in rows] == ["x", "a", "b", "y.py", "import os"]
    assert rows[-1].code.language == "y.py"


class Host(App[None]):
    CSS_PATH = style_path("transcript.tcss")

    def get_css_variables(self) -> dict[str, str]:
        return readable_variables(super().get_css_variables())

    def compose(self) -> ComposeResult:
        yield (view := LineView())
        view.show(partial(diff_lines, DIFF))


async def test_a_selection_copies_the_text_without_numbers_and_signs() -> None:
    app = Host()
    async with app.run_test(size=(60, 20)) as pilot:
        view = app.query_one(LineView)
        assert view.size.height == 8
        found = view.get_selection(Selection(Offset(4, 1), Offset(10, 3)))
        assert found == ("return a + 1\n    # gone\n    return", "\n")
        await pilot.resize_terminal(MIN_SPLIT_WIDTH + 10, 20)
        await until(lambda: view.size.height == 7, pilot)
        found = view.get_selection(Selection(Offset(0, 0), Offset(20, 2)))
        assert found == ("def f(a):\n    return a + 2\n    # gone", "\n")
