"""Finds a project's paths with special rules for commands: repositories, secrets, build output, ….

Looks at files, changes none. A project is scanned once, and again after entries were added or
removed or files changed; that is seen from their times. Files that git doesn't track are searched for
secrets once, and again after a change. Files and directories for which there was no time are
``unseen``, and hidden from commands until they were searched.
"""

import os
import re
import stat
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace
from pathlib import Path

from tui_agent.files.descriptors import state_at
from tui_agent.files.ignore import IgnoreRules
from tui_agent.files.inside import read_regular, walk_beneath
from tui_agent.files.own_git import tracked_files
from tui_agent.files.published import is_published
from tui_agent.files.secret_files import MAX_BYTES, is_looked_into
from tui_agent.files.secret_search import FileState, GoesOn, SecretSearch
from tui_agent.files.sensitive import (
    is_bare_repository,
    is_of_repository,
    is_repository,
    is_sensitive,
    steers_programs,
)
from tui_agent.lazy import dataclass, frozen
from tui_agent.path_checks import is_file
from tui_agent.word_lists import in_order, listed

MAX_FILE_BYTES = 5_000_000
"""Maximum size, in bytes, of a file with a snapshot; changes of larger ones can't be undone."""

MAX_HOLES = 256 * 1024**2
"""Maximum bytes of holes in a file that is kept; reading a file with more could exhaust a program's
memory."""

MAX_DEPTH = 150
"""Deepest directory level that is scanned; deeper directories are left out."""

_MAX_POINTER_BYTES = 64_000
"""Maximum bytes read of a file that names a repository's directory."""

OUTPUT_DIRECTORIES = listed(
    """
    node_modules .venv venv target dist build out obj _build __pycache__ __pypackages__
    .pytest_cache .mypy_cache .ruff_cache .hypothesis .tox .nox .eggs htmlcov coverage .nyc_output
    .next .nuxt .output .svelte-kit .angular .astro .vite .parcel-cache .turbo .gradle .dart_tool
    .build deriveddata zig-out zig-cache .zig-cache cmakefiles cmake-build-debug cmake-build-release
    builddir _deps .elixir_ls dist-newstyle .stack-work .sass-cache _site storybook-static
    test-results playwright-report bazel-out .ipynb_checkpoints .import-linter_cache .bloop .metals
    .benchmarks
    """
)
"""Names, in lower case, of directories with generated files, if git ignores them."""

OUTPUT_SUFFIXES = in_order(
    """
    .o .obj .a .so .dylib .dll .lib .exe .lo .la .gch .pch .pdb .ilk .d .dep .pyc .pyo .class .rmeta
    .rlib .wasm .hi .dyn_hi .dyn_o .beam .cmi .cmo .cmx .tsbuildinfo .gcda .gcno .gcov .profraw
    .profdata .whl
    """
)
OUTPUT_NAMES = listed(
    """
    .coverage coverage.xml coverage.json lcov.info junit.xml .eslintcache .stylelintcache
    .testmondata .dmypy.json .ninja_log .ninja_deps cmakecache.txt compile_commands.json a.out
    .install-stamp config.status config.log
    """
)
"""Names of generated files, in lower case."""

PRODUCT_MAGIC = (
    b"\x7fELF",
    b"!<arch>\n",
    b"!<thin>\n",
    b"\xcf\xfa\xed\xfe",
    b"\xce\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe",
    b"\x00asm",
    b"BC\xc0\xde",
    b"MZ\x90\x00",
    b"\x1bLua",
)
"""First bytes of files made by compilers and linkers."""

_PACKAGES = frozenset({"node_modules", ".venv", "venv", "site-packages", ".tox", ".nox"})
"""Directories of installed packages. Settings and hooks in them aren't reported as special paths."""

_IGNORE_FILES = frozenset({".gitignore", ".ignore"})
CACHE_DIRECTORIES = listed(
    """
    .pytest_cache .mypy_cache .ruff_cache .hypothesis .nyc_output .parcel-cache .turbo .sass-cache
    .ipynb_checkpoints .import-linter_cache .eggs .benchmarks
    """
)
"""Names of caches, which count as output directories even if git doesn't ignore them."""
NEVER_KEPT = frozenset({"__pycache__"})
"""Names of output directories whose changes are always discarded: Python would run the code in them
unchecked, and makes it again quickly."""
STEERING = listed("config config.worktree hooks commondir alternates attributes include")
"""Names of entries of a repository that control what git runs and where it looks."""
_REPOSITORY_DATA = listed("objects refs logs")
"""Directories of a repository that have no such entries, except ``objects/info``."""


def is_output_name(name: str, *, directory: bool) -> bool:
    """Return True if files or directories of this name are usually generated."""
    plain = name.casefold()
    if directory:
        return plain in OUTPUT_DIRECTORIES
    return (
        plain in OUTPUT_NAMES or plain.startswith(".coverage.") or plain.endswith(OUTPUT_SUFFIXES)
    )


def is_output_directory(name: str, path: str, is_ignored: Callable[[str], bool]) -> bool:
    """Return True for a directory of generated files: a cache, or an output that git ignores."""
    if name in CACHE_DIRECTORIES:
        return True
    return is_output_name(name, directory=True) and is_ignored(path)


@dataclass
class ProjectScan:
    """A project's paths with special rules for commands, as found by one scan.

    Paths are absolute; no directory below the project's root on the way to them is a link.
    """

    root: Path
    repositories: list[Path] = field(default_factory=list)
    """Repositories' own data: ``.git`` directories and files, bare repositories."""
    elsewhere: list[Path] = field(default_factory=list)
    """Git directories to which ``.git`` files in the project point (worktrees, submodules)."""
    protected: list[Path] = field(default_factory=list)
    """Files and directories that other programs execute or obey."""
    secrets: list[Path] = field(default_factory=list)
    """Files that hold secrets, by their names or contents."""
    unseen: list[str] = field(default_factory=list, repr=False)
    """Files not searched for secrets yet, and directories that were not scanned."""
    outputs: list[Path] = field(default_factory=list)
    """Output directories, outermost ones only."""
    environments: list[Path] = field(default_factory=list)
    """Python's virtual environments."""
    looked_at: list[tuple[str, int]] = field(default_factory=list, repr=False)
    """Every scanned directory, and every other file whose change makes the scan outdated, with its
    status change time in nanoseconds."""
    named: list[Path] = field(default_factory=list, repr=False)
    """Files whose names say that they hold secrets."""
    files: list[FileState] = field(default_factory=list, repr=False)
    """Files whose contents have to be searched for secrets, with their state at the scan."""
    left_out: list[str] = field(default_factory=list, repr=False)
    """Directories not scanned, because they are nested too deeply or there was no time."""
    is_whole: bool = True
    """False if the time ran out before all directories were scanned."""

    @property
    def kept_outputs(self) -> list[Path]:
        """The output directories, except those named in `NEVER_KEPT`."""
        return [path for path in self.outputs if path.name not in NEVER_KEPT]

    def holds(self) -> bool:
        """Return True if the scan is still right: no directory or searched file has changed since."""
        try:
            return all(
                os.lstat(name).st_ctime_ns == changed for name, changed in self.looked_at
            ) and all(os.lstat(file.path).st_ctime_ns == file.changed for file in self.files)
        except OSError:
            return False

    def search(self, search: SecretSearch, goes_on: GoesOn) -> None:
        """Search the files that weren't searched yet, and set ``secrets`` and ``unseen``.

        Stops when ``goes_on`` returns False; the rest stays unseen.
        """
        search.look(self.files, goes_on)
        secrets = [*self.named]
        unseen = [*self.left_out]
        for file in dict.fromkeys(self.files):
            holds = search.known(file)
            if holds is None:
                unseen.append(file.path)
            elif holds:
                secrets.append(Path(file.path))
        # In this order, so that another thread that reads ``unseen`` first misses no secret.
        self.secrets = secrets
        self.unseen = unseen


def walk_project(root: Path, goes_on: GoesOn) -> ProjectScan:
    """Scan a project's directories, those nearest to the root first, without reading the files.

    ``root`` is a real path. When ``goes_on`` returns False, the remaining directories are left out.
    Call `ProjectScan.search` for the contents. Takes about 30 ms for 10,000 files.
    """
    found = ProjectScan(root)
    _Walk(found).go_through(goes_on)
    found.elsewhere += dict.fromkeys(
        path for link in found.repositories for path in _linked_repositories(link)
    )
    return found


@dataclass
class OutputState:
    """The dangerous entries in directories that a command changes directly. Paths are absolute."""

    linked: set[Path] = field(default_factory=set)
    """Those of the scanned directories with a file that has a hard link outside all of them."""
    planted: set[Path] = field(default_factory=set)
    """Entries that a command must not leave behind: files that programs obey, repositories, links to
    the outside, and pipes, sockets, devices and setuid files."""
    parts: set[Path] = field(default_factory=set)
    """Entries with names such as ``HEAD`` or ``refs``, which together make a directory a bare
    repository."""


def look_into(root: Path, directories: Iterable[Path], without: Iterable[Path] = ()) -> OutputState:
    """Find the dangerous entries below some directories of the project ``root``.

    Doesn't enter the directories ``without``, nor those that programs obey, such as repositories.
    Takes half a second for 100,000 files.
    """
    left_out = frozenset(map(str, without))
    names = Counter[tuple[int, int, int]]()
    seen = OutputState()
    found: dict[Path, set[tuple[int, int, int]]] = {}

    def enters(place: Path, name: str) -> bool:
        return not steers_programs(name) and f"{place}/{name}" not in left_out

    for directory in directories:
        here = found[directory] = set()
        for place, descriptor, rows in walk_beneath(directory, enters):
            is_bare = is_bare_repository({row.name for row in rows})
            for row in rows:
                state = state_at(descriptor, row.name)
                if state is None:
                    continue
                path = place / row.name
                is_part = is_of_repository(row.name)
                if is_part:
                    seen.parts.add(path)
                if (is_bare and is_part) or _is_planted(path, state, root):
                    seen.planted.add(path)
                elif stat.S_ISREG(state.st_mode) and state.st_nlink > 1:
                    here.add(key := (state.st_dev, state.st_ino, state.st_nlink))
                    names[key] += 1
    for place, keys in found.items():
        # A file with more names than were seen has one outside.
        if any(names[key] < key[2] for key in keys):
            seen.linked.add(place)
    return seen


def steering_in(repository: Path) -> Iterator[Path]:
    """Yield a repository's files and directories that control git, and its files with passwords."""

    def enters(place: Path, name: str) -> bool:
        if place.name in _REPOSITORY_DATA:
            return (place.name, name) == ("objects", "info")
        return name not in STEERING

    for place, _descriptor, rows in walk_beneath(repository, enters):
        if place.name in _REPOSITORY_DATA:
            continue
        for row in rows:
            is_secret = is_sensitive(row.name) and row.is_file(follow_symlinks=False)
            if is_secret or row.name in STEERING:
                yield place / row.name


def is_special(state: os.stat_result) -> bool:
    """Return True for a pipe, socket or device, or a file with setuid, setgid or very large holes."""
    if stat.S_ISREG(state.st_mode):
        holes = state.st_size - state.st_blocks * 512
        return bool(state.st_mode & (stat.S_ISUID | stat.S_ISGID)) or holes > MAX_HOLES
    return not (stat.S_ISLNK(state.st_mode) or stat.S_ISDIR(state.st_mode))


def _is_planted(path: Path, state: os.stat_result, root: Path) -> bool:
    if steers_programs(path.name) or is_special(state):
        return True
    real = root
    if stat.S_ISLNK(state.st_mode):
        real = Path(os.path.realpath(path))
    return not real.is_relative_to(root) and not (is_file(real) and os.access(real, os.X_OK))


@frozen
class _Place:
    """A directory of the walk, with the ignore rules in it.

    ``output`` and ``packages`` are True in an output directory, and in one of installed packages.
    """

    path: str
    rules: IgnoreRules
    output: bool = False
    packages: bool = False


class _Walk:
    """Walks through a project once, and adds what it finds to ``found``."""

    def __init__(self, found: ProjectScan) -> None:
        self._found = found
        self._root = str(found.root)
        self._tracked = tracked_files(found.root)

    def go_through(self, goes_on: GoesOn) -> None:
        root = self._found.root
        pending = deque([_Place(self._root, IgnoreRules.above(root).entering(root))])
        while pending:
            place = pending.popleft()
            self._found.is_whole = self._found.is_whole and goes_on()
            if self._found.is_whole and place.path.count("/", len(self._root)) <= MAX_DEPTH:
                pending.extend(self._enter(place))
            else:
                self._found.left_out.append(place.path)

    def _enter(self, place: _Place) -> list[_Place]:
        """Record the contents of a directory; returns the directories in it to walk through."""
        try:
            changed = os.lstat(place.path).st_ctime_ns
            with os.scandir(place.path) as scanned:
                rows = list(scanned)
        except OSError:
            return []
        self._found.looked_at.append((place.path, changed))
        names = {row.name for row in rows}
        if is_bare_repository(names) and not place.packages:
            self._found.repositories.append(Path(place.path))
            return []
        rules = place.rules
        if not place.output and not _IGNORE_FILES.isdisjoint(names) and place.path != self._root:
            rules = rules.entering(place.path)
        if "pyvenv.cfg" in names:
            self._found.environments.append(Path(place.path))
        here = replace(place, rules=rules)
        below: list[_Place] = []
        for row in rows:
            try:
                self._note(row, here, below)
            except OSError:
                continue  # it is gone by now
        return below

    def _note(self, row: "os.DirEntry[str]", place: _Place, below: list[_Place]) -> None:
        """Record an entry of a directory; adds a directory to walk through to ``below``."""
        if row.name in _IGNORE_FILES and not place.output:
            self._look_again_at(row)
        if is_repository(row.name) and not place.packages:
            self._found.repositories.append(Path(row.path))
            return
        if steers_programs(row.name) and not place.packages:
            self._found.protected.append(Path(row.path))
        if row.is_dir(follow_symlinks=False):
            below.append(self._directory(row, place))
        else:
            self._file(row)

    def _directory(self, row: "os.DirEntry[str]", place: _Place) -> _Place:
        def is_ignored(path: str) -> bool:
            return place.rules.ignored(path, directory=True)

        output = place.output or is_output_directory(row.name, row.path, is_ignored)
        # Python obeys the entry points in a new one, so its name alone doesn't make it output.
        if not output and row.name.endswith(".egg-info"):
            output = is_ignored(row.path)
        if output and not place.output:
            self._found.outputs.append(Path(row.path))
        return _Place(
            row.path, place.rules, output, place.packages or (output and row.name in _PACKAGES)
        )

    def _file(self, row: "os.DirEntry[str]") -> None:
        if is_sensitive(row.name):
            if is_published(row.path, row.stat(follow_symlinks=False)):
                self._look_again_at(row)
            else:
                self._found.named.append(Path(row.path))
        elif row.path not in self._tracked and row.is_file(follow_symlinks=False):
            state = row.stat(follow_symlinks=False)
            if not 0 < state.st_size <= MAX_BYTES or not is_looked_into(row.path, state.st_size):
                return
            if is_published(row.path, state):
                self._look_again_at(row)
            else:
                self._found.files.append(FileState(row.path, state.st_ctime_ns, state.st_size))

    def _look_again_at(self, row: "os.DirEntry[str]") -> None:
        """Make a later change of this file trigger a new scan."""
        self._found.looked_at.append((row.path, row.stat(follow_symlinks=False).st_ctime_ns))


def _linked_repositories(link: Path) -> Iterator[Path]:
    """Yield the real path of the git directory that a ``.git`` file points to, if that is genuine.

    A command could write such a file to open any directory, so the repository must in turn name this
    file; otherwise nothing is yielded.
    """
    try:
        directory = (link.parent / _read(link).removeprefix("gitdir:").strip()).resolve()
        # git notes a worktree's ``.git`` file in the repository outside, which a command in the
        # project can't write.
        if (directory / "gitdir").is_file():
            repository = directory.parent.parent
            known = directory.parent.name == "worktrees" and Path(
                _read(directory / "gitdir").strip()
            )
        else:
            repository = directory
            named = re.search(
                r"^\s*worktree\s*=(.*)$", _read(directory / "config"), re.MULTILINE | re.IGNORECASE
            )
            known = named is not None and directory / named[1].strip() / link.name
        is_repository_directory = is_bare_repository(row.name for row in repository.iterdir())
        if known and known.resolve() == link.resolve() and is_repository_directory:
            yield repository
    except (OSError, ValueError, RuntimeError):
        return


def _read(path: Path) -> str:
    """Return the first 64,000 bytes of a regular file as text; raises ValueError if it can't be read."""
    data = read_regular(path, _MAX_POINTER_BYTES)
    if data is None:
        raise ValueError(path)
    return data.decode()
