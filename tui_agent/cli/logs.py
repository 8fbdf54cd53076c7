"""Process start: the log file, and pydantic without plug-ins."""

import logging
import sys
from types import ModuleType

from tui_agent.paths import log_dir


def start_logging(*, debug: bool) -> None:
    """Log to a file, never to the screen; secrets are taken out."""
    from logging.handlers import RotatingFileHandler

    from tui_agent.model.redaction import LOG_LINE, RedactingFormatter

    logging.raiseExceptions = (
        False  # a log that can't be written, on a full disk, is no reason to write to the screen
    )
    directory = log_dir()
    try:
        for place in (directory.parent, directory):
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
        handler: logging.Handler = RotatingFileHandler(
            directory / "tui-agent.log",
            maxBytes=2_000_000,
            backupCount=2,
            encoding="utf-8",
            delay=True,
        )
    except OSError:
        handler = logging.NullHandler()
    handler.setFormatter(RedactingFormatter(LOG_LINE))
    logging.basicConfig(
        level=logging.DEBUG if debug else logging.INFO, handlers=[handler], force=True
    )


def skip_plugins() -> None:
    """Keep pydantic from looking for plug-ins. Call it before the first model is used.

    Pydantic would read the metadata of every installed package, and loading what reads them takes
    8 ms of each start. Its own switch is an environment variable, which the user's commands would
    inherit.
    """
    loader = ModuleType("pydantic.plugin._loader")
    loader.get_plugins = tuple  # type: ignore[attr-defined]
    sys.modules[loader.__name__] = loader
