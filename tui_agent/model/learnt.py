"""Stores facts about models that were learnt by using them, in a JSON file next to the sessions.

They are calibrations of token estimates, windows that providers named in refusals, and the form of
requests that each server accepts. ``directory`` and ``client`` decide what is learnt. The file is
read once. Saving it overwrites what other instances of the program have stored since then.
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
    """The content of the file with the learnt facts.

    The keys of its fields are served names (see `Catalog.served_name`).
    """

    model_config = ConfigDict(defer_build=True)

    token_sizes: dict[str, dict[str, float]] = Field(default_factory=dict)
    """For each model, the number of its own tokens per counted token, by class of characters. Keys
    may be ``NAME as WIRE``."""
    windows: dict[str, int] = Field(default_factory=dict)
    """Context windows that providers named in refusals, in tokens."""
    contradicted: dict[str, int] = Field(default_factory=dict)
    """For each model with a window in ``windows``, the catalog's window, in tokens, when that
    window was learnt. If the catalog's window has changed since then, the learnt window is
    ignored."""
    forms: dict[str, ServerForm] = Field(default_factory=dict)
    """The forms of requests that servers accept, where they differ from the default, or did so
    earlier."""
    alternating: tuple[str, ...] = Field(default=(), exclude=True)
    """Models whose servers need alternating roles. Only files written by older versions have this
    field."""


class LearntFacts:
    """The facts learnt about models, and the file that stores them.

    If ``path`` is None, they are kept in memory only.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self.models = _load(path)

    def form(self, served: str) -> ServerForm:
        """Return the form of requests that a model's server accepts; the default if unknown.

        ``served`` is the model's served name (see `Catalog.served_name`).
        """
        return self.models.forms.get(served) or _USUAL_FORM

    def keep_form(self, served: str, form: ServerForm) -> None:
        self.models.forms[served] = form
        self.save()

    def forget_form(self, served: str) -> bool:
        """Delete the form stored for a model's server. Return False if there was none."""
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
            log.warning("could not save the learnt facts about models: %s", error)


def _load(path: Path | None) -> LearntModels:
    if path is None or not is_file(path):
        return LearntModels.model_construct()
    try:
        models = LearntModels.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, ValidationError) as error:
        log.warning(
            "could not read the learnt facts about models, starting without them: %s", error
        )
        return LearntModels.model_construct()
    for served in models.alternating:
        models.forms.setdefault(served, ServerForm(roles="alternating"))
    return models
