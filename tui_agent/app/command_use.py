"""How often each command was used, in a file of its own, so that lists begin with what this user uses."""

import json
import logging
from collections import Counter
from pathlib import Path

from tui_agent.files.atomic import write_atomically

log = logging.getLogger(__name__)


def _place(folder: Path) -> Path:
    return folder / "commands-used.json"


def counts(folder: Path) -> Counter[str]:
    """Return how often each command was used; nothing where that is not known."""
    try:
        found = json.loads(_place(folder).read_text(encoding="utf-8"))
        return Counter({str(name): int(count) for name, count in found.items()})
    except (OSError, ValueError, AttributeError, TypeError):
        return Counter()


def note(folder: Path, name: str) -> None:
    """Count a use of a command; one that can't be written down costs nothing else."""
    found = counts(folder)
    found[name] += 1
    try:
        write_atomically(_place(folder), json.dumps(found).encode())
    except OSError as error:
        log.info("The use of /%s is not counted: %s", name, error)
