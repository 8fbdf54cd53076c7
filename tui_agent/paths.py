"""Where the program keeps things on this platform, and the two variables that override it."""

import os
from pathlib import Path

import platformdirs

_NAME = "tui-agent"


def config_dir() -> Path:
    """Return the directory of ``config.toml`` and the user's own prompts and styles."""
    return _override("TUI_AGENT_CONFIG_DIR") or Path(platformdirs.user_config_dir(_NAME, appauthor=False))


def data_dir() -> Path:
    """Return the directory of the session database."""
    return _override("TUI_AGENT_DATA_DIR") or Path(platformdirs.user_data_dir(_NAME, appauthor=False))


def cache_dir() -> Path:
    """Return the directory of regenerable files."""
    if override := _override("TUI_AGENT_DATA_DIR"):
        return override / "cache"
    return Path(platformdirs.user_cache_dir(_NAME, appauthor=False))


def log_dir() -> Path:
    """Return the directory of log files."""
    if override := _override("TUI_AGENT_DATA_DIR"):
        return override / "log"
    return Path(platformdirs.user_log_dir(_NAME, appauthor=False))


def _override(variable: str) -> Path | None:
    value = os.environ.get(variable)
    return Path(value).expanduser() if value else None
