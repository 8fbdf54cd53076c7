"""Reads the list of models' windows and prices: ``prices.json``, from litellm, and corrections.

``scripts/model_data.py`` writes the list with one row per line; ``corrections.toml`` contains the
corrections, each with its source.
"""

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tui_agent.lazy import LazyPattern, cached_property
from tui_agent.model.naming import broader, spelled

Row = dict[str, Any]

PRICES = Path(__file__).with_name("prices.json")
"""The file of the price list that is shipped with the program."""
_CORRECTIONS = Path(__file__).with_name("corrections.toml")
_HEADER = '\n"": '
"""The beginning of the line of the price list that describes the list itself."""
_CHAT = {"chat", "responses"}
_PIECES = LazyPattern(r"[a-z]+|\d+")
_SHORTEST = 2
"""Length of the shortest model name, ``o1``, in characters."""


class PriceList:
    """The rows of chat models in the price list, with the corrections applied.

    ``path`` and ``corrections`` replace the shipped files, for tests. Single rows are found by
    searching the file's text, because decoding the whole file would delay the program's start.
    """

    def __init__(self, path: Path | None = None, corrections: Path | None = None) -> None:
        self._path = path or PRICES
        self._corrections = corrections or (_CORRECTIONS if path is None else None)
        self._found: dict[str, Row | None] = {}

    def get(self, name: str) -> Row | None:
        if "all" in self.__dict__:  # the whole list was read
            return self.all.get(name)
        if name not in self._found:
            key = f"\n{json.dumps(name)}: "
            start = self._text.find(key)
            text = self._text[start + len(key) : self._text.find("\n", start + 1)].removesuffix(",")
            listed = json.loads(text) if start >= 0 else {}
            row = listed | self._fixed.get(name, {})
            self._found[name] = row if can_chat(row) else None
        return self._found[name]

    def named_like(self, spelling: str) -> list[str]:
        """Return the names of the rows for the model with this spelling (see ``naming.spelled``).

        If none has the exact spelling, a date, "latest" and "preview" at its end are ignored, one
        after the other. The result is [] if no row matches.
        """
        if "all" in self.__dict__:
            index = self._index
        else:
            index = _by_spelling(self._near(spelling))
        for step in broader(spelling):
            if step in index:
                return index[step]
        return []

    def _near(self, spelling: str) -> Iterator[str]:
        """Yield the names that contain, in any order, all words and numbers of a spelling.

        The spelling's date, "latest" and "preview" are ignored.
        """
        *_steps, broadest = broader(spelling)
        pieces = _PIECES.findall(broadest)
        for name in self._names if len(broadest) >= _SHORTEST else ():
            lower = name.lower()
            if all(piece in lower for piece in pieces):
                yield name

    @cached_property
    def all(self) -> Mapping[str, Row]:
        rows = {}
        for name, listed in (self._fixed | json.loads(self._text)).items():
            row = listed | self._fixed.get(name, {})
            if can_chat(row):
                rows[name] = row
        return rows

    @cached_property
    def closed(self) -> set[str]:
        """Spellings that the list has only for models that can't chat, such as embeddings."""
        others = {spelled(name) for name in self._names if name not in self.all}
        return others.difference(map(spelled, self.all))

    @property
    def source(self) -> str:
        """The list's source and date, such as "litellm 1.106.2, 2026-11-23"."""
        row = self._header
        return f"{row['source']}, {row['date']}"

    @cached_property
    def providers(self) -> frozenset[str]:
        """The ids of the providers that litellm can call."""
        return frozenset(self._header.get("providers", ()))

    @cached_property
    def _header(self) -> Row:
        """The row that describes the price list itself; {} if there is none. Its name is empty."""
        start = self._text.find(_HEADER)
        if start < 0:
            return {}
        end = self._text.find("\n", start + 1)
        row: Row = json.loads(self._text[start + len(_HEADER) : end].removesuffix(","))
        return row

    @cached_property
    def corrections(self) -> dict[str, Any]:
        """The parsed corrections file, {} if there is none.

        Each table in ``row`` contains the ``names`` that it corrects and the corrected fields. Each
        table in ``family`` contains a ``pattern``, and the basic facts about a model of which only
        the family is known.
        """
        if self._corrections is None:
            return {}
        return tomllib.loads(self._corrections.read_text(encoding="utf-8"))

    @cached_property
    def _fixed(self) -> dict[str, Row]:
        found: dict[str, Row] = {}
        for correction in self.corrections.get("row", ()):
            fields = dict(correction)
            fields.pop("checked", None)
            for name in fields.pop("names"):
                found[name] = found.get(name, {}) | fields
        return found

    @cached_property
    def _index(self) -> dict[str, list[str]]:
        return _by_spelling(self._names)

    @cached_property
    def _names(self) -> tuple[str, ...]:
        names = dict.fromkeys(self._fixed)
        for line in self._text.split("\n"):
            if line.startswith('"'):
                names[line[1:].partition('": ')[0]] = None
        return tuple(names)

    @cached_property
    def _text(self) -> str:
        return self._path.read_text(encoding="utf-8")


def _by_spelling(names: Iterable[str]) -> dict[str, list[str]]:
    index: dict[str, list[str]] = {}
    for name in names:
        for step in broader(spelled(name)):
            index.setdefault(step, []).append(name)
    return index


def can_chat(row: Row) -> bool:
    """Return whether the row describes a chat model with text output.

    Rows with a window of 0 tokens are embedding models.
    """
    answers = row.get("supported_output_modalities") or ["text"]
    return (
        row.get("mode") in _CHAT
        and "litellm_provider" in row
        and "text" in answers
        and (row.get("max_input_tokens") is None or row["max_input_tokens"] > 0)
    )
