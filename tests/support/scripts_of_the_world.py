"""Two texts of each kind and script, and their tokens by six tokenizers (``scripts/tokenizer_counts.py``)."""

import json
from pathlib import Path

_HELD = json.loads(Path(__file__).with_name("scripts.json").read_text(encoding="utf-8"))

TEXTS: dict[str, tuple[str, str]] = {what: tuple(pair) for what, pair in _HELD["texts"].items()}
"""A pair of texts by language; neither is a translation of something the factors were fitted on."""

COUNTS: dict[str, dict[str, tuple[int, int]]] = _HELD["counts"]
"""Tokens of each pair, by the tokenizer's family."""
