"""Keeps the contents that a project's files had before a command, which may change any file.

Small files are copied into one temporary file, and copied again when their stamp differs. If many
have no copy yet, those unmodified in git are not copied: only the hash of the git object is
remembered, and the content is read from the repository if a command has changed the file. Nothing
is written to the user's repository, and nothing is fetched. `Recorder` decides when contents are
kept, and stores those of files that a command has changed.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tui_agent.agent.checkpoints.file_snapshots import (
    TOO_LARGE,
    Reading,
    Snapshot,
    Stamp,
    digest_of,
    take_snapshot,
)
from tui_agent.agent.checkpoints.manifest import Manifest
from tui_agent.files.own_git import run_git
from tui_agent.lazy import frozen
from tui_agent.sandbox.project_scan import MAX_FILE_BYTES
from tui_agent.whole_numbers import whole_number

READ_AHEAD = 200
"""Maximum number of announced objects that are read with the same git process.

Starting a process takes milliseconds.
"""

MAX_PREIMAGE_BYTES = 100_000_000
"""Maximum size, in bytes, of the temporary file with the copies of files."""

MAX_UNCHECKED_FILES = 200
"""Maximum number of files that are copied without asking git which of them are unmodified."""

COPY_SECONDS = 1.0
"""Maximum number of seconds that a command waits while files are copied before it starts.

Files that aren't copied by then have no snapshot of their earlier contents.
"""

NOT_COPIED = "there was no time or space to copy it before the command"


class GitObjects:
    """Reads git objects by hash from the repository around ``root``. Writes and fetches nothing."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._expected: list[str] = []
        self._read_ahead: dict[str, bytes] = {}

    def sizes(self, names: Iterable[str]) -> dict[str, int]:
        """Return the size in bytes of each git object, by hash; missing objects are left out."""
        asked = "".join(f"{name}\n" for name in names)
        check = "--batch-check=%(objectname) %(objectsize)"
        output = None
        if asked:
            output = run_git(self._root, "cat-file", check, text=asked.encode())
        sizes: dict[str, int] = {}
        for row in (output or b"").decode().splitlines():
            name, _space, written = row.partition(" ")
            size = whole_number(written)
            if size is not None:
                sizes[name] = size
        return sizes

    def read(self, names: Iterable[str]) -> dict[str, bytes]:
        """Return the content of each git blob, by hash; missing objects are left out."""
        asked = "".join(f"{name}\n" for name in names)
        output = None
        if asked:
            output = run_git(self._root, "cat-file", "--batch", text=asked.encode())
        found: dict[str, bytes] = {}
        at = 0
        while output is not None and (end := output.find(b"\n", at)) >= 0:
            name, kind, *size = output[at:end].decode().split()
            at = end + 1
            if kind == "blob" and size:
                found[name] = output[at : at + int(size[0])]
                at += int(size[0]) + 1
        return found

    def expect(self, names: Iterable[str]) -> None:
        """Announce the git objects that `content` will be asked for, in this order.

        This lets `content` read many objects at once. Empty names are ignored.
        """
        self._expected = [name for name in names if name]
        self._read_ahead = {}

    def content(self, name: str) -> bytes | None:
        """Return the content of a git object; None if the object is missing."""
        if name not in self._read_ahead:
            at = len(self._expected)
            if name in self._expected:
                at = self._expected.index(name)
            wanted = [name, *self._expected[at : at + READ_AHEAD]]
            self._read_ahead = self.read(dict.fromkeys(wanted))
            del self._expected[: at + READ_AHEAD]
        return self._read_ahead.get(name)


@frozen
class _Copy:
    """A file's content that was copied to the temporary file, where it begins at ``start``."""

    digest: str
    start: int
    size: int


@frozen
class _Blob:
    """A file's content that is stored as a blob in the session store."""

    digest: str


@frozen
class _Object:
    """A file's content that git has; ``name`` is the hash of the git object."""

    name: str


class PreimageStore:
    """Keeps the contents that one project's files had before a command; not thread-safe.

    ``blob`` takes a digest and returns the content from the store; None if the store lacks it.
    """

    def __init__(self, root: Path, blob: Callable[[str], bytes | None]) -> None:
        self._root = root
        self._blob = blob
        self._git = GitObjects(root)
        self._known: dict[str, tuple[Stamp, _Copy | _Blob | _Object]] = {}
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as this store
        self._end = 0

    def close(self) -> None:
        self._file.close()
        self._known.clear()

    def prepare(self, manifest: Manifest) -> None:
        """Keep the current contents of the manifest's files.

        The files changed last are copied first. Stops after `COPY_SECONDS`; leaves out files that
        are too large or no longer fit within `MAX_PREIMAGE_BYTES`.
        """
        if self._end > MAX_PREIMAGE_BYTES // 2:
            self._forget_gone(manifest)
        missing: list[str] = []
        for path, stamp in manifest.items():
            if stamp.size <= MAX_FILE_BYTES and not self._has(path, stamp):
                missing.append(path)
        if len(missing) > MAX_UNCHECKED_FILES:
            self._take_from_git(missing, manifest)
            missing = [path for path in missing if not self._has(path, manifest[path])]
        # Copy the files changed last first, because they are the most likely to change next.
        missing.sort(key=lambda path: manifest[path].modified, reverse=True)
        until = time.monotonic() + COPY_SECONDS
        for path in missing:
            if time.monotonic() > until:
                break
            self._copy(path, manifest[path])

    def _has(self, path: str, stamp: Stamp) -> bool:
        known = self._known.get(path)
        return known is not None and known[0] == stamp

    def _take_from_git(self, paths: Iterable[str], manifest: Manifest) -> None:
        """Remember the git object of each of ``paths`` that is unmodified in git."""
        objects = self._unmodified()
        named = {path: objects[path] for path in paths if path in objects}
        sizes = self._git.sizes(set(named.values()))
        for path, name in named.items():
            # If the sizes differ, the git object isn't the file's content, because git converts
            # line endings or stores only a Git LFS pointer.
            if sizes.get(name) == manifest[path].size:
                self._known[path] = (manifest[path], _Object(name))

    def note(self, path: str, stamp: Stamp, digest: str) -> None:
        """Record that a file with this stamp has the content of the store's blob ``digest``."""
        self._known[path] = (stamp, _Blob(digest))

    def snapshots(self, wanted: Sequence[tuple[str, Stamp]]) -> dict[str, Reading]:
        """Return, by path, a snapshot of each file as it was when it had the given stamp.

        If its content was not kept or can't be read, the snapshot's ``problem`` says why.
        """
        found: dict[str, Reading] = {}
        objects: dict[str, str] = {}
        stamps = dict(wanted)
        for path, stamp in wanted:
            known = self._known.get(path)
            if known is None or known[0] != stamp:
                reason = TOO_LARGE if stamp.size > MAX_FILE_BYTES else NOT_COPIED
                found[path] = Reading(Snapshot(mode=stamp.kept_mode, problem=reason))
            elif isinstance(known[1], _Object):
                objects[path] = known[1].name
            else:
                found[path] = _reading(stamp, self._content(known[1]))
        contents = self._git.read(set(objects.values()))
        for path, name in objects.items():
            data = contents.get(name)
            same = data is not None and len(data) == stamps[path].size
            found[path] = _reading(stamps[path], data if same else None)
        return found

    def object_of(self, path: str, stamp: Stamp) -> str:
        """Return the hash of the git object with a file's content at the time of a stamp.

        "" if the content was not taken from git.
        """
        known = self._known.get(path)
        if known is not None and known[0] == stamp and isinstance(known[1], _Object):
            return known[1].name
        return ""

    def _content(self, source: _Copy | _Blob) -> bytes | None:
        if isinstance(source, _Blob):
            return self._blob(source.digest)
        data = os.pread(self._file.fileno(), source.size, source.start)
        return data if digest_of(data) == source.digest else None

    def _copy(self, path: str, stamp: Stamp) -> None:
        if self._end + stamp.size > MAX_PREIMAGE_BYTES:
            return
        reading = take_snapshot(self._root / path)
        if reading.data is None or reading.snapshot.digest is None or reading.stamp != stamp:
            return
        os.pwrite(self._file.fileno(), reading.data, self._end)
        self._known[path] = (stamp, _Copy(reading.snapshot.digest, self._end, len(reading.data)))
        self._end += len(reading.data)

    def _forget_gone(self, manifest: Manifest) -> None:
        """Delete all copies if most of their bytes belong to files that have changed since then."""
        others: dict[str, tuple[Stamp, _Copy | _Blob | _Object]] = {}
        used = 0
        for path, (stamp, source) in self._known.items():
            if not isinstance(source, _Copy):
                others[path] = (stamp, source)
            elif manifest.get(path) == stamp:
                used += source.size
        if used < self._end // 2:
            self._known = others
            self._file.truncate(0)
            self._end = 0

    # -- git --------------------------------------------------------------------------------------------------

    def _unmodified(self) -> dict[str, str]:
        """Return, by relative path, the git object's hash of each file that is unmodified in git.

        Empty outside a repository, or if git fails.
        """
        staged = run_git(self._root, "ls-files", "-s", "-v", "-z")
        differing = run_git(self._root, "diff-files", "--name-only", "--relative", "-z")
        if staged is None or differing is None:
            return {}
        objects: dict[str, str] = {}
        for row in staged.split(b"\0"):
            facts, _, path = row.partition(b"\t")
            tag, mode, name, stage = [*facts.split(), b"", b"", b"", b""][:4]
            # Leave out files with any other tag, because git doesn't check whether these are
            # modified.
            if tag == b"H" and mode in {b"100644", b"100755"} and stage == b"0":
                objects[os.fsdecode(path)] = name.decode()
        for row in differing.split(b"\0"):
            objects.pop(os.fsdecode(row), None)
        return objects


def _reading(stamp: Stamp, data: bytes | None) -> Reading:
    mode = stamp.kept_mode
    if data is None:
        return Reading(Snapshot(mode=mode, problem="its earlier content could not be read"))
    return Reading(Snapshot(digest_of(data), mode), data)
