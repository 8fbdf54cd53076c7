"""Answers of real providers, where they are at hand; nothing of them is part of the project."""

import base64
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_FILE = Path(__file__).parents[3] / "shared" / "data" / "wire" / "recordings.jsonl"


@dataclass(frozen=True, slots=True)
class Recording:
    """One answer. ``wire`` is None of a body that only refuses; ``says`` is another program's reading of it."""

    id: str
    status: int
    body: bytes
    headers: dict[str, str]
    says: dict[str, Any]
    provider: str | None
    model: str | None
    wire: str | None


@cache
def recordings() -> tuple[Recording, ...]:
    """Return every recording, none where there are none."""
    found = []
    for row in map(
        json.loads, _FILE.read_text(encoding="utf-8").splitlines() if _FILE.is_file() else ()
    ):
        route = {"provider": None, "model": None, "wire": None, **(row.get("route") or {})}
        body, headers, says = (
            base64.b64decode(row["body"]),
            row.get("headers") or {},
            row.get("says") or {},
        )
        found.append(Recording(row["id"], row["status"], body, headers, says, **route))
    return tuple(found)
