"""The directories in which the program keeps its settings, data, cache and logs on this platform.

The environment variables TUI_AGENT_CONFIG_DIR and TUI_AGENT_DATA_DIR override them. Two functions
for the start of the program change the environment: `provide_home` and `provide_data_dir`.
"""

import os
import pwd
from pathlib import Path

import platformdirs

_NAME = "tui-agent"
DATA_VARIABLE = "TUI_AGENT_DATA_DIR"


def provide_home() -> None:
    """Set HOME to ``/``, as containers do, if the user database has no entry for the current user.

    Call it only if HOME is not set.
    """
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        os.environ["HOME"] = "/"


def provide_data_dir() -> None:
    """Create the data directory, or use a temporary one if the data directory can't be written to.

    The temporary directory is removed at exit. It is meant for runs that store nothing permanently,
    such as with ``--no-session``.

    Raises:
        OSError: a temporary directory can't be created either.
    """
    try:
        data_dir().mkdir(parents=True, exist_ok=True)
        if os.access(data_dir(), os.W_OK):
            return
    except OSError:
        pass  # a temporary directory is created below
    import atexit
    import shutil
    import tempfile

    place = tempfile.mkdtemp(prefix=f"{_NAME}-")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    os.environ[DATA_VARIABLE] = place


def config_dir() -> Path:
    """Return the directory that contains ``config.toml`` and the user's own prompts and styles."""
    return _override("TUI_AGENT_CONFIG_DIR") or _absolute(
        Path(platformdirs.user_config_dir(_NAME, appauthor=False))
    )


def data_dir() -> Path:
    """Return the directory that contains the program's data: session database, memory, plugins."""
    return _override(DATA_VARIABLE) or _absolute(
        Path(platformdirs.user_data_dir(_NAME, appauthor=False))
    )


def cache_dir() -> Path:
    """Return the directory that contains cached files, which may be deleted at any time."""
    if override := _override(DATA_VARIABLE):
        return override / "cache"
    return _absolute(Path(platformdirs.user_cache_dir(_NAME, appauthor=False)))


def log_dir() -> Path:
    """Return the directory that contains the log files."""
    if override := _override(DATA_VARIABLE):
        return override / "log"
    return _absolute(Path(platformdirs.user_log_dir(_NAME, appauthor=False)))


def kept() -> list[Path]:
    """Return the program's existing directories for settings, data, cache and logs.

    A directory inside another of them is left out. The bundle's installer calls this to tell the
    user what uninstalling leaves behind.
    """
    log = log_dir()
    if log.name == "log":
        log = log.parent
    places = dict.fromkeys((config_dir(), data_dir(), cache_dir(), log))
    found = []
    for place in places:
        if place.is_dir() and not places.keys() & {*place.parents}:
            found.append(place)
    return found


def _override(variable: str) -> Path | None:
    value = os.environ.get(variable)
    if value:
        return _absolute(Path(value).expanduser())
    return None


def _absolute(path: Path) -> Path:
    """Return ``path`` as an absolute path without ``..``; links are not resolved."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - pathlib's keeps ".."
