"""Writes the data files that the program takes from the installed litellm: ``python scripts/model_data.py``.

``model/prices.json``: the fields of litellm's list of models that the catalog reads, a line for each model; the row
without a name says which litellm it is from and when it was made, and lists litellm's providers. A model one can't chat
with is a name with no fields.
``context/encodings/*.bin``: OpenAI's byte-pair encodings (MIT licence; the SHA-256 of each source is checked), in
the format that ``context/vocabulary.py`` describes.
"""

import ast
import base64
import hashlib
import importlib.util
import json
import re
import sys
import zlib
from array import array
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tui_agent.context.vocabulary import FOLDER, NUMBER_BYTES, SLOTS
from tui_agent.model.price_list import PRICES, can_chat

LIST = "model_prices_and_context_window_backup.json"
_PROVIDERS = "LlmProviders"
_NOT_PROVIDERS = {"custom"}
"""Names in litellm's list that stand for a program's own code; users give them to servers of their own."""
_COST = r"(input|output)_cost_per_token|cache_(read|creation)_input_token_cost(_above_1hr)?"
FIELDS = re.compile(
    rf"litellm_provider|mode|max_(input_|output_)?tokens|deprecation_date|reasoning_effort_levels"
    rf"|supports_(vision|function_calling|reasoning|(none|minimal|xhigh|max)_reasoning_effort)"
    rf"|({_COST})(_above_\d+k_tokens)?"
)
"""What the catalog reads of a row."""
SOURCES = {
    # Each file is named with the SHA-1 of its address, openaipublic.blob.core.windows.net/encodings/NAME.tiktoken.
    "o200k_base": (
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "cl100k_base": (
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
}


def price_list(*, date: str) -> str:
    """Return the list of models as it should be."""
    rows = json.loads((_litellm() / LIST).read_bytes())
    header = {
        "source": f"litellm {version('litellm')}",
        "date": date,
        "providers": _providers(),
    }
    lines = [_line("", header)]
    lines += [_line(name, _kept(row)) for name, row in rows.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _providers() -> list[str]:
    """Return the ids of the providers that litellm can call, read from its source."""
    source = (_litellm() / "types" / "utils.py").read_text(encoding="utf-8")
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and node.name == _PROVIDERS:
            for row in node.body:
                if isinstance(row, ast.Assign):
                    found.append(ast.literal_eval(row.value))
    return sorted(set(found) - _NOT_PROVIDERS)


def _kept(row: dict[str, Any]) -> dict[str, Any]:
    return (
        {key: value for key, value in row.items() if FIELDS.fullmatch(key)} if can_chat(row) else {}
    )


def _line(name: str, row: dict[str, Any]) -> str:
    return f"{json.dumps(name)}: {json.dumps(row, separators=(',', ':'))}"


def encoding(name: str) -> bytes:
    """Return an encoding's file as it should be."""
    file, digest = SOURCES[name]
    source = (encoding_sources() / file).read_bytes()
    if hashlib.sha256(source).hexdigest() != digest:
        raise SystemExit(f"{name} is not the file that OpenAI published")
    words = source.split()
    tokens = [base64.b64decode(word) for word in words[::2]]
    ranks = [int(word) for word in words[1::2]]
    if ranks != list(range(len(ranks))):
        raise SystemExit(f"{name} has gaps between its ranks")
    return vocabulary_file(name, tokens)


def vocabulary_file(name: str, tokens: Sequence[bytes]) -> bytes:
    """Return the file of an encoding, from its tokens in order of rank."""
    mask = SLOTS[name] - 1
    table = array("I", bytes(SLOTS[name] * NUMBER_BYTES))
    begins = array("I", [0])
    for rank, token in enumerate(tokens):
        begins.append(begins[-1] + len(token))
        slot = zlib.crc32(token) & mask
        while table[slot]:
            slot = (slot + 1) & mask
        table[slot] = rank + 1
    if sys.byteorder == "big":
        table.byteswap()
        begins.byteswap()
    return table.tobytes() + begins.tobytes() + b"".join(tokens)


def encoding_sources() -> Path:
    """Return litellm's folder of published encodings; tiktoken takes it for its cache."""
    return _litellm() / "litellm_core_utils" / "tokenizers"


def _litellm() -> Path:
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        raise SystemExit("litellm is not installed")
    return Path(spec.origin).parent


if __name__ == "__main__":
    PRICES.write_text(price_list(date=datetime.now(UTC).date().isoformat()), encoding="utf-8")
    for name in SOURCES:
        (FOLDER / f"{name}.bin").write_bytes(encoding(name))
