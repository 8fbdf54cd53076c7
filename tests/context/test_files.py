import pytest

from tests.support.session_paths import PathBuilder
from tui_agent.context.files import FileOperations, call_path, file_operations
from tui_agent.context.rendering import carried_blocks
from tui_agent.session.entries import FilePart, SummaryDetails, ToolMetadata, ToolStatus, UserEntry
from tui_agent.tools.registry import tool_traits


def test_sources_of_file_operations_and_that_the_last_touch_counts():
    build = PathBuilder()
    build.add(UserEntry(parts=(FilePart(path="attached.md", text="x"),)))
    build.run("read", {"path": "./src/a.py"}, "text")
    build.run("read", {"path": "missing.py"}, "no such file", status=ToolStatus.ERROR)
    build.run("write", {"file_path": "src/b.py", "content": "x"}, "ok")
    build.run(
        "bash", {"command": "x"}, "ok", metadata=ToolMetadata(modified_files=("gen.py",), read_files=("seen.py",))
    )
    build.run("grep", {"path": "src"}, "matches")
    build.checkpoint("by_shell.py")
    assert file_operations(build.path, tool_traits()) == FileOperations(
        read=("attached.md", "src/a.py", "seen.py"), modified=("src/b.py", "gen.py", "by_shell.py")
    )

    build = PathBuilder()
    for path in ("a", "b", "c"):
        build.run("read", {"path": path}, "text")
    build.run("edit", {"path": "b"}, "ok")
    build.run("read", {"path": "a"}, "text")
    assert file_operations(build.path, tool_traits()) == FileOperations(read=("c", "a"), modified=("b",))

    build = PathBuilder()
    build.branch_summary("b", from_id=9, details=SummaryDetails(read_files=("r1",), modified_files=("m1",)))
    build.compaction("s", None, details=SummaryDetails(read_files=("r2", "m1")))
    earlier = SummaryDetails(read_files=("r0",), modified_files=("r2",))
    assert file_operations(build.path, tool_traits(), earlier) == FileOperations(
        read=("r0", "r1"), modified=("r2", "m1")
    )


@pytest.mark.parametrize("arguments", ["", "{", "[1]", '{"path": 3}', '{"path": ""}', '{"pattern": "x"}', "[" * 5000])
def test_arguments_without_a_path(arguments):
    assert call_path(arguments) is None


def test_only_the_newest_files_of_a_long_list_are_shown():
    operations = FileOperations(read=tuple(f"r{n}" for n in range(100)), modified=tuple(f"m{n}" for n in range(3)))
    shown = operations.shown(12, lambda text: len(text.split("\n")))
    assert shown == 8
    details = SummaryDetails(read_files=operations.read, modified_files=operations.modified, shown_files=shown)
    text = carried_blocks(details)
    assert "<read-files>\n(92 earlier files not listed)\nr92\n" in text
    assert "r91\n" not in text
    assert "<modified-files>\nm0\nm1\nm2\n</modified-files>" in text


def test_a_file_is_listed_with_the_newest_entry_that_told_of_it():
    build = PathBuilder()
    for path in ("/home/someone/project/src/a.py", "/home/someone/project/b.py", "/home/someone/project/src/a.py"):
        build.run("read", {"path": path}, "text")
    newest, other = build.path[-1].id, build.path[-3].id
    operations = file_operations(build.path, tool_traits(), SummaryDetails(read_files=("/home/someone/project/c.py",)))
    details = SummaryDetails(read_files=operations.read, file_ids=dict(operations.ids))
    assert carried_blocks(details).split("\n")[1:-1] == [
        "/home/someone/project/c.py",
        f"/home/someone/project/b.py #{other}",
        f"/home/someone/project/src/a.py #{newest}",
    ]
    assert file_operations([], tool_traits(), details).ids == operations.ids
    # Where the room is short, their directory is told once.
    number = operations.shown(80, len)
    short = carried_blocks(details.model_copy(update={"shown_files": number}))
    assert short.split("\n")[1:-1] == ["/home/someone/project/", "c.py", f"b.py #{other}", f"src/a.py #{newest}"]
