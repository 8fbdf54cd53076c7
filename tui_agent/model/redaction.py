"""Takes secrets out of text that is shown or logged."""

import logging
from collections.abc import Iterable

LOG_LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return the text without known secrets and lookalikes; see ``secret_detector``."""
    # Its patterns take longer to make than most modules to import, and nothing is redacted at a
    # start.
    from tui_agent.secret_detector import remove_known, remove_secrets

    return remove_secrets(remove_known(text, secrets))


class RedactingFormatter(logging.Formatter):
    """A log formatter whose lines, tracebacks included, went through ``redact``."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))
