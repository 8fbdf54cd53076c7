"""Finds programs that this program runs for itself, such as git, and builds their environment.

A project must not choose what runs, so directories in ``PATH`` that are relative or in the project
are skipped. None of these programs needs an API key, so no keys are passed on.
"""

import os
import shutil
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from tui_agent.path_checks import is_file, is_inside, real_path
from tui_agent.processes.environment import own
from tui_agent.processes.environment_table import chosen_for

MEMORY_KILOBYTES = 1024 * 1024
"""Default memory limit of `limited`, in kilobytes."""
OWN_PLACES = (".venv/bin", "venv/bin", "node_modules/.bin")
"""Directories of a project that may contain its own programs."""


def find_program(
    name: str, outside: Path | None = None, environ: Mapping[str, str] | None = None
) -> str | None:
    """Return the absolute path of a program on ``PATH``, None if there is none.

    Programs in the directory ``outside``, and links to such programs, are skipped. ``PATH`` is
    taken from ``environ``, or else from this program's environment.
    """
    for place in search_path(environ, outside).split(os.pathsep):
        found = None
        if place:
            found = shutil.which(name, path=place)
        if found and not _is_of(outside, found):
            return found
    return None


def find_project_program(name: str, where: Path, root: Path) -> str | None:
    """Return the absolute path of a program in the project or on ``PATH``; None if not found.

    The project is searched first. For ``where`` and ``root``, see `find_own_program`. Run the
    program only in the sandbox.
    """
    return find_own_program(name, where, root) or find_program(name, root)


def find_own_program(name: str, where: Path, root: Path) -> str | None:
    """Return the absolute path of a program in the nearest of the project's program directories.

    The program directories are those in ``where`` and in the directories above it, up to ``root``,
    the project. Returns None if the program is in none of them. Run the program only in the
    sandbox.
    """
    for directory in (where, *where.parents):
        if not directory.is_relative_to(root):
            break
        for place in OWN_PLACES:
            program = directory / place / name
            if is_file(program) and os.access(program, os.X_OK):
                return str(program)
    return None


@lru_cache(maxsize=16)
def find_shell(outside: Path | None = None) -> str:
    """Return the absolute path of bash or, if there is none, of sh; see `find_program`.

    If neither is on ``PATH``, returns "/bin/sh".
    """
    return find_program("bash", outside) or find_program("sh", outside) or "/bin/sh"


def search_path(environ: Mapping[str, str] | None = None, outside: Path | None = None) -> str:
    """Return ``PATH`` without relative directories and without directories in ``outside``.

    ``PATH`` is taken from ``environ``, or else from this program's environment.
    """
    if environ is None:
        environ = os.environ
    places = []
    for place in environ.get("PATH", os.defpath).split(os.pathsep):
        is_absolute = os.path.isabs(place)  # noqa: PTH117 - a text
        if is_absolute and not _is_of(outside, place):
            places.append(place)
    return os.pathsep.join(places)


def _is_of(project: Path | None, path: str) -> bool:
    """Return True if there is a project, and a path or the target of its link is in the project."""
    if project is None:
        return False
    return is_inside(project, path) or Path(path).is_relative_to(real_path(project))


def bare_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for programs that this program runs for itself, with ``more`` added.

    The environment contains no API keys, no settings and no home directory.
    """
    return own({**chosen_for("own", os.environ), "PATH": search_path(), **(more or {})})


def limited(*command: str, kilobytes: int = MEMORY_KILOBYTES) -> list[str]:
    """Return an argument list that runs a command with a memory limit, in kilobytes.

    A repository may contain data that would make the command use all memory.
    """
    return ["/bin/sh", "-c", f'ulimit -d {kilobytes} 2>/dev/null; exec "$0" "$@"', *command]
