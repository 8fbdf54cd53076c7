"""Answers of real providers, where they are at hand; nothing of them is part of the project."""

import base64
import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

_FILE = Path(__file__).parents[3] / "shared" / "data" / "wire" / "recordings.jsonl"


@dataclass(frozen=True, slots=True)
class Recording:
    """One answer. ``wire`` is None of a body that only refuses; ``says`` is another program's reading of it."""

    id: str
    status: int
    content_type: str
    body: bytes
    streamed: bool
    headers: dict[str, str] = field(default_factory=dict)
    provider: str | None = None
    model: str | None = None
    wire: str | None = None
    says: dict[str, Any] = field(default_factory=dict)


@cache
def recordings() -> tuple[Recording, ...]:
    """Return every recording, none where there are none."""
    if not _FILE.is_file():
        return ()
    return tuple(_recording(json.loads(line)) for line in _FILE.read_text(encoding="utf-8").splitlines())


def _recording(row: dict[str, Any]) -> Recording:
    route = row.get("route") or {}
    return Recording(
        id=row["id"],
        status=row["status"],
        content_type=row.get("content_type") or "",
        body=base64.b64decode(row["body"]),
        streamed=bool(row.get("streamed")),
        headers=row.get("headers") or {},
        provider=route.get("provider"),
        model=route.get("model"),
        wire=route.get("wire"),
        says=row.get("says") or {},
    )
