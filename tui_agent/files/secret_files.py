"""May this be shown? The one place that decides it, for tools, commands' views, mentions and diffs.

A file whose name says that it holds secrets, or that is nothing but a secret, is asked about. In any other file the
secrets are left out and the rest is shown. Source code, text for people and files made to be shared
(``.env.example``) count by their names only: anything like a key there is made up for a test or an example.
"""

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from tui_agent.files.inside import read_regular
from tui_agent.files.sensitive import HARMLESS_NAMES, is_sensitive
from tui_agent.lazy import dataclass
from tui_agent.path_checks import is_directory
from tui_agent.text_files.encodings import UTF_8, detect

MAX_BYTES = 1_000_000
"""Bytes at the beginning of a file that are looked at as a whole; lines after that are looked at one by one."""

_REMEMBERED = 16_384
_MAX_SECRET_SHARE = 0.8
"""A file with a larger share of secrets than this is one."""
_CODE = frozenset({
    ".py", ".pyi", ".ipynb", ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".vue", ".svelte", ".go", ".rs", ".java",
    ".kt", ".scala", ".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".swift", ".m", ".rb", ".php", ".pl", ".lua", ".ex",
    ".exs", ".erl", ".hs", ".ml", ".clj", ".dart", ".zig", ".sql", ".css", ".scss", ".html", ".md", ".rst", ".lock",
})  # fmt: skip

_MAX_PROGRAM_NAMES = 4_000
_MAX_PROGRAM_DEPTH = 5
_MAX_SETTINGS_BYTES = 4_096
_SETTINGS = (
    ".json", ".jsonc", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".cnf", ".conf", ".properties", ".xml", ".plist",
    ".tf", ".tfvars", ".tfstate", ".hcl", ".gradle", ".kts", ".service", ".http", ".secret", ".secrets", ".token",
    ".sh", ".bash", ".zsh", ".fish", ".ps1", ".bat", ".cmd", ".txt", ".asc", ".crt", ".jwk", ".ppk", ".ovpn",
    ".config", ".htpasswd",
)  # fmt: skip
_DATA = (".log", ".csv", ".jsonl", ".dat")
_COPIES = (".bak", ".old", ".orig", ".prod", ".dev", ".test", "~")
_LIBRARIES = frozenset({
    "lib", "lib32", "lib64", "libexec", "include", "node_modules", "site-packages", "man", "doc", "docs", "legal",
    "jmods", "pkgs", "sources", "test", "tests", "shims", "completions", "plugins", ".git", "__pycache__",
})  # fmt: skip
"""Directories of installations in which nobody keeps settings."""


@dataclass(frozen=True, slots=True)
class _Content:
    """The secrets found in a file: the lines with secrets, from 1, as they may be shown."""

    lines: Mapping[int, str]
    secrets: tuple[str, ...] = ()
    is_secret: bool = False
    is_longer: bool = False


_NOTHING = _Content({})


@lru_cache(maxsize=_REMEMBERED)
def may_hold_secret(name: str) -> bool:
    """Whether a file's name is that of settings, a script or a text; large ones of data are others."""
    plain = name.casefold()
    return name.startswith(".") or "." not in name or plain.endswith((*_SETTINGS, *_DATA, *_COPIES))


def is_data(name: str) -> bool:
    """Whether a file's name is that of data, which grow without end."""
    return name.casefold().endswith(_DATA)


def is_secret_file(path: Path) -> bool:
    """Return whether a file as a whole is a secret, so that it is shown only when that was allowed."""
    return is_sensitive(path) or _content_of(path).is_secret


def file_holds_secret(path: Path) -> bool:
    """Return whether anything in a file is a secret. A file that is not regular or can't be read holds none."""
    return is_sensitive(path) or bool(_content_of(path).lines)


def secrets_among_programs(places: Iterable[Path]) -> Iterator[Path]:
    """Yield the files with secrets in directories of installed programs: their settings, and small scripts.

    Directories of libraries are left out, and everything after the first few thousand names: nearest ones come first.
    """
    pending = deque((place, 0) for place in places if is_directory(place))
    looked_at = 0
    while pending and looked_at < _MAX_PROGRAM_NAMES:
        folder, depth = pending.popleft()
        try:
            with os.scandir(folder) as rows:
                found = list(rows)
        except OSError:
            continue
        looked_at += len(found)
        for row in found:
            path = Path(row.path)
            if row.is_dir(follow_symlinks=False):
                if row.name not in _LIBRARIES and depth < _MAX_PROGRAM_DEPTH:
                    pending.append((path, depth + 1))
            elif is_sensitive(f".{row.name.lstrip('.')}") or is_sensitive(path) or _is_small_secret(row):
                yield path


def _is_small_secret(row: "os.DirEntry[str]") -> bool:
    path = Path(row.path)
    try:
        return (
            row.is_file(follow_symlinks=False)
            and may_hold_secret(row.name)
            and row.stat(follow_symlinks=False).st_size <= _MAX_SETTINGS_BYTES
            and file_holds_secret(path)
        )
    except OSError:
        return False


def shown_line(path: Path, number: int, line: str) -> str:
    """Return a line of a file as it may be shown; ``number`` counts from 1."""
    content = _content_of(path)
    if number in content.lines or not content.is_longer:
        return content.lines.get(number, line)
    from tui_agent.secret_detector import remove_secrets

    return remove_secrets(line)


def shown_text(path: Path, text: str) -> str:
    """Return a file's present or future text as it may be shown: the file itself is not looked at."""
    from tui_agent.secret_detector import remove_secrets

    return text if is_for_people(path) else remove_secrets(text)


def shown_quote(path: Path, text: str) -> str:
    """Return a text that may quote a file, a checker's output or a diff, as it may be shown."""
    from tui_agent.secret_detector import remove_known

    return remove_known(shown_text(path, text), _content_of(path).secrets)


def shown_diff(path: Path, texts: Iterable[str], diff: str) -> str:
    """Return a diff between texts of a file as it may be kept: sessions and their exports keep diffs."""
    from tui_agent.secret_detector import find_secrets, remove_known

    if is_for_people(path):
        return diff
    found = [text[secret.start : secret.end] for text in texts for secret in find_secrets(text[:MAX_BYTES])]
    return remove_known(diff, (line for secret in found for line in secret.split("\n")))


def is_for_people(path: Path) -> bool:
    """Return whether a file is source code, or text made to be shared: anything like a key there is none."""
    return path.suffix.lower() in _CODE or any(path.match(pattern) for pattern in HARMLESS_NAMES)


def _content_of(path: Path) -> _Content:
    """Return the secrets of a file, which is looked at again when it has changed."""
    if is_for_people(path):
        return _NOTHING
    try:
        state = os.lstat(path)
    except OSError:
        return _NOTHING
    return _content(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=_REMEMBERED)
def _content(path: Path, _modified: int, size: int) -> _Content:
    from tui_agent.secret_detector import REMOVED, find_secrets

    data = read_regular(path, MAX_BYTES) or b""
    encoding = detect(data)
    if encoding is None and b"\0" in data:
        return _NOTHING
    text = (encoding or UTF_8).decode(data)
    touched, pieces, end = set[int](), list[str](), 0
    found = find_secrets(text)
    for secret in found:
        first, more = text.count("\n", 0, secret.start) + 1, text.count("\n", secret.start, secret.end)
        touched.update(range(first, first + more + 1))
        # Lines keep their numbers.
        pieces += [text[end : secret.start], REMOVED, f"\n{REMOVED}" * more]
        end = secret.end
    lines = "".join([*pieces, text[end:]]).split("\n")
    hidden = sum(secret.end - secret.start for secret in found)
    return _Content(
        {number: lines[number - 1].rstrip("\r") for number in touched},
        tuple(line for secret in found for line in text[secret.start : secret.end].split("\n")),
        any(secret.is_key for secret in found) or hidden > _MAX_SECRET_SHARE * len(text.strip()),
        size > len(data),
    )
