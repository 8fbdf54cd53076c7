"""Facts about models that were learnt by using them, in one small JSON file beside the sessions.

They are calibrations of token estimates, windows that providers named in refusals, and the form of
requests that each server accepts.
"""

import json
import logging
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tui_agent.files.atomic import write_atomically
from tui_agent.model.forms import ServerForm
from tui_agent.path_checks import is_file

log = logging.getLogger(__name__)

_USUAL_FORM = ServerForm.model_construct()


class LearntModels(BaseModel):
    """The content of the file, by model. Windows are tokens."""

    model_config = ConfigDict(defer_build=True)

    token_sizes: dict[str, dict[str, float]] = Field(default_factory=dict)
    """Real tokens per counted token, by class of characters."""
    windows: dict[str, int] = Field(default_factory=dict)
    contradicted: dict[str, int] = Field(default_factory=dict)
    """The window that was known when another was learnt; if the server now names yet another, it
    has changed."""
    forms: dict[str, ServerForm] = Field(default_factory=dict)
    """Forms of requests that servers accept, if they differ from the usual one."""
    alternating: tuple[str, ...] = Field(default=(), exclude=True)
    """Models whose servers need alternating roles, in files of older versions."""


class LearntFacts:
    """The file. ``path`` None keeps the facts in memory only."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self.models = _load(path)

    def form(self, served: str) -> ServerForm:
        """Return the form a model's server accepts. ``served``: see `Catalog.served_name`."""
        return self.models.forms.get(served) or _USUAL_FORM

    def keep_form(self, served: str, form: ServerForm) -> None:
        self.models.forms[served] = form
        self.save()

    def forget_form(self, served: str) -> bool:
        """Forget a server's refusals; returns False if there were none."""
        known = self.models.forms.pop(served, None)
        if known is not None:
            self.save()
        return known is not None

    def save(self) -> None:
        if self._path is None:
            return
        try:
            write_atomically(self._path, self.models.model_dump_json(indent=1).encode(), mode=0o600)
        except OSError as error:
            log.warning("what was learnt about models is not kept: %s", error)


def _load(path: Path | None) -> LearntModels:
    if path is None or not is_file(path):
        return LearntModels.model_construct()
    try:
        models = LearntModels.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, ValidationError) as error:
        log.warning("what was learnt about models cannot be read and starts anew: %s", error)
        return LearntModels.model_construct()
    for served in models.alternating:
        models.forms.setdefault(served, ServerForm(roles="alternating"))
    return models
