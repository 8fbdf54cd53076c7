"""``/diagnostics``: what checks edits, on and off."""

import io
from pathlib import Path

from tests.support.agents import make_agent
from tests.support.headless import run_headless
from tests.support.scripted_client import Reply, ScriptedClient
from tui_agent.agent.diagnostics.settings import DiagnosticSettings
from tui_agent.app.status_commands import status_lines


async def test_it_tells_and_switches(tmp_path: Path) -> None:
    settings = DiagnosticSettings(commands={"*.txt": "check {files}"})
    harness = make_agent(tmp_path, ScriptedClient([Reply("Done.")]), diagnostics=settings)
    out, err = io.StringIO(), io.StringIO()

    async def do(command: str, code: int = 0) -> None:
        assert await run_headless(harness, command, out=out, err=err) == code

    await do("/diagnostics")
    assert "Edits are checked." in out.getvalue()
    assert "*.txt: check {files}" in out.getvalue()
    assert "*.py *.pyi: mypy" in out.getvalue()
    await do("/diagnostics off")
    assert not harness.agent.tools.diagnostics.enabled
    assert "diagnostics.enabled = false in the settings" in err.getvalue()
    assert any("diagnostics" in line and "off" in line for line in status_lines(harness.agent, "none"))
    await do("/diagnostics on")
    assert harness.agent.tools.diagnostics.enabled
    await do("/diagnostics maybe", 1)
    assert "Use /diagnostics" in err.getvalue()
    await do("/diff nonsense", 1)
    assert "Use /diff" in err.getvalue()
