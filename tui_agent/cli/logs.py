"""Configures the process: sends logs to a file, and stops pydantic from looking for plug-ins."""

import logging
import sys
from pathlib import Path
from types import ModuleType

from tui_agent.lazy import cached_property
from tui_agent.paths import log_dir


class LogFile(logging.Handler):
    """Writes to a rotating log file, which is opened at the first record.

    The standard library's module for log files is imported only then, because that takes 2 ms.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def emit(self, record: logging.LogRecord) -> None:
        self._file.emit(record)

    @cached_property
    def _file(self) -> logging.Handler:
        from logging.handlers import RotatingFileHandler

        file = RotatingFileHandler(
            self._path, maxBytes=2_000_000, backupCount=2, encoding="utf-8", delay=True
        )
        file.setFormatter(self.formatter)
        return file


def start_logging(*, debug: bool) -> None:
    """Send log records to the log file, never to the screen, with secrets redacted.

    With ``debug``, this includes records of level DEBUG. If the log directory can't be created,
    records are dropped.
    """
    from tui_agent.model.redaction import LOG_LINE, RedactingFormatter

    # An error while writing the log, such as a full disk, must not be printed on the screen.
    logging.raiseExceptions = False
    directory = log_dir()
    try:
        for place in (directory.parent, directory):
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
        handler: logging.Handler = LogFile(directory / "tui-agent.log")
    except OSError:
        handler = logging.NullHandler()
    handler.setFormatter(RedactingFormatter(LOG_LINE))
    logging.basicConfig(
        level=logging.DEBUG if debug else logging.INFO, handlers=[handler], force=True
    )


def skip_plugins() -> None:
    """Stop pydantic from looking for plug-ins. Call this before the first pydantic model is used.

    The search takes 8 ms at each start. An environment variable would also turn the search off, but
    the user's commands would inherit that.
    """
    loader = ModuleType("pydantic.plugin._loader")
    loader.get_plugins = tuple  # type: ignore[attr-defined]
    sys.modules[loader.__name__] = loader
