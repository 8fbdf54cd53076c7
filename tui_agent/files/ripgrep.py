"""Runs ripgrep for searches and file listings, and passes its output on while ripgrep runs."""

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
"""Seconds after which a search is stopped. The results that were found by then are used."""

COMMON = (
    *("--no-config", "--color=never", "--no-messages", "--no-require-git", "--hidden"),
    *(f"--glob=!{name}" for name in (".git", ".hg", ".svn", ".jj")),
)
"""Options of every search.

Hidden files are searched, but repository data (such as ``.git``) is not. A glob without ``!`` must
not be added, because it would override the ignore files.
"""

IGNORE_FILES = frozenset({".gitignore", ".ignore", ".rgignore"})
PIPE_CHECK_DELAY = 1.0
"""Seconds from the start of a search until its ignore files are checked.

If one of them is a pipe, ripgrep would wait for it forever.
"""
_CHUNK = 64 * 1024
_STDERR_BYTES = 8 * 1024

LineSink = Callable[[list[bytes]], None]

_checked: dict[str, bool] = {}


class NoRipgrepError(Exception):
    """Raised when ripgrep can't be used.

    Either ripgrep isn't installed or doesn't run, or an ignore file isn't a regular file.
    """


@frozen
class Search:
    """The outcome of a search with ripgrep.

    ``code`` is its exit code: 0 if it found anything, 1 if it found nothing, 2 for an error,
    negative if it was killed after `TIMEOUT`. ``errors`` is the beginning of its error output.
    """

    code: int
    errors: str
    timed_out: bool = False


async def list_files(
    directory: Path, sink: LineSink, arguments: Sequence[str] = ("--files",)
) -> Search:
    """Pass the files that ripgrep would search to ``sink``, as paths relative to the directory.

    ``arguments`` can select other files, for example with ``--files-with-matches``. Raises
    NoRipgrepError as `run_ripgrep` does.
    """

    def plain(names: list[bytes]) -> None:
        sink([name.removeprefix(b"./") for name in names])

    # A name may contain a line break.
    return await run_ripgrep([*arguments, "--null", "./"], directory, plain, end=b"\0")


async def shared_files(root: Path, most: int | None = None) -> list[str]:
    """Return the relative paths of the files in a project that git doesn't ignore, unsorted.

    If there are more than ``most`` files, returns more than ``most`` of them, but perhaps not all.
    If ``most`` is None, returns all files. Without ripgrep, the listing is slower and contains at
    most ``most`` + 1 files, or 200,001 if ``most`` is None.
    """
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

    Lines are passed without ``end``. After `TIMEOUT` seconds, ripgrep is killed, and the result's
    ``timed_out`` is True. Raises NoRipgrepError if ripgrep can't run. Also raises it if ripgrep was
    killed earlier, because an ignore file is a pipe or because the memory limit was reached. By
    then, ``sink`` may have received some lines.
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
    waiting = asyncio.create_task(_kill_at_pipes(process, directory))
    timed_out = False
    try:
        async with asyncio.timeout(TIMEOUT):
            await _lines(process.stdout, sink, end)
            if await process.wait() < 0:
                # ripgrep was killed because an ignore file is a pipe, or because it used too much
                # memory.
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
    """Return True if all ignore files in a directory and its parents are regular files.

    If one of them is a pipe, ripgrep would wait for it forever.
    """
    for up in (directory, *directory.parents):
        for name in (*IGNORE_FILES, ".git/info/exclude"):
            if not _is_plain(up / name):
                return False
    return True


def _is_plain(path: str | Path) -> bool:
    return is_file(path) or not is_there(path)


async def _kill_at_pipes(process: asyncio.subprocess.Process, directory: Path) -> None:
    """Kill ripgrep if an ignore file isn't a regular file, because ripgrep may wait for it forever.

    The files are checked after `PIPE_CHECK_DELAY` if ripgrep still runs then.
    """

    def has_pipes() -> bool:
        for place, _folders, names in os.walk(directory):
            if process.returncode is not None:
                return False
            for name in IGNORE_FILES.intersection(names):
                if not _is_plain(f"{place}/{name}"):
                    return True
        return False

    await asyncio.sleep(PIPE_CHECK_DELAY)
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
    """Return the paths of ripgrep programs: first from the ripgrep package, then from ``PATH``.

    A program that ``PATH`` finds in ``directory`` isn't used, because a project must not choose
    which programs run.
    """
    scripts = sysconfig.get_path("scripts")
    found = (find_program("rg", environ={"PATH": scripts}), find_program("rg", outside=directory))
    return tuple(dict.fromkeys(path for path in found if path))


async def _works(binary: str) -> bool:
    """Return True if ``binary --version`` succeeds. The result is cached.

    The installed ripgrep package may be for another C library. Its program doesn't run then.
    """
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
