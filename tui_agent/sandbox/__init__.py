"""The sandbox in which commands run: it limits what each one sees, and judges its changes.

- ``detection``: finds the kind of sandbox that works on this machine.
- ``view``: what a command may change and reach; ``settings``: the table ``[sandbox]``.
- ``machine``, ``project_scan``, ``unreadable``: find the paths that commands see, and those hidden.
- ``plan``, ``layout``: turn a view into mounts, and these into options of the sandbox program:
  bubblewrap, sandbox-exec or, for Landlock, ``landlock_start``.
- ``network``: the proxy that is a command's only way to other hosts; ``hosts`` decides on
  addresses, ``masks`` and ``authority`` let it insert masked credentials.
- ``open_ports``: lets this machine reach servers that run in the sandbox.
- ``sandbox``: combines all of this for a session; ``copy_pool`` and ``devices`` serve it.
- ``judge_program``: a separate process that judges and keeps changes, with ``layer``,
  ``project_copy`` and ``change_policy``; ``judging`` starts it and sends it requests.
- ``lacking``: finds the grants that a failed command lacked, from its output.
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
