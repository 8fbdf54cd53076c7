"""Runs git for this program: the only place that does.

A repository can name programs in its settings (``core.fsmonitor``, filters, ``diff.external``,
hooks, remotes that are fetched from when an object is missing), lead elsewhere (``core.worktree``,
``include.path``), and so can the submodules and the repositories embedded in it. So none of its
settings are read. Git runs on a directory of ours that holds a configuration of ours and links to
the repository's index, objects and references. It gets the place of the files, looks into no
submodule, fetches nothing, and writes nothing.

Only the subcommands in ``_SUBCOMMANDS`` are run: they read.
"""

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from tui_agent.files.inside import read_regular
from tui_agent.lazy import LazyPattern
from tui_agent.path_checks import is_directory, is_file, is_there, real_path
from tui_agent.processes.own_programs import bare_environment, find_program, limited

GIT_SECONDS = 5.0
"""Default time limit of git, in seconds."""

_SUBCOMMANDS: dict[str, tuple[str, ...]] = {
    "cat-file": (),
    "diff-files": ("--ignore-submodules=all",),
    "ls-files": (),
    "status": ("--ignore-submodules=all", "--no-renames"),
}
"""The commands, with options that are always given: git starts another git in a submodule, which reads its settings.

``git diff`` is not among them: it writes the times of files into the index, optional locks or not.
"""

_PLAINLY = ("--no-pager", "--literal-pathspecs")

_SMALL = 65_536
"""Maximum bytes read of ``HEAD``, of a ``.git`` file and of settings."""

_MAX_HASHED_BYTES = 10_000_000
_SHA1_DIGITS = 40

_MAX_REFERENCE_BYTES = 16_000_000
"""Maximum bytes read of ``packed-refs``."""

_KEPT_SETTINGS: dict[str, dict[str, tuple[str, ...]]] = {
    "core": {
        "filemode": ("true", "false"),
        "symlinks": ("true", "false"),
        "ignorecase": ("true", "false"),
        "precomposeunicode": ("true", "false"),
        "autocrlf": ("true", "false", "input"),
        "eol": ("lf", "crlf", "native"),
    },
    "extensions": {"objectformat": ("sha1", "sha256")},
}
"""Settings of a repository that affect how files are compared, with the values that are adopted."""

_OWN_SETTINGS = """\
[core]
    bare = false
    # A file with another time of change is another file.
    trustctime = true
    checkStat = default
    fsmonitor = false
    untrackedCache = false
    hooksPath = /dev/null
    attributesFile = /dev/null
    excludesFile = /dev/null
    pager = cat
    repositoryformatversion = 1
"""
_PRIVATE_SETTINGS = """\
[core]
    bare = false
    repositoryformatversion = 1
"""
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_PAGER": "cat",
}
_MAX_LOG_BYTES = 16_000_000
_COMMITTED = LazyPattern(
    r"[0-9a-f]{40,64} ([0-9a-f]{40,64}) .*> (\d+) [+-]\d{4}\t(?:commit|merge|revert|cherry-pick|am)\b"
)
"""A line in the log of ``HEAD`` about a new commit: the commit's id, and its time in seconds."""
_BRANCH = LazyPattern(r"ref: refs/heads/([^\s\x00-\x1f\x7f~^:?*\[\\]{1,250})")
_COMMIT = LazyPattern(r"[0-9a-f]{40}|[0-9a-f]{64}")


def run_git(
    folder: Path, command: str, *more: str, text: bytes = b"", seconds: float = GIT_SECONDS
) -> bytes | None:
    """Run git in a folder and return its output; ``text`` is its input.

    Blocks: call it in a thread.

    ``command`` is one of the subcommands that are known here, and its options; ``more`` follow.

    Returns:
        None where there is no repository or no git, and where git refuses or takes too long.
    """
    subcommand, *options = command.split()
    forced = _SUBCOMMANDS[subcommand]
    top = find_project(folder)
    git = find_program("git", outside=top)
    repository = repository_of(top)
    if git is None or repository is None:
        return None
    try:
        with tempfile.TemporaryDirectory(prefix="tui-agent-git-") as name:
            furnish(Path(name), repository)
            done = subprocess.run(
                limited(git, *_PLAINLY, subcommand, *forced, *options, *more),
                cwd=folder,
                env=bare_environment({**_ENVIRONMENT, "GIT_DIR": name, "GIT_WORK_TREE": str(top)}),
                input=text,
                capture_output=True,
                timeout=seconds,
                check=True,
            )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def call_git(
    arguments: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    *,
    text: bytes = b"",
    seconds: float,
) -> "subprocess.CompletedProcess[bytes]":
    """Run any git command on a repository of this program's own, which the environment names.

    Raises:
        FileNotFoundError: there is no git.
        OSError, subprocess.TimeoutExpired: it can't be run, or takes too long.
    """
    git = find_program("git", outside=cwd)
    if git is None:
        raise FileNotFoundError("git is not installed")
    return subprocess.run(
        [git, *_PLAINLY, *arguments],
        cwd=cwd,
        env=bare_environment({**_ENVIRONMENT, **environment}),
        input=text,
        capture_output=True,
        timeout=seconds,
        check=False,
    )


def is_modified(folder: Path, seconds: float = GIT_SECONDS) -> bool:
    """Return True if tracked files differ from the last commit, False if not or unknown.

    Submodules are ignored.
    """
    return bool(run_git(folder, "status --porcelain --untracked-files=no", seconds=seconds))


def held_as_they_are(folder: Path, paths: Iterable[Path]) -> frozenset[Path]:
    """Return those of a folder's files that git has exactly as they are now.

    Anybody with the repository has them.

    Submodules and files that git changes when it takes them in (line ends, filters) are not among
    them.
    """
    index = _index_time(folder)
    states = []
    for path in paths:
        with contextlib.suppress(OSError):
            state = path.stat(follow_symlinks=False)
            states.append((path, state.st_ctime_ns, state.st_size))
    if index and states:
        return _held(folder, index, tuple(states))
    return frozenset()


def tracked_files(folder: Path) -> frozenset[str]:
    """Return the absolute paths of the tracked files in a folder; empty outside a repository."""
    index = _index_time(folder)
    if index:
        return _tracked(folder, index)
    return frozenset()


def _index_time(folder: Path) -> int:
    """Return when the index of a folder's repository last changed, in nanoseconds.

    0 without one.
    """
    repository = repository_of(find_project(folder))
    try:
        if repository is None:
            return 0
        return (repository / "index").stat().st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=64)
def _tracked(folder: Path, _index: int) -> frozenset[str]:
    names = (run_git(folder, "ls-files -z") or b"").split(b"\0")
    return frozenset(f"{folder}/{os.fsdecode(name)}" for name in names)


@lru_cache(maxsize=64)
def _held(folder: Path, _index: int, states: tuple[tuple[Path, int, int], ...]) -> frozenset[Path]:
    names = [str(path) for path, _changed, _size in states]
    listed = run_git(folder, "ls-files --stage -z --", *names) or b""
    held = set[Path]()
    for row in listed.split(b"\0")[:-1]:
        traits, _, name = row.partition(b"\t")
        path = folder / os.fsdecode(name)
        staged = traits.split(b" ")[1].decode()
        if staged == _blob_name(path, staged):
            held.add(path)
    return frozenset(held)


def _blob_name(path: Path, like: str) -> str | None:
    """Return git's object id for a file's content, hashed as the id ``like``; None if too large."""
    data = read_regular(path, _MAX_HASHED_BYTES + 1)
    if data is None or len(data) > _MAX_HASHED_BYTES:
        return None
    if len(like) == _SHA1_DIGITS:
        name = hashlib.sha1(usedforsecurity=False)
    else:
        name = hashlib.sha256()
    name.update(b"blob %d\0" % len(data) + data)
    return name.hexdigest()


def branch_of(project: Path) -> str | None:
    """Return the checked-out branch, a short commit when detached, None outside a repository.

    Reads ``.git/HEAD`` itself: starting git costs more than the rest of the head.
    """
    repository = repository_of(project)
    head = None
    if repository is not None:
        head = _line(repository / "HEAD")
    if head is None:
        return None
    if branch := _BRANCH.fullmatch(head):
        return branch[1]
    if _COMMIT.fullmatch(head):
        return head[:9]
    return None


def commits_between(project: Path, first: float, last: float) -> list[str]:
    """Return the short names of commits made in a project between two times, in seconds.

    Reads the log of ``HEAD`` itself. Empty where there is no repository or no log.
    """
    repository = repository_of(project)
    log = None
    if repository is not None:
        log = read_regular(repository / "logs" / "HEAD", _MAX_LOG_BYTES)
    found = []
    for line in (log or b"").decode(errors="replace").splitlines():
        made = _COMMITTED.match(line)
        if made is not None and int(first) <= int(made[2]) <= int(last) + 1:
            found.append(made[1][:7])
    return found


def repository_of(top: Path) -> Path | None:
    """Return the directory with a repository's own data, None if there is none.

    A worktree or submodule has a file in its place, which names the directory.
    """
    git = top / ".git"
    if is_directory(git):
        return git
    pointer = _line(git)
    if pointer is None or not pointer.startswith("gitdir:"):
        return None
    place = top / pointer.removeprefix("gitdir:").strip()
    return place if is_directory(place) else None


def private_repository(project: Path, place: Path, original: Path) -> tuple[Path, Path] | None:
    """Make a repository that knows all the project's does, and shares nothing writable with it.

    Index and references are copies. Objects are read from the project's repository, by the name
    that they have below ``original``, a link to the project: the project itself may be hidden where
    git runs.

    Returns:
        The place that the objects are read from and where that is in truth; None where nothing
        could be made.
    """
    repository = repository_of(project)
    if repository is None:
        return None
    shared = real_path(shared_directory(repository))
    head = _line(repository / "HEAD")
    if head is None or not (_BRANCH.fullmatch(head) or _COMMIT.fullmatch(head)):
        return None
    real = shared / "objects"
    seen = real
    if real.is_relative_to(project):
        seen = original / real.relative_to(project)
    (place / "objects" / "info").mkdir(parents=True)
    _write(place / "objects" / "info" / "alternates", f"{seen}\n")
    _write(place / "config", _PRIVATE_SETTINGS, *_settings(shared / "config"))
    _write(place / "HEAD", f"{head}\n")
    for name in ("refs/heads", "refs/tags", "info"):
        (place / name).mkdir(parents=True)
    for source in (repository / "index", shared / "packed-refs", shared / "info" / "exclude"):
        inner = source.relative_to(repository if source.name == "index" else shared)
        if is_file(source) and not source.is_symlink():
            shutil.copy2(source, place / inner)
    for branch in (shared / "refs").rglob("*"):
        if is_file(branch) and (commit := _line(branch)) is not None and _COMMIT.fullmatch(commit):
            target = place / branch.relative_to(shared)
            target.parent.mkdir(parents=True, exist_ok=True)
            _write(target, f"{commit}\n")
    return seen, real


def furnish(own: Path, repository: Path) -> None:
    """Make a git directory with everything of a repository except what could run programs."""
    shared = shared_directory(repository)
    _write(own / "config", _OWN_SETTINGS, *_settings(shared / "config"))
    _write(own / "HEAD", f"{head_of(repository, shared) or 'ref: refs/heads/none'}\n")
    (own / "refs").mkdir()
    (own / "objects").symlink_to(shared.absolute() / "objects")
    with os.scandir(repository) as rows:
        for row in rows:
            if row.name == "index" or row.name.startswith("sharedindex."):
                (own / row.name).symlink_to(repository.absolute() / row.name)


def shared_directory(repository: Path) -> Path:
    place = _line(repository / "commondir")
    if place:
        return repository / place
    return repository


def main_worktree(top: Path) -> Path:
    """Return the project that ``top`` is a worktree of, or ``top`` itself.

    The repository must list the worktree, because a file in a checkout could name any repository.
    """
    repository = repository_of(top)
    if repository is None or real_path(_line(repository / "gitdir") or "") != real_path(
        top / ".git"
    ):
        return top
    shared = real_path(shared_directory(repository))
    return shared.parent if shared.name == ".git" else top


def head_of(repository: Path, shared: Path) -> str | None:
    """Return the checked-out commit, None before the first or for other reference formats."""
    head = _line(repository / "HEAD") or ""
    if _COMMIT.fullmatch(head):
        return head
    branch = _BRANCH.fullmatch(head)
    if branch is None or ".." in branch[1]:
        return None
    name = f"refs/heads/{branch[1]}"
    loose = _line(shared / name) or ""
    if _COMMIT.fullmatch(loose):
        return loose
    packed = read_regular(shared / "packed-refs", _MAX_REFERENCE_BYTES) or b""
    found = re.search(
        rb"^([0-9a-f]{40,64}) " + re.escape(name.encode()) + rb"$", packed, re.MULTILINE
    )
    if found and _COMMIT.fullmatch(found[1].decode()):
        return found[1].decode()
    return None


def _settings(path: Path) -> Iterator[str]:
    """Yield the lines adopted from a repository's settings, if written in the usual form."""
    section = ""
    for line in (read_regular(path, _SMALL) or b"").decode("utf-8", "replace").splitlines():
        bare = line.strip().lower()
        if bare.startswith("["):
            section = ""
            if bare.endswith("]"):
                section = bare[1:-1]
            continue
        key, _, value = (part.strip() for part in bare.partition("="))
        if value in _KEPT_SETTINGS.get(section, {}).get(key, ()):
            yield f"[{section}]\n    {key} = {value}\n"


def _write(path: Path, *texts: str) -> None:
    path.write_text("".join(texts), encoding="utf-8")


def _line(path: Path) -> str | None:
    """Return the only line of a small file, None for anything else."""
    data = read_regular(path, _SMALL)
    try:
        text = (data or b"").decode("utf-8").strip()
    except UnicodeDecodeError:
        return None
    return text if text and "\n" not in text else None


def find_project(cwd: Path) -> Path:
    """Return the root of the repository that ``cwd`` is in, or ``cwd`` itself outside one."""
    return next((folder for folder in (cwd, *cwd.parents) if is_there(folder / ".git")), cwd)
