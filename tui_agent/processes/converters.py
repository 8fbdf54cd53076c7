"""Converts untrusted data, such as documents and web pages, in separate processes."""

import asyncio
import contextlib
from collections.abc import Mapping

from tui_agent.isolation import isolated_module
from tui_agent.processes.environment import SafeEnvironment, own


async def convert(
    module: str, *arguments: str, data: bytes, environment: Mapping[str, str]
) -> bytes | None:
    """Run a Python module as a process with ``data`` as input, and return its standard output.

    Returns None if its exit code is not 0, because a malicious document may crash it. A large
    document takes seconds. Cancelling the call ends the process.
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
    """Return the first ``lines`` lines of a document's text, None if the conversion crashed.

    ``kind`` is a result of `kind_of`. Errors in the document are noted in the text.
    """
    module = "tui_agent.text_files.documents"
    converted = await convert(module, kind, str(lines), data=data, environment=environment)
    if converted is None:
        return None
    return converted.decode("utf-8", "replace")
