"""A project as it is seen with all the time there is."""

from pathlib import Path

from tui_agent.files.secret_search import SecretSearch
from tui_agent.sandbox.project_scan import ProjectScan, walk_project


def scan_project(root: Path) -> ProjectScan:
    """Return all of a project with its secrets, however long that takes."""
    found = walk_project(root, lambda: True)
    found.search(SecretSearch(), lambda: True)
    return found
