"""Runs the commands that the user has set as ``ui.status_line`` and ``ui.notify_command``."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from tui_agent.app.format import one_line

ProblemOf = Callable[[Path, str], str]
"""Type of a function that takes a directory and a command, and returns why the command must not run
there, or "" if it may."""


async def run(
    command: str, cwd: Path, given: bytes, problem_of: ProblemOf, *, seconds: float
) -> tuple[str, str]:
    """Run a user's shell command with ``given`` as standard input, for at most ``seconds``.

    The command is not run if ``problem_of`` returns a reason against it.

    Returns:
        The command's output, and why it failed ("" if it didn't). The output is "" if the command
        could not be run, took too long or wrote too much.
    """
    if refused := await asyncio.to_thread(problem_of, cwd, command):
        return "", f"not run: {refused}"
    # Imported only here, because few users have configured such a command.
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
