"""The list of models with their windows and prices: ``prices.json``, taken from litellm's, and corrections to it.

``scripts/model_data.py`` writes the list; ``corrections.toml`` corrects it, each row with its source.
"""

import json
import mmap
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from tui_agent.model.naming import broader, spelled

Row = dict[str, Any]

PRICES = Path(__file__).with_name("prices.json")
"""The list that is shipped."""
_CORRECTIONS = Path(__file__).with_name("corrections.toml")
_CHAT = {"chat", "responses"}
_PIECES = re.compile(r"[a-z]+|\d+")
_OPENING = b'": {'
_DECODER = json.JSONDecoder()
_ROW_SIZE = 1 << 13
_SHORTEST = 2
"""Letters of the shortest name: o1."""


class PriceList:
    """The rows of models one can chat with.

    ``path`` is the file to read instead of ``PRICES``, ``corrections`` what is laid over it: for tests. A program asks
    for one model or two, so they are found in the text within a millisecond each; reading all of it takes longer.
    """

    def __init__(self, path: Path | None = None, corrections: Path | None = None) -> None:
        self._path = path or PRICES
        self._corrections = corrections or (_CORRECTIONS if path is None else None)
        self._found: dict[str, Row | None] = {}

    def get(self, name: str) -> Row | None:
        if self._is_read:
            return self.all.get(name)
        if name not in self._found:
            self._found[name] = self._corrected(name, self._find(name))
        return self._found[name]

    def named_like(self, spelling: str) -> list[str]:
        """Return the names that mean the model of a spelling, of the most exact match there is."""
        index = self._index if self._is_read else _by_spelling(self._candidates(spelling))
        return next((index[step] for step in broader(spelling) if step in index), [])

    @property
    def all(self) -> Mapping[str, Row]:
        return self._split[0]

    def is_closed(self, name: str) -> bool:
        """Tell whether a model is known to do something else than chat: to embed, draw, hear, speak, rank or judge."""
        return spelled(name) in self._split[1]

    @cached_property
    def _split(self) -> tuple[Mapping[str, Row], set[str]]:
        """Return the rows one can chat with, and the spellings of all the others."""
        data = json.loads(self._path.read_bytes())
        rows = {name: self._corrected(name, row) for name, row in {**dict.fromkeys(self._fixed), **data}.items()}
        found = {name: row for name, row in rows.items() if row is not None}
        return found, {spelled(name) for name in rows.keys() - found.keys()} - {spelled(name) for name in found}

    @property
    def source(self) -> str:
        """Where the list is from and when it was made: "litellm 1.106.2, 2026-11-23"."""
        with self._path.open(encoding="utf-8") as file:
            file.readline()
            row = json.loads(file.readline().partition(": ")[2].rstrip(",\n"))
        return f"{row['source']}, {row['date']}"

    @cached_property
    def families(self) -> list[Row]:
        """What a model has at least that only its family is known of: ``pattern`` and a row's fields."""
        return list(self._table.get("family", ()))

    @cached_property
    def _table(self) -> dict[str, Any]:
        if self._corrections is None:
            return {}
        return tomllib.loads(self._corrections.read_text(encoding="utf-8"))

    @cached_property
    def _fixed(self) -> dict[str, Row]:
        found: dict[str, Row] = {}
        for correction in self._table.get("row", ()):
            fields = {key: value for key, value in correction.items() if key not in {"names", "checked"}}
            for name in correction["names"]:
                found[name] = {**found.get(name, {}), **fields}
        return found

    @property
    def _is_read(self) -> bool:
        return "_split" in self.__dict__

    @cached_property
    def _index(self) -> dict[str, list[str]]:
        return _by_spelling(self._names)

    def _candidates(self, spelling: str) -> list[str]:
        *_steps, broadest = broader(spelling)
        if len(broadest) < _SHORTEST:
            return []
        lines = self._lines
        for piece in _PIECES.findall(broadest):
            lines = [line for line in lines if piece in line[0]]
        return [name for _lower, name in lines]

    @cached_property
    def _lines(self) -> list[tuple[str, str]]:
        return [(name.lower(), name) for name in self._names]

    @cached_property
    def _names(self) -> tuple[str, ...]:
        with self._opened() as data:
            return tuple(dict.fromkeys([*self._fixed, *_keys(data)]))

    def _corrected(self, name: str, row: object) -> Row | None:
        fixed = self._fixed.get(name, {})
        merged = {**row, **fixed} if isinstance(row, dict) else fixed
        return merged if can_chat(merged) else None

    def _find(self, name: str) -> Row | None:
        key = f"{json.dumps(name)}:".encode()
        with self._opened() as data:
            at = data.find(key)
            while at >= 0:
                row = _row_at(data, at + len(key))
                # What stands within a row may have any name.
                if isinstance(row, dict) and "litellm_provider" in row:
                    return row
                at = data.find(key, at + len(key))
        return None

    @contextmanager
    def _opened(self) -> Iterator[mmap.mmap]:
        with self._path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield data


def _keys(data: mmap.mmap) -> Iterator[str]:
    """Yield the names of all tables, those within rows too. Ten times as fast as an expression."""
    at = data.find(_OPENING)
    while at >= 0:
        yield data[data.rfind(b'"', 0, at) + 1 : at].decode("utf-8", "replace")
        at = data.find(_OPENING, at + len(_OPENING))


def _by_spelling(names: Iterable[str]) -> dict[str, list[str]]:
    index: dict[str, list[str]] = {}
    for name in names:
        for step in broader(spelled(name)):
            index.setdefault(step, []).append(name)
    return index


def _row_at(data: mmap.mmap, start: int) -> object:
    size = _ROW_SIZE
    while True:
        text = data[start : start + size].decode("utf-8", "ignore").lstrip()
        try:
            return _DECODER.raw_decode(text)[0]
        except ValueError:
            if start + size >= len(data):
                raise
            size *= 4


def can_chat(row: Row) -> bool:
    """Tell whether a row is of a model that answers in text; some that only embed have a window of no tokens."""
    answers = row.get("supported_output_modalities") or ["text"]
    return (
        row.get("mode") in _CHAT
        and "litellm_provider" in row
        and "text" in answers
        and (row.get("max_input_tokens") is None or row["max_input_tokens"] > 0)
    )
