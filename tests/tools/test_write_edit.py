"""``write`` and ``edit`` on real files: what is refused, what is kept, what is told."""

import os

import pytest

from tests.support.tooling import Workspace
from tui_agent.agent.events import PermissionRequest
from tui_agent.app.permission_text import question
from tui_agent.errors import ToolError
from tui_agent.permission import Permission
from tui_agent.tools.arguments import parse_arguments
from tui_agent.tools.edit import EditTool
from tui_agent.tools.read import ReadTool
from tui_agent.tools.write import WriteTool

READ, WRITE, EDIT = ReadTool(), WriteTool(), EditTool()
TEXT = "def a():\n    return 1\n\n\ndef b():\n    return 2\n"


def one(old: str, new: str, **more: bool) -> list[dict[str, object]]:
    return [{"old": old, "new": new, **more}]


async def test_write_creates_directories(space: Workspace) -> None:
    result = await space.call(WRITE, path="a/b/c.txt", content="x\ny\n")
    assert (space.root / "a/b/c.txt").read_text() == "x\ny\n"
    assert result.output == "Created a/b/c.txt (2 lines)."
    assert result.metadata.additions == 2
    assert result.metadata.modified_files == ("a/b/c.txt",)
    assert result.metadata.diff == "--- /dev/null\n+++ b/a/b/c.txt\n@@ -0,0 +1,2 @@\n+x\n+y\n"


async def test_write_refuses_what_was_never_read_or_changed_since(space: Workspace) -> None:
    path = space.file("a.txt", "old")
    with pytest.raises(ToolError, match="have not read it"):
        await space.call(WRITE, path="a.txt", content="x")
    assert path.read_text() == "old"
    await space.call(READ, path="a.txt")
    path.write_text("somebody else's")
    with pytest.raises(ToolError, match=r"changed since it was read. Read it again"):
        await space.call(WRITE, path="a.txt", content="x")
    assert path.read_text() == "somebody else's"


async def test_write_keeps_encoding_endings_mode_and_link(space: Workspace) -> None:
    target = space.file("real.txt", "\ufeffé\r\nb\r\n")
    target.chmod(0o750)
    (space.root / "link.txt").symlink_to(target)
    await space.call(READ, path="link.txt")
    await space.call(WRITE, path="link.txt", content="ü\nc\n")
    assert target.read_bytes() == "\ufeffü\r\nc\r\n".encode()
    assert target.stat().st_mode & 0o777 == 0o750
    assert (space.root / "link.txt").is_symlink()
    assert sorted(path.name for path in space.root.iterdir()) == [".git", "link.txt", "real.txt"]


async def test_write_refuses_characters_the_encoding_lacks(space: Workspace) -> None:
    path = space.file("a.txt", b"caf\xe9\n")
    await space.call(READ, path="a.txt")
    with pytest.raises(ToolError, match="cp1252, which has no '→'"):
        await space.call(WRITE, path="a.txt", content="→\n")
    assert path.read_bytes() == b"caf\xe9\n"


async def test_a_file_with_two_names_keeps_both(space: Workspace) -> None:
    path = space.file("a.txt", "1\n")
    os.link(path, space.root / "b.txt")
    await space.call(EDIT, path="a.txt", edits=one("1", "2"))
    assert (space.root / "b.txt").read_text() == "2\n"


async def test_edits_apply_in_order_and_are_shown_with_line_numbers(space: Workspace) -> None:
    path = space.file("a.py", TEXT)
    edits = [
        {"old": "return 1", "new": "x = 1\n    return x"},
        {"old": "    return x\n", "new": "    return x + 1\n"},
    ]
    result = await space.call(EDIT, path="a.py", edits=edits)
    assert path.read_text() == TEXT.replace("return 1", "x = 1\n    return x + 1")
    assert result.output == (
        "Edited a.py: 2 places, +2 -1. Now:\n1\tdef a():\n2\t    x = 1\n3\t    return x + 1\n4\t"
    )
    assert "-    return 1\n+    x = 1\n+    return x + 1\n" in result.metadata.diff
    assert (result.metadata.additions, result.metadata.deletions) == (2, 1)


async def test_an_empty_file_and_a_long_line_are_told(space: Workspace) -> None:
    space.file("a.txt", "a" * 200 + "\n")
    result = await space.call(EDIT, path="a.txt", edits=one("a" * 200, "b" * 200))
    assert result.output.endswith(f"\n1\t{'b' * 160}…")
    result = await space.call(EDIT, path="a.txt", edits=one("b" * 200 + "\n", ""))
    assert result.output == "Edited a.txt: 1 place, +0 -1. The file is empty now."
    with pytest.raises(ToolError, match=r"Read the file again\. The file is empty\.$"):
        await space.call(EDIT, path="a.txt", edits=one("a", "b"))


async def test_all_edits_or_none(space: Workspace) -> None:
    path = space.file("a.py", TEXT)
    edits = [{"old": "return 1", "new": "return 9"}, {"old": "nowhere at all", "new": "x"}]
    with pytest.raises(ToolError, match=r"^Nothing was changed\. Edit 2 of 2: old was not found"):
        await space.call(EDIT, path="a.py", edits=edits)
    assert path.read_text() == TEXT


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        (one("return 1", "return 1"), "old and new are the same"),
        (one("", "x"), "old is empty"),
        (one("    return", "x"), r"2 times \(lines 2, 6\)"),
        ([{"old": "1", "new": "3"}, {"old": "3", "new": "1"}], "don't change a.py"),
        (
            [{"old": "return 1", "new": "pass"}, {"old": "    return 1", "new": "x"}],
            "an earlier edit changed the same",
        ),
        (
            one("return one", "    return 1"),
            r"old was not found, but the file already contains new, at line 2\.\nThe file is:\n1\t",
        ),
    ],
)
async def test_edits_that_make_no_sense(
    space: Workspace, edits: list[dict[str, object]], message: str
) -> None:
    path = space.file("a.py", TEXT)
    with pytest.raises(ToolError, match=message):
        await space.call(EDIT, path="a.py", edits=edits)
    assert path.read_text() == TEXT


async def test_a_failed_call_shows_the_small_file_as_it_is(space: Workspace) -> None:
    space.file("a.py", "x = 1\ny = 2\n")
    edits = [{"old": "x = 1", "new": "x = 9"}, {"old": "y = 2", "new": "y = 2"}]
    with pytest.raises(ToolError, match=r"The file is:\n1\tx = 1\n2\ty = 2$"):
        await space.call(EDIT, path="a.py", edits=edits)


async def test_edit_refuses_a_file_that_changed_since(space: Workspace) -> None:
    path = space.file("a.py", TEXT)
    await space.call(READ, path="a.py")
    path.write_text(TEXT + "# by hand\n")
    with pytest.raises(ToolError, match="Read it again"):
        await space.call(EDIT, path="a.py", edits=one("return 1", "return 9"))
    await space.call(READ, path="a.py")
    await space.call(EDIT, path="a.py", edits=one("return 1", "return 9"))
    await space.call(EDIT, path="a.py", edits=one("return 9", "return 8"))
    assert path.read_text() == TEXT.replace("return 1", "return 8") + "# by hand\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("\ufeffa = 1\r\nb = 2".encode(), "\ufeffa = 9\r\nb = 2".encode()),
        ("﻿a = 1\nb".encode("utf-16-le"), "﻿a = 9\nb".encode("utf-16-le")),
        (b"caf\xe9\na = 1", b"caf\xe9\na = 9"),
    ],
)
async def test_edit_keeps_encoding_mark_endings_and_missing_newline(
    space: Workspace, before: bytes, after: bytes
) -> None:
    path = space.file("a.txt", before)
    await space.call(EDIT, path="a.txt", edits=one("a = 1", "a = 9"))
    assert path.read_bytes() == after


async def test_edit_refuses_characters_the_encoding_lacks(space: Workspace) -> None:
    path = space.file("a.txt", b"caf\xe9\n")
    with pytest.raises(ToolError, match="cp1252, which has no '→'"):
        await space.call(EDIT, path="a.txt", edits=one("caf", "→"))
    assert path.read_bytes() == b"caf\xe9\n"


async def test_a_loose_match_is_told(space: Workspace) -> None:
    space.file("a.txt", "say “hi”\n")
    result = await space.call(EDIT, path="a.txt", edits=one('say "hi"', "say nothing"))
    assert "old differed from the file in typographic characters" in result.output


async def test_a_long_change_is_told_in_part(space: Workspace) -> None:
    space.file("a.txt", "start\n")
    new = "\n".join(f"line {n}" for n in range(500))
    result = await space.call(EDIT, path="a.txt", edits=one("start", new))
    assert result.output.count("\n") < 20
    assert "500\tline 499" in result.output


async def test_single_edits_in_other_shapes(space: Workspace) -> None:
    path = space.file("a.txt", "1\n")
    await space.call(EDIT, path="a.txt", old_string="1", new_string="2")
    await space.call(EDIT, file_path="a.txt", edits={"old": "2", "new": "3"})
    await space.call(EDIT, path="a.txt", edits='[{"oldText": "3", "newText": "4"}]')
    await space.call(
        EDIT, path="a.txt", edits=[{"oldString": "4", "newString": "5", "replaceAll": False}]
    )
    await space.call(EDIT, path="a.txt", search="5", replace="6")
    await space.call(
        EDIT,
        edits=[
            {"path": "a.txt", "old": "6", "new": "7"},
            {"path": "a.txt", "old": "7", "new": "8"},
        ],
    )
    assert path.read_text() == "8\n"
    with pytest.raises(ToolError, match="path is missing"):
        await space.call(
            EDIT,
            edits=[
                {"path": "a.txt", "old": "8", "new": "9"},
                {"path": "b", "old": "7", "new": "8"},
            ],
        )


async def test_a_file_to_be_edited_that_is_nowhere_is_made_with_write(space: Workspace) -> None:
    with pytest.raises(ToolError, match=r"^new\.py does not exist\. To create it use write\.$"):
        await space.call(EDIT, path="new.py", edits=one("", "x"))


async def test_content_of_a_json_file_may_be_what_it_stands_for(space: Workspace) -> None:
    await space.call(WRITE, path="a.json", content={"a": ["ä", 1]})
    assert (space.root / "a.json").read_text() == '{\n  "a": [\n    "ä",\n    1\n  ]\n}\n'
    with pytest.raises(ToolError, match="content: input should be a valid string"):
        await space.call(WRITE, path="a.txt", content=["a"])


async def test_a_path_with_a_slash_at_its_end_is_no_file(space: Workspace) -> None:
    with pytest.raises(ToolError, match=r"^new/ is a directory"):
        await space.call(WRITE, path="new/", content="x")
    assert not (space.root / "new").exists()


async def test_a_read_only_file_stays(space: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    path = space.file("a.txt", "1\n")
    real = os.access
    monkeypatch.setattr(os, "access", lambda p, mode, **at: p != path.name and real(p, mode, **at))
    with pytest.raises(ToolError, match="permission denied"):
        await space.call(EDIT, path="a.txt", edits=one("1", "2"))
    assert path.read_text() == "1\n"


async def test_a_failed_write_leaves_the_old_file(
    space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = space.file("a.txt", "1\n")

    def full(*_: object, **_places: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(ToolError, match="no space left"):
        await space.call(EDIT, path="a.txt", edits=one("1", "2"))
    assert path.read_text() == "1\n"
    assert [entry.name for entry in space.root.iterdir() if entry.name.endswith(".tmp")] == []


def test_edit_asks_with_the_diff_and_says_at_once_what_cannot_work(space: Workspace) -> None:
    space.file("a.py", TEXT)
    arguments = parse_arguments(
        EDIT, '{"path": "a.py", "edits": [{"old": "return 1", "new": "return 9"}]}'
    )
    (need,) = EDIT.needs(arguments, space.context())  # type: ignore[arg-type]
    assert need.permission is Permission.EDIT
    assert "+    return 9" in need.detail
    bad = parse_arguments(EDIT, '{"path": "a.py", "edits": [{"old": "def a(x):", "new": "x"}]}')
    with pytest.raises(ToolError, match=r"The closest line is:\n1\tdef a"):
        EDIT.needs(bad, space.context())  # type: ignore[arg-type]
    # The last of the three makes a repository, whose settings git obeys.
    for name in ("bare/HEAD", "bare/refs/x", "bare/objects/x"):
        asked = WriteTool().needs(WriteTool.Input(path=name, content="x"), space.context())
        space.file(name)
        assert [need.pattern for need in asked][1:] == ["bare/.git"] * ("objects" in name)


@pytest.mark.parametrize("name", [".env", "../outside.txt"])
def test_a_failing_edit_tells_nothing_of_a_file_nobody_allowed(space: Workspace, name: str) -> None:
    space.file(name, "TOKEN = abc123\n")
    arguments = parse_arguments(
        EDIT, f'{{"path": "{name}", "edits": [{{"old": "TOKEN = abc", "new": "x\\n"}}]}}'
    )
    assert EDIT.needs(arguments, space.context())[0].permission is Permission.EDIT  # type: ignore[arg-type]
    wrong = parse_arguments(
        EDIT, f'{{"path": "{name}", "edits": [{{"old": "TOKEN = zzz", "new": "x"}}]}}'
    )
    needs = EDIT.needs(wrong, space.context())  # type: ignore[arg-type]
    assert needs[0].detail == ""


def test_a_failing_edit_tells_nothing_of_a_file_a_rule_keeps_from_being_read(
    space: Workspace,
) -> None:
    space.file("plans.txt", "buy = gold\n")
    context = space.context()
    context.verdict = lambda need: "deny" if need.permission is Permission.READ else "ask"
    wrong = parse_arguments(
        EDIT, '{"path": "plans.txt", "edits": [{"old": "buy = silver", "new": "x"}]}'
    )
    assert EDIT.needs(wrong, context)[0].detail == ""  # type: ignore[arg-type]


def test_a_change_that_must_fail_is_refused_before_the_question(
    space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    space.file("file")
    below = WRITE.Input(path="file/below.txt", content="x")
    with pytest.raises(ToolError, match=r"file/below.txt: not a directory"):
        WRITE.needs(below, space.context())
    monkeypatch.setattr(os, "access", lambda *_given, **_more: False)
    missing = WRITE.Input(path="new/deep/a.txt", content="x")
    with pytest.raises(ToolError, match="permission denied"):
        WRITE.needs(missing, space.context())


def test_the_question_about_a_link_names_the_file_that_changes(space: Workspace) -> None:
    space.file("real/other.txt", "1\n")
    (space.root / "notes.txt").symlink_to("real/other.txt")
    arguments = EDIT.Input(path="notes.txt", edits=one("1", "2"))
    request = PermissionRequest(
        call_id="1",
        tool="edit",
        title="notes.txt",
        needs=EDIT.needs(arguments, space.context()),
        reason="",
        rules=(),
    )
    assert question(request) == "Change notes.txt → real/other.txt (+1 −1)?"
