"""Which tool is given what is copied."""

import os
from pathlib import Path

from tui_agent.ui.clipboard import copy_natively


def test_no_tool_of_the_project_gets_what_is_copied(tmp_path: Path) -> None:
    project, system = tmp_path / "project", tmp_path / "system"
    for place in (project, system):
        place.mkdir()
        tool = place / "wl-copy"
        tool.write_text(f"#!/bin/sh\n/bin/cat > {place}/copied\n")
        tool.chmod(0o755)
    environment = {"PATH": f"{project}{os.pathsep}{system}", "WAYLAND_DISPLAY": "wayland-0"}
    assert copy_natively("text", environment, project) == "wl-copy"
    assert (system / "copied").read_text() == "text"
    assert not (project / "copied").exists()
