"""Keeps a project's code out of the program's own interpreters.

Python loads modules from where its variables and the working directory lead, and those may be a
project's: a ``sitecustomize.py`` or an ``httpx.py`` there would run in the program before any
question.
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
"""Variables by which Python loads code. Commands keep them."""

NAME_VARIABLE = "TUI_AGENT_DETACHED"
"""Tells a program the name of the detached run it is."""

_PLACE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - pathlib takes 5 ms
"""The directory that holds this package."""
_RUN_MODULE = """
import runpy, sys
place, module = sys.argv[1:3]
del sys.argv[1:3]
sys.path.append(place)
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""


def isolated_module(name: str, *arguments: str) -> tuple[str, ...]:
    """Return the command that runs a module of this package; no file of a project can change it."""
    return (sys.executable, "-E", "-P", "-c", _RUN_MODULE, _PLACE, name, *arguments)


def isolate_program() -> None:
    """See to it that modules are loaded from where the program is installed.

    The command ``tui-agent`` starts Python isolated. Started in another way, by ``python -m
    tui_agent``, the program begins anew where a variable leads elsewhere; what Python loaded by it
    until now has run.
    """
    if sys.flags.ignore_environment and sys.flags.safe_path:
        return
    if any(os.environ.get(name) for name in CODE_VARIABLES):
        command = isolated_module("tui_agent", *sys.argv[1:])
        os.execv(command[0], command)  # noqa: S606 - the interpreter that runs already
    if sys.path[0] in {"", _working_directory()} - {_PLACE}:
        del sys.path[0]


def _working_directory() -> str:
    try:
        return os.getcwd()  # noqa: PTH109
    except OSError:
        return ""
