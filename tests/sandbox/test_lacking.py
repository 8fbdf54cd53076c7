"""What a command lacked is read from what it printed."""

from pathlib import Path

import pytest

from tui_agent.sandbox import Grants, View, Writes
from tui_agent.sandbox.lacking import lacking
from tui_agent.sandbox.project_scan import ProjectScan

SOURCES = Grants(sources=True)


@pytest.mark.parametrize(
    ("output", "wanted"),
    [
        ("mkdir: cannot create directory ‘new’: Read-only file system", SOURCES),
        ("touch: cannot touch 'a b.txt': Read-only file system", SOURCES),
        ("bash: line 1: new.txt: Read-only file system", SOURCES),
        ("OSError: [Errno 30] Read-only file system: 'new'", SOURCES),
        ("Error: EROFS: read-only file system, mkdir 'new'", SOURCES),
        ("mkdir: cannot create directory ‘/proc/new’: Read-only file system", Grants()),
        ("mkdir: cannot create directory ‘new’: Permission denied", SOURCES),
        ("bash: line 1: new.txt: Permission denied", SOURCES),
        ("PermissionError: [Errno 13] Permission denied: 'new'", SOURCES),
        ("git@example.org: Permission denied (publickey).", Grants()),
        ("cat: new: No such file or directory", Grants()),
        ("the Read-only file system is a feature", Grants()),
    ],
)
def test_what_could_not_be_made_is_named_by_its_bare_name(
    output: str, wanted: Grants, tmp_path: Path
) -> None:
    view = View(Writes.OUTPUTS)
    assert lacking(output, tmp_path, view, ProjectScan(tmp_path), lambda _path: False) == wanted
