"""Tells which files hold secrets: by their names, or by what is in them."""

import os
from functools import lru_cache
from pathlib import Path

from tui_agent.files.inside import read_regular
from tui_agent.files.sensitive import HARMLESS_NAMES, is_sensitive

MAX_BYTES = 1_000_000
"""Bytes at the beginning of a file that are looked at."""

_REMEMBERED = 16_384
_CODE = frozenset({
    ".py", ".pyi", ".ipynb", ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".vue", ".svelte", ".go", ".rs", ".java",
    ".kt", ".scala", ".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".swift", ".m", ".rb", ".php", ".pl", ".lua", ".ex",
    ".exs", ".erl", ".hs", ".ml", ".clj", ".dart", ".zig", ".sql", ".css", ".scss", ".html", ".md", ".rst", ".lock",
})  # fmt: skip
"""What people read. A key there is made up for a test or an example, and hiding the file would break that."""


def file_holds_secret(path: Path) -> bool:
    """Return whether a file holds a secret: its name says so, or one is found in it.

    Files made to be shared (``.env.example``), source code and text for people count by their names only. What is no
    regular file or can't be read holds none. A file is looked at again when it has changed.
    """
    if is_sensitive(path):
        return True
    if path.suffix.lower() in _CODE or any(path.match(pattern) for pattern in HARMLESS_NAMES):
        return False
    try:
        state = os.lstat(path)
    except OSError:
        return False
    return _content_holds_secret(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=_REMEMBERED)
def _content_holds_secret(path: Path, _modified: int, _size: int) -> bool:
    from tui_agent.secret_detector import has_secret

    data = read_regular(path, MAX_BYTES) or b""
    return b"\0" not in data[:8_192] and has_secret(data.decode("utf-8", "replace"))
