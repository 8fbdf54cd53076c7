"""The sandbox that commands run in: each gets a view, runs, and has its changes judged.

- ``view``: what a command may change and reach.
- ``machine``, ``project_scan``: find the paths that commands see.
- ``plan``, ``layout``: turn a view into mounts, and these into options of the sandbox program.
- ``network``: the proxy that is a command's only way to other hosts.
- ``sandbox``: combines all of this for a session.
- ``judge_program``: a separate process that judges and keeps changes, by means of ``layer``,
  ``project_copy`` and ``change_policy``; ``judging`` starts it and talks to it.
- ``lacking``: finds the grants a failed command lacked, from its output.
"""

from tui_agent.sandbox.detection import UNPROTECTED, SandboxState, find_sandbox
from tui_agent.sandbox.sandbox import CommandOutcome, Launch, Sandbox, SandboxError
from tui_agent.sandbox.view import EVERY_HOST, AllowHost, Grants, View, Writes

__all__ = [
    "EVERY_HOST",
    "UNPROTECTED",
    "AllowHost",
    "CommandOutcome",
    "Grants",
    "Launch",
    "Sandbox",
    "SandboxError",
    "SandboxState",
    "View",
    "Writes",
    "find_sandbox",
]
