"""Runs the user's own commands from the settings: ui.status_line and ui.notify_command."""

from __future__ import annotations

import os
from pathlib import Path

from tui_agent.app.format import one_line


async def run(command: str, cwd: Path, given: bytes, *, seconds: float) -> tuple[str, str]:
    """Run a shell command with ``given`` as standard input, for at most ``seconds``.

    Returns:
        The command's output, and why it failed ("" if it didn't). The output is "" if the command
        could not be run, took too long or wrote too much.
    """
    # Imported here because few users have such a command.
    from tui_agent.files.own_git import find_project
    from tui_agent.processes.user_command import CommandFailedError, run_with_input, shell_command

    asked = shell_command(command, cwd, os.environ, seconds, find_project(cwd))
    try:
        code, out, errors = await run_with_input(asked, given)
    except CommandFailedError as error:
        return "", str(error)
    problem = ""
    if code:
        said = one_line(errors.decode("utf-8", "replace"), 200)
        problem = f"exit code {code}: {said}".removesuffix(": ")
    return out.decode("utf-8", "replace"), problem
