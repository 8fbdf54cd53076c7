"""A server that the sandbox keeps something from: the message names it, and the setting that gives it."""

from functools import partial
from pathlib import Path

from tests.support.contained import Contained, needs_layer
from tui_agent.agent.mcp.containment import Containment


@needs_layer
def test_paths_that_are_there_and_not_in_the_view_are_named(tmp_path: Path) -> None:
    box = Contained(tmp_path / "home")
    tool, lost = box.file("tools/x/index.js", at=box.home), box.file("lib/own.js", at=box.home)
    box.file("src/inside.js")
    sees = partial(box.sandbox.shows, project=box.root)
    found = Containment(
        box.root, ("/usr/bin/env", str(tool), "/", "src/inside.js", "--port=1"), sees, {}
    )
    assert (
        found.lacks("")
        == f"it can't see {tool} in the sandbox: add it to [sandbox] read in config.toml"
    )
    said = (
        f"Error: Cannot find module '{lost}'\n at /usr/bin/env /dev/null "
        f"{tmp_path}/nowhere {box.root}/src/inside.js:3"
    )
    assert str(lost) in found.lacks(said)
    assert Containment(box.root, ("env",), sees, {}).lacks("bye /usr/bin/env /dev/null") == ""
    assert (
        Containment(box.root, ("env",), sees, {"npm.corp": "No command reaches it."}).lacks("")
        == "No command reaches it"
    )
