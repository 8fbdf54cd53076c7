"""The manifest of a project: every file that searches see, with its stamp. Making one reads no file."""

import asyncio
import os
import stat
from pathlib import Path

from tui_agent.agent.checkpoints.images import Stamp
from tui_agent.tools.ignore import walk_files
from tui_agent.tools.ripgrep import NoRipgrepError, run_ripgrep

MAX_FILES = 30_000
"""A project with more is not watched."""

LIST_SECONDS = 2.0
"""A project that takes longer to list is not watched."""

IGNORE_FILES = frozenset({".gitignore", ".ignore"})

Manifest = dict[str, Stamp]
"""Stamps by path, relative to the project."""


class TooLargeError(Exception):
    """The project can't be watched; the message is one sentence for a person.

    ``for_good`` is false where it may go better the next time.
    """

    def __init__(self, why: str, *, for_good: bool) -> None:
        super().__init__(f"This project {why}: what shell commands change in it can't be taken back, only edits can.")
        self.for_good = for_good


async def manifest_of(root: Path) -> Manifest:
    """Return what is in a project now: ignored files, links and repositories' own data are left out.

    Raises:
        TooLargeError: there is too much of it.
        OSError: it can't be listed.
    """
    try:
        async with asyncio.timeout(LIST_SECONDS):
            names = await _names(root)
    except TimeoutError:
        raise TooLargeError(f"takes longer than {LIST_SECONDS:.0f} s to look through", for_good=False) from None
    return await asyncio.to_thread(_stamped, root, names)


async def _names(root: Path) -> list[str]:
    names: list[str] = []

    def sink(lines: list[bytes]) -> None:
        if len(names) <= MAX_FILES:
            names.extend(os.fsdecode(line).removeprefix("./") for line in lines)

    try:
        await run_ripgrep(["--files", "./"], root, sink)
    except NoRipgrepError:
        return await asyncio.to_thread(
            lambda: [path.relative_to(root).as_posix() for path in walk_files(root, limit=MAX_FILES + 1)]
        )
    return names


def _stamped(root: Path, names: list[str]) -> Manifest:
    if len(names) > MAX_FILES:
        raise TooLargeError(f"has more than {MAX_FILES:,} files", for_good=True)
    found: Manifest = {}
    prefix = f"{root}{os.sep}"
    for name in names:
        try:
            state = os.lstat(prefix + name)
        except OSError:
            continue
        if stat.S_ISREG(state.st_mode):
            found[name] = Stamp.of(state)
    return found
