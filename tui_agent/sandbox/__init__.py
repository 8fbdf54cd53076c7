"""The sandbox that commands run in: each gets a view, runs, and has its changes judged.

``view`` says what a command may change and reach, ``machine`` and ``project_scan`` find the paths
to show, ``plan`` and ``layout`` put it together for the system, ``network`` is the way out,
``sandbox`` all of it for a session. ``layer``, ``project_copy`` and ``change_policy`` decide about changes in a
process of their own, ``judge_program``, of which ``judging`` knows; ``lacking`` reads missing
grants from what a command printed.
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
