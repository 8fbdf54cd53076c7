"""What a runner changed in its copy and is in no checkpoint, because the program was killed in between.

What a copy was like when it was made is written down beside it, by stamps. What differs from that and from what the
checkpoints of the branch say is one more checkpoint before the runner goes on.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.agent.checkpoints.file_snapshots import ABSENT, Image, Reading, read_image
from tui_agent.agent.checkpoints.manifest import Manifest, TooLargeError, manifest_of
from tui_agent.agent.checkpoints.plan import after_of, changes_in
from tui_agent.agent.race.copies import Copy
from tui_agent.session.entries import CheckpointEntry, Entry, FileChange

if TYPE_CHECKING:
    from tui_agent.agent.checkpoints.recorder import SnapshotStore

UNKNOWN = "it was changed just before the program was killed"

Stamps = dict[str, list[int]]
"""When a file was changed, in nanoseconds, and its size in bytes, by its path."""


async def note_stamps(copy: Copy) -> None:
    """Write down what a copy is like now; where it can't be looked through, nothing."""
    manifest = await _manifest(copy)
    if manifest is not None:
        _place(copy).write_text(json.dumps(_stamps(manifest)), encoding="utf-8")


async def unrecorded(copy: Copy, branch: Sequence[Entry], keeping: "SnapshotStore") -> CheckpointEntry | None:
    """Return what changed in a copy and no checkpoint of its branch tells of, None for nothing.

    Args:
        copy: the copy of a runner that was cut off.
        branch: the entries of its branch.
        keeping: where images go.
    """
    manifest = await _manifest(copy)
    try:
        begun: Stamps = json.loads(_place(copy).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if manifest is None:
        return None
    now = _stamps(manifest)
    known = {change.path: after_of(change) for change in changes_in(branch)}
    files: list[FileChange] = []
    for path in sorted(now.keys() | begun.keys() | known.keys()):
        if path not in known and now.get(path) == begun.get(path):
            continue
        reading = read_image(copy.root / path)
        before = known[path] if path in known else _as_begun(copy, path, begun.get(path), keeping)
        if before != reading.image:
            files.append(_change(path, before, reading, keeping))
    return CheckpointEntry(files=tuple(files)) if files else None


def _as_begun(copy: Copy, path: str, stamp: list[int] | None, keeping: "SnapshotStore") -> Image:
    """Return a file as the copy was made with it: it is the project's, unless that changed since."""
    if stamp is None:
        return ABSENT
    reading = read_image(copy.project / path)
    if reading.stamp is None or reading.data is None or [reading.stamp.modified, reading.stamp.size] != stamp:
        return Image(mode=reading.image.mode, problem=UNKNOWN)
    keeping.put(reading.data)
    return reading.image


def _change(path: str, before: Image, after: Reading, keeping: "SnapshotStore") -> FileChange:
    if after.data is not None:
        keeping.put(after.data)
    return FileChange(
        path=path,
        before=before.digest,
        after=after.image.digest,
        before_mode=before.mode,
        after_mode=after.image.mode,
        no_before=before.problem,
        no_after=after.image.problem,
    )


async def _manifest(copy: Copy) -> Manifest | None:
    try:
        return await manifest_of(copy.root)
    except (TooLargeError, OSError):
        return None


def _stamps(manifest: Manifest) -> Stamps:
    return {path: [stamp.modified, stamp.size] for path, stamp in manifest.items()}


def _place(copy: Copy) -> Path:
    return copy.root.with_name(f"{copy.root.name}.json")
