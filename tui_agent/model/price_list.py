"""litellm's file of models with their windows and prices, read where it lies, without litellm."""

import importlib.util
import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

Row = dict[str, Any]

_FILE = "model_prices_and_context_window_backup.json"
_CHAT = {"chat", "responses"}
_DECODER = json.JSONDecoder()


class PriceList:
    """The rows of models one can chat with. ``path`` is the file to read instead of litellm's, for tests.

    A program asks for one model or two, so they are found in the text in 2 ms each; reading all 3 MB takes ten times
    as long, and nothing else of the process runs meanwhile.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or _bundled()
        self._found: dict[str, Row | None] = {}

    def get(self, name: str) -> Row | None:
        """Return the row of a name; None when there is none."""
        if name not in self._found:
            self._found[name] = self._find(name)
        return self._found[name]

    @cached_property
    def all(self) -> Mapping[str, Row]:
        """Every row by its name."""
        return {name: row for name, row in json.loads(self._data() or "{}").items() if _is_model(row)}

    def _find(self, name: str) -> Row | None:
        data, key = self._data(), f"{json.dumps(name)}:".encode()
        at = data.find(key)
        while at >= 0:
            row, _end = _DECODER.raw_decode(data[at + len(key) :].decode().lstrip())
            # What stands within a row may have any name.
            if _is_model(row):
                return dict(row)
            at = data.find(key, at + len(key))
        return None

    def _data(self) -> bytes:
        return self._path.read_bytes() if self._path is not None else b""


def _is_model(row: Any) -> bool:
    return isinstance(row, dict) and row.get("mode") in _CHAT and "litellm_provider" in row


def _bundled() -> Path | None:
    spec = importlib.util.find_spec("litellm")
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(spec.submodule_search_locations[0]) / _FILE
    return path if path.is_file() else None
