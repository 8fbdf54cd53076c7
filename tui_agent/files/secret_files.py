"""The one place that decides whether a file may be shown, for tools, commands, mentions and diffs.

The user is asked about a file whose name says that it holds secrets, or that is nothing but a
secret. In all other files secrets are redacted and the rest is shown. Exceptions: source code, text
for people and files made to be shared (``.env.example``) are judged by name only, because their
keys are made up; a file of an installed Python package is shown if the package lists its digest; of
other installed files only small ones are searched.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from tui_agent.files.inside import read_regular
from tui_agent.files.nearest import nearest_files
from tui_agent.files.published import is_published
from tui_agent.files.sensitive import is_made_to_be_shared, is_sensitive
from tui_agent.lazy import frozen
from tui_agent.text_files.encodings import UTF_8, detect
from tui_agent.word_lists import listed

MAX_BYTES = 1_000_000
"""Bytes at the beginning of a file that are searched as a whole; later lines are searched
singly."""

_REMEMBERED = 16_384
_MAX_SECRET_SHARE = 0.8
"""Share of a file's text above which secrets make the whole file a secret."""
_CODE = listed(
    """
    .py .pyi .js .jsx .mjs .cjs .ts .tsx .vue .svelte .go .rs .java .kt .scala .c .h .cc .cpp .hpp
    .cs .swift .m .rb .php .pl .lua .ex .exs .erl .hs .ml .clj .dart .zig .css .scss .md .rst
    """
)

_MAX_PROGRAM_NAMES = 4_000
_MAX_PROGRAM_DEPTH = 5
_MAX_SETTINGS_BYTES = 4_096
"""Maximum size of an installed program's file that is searched, in bytes; larger ones are its
makers' data."""
_FEWEST_BETWEEN_ZEROS = 16
"""Fewest bytes per zero byte in a text; programs and databases have fewer."""
_PACKAGES = ("/node_modules/", "/site-packages/")
_LIBRARIES = listed(
    """
    lib lib32 lib64 libexec include node_modules site-packages man doc docs legal jmods pkgs sources
    test tests shims completions plugins .git __pycache__
    """
)
"""Directories of installed programs that don't hold settings."""


@frozen
class _Content:
    """The result for a file: its lines with secrets, by number from 1, as they may be shown."""

    lines: Mapping[int, str]
    secrets: tuple[str, ...] = ()
    is_secret: bool = False
    is_longer: bool = False


_NOTHING = _Content({})


def is_secret_file(path: Path) -> bool:
    """Return True if a file as a whole is a secret, which is shown only with permission."""
    return (is_sensitive(path) or _content_of(path).is_secret) and not _is_published(path)


def file_holds_secret(path: Path) -> bool:
    """Return True if there is a secret in a file.

    False for a file that is not regular or can't be read.
    """
    return (is_sensitive(path) or bool(_content_of(path).lines)) and not _is_published(path)


def is_looked_into(path: str, size: int) -> bool:
    """Return True if a file's content is searched.

    Not for source code and large files of packages.
    """
    if _is_code(path) or is_made_to_be_shared(path):
        return False
    return size <= _MAX_SETTINGS_BYTES or not any(part in path for part in _PACKAGES)


def text_in(data: bytes) -> str:
    """Return the text of a file's bytes, "" if they are not text.

    A text with a few zero bytes still is one, because commands see it as such.
    """
    if data.isascii() and b"\0" not in data:
        return data.decode("ascii")
    encoding = detect(data)
    if encoding is None and b"\0" in data:
        if data.count(b"\0") * _FEWEST_BETWEEN_ZEROS > len(data):
            return ""
        data = data.replace(b"\0", b" ")
    return (encoding or UTF_8).decode(data)


def secrets_among_programs(places: Iterable[Path]) -> Iterator[Path]:
    """Yield the files with secrets in directories of installed programs: their settings, and small scripts.

    Directories of libraries are left out, and everything after the first few thousand names:
    nearest ones come first.
    """
    rows = nearest_files(
        places, _may_hold_settings, names=_MAX_PROGRAM_NAMES, depth=_MAX_PROGRAM_DEPTH
    )
    for row in rows:
        is_named = is_sensitive(f".{row.name.lstrip('.')}") or is_sensitive(row.name)
        if is_named or _is_small_secret(row):
            yield Path(row.path)


def _may_hold_settings(directory: str) -> bool:
    return directory not in _LIBRARIES


def _is_small_secret(row: "os.DirEntry[str]") -> bool:
    path = Path(row.path)
    try:
        return (
            row.is_file(follow_symlinks=False)
            and row.stat(follow_symlinks=False).st_size <= _MAX_SETTINGS_BYTES
            and file_holds_secret(path)
        )
    except OSError:
        return False


def shown_line(path: Path, number: int, line: str) -> str:
    """Return a line of a file with its secrets redacted; ``number`` counts from 1."""
    content = _content_of(path)
    if number in content.lines or not content.is_longer:
        return content.lines.get(number, line)
    from tui_agent.secret_detector import remove_secrets

    return remove_secrets(line)


def shown_text(path: Path, text: str) -> str:
    """Return a file's present or future text with its secrets redacted; doesn't read the file."""
    from tui_agent.secret_detector import remove_secrets

    if is_for_people(path):
        return text
    return remove_secrets(text)


def shown_quote(path: Path, text: str) -> str:
    """Return a text that may quote a file, such as a checker's output, without its secrets."""
    from tui_agent.secret_detector import remove_known

    return remove_known(shown_text(path, text), _content_of(path).secrets)


def shown_diff(path: Path, texts: Iterable[str], diff: str) -> str:
    """Return a diff of a file's texts with its secrets redacted, to be stored in the session."""
    from tui_agent.secret_detector import find_secrets, remove_known

    if is_for_people(path):
        return diff
    found = list[str]()
    for text in texts:
        for secret in find_secrets(text[:MAX_BYTES]):
            found += text[secret.start : secret.end].split("\n")
    return remove_known(diff, found)


def is_for_people(path: Path) -> bool:
    """Return True for source code and text made to be shared, whose keys are made up."""
    return _is_code(path.name) or is_made_to_be_shared(path.name)


def _is_code(path: str) -> bool:
    return path[path.rfind(".") :].lower() in _CODE


def _is_published(path: Path) -> bool:
    try:
        return is_published(str(path), os.lstat(path))
    except OSError:
        return False


def _content_of(path: Path) -> _Content:
    """Return the secrets of a file; an unchanged file is not read again."""
    try:
        state = os.lstat(path)
    except OSError:
        return _NOTHING
    if not is_looked_into(str(path), state.st_size) or is_published(str(path), state):
        return _NOTHING
    # A program can set the other time back.
    return _content(path, state.st_ctime_ns, state.st_size)


@lru_cache(maxsize=_REMEMBERED)
def _content(path: Path, _changed: int, size: int) -> _Content:
    from tui_agent.secret_detector import REMOVED, Secret, find_secrets, is_secret_value

    text = text_in(read_regular(path, MAX_BYTES) or b"")
    touched = set[int]()
    pieces = list[str]()
    secrets = list[str]()
    hidden = 0
    end = 0
    found = find_secrets(text)
    if is_secret_value(text.strip(), path.name):
        found = [Secret(text.index(text.strip()), len(text.rstrip()), is_key=True)]
    for secret in found:
        first = text.count("\n", 0, secret.start) + 1
        more = text.count("\n", secret.start, secret.end)
        touched.update(range(first, first + more + 1))
        # Lines keep their numbers.
        pieces += [text[end : secret.start], REMOVED, f"\n{REMOVED}" * more]
        end = secret.end
        hidden += secret.end - secret.start
        secrets += text[secret.start : secret.end].split("\n")
    lines = "".join([*pieces, text[end:]]).split("\n")
    return _Content(
        {number: lines[number - 1].rstrip("\r") for number in touched},
        tuple(secrets),
        any(secret.is_key for secret in found) or hidden > _MAX_SECRET_SHARE * len(text.strip()),
        size > MAX_BYTES,
    )
