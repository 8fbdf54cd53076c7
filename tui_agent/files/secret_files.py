"""Decides which files hold secrets, and redacts secrets in texts, for tools, commands and diffs.

A whole file counts as a secret if its name says so, if it contains a private key or a seed phrase,
or if most of its text is secrets. The user is asked before a tool reads such a file by name. Such a
file is left out of searches of a directory, it is empty for commands in the sandbox, and language
servers don't receive it. In all other files, secrets are redacted and the rest is shown.

There are exceptions. Source code, Markdown and files made to be shared (``.env.example``) are
judged only by name, because keys in them are usually made up. A file of an installed Python package
is shown if it still matches the package's list of files. Of the other files of installed packages,
only small files are searched.

This module reads files, and caches what it found in them.
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
"""Number of bytes at the start of a file that are searched for secrets together.

Lines after that are searched one by one when they are shown.
"""

_REMEMBERED = 16_384
_MAX_SECRET_SHARE = 0.8
"""If secrets make up more than this share of a file's text, the whole file counts as a secret."""
_CODE = listed(
    """
    .py .pyi .js .jsx .mjs .cjs .ts .tsx .vue .svelte .go .rs .java .kt .scala .c .h .cc .cpp .hpp
    .cs .swift .m .rb .php .pl .lua .ex .exs .erl .hs .ml .clj .dart .zig .css .scss .md .rst
    """
)

_MAX_PROGRAM_NAMES = 4_000
_MAX_PROGRAM_DEPTH = 5
_MAX_SETTINGS_BYTES = 4_096
"""Maximum size, in bytes, of the files of an installed program that are searched for secrets.

Larger files contain the program's data, not settings.
"""
_FEWEST_BETWEEN_ZEROS = 16
"""A file with more than one zero byte per this many bytes is a program or database, not text."""
_PACKAGES = ("/node_modules/", "/site-packages/")
_LIBRARIES = listed(
    """
    lib lib32 lib64 libexec include node_modules site-packages man doc docs legal jmods pkgs sources
    test tests shims completions plugins .git __pycache__
    """
)
"""Names of directories of installed programs that contain no settings."""


@frozen
class _Content:
    """The secrets found in a file.

    ``lines`` contains the redacted text of each line with a secret, by its line number, from 1.
    ``secrets`` contains the secrets. A secret of several lines is split into its lines.
    ``is_secret`` says that the whole file is a secret. ``is_longer`` says that the file has more
    than `MAX_BYTES` bytes, and that the rest was not searched.
    """

    lines: Mapping[int, str]
    secrets: tuple[str, ...] = ()
    is_secret: bool = False
    is_longer: bool = False


_NOTHING = _Content({})


def is_secret_file(path: Path) -> bool:
    """Return True if a file as a whole is a secret, which is shown only with the user's permission.

    The file is judged by its name and content, or by its name alone if it can't be read.
    """
    return (is_sensitive(path) or _content_of(path).is_secret) and not _is_published(path)


def file_holds_secret(path: Path) -> bool:
    """Return True if a file's name or its first `MAX_BYTES` bytes show that it contains a secret.

    A file that can't be read or isn't regular is judged by its name alone.
    """
    return (is_sensitive(path) or bool(_content_of(path).lines)) and not _is_published(path)


def is_searched(path: str, size: int) -> bool:
    """Return True if a file with this path and size (in bytes) is searched for secrets.

    Returns False for source code, for files made to be shared, and for files of installed packages
    that are larger than 4 kB.
    """
    if _is_code(path) or is_made_to_be_shared(path):
        return False
    return size <= _MAX_SETTINGS_BYTES or not any(part in path for part in _PACKAGES)


def text_in(data: bytes) -> str:
    """Decode a file's bytes with their detected encoding. Return "" if they are not text.

    If there are a few zero bytes, they become spaces, because grep and other commands show such a
    file as text.
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
    """Yield files that hold secrets, such as settings, in directories of installed programs.

    These are files whose names say that they hold secrets, and small files that contain a secret.
    Directories of libraries are skipped. Files nearest to ``places`` come first, and the search
    ends after about 4,000 names.
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
    """Return a line of a file with its secrets redacted.

    ``number`` is the line's number, from 1.
    """
    content = _content_of(path)
    if number in content.lines or not content.is_longer:
        return content.lines.get(number, line)
    from tui_agent.secret_detector import remove_secrets

    return remove_secrets(line)


def shown_text(path: Path, text: str) -> str:
    """Return the text of a file with secrets redacted. The text may be current or proposed.

    The file itself is not read. Text of source code, Markdown and files made to be shared is
    returned unchanged.
    """
    from tui_agent.secret_detector import remove_secrets

    if is_code_or_example(path):
        return text
    return remove_secrets(text)


def shown_quote(path: Path, text: str) -> str:
    """Return text that may quote a file, such as a checker's output, with secrets redacted.

    Redacts the secrets found in the text, and the secrets in the file on disk. For source code,
    Markdown and files made to be shared, redacts nothing.
    """
    from tui_agent.secret_detector import remove_known

    return remove_known(shown_text(path, text), _content_of(path).secrets)


def shown_diff(path: Path, texts: Iterable[str], diff: str) -> str:
    """Return a diff between versions of a file, with the secrets of these versions redacted.

    ``texts`` are the versions. The first `MAX_BYTES` characters of each are searched. A diff of
    source code, Markdown or a file made to be shared is returned unchanged.
    """
    from tui_agent.secret_detector import find_secrets, remove_known

    if is_code_or_example(path):
        return diff
    found = list[str]()
    for text in texts:
        for secret in find_secrets(text[:MAX_BYTES]):
            found += text[secret.start : secret.end].split("\n")
    return remove_known(diff, found)


def is_code_or_example(path: Path) -> bool:
    """Return True if a file is source code, Markdown or made to be shared, judging by its name.

    Secrets in such files are assumed to be made up.
    """
    return _is_code(path.name) or is_made_to_be_shared(path.name)


def _is_code(path: str) -> bool:
    return path[path.rfind(".") :].lower() in _CODE


def _is_published(path: Path) -> bool:
    try:
        return is_published(str(path), os.lstat(path))
    except OSError:
        return False


def _content_of(path: Path) -> _Content:
    """Return the secrets in a file. The file is read again only if it has changed."""
    try:
        state = os.lstat(path)
    except OSError:
        return _NOTHING
    if not is_searched(str(path), state.st_size) or is_published(str(path), state):
        return _NOTHING
    # Use the status change time, because programs can set the modification time back.
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
        # Each line of a secret is replaced by exactly one line, so that line numbers stay the same.
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
