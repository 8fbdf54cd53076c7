"""Keeps a project's code out of the program's own Python processes.

Python also loads modules from the working directory and from directories in its environment
variables. These directories may belong to a project. A ``sitecustomize.py`` or an ``httpx.py``
there would then run in the program before the user is asked whether to trust the project.

The module also names the environment variable that tells a process which detached run it belongs
to.
"""

import os
import sys

CODE_VARIABLES = (
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONUSERBASE",
    "PYTHONPLATLIBDIR",
    "PYTHONPYCACHEPREFIX",
    "PYTHONWARNINGS",
)
"""Environment variables that change where Python loads code from. The program itself ignores them,
but commands that it runs still receive them."""

DETACHED_NAME_VARIABLE = "TUI_AGENT_DETACHED"
"""Environment variable with which a detached run's process receives the name of the run."""

_PLACE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - pathlib takes 5 ms
"""The directory that contains the program's Python package."""
_RUN_MODULE = """
import runpy, sys
place, module = sys.argv[1:3]
del sys.argv[1:3]
sys.path.append(place)
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""


def isolated_module(name: str, *arguments: str) -> tuple[str, ...]:
    """Return the command line of an isolated Python process that runs a module of this package.

    Isolated means that the process imports no modules from the working directory, and ignores
    `CODE_VARIABLES`.
    """
    return (sys.executable, "-E", "-P", "-c", _RUN_MODULE, _PLACE, name, *arguments)


def isolate_program() -> None:
    """Make sure that modules are imported only from where the program is installed.

    Does nothing if Python was started in isolated mode, as the command ``tui-agent`` starts it. For
    ``python -m tui_agent``, removes the working directory from ``sys.path``. If one of
    `CODE_VARIABLES` is set, replaces the process with an isolated one; but code that Python loaded
    before this call has run already.
    """
    if sys.flags.ignore_environment and sys.flags.safe_path:
        return
    if any(os.environ.get(name) for name in CODE_VARIABLES):
        command = isolated_module("tui_agent", *sys.argv[1:])
        os.execv(command[0], command)  # noqa: S606 - the interpreter that is already running
    if sys.path[0] in {"", _working_directory()} - {_PLACE}:
        del sys.path[0]


def _working_directory() -> str:
    try:
        return os.getcwd()  # noqa: PTH109
    except OSError:
        return ""
