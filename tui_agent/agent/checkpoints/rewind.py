"""Records a session's changes to files, and restores and compares files between entries.

A move goes to another entry of the session tree. `FileRewind.plan` returns what it would restore
(``plan.decide`` decides that); the caller (``app.moves``) asks the user about conflicts, moves the
leaf, and then calls ``restore``. The leaf is not moved here. Checkpoints of changes are appended
here (``keep_changes``, ``restore_in_place``) and, after a run's calls, by `Loop`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from tui_agent.agent.checkpoints.file_snapshots import Snapshot
from tui_agent.agent.checkpoints.plan import (
    Conflict,
    Difference,
    RestorePlan,
    changes_in,
    differences,
    directory_changes_in,
    directory_differences,
)
from tui_agent.agent.checkpoints.recorder import Recorder
from tui_agent.agent.checkpoints.restoring import (
    ChangeAmount,
    ChangedFile,
    Restored,
    Restorer,
    amounts_of,
    diff_of,
)
from tui_agent.agent.ports import Owner
from tui_agent.session.entries import CheckpointEntry
from tui_agent.session.errors import StoreError

log = logging.getLogger(__name__)


class FileRewind:
    """Restores and compares the files that one session changed.

    Call it on the event loop; it reads and writes files in threads. An entry of None stands for the
    beginning of the session. Without a store of snapshots, nothing is restored and no differences
    are found.
    """

    def __init__(self, agent: Owner, end_calls: Callable[[], Awaitable[None]]) -> None:
        """``end_calls`` is a function that waits until interrupted tool calls have ended."""
        self._agent = agent
        self._end_calls = end_calls
        self._session = session = agent.session
        self.stayed: set[frozenset[int | None]] = set()
        """Pairs of entries between which the user moved without having files restored.

        ``app.moves`` adds them, so that undoing such a move doesn't restore files either.
        """
        self._accepted: dict[str, Snapshot] = {}
        """Snapshots, by path, of files that others changed and whose changes the user accepted."""
        self._warming: asyncio.Task[None] | None = None
        self.recorder: Recorder | None = None
        """Records the changes that tool calls and commands make to files.

        None if there is no store for snapshots, or if the session is read-only.
        """
        self._restorer: Restorer | None = None
        ports = agent.ports
        keeping = agent.ports.checkpoints
        if keeping is not None and not session.read_only:
            self.recorder = Recorder(
                ports.project,
                keeping,
                lambda sentence: agent.channel.say(sentence, "warning"),
                lambda: agent.jobs.running,
            )
        if keeping is not None:
            self._restorer = Restorer(ports.project, keeping)

    @property
    def has_snapshots(self) -> bool:
        """Whether there is a store for snapshots; without one, no change to a file is recorded."""
        return self._restorer is not None

    def get_ready(self) -> None:
        """List the project and save the contents of its files in the background.

        The first command then doesn't have to wait for that.
        """
        if self.recorder is not None:
            self._warming = asyncio.get_running_loop().create_task(self.recorder.warm())

    def keep_changes(self) -> None:
        """Append a checkpoint with the changes recorded so far, if there are any.

        During a run, the checkpoint is appended before the next step.
        """
        if self.recorder is None:
            return
        entry = self.recorder.checkpoint()
        if entry is not None:
            self._agent.keep(entry, then=self.recorder.forget_changes)

    async def settle(self) -> None:
        """Wait for interrupted calls to end, and append a checkpoint of all changes."""
        if self.recorder is not None:
            await self._end_calls()
            await self.recorder.settle()
            self.keep_changes()

    async def aclose(self) -> None:
        if self.recorder is None:
            return
        try:
            await self.settle()
        except StoreError as error:
            # Storing fails after a takeover, for example. The agent's other parts must still be
            # closed.
            log.warning("could not append a checkpoint of the last changes to files: %s", error)
        await self.recorder.aclose()

    # -- restoring and comparing --------------------------------------------------------------------------------

    async def plan(self, target: int | None) -> RestorePlan:
        """Return the plan for restoring files when the user moves from the leaf to ``target``.

        First appends a checkpoint of the latest changes. Raises EntryNotFound.
        """
        if self._restorer is None:
            return RestorePlan()
        await self.settle()
        leaf = self._session.leaf
        back = self._checkpoints(leaf, target)
        forth = self._checkpoints(target, leaf)
        omitted = sum(entry.omitted for entry in (*back, *forth))
        return await asyncio.to_thread(
            self._restorer.plan,
            differences(changes_in(back), changes_in(forth)),
            omitted,
            directory_differences(directory_changes_in(back), directory_changes_in(forth)),
        )

    async def restore(self, plan: RestorePlan) -> Restored:
        """Restore a plan's files after the user has moved to another entry.

        Return which files were restored and which could not be restored.
        """
        if self._restorer is None or not plan:
            return Restored()
        return await asyncio.to_thread(self._restorer.carry_out, plan)

    async def changed_by_others(self, plan: RestorePlan) -> dict[Conflict, Snapshot]:
        """Return those conflicts of the plan that the user or another program caused.

        Each comes with the file's current snapshot. Changes that were passed to `accept` are left
        out.
        """
        restorer = self._restorer
        if restorer is None:
            return {}

        def look() -> dict[Conflict, Snapshot]:
            found: dict[Conflict, Snapshot] = {}
            for conflict in plan.conflicts:
                if conflict.is_foreign:
                    snapshot = restorer.current(conflict.path).snapshot
                    if self._accepted.get(conflict.path) != snapshot:
                        found[conflict] = snapshot
            return found

        return await asyncio.to_thread(look)

    def accept(self, changes: Mapping[Conflict, Snapshot]) -> None:
        """Record that the user accepts these changes by others.

        `changed_by_others` leaves them out until the file changes again.
        """
        for conflict, snapshot in changes.items():
            self._accepted[conflict.path] = snapshot

    async def foreign_changes(self, target: int | None) -> tuple[ChangedFile, ...]:
        """Return the changes by the user or other programs to files that a move would restore.

        The move is from the leaf to ``target``. Each file is compared with the session's last
        version of it; files that don't differ are left out.
        """
        if self._restorer is None:
            return ()
        found = self._differences(self._session.leaf, target)
        changed = [replace(difference, there=difference.here) for difference in found]
        return await asyncio.to_thread(diff_of, changed, self._restorer)

    async def diff(self, target: int | None) -> tuple[ChangedFile, ...]:
        """Return the changes to files between the entry ``target`` and now.

        First waits for interrupted calls to end, and appends a checkpoint of the latest changes.
        Includes only files that the session changed between ``target`` and the leaf. Raises
        EntryNotFound.
        """
        if self._restorer is None:
            return ()
        await self.settle()
        found = self._differences(self._session.leaf, target)
        return await asyncio.to_thread(diff_of, found, self._restorer)

    async def diff_between(self, old: int | None, new: int | None) -> tuple[ChangedFile, ...]:
        """Return the changes to files from the entry ``old`` to the entry ``new``, as recorded."""
        if self._restorer is None:
            return ()
        found = self._differences(new, old)
        return await asyncio.to_thread(diff_of, found, self._restorer, recorded=True)

    async def amounts(self, places: Sequence[int | None]) -> list[ChangeAmount]:
        """Return how much the session changed between each of ``places`` and the leaf.

        First appends a checkpoint of the latest changes. ``places`` are entries on the path to the
        leaf.
        """
        restorer = self._restorer
        if restorer is None:
            return [ChangeAmount() for _ in places]
        await self.settle()
        made = self._checkpoints(self._session.leaf, None)

        def look() -> list[ChangeAmount]:
            changes: list[list[Difference]] = []
            for place in places:
                # Ids of entries ascend along a path, so larger ids belong to later entries.
                later = [entry for entry in made if entry.id > (place or 0)]
                changes.append(differences(changes_in(later), ()))
            return amounts_of(changes, restorer)

        return await asyncio.to_thread(look)

    async def reapply_changes(self) -> Restored:
        """Apply the session's changes again to a project without them, such as a fresh checkout.

        Changes only files that are as they were before the session; the result lists only these.
        """
        restorer = self._restorer
        if restorer is None:
            return Restored()
        made = self._checkpoints(self._session.leaf, None)
        found = differences((), changes_in(made))
        directories = directory_differences((), directory_changes_in(made))
        plan = await asyncio.to_thread(restorer.plan, found, 0, directories)
        # A file that is already as the session left it is no conflict.
        return await self.restore(replace(plan, conflicts=()))

    async def restore_in_place(self, plan: RestorePlan, target: int | None) -> Restored:
        """Restore a plan's files without moving to another entry, and record that in a checkpoint.

        ``target`` is the entry that the plan was made for. Raises StoreError.
        """
        if self._restorer is None or self.recorder is None:
            return Restored()
        paths = [step.path for step in plan.steps]
        paths += [step.path for step in plan.directories]
        async with self.recorder.around([self._restorer.root / path for path in paths]):
            done = await self.restore(plan)
        entry = self.recorder.checkpoint()
        if entry is not None:
            entry = entry.model_copy(update={"put_back_to": target or 0})
            self._agent.keep(entry, then=self.recorder.forget_changes)
        return done

    def _differences(self, here: int | None, there: int | None) -> list[Difference]:
        return differences(
            changes_in(self._checkpoints(here, there)), changes_in(self._checkpoints(there, here))
        )

    def _checkpoints(self, leaf: int | None, other: int | None) -> list[CheckpointEntry]:
        left = self._session.reader.parting(leaf, other).left
        found = self._session.entries(left.of_kind("checkpoint"))
        return cast("list[CheckpointEntry]", found)
