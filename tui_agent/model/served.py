"""Stores on disk what model servers report about their models, with the time of each answer.

``discovery`` asks the servers and stores their answers here. After that, a catalog that has used an
older answer must forget it (`Catalog.forget`).
"""

import json
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tui_agent.files.atomic import write_atomically
from tui_agent.json_text import loads
from tui_agent.model.addresses import plain_url
from tui_agent.path_checks import is_file

log = logging.getLogger(__name__)

_DAY = 86_400.0


class ServedModel(BaseModel):
    """What a server reports about one of its models. A fact that it doesn't report is None.

    Sizes are in tokens, prices in US dollars per token.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    name: str
    window: int | None = None
    max_output: int | None = None
    vision: bool | None = None
    tools: bool | None = None
    reasoning: bool | None = None
    small: bool | None = None
    """Whether the model has so few parameters that many tools confuse it."""
    tiny: bool | None = None
    """Whether the model has too few parameters to call tools."""
    chats: bool = True
    """Whether the model answers in text, unlike models for embeddings, images, speech and
    ranking."""
    input_price: float | None = None
    output_price: float | None = None
    cache_read_price: float | None = None
    cache_write_price: float | None = None


class ServerAnswer(BaseModel):
    """The models of one server, by name.

    ``asked`` is the time of the server's answer, in seconds since the epoch.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    asked: float
    models: dict[str, ServedModel] = Field(default_factory=dict)


class ServedModels:
    """The latest answer of each model server, by the server's URL.

    If ``path`` is None, the answers are kept in memory only. The file contains no keys or
    passwords.
    """

    def __init__(self, path: Path | None = None, *, now: Callable[[], float] = time.time) -> None:
        self._path = path
        self._now = now
        self._answers: dict[str, ServerAnswer] | None = None

    def answer(self, url: str) -> ServerAnswer | None:
        """Return the last answer of the server at a URL; None if it never answered."""
        return self._known().get(plain_url(url))

    def age(self, url: str) -> str:
        """Return how long ago a server last answered, as "5 minutes ago"; "" if it never did."""
        answer = self.answer(url)
        if answer is None:
            return ""
        return ago(self._now() - answer.asked)

    def is_fresh(self, url: str) -> bool:
        answer = self.answer(url)
        return answer is not None and self._now() - answer.asked < _DAY

    def keep(self, url: str, models: Mapping[str, ServedModel]) -> None:
        known = dict(self._known())
        known[plain_url(url)] = ServerAnswer(asked=self._now(), models=dict(models))
        self._answers = known
        if self._path is None:
            return
        text = json.dumps(
            {url: answer.model_dump(exclude_none=True) for url, answer in known.items()}
        )
        try:
            write_atomically(self._path, text.encode(), mode=0o600)
        except OSError as error:
            log.warning("could not save the model servers' answers: %s", error)

    def _known(self) -> dict[str, ServerAnswer]:
        if self._answers is None and self._path is not None and is_file(self._path):
            try:
                kept = loads(self._path.read_bytes()).items()
                self._answers = {url: ServerAnswer.model_validate(answer) for url, answer in kept}
            except (OSError, ValueError, ValidationError, AttributeError) as error:
                log.warning(
                    "could not read the model servers' stored answers, asking again: %s", error
                )
        if self._answers is None:
            self._answers = {}
        return self._answers


def ago(seconds: float) -> str:
    """Return an age in words: "just now" below a minute, otherwise "3 days ago" and the like."""
    for size, unit in ((_DAY, "day"), (3600.0, "hour"), (60.0, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"
