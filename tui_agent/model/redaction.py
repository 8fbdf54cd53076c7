"""Removes secrets from text that is shown or logged."""

import logging
from collections.abc import Iterable

LOG_LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return the text with a placeholder in place of each secret.

    These are ``secrets``, and all else that looks like a secret.
    """
    # Compiling the detector's patterns would delay the program's start.
    from tui_agent.secret_detector import remove_known, remove_secrets

    return remove_secrets(remove_known(text, secrets))


class RedactingFormatter(logging.Formatter):
    """A log formatter that redacts each line, tracebacks included."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))
