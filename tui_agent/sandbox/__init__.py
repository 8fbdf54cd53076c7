"""The sandbox commands run in: what each may change and reach is its view, and whatever is not in that is not there.

`view` says what a view is, `machine` and `survey` what there is to show, `layout` how it is put together for the
system, `layer` and `keeping` what becomes of a command's changes, `network` the way out, `sandbox` all of it for a
session.
"""

from tui_agent.sandbox.finding import UNPROTECTED, SandboxState, find_sandbox
from tui_agent.sandbox.sandbox import CommandOutcome, Launch, Sandbox, SandboxError
from tui_agent.sandbox.view import EVERY_HOST, AllowHost, Holes, View, Writes

__all__ = [
    "EVERY_HOST",
    "UNPROTECTED",
    "AllowHost",
    "CommandOutcome",
    "Holes",
    "Launch",
    "Sandbox",
    "SandboxError",
    "SandboxState",
    "View",
    "Writes",
    "find_sandbox",
]
