"""Runs a message or a command without a screen on a harness's agent."""

import io
from typing import Any

from tests.support.agents import Harness
from tui_agent.app.services import OpenRequest
from tui_agent.cli.headless import HeadlessRun


async def run_headless(
    harness: Harness,
    message: str,
    piped: str = "",
    *,
    out: io.StringIO | None = None,
    err: io.StringIO | None = None,
    as_json: bool = False,
    **services: Any,
) -> int:
    """Return the exit code; the session stays open."""
    run = HeadlessRun(
        harness.services(**services),
        as_json=as_json,
        out=out or io.StringIO(),
        err=err or io.StringIO(),
    )
    await run.open(OpenRequest())
    return await run.run(message, piped)
