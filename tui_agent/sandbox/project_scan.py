"""The paths of a project that a view treats in a special way. Looks at files, changes none.

A project is scanned once, and again when entries were added or removed: the directories' states are compared, not
their contents.
"""

import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import field
from pathlib import Path

from tui_agent.files.descriptors import entries, open_beneath, state_at
from tui_agent.files.ignore import IgnoreRules
from tui_agent.files.inside import directory as opened_directory
from tui_agent.files.inside import read_regular
from tui_agent.files.own_git import tracked_files
from tui_agent.files.secret_files import is_data, may_hold_secret
from tui_agent.files.sensitive import (
    is_bare_repository,
    is_of_repository,
    is_repository,
    is_sensitive,
    steers_programs,
)
from tui_agent.lazy import dataclass
from tui_agent.path_checks import is_file

MAX_ENTRIES = 200_000
"""A project with more can't be scanned; commands in it ask as if there were no sandbox."""

MAX_FILE_BYTES = 5_000_000
"""A larger file has no image in a checkpoint: its changes can't be undone."""

MAX_HOLES = 256 * 1024**2
"""Bytes without data that a file may have: a program that reads it whole would not survive more."""

MAX_DEPTH = 150
"""Depth of nested directories that is scanned; in output directories, deeper ones are left out."""

MAX_SETTINGS_BYTES = 64_000
"""Size of the largest file that is looked into though git does not ignore it, or it is a log: larger ones are data."""
MAX_UNTRACKED_BYTES = 4_000_000
"""Bytes of such files that are looked into, which takes up to two seconds the first time."""

OUTPUT_DIRECTORIES = frozenset({
    "node_modules", ".venv", "venv", "target", "dist", "build", "out", "obj", "_build", "__pycache__",
    "__pypackages__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".tox", ".nox", ".eggs",
    "htmlcov", "coverage", ".nyc_output", ".next", ".nuxt", ".output", ".svelte-kit", ".angular", ".astro", ".vite",
    ".parcel-cache", ".turbo", ".gradle", ".dart_tool", ".build", "deriveddata", "zig-out", "zig-cache", ".zig-cache",
    "cmakefiles", "cmake-build-debug", "cmake-build-release", "builddir", "_deps", ".elixir_ls",
    "dist-newstyle", ".stack-work", ".sass-cache", "_site", "storybook-static",
    "test-results", "playwright-report", "bazel-out", ".ipynb_checkpoints", ".import-linter_cache", ".bloop", ".metals",
})  # fmt: skip
"""Directories that programs make again, by name in lower case, where they are ignored."""

OUTPUT_SUFFIXES = (
    ".o", ".obj", ".a", ".so", ".dylib", ".dll", ".lib", ".exe", ".lo", ".la", ".gch", ".pch", ".pdb", ".ilk", ".d",
    ".dep", ".pyc", ".pyo", ".class", ".rmeta", ".rlib", ".wasm", ".hi", ".dyn_hi", ".dyn_o", ".beam", ".cmi", ".cmo",
    ".cmx", ".tsbuildinfo", ".gcda", ".gcno", ".gcov", ".profraw", ".profdata", ".whl",
)  # fmt: skip
OUTPUT_NAMES = frozenset({
    ".coverage", "coverage.xml", "coverage.json", "lcov.info", "junit.xml", ".eslintcache", ".stylelintcache",
    ".testmondata", ".dmypy.json", ".ninja_log", ".ninja_deps", "cmakecache.txt", "compile_commands.json", "a.out",
    ".install-stamp", "config.status", "config.log",
})  # fmt: skip
"""Files that programs make again, by their ends and names in lower case."""

PRODUCT_MAGIC = (
    b"\x7fELF", b"!<arch>\n", b"!<thin>\n", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe",
    b"\x00asm", b"BC\xc0\xde", b"MZ\x90\x00", b"\x1bLua",
)  # fmt: skip
"""How the output of compilers and linkers begins."""

_OTHERS = frozenset({"node_modules", ".venv", "venv", "site-packages", "__pycache__", ".tox", ".nox", "target"})
"""Directories full of other people's files: the keys in them are for tests."""

_IGNORE_FILES = frozenset({".gitignore", ".ignore"})
CACHE_DIRECTORIES = frozenset({
    ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".nyc_output", ".parcel-cache", ".turbo",
    ".sass-cache", ".ipynb_checkpoints", ".import-linter_cache", ".eggs",
})  # fmt: skip
"""Those of them that are nobody's sources, whether git ignores them or not."""
NEVER_KEPT = frozenset({"__pycache__"})
"""Directories made again in no time, and run by the next Python without being looked at."""
STEERING = frozenset({"config", "config.worktree", "hooks", "commondir", "alternates", "attributes", "include"})
"""Entries of a repository that say what git runs and where it looks."""


def is_output_name(name: str, *, directory: bool) -> bool:
    """Whether programs make files or directories of this name, and make them again."""
    plain = name.casefold()
    if directory:
        return plain in OUTPUT_DIRECTORIES
    return plain in OUTPUT_NAMES or plain.startswith(".coverage.") or plain.endswith(OUTPUT_SUFFIXES)


@dataclass(slots=True)
class ProjectScan:
    """A project at a moment. Paths are absolute, without links on the way from the root of the project."""

    root: Path
    repositories: list[Path] = field(default_factory=list)
    """Repositories' own data: ``.git`` directories and files, bare repositories."""
    elsewhere: list[Path] = field(default_factory=list)
    """Directories outside of the project in which linked worktrees and submodules keep their repository."""
    protected: list[Path] = field(default_factory=list)
    """Files that other programs execute or obey."""
    secrets: list[Path] = field(default_factory=list)
    outputs: list[Path] = field(default_factory=list)
    """Directories that are made again, outermost ones only."""
    environments: list[Path] = field(default_factory=list)
    """Python's virtual environments."""
    count: int = 0
    looked_at: list[tuple[str, int]] = field(default_factory=list, repr=False)
    """Every directory, and every file whose content counted, with when it last changed; nobody can set that back."""

    def holds(self) -> bool:
        """Whether nothing was added or taken away since."""
        try:
            return all(os.stat(name).st_ctime_ns == modified for name, modified in self.looked_at)  # noqa: PTH116 - a thousand of them for every command
        except OSError:
            return False


def scan_project(root: Path, holds_secret: Callable[[Path], bool]) -> ProjectScan:
    """Go through a project, whose path is without links; takes about 15 ms for 10,000 files."""
    found = ProjectScan(root)
    _Scanner(found, holds_secret).go_through(str(root), IgnoreRules.above(root).entering(root), depth_in_output=0)
    found.elsewhere += dict.fromkeys(path for link in found.repositories for path in _linked_repositories(link))
    return found


@dataclass(slots=True)
class OutputState:
    """What directories hold that a command works on itself. Paths are absolute."""

    linked: set[Path] = field(default_factory=set)
    """Those of the directories in which a file has names outside of all."""
    planted: set[Path] = field(default_factory=set)
    """What no command may leave: files that programs obey, repositories, links that lead outside, special files."""
    parts: set[Path] = field(default_factory=set)
    """Entries that belong to a repository where all parts of one are there."""


def look_into(root: Path, directories: Iterable[Path], without: Iterable[Path] = ()) -> OutputState:
    """Scan directories of a project, except those in ``without``; 100,000 files take half a second."""
    left_out = frozenset(map(str, without))
    names, seen = Counter[tuple[int, int, int]](), OutputState()
    found: dict[Path, set[tuple[int, int, int]]] = {}
    for directory in directories:
        here = found[directory] = set()
        for place, descriptor in _walk(directory, left_out):
            rows = entries(descriptor)
            is_bare = is_bare_repository({row.name for row in rows})
            for row in rows:
                state = state_at(descriptor, row.name)
                if state is None:
                    continue
                path, is_part = place / row.name, is_of_repository(row.name)
                if is_part:
                    seen.parts.add(path)
                if (is_bare and is_part) or _is_planted(path, state, root):
                    seen.planted.add(path)
                elif stat.S_ISREG(state.st_mode) and state.st_nlink > 1:
                    here.add(key := (state.st_dev, state.st_ino, state.st_nlink))
                    names[key] += 1
    seen.linked = {place for place, keys in found.items() if any(names[key] < key[2] for key in keys)}
    return seen


def _walk(top: Path, left_out: frozenset[str] = frozenset()) -> Iterator[tuple[Path, int]]:
    """Yield a directory and those below it with a descriptor of each; no link is followed to one."""
    try:
        with opened_directory(top) as root:
            pending = [""]
            while pending:
                inner = pending.pop()
                try:
                    descriptor = open_beneath(root, inner)
                except OSError:
                    continue
                try:
                    yield top / inner, descriptor
                    below = (row.name for row in entries(descriptor) if row.is_dir(follow_symlinks=False))
                    names = (f"{inner}/{name}" if inner else name for name in below if not steers_programs(name))
                    pending += (name for name in names if f"{top}/{name}" not in left_out)
                finally:
                    os.close(descriptor)
    except OSError:
        return


def steering_in(repository: Path) -> Iterator[Path]:
    """Yield files of a repository that say what git runs and where it looks, and its passwords."""
    with suppress(OSError), opened_directory(repository) as root:
        pending = [""]
        while pending:
            inner = pending.pop()
            here = repository / inner
            try:
                descriptor = open_beneath(root, inner)
            except OSError:
                continue
            try:
                rows = entries(descriptor)
            finally:
                os.close(descriptor)
            if here.name in {"objects", "refs", "logs"}:
                pending += [f"{inner}/info"] if here.name == "objects" else []
                continue
            for row in rows:
                if row.name in {*STEERING, "hooks"} or (is_sensitive(row.name) and row.is_file(follow_symlinks=False)):
                    yield here / row.name
                elif row.is_dir(follow_symlinks=False):
                    pending.append(f"{inner}/{row.name}" if inner else row.name)


def is_special(state: os.stat_result) -> bool:
    """Whether it is neither file, link nor directory, runs as its owner or group, or is mostly holes."""
    if stat.S_ISREG(state.st_mode):
        holes = state.st_size - state.st_blocks * 512
        return bool(state.st_mode & (stat.S_ISUID | stat.S_ISGID)) or holes > MAX_HOLES
    return not (stat.S_ISLNK(state.st_mode) or stat.S_ISDIR(state.st_mode))


def _is_planted(path: Path, state: os.stat_result, root: Path) -> bool:
    if steers_programs(path.name) or is_special(state):
        return True
    real = Path(os.path.realpath(path)) if stat.S_ISLNK(state.st_mode) else root
    return not real.is_relative_to(root) and not (is_file(real) and os.access(real, os.X_OK))


class _Scanner:
    def __init__(self, found: ProjectScan, holds_secret: Callable[[Path], bool]) -> None:
        self._found = found
        self._root = str(found.root)
        self._holds_secret = holds_secret
        self._tracked = tracked_files(found.root)
        self._unread = MAX_UNTRACKED_BYTES

    def go_through(self, directory: str, rules: IgnoreRules, depth_in_output: int) -> None:
        """Look at a directory and everything below; ``depth_in_output`` is not 0 in build output."""
        too_deep = directory.count("/", len(self._root)) > MAX_DEPTH
        if too_deep and not depth_in_output:
            self._found.count = MAX_ENTRIES + 1
        if self._found.count > MAX_ENTRIES or too_deep:
            return
        try:
            modified = os.stat(directory).st_ctime_ns  # noqa: PTH116 - called for every directory of a project
            with os.scandir(directory) as scanned:
                rows = list(scanned)
        except OSError:
            return
        self._found.looked_at.append((directory, modified))
        self._found.count += len(rows)
        names = {row.name for row in rows}
        if is_bare_repository(names):
            self._found.repositories.append(Path(directory))
            return
        if not depth_in_output and not _IGNORE_FILES.isdisjoint(names) and directory != self._root:
            rules = rules.entering(directory)
        if "pyvenv.cfg" in names:
            self._found.environments.append(Path(directory))
        self._entries(rows, rules, depth_in_output)

    def _entries(self, rows: Iterable["os.DirEntry[str]"], rules: IgnoreRules, depth_in_output: int) -> None:
        for row in rows:
            name = row.name
            if name in _IGNORE_FILES:
                self._note(row)
            if is_repository(name):
                self._found.repositories.append(Path(row.path))
            elif steers_programs(name):
                self._found.protected.append(Path(row.path))
            elif row.is_dir(follow_symlinks=False):
                self._directory(row, rules, depth_in_output)
            elif is_sensitive(name) or (
                not depth_in_output and may_hold_secret(name) and self._is_informative(row, rules)
            ):
                self._found.secrets.append(Path(row.path))

    def _directory(self, row: "os.DirEntry[str]", rules: IgnoreRules, depth_in_output: int) -> None:
        # Entry points in a new one would be obeyed: it is not output by its name alone.
        named = is_output_name(row.name, directory=True) or row.name.endswith(".egg-info")
        output = depth_in_output or (named and rules.ignored(row.path, directory=True))
        if output and not depth_in_output:
            self._found.outputs.append(Path(row.path))
        if row.name in _OTHERS and output:
            if os.path.lexists(os.path.join(row.path, "pyvenv.cfg")):  # noqa: PTH118 - as scandir names it
                self._found.environments.append(Path(row.path))
            return
        self.go_through(row.path, rules, int(bool(output)))

    def _is_informative(self, row: "os.DirEntry[str]", rules: IgnoreRules) -> bool:
        """Whether a file that is not shared holds a secret: tracked files are shown as they are."""
        is_ignored = rules.ignored(row.path, directory=False)
        if not is_ignored or is_data(row.name):
            size = row.stat(follow_symlinks=False).st_size
            if (not is_ignored and row.path in self._tracked) or size > min(MAX_SETTINGS_BYTES, self._unread):
                return False
            self._unread -= size
        self._note(row)
        return self._holds_secret(Path(row.path))

    def _note(self, row: "os.DirEntry[str]") -> None:
        """Remember a file whose content counts: another one makes another scan."""
        self._found.looked_at.append((row.path, row.stat(follow_symlinks=False).st_ctime_ns))


def _linked_repositories(link: Path) -> Iterator[Path]:
    """Yield the repository that a ``.git`` file leads to.

    Such a file could be written by a command to name any directory, so the other end must name this one too.
    """
    try:
        directory = (link.parent / _read(link).removeprefix("gitdir:").strip()).resolve()
        # A command can write both ends in the project. Git keeps a worktree's only in the repository itself, so
        # only a repository that has written this link down is shown.
        if (directory / "gitdir").is_file():
            repository = directory.parent.parent
            known = directory.parent.name == "worktrees" and Path(_read(directory / "gitdir").strip())
        else:
            repository = directory
            named = re.search(r"^\s*worktree\s*=(.*)$", _read(directory / "config"), re.MULTILINE | re.IGNORECASE)
            known = named is not None and directory / named[1].strip() / link.name
        is_repository_directory = is_bare_repository(row.name for row in repository.iterdir())
        if known and known.resolve() == link.resolve() and is_repository_directory:
            yield repository
    except (OSError, ValueError, RuntimeError):
        return


def _read(path: Path) -> str:
    """Return the text of a small file.

    Raises:
        ValueError: it is something else.
    """
    data = read_regular(path, MAX_SETTINGS_BYTES)
    if data is None:
        raise ValueError(path)
    return data.decode()
