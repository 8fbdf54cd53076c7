"""Runs git for this program, without running any program that a repository's settings name.

A repository's settings can name programs to run (``core.fsmonitor``, filters, ``diff.external``,
hooks, remotes from which missing objects are fetched) and lead to other files (``core.worktree``,
``include.path``). The settings of submodules and embedded repositories can do the same.

With `run_git`, git uses none of these settings. It works on a temporary git directory that contains
this program's own configuration and links to the repository's index and objects. Only the read-only
subcommands in ``_SUBCOMMANDS`` are allowed. git doesn't enter submodules, and neither fetches nor
writes anything. `call_git` runs any command, for ``git_writing`` and ``plugin_sources``. They must
pass a git directory with this program's own configuration, or a command that runs no other program.

Some facts (branch, commit, time of the index) are read from the files in ``.git``, without git.
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
"""Default time limit of a git command, in seconds."""

_SUBCOMMANDS: dict[str, tuple[str, ...]] = {
    "cat-file": (),
    "diff-files": ("--ignore-submodules=all",),
    "ls-files": (),
    "status": ("--ignore-submodules=all", "--no-renames"),
}
"""The allowed subcommands, each with options that are always added.

Without these options, git would start another git process in each submodule, and that process would
read the submodule's settings.

``git diff`` isn't allowed, because it writes the times of files to the index, even without optional
locks.
"""

_PLAINLY = ("--no-pager", "--literal-pathspecs")

_SMALL = 65_536
"""Maximum number of bytes read from ``HEAD``, a ``.git`` file or a settings file."""

_MAX_HASHED_BYTES = 10_000_000
_SHA1_DIGITS = 40

_MAX_REFERENCE_BYTES = 16_000_000
"""Maximum number of bytes that are read from the git file ``packed-refs``."""

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
"""The settings of a repository that git may use, with their allowed values.

They affect how files are compared. No other settings of the repository are used.
"""

_OWN_SETTINGS = """\
[core]
    bare = false
    # A file whose status change time differs is compared again.
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
"""Matches a line in ``logs/HEAD`` about a new commit. Groups: commit id, and time in seconds."""
_BRANCH = LazyPattern(r"ref: refs/heads/([^\s\x00-\x1f\x7f~^:?*\[\\]{1,250})")
_COMMIT = LazyPattern(r"[0-9a-f]{40}|[0-9a-f]{64}")


class _GitFailedError(Exception):
    """Raised when git fails or takes too long, perhaps only because the machine is busy.

    Also raised if git isn't installed, or if there is no repository.
    """


def run_git(
    folder: Path, command: str, *more: str, text: bytes = b"", seconds: float = GIT_SECONDS
) -> bytes | None:
    """Run a read-only git command in a folder of the user's repository, and return its output.

    ``command`` is a subcommand in ``_SUBCOMMANDS`` (KeyError otherwise) with options, separated by
    spaces. The arguments ``more`` are added after it. ``text`` is git's input. This function
    blocks, so call it in a thread.

    Returns:
        None if there is no repository or no git, or if git fails or takes longer than ``seconds``.
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
            link_repository(Path(name), repository)
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
    """Run any git command on the repository that ``GIT_DIR`` in ``environment`` names.

    Use this only for a repository that this program has created, or for a command that doesn't run
    any program that the repository's settings name. Returns the finished process, whatever its exit
    code.

    Raises:
        FileNotFoundError: there is no git.
        OSError, subprocess.TimeoutExpired: git can't be run, or takes longer than ``seconds``.
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
    """Return True if tracked files in the repository of a folder differ from the last commit.

    Returns False if git fails or takes longer than ``seconds``. Submodules are ignored. This
    function blocks, so call it in a thread.
    """
    return bool(run_git(folder, "status --porcelain --untracked-files=no", seconds=seconds))


def unchanged_since_staged(folder: Path, paths: Iterable[Path]) -> frozenset[Path]:
    """Return the paths in a folder whose current content equals the content in git's index.

    This content is no secret to anyone who has a copy of the repository. The result never includes
    files in submodules, or files whose content git changes when it stores them (line ends,
    filters). The result is empty outside a repository, or if git fails.
    """
    index = _index_time(folder)
    states = []
    for path in paths:
        with contextlib.suppress(OSError):
            state = path.stat(follow_symlinks=False)
            states.append((path, state.st_ctime_ns, state.st_size))
    if index and states:
        with contextlib.suppress(_GitFailedError):
            return _held(folder, index, tuple(states))
    return frozenset()


def tracked_files(folder: Path) -> frozenset[str]:
    """Return the absolute paths of the tracked files in a folder.

    Returns an empty set outside a repository, or if git fails. Starts git only if the index has
    changed since the last successful call.
    """
    index = _index_time(folder)
    if index:
        with contextlib.suppress(_GitFailedError):
            return _tracked(folder, index)
    return frozenset()


def _index_time(folder: Path) -> int:
    """Return the modification time of the git index of a folder's repository.

    It is in nanoseconds since the epoch, or 0 if there is no repository or no index.
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
    names = _listing(folder, "ls-files -z").split(b"\0")
    return frozenset(f"{folder}/{os.fsdecode(name)}" for name in names if name)


@lru_cache(maxsize=64)
def _held(folder: Path, _index: int, states: tuple[tuple[Path, int, int], ...]) -> frozenset[Path]:
    names = [str(path) for path, _changed, _size in states]
    listed = _listing(folder, "ls-files --stage -z --", *names)
    held = set[Path]()
    for row in listed.split(b"\0")[:-1]:
        traits, _, name = row.partition(b"\t")
        path = folder / os.fsdecode(name)
        staged = traits.split(b" ")[1].decode()
        if staged == _blob_name(path, staged):
            held.add(path)
    return frozenset(held)


def _listing(folder: Path, command: str, *more: str) -> bytes:
    """Run git as `run_git` does, but raise an error on failure, so that no failure is cached."""
    listed = run_git(folder, command, *more)
    if listed is None:
        raise _GitFailedError
    return listed


def _blob_name(path: Path, like: str) -> str | None:
    """Return git's object id for a file's current content, with the same kind of hash as ``like``.

    Returns None if the file can't be read or is larger than 10 MB.
    """
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
    """Return the checked-out branch, or the commit id's first 9 digits if ``HEAD`` is detached.

    Returns None outside a repository, or if ``HEAD`` can't be read. Reads ``.git/HEAD``, because
    starting git would take longer.
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
    """Return the short ids (7 digits) of the commits made in a project between two times.

    The oldest comes first. Times are in seconds since the epoch. Reads ``.git/logs/HEAD``. If there
    is no such file, returns [].
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
    """Return the git directory of the repository whose root is ``top``, or None if there is none.

    The git directory is ``.git``, or the directory that a ``.git`` file names (worktrees,
    submodules).
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
    """Create a git directory ``place`` with the project's history and its own index and references.

    Changes in the new git directory don't affect the project's repository, from which only objects
    are read. Objects inside the project are read through ``original``, another path to the project,
    because the project's own path may be hidden where git runs.

    Returns:
        The path through which objects are read, and their real path, or None if the project has no
        repository, or ``HEAD`` can't be read.
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


def link_repository(own: Path, repository: Path) -> None:
    """Turn the directory ``own`` into a git directory with the index and objects of ``repository``.

    The index and the objects are links. Settings and hooks that could run programs are not
    included.
    """
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
    """Return the git directory that all worktrees of a repository share.

    If ``repository`` isn't the git directory of an additional worktree, returns ``repository``.
    """
    place = _line(repository / "commondir")
    if place:
        return repository / place
    return repository


def main_worktree(top: Path) -> Path:
    """Return the main working tree if ``top`` is another worktree of the repository, else ``top``.

    A worktree counts only if the repository lists it, because a ``.git`` file could name any
    repository.
    """
    repository = repository_of(top)
    if repository is None or real_path(_line(repository / "gitdir") or "") != real_path(
        top / ".git"
    ):
        return top
    shared = real_path(shared_directory(repository))
    return shared.parent if shared.name == ".git" else top


def head_of(repository: Path, shared: Path) -> str | None:
    """Return the full id of the checked-out commit, or None if there is no commit yet.

    ``shared`` is the result of `shared_directory`. Also returns None if the repository doesn't
    store its references in files (reftable).
    """
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
    """Yield the settings in a git configuration file that ``_KEPT_SETTINGS`` allows.

    Each setting is yielded as text for another configuration file. Only settings that are written
    on one line in the usual form are found.
    """
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
    """Return the text of a one-line file; None if it has more lines, is empty or can't be read."""
    data = read_regular(path, _SMALL)
    try:
        text = (data or b"").decode("utf-8").strip()
    except UnicodeDecodeError:
        return None
    return text if text and "\n" not in text else None


def find_project(cwd: Path) -> Path:
    """Return the nearest directory with a ``.git``, searching from ``cwd`` upwards.

    Returns ``cwd`` if there is no such directory.
    """
    return next((folder for folder in (cwd, *cwd.parents) if is_there(folder / ".git")), cwd)
