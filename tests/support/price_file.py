"""A list of models and prices in the form the program ships its own."""

import json
from pathlib import Path
from typing import Any


def write_prices(path: Path, rows: dict[str, dict[str, Any]]) -> Path:
    """Write rows, each on a line; return the path."""
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    path.write_text(f"{{\n{lines}\n}}\n")
    return path
