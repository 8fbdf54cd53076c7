"""Shown in a browser by textual-serve, where nobody reads what a terminal answers."""

import os
import select
import subprocess
import sys
from pathlib import Path

from tests.support.place import PROMPT_HINT, Place

PIECES = 400
"""Pieces of output after which the text does not come any more; without output a look takes half a second."""
SHOWN = PROMPT_HINT.encode()


def output_until(process: subprocess.Popen[bytes], wanted: bytes) -> bytes:
    """Return the output of a program up to some text and for half a second more."""
    assert process.stdout is not None
    output = b""
    is_found = False
    for _ in range(PIECES):
        ready, _, _ = select.select([process.stdout], [], [], 0.5)
        if not ready and is_found:
            return output
        if ready:
            output += os.read(process.stdout.fileno(), 65_536)
            is_found = is_found or wanted in output
    raise AssertionError(f"{wanted!r} did not come: {output[-2_000:]!r}")


def test_a_browser_is_not_asked_for_its_background(tmp_path: Path) -> None:
    place = Place(tmp_path)
    environment = {
        **os.environ,
        **place.env,
        "TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver",
        "COLUMNS": "80",
        "ROWS": "24",
        "TERM": "xterm-256color",
    }
    with subprocess.Popen(
        [sys.executable, "-m", "tui_agent", "--demo"],
        env=environment,
        cwd=place.project,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            output = output_until(process, SHOWN)
        finally:
            process.kill()
    assert output.startswith(b"__GANGLION__")
    assert b"\x1b]11;?" not in output
