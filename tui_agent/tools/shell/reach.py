"""Where the words of a command lead on disk: out of the project, or to files that usually hold secrets."""

import glob
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Literal

from tui_agent.tools.permission import Permission, PermissionNeed
from tui_agent.tools.sensitive import is_sensitive
from tui_agent.tools.shell.words import Word

HARMLESS_DEVICES = frozenset(
    {"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/zero", "/dev/urandom", "/dev/random"}
)
_OPEN_FILE = re.compile(r"/dev/fd/\d+")
SYSTEM_PROGRAMS = ("/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/opt/homebrew/bin")
MOST_FILES = 20_000
"""Files below a directory that are looked at before a recursive search counts as unclear."""
_MOST_MATCHES = 2_000
_NOT_THE_USERS = frozenset({".git", "node_modules", ".venv", "venv", "site-packages", "__pycache__", ".tox", "target"})
"""Directories full of other people's files, whose keys are for tests."""
_SECRETS = (".env", ".env.local", ".envrc", ".netrc", ".npmrc", ".pypirc", ".git-credentials", "id_rsa", "id_ed25519",
            "server.pem", "server.key", "credentials", "credentials.json", "prod.env")  # fmt: skip
_ORDINARY = ("app.py", "README.md", "main.c", "index.html", "package.json", "a", ".gitignore")
_SEPARATORS = re.compile(r"[=@:,]")
_TEXT_LANGUAGES = frozenset({"sed", "awk", "gawk", "perl", "jq", "grep", "rg", "ag", "ack", "curl", "git"})


@dataclass(frozen=True, slots=True)
class Ground:
    """Where a command runs. ``folders`` are the directories it may be in by the time it does."""

    project: Path
    folders: tuple[Path, ...]
    home: str = field(default_factory=lambda: os.path.expanduser("~"))  # noqa: PTH111 - as the shell does

    def real(self, text: str) -> Iterator[Path]:
        """Yield where a path leads from each of the directories, links followed."""
        for folder in self.folders:
            written = os.path.join(folder, text)  # noqa: PTH118 - called for every word of every command
            yield Path(os.path.realpath(written))
            plain = os.path.normpath(written)
            if plain != written:
                yield Path(os.path.realpath(plain))


def path_texts(word: Word, home: str) -> list[str]:
    """Return everything in a word that may be a path: itself, and what follows ``=``, ``@``, ``:`` or an option."""
    text = word.value if word.value is not None else word.start
    if word.tilde:
        text = _without_tilde(text, home)
    found = [text, *_SEPARATORS.split(text)]
    if re.match(r"-[A-Za-z][^-=]", text):
        found.append(text[2:])
    return [home + part[1:] if part == "~" or part.startswith("~/") else part for part in dict.fromkeys(found) if part]


def _without_tilde(text: str, home: str) -> str:
    name, slash, rest = text.partition("/")
    return (home if name == "~" else os.path.expanduser(name)) + slash + rest  # noqa: PTH111 - as the shell does


def needs_of_words(words: Iterable[Word], ground: Ground, *, contents: bool, program: str) -> Iterator[PermissionNeed]:
    """Yield what it takes to reach what words name: directories outside, files with secrets."""
    for word in words:
        for text in path_texts(word, ground.home):
            yield from needs_of_path(text, ground, contents=contents, strict=program not in _TEXT_LANGUAGES)
        if word.glob and contents:
            yield from _needs_of_pattern(word.value or "", ground)


def needs_of_path(text: str, ground: Ground, *, contents: bool, strict: bool = True) -> Iterator[PermissionNeed]:
    """Yield what it takes to reach a path; ``strict`` takes one for a path that exists nowhere."""
    if is_harmless_device(text) or "\0" in text:
        return
    # A pattern of sed or an address may begin with a slash and be no path at all.
    is_path = strict or not text.startswith("/") or os.path.lexists("/" + text.lstrip("/").split("/")[0])
    for real in ground.real(text):
        if is_path and not real.is_relative_to(ground.project):
            yield outside(real)
        if contents and (is_sensitive(real) or is_sensitive(text) or _may_be_secret(text)):
            yield PermissionNeed(Permission.READ, shown(real, ground))


def is_harmless_device(text: str) -> bool:
    """Return whether a path is a device that anything may read and write, or a file the command has open anyway."""
    return text in HARMLESS_DEVICES or _OPEN_FILE.fullmatch(text) is not None


def outside(real: Path) -> PermissionNeed:
    """Return the need for a place outside of the project."""
    directory = real if real.is_dir() else real.parent
    return PermissionNeed(Permission.EXTERNAL_DIRECTORY, str(directory), detail=str(real))


def shown(real: Path, ground: Ground) -> str:
    """Return a path as rules know it: relative to the project inside of it."""
    return real.relative_to(ground.project).as_posix() if real.is_relative_to(ground.project) else real.as_posix()


def _may_be_secret(text: str) -> bool:
    """Whether a pattern is meant for secrets: it matches some, and no ordinary file."""
    name = text.rpartition("/")[2]
    if not any(mark in name for mark in "*?["):
        return False
    return any(fnmatchcase(secret, name) for secret in _SECRETS) and not any(fnmatchcase(o, name) for o in _ORDINARY)


def matches(pattern: str, ground: Ground) -> Iterator[str]:
    """Yield the files a pattern stands for now, at most a few thousand."""
    for folder in ground.folders:
        yield from islice(glob.iglob(pattern, root_dir=folder), _MOST_MATCHES)  # noqa: PTH207 - as the shell does


def _needs_of_pattern(pattern: str, ground: Ground) -> Iterator[PermissionNeed]:
    for name in matches(pattern, ground):
        for folder in ground.folders:
            real = Path(os.path.realpath(os.path.join(folder, name)))  # noqa: PTH118 - as above
            if is_sensitive(name) or is_sensitive(real):
                yield PermissionNeed(Permission.READ, shown(real, ground))
            if os.path.lexists(real) and not real.is_relative_to(ground.project):
                yield outside(real)


def gives_options(word: Word, ground: Ground) -> bool:
    """Whether a pattern stands for a file whose name would be taken for an option."""
    return (
        word.glob
        and word.start[:1] in {"*", "?", "["}
        and any(name.startswith("-") for name in matches(word.value or "", ground))
    )


def secrets_below(
    directories: Iterable[Path], *, kind: Literal["visible", "all"], most: int = MOST_FILES
) -> list[Path] | None:
    """Return files below directories that usually hold secrets, None when there are too many files to tell."""
    found: list[Path] = []
    pending = [str(directory) for directory in directories]
    count = 0
    while pending:
        try:
            with os.scandir(pending.pop()) as rows:
                for row in rows:
                    count += 1
                    if count > most:
                        return None
                    if row.name in _NOT_THE_USERS or (kind == "visible" and row.name.startswith(".")):
                        continue
                    if row.is_dir(follow_symlinks=False):
                        pending.append(row.path)
                    elif _sensitive(row.name):
                        found.append(Path(row.path))
        except OSError:
            continue
    return found


@lru_cache(maxsize=4_096)
def _sensitive(name: str) -> bool:
    return is_sensitive(name)


def hides_a_repository(ground: Ground) -> bool:
    """Whether git would find a bare repository below the project's root: its settings can run programs."""
    for folder in ground.folders:
        here = Path(os.path.realpath(folder))
        while here != ground.project and here.is_relative_to(ground.project):
            if all(os.path.lexists(here / name) for name in ("HEAD", "objects", "refs")):
                return True
            here = here.parent
    return False
