"""Records changes to the project's files by tool calls and commands, and makes checkpoints.

The contents go into the store of snapshots; the checkpoint entry is appended by the caller (`Loop`,
`FileRewind`).

If a call names its files, they are read before and after it. A command may change any file, so the
project is listed before and after it, and files whose stamp differs are read (`preimages` keeps
their earlier contents). A failure here never fails a call: the changes are not recorded, and the
user is warned once.
"""

import asyncio
import logging
import os
import stat
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import asynccontextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from tui_agent.agent.checkpoints.file_snapshots import (
    ABSENT,
    NOT_A_FILE,
    Reading,
    Snapshot,
    Stamp,
    take_snapshot,
)
from tui_agent.agent.checkpoints.manifest import (
    IGNORE_FILES,
    Manifest,
    TooLargeError,
    WatchedProject,
)
from tui_agent.agent.checkpoints.plan import after_of, before_of, follows
from tui_agent.agent.checkpoints.preimages import PreimageStore
from tui_agent.agent.threads import in_thread
from tui_agent.lazy import frozen
from tui_agent.path_checks import folders_around, is_among, is_link
from tui_agent.sandbox.project_scan import MAX_FILE_BYTES
from tui_agent.say_once import SayOnce
from tui_agent.session.entries import CheckpointEntry, DirectoryChange, FileChange
from tui_agent.session.errors import StoreError
from tui_agent.tools.base import Tool, ToolContext, ToolInput

log = logging.getLogger(__name__)
T = TypeVar("T")

MAX_CHANGES = 60_000
"""Maximum number of changed files of one command that are read; further ones are only counted."""

MAX_STORED = 1_000
"""Maximum number of changed files of one command whose contents before and after it are stored.

With more changed files, only their contents before the command are stored, and of these only those
that git lacks. The contents after it are stored when the files are restored.
"""

FILES_PER_BATCH = 500
"""Maximum number of files whose contents are in memory at the same time."""

MAX_BYTES = 50_000_000
"""Maximum number of bytes stored for one command's changes; further files have no snapshot."""

MAX_SLOW_LISTINGS = 3
"""Number of slow listings of a project after which changes by commands are not recorded."""

TOO_MUCH = "too much changed at once"
NOT_STORED = "it could not be stored"
WAS_IGNORED = "it may have existed before, but was ignored"
IS_OLDER = "it is older than the command, so it may have been moved here"


@frozen
class SnapshotStore:
    """The functions of the store that keeps the contents of snapshots.

    ``put`` stores bytes and returns their digest; ``get`` returns the bytes for a digest, or None.
    ``trim`` drops the oldest contents if the store is too large. Files in the directories
    ``apart``, such as the store's own, are neither recorded nor restored.
    """

    put: Callable[[bytes], str]
    get: Callable[[str], bytes | None]
    trim: Callable[[], object] = lambda: None
    apart: tuple[Path, ...] = ()


class Recorder:
    """Records the changes of one session to one project.

    Call its methods on the event loop's thread; it reads files in other threads. ``tell`` shows the
    user a warning; the same text is shown only once. ``jobs`` returns the number of running jobs.
    """

    def __init__(
        self,
        project: Path,
        keeping: SnapshotStore,
        tell: Callable[[str], None],
        jobs: Callable[[], int] = lambda: 0,
    ) -> None:
        self._root = Path(os.path.realpath(project))
        self._keeping = keeping
        self._tell = tell
        self._jobs = jobs
        self._preimages: PreimageStore | None = None
        self._commands = 0
        """Number of running commands that may change any file."""
        self._seen: Manifest | None = None
        """The manifest made before the running commands started, or when one of them last ended.

        A manifest lists the project's files with their stamps. None if no command is running, or if
        the project could not be listed.
        """
        self._beside_jobs: Manifest | None = None
        """The manifest that was listed last, if a background job was running then; else None."""
        self._changed: list[FileChange] = []
        """The changes that are not in a checkpoint yet."""
        self._directories: dict[str, DirectoryChange] = {}
        """The changes of directories, by path, that are not in a checkpoint yet."""
        self._omitted = 0
        """Number of changes since the last checkpoint that aren't recorded.

        These are the changes that exceed `MAX_CHANGES`.
        """
        self._lock = asyncio.Lock()
        self._said = SayOnce()
        self._watched = True
        self._failures = 0
        self._bytes = 0
        self._trimmed = False
        self._trimming: asyncio.Future[object] | None = None
        self._unstored = ""
        self._looking: set[asyncio.Future[None]] = set()
        self._files = WatchedProject(self._root, keeping.apart)

    async def warm(self) -> None:
        """Before the first command, list the project and keep the contents of its files.

        Does nothing if contents are kept already, or if changes by commands are not recorded.
        """
        async with self._lock:
            if (
                self._preimages is None
                and self._watched
                and (manifest := await self._look()) is not None
            ):
                await self._copy(manifest)

    @asynccontextmanager
    async def around(self, paths: Sequence[Path] | None) -> AsyncIterator[None]:
        """Record the changes that are made to these files inside the context.

        If ``paths`` is None, changes to all files of the project are recorded. Changes are also
        recorded if the task is cancelled inside the context or while they are read afterwards;
        `settle` waits for that.
        """
        if paths is None:
            async with self._lock:
                if not self._commands and self._watched:
                    seen = await self._look()
                    await self._see_jobs(seen)
                    await self._copy(seen)
                    self._seen = seen
                self._commands += 1
            try:
                yield
            finally:
                await self._whatever_happens(self._end())
            return
        known: dict[str, Path] = {}
        for path in paths:
            name = self._name(path)
            if name is not None:
                known[name] = path
        if not known:
            yield
            return
        before = await self._read(known)
        places = {*known, *folders_around(known)}
        modes = await asyncio.to_thread(self._modes_of, places)
        try:
            yield
        finally:
            await self._whatever_happens(self._compare_known(known, before))
            await self._whatever_happens(self._compare_directories(places, modes))

    async def _whatever_happens(self, work: Coroutine[None, None, None]) -> None:
        """Run ``work`` in a task and wait for it. The task continues if the caller is cancelled."""
        task = asyncio.ensure_future(work)
        self._looking.add(task)
        task.add_done_callback(self._looking.discard)
        await asyncio.shield(task)

    def checkpoint(self) -> CheckpointEntry | None:
        """Return a new entry with the changes that no checkpoint has yet; None if there are none.

        The caller appends it to the session and then calls `forget_changes`; if the entry can't be
        stored, the next checkpoint has the changes.
        """
        if self._changed or self._omitted or self._directories:
            return CheckpointEntry(
                files=tuple(self._changed),
                omitted=self._omitted,
                directories=tuple(self._directories.values()),
            )
        return None

    def forget_changes(self) -> None:
        """Forget the changes in the entry that `checkpoint` has just returned."""
        self._changed = []
        self._omitted = 0
        self._directories = {}

    async def settle(self) -> None:
        """Wait for changes that are still being read, and record the changes by background jobs.

        Call it before `checkpoint`. From time to time, it also starts to trim the store of
        snapshots.
        """
        if self._looking:
            await asyncio.wait(self._looking)
        async with self._lock:
            if self._beside_jobs is not None and self._watched and not self._commands:
                now = await self._look()
                await self._see_jobs(now)
                await self._copy(now)
            if self._bytes and (not self._trimmed or self._bytes > MAX_BYTES):
                self._trimmed = True
                self._bytes = 0
                # Trim the store in the background, because trimming a large store takes a while.
                self._trimming = asyncio.ensure_future(
                    self._guarded(asyncio.to_thread(self._keeping.trim))
                )

    async def aclose(self) -> None:
        if self._trimming is not None:
            await self._trimming
        if self._preimages is not None:
            self._preimages.close()
            self._preimages = None
        self._files.close()

    # -- calls that name their files ----------------------------------------------------------------------------

    def _name(self, path: Path) -> str | None:
        """Return a file's path relative to the project; None if its changes aren't recorded."""
        if not path.is_relative_to(self._root):
            return None
        if is_among(path, self._keeping.apart):
            return None
        relative = path.relative_to(self._root)
        if ".git" in relative.parts:
            return None
        return relative.as_posix()

    async def _read(self, known: dict[str, Path]) -> dict[str, Reading]:
        def read() -> dict[str, Reading]:
            return {name: self._snapshot(name) for name in known}

        return await asyncio.to_thread(read)

    def _snapshot(self, name: str) -> Reading:
        """Read the file at a relative path; behind a link to a directory, there is no file.

        A command may replace a directory by a link, or a link by a directory.
        """
        around = PurePosixPath(name).parents[:-1]
        if any(is_link(self._root / parent) for parent in around):
            return Reading(ABSENT)
        return take_snapshot(self._root / name)

    async def _compare_known(self, known: dict[str, Path], before: dict[str, Reading]) -> None:
        async with self._lock:
            after = await self._read(known)
            pairs = [(name, before[name], after[name]) for name in known]
            changed = await self._guarded(asyncio.to_thread(self._keep, pairs))
            self._note(changed or [])
            # The changes to these files are recorded now, and must not be found again.
            for manifest in (self._seen, self._beside_jobs):
                if manifest is not None:
                    for name, reading in after.items():
                        if reading.stamp is not None:
                            manifest[name] = reading.stamp
                        else:
                            manifest.pop(name, None)

    def _modes_of(self, places: Iterable[str]) -> dict[str, int]:
        """Return the permission bits of those paths that are directories, without links."""
        modes: dict[str, int] = {}
        for path in places:
            with suppress(OSError):
                state = os.lstat(self._root / path)
                if stat.S_ISDIR(state.st_mode):
                    modes[path] = stat.S_IMODE(state.st_mode)
        return modes

    async def _compare_directories(self, places: Iterable[str], before: dict[str, int]) -> None:
        async with self._lock:
            after = await asyncio.to_thread(self._modes_of, places)
            self._note_directories(before, after)
            # These changes are recorded now, and must not be found again.
            for manifest in (self._seen, self._beside_jobs):
                if manifest is not None and manifest.directories is not None:
                    for path in before.keys() - after.keys():
                        manifest.directories.pop(path, None)
                    manifest.directories |= after

    # -- commands that may change any file ------------------------------------------------------------------------

    async def _end(self) -> None:
        async with self._lock:
            self._commands -= 1
            seen = self._seen
            self._seen = None
            if seen is None:
                return
            now = await self._look()
            if now is not None:
                await self._compare(seen, now, job=False)
                await self._copy(now)
            self._seen = now if self._commands else None
            if self._jobs():
                self._beside_jobs = now

    async def _see_jobs(self, now: Manifest | None) -> None:
        before = self._beside_jobs
        self._beside_jobs = now if self._jobs() else None
        if before is not None and now is not None:
            await self._compare(before, now, job=True)

    async def _look(self) -> Manifest | None:
        try:
            return await self._files.look()
        except TooLargeError as error:
            self._failures += 1
            self._watched = not error.for_good and self._failures < MAX_SLOW_LISTINGS
            self._say(str(error))
        except OSError as error:
            self._say(f"Can't list the project, so changes by commands can't be undone: {error}.")
        return None

    async def _copy(self, manifest: Manifest | None) -> None:
        """Keep the current contents of new and changed files in the preimage store.

        Call it after `_compare`, which needs the earlier contents.
        """

        def prepare(manifest: Manifest) -> None:
            if self._preimages is None:
                self._preimages = PreimageStore(self._root, self._keeping.get)
            self._preimages.prepare(manifest)

        if manifest is not None:
            await self._guarded(asyncio.to_thread(prepare, manifest))

    async def _compare(self, before: Manifest, after: Manifest, *, job: bool) -> None:
        if before is after:
            return

        def compare() -> list[str]:
            paths = before.keys() | after.keys()
            return sorted(path for path in paths if before.get(path) != after.get(path))

        changed = await asyncio.to_thread(compare)
        # While a job runs, the user may have created a directory. If an ignore file changed, a
        # directory that wasn't listed before may have existed but been ignored.
        unsure = job or any(Path(path).name in IGNORE_FILES and path in before for path in changed)
        if before.directories is not None and after.directories is not None and not unsure:
            self._note_directories(before.directories, after.directories)
        self._omitted += max(0, len(changed) - MAX_CHANGES)
        changed = changed[:MAX_CHANGES]
        if changed:
            noted = await self._guarded(asyncio.to_thread(self._changes_of, changed, before, after))
            self._note([change.model_copy(update={"job": job}) for change in noted or []])

    def _changes_of(
        self, changed: Sequence[str], before: Manifest, after: Manifest
    ) -> list[FileChange]:
        preimages = self._preimages
        if preimages is None:
            return []
        # If an ignore file changed, a file that wasn't listed before may have existed but been
        # ignored.
        unsure = any(Path(path).name in IGNORE_FILES and path in before for path in changed)
        if len(changed) <= MAX_STORED:
            changed, unread = _within(MAX_BYTES, changed, before, after)
            found = self._keep(self._pairs(changed, before, after, unsure=unsure))
            for path in unread:
                were = _unread(before.get(path))
                found.append(_change(path, were, _unread(after.get(path))))
            return found

        def batches() -> Iterator[tuple[str, Reading, Reading]]:
            for at in range(0, len(changed), FILES_PER_BATCH):
                batch = changed[at : at + FILES_PER_BATCH]
                yield from self._pairs(batch, before, after, unsure=unsure)

        def object_of(path: str) -> str:
            return preimages.object_of(path, before[path]) if path in before else ""

        return self._keep(batches(), object_of)

    def _pairs(
        self, changed: Sequence[str], before: Manifest, after: Manifest, *, unsure: bool
    ) -> list[tuple[str, Reading, Reading]]:
        """Return each changed file's path, with the earlier and the current reading of the file.

        Leaves out a file that is unchanged after all, or was replaced by a device.
        """
        assert self._preimages is not None  # noqa: S101 - the caller has checked it
        were = self._preimages.snapshots(
            [(path, before[path]) for path in changed if path in before]
        )
        pairs = []
        for path in changed:
            now = self._snapshot(path)
            if path in after and now.snapshot.problem == NOT_A_FILE:
                continue
            if path not in before:
                # An older file that wasn't listed may have been moved here, so undoing must not
                # delete it.
                if unsure:
                    problem = WAS_IGNORED
                elif before.had(after[path]):
                    problem = ""
                else:
                    problem = IS_OLDER
                were[path] = Reading(Snapshot(problem=problem))
            elif path not in after and now.stamp == before[path]:
                continue
            pairs.append((path, were[path], now))
        return pairs

    # -- keeping --------------------------------------------------------------------------------------------------

    def _keep(
        self,
        pairs: Iterable[tuple[str, Reading, Reading]],
        object_of: Callable[[str], str] | None = None,
    ) -> list[FileChange]:
        """Store the snapshots of files that differ and return the changes.

        ``pairs`` contains the path, the earlier reading and the current reading of each file.
        ``object_of`` returns the hash of the git object with a file's earlier content, "" if git
        lacks it. If ``object_of`` is given, neither current contents nor contents that git has are
        stored.
        """
        changes: list[FileChange] = []
        room = MAX_BYTES
        for path, before, after in pairs:
            if before.snapshot == after.snapshot and not before.snapshot.problem:
                continue
            name = "" if object_of is None else object_of(path)
            stored = [] if name else [before]
            if object_of is None:
                stored.append(after)
            size = sum(len(reading.data or b"") for reading in stored)
            if size > room:
                changes.append(_lost_change(path, before, after, TOO_MUCH))
                continue
            room -= size
            try:
                for reading in stored:
                    if reading.data is not None:
                        self._keeping.put(reading.data)
                        self._bytes += len(reading.data)
            except StoreError as error:
                log.warning("a snapshot of %s could not be stored: %s", path, error)
                self._unstored = error.message
                changes.append(_lost_change(path, before, after, NOT_STORED))
                continue
            if object_of is None:
                digest = after.snapshot.digest
                if self._preimages is not None and digest is not None and after.stamp is not None:
                    self._preimages.note(path, after.stamp, digest)
            change = _change(path, before.snapshot, after.snapshot)
            changes.append(change.model_copy(update={"before_object": name}) if name else change)
        return changes

    def _note(self, changes: Sequence[FileChange]) -> None:
        """Add changes to the next checkpoint.

        A change that continues an earlier change is merged with it.
        """
        if self._unstored:
            self._say(
                f"Can't store snapshots of changed files, so they can't be restored: {self._unstored}"
            )
        files = self._changed
        last = {change.path: at for at, change in enumerate(files)}
        for change in changes:
            at = last.get(change.path)
            if at is not None and follows(files[at], change) and files[at].job == change.job:
                after = {
                    "after": change.after,
                    "after_mode": change.after_mode,
                    "no_after": change.no_after,
                }
                files[at] = files[at].model_copy(update=after)
            else:
                files.append(change)
        files[:] = filter(_has_effect, files)

    def _note_directories(self, before: dict[str, int], after: dict[str, int]) -> None:
        """Add the directories that were created or removed to the next checkpoint."""
        for path in sorted(before.keys() ^ after.keys()):
            earlier = self._directories.pop(path, None)
            change = DirectoryChange(
                path=path, before_mode=before.get(path), after_mode=after.get(path)
            )
            if earlier is not None:
                change = change.model_copy(update={"before_mode": earlier.before_mode})
            if (change.before_mode is None) != (change.after_mode is None):
                self._directories[path] = change

    async def _guarded(self, work: Awaitable[T]) -> T | None:
        """Await ``work`` and return its result; if it fails, return None and warn the user once."""
        try:
            return await work
        except Exception as error:  # A call must not fail because its changes can't be recorded.
            log.exception("changes could not be recorded")
            self._say(f"Can't record changed files, so the changes can't be undone: {error}")
            return None

    def _say(self, sentence: str) -> None:
        if self._said.remember(sentence):
            self._tell(sentence)


def _within(
    room: int, changed: Sequence[str], before: Manifest, after: Manifest
) -> tuple[list[str], list[str]]:
    fitting: list[str] = []
    others: list[str] = []
    for path in changed:
        sizes = [manifest[path].size for manifest in (before, after) if path in manifest]
        needed = sum(size for size in sizes if size <= MAX_FILE_BYTES)
        (fitting if needed <= room else others).append(path)
        room -= needed if needed <= room else 0
    return fitting, others


def _unread(stamp: Stamp | None) -> Snapshot:
    if stamp is None:
        return Snapshot()
    return Snapshot(mode=stamp.kept_mode, problem=TOO_MUCH)


def _has_effect(change: FileChange) -> bool:
    """Return True if the file has changed, or if its earlier state is unknown."""
    return bool(change.no_before) or before_of(change) != after_of(change)


def _lost_change(path: str, before: Reading, after: Reading, why: str) -> FileChange:
    return _change(path, _lost(before.snapshot, why), _lost(after.snapshot, why))


def _change(path: str, before: Snapshot, after: Snapshot) -> FileChange:
    return FileChange(
        path=path,
        before=before.digest,
        after=after.digest,
        before_mode=before.mode,
        after_mode=after.mode,
        no_before=before.problem,
        no_after=after.problem,
    )


def _lost(snapshot: Snapshot, why: str) -> Snapshot:
    if snapshot.exists:
        return Snapshot(mode=snapshot.mode, problem=snapshot.problem or why)
    return snapshot


@asynccontextmanager
async def watched(
    recorder: Recorder | None, tool: Tool[Any], arguments: ToolInput, context: ToolContext
) -> AsyncIterator[None]:
    """Record the changes that a tool call makes to files inside this context.

    Also sets ``recorded`` in the tool's context. Does nothing if ``recorder`` is None.
    """
    if recorder is None:
        yield
        return
    context.recorded = recorder.around
    async with recorder.around(await in_thread(tool.touches, arguments, context)):
        yield
