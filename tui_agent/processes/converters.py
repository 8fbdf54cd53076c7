"""Converts bytes from outside to text, in a process of limited memory."""

import asyncio
import contextlib
from collections.abc import Mapping

from tui_agent.isolation import isolated_module
from tui_agent.processes.environment import SafeEnvironment, own


async def convert(
    module: str, *arguments: str, data: bytes, environment: Mapping[str, str]
) -> bytes | None:
    """Run a module on ``data`` in a process of its own; returns its output, None if it fails.

    A large document takes seconds, and a hostile one may crash the process. Cancelling ends it.
    """
    process = await asyncio.create_subprocess_exec(
        *isolated_module(module, *arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=own(SafeEnvironment(environment)),
        start_new_session=True,
    )
    try:
        converted, _ = await process.communicate(data)
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return None if process.returncode else converted


async def document_text(
    kind: str, data: bytes, lines: int, environment: Mapping[str, str]
) -> str | None:
    """Return the first ``lines`` lines of a document's text, None if it can't be converted."""
    module = "tui_agent.text_files.documents"
    converted = await convert(module, kind, str(lines), data=data, environment=environment)
    if converted is None:
        return None
    return converted.decode("utf-8", "replace")
