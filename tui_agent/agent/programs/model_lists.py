"""Finds models that Pi, OpenCode or Codex are set up to use on the user's own servers.

The first start offers to set them up here. Source: the programs' documentation of their settings.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tui_agent.agent.programs import codex, opencode, pi
from tui_agent.agent.programs.found import ModelOffer
from tui_agent.foreign_file import ForeignFile, read_of_user
from tui_agent.json_text import as_dict
from tui_agent.lazy import LazyPattern
from tui_agent.places import OPENCODE_HOME_FILES

_VARIABLE = LazyPattern(r"\{env:(\w+)\}")
"""Matches a variable in an OpenCode setting."""
_MESSAGES = "@ai-sdk/anthropic"
"""Name of the package that OpenCode uses for servers with Anthropic's API."""


def offered_models(home: Path) -> list[ModelOffer]:
    """Return the models for which the other programs' settings name an address; reads files.

    Of several offers for the same name, the first is returned.
    """
    offers: dict[str, ModelOffer] = {}
    for read, names in _FILES:
        for name in names:
            file = read_of_user(home, name)
            if file is None:
                continue
            for offer in read(file):
                if offer.kind == "model" and offer.table.get("base_url"):
                    offers.setdefault(offer.key, offer)
    return list(offers.values())


def _of_opencode(file: ForeignFile) -> Iterator[ModelOffer]:
    """Yield the models of the providers in ``opencode.json`` that have an address."""
    for given in file.section("provider").values():
        common = as_dict(given)
        options = as_dict(common.get("options"))
        server: dict[str, Any] = {}
        if isinstance(url := options.get("baseURL"), str):
            server["base_url"] = url
        written = str(options.get("apiKey", ""))
        if variable := _VARIABLE.fullmatch(written):
            server["api_key_env"] = variable[1]
        ours = "anthropic" if common.get("npm") == _MESSAGES else "openai"
        for model, facts in as_dict(common.get("models")).items():
            table = {**server, **_limits(as_dict(as_dict(facts).get("limit")))}
            yield ModelOffer.of(opencode.PROGRAM, f"{ours}/{model}", table, key_written=written)


def _limits(limit: Mapping[str, Any]) -> dict[str, int]:
    row = {}
    for theirs, ours in (("context", "context_window"), ("output", "max_output")):
        if isinstance(size := limit.get(theirs), int) and size > 0:
            row[ours] = size
    return row


def _of_codex(file: ForeignFile) -> Iterator[ModelOffer]:
    """Yield the model in Codex's settings, if its provider is a server that the settings define."""
    model = file.table.get("model")
    provider = file.section("model_providers", str(file.table.get("model_provider", "")))
    if isinstance(model, str) and isinstance(provider.get("base_url"), str):
        yield ModelOffer.of(codex.PROGRAM, f"openai/{model}", codex.server_settings(provider))


_FILES: Sequence[tuple[Callable[[ForeignFile], Iterator[ModelOffer]], Sequence[str]]] = (
    (pi.model_offers, (pi.MODELS_FILE,)),
    (_of_opencode, OPENCODE_HOME_FILES),
    (_of_codex, (codex.SETTINGS_FILE,)),
)
"""For each program: the function that reads its models, and the files in the home directory that
the function reads."""
