"""Finds the paths of this machine that commands see: the system, toolchains and caches.

Looks at files. Commands don't see other paths outside the project, except those that the
environment or the settings name. Only parts of a toolchain's directory are shown, because many
toolchains keep credentials in it.
"""

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from tui_agent.files.secret_files import secrets_among_programs
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.path_checks import is_directory, is_file
from tui_agent.word_lists import in_order

SYSTEM = in_order(
    """
    /usr /bin /sbin /lib /lib32 /lib64 /libx32 /etc /opt /nix /sys/devices/system /sys/fs/cgroup
    /var/lib/ca-certificates /run/current-system /run/booted-system /run/opengl-driver
    /run/opengl-driver-32 /run/wrappers
    """
)
"""System directories that commands see on Linux. Those below ``/run`` exist on NixOS."""

MACOS_SYSTEM = in_order(
    """
    /usr /bin /sbin /opt /nix /System /Library /Applications /dev /private/etc
    /private/var/db/timezone /private/var/db/dyld /private/var/select
    """
)

ADMINISTERED = ("/etc", "/opt")
"""Directories in which a file counts as a secret of the system unless everyone can read it.

If this user, for example root, can read such a file, it is hidden from commands.
"""

SETTINGS = in_order(
    ".gitconfig .config/git/config .config/git/ignore .config/git/attributes .tool-versions"
)
"""Files in the home directory that tools need. Commands don't see those that contain secrets."""

_PREFIX = in_order(
    """
    bin sbin lib lib32 lib64 libexec include share ssl etc jmods conf legal pyvenv.cfg condabin
    conda-meta envs pkgs x86_64-conda-linux-gnu aarch64-conda-linux-gnu
    """
)
"""The parts of an installation that commands see if only ``PATH`` names the installation."""

_PYTHON = LazyPattern(r"(?:python|pypy)[\d.]*t?")

_WHOLE = in_order(
    """
    VIRTUAL_ENV CONDA_PREFIX JAVA_HOME GOROOT ANDROID_HOME ANDROID_SDK_ROOT MAVEN_HOME M2_HOME
    GRADLE_HOME HOMEBREW_PREFIX R_LIBS_USER PLAYWRIGHT_BROWSERS_PATH
    """
)
"""Environment variables that name directories of programs. Commands see these as a whole."""

_PROGRAMS = {
    "bin": "",
    ".rustup": "RUSTUP_HOME",
    ".pyenv": "PYENV_ROOT",
    ".rbenv": "RBENV_ROOT",
    ".nvm": "NVM_DIR",
    ".fnm": "FNM_DIR",
    ".local/share/fnm": "",
    ".volta": "VOLTA_HOME",
    ".asdf": "ASDF_DATA_DIR",
    ".local/share/mise": "MISE_DATA_DIR",
    ".sdkman": "SDKMAN_DIR",
    ".rvm": "",
    ".local/share/pipx": "PIPX_HOME",
    ".local/share/virtualenvs": "WORKON_HOME",
    ".jdks": "",
    ".dotnet": "DOTNET_ROOT",
    ".ghcup": "",
    ".opam": "OPAMROOT",
    ".nix-profile": "",
    ".cache/ms-playwright": "",
    ".cache/puppeteer": "",
    ".cache/Cypress": "",
}
"""Directories in the home directory whose whole contents commands can see.

Each has the environment variable that may name another place for it, "" for none.
"""

_CACHES = {
    ".ccache": "CCACHE_DIR",
    ".cache/pypoetry": "",
    ".cache/pre-commit": "PRE_COMMIT_HOME",
    ".cache/coursier": "",
    ".cache/deno": "DENO_DIR",
    ".cache/go-build": "GOCACHE",
    ".cache/pip": "PIP_CACHE_DIR",
    ".cache/uv": "UV_CACHE_DIR",
    ".cache/yarn": "YARN_CACHE_FOLDER",
    ".cache/composer": "",
    ".cache/ccache": "",
    ".cache/sccache": "SCCACHE_DIR",
}
"""Caches in the home directory that commands can write to.

Each has the environment variable that may name another place for it, "" for none.
"""


@frozen
class Toolchain:
    """A toolchain's directory, and the parts of it that commands see.

    ``home`` is its path in the home directory; the environment ``variable`` may name another place.
    ``shown`` are the read-only parts, ``written`` those that commands can write to: the changes go
    to a layer, and the user's files stay unchanged. Both are names separated by spaces; "." is the
    whole directory.
    """

    home: str
    shown: str = ""
    written: str = ""
    variable: str = ""


TOOLCHAINS = (
    *(Toolchain(home, ".", "", variable) for home, variable in _PROGRAMS.items()),
    *(Toolchain(home, "", ".", variable) for home, variable in _CACHES.items()),
    Toolchain(".local", "bin lib libexec pipx state/nix"),
    Toolchain(".cargo", "bin env config config.toml", "registry git", "CARGO_HOME"),
    Toolchain(".local/share/uv", "python tools"),
    Toolchain(".local/share/pypoetry", "venv"),
    Toolchain(".local/share/hatch", "env pythons", "", "HATCH_DATA_DIR"),
    Toolchain(".local/share/pnpm", ".", "store", "PNPM_HOME"),
    Toolchain(".npm", "", "_cacache", "npm_config_cache"),
    Toolchain(".npm-global", "bin lib"),
    Toolchain(".yarn", "bin releases", "berry"),
    Toolchain(".bun", "bin", "install", "BUN_INSTALL"),
    Toolchain(".deno", "bin", "", "DENO_INSTALL"),
    Toolchain("go", "bin", "pkg", "GOPATH"),
    Toolchain(".m2", "wrapper", "repository"),
    Toolchain(".gradle", "jdks", "caches wrapper native", "GRADLE_USER_HOME"),
    Toolchain(".ivy2", "", "cache local"),
    Toolchain(".sbt", "", "boot"),
    Toolchain(".nuget", "", "packages"),
    Toolchain(".gem", "ruby"),
    Toolchain(".cabal", "bin", "packages store"),
    Toolchain(".stack", "programs", "snapshots pantry"),
    Toolchain(".mix", "archives elixir"),
    Toolchain(".hex", "", "packages"),
    Toolchain(".pub-cache", "bin", "hosted git", "PUB_CACHE"),
    Toolchain(".composer", "vendor", "cache"),
    Toolchain(".config/composer", "vendor", "", "COMPOSER_HOME"),
    Toolchain(".julia", "packages artifacts registries environments", "compiled"),
    Toolchain("perl5", "bin lib"),
)
"""Known toolchains. Commands see only the listed parts of each toolchain that is installed."""

TOOLCHAIN_VARIABLES = frozenset(
    {"PATH", "XDG_CACHE_HOME", *_WHOLE, *(known.variable for known in TOOLCHAINS)}
)
"""Environment variables that name the directories of toolchains."""


@frozen
class Machine:
    """The absolute paths outside the project that commands see. Links in them are not resolved.

    ``system`` and the toolchains in ``shown`` are read-only; ``written`` are caches, and changes to
    these go to a layer. ``hidden`` are paths within these that commands must not see.
    """

    home: Path
    system: tuple[Path, ...]
    shown: tuple[Path, ...]
    written: tuple[Path, ...]
    hidden: tuple[Path, ...]
    cache: Path
    """The user's cache directory. Commands see the project's cache directory in its place."""


def scan_machine(
    environ: Mapping[str, str], home: Path, holds_secret: Callable[[Path], bool]
) -> Machine:
    """Return the existing paths of this machine that commands see. Takes some milliseconds.

    ``holds_secret`` decides which files are left out.
    """
    system = tuple(_existing(Path("/"), SYSTEM))
    shown = dict[Path, None]()
    written = dict[Path, None]()

    def may_be_shown(path: Path) -> bool:
        return is_directory(path) or (is_file(path) and not holds_secret(path))

    for place, toolchain in _toolchains(environ, home):
        for names, kind in ((toolchain.shown, shown), (toolchain.written, written)):
            for name in names.split():
                if may_be_shown(place / name):
                    kind[place / name] = None
    known = {*system, *shown, *written}
    for path in _named_by(environ, home):
        if known.isdisjoint((path, *path.parents)):
            shown[path] = None
    for path in _existing(home, SETTINGS):
        if is_file(path) and not holds_secret(path):
            shown[path] = None
    cache = Path(environ.get("XDG_CACHE_HOME", ""))
    if not cache.is_absolute():
        cache = home / ".cache"
    return Machine(
        home=home,
        system=system,
        shown=tuple(shown),
        written=tuple(written),
        hidden=(*_unreadable(ADMINISTERED), *secrets_among_programs(shown)),
        cache=cache,
    )


def _existing(place: Path, names: Iterable[str]) -> Iterator[Path]:
    """Yield the paths of those ``names`` that exist in a directory, including broken links."""
    for name in names:
        if os.path.lexists(path := place / name):
            yield path


def base_of_environment(folder: Path) -> Iterator[Path]:
    """Yield the paths of the Python installation to which a virtual environment links.

    Yields nothing unless the link leads to a Python with its library, because otherwise an
    environment in the project could open any directory to commands.
    """
    try:
        program = (folder / "bin" / "python").resolve(strict=True)
        libraries = any(program.parent.parent.glob("lib*/python*/os.py"))
    except (OSError, RuntimeError):
        return
    if (
        libraries
        and program.parent.name == "bin"
        and _PYTHON.fullmatch(program.name)
        and os.access(program, os.X_OK)
    ):
        yield from _parts_of(program.parent)


def _toolchains(environ: Mapping[str, str], home: Path) -> Iterator[tuple[Path, Toolchain]]:
    on_path = set[Path]()
    for entry in environ.get("PATH", "").split(os.pathsep):
        if entry.startswith("/"):
            on_path |= {Path(entry), *Path(entry).parents}
    for toolchain in TOOLCHAINS:
        named = ""
        if toolchain.variable:
            named = environ.get(toolchain.variable, "")
        places = {
            home / toolchain.home,
            *(Path(part) for part in named.split(os.pathsep) if part.startswith("/")),
        }
        if toolchain.home.startswith("."):
            # A toolchain on ``PATH`` in another home directory. Its programs may be shims, which
            # need the rest of the toolchain.
            parts = Path(toolchain.home).parts
            places |= {place for place in on_path if place.parts[-len(parts) :] == parts}
        for place in sorted(places):
            if not home.is_relative_to(place) and os.path.lexists(place):
                yield place, toolchain


def _named_by(environ: Mapping[str, str], home: Path) -> Iterator[Path]:
    """Yield the installations named by variables in `_WHOLE`, and the directories on ``PATH``.

    Also yields the other parts of the installation around a ``bin`` directory, and those of a
    virtual environment's Python.
    """
    for variable in _WHOLE:
        place = Path(environ.get(variable) or "/")
        if place.is_absolute() and is_directory(place) and not _is_broad(place, home):
            yield place
            yield from base_of_environment(place)
    for entry in environ.get("PATH", "").split(os.pathsep):
        place = Path(entry)
        if place.is_absolute() and is_directory(place) and not _is_broad(place, home):
            yield place
            if place.name in {"bin", "sbin", "condabin"} and not _is_broad(place.parent, home):
                yield from _parts_of(place)
                if is_file(place.parent / "pyvenv.cfg"):
                    yield from base_of_environment(place.parent)


def _parts_of(programs: Path) -> Iterator[Path]:
    """Yield the existing parts of the installation that contains the directory ``programs``.

    If the installation is a git repository, yields only its ``bin``.
    """
    prefix = programs.parent
    if os.path.lexists(prefix / ".git"):
        return _existing(prefix, ["bin"])
    return _existing(prefix, _PREFIX)


def _is_broad(place: Path, home: Path) -> bool:
    """Return True if a directory, such as the home directory, holds more than one installation."""
    return home.is_relative_to(place) or place in {
        home / ".local",
        home / ".config",
        home / ".local/share",
    }


@lru_cache(maxsize=1)
def _unreadable(places: tuple[str, ...]) -> tuple[Path, ...]:
    """Return the files and directories in ``places`` that this user can read but others can't.

    Subdirectories are searched only in ``/etc``.
    """
    found: list[Path] = []
    pending = list(places)
    while pending:
        with contextlib.suppress(OSError), os.scandir(pending.pop()) as rows:
            for row in rows:
                try:
                    mode = row.stat(follow_symlinks=False).st_mode
                except OSError:  # the entry was deleted meanwhile
                    continue
                wanted = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(mode) else 0)
                if (
                    not stat.S_ISLNK(mode)
                    and mode & wanted != wanted
                    and os.access(row.path, os.R_OK)
                ):
                    found.append(Path(row.path))
                elif (
                    stat.S_ISDIR(mode) and mode & wanted == wanted and row.path.startswith("/etc/")
                ):
                    pending.append(row.path)
    return tuple(found)
