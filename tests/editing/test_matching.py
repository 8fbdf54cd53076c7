"""Finding and replacing text: what is looked past, what is refused, what stays untouched."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tui_agent.editing.matching import NoMatchError, Replacement, replace

FOUR = "    if x:\n        go()\n"
TABS = "\tif x:\n\t\tgo()\n"
CODE = "def a():\n    x = 1\n    return x\n\n\ndef b():\n    y = 2\n    return y\n"


@pytest.mark.parametrize(
    ("loosely", "text", "old", "new", "result"),
    [
        ("", "a\r\nb\r\nc\r\n", "b", "b1\nb2", "a\r\nb1\r\nb2\r\nc\r\n"),
        ("", "a\nb\r\nc\nd\r\n", "c", "C\nC", "a\nb\r\nC\nC\nd\r\n"),
        ("line endings", "x\r\ny\r\nz\r\n", "x\ny\n", "x\nX\ny\n", "x\r\nX\r\ny\r\nz\r\n"),
        ("white space at line ends", "one  \ntwo\t\nthree\n", "one\ntwo\nthree", "one\n2\nthree", "one  \n2\nthree\n"),
        ("white space at line ends", "a  \nb  \nc\n", "a\nb", "a\nB", "a  \nB  \nc\n"),
        ("typographic characters", "title = “Hello”\nnote = “it’s – fine”\nend\n",
         'title = "Hello"\nnote = "it\'s - fine"\nend', 'title = "Hello"\nend', "title = “Hello”\nend\n"),
        ("indentation", f"class A:\n{FOUR}", "if x:\n    go()\n", "if x:\n    no()\n",
         "class A:\n    if x:\n        no()\n"),
        ("indentation", FOUR, "        if x:\n            go()\n", "        if x:\n            no()\n",
         "    if x:\n        no()\n"),
        ("indentation", FOUR, "\tif x:\n\t\tgo()", "\tif y:\n\t\tif z:\n\t\t\tgo()",
         "    if y:\n        if z:\n            go()\n"),
        ("indentation", TABS, "  if x:\n    go()", "  if y:\n    go()\n  else:\n    no()",
         "\tif y:\n\t\tgo()\n\telse:\n\t\tno()\n"),
        ("indentation", FOUR, "  if x:\n    go()", "  if y:\n    go()\n\n  end",
         "    if y:\n        go()\n\n    end\n"),
        ("indentation", "    go()\n", "\tgo()", "\tif x:\n\t\tgo()", "    if x:\n        go()\n"),
        ("indentation", "      if x:\n        go()\n", " if x:\n  go()", " if y:\n  go()",
         "      if y:\n        go()\n"),
        ("indentation", "  a\r\n  b\r\nc\r\n", "a\nb", "a\nB", "  a\r\n  B\r\nc\r\n"),
        ("indentation", "  a  \n  b\n  “c”\n", "a\nb\n“c”\n", "a\nB\n“c”\n", "  a  \n  B\n  “c”\n"),
        ("line breaks", "def add(a, b):\n    return a - b\n", "def add(a, b): return a - b",
         "def add(a, b): return a + b", "def add(a, b): return a + b\n"),
        ("line breaks", "if a:\r\n  if x:\r\n    go()\r\n", "if x: go()\n", "no()\n",
         "if a:\r\n  no()\r\n"),
        ("blank lines around it", "one\ntwo", "two\n", "2\n", "one\n2"),
        ("blank lines around it", "one\ntwo\n", "\n\none\ntwo\n\n", "\n1\n2\n", "1\n2\n"),
        ("blank lines and indentation", "  a\n  b\n", "\na\nb\n\n", "\nA\nb\n\n", "  A\n  b\n"),
        ("escapes", 'a = "x"\nb = 2\n', 'a = \\"x\\"', 'a = \\"y\\"', 'a = "y"\nb = 2\n'),
        ("escapes", 'a = "x"\nb = 2\n', 'a = "x"\\nb = 2', 'a = "y"\\nb = 3', 'a = "y"\nb = 3\n'),
        ("escapes", "<b>Tom & Co</b>\n", "&lt;b&gt;Tom &amp; Co&lt;/b&gt;", "&lt;i&gt;Tom&lt;/i&gt;", "<i>Tom</i>\n"),
        ("escapes", 's = "x"\n', 's = \\"x\\"', 's = \\"a\\n\\"', 's = "a\\n"\n'),
        ("line numbers", "a\n    x = 1\n", "2\t    x = 1", "2\t    x = 9", "a\n    x = 9\n"),
        ("line numbers", "one\ntwo\n", "1: one\n2: two", "1: one\nnew\n2: 2", "one\nnew\n2\n"),
        ("line numbers", "one\ntwo\n", "     2→two", "2", "one\n2\n"),
    ],
)  # fmt: skip
def test_what_is_looked_past_stays_as_the_file_has_it(
    loosely: str, text: str, old: str, new: str, result: str
) -> None:
    done = replace(text, Replacement(old, new))
    assert (done.text, done.loosely) == (result, loosely)


UNEVEN = "    if x:\n          go()\n      stop()\n"


@pytest.mark.parametrize(
    ("text", "old", "new", "told"),
    [
        (CODE, "def ", "async def ", r"^old occurs 2 times \(lines 1, 6\)"),
        ("aaa", "aa", "b", "2 times"),
        ("a \nb\na\t\nb\n", "a\nb", "c", "2 times"),
        ("a\n" * 9, "a", "b", r"9 times \(lines 1, 2, 3, 4, 5, 6, 7, 8, \.\.\.\)"),
        ("a" * 600_000, "a" * 100_000, "b", "at least 100 times"),
        ("foobar\n", "foo ", "x", "The closest"),
        ("xab\n", "\nab\n", "c", "The closest"),
        (UNEVEN, "if x:\n    go()\nstop()\n", "if y:\n    go()\n", "only in white space"),
        (UNEVEN, "if x:\n\tgo()\nstop()\n", "if y:\n    go()\n", "only in white space"),
        (UNEVEN, "  if x:\n\t  go()\nstop()\n", "if y:\n    go()\n", "only in white space"),
        (TABS, "  if x:\n    go()", "  if x:\n   go()", "only in white space"),
        # One line tells no scale, and which of the two is meant stays open.
        ("      go()\n    go()\n", "        go()\n", "        go()\nend\n", "only in white space"),
        ('a = "x"\n', 'a = \\"x\\"', 'a = "\\"y\\""', "The closest"),
        ("a\nb\n", "a\\nb", "a\nb\\nc", "not found"),
        ("a < b\n", "a &lt; b", "a &lt; b < c", "The closest"),
        ("one\ntwo\n", "1: one\n1: two", "x", "The closest"),
        ("ab\n", "   ", "x", "only white space, and the file doesn't have exactly that"),
        (CODE, "    x = 1\n    return z", "pass",
         "^old was not found. The closest is this, but line 3 in old is 'return z':\n2\t    x = 1\n3\t    return x$"),
        (CODE, "    y = 2\n    return y\nmore", "pass",
         r"ends after line 8, but old continues with 'more':\n7\t.*\n8\t    return y$"),
        ("a\n  b\n c\n", "a\n b\n  c", "x", r"Lines 1-3 differ from old only in white space.*:\n1\ta\n2\t  b\n3\t c$"),
        (CODE, "    x == 1", "pass", r"The closest line is:\n2\t    x = 1$"),
        (CODE, "@@@@@@@@", "pass", "no line is similar to it"),
    ],
)  # fmt: skip
def test_what_is_not_there_or_not_only_there_is_told(
    text: str, old: str, new: str, told: str
) -> None:
    with pytest.raises(NoMatchError, match=told):
        replace(text, Replacement(old, new))


def test_all_places() -> None:
    done = replace(CODE, Replacement("return ", "yield ", everywhere=True))
    assert (done.text, done.count) == (CODE.replace("return ", "yield "), 2)


LINES = st.lists(st.text(alphabet="ab \t“-–'", max_size=6), min_size=1, max_size=12)
ENDINGS = st.sampled_from(["\n", "\r\n"])


@st.composite
def files(draw: st.DrawFn) -> str:
    return "".join(line + draw(ENDINGS) for line in draw(LINES)) + draw(
        st.text(alphabet="ab", max_size=3)
    )


@given(text=files(), data=st.data())
def test_everything_outside_an_exact_edit_is_the_same(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    old = text[start:end]
    assume(old and text.find(old) == text.rfind(old))
    done = replace(text, Replacement(old, "NEW"))
    assert done.text == text[:start] + "NEW" + text[end:]


@given(text=files(), data=st.data())
def test_a_loose_edit_changes_only_lines_of_its_place(text: str, data: st.DataObject) -> None:
    """Whatever level matches: what is before the first and after the last matched line stays byte for byte."""
    lines = text.split("\n")
    first = data.draw(st.integers(0, len(lines) - 1))
    last = data.draw(st.integers(first, len(lines) - 1))
    old = (
        "\n".join(line.rstrip() for line in lines[first : last + 1])
        .replace("“", '"')
        .replace("–", "-")
    )
    try:
        done = replace(text, Replacement(old, "NEW"))
    except NoMatchError:
        return
    before, found, after = done.text.partition("NEW")
    assert found
    assert text.startswith(before)
    assert text.endswith(after)
    assert len(before) + len(after) <= len(text)


@given(text=files(), data=st.data())
def test_lines_that_old_and_new_share_keep_their_bytes(text: str, data: st.DataObject) -> None:
    lines = text.split("\n")
    old = "\n".join(line.rstrip() for line in lines)
    assume(old.strip())
    at = data.draw(st.integers(0, len(lines) - 1))
    new_lines = [line.rstrip() for line in lines]
    new_lines[at] = "CHANGED"
    try:
        done = replace(text, Replacement(old, "\n".join(new_lines)))
    except NoMatchError:
        return
    assume(done.loosely not in {"", "line numbers"})
    result = done.text.split("\n")
    assert len(result) == len(lines)
    changed = [
        index
        for index, (a, b) in enumerate(zip(lines, result, strict=True))
        if a.rstrip() != b.rstrip()
    ]
    assert changed in ([at], [])


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("text", "wanted", "count"),
    [
        ("x," * 300_000, Replacement("x,", "y,", everywhere=True), 300_000),
        ("x, \r\n" * 40_000, Replacement("x,\n", "y,\n", everywhere=True), 40_000),
        ("    a\n" * 40_000, Replacement("a\n" * 2_000, "b\n" * 2_000, everywhere=True), 20),
        (" " * 600_000 + "x", Replacement(" " * 599_000 + "x", "y"), 1),
    ],
    ids=["one line", "loosely", "indented", "white space"],
)
def test_the_time_it_takes_grows_with_the_text_alone(
    text: str, wanted: Replacement, count: int
) -> None:
    """Each of them took minutes, or for ever."""
    assert replace(text, wanted).count == count


@pytest.mark.timeout(60)
def test_places_whose_indentation_fits_nowhere_end_in_time() -> None:
    text = "  a\n  b\n" * 20_000
    with pytest.raises(NoMatchError):
        replace(text, Replacement("a\n b\n   a\n b\n" * 500, "x"))


@pytest.mark.timeout(60)
def test_the_closest_of_many_lines_that_are_alike_is_told_in_time() -> None:
    text = "".join(f"{'abcdef ' * 20}{number}\n" for number in range(20_000))
    with pytest.raises(NoMatchError, match="The closest"):
        replace(text, Replacement("abcdef abcdfe " * 10, "x"))
