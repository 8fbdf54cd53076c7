"""Finding and replacing text: what is looked past, what is refused, what stays untouched."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tui_agent.editing.matching import NoMatchError, Replacement, replace

FOUR = "    if x:\n        go()\n"
TABS = "\tif x:\n\t\tgo()\n"
CODE = "def a():\n    x = 1\n    return x\n\n\ndef b():\n    y = 2\n    return y\n"


def edited(text: str, old: str, new: str, *, everywhere: bool = False) -> str:
    return replace(text, Replacement(old, new, everywhere)).text


def test_several_places_are_named() -> None:
    with pytest.raises(NoMatchError, match=r"2 times \(lines 1, 6\)"):
        edited(CODE, "def ", "async def ")


def test_overlapping_places_are_ambiguous_too() -> None:
    with pytest.raises(NoMatchError, match="2 times"):
        edited("aaa", "aa", "b")


def test_all_places() -> None:
    done = replace(CODE, Replacement("return ", "yield ", everywhere=True))
    assert done.text == CODE.replace("return ", "yield ")
    assert done.count == 2


def test_line_endings_of_the_file_are_kept() -> None:
    crlf = CODE.replace("\n", "\r\n")
    done = replace(crlf, Replacement("    x = 1\n    return x\n", "    x = 1\n    x += 1\n    return x\n"))
    assert done.loosely == "line endings"
    assert done.text == CODE.replace("    x = 1\n", "    x = 1\n    x += 1\n").replace("\n", "\r\n")


def test_new_lines_in_a_one_line_match_get_the_file_s_line_ending() -> None:
    assert edited("a\r\nb\r\nc\r\n", "b", "b1\nb2") == "a\r\nb1\r\nb2\r\nc\r\n"


def test_mixed_line_endings_stay_where_nothing_changed() -> None:
    assert edited("a\nb\r\nc\nd\r\n", "c", "C\nC") == "a\nb\r\nC\nC\nd\r\n"


def test_white_space_at_line_ends_is_looked_past_and_kept_on_unchanged_lines() -> None:
    text = "one  \ntwo\t\nthree\n"
    done = replace(text, Replacement("one\ntwo\nthree", "one\n2\nthree"))
    assert done.loosely == "white space at line ends"
    assert done.text == "one  \n2\nthree\n"


def test_trailing_space_in_old_does_not_match_inside_a_word() -> None:
    with pytest.raises(NoMatchError):
        edited("foobar\n", "foo ", "x")


def test_typographic_characters_are_looked_past_and_kept_on_unchanged_lines() -> None:
    text = 'title = “Hello”\nnote = "it’s fine – really"\nend\n'
    done = replace(text, Replacement('title = "Hello"\nnote = "it\'s fine - really"\nend', 'title = "Hello"\nend'))
    assert done.loosely == "typographic characters"
    assert done.text == "title = “Hello”\nend\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if x:\n    go()\n", "if x:\n    stop()\n"),
        ("  if x:\n      go()\n", "  if x:\n      stop()\n"),
        ("        if x:\n            go()\n", "        if x:\n            stop()\n"),
    ],
)
def test_a_uniform_shift_of_indentation_is_looked_past(old: str, new: str) -> None:
    text = "class A:\n    if x:\n        go()\n"
    done = replace(text, Replacement(old, new))
    assert done.loosely == "indentation"
    assert done.text == "class A:\n    if x:\n        stop()\n"


@pytest.mark.parametrize("old", ["if x:\n    go()\n", "if x:\n\tgo()\n", "  if x:\n\t  go()\n"])
def test_an_uneven_shift_is_no_match(old: str) -> None:
    with pytest.raises(NoMatchError):
        edited("    if x:\n          go()\n      stop()\n", f"{old}stop()\n", "if y:\n    go()\n")


@pytest.mark.parametrize(
    ("text", "old", "new", "result"),
    [
        (FOUR, "\tif x:\n\t\tgo()", "\tif y:\n\t\tif z:\n\t\t\tgo()", "    if y:\n        if z:\n            go()\n"),
        (TABS, "  if x:\n    go()", "  if y:\n    go()\n  else:\n    no()", "\tif y:\n\t\tgo()\n\telse:\n\t\tno()\n"),
        (FOUR, "  if x:\n    go()", "  if y:\n    go()\n\n  end", "    if y:\n        go()\n\n    end\n"),
        ("    go()\n", "\tgo()", "\tif x:\n\t\tgo()", "    if x:\n        go()\n"),
        ("      if x:\n        go()\n", " if x:\n  go()", " if y:\n  go()", "      if y:\n        go()\n"),
    ],
)  # fmt: skip
def test_another_indentation_is_looked_past_and_the_files_is_kept(text: str, old: str, new: str, result: str) -> None:
    done = replace(text, Replacement(old, new))
    assert (done.text, done.loosely) == (result, "indentation")


def test_an_indentation_that_has_no_place_in_the_files_is_no_match() -> None:
    with pytest.raises(NoMatchError):
        edited("\tif x:\n\t\tgo()\n", "  if x:\n    go()", "  if x:\n   go()")
    with pytest.raises(NoMatchError):  # one line tells no scale, and which of the two is meant stays open
        edited("      go()\n    go()\n", "        go()\n", "        go()\nend\n")


@pytest.mark.parametrize(
    ("text", "old", "new", "result"),
    [
        ("one\ntwo", "two\n", "2\n", "one\n2"),
        ("one\ntwo\n", "\n\none\ntwo\n\n", "\n1\n2\n", "1\n2\n"),
        ("  a\n  b\n", "\na\nb\n\n", "\nA\nb\n\n", "  A\n  b\n"),
    ],
)
def test_blank_lines_around_it_are_looked_past(text: str, old: str, new: str, result: str) -> None:
    done = replace(text, Replacement(old, new))
    assert done.text == result
    assert done.loosely.startswith("blank lines")


@pytest.mark.parametrize(
    ("text", "old", "new", "result"),
    [
        ('a = "x"\nb = 2\n', 'a = \\"x\\"', 'a = \\"y\\"', 'a = "y"\nb = 2\n'),
        ('a = "x"\nb = 2\n', 'a = "x"\\nb = 2', 'a = "y"\\nb = 3', 'a = "y"\nb = 3\n'),
        ("<b>Tom & Co</b>\n", "&lt;b&gt;Tom &amp; Co&lt;/b&gt;", "&lt;i&gt;Tom&lt;/i&gt;", "<i>Tom</i>\n"),
        ('s = "x"\n', 's = \\"x\\"', 's = \\"a\\n\\"', 's = "a\\n"\n'),
    ],
)
def test_one_escaping_too_many_is_undone(text: str, old: str, new: str, result: str) -> None:
    done = replace(text, Replacement(old, new))
    assert (done.text, done.loosely) == (result, "escapes")


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ('a = "x"\n', 'a = \\"x\\"', 'a = "\\"y\\""'),
        ("a\nb\n", "a\\nb", "a\nb\\nc"),
        ("a < b\n", "a &lt; b", "a &lt; b < c"),
    ],
)
def test_escapes_beside_the_same_written_plainly_are_meant(text: str, old: str, new: str) -> None:
    with pytest.raises(NoMatchError):
        edited(text, old, new)


def test_indented_match_without_a_last_newline_keeps_the_file_s() -> None:
    assert edited("  a\r\n  b\r\nc\r\n", "a\nb", "a\nB") == "  a\r\n  B\r\nc\r\n"


def test_an_indented_match_keeps_the_bytes_of_lines_it_leaves_alone() -> None:
    assert edited("  a  \n  b\n  “c”\n", "a\nb\n“c”\n", "a\nB\n“c”\n") == "  a  \n  B\n  “c”\n"


def test_line_numbers_copied_from_read_are_taken_off() -> None:
    done = replace(CODE, Replacement("2\t    x = 1\n3\t    return x", "2\t    x = 9\n3\t    return x"))
    assert done.text == CODE.replace("x = 1", "x = 9")
    assert edited("one\ntwo\n", "1: one\n2: two", "1: one\nnew\n2: 2") == "one\nnew\n2\n"
    assert edited("one\ntwo\n", "     2→two", "2") == "one\n2\n"
    with pytest.raises(NoMatchError):
        edited("one\ntwo\n", "1: one\n1: two", "x")


def test_a_loose_match_must_be_the_only_one() -> None:
    with pytest.raises(NoMatchError, match="2 times"):
        edited("a \nb\na\t\nb\n", "a\nb", "c")


def test_the_closest_place_is_told() -> None:
    with pytest.raises(NoMatchError) as told:
        edited(CODE, "    x = 1\n    return z", "pass")
    assert str(told.value) == (
        "old was not found. Closest is this, but line 3 in old is 'return z':\n2\t    x = 1\n3\t    return x"
    )
    with pytest.raises(NoMatchError, match=r"ends after line 8, old goes on with 'more':\n7\t.*\n8\t    return y$"):
        edited(CODE, "    y = 2\n    return y\nmore", "pass")
    with pytest.raises(NoMatchError, match=r"Lines 1-3 differ from it in white space only.*:\n1\ta\n2\t  b\n3\t c$"):
        edited("a\n  b\n c\n", "a\n b\n  c", "x")


def test_the_closest_line_is_told_when_no_line_is_there() -> None:
    with pytest.raises(NoMatchError, match=r"Closest is:\n2\t    x = 1$"):
        edited(CODE, "    x == 1", "pass")


def test_nothing_alike() -> None:
    with pytest.raises(NoMatchError, match="nor anything like it"):
        edited(CODE, "@@@@@@@@", "pass")


LINES = st.lists(st.text(alphabet="ab \t“-–'", max_size=6), min_size=1, max_size=12)
ENDINGS = st.sampled_from(["\n", "\r\n"])


@st.composite
def files(draw: st.DrawFn) -> str:
    return "".join(line + draw(ENDINGS) for line in draw(LINES)) + draw(st.text(alphabet="ab", max_size=3))


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
    old = "\n".join(line.rstrip() for line in lines[first : last + 1]).replace("“", '"').replace("–", "-")
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
    changed = [index for index, (a, b) in enumerate(zip(lines, result, strict=True)) if a.rstrip() != b.rstrip()]
    assert changed in ([at], [])


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
def test_the_time_it_takes_grows_with_the_text_alone(text: str, wanted: Replacement, count: int) -> None:
    """Each of them took minutes, or for ever."""
    assert replace(text, wanted).count == count


def test_many_places_are_not_all_counted() -> None:
    with pytest.raises(NoMatchError, match="at least 100 times"):
        replace("a" * 600_000, Replacement("a" * 100_000, "b"))


@pytest.mark.timeout(60)
def test_the_closest_of_many_lines_that_are_alike_is_told_in_time() -> None:
    text = "".join(f"{'abcdef ' * 20}{number}\n" for number in range(20_000))
    with pytest.raises(NoMatchError, match="Closest is"):
        replace(text, Replacement("abcdef abcdfe " * 10, "x"))
