"""``tui-agent web`` in a real Chromium: typing, a stream, the tree, mouse and wheel, a wide screen and a phone's."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.neighbours import node_package

pytest.importorskip("textual_serve", reason="the extra `web` is not installed")

SCRIPT = Path(__file__).parents[1] / "support/browser.mjs"


@pytest.mark.neighbours
@pytest.mark.timeout(300)
def test_a_session_in_a_real_browser(tmp_path: Path) -> None:
    node_package("@sparticuz/chromium")
    modules = node_package("puppeteer-core").parent
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    env = os.environ | {"TUI_AGENT_CONFIG_DIR": str(tmp_path), "TUI_AGENT_DATA_DIR": str(tmp_path / "data")}
    server = subprocess.Popen(
        [sys.executable, "-m", "tui_agent", "web", "--demo"], env=env, cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        done = subprocess.run(
            [node, SCRIPT, address, tmp_path, modules], capture_output=True, text=True, check=False, timeout=240
        )
    finally:
        server.terminate()
        server.wait(timeout=60)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["address"] == re.sub(r"\?.*", "", address)
    assert not [url for url in seen["requests"] if not url.startswith((seen["address"], "data:"))]
    assert not seen["failed"]
    assert seen["frames"] > 5, "the answer came as a whole"
    assert seen["wide"]["width"] >= 200
    assert seen["wide"]["height"] >= 50
    assert 40 <= seen["phone"]["width"] <= 60
